"""What threads do in regions, and what runs with several numbers of threads tell of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from oracle.script import Script
from synthetic import Program, Rank, run
from synthetic.program import Steps

from popmodel.base.expressions import parse
from popmodel.model.signatures import from_text
from popmodel.signatures import LearntSignature, signature_from
from popmodel.signatures.compare_replay import against
from popmodel.signatures.outline import OutlineTeam
from popmodel.traces import read
from popmodel.traces.paraver.writer import TraceWriter

ALONE, PLAIN, SHARPNESS = 0.4, 0.1, 3.0


def slower(active: int, demand: float) -> float:
    """How much longer work takes when so many cores share a memory."""
    return (1 - demand**SHARPNESS + (active * demand) ** SHARPNESS) ** (1 / SHARPNESS)


def sweeps(
    processes: int,
    threads: int,
    demand: float = 0.0,
    serial: float = 0.0,
    uneven: float = 0.0,
) -> Program:
    """A loop whose memory saturates, one that only computes, and a sum over all processes."""

    def body(me: Rank) -> Steps:
        cores = processes * threads
        full = ALONE / cores * slower(cores, demand) + serial
        more = uneven * (1 - 1 / threads)
        each = [1 + more * (t == 0) - more / max(threads - 1, 1) * (t > 0) for t in range(threads)]
        for _ in range(6):
            yield me.iteration()
            yield me.region("sweep", [full] * threads)
            yield me.region("sums", [PLAIN / cores * one for one in each])
            yield me.collective("Allreduce", 8)
        yield me.iteration()

    return Program(processes, body, threads)


def extracted(folder: Path, programs: Sequence[Program], noise: float = 0.005) -> LearntSignature:
    return signature_from(
        [
            run(one, transient=noise, seed=number).read(folder, f"{number}.prv")
            for number, one in enumerate(programs)
        ]
    )


def names(
    found: LearntSignature, processes: int, threads: int, **others: float
) -> dict[str, float]:
    """Values of the constants, and of what ``let`` defines, at a split."""
    text = tomllib.loads(found.text)
    values: dict[str, float] = {k: float(v["value"]) for k, v in text["constants"].items()}
    values |= {"P": float(processes), "T": float(threads), **others}
    left: Mapping[str, Any] = text["let"]
    for name in sorted(left, key=lambda one: one != "active_cores"):
        values[name] = float(parse(str(left[name])).evaluate(values))
    return values


def test_a_region_in_which_threads_only_wait_for_the_slowest_is_learnt(tmp_path: Path) -> None:
    """Its costs cancel: what rounding leaves of them below 0 made the run impossible."""
    writer, ms = TraceWriter([3]), 1_000_000
    for begin in range(50 * ms, 1250 * ms, 100 * ms):
        end = begin + 40 * ms
        writer.state(0, 0, begin - 50 * ms, begin, 1)
        writer.event(0, 0, begin, [(60000001, 1)])
        writer.event(0, 0, end, [(60000001, 0)])
        writer.state(0, 0, end, begin + 50 * ms, 1)
        for thread in range(3):
            arrives = begin + (10 + 10 * thread) * ms
            writer.state(0, thread, begin, arrives, 1)
            writer.state(0, thread, arrives, end, 5)
            for time, value in ((begin, 1), (end, 0)):
                writer.event(0, thread, time, [(60000018, value)])
            for time, value in ((arrives, 1), (end, 0)):
                writer.event(0, thread, time, [(60000005, value)])
    writer.write(tmp_path / "team.prv")
    found = signature_from([read(tmp_path / "team.prv")])
    assert region(found, "function 1")["thread_imbalance"] == 0.5


def region(found: LearntSignature, name: str) -> Mapping[str, Any]:
    loop = next(one for one in tomllib.loads(found.text)["program"] if "loop" in one)
    return next(
        one["parallel"]
        for one in loop["body"]
        if "parallel" in one and one["parallel"]["name"] == name
    )


def value(found: LearntSignature, name: str, key: str, *split: int, **others: float) -> float:
    formula = str(region(found, name)[key])
    return float(parse(formula).evaluate(names(found, *split, **others)))


@pytest.mark.parametrize("demand", [0.15, 0.3])
def test_memory_that_saturates_is_found_with_its_demand(demand: float, tmp_path: Path) -> None:
    found = extracted(tmp_path, [sweeps(2, t, demand) for t in (1, 2, 4, 8)])
    one = tomllib.loads(found.text)["constants"]["share2_d"]
    assert one["origin"] == "fit"
    assert one["low"] <= demand <= one["high"]
    for cores in (2, 16, 64):
        truth = ALONE / cores * slower(cores, demand)
        got = value(found, "sweep", "seconds", 2, cores // 2, node_cores=64.0)
        assert got == pytest.approx(truth, rel=0.1)
        plain = value(found, "sums", "seconds", 2, cores // 2)
        assert plain == pytest.approx(PLAIN / cores, rel=0.05)
    times = [value(found, "sweep", "seconds", 16 // t, t) for t in (1, 4, 16)]
    assert times == pytest.approx([times[0]] * 3)


def test_a_serial_part_is_no_memory(tmp_path: Path) -> None:
    found = extracted(tmp_path, [sweeps(2, t, serial=0.02) for t in (1, 2, 4, 8)])
    assert "node_cores" not in tomllib.loads(found.text)["constants"]
    assert value(found, "sweep", "seconds", 2, 32) == pytest.approx(ALONE / 64 + 0.02, rel=0.1)


def test_two_numbers_of_cores_do_not_tell_a_memory(tmp_path: Path) -> None:
    found = extracted(tmp_path, [sweeps(2, t, 0.3) for t in (4, 8)])
    assert "node_cores" not in tomllib.loads(found.text)["constants"]


def test_the_imbalance_of_threads_goes_with_their_number(tmp_path: Path) -> None:
    runs = [sweeps(2, t, uneven=0.2) for t in (1, 2, 4, 8)]
    found = extracted(tmp_path, runs, noise=0.0)
    assert value(found, "sums", "thread_imbalance", 2, 1) == pytest.approx(0.0, abs=1e-9)
    assert value(found, "sums", "thread_imbalance", 2, 16) == pytest.approx(0.1875, rel=0.05)


def test_overheads_of_regions_are_a_law_of_threads(tmp_path: Path) -> None:
    found = extracted(tmp_path, [sweeps(2, t) for t in (1, 2, 4)])
    (law,) = (one for one in found.laws if one["of"] == "overheads of parallel regions")
    assert law["unit"] == "s"
    assert "overhead" in str(region(found, "sweep")["overhead"])


def test_runs_of_the_same_threads_keep_what_was_measured(tmp_path: Path) -> None:
    found = extracted(tmp_path, [sweeps(p, 2) for p in (2, 4)])
    assert isinstance(region(found, "sweep")["overhead"], float)


def test_the_signature_replays_each_of_its_runs(tmp_path: Path) -> None:
    runs = [sweeps(2, t, 0.3) for t in (1, 2, 4, 8)]
    signature = from_text(extracted(tmp_path, runs).text)
    for number, one in enumerate(runs):
        trace = run(one, transient=0.005, seed=number).read(tmp_path, f"again{number}.prv")
        assert against(signature, trace)["worst"] < 0.03


def test_one_run_is_not_sure_that_threads_divide_work(tmp_path: Path) -> None:
    text = tomllib.loads(extracted(tmp_path, [sweeps(2, 2)]).text)
    one = text["constants"]["divides"]
    assert (one["value"], one["low"], one["high"], one["origin"]) == (1, 0.85, 1.15, "assumed")
    assert text["let"]["share"] == "(2/T)**divides*(2/P)**grows"


def test_one_run_without_regions_has_no_exponent_of_threads(tmp_path: Path) -> None:
    def body(me: Rank) -> Steps:
        yield me.compute(0.1, "work")
        yield me.collective("Barrier")

    text = tomllib.loads(extracted(tmp_path, [Program(2, body)]).text)
    assert "divides" not in text["constants"]


PARALLEL, FUNCTION, BARRIER = 60000001, 60000018, 60000005
WAITED = 60000312  # of locks, a sum
STEPS = 12


class Regions(Script):
    """Steps of two processes of two threads: a region of 60 us, and an allreduce."""

    def enter(self, process: int, useful: int) -> int:
        """Open a region, whose second thread computes ``useful``; return when it begins, ns."""
        begin = self.clock[process]
        self.writer.event(process, 0, begin, [(PARALLEL, 3), (FUNCTION, 1)])
        self.writer.event(process, 1, begin, [(FUNCTION, 1)])
        self.writer.state(process, 1, begin, begin + useful, 1)
        return begin

    def leave(self, process: int) -> None:
        """Close it on both threads."""
        for thread in range(2):
            self.writer.event(process, thread, self.clock[process], [(FUNCTION, 0)])
        self.writer.event(process, 0, self.clock[process], [(PARALLEL, 0)])

    def extracted(self, folder: Path) -> tuple[LearntSignature, dict[str, Any], OutlineTeam]:
        """The signature, how it compares with its trace, and what its region says."""
        self.end()
        trace = self.read(folder)
        found = signature_from([trace])
        (team,) = (point.team for point in found.outline.points if point.team is not None)
        return found, against(from_text(found.text), trace), team


@pytest.fixture
def script() -> Regions:
    return Regions(2, threads=2)


def in_barriers(script: Regions, waited: int = 0) -> None:
    """The master computes 30 us, the other 20; both are in a barrier until 50, and join at 60."""
    for _ in range(STEPS):
        for process in range(2):
            begin = script.enter(process, 20_000)
            script.compute(process, 30_000)
            for thread, end in ((0, 30_000), (1, 20_000)):
                if waited and not thread:
                    script.writer.event(process, 0, begin + end, [(WAITED, waited)])
                script.writer.event(process, thread, begin + end, [(BARRIER, 1)])
                script.writer.state(process, thread, begin + end, begin + 50_000, 5)
                script.writer.event(process, thread, begin + 50_000, [(BARRIER, 0)])
            script.clock[process] = begin + 60_000
            script.leave(process)
            script.compute(process, 5_000)
        for process in range(2):
            script.collective(process, "Allreduce", sent=8, received=8)


def test_barriers_are_told_from_fork_and_join(script: Regions, tmp_path: Path) -> None:
    in_barriers(script)
    found, _, team = script.extracted(tmp_path)
    assert team.useful == pytest.approx(25e-6)
    assert team.imbalance == pytest.approx(30 / 25 - 1)
    assert team.overhead == pytest.approx(30e-6)
    # of 30 and 40 us that they idle, 20 and 30
    assert team.synchronisation == pytest.approx(50 / 70)
    assert "synchronisation = 0.7143" in found.text


def test_sums_of_waits_for_locks_are_synchronisation(script: Regions, tmp_path: Path) -> None:
    in_barriers(script, waited=6_000)
    *_, team = script.extracted(tmp_path)
    assert team.useful == pytest.approx(22e-6)
    assert team.synchronisation == pytest.approx(56 / 76)


def test_every_efficiency_is_that_of_the_trace(script: Regions, tmp_path: Path) -> None:
    in_barriers(script)
    _, compared, _ = script.extracted(tmp_path)
    assert compared["worst"] < 0.003
    assert compared["notes"] == []


def test_where_none_waits_nothing_is_said(script: Regions, tmp_path: Path) -> None:
    for _ in range(STEPS):
        for process in range(2):
            script.enter(process, 20_000)
            script.compute(process, 20_000)
            script.leave(process)
        for process in range(2):
            script.collective(process, "Barrier")
    found, _, team = script.extracted(tmp_path)
    assert team == OutlineTeam(pytest.approx(20e-6), 0.0, pytest.approx(0.0), 0.0)
    assert "synchronisation" not in found.text


def test_calls_in_a_region_are_no_part_of_it(script: Regions, tmp_path: Path) -> None:
    for _ in range(STEPS):
        for process in range(2):
            script.enter(process, 25_000)
            script.compute(process, 20_000)
        for process in range(2):
            script.collective(process, "Barrier", length=30_000)
        for process in range(2):
            script.compute(process, 5_000)
            script.leave(process)
            script.compute(process, 1_000)
    found, compared, team = script.extracted(tmp_path)
    assert (team.useful, team.overhead) == (pytest.approx(25e-6), pytest.approx(0.0, abs=1e-12))
    assert compared["runtime"]["signature"] == pytest.approx(compared["runtime"]["trace"], rel=0.01)
    (note,) = (note for note in found.notes if "inside parallel regions" in note)
    assert note == (
        "MPI is called inside parallel regions: the calls are written behind them, and time in "
        "which other threads wait for a call is left out"
    )
    assert compared["notes"] == [
        "MPI is called inside parallel regions, whose time on another network is not known",
    ]


@pytest.mark.parametrize("threads", [2, 300])
def test_a_team_may_be_larger_than_the_nodes_of_a_machine_that_nobody_named(
    threads: int, tmp_path: Path
) -> None:
    script = Regions(2, threads=threads)
    for _ in range(STEPS):
        for process in range(2):
            begin = script.enter(process, 20_000)
            for thread in range(2, threads):
                script.writer.event(process, thread, begin, [(FUNCTION, 1)])
                script.writer.state(process, thread, begin, begin + 20_000, 1)
            script.compute(process, 30_000)
            for thread in range(2, threads):
                script.writer.event(process, thread, begin + 30_000, [(FUNCTION, 0)])
            script.leave(process)
        for process in range(2):
            script.collective(process, "Allreduce", sent=8, received=8)
    found, agreement, _ = script.extracted(tmp_path)
    assert found.runs[0].trace.threads.tolist() == [threads] * 2
    assert agreement["worst"] < 0.01
