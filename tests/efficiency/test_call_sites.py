"""Where MPI is called: by the callers that a trace tells of its calls."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from popmodel.base.values import plain
from popmodel.efficiency.evidence import CallSite
from popmodel.efficiency.measure import MeasuredRun, analyse
from popmodel.traces import Trace, read
from popmodel.traces.codes import Event
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.numbers import NUMBERS
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.run_parts import splice

COLLECTIVE, ALLREDUCE, BARRIER = 50000002, 10, 8
COUNTER = 42000050
LABELS = Labels(
    event_types={
        COLLECTIVE: "MPI Collective Comm",
        NUMBERS[Event.CALLER]: "Caller at level 1",
        NUMBERS[Event.CALLER_LINE]: "Caller line at level 1",
    },
    event_values={
        COLLECTIVE: {0: "Outside MPI", ALLREDUCE: "MPI_Allreduce", BARRIER: "MPI_Barrier"},
        NUMBERS[Event.CALLER]: {
            0: "End",
            1: "Unresolved",
            3: "__mesh_r..nge_all [__mesh_routines_MOD_exchange_all]",
            4: "main",
        },
        NUMBERS[Event.CALLER_LINE]: {
            0: "End",
            1: "0 (Unresolved)",
            3: "42 (mesh.F90, app)",
            4: "7 (a_long..me.c, app) [7 (a_long_file_name.c, app)]",
            5: "0 (app+0x12ac, app)",
        },
    },
)


def call(
    writer: TraceWriter, process: int, begin: int, end: int, value: int, *beside: tuple[int, int]
) -> None:
    """A collective call that begins with other events beside it."""
    writer.event(process, 0, begin, [(COLLECTIVE, value), (50100004, 1), *beside])
    writer.event(process, 0, end, [(COLLECTIVE, 0)])


def trace_of(folder: Path, *calls: tuple, processes: int = 1) -> Trace:
    writer = TraceWriter([1] * processes, communicators={1: list(range(processes))}, labels=LABELS)
    for process in range(processes):
        writer.state(process, 0, 0, 1000, 1)
    for each in calls:
        call(writer, *each)
    writer.write(folder / "x.prv")
    return read(folder / "x.prv")


def named(run: MeasuredRun) -> list[tuple[str, str, str, int]]:
    return [(s.call, s.function, s.place, s.count) for s in run.call_sites]


def site(function: int, line: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (NUMBERS[Event.CALLER], function), (NUMBERS[Event.CALLER_LINE], line)


def test_call_sites_by_time(tmp_path: Path) -> None:
    """Callers stand somewhere beside the entry: Extrae writes counters between."""
    run = analyse(
        trace_of(
            tmp_path,
            (0, 100, 150, ALLREDUCE, (COUNTER, 99), *site(3, 3)),
            (0, 200, 250, ALLREDUCE, *site(3, 3), (COUNTER, 99)),
            (0, 300, 600, BARRIER, *site(4, 4)),
            (0, 700, 710, BARRIER, *site(1, 1)),
            (0, 800, 805, BARRIER, *site(4, 5)),
        )
    )
    assert named(run) == [
        ("MPI_Barrier", "main", "a_long_file_name.c:7", 1),
        ("MPI_Allreduce", "mesh_routines::exchange_all", "mesh.F90:42", 2),
        ("MPI_Barrier", "", "", 1),
        ("MPI_Barrier", "main", "app+0x12ac", 1),
    ]
    assert [s.time for s in run.call_sites] == pytest.approx([300e-9, 100e-9, 10e-9, 5e-9])
    assert [s.share for s in run.call_sites] == pytest.approx([0.3, 0.1, 0.01, 0.005])
    assert plain(run.call_sites[0]).keys() == {
        "call", "function", "place", "count", "time", "share", "waiting",
    }  # fmt: skip


def test_a_call_that_begins_where_another_ends_keeps_its_own_caller(tmp_path: Path) -> None:
    run = analyse(trace_of(tmp_path, (0, 100, 200, BARRIER), (0, 200, 250, BARRIER, *site(4, 4))))
    assert named(run) == [
        ("MPI_Barrier", "", "", 1),
        ("MPI_Barrier", "main", "a_long_file_name.c:7", 1),
    ]


def test_waiting_is_what_the_ideal_network_leaves(tmp_path: Path) -> None:
    """Rank 0 comes 300 ns before rank 1; then the barrier itself takes 50 ns."""
    run = analyse(
        trace_of(
            tmp_path,
            (0, 100, 450, BARRIER, *site(4, 4)),
            (1, 400, 450, BARRIER, *site(4, 4)),
            processes=2,
        )
    )
    (found,) = run.call_sites
    assert found.time == pytest.approx(400e-9)
    assert found.share == pytest.approx(0.2)
    assert found.waiting == pytest.approx(300e-9)


def test_a_call_that_a_window_cuts_keeps_its_caller(tmp_path: Path) -> None:
    whole = trace_of(tmp_path, (0, 100, 400, BARRIER, *site(4, 4)), (0, 500, 600, BARRIER))
    run = analyse(whole.window(200, 500))
    # The call at the edge, of which nothing is left, is none.
    assert named(run) == [("MPI_Barrier", "main", "a_long_file_name.c:7", 1)]
    assert run.call_sites[0].time == pytest.approx(200e-9)


def test_a_call_that_stretches_cut_keeps_its_caller_and_its_waiting(tmp_path: Path) -> None:
    """Rank 0 waits for rank 1 over both stretches; the barrier itself takes the last 50 ns."""
    whole = trace_of(
        tmp_path,
        (0, 100, 450, BARRIER, *site(4, 4)),
        (1, 400, 450, BARRIER, *site(4, 4)),
        processes=2,
    )
    run = analyse(splice(whole, np.array([50, 350]), np.array([150, 460])))
    (found,) = run.call_sites
    assert (found.call, found.function) == ("MPI_Barrier", "main")
    assert found.time == pytest.approx((50 + 100 + 50) * 1e-9)
    # Rank 1 computes 150 ns before it comes, rank 0 50 ns.
    assert found.waiting == pytest.approx(100e-9)


@pytest.mark.parametrize("beside", [(), ((COUNTER, 5),)])
def test_a_trace_without_callers_has_one_site_for_each_kind_of_call(
    tmp_path: Path, beside: Iterable[tuple[int, int]]
) -> None:
    calls = ((0, 100, 200, BARRIER, *beside), (0, 300, 350, BARRIER))
    run = analyse(trace_of(tmp_path, *calls))
    assert named(run) == [("MPI_Barrier", "", "", 2)]
    assert run.call_sites[0].name == "MPI_Barrier"


def test_call_sites_of_a_run_that_cannot_be_replayed(tmp_path: Path) -> None:
    """One rank lacks the barrier of the other."""
    run = analyse(trace_of(tmp_path, (0, 100, 200, BARRIER, *site(4, 4)), processes=2))
    assert "ideal_runtime" in run.observables.absent
    assert run.call_sites == (
        CallSite("MPI_Barrier", "main", "a_long_file_name.c:7", 1, 100e-9, 0.05, None),
    )
