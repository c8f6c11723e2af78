"""Phases of runs that are known: simulated ones, and real traces against their observables."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from synthetic import Counters, Run, programs, run

from popmodel.efficiency.measure import analyse
from popmodel.structure.iterations import find
from popmodel.structure.phases import SEVERAL, Phase, Phases, phases
from popmodel.traces import Trace, read
from popmodel.traces.codes import TRACING_DISABLED
from popmodel.traces.runtime import state_times
from popmodel.traces.selection import TracePart, focused

DATA = Path(__file__).parents[1] / "data"


def of_trace(trace: Trace, part: TracePart = TracePart(from_start=True)) -> Phases:  # noqa: B008 (frozen)
    return phases(find(trace), trace, focused(trace, part)[0])


def of_run(done: Run, folder: Path) -> Phases:
    trace = done.read(folder)
    return phases(find(trace), trace)


def seconds(phase: Phase) -> np.ndarray:
    """Time of each execution by sequence."""
    return phase.wall[np.lexsort((phase.execution, phase.sequence))].reshape(phase.sequences, -1)


def by_sequence(phase: Phase, values: np.ndarray) -> np.ndarray:
    return np.bincount(phase.sequence, values, phase.sequences)


def with_executions(found: Phases, number: int, kind: str = "serial") -> Phase:
    """The longest phase that each process executes so often."""
    some = [each for each in found.phases if each.executions == number and each.kind == kind]
    return max(some, key=lambda phase: phase.wall.sum())


@pytest.fixture(scope="module")
def uneven() -> Run:
    return run(
        programs.jacobi((8,), steps=50, how="blocking", per_cell=1e-6),
        persistent=0.1,
        transient=0.05,
        seed=3,
    )


def test_a_phase_is_the_burst_that_the_program_has_there(uneven: Run, tmp_path: Path) -> None:
    sweep = with_executions(of_run(uneven, tmp_path), 50)
    assert seconds(sweep) == pytest.approx(np.array(uneven.bursts["sweep"]), abs=2e-9)
    assert sweep.part == "iterations"


def test_imbalance_is_that_of_the_run(uneven: Run, tmp_path: Path) -> None:
    sweep = with_executions(of_run(uneven, tmp_path), 50)
    assert sweep.imbalance.persistent == pytest.approx(0.1 * np.sqrt(8 / 7), rel=0.1)
    assert sweep.imbalance.transient == pytest.approx(0.05, rel=0.15)
    means = np.array(uneven.bursts["sweep"]).mean(axis=1)
    assert sweep.imbalance.by_rank == pytest.approx(means / means.mean(), rel=1e-6)


def test_regions_have_the_times_of_their_threads(tmp_path: Path) -> None:
    done = run(programs.jacobi((2, 2), steps=10, threads=3, uneven=0.2, serial=0.1), transient=0.02)
    found = of_run(done, tmp_path)
    (sweep,) = found.of("parallel")
    assert sweep.team is not None
    times = np.array(done.regions["sweep"])  # rank, execution, thread
    assert sweep.team.useful.reshape(times.shape) == pytest.approx(times, abs=2e-9)
    busiest, mean = times.max(axis=2), times.mean(axis=2)
    assert sweep.team.imbalance == pytest.approx(busiest.sum() / mean.sum() - 1, rel=1e-6)
    assert sweep.team.worst == int(times.sum(axis=(0, 1)).argmax())
    assert sweep.overhead == pytest.approx(2e-6, abs=0.2e-6)  # a fork and a join
    serial = next(p for p in found.of("serial") if p.place == sweep.place)
    assert seconds(serial) == pytest.approx(np.array(done.bursts["serial"]), abs=2e-9)


def test_every_second_of_a_run_is_in_one_phase(uneven: Run, tmp_path: Path) -> None:
    found = of_run(uneven, tmp_path)
    computed = sum(np.sum(rank) for each in uneven.bursts.values() for rank in each)
    assert found.seconds == pytest.approx(float(computed) + 8 * 1e-4, abs=1e-6)


TRACES = ["bt-mz.S.2x2", "cg.S.2", "comd.4", "ft.S.4", "is.S.4", "mixnbc.4", "mixrma.4"]


@pytest.mark.parametrize("name", TRACES)
def test_useful_time_and_counters_of_phases_are_those_of_the_run(name: str) -> None:
    trace = read(DATA / f"{name}.prv.gz")
    found = of_trace(trace)
    measured = analyse(trace, part=TracePart(from_start=True)).observables
    useful = sum(phase.useful.sum() for phase in found.phases)
    assert useful == pytest.approx(measured.useful.sum(), rel=1e-9)


@pytest.mark.parametrize("part", [TracePart(), TracePart(begin=830_000_000, end=850_000_000)])
def test_phases_of_a_window_add_up_to_the_window(part: TracePart) -> None:
    trace = read(DATA / "ft.S.4.prv.gz")
    found = of_trace(trace, part)
    measured = analyse(trace, part=part).observables
    by_process = sum(by_sequence(phase, phase.useful) for phase in found.phases)
    assert by_process == pytest.approx(measured.useful, abs=1e-8)


def computed(trace: Trace, begin: int, end: int) -> list[float]:
    """What each process computes between two times, call by call, s."""
    calls, disabled = trace.calls(), trace.records.in_state(TRACING_DISABLED)
    seconds = []
    for process, until in enumerate(trace.ends().tolist()):
        master, last = int(trace.process_offsets[process]), min(end, max(until, begin))
        held = [
            (entry, exit_)
            for spans in (
                (calls.offsets, calls.entry, calls.exit),
                (disabled.offsets, disabled.begin, disabled.end),
            )
            for row in range(*spans[0][master : master + 2])
            for entry, exit_ in [(int(spans[1][row]), int(spans[2][row]))]
        ]
        total, reached = last - begin, begin
        for entry, exit_ in sorted(held):
            entry, exit_ = max(entry, reached), min(exit_, last)
            total -= max(exit_ - entry, 0)
            reached = max(reached, exit_)
        seconds.append(total / 1e9)
    return seconds


@settings(max_examples=25)
@given(name=st.sampled_from(["ft.S.4", "is.S.4", "mix.4", "mg.S.4"]), edges=st.data())
def test_what_a_window_holds_of_calls_is_no_computing(
    real_trace: Callable[[str], Path], name: str, edges: st.DataObject
) -> None:
    """Calls of which nothing is modelled lie inside bursts, wherever a window cuts these."""
    trace = read(real_trace(name))
    times = st.integers(0, trace.end)
    begin, end = sorted(edges.draw(st.lists(times, min_size=2, max_size=2, unique=True)))
    assume(state_times(trace.window(begin, end))[0].any())
    found = phases(find(trace), trace, trace.window(begin, end))
    walls = sum((by_sequence(phase, phase.wall) for phase in found.phases), np.zeros(4))
    assert walls.tolist() == pytest.approx(computed(trace, begin, end), abs=1e-12)


def test_executions_that_a_window_cuts_are_marked(uneven: Run, tmp_path: Path) -> None:
    trace = uneven.read(tmp_path)
    begins = np.array(uneven.iterations)
    window = trace.window(int(begins[0, 10]) + 1000, int(begins[0, 20]))
    found = phases(find(trace), trace, window)
    sweep = max(found.phases, key=lambda phase: phase.wall.sum())
    assert 9 <= sweep.executions <= 11
    assert 1 <= sweep.cut.sum() <= 16
    assert sweep.quantiles((0.0,))[0] == pytest.approx(sweep.wall[~sweep.cut].min())


@pytest.mark.parametrize("cause", ["instructions", "ipc", "frequency"])
def test_counters_of_a_burst_are_those_that_the_run_counts(cause: str, tmp_path: Path) -> None:
    counters = Counters(frequency=2e9, ipc=1.5, cause=cause)
    done = run(programs.jacobi((4,), steps=12), counters=counters, persistent=0.2, seed=2)
    sweep = with_executions(of_run(done, tmp_path), 12)
    assert sweep.instructions is not None
    assert sweep.cycles is not None
    instructions, cycles = (by_sequence(sweep, each) for each in (sweep.instructions, sweep.cycles))
    useful = by_sequence(sweep, sweep.useful)
    assert cycles.sum() / useful.sum() == pytest.approx(2e9, rel=0.05)
    spreads = {
        "instructions": np.ptp(instructions) / instructions.mean(),
        "ipc": np.ptp(instructions / cycles) / (instructions.sum() / cycles.sum()),
        "frequency": np.ptp(cycles / useful) / 2e9,
    }
    assert max(spreads, key=spreads.__getitem__) == cause
    assert sorted(spreads.values())[1] < 2e-3


@pytest.mark.parametrize("name", ["bt-mz.S.2x2", "lu.S.4", "mix.4"])
def test_small_phases_of_many_are_summed_up(name: str) -> None:
    trace = read(DATA / f"{name}.prv.gz")
    structure = find(trace)
    found, most = phases(structure, trace), len(phases(structure, trace)) - 1
    assert phases(structure, trace, most=most + 1).notes == found.notes
    bounded = phases(structure, trace, most=most)
    summed = [phase for phase in bounded.phases if phase.place == SEVERAL]
    small = [phase for phase in found.phases if phase.small]
    assert {phase.kind for phase in summed} == {phase.kind for phase in small}
    assert [(p.kind, p.place, p.wall.tolist()) for p in bounded.phases if p not in summed] == [
        (p.kind, p.place, p.wall.tolist()) for p in found.phases if not p.small
    ]
    for phase in summed:
        alike = [each for each in small if each.kind == phase.kind]
        assert phase.name.startswith(f"{len(alike)} smaller ")
        assert phase.small
        assert sorted(phase.wall) == sorted(np.concatenate([each.wall for each in alike]))
        for column in ("wall", "useful"):
            own = by_sequence(phase, getattr(phase, column))
            sums = sum(by_sequence(each, getattr(each, column)) for each in alike)
            assert own == pytest.approx(sums, rel=1e-12)
        assert phase.imbalance.persistent is None
    assert (
        f"of {len(found)} phases {len(small)} are below 0.1 % of all computing" in bounded.notes[-1]
    )


def test_an_untimed_trace_has_the_computing_that_it_states() -> None:
    trace = read(DATA / "smpi" / "jac2048.4.ti.txt.gz", flop_rate=1e9)
    found = phases(find(trace), trace)
    assert found.seconds == pytest.approx(find(trace).program.compute().sum() / 1e9, rel=1e-6)
