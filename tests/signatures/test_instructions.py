"""Instructions of runs, and times as instructions times seconds per instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from model.demo import machine
from synthetic import Counters, Program, Rank, programs, run
from synthetic.program import Steps

from popmodel.efficiency.measure import analyse
from popmodel.model.predictor import Study
from popmodel.model.signatures import from_text
from popmodel.signatures import signature_from
from popmodel.signatures.from_runs import LearntSignature
from popmodel.traces import Trace
from popmodel.traces.selection import focused


def traced(folder: Path, counters: Counters | None = None, **options: Any) -> Trace:
    program = programs.jacobi((4,), 12, **options)
    return run(program, counters=counters, persistent=0.2, transient=0.1, seed=2).read(folder)


@pytest.mark.parametrize(("cause", "threads"), [("instructions", 1), ("ipc", 2)])
def test_a_signature_has_as_many_instructions_as_its_trace(
    cause: str, threads: int, tmp_path: Path
) -> None:
    trace = traced(tmp_path, Counters(cause=cause), threads=threads)
    counted = analyse(trace).observables.aggregates()["instructions_sum"]
    found = signature_from([focused(trace)[0]])
    for processes in (4, 8):  # instructions grow as times do: the whole work stays
        done = modelled(found, processes, threads)[0]
        assert done == pytest.approx(counted, rel=0.002)


def test_without_counters_nothing_is_said_of_instructions(tmp_path: Path) -> None:
    found = signature_from([focused(traced(tmp_path))[0]])
    assert "instructions" not in found.text
    assert {phase["instructions"] for phase in found.to_dict()["traces"]["phases"]} == {None}


WORK, AGAIN, STEPS = 0.2, 0.002, 6


def solver(
    processes: int, threads: int = 1, pace: Callable[[int], float] = lambda _: 1.0
) -> Program:
    """Work that is divided, work that every process does again, and a pace that goes with P."""

    def body(me: Rank) -> Steps:
        divided = WORK / processes / threads
        for _ in range(STEPS):
            yield me.iteration()
            # as many instructions in another time: fewer of them in a cycle
            slow = pace(processes)
            if threads > 1:
                yield me.region("sweep", divided)
            else:
                yield me.compute(divided * slow, "sweep", ipc=1.5 / slow)
            yield me.compute(AGAIN, "again")
            yield me.collective("Allreduce", 8)
        yield me.iteration()

    return Program(processes, body, threads)


def traces(folder: Path, programs: Sequence[Program], transient: float = 0.0) -> list[Trace]:
    return [
        run(one, counters=Counters(), transient=transient, seed=number).read(
            folder, f"{number}.prv"
        )
        for number, one in enumerate(programs)
    ]


def modelled(found: LearntSignature, processes: int, threads: int = 1) -> tuple[float, float]:
    """Instructions of all processes, and useful time of an average one, s."""
    study = Study(from_text(found.text), machine(), {}, 0, 0)
    done = study.run(study.admit(processes, threads), study.sources())
    useful = done.modelled.aggregates["useful_mean"]
    return processes * float(done.work.instructions), float(useful)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [1, 2])
def test_instructions_of_all_runs_are_those_of_their_traces(threads: int, tmp_path: Path) -> None:
    made = traces(tmp_path, [solver(p, threads) for p in (2, 4, 8)])
    found = signature_from(made)
    for trace, processes in zip(made, (2, 4, 8), strict=True):
        counted = analyse(trace).observables.aggregates()["instructions_sum"]
        assert modelled(found, processes, threads)[0] == pytest.approx(counted, rel=0.005)


def test_what_every_process_does_again_is_seen_through_noise(tmp_path: Path) -> None:
    found = signature_from(traces(tmp_path, [solver(p) for p in (2, 4, 8)], transient=0.05))
    instructions, useful = modelled(found, 64)
    assert useful == pytest.approx(STEPS * (WORK / 64 + AGAIN), rel=0.04)
    # 3e9 instructions in a second, from what is not disturbed
    assert instructions == pytest.approx(64 * 3e9 * STEPS * (WORK / 64 + AGAIN), rel=0.02)


def test_a_pace_that_goes_with_processes_has_a_law(tmp_path: Path) -> None:
    def pace(processes: int) -> float:
        return 1 + 0.1 * processes / 8

    found = signature_from(traces(tmp_path, [solver(p, pace=pace) for p in (2, 4, 8, 16)]))
    before_init = 1e-4
    truth = before_init + STEPS * (WORK / 32 * pace(32) + AGAIN)
    assert modelled(found, 32)[1] == pytest.approx(truth, rel=0.03)


def test_two_runs_are_told_apart_by_their_instructions(tmp_path: Path) -> None:
    found = signature_from(traces(tmp_path, [solver(p) for p in (2, 4)], transient=0.05))
    assert modelled(found, 32)[1] == pytest.approx(STEPS * (WORK / 32 + AGAIN), rel=0.06)


def test_runs_without_counters_among_others_say_nothing_of_instructions(tmp_path: Path) -> None:
    counted = traces(tmp_path, [solver(8)])
    plain = run(solver(4), seed=1).read(tmp_path, "plain.prv")
    found = signature_from([*counted, plain])
    assert "work_instructions" not in found.text
    truth = analyse(counted[0]).observables.aggregates()["instructions_sum"]
    assert modelled(found, 8)[0] == pytest.approx(truth, rel=0.01)
