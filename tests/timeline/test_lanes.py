"""What lanes show, against a painter that reads the records one by one, and closed forms."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from synthetic import Network, Program, Rank, run
from synthetic.program import Steps

from popmodel.timeline.lanes import KINDS
from popmodel.timeline.timeline import LIMITS, Timeline, timeline
from popmodel.traces import Trace, read
from popmodel.traces.selection import TracePart, focused

DATA = Path(__file__).parent.parent / "data"
NUMBER = {kind.id: number for number, kind in enumerate(KINDS)}
COARSE = dataclasses.replace(LIMITS, columns=64)


def painted(trace: Trace, shown: Timeline, location: int, column: int) -> Counter[str]:
    """Time of a step by what a thread does there, from the records one by one."""
    begin = trace.begin + column * shown.axis.step
    end = begin + shown.axis.step
    held: Counter[str] = Counter()

    def inside(first: int, last: int) -> int:
        return max(min(last, end) - max(first, begin), 0)

    states = trace.to_dataframe("states")
    calls = trace.to_dataframe("calls")
    process = int(np.searchsorted(trace.process_offsets, location, side="right")) - 1
    thread = location - int(trace.process_offsets[process])

    def mine(table):  # type: ignore[no-untyped-def]
        return table[(table.process == process) & (table.thread == thread)]

    last = 0
    for row in mine(states).itertuples():
        held["computing"] += inside(row.begin, row.end) * (row.state == 1)
        held["none"] += inside(row.begin, row.end) * (row.state in (2, 14))
        last = max(last, row.end)
    held["none"] += inside(last, max(end, last))
    for row in mine(calls).itertuples():
        wait = row.name.startswith(("MPI_Wait", "MPI_Test", "MPI_Probe", "MPI_Iprobe"))
        group = trace.calls().group[trace.calls().names.index(row.name)].value
        kind = {"MPI point to point": "point-to-point", "MPI collective": "collective"}
        held["wait" if wait else kind.get(group, "other-mpi")] += inside(row.entry, row.exit)
    held["idle"] = shown.axis.step - sum(held.values())
    return held


@pytest.mark.parametrize("name", ["mix.4", "comd.4", "is.S.4"])
def test_a_step_shows_what_takes_most_of_it(name: str) -> None:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    shown = timeline(trace, limits=COARSE)
    for location in (0, trace.locations - 1):
        for column in range(0, shown.axis.columns, 7):
            held = painted(trace, shown, location, column)
            kind = KINDS[shown.measured.kind[location, column]].id
            assert held[kind] == max(held.values()), (location, column, held)


@pytest.fixture
def late(tmp_path: Path) -> Trace:
    """Rank 0 computes 8 ms, rank 1 2 ms before a barrier; then a region of 4 ms; ten times."""

    def body(me: Rank) -> Steps:
        for _ in range(10):
            yield me.compute(2e-3 if me.rank else 8e-3, even=True)
            yield me.collective("Barrier")
            yield me.region("solve", [4e-3, 1e-3], even=True)

    return run(Program(2, body, threads=2), startup=0.0).read(tmp_path)


def share(lanes: np.ndarray, row: int, kind: str) -> float:
    return float((lanes[row] == NUMBER[kind]).mean())


def test_the_replay_waits_for_the_last_as_the_run_did(late: Trace) -> None:
    shown = timeline(focused(late)[0])
    assert shown.ideal is not None and shown.ideal_end is not None
    for lanes, length in ((shown.measured, late.duration), (shown.ideal, shown.ideal_end)):
        held = lanes.spent / length
        assert held[2, NUMBER["computing"]] == pytest.approx(2 / 12, rel=0.02)
        assert held[2, NUMBER["collective"]] == pytest.approx(6 / 12, rel=0.02)
        assert held[2, NUMBER["parallel"]] == pytest.approx(4 / 12, rel=0.02)
        assert held[3, NUMBER["parallel"]] == pytest.approx(1 / 12, rel=0.02)
        assert held[3, NUMBER["openmp"]] == pytest.approx(3 / 12, rel=0.02)
        # Nothing is recorded of the worker before the first region: there it is not idle.
        assert held[3, NUMBER["idle"]] == pytest.approx(7.2 / 12, rel=0.02)
    assert shown.ideal_end / 1e9 == pytest.approx(0.12, rel=0.01)


def test_transfer_is_in_the_measured_lanes_only(tmp_path: Path) -> None:
    def body(me: Rank) -> Steps:
        for _ in range(5):
            yield me.compute(1e-3, even=True)
            if me.rank:
                yield me.recv(0)
            else:
                yield me.send(1, 1000)

    slow = Network(latency=1e-3, bandwidth=1e9)
    trace = run(Program(2, body), network=slow, startup=0.0).read(tmp_path)
    shown = timeline(focused(trace)[0])
    assert shown.ideal is not None
    assert share(shown.measured.kind, 1, "point-to-point") > 0.1
    assert share(shown.ideal.kind, 1, "point-to-point") == 0
    assert shown.ideal_end == pytest.approx(5e6, rel=0.01)
    assert share(shown.ideal.kind, 1, "none") > 0.1  # the replay is over before the run


def test_all_time_of_the_lanes_is_something(real_trace: Callable[[str], Path]) -> None:
    for name in ("bt-mz.S.2x2", "mixnbc.4", "imagemagick_omp2"):
        trace, _ = focused(read(real_trace(name)))
        shown = timeline(trace, limits=dataclasses.replace(LIMITS, rows=2))
        length = shown.axis.columns * shown.axis.step
        # Some records of a thread overlap, and count twice.
        held = shown.measured.spent.sum(axis=1) / (length * shown.rows.threads)
        assert ((held >= 1) & (held < 1.002)).all()


def test_a_window_is_a_part_of_the_whole(late: Trace) -> None:
    part, _ = focused(late, TracePart(begin=12_000_000, end=36_000_000))
    shown = timeline(part)
    assert (shown.begin, shown.end) == (12_000_000, 36_000_000)
    assert shown.ideal_end == pytest.approx(24e6, rel=0.02)
    assert shown.measured.spent[0, NUMBER["collective"]] < 1e6


def test_runs_without_mpi_have_no_replay(real_trace: Callable[[str], Path]) -> None:
    shown = timeline(focused(read(real_trace("imagemagick_omp2")))[0])
    assert (shown.ideal, shown.why_no_ideal) == (None, "no MPI calls")
