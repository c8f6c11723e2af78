"""How the time of parallel regions divides, in traces written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from oracle.script import Script

from popmodel.model.signatures import from_text
from popmodel.signature import LearntSignature, signature_from
from popmodel.signature.compare_replay import ProgramAgreement, against
from popmodel.signature.outline import OutlineTeam

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

    def extracted(self, folder: Path) -> tuple[LearntSignature, ProgramAgreement, OutlineTeam]:
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
    assert compared.worst < 0.003
    assert compared.notes == ()


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
    assert compared.runtime.signature == pytest.approx(compared.runtime.trace, rel=0.01)
    (note,) = (note for note in found.notes if "inside parallel regions" in note)
    assert note == (
        "MPI is called inside parallel regions: the calls are written behind them, and time in "
        "which other threads wait for a call is left out"
    )
    assert compared.notes == (
        "MPI is called inside parallel regions, whose time on another network is not known",
    )


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
    assert agreement.worst < 0.01
