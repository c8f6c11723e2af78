"""What records of an archive mean, on small archives that OTF2's own package writes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("_otf2", reason="archives need the extra popmodel-hpc[otf2]")

from otf2.enums import (
    CollectiveOp,
    LocationGroupType,
    LocationType,
    MeasurementMode,
    MetricMode,
    MetricScope,
    Paradigm,
    RegionRole,
)
from otf2_archives import ArchiveMaker

import popmodel
from popmodel.traces import Trace
from popmodel.traces.codes import INPUT_OUTPUT, RUNNING, TRACING_DISABLED, Event
from popmodel.traces.device_rows import COPY, KERNEL
from popmodel.traces.intervals import Intervals
from popmodel.traces.otf2 import archive_reader
from popmodel.traces.otf2.archive_writer import write_archive
from popmodel.traces.regions import user_regions


def intervals(found: Intervals, location: int) -> list[tuple[int, int]]:
    rows = slice(*found.offsets[location : location + 2].tolist())
    return list(zip(found.begin[rows].tolist(), found.end[rows].tolist(), strict=True))


def in_state(trace: Trace, state: int, location: int = 0) -> list[tuple[int, int]]:
    return intervals(trace.records.in_state(state), location)


def messages(trace: Trace) -> list[tuple[int, ...]]:
    table = trace.messages
    return list(
        zip(
            *(
                getattr(table, name).tolist()
                for name in (
                    *("sender", "receiver", "size", "tag", "logical_send", "physical_send"),
                    *("logical_receive", "physical_receive"),
                )
            ),
            strict=True,
        )
    )


def test_messages_end_where_their_calls_are_left(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1, 1])
    world = made.world
    made.call(0, "MPI_Isend", 10, 12, ("mpi_isend", 11, 1, world, 5, 800, 77))
    made.call(0, "MPI_Send", 20, 30, ("mpi_send", 21, 1, world, 5, 900))
    made.call(0, "MPI_Wait", 40, 41, ("mpi_isend_complete", 40, 77))
    # The second receive is posted before the first and completed after it.
    made.call(1, "MPI_Irecv", 0, 2, ("mpi_irecv_request", 1, 8))
    made.call(1, "MPI_Recv", 5, 35, ("mpi_recv", 33, 0, world, 5, 900))
    made.call(1, "MPI_Waitall", 50, 60, ("mpi_irecv", 55, 0, world, 5, 800, 8))
    assert messages(made.read()) == [
        (0, 1, 800, 5, 10, 12, 2, 60),
        (0, 1, 900, 5, 20, 30, 5, 35),
    ]


def test_a_message_without_its_other_end_is_dropped_and_counted(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1, 1])
    made.call(0, "MPI_Send", 10, 12, ("mpi_send", 11, 1, made.world, 5, 800))
    made.call(1, "MPI_Barrier", 10, 12)
    trace = made.read()
    assert messages(trace) == []
    assert [(each.text, each.count) for each in trace.warnings] == [
        ("messages of which only one end is recorded (dropped)", 1)
    ]


def test_persistent_and_combined_calls_are_named_by_their_entry(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1, 1])
    world = made.world
    made.call(0, "MPI_Init", 0, 5)
    for me, other in ((0, 1), (1, 0)):
        made.call(
            *(me, "MPI_Startall", 10, 12),
            ("mpi_irecv_request", 10, 3),
            ("mpi_isend", 11, other, world, 1, 64, 4),
        )
        made.call(me, "MPI_Waitall", 20, 30, ("mpi_irecv", 29, other, world, 1, 64, 3))
        made.call(
            *(me, "MPI_Sendrecv", 40, 50),
            ("mpi_send", 40, other, world, 2, 8),
            ("mpi_recv", 50, other, world, 2, 8),
        )
    assert messages(made.read()) == [
        (0, 1, 64, 1, 10, 10, 10, 30),
        (0, 1, 8, 2, 40, 40, 40, 50),
        (1, 0, 64, 1, 10, 10, 10, 30),
        (1, 0, 8, 2, 40, 40, 40, 50),
    ]


def test_ranks_are_those_of_the_communicator(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1, 1, 1])
    odd = made.comm([2, 0])
    own = made.comm([], self_=True)
    made.call(0, "MPI_Send", 0, 1, ("mpi_send", 0, 0, odd, 9, 24))
    made.call(1, "MPI_Barrier", 0, 1)
    made.call(2, "MPI_Recv", 0, 2, ("mpi_recv", 1, 1, odd, 9, 24))
    for rank in range(3):
        made.call(
            *(rank, "MPI_Barrier", 5, 6),
            ("mpi_collective_begin", 5),
            ("mpi_collective_end", 6, CollectiveOp.BARRIER, own, 0xFFFFFFFF, 0, 0),
        )
    trace = made.read()
    assert messages(trace) == [(0, 2, 24, 9, 0, 1, 0, 2)]
    listed = {number: ranks.tolist() for number, ranks in trace.communicators.items()}
    assert sorted(listed.values()) == [[0], [0, 1, 2], [1], [2], [2, 0]]
    of = [listed.get(number, []) for number in trace.calls().collectives.communicator.tolist()]
    assert [each for each in of if len(each) == 1] == [[0], [1], [2]]


COUNT = 120
REACHED = [  # by operation, what Score-P records of rank 2 of 4 (root 2) and what is put in and got
    (CollectiveOp.BARRIER, "MPI_Barrier", (0, 0), (0, 0)),
    (CollectiveOp.BCAST, "MPI_Bcast", (4 * COUNT, COUNT), (COUNT, 0)),
    (CollectiveOp.REDUCE, "MPI_Reduce", (COUNT, 4 * COUNT), (0, COUNT)),
    (CollectiveOp.REDUCE, "MPI_Reduce", (0, 3 * COUNT), (0, COUNT)),  # in place
    (CollectiveOp.GATHER, "MPI_Gather", (COUNT, 4 * COUNT), (COUNT, 4 * COUNT)),
    (CollectiveOp.SCATTER, "MPI_Scatter", (4 * COUNT, COUNT), (4 * COUNT, COUNT)),
    (CollectiveOp.ALLREDUCE, "MPI_Allreduce", (4 * COUNT, 4 * COUNT), (COUNT, COUNT)),
    (CollectiveOp.ALLGATHER, "MPI_Allgather", (4 * COUNT, 4 * COUNT), (COUNT, 4 * COUNT)),
    (CollectiveOp.ALLGATHERV, "MPI_Allgatherv", (4 * COUNT, 300), (COUNT, 300)),
    (CollectiveOp.ALLTOALL, "MPI_Alltoall", (4 * COUNT, 4 * COUNT), (4 * COUNT, 4 * COUNT)),
    (CollectiveOp.ALLTOALLV, "MPI_Alltoallv", (7, 9), (7, 9)),
    (CollectiveOp.REDUCE_SCATTER, "MPI_Reduce_scatter", (400, 4 * COUNT), (400, COUNT)),
    (
        CollectiveOp.REDUCE_SCATTER_BLOCK,
        "MPI_Reduce_scatter_block",
        (4 * COUNT, 4 * COUNT),
        (4 * COUNT, COUNT),
    ),
    (CollectiveOp.SCAN, "MPI_Scan", (2 * COUNT, 3 * COUNT), (COUNT, COUNT)),
    (CollectiveOp.EXSCAN, "MPI_Exscan", (COUNT, 2 * COUNT), (COUNT, COUNT)),
]


def test_bytes_of_collectives_count_each_contribution_once(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1] * 4)
    for turn, (operation, name, (sent, received), _) in enumerate(REACHED):
        for rank in range(4):
            at = 100 * turn
            made.call(
                *(rank, name, at, at + 50),
                ("mpi_collective_begin", at),
                ("mpi_collective_end", at + 40, operation, made.world, 2, sent, received),
            )
    trace = made.read()
    calls = trace.calls()
    told = calls.collectives
    mine = (told.call >= calls.offsets[2]) & (told.call < calls.offsets[3])
    found = list(zip(told.sent[mine].tolist(), told.received[mine].tolist(), strict=True))
    assert found == [wanted for *_, wanted in REACHED]
    assert told.is_root[mine].all()
    assert not told.is_root[~mine].any()
    assert [calls.names[n] for n in calls.name[told.call[mine]].tolist()] == [
        name for _, name, *_ in REACHED
    ]


def test_nonblocking_collectives_have_what_their_completion_tells(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1, 1])
    for rank in (0, 1):
        made.call(rank, "MPI_Iallreduce", 10, 12, ("non_blocking_collective_request", 11, 5))
        made.call(
            *(rank, "MPI_Wait", 20, 30),
            (
                *("non_blocking_collective_complete", 25, CollectiveOp.ALLREDUCE, made.world),
                *(0xFFFFFFFF, 16, 16, 5),
            ),
        )
    told = made.read().calls().collectives
    assert told.sent.tolist() == told.received.tolist() == [8, 8]
    assert told.communicator.tolist() == [1, 1]


def test_tests_without_a_completion_found_nothing(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    made.call(0, "MPI_Test", 0, 1, ("mpi_request_test", 0, 4))
    made.call(0, "MPI_Test", 2, 3, ("mpi_isend_complete", 2, 4))
    calls = made.read().calls()
    assert [calls.names[name] for name in calls.name.tolist()] == [
        *("MPI_Test (found nothing)", "MPI_Test")
    ]


def test_one_sided_calls_and_files_have_their_groups(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    names = ["MPI_Put", "MPI_Win_fence", "MPI_File_write_all", "MPI_Comm_split", "mpi_send"]
    for turn, name in enumerate(names):
        made.call(0, name, 10 * turn, 10 * turn + 5)
    calls = made.read().calls()
    groups = [calls.group[name].value for name in calls.name.tolist()]
    assert groups == [
        *("MPI one-sided", "MPI one-sided", "MPI I/O", "MPI other", "MPI point to point")
    ]
    assert calls.names[int(calls.name[-1])] == "MPI_Send"


def test_time_in_other_libraries_of_communication_and_in_files_is_not_useful(
    tmp_path: Path,
) -> None:
    made = ArchiveMaker(tmp_path, [1])
    to = made.thread(0)
    to.enter(0, made.user("main"))
    for begin, region in (
        (10, made.region("shmem_put", RegionRole.RMA, Paradigm.SHMEM)),
        (30, made.region("fwrite", RegionRole.FILE_IO, Paradigm.NONE)),
    ):
        to.enter(begin, region)
        to.leave(begin + 10, region)
    to.leave(50, made.user("main"))
    trace = made.read()
    assert in_state(trace, RUNNING) == [(0, 10), (20, 30), (40, 50)]
    assert in_state(trace, INPUT_OUTPUT) == [(30, 40)]


@pytest.mark.parametrize("resolution", [10**6, 10**9, 2_095_197_216, 3 * 10**9])
def test_times_are_in_nanoseconds_whatever_the_clock(tmp_path: Path, resolution: int) -> None:
    made = ArchiveMaker(tmp_path, [1], resolution)
    start, step = 7_397_466_976_977_800, 123_456_789_123
    times = [start + step * k for k in range(4)]
    made.call(0, "MPI_Barrier", *times[:2])
    made.call(0, "MPI_Barrier", *times[2:])
    calls = made.read().calls()
    exact = [(time - start) * 10**9 // resolution for time in times]
    assert np.abs(np.array([*calls.entry, *calls.exit]) - np.array(exact)[[0, 2, 1, 3]]).max() <= 1


def test_times_that_no_run_takes_are_damage(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1, 1])
    made.call(0, "MPI_Barrier", 0, 1 << 62)
    made.call(1, "MPI_Barrier", 0, 1 << 62)
    with pytest.raises(popmodel.PopmodelError, match=r"its times span .*: they are damaged"):
        made.read()


def test_clocks_are_corrected_between_the_offsets_that_are_told(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1, 1])
    made.clock_offset(1, 0, 100)
    made.clock_offset(1, 1000, 200)
    for rank in (0, 1):
        made.call(rank, "MPI_Barrier", 0, 500)
        made.call(rank, "MPI_Barrier", 600, 1000)
    calls = made.read().calls()
    assert calls.entry.tolist() == [0, 600, 100, 760]
    assert calls.exit.tolist() == [500, 1000, 650, 1200]


def test_counters_are_differences_unless_they_are_relative(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    instructions = made.counter("PAPI_TOT_INS")
    cycles = made.counter("cycles", MetricMode.RELATIVE_POINT)
    level = made.counter("power", MetricMode.ABSOLUTE_POINT)
    to = made.thread(0)
    for time, value in ((0, 1000), (10, 1500), (20, 1700)):
        to.metric(time, instructions, (value,))
        to.metric(time, cycles, (value,))
        to.metric(time, level, (value,))
    trace = made.read()
    found = trace.records.counters((Event.INSTRUCTIONS, Event.CYCLES), slice(0, 1))
    assert [each.value.tolist() for each in found] == [[500, 200], [1000, 1500, 1700]]
    assert trace.records.counter_names() == ["PAPI_TOT_INS", "PAPI_TOT_CYC"]


def test_metrics_of_more_than_a_thread_are_left_out_and_counted(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    own = made.counter("PAPI_TOT_INS")
    node = made.definitions.metric_instance(
        own, made.locations[0][0], metric_scope=MetricScope.SYSTEM_TREE_NODE, scope=made.nodes[0]
    )
    made.call(0, "MPI_Barrier", 0, 1, ("metric", 0, node, (5,)))
    trace = made.read()
    assert trace.records.counter_names() == []
    assert [each.text for each in trace.warnings] == [
        "readings of metrics that are of more than a thread (left out)",
        "metrics of more than a thread (left out)",
    ]


def test_functions_have_times_and_name_the_places_of_calls(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    to = made.thread(0)
    to.enter(0, made.user("main"))
    to.enter(10, made.user("solve"))
    to.enter(20, made.user("solve"))
    made.call(0, "MPI_Barrier", 25, 30)
    to.leave(40, made.user("solve"))
    to.leave(50, made.user("solve"))
    made.call(0, "MPI_Barrier", 60, 70)
    to.leave(100, made.user("main"))
    trace = made.read()
    told = trace.records.functions(trace.process_offsets)
    assert told is not None
    assert dict(
        zip(told.names, zip(*(c.tolist() for c in told[3:]), strict=True), strict=True)
    ) == {
        "main": (1, 100, 85, 50),
        "solve": (2, 40, 35, 35),
    }
    (main, solve) = popmodel.inspect(trace, show="info").to_dict()["info"]["functions"]
    assert (main["name"], main["visits"], main["share"]) == ("main", 1, 0.5)
    assert solve["exclusive"] == pytest.approx(35e-9)
    assert solve["parallel_efficiency"] == pytest.approx(35 / 40)
    sites = trace.sites()
    assert [sites.places[site][0] for site in sites.site.tolist()] == ["solve", "main"]


def test_regions_can_be_told_by_their_calling_context(tmp_path: Path) -> None:
    """As where Score-P unwinds the stack."""
    made = ArchiveMaker(tmp_path, [1])
    define, to = made.definitions, made.thread(0)
    main = define.calling_context(made.user("main"), parent=None)
    barrier = define.calling_context(made.region("MPI_Barrier"), parent=main)
    to.calling_context_enter(0, main, 1)
    to.calling_context_sample(5, main, 1, define.interrupt_generator("timer", period=1))
    to.calling_context_enter(10, barrier, 1)
    to.calling_context_leave(30, barrier)
    to.calling_context_leave(40, main)
    trace = made.read()
    assert in_state(trace, RUNNING) == [(0, 10), (30, 40)]
    assert trace.calls().entry.tolist() == [10]
    assert [(each.text.split(" (")[0], each.count) for each in trace.warnings] == [("samples", 1)]


def test_regions_that_users_mark_are_user_regions(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    marked = made.region("step", RegionRole.CODE, Paradigm.USER)
    to = made.thread(0)
    for begin in (0, 100):
        to.enter(begin, marked)
        to.leave(begin + 50, marked)
    found = user_regions(made.read())
    assert found.names == ("step",)
    assert list(zip(found.begin.tolist(), found.end.tolist(), strict=True)) == [(0, 50), (100, 150)]


def test_time_with_the_measurement_off_and_writing_buffers_is_not_useful(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    to = made.thread(0)
    to.enter(0, made.user("main"))
    to.measurement_on_off(10, MeasurementMode.OFF)
    to.measurement_on_off(40, MeasurementMode.ON)
    to.buffer_flush(60, 75)
    to.leave(100, made.user("main"))
    trace = made.read()
    assert in_state(trace, RUNNING) == [(0, 10), (40, 60), (75, 100)]
    assert in_state(trace, TRACING_DISABLED) == [(10, 40)]
    assert in_state(trace, INPUT_OUTPUT) == [(60, 75)]
    assert [each.text for each in trace.warnings] == [
        "times that the measurement wrote its buffer to disk (not useful time)"
    ]


def test_entries_and_exits_that_do_not_match_are_counted(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    to = made.thread(0)
    to.enter(0, made.user("main"))
    to.enter(5, made.user("lost"))
    to.leave(10, made.user("main"))  # ends both
    to.leave(12, made.user("other"))
    trace = made.read()
    assert [(each.text.split(" (")[0], each.count) for each in trace.warnings] == [
        ("entries and exits of regions that do not match", 2)
    ]


def test_streams_are_rows_of_devices(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    made.call(0, "MPI_Barrier", 0, 100)
    launch = made.region("cudaLaunchKernel", RegionRole.FUNCTION, Paradigm.CUDA)
    made.thread(0).enter(110, launch)
    made.thread(0).leave(120, launch)
    device = made.definitions.location_group(
        "GPU 3",
        location_group_type=LocationGroupType.ACCELERATOR,
        system_tree_parent=made.nodes[0],
        creating_location_group=made.groups[0],
    )
    stream = made.definitions.location("CUDA[3:7]", type=LocationType.GPU, group=device)
    to = made.writer.event_writer_from_location(stream)
    for begin, name in ((10, "axpy"), (30, "cudaMemcpyAsync")):
        region = made.region(name, RegionRole.FUNCTION, Paradigm.CUDA)
        to.enter(begin, region)
        to.leave(begin + 5, region)
    trace = made.read()
    rows = trace.devices
    assert (rows.names, rows.devices) == (("CUDA[3:7]",), ("GPU 3",))
    assert intervals(rows.activity, 0) == [(10, 15), (30, 35)]
    assert rows.activity.what.tolist() == [KERNEL, COPY]
    assert trace.locations == 1
    assert rows.call_names == ("cudaLaunchKernel",)
    assert intervals(rows.calls, 0) == [(110, 120)]
    assert in_state(trace, RUNNING) == [(100, 110)]


def test_allocations_are_no_kernels_and_their_rows_no_devices(tmp_path: Path) -> None:
    """The rows of rocprofv3: allocations stand in the process's own group, or in the device's."""
    made = ArchiveMaker(tmp_path, [1])
    made.thread(0).enter(0, made.user("main"))
    made.thread(0).leave(100, made.user("main"))
    device = made.definitions.location_group(
        "gfx942",
        location_group_type=LocationGroupType.ACCELERATOR,
        system_tree_parent=made.nodes[0],
    )
    for group, begin, name, role in (
        (made.groups[0], 5, "MEMORY_ALLOCATION_ALLOCATE", RegionRole.ALLOCATE),
        (device, 10, "MEMORY_ALLOCATION_FREE", RegionRole.DEALLOCATE),
        (device, 20, "HOST_TO_DEVICE", RegionRole.DATA_TRANSFER),
        (device, 30, "axpy", RegionRole.FUNCTION),
    ):
        stream = made.definitions.location(name, type=LocationType.GPU, group=group)
        to = made.writer.event_writer_from_location(stream)
        to.enter(begin, made.region(name, role, Paradigm.HIP))
        to.leave(begin + 5, made.region(name, role, Paradigm.HIP))
    rows = made.read().devices
    assert (rows.devices, rows.names[1:]) == (("gfx942",), ("HOST_TO_DEVICE", "axpy"))
    assert rows.activity.what.tolist() == [COPY, KERNEL]


@pytest.mark.parametrize("paradigm", [Paradigm.CUDA, Paradigm.HIP])
def test_an_archive_may_have_streams_and_no_threads(tmp_path: Path, paradigm: Paradigm) -> None:
    made = ArchiveMaker(tmp_path, [])
    kernel = made.region("axpy", RegionRole.FUNCTION, paradigm)
    for number in range(2):
        device = made.definitions.location_group(
            f"GPU {number}",
            location_group_type=LocationGroupType.ACCELERATOR,
            system_tree_parent=made.nodes[0],
        )
        stream = made.definitions.location("S", type=LocationType.GPU, group=device)
        to = made.writer.event_writer_from_location(stream)
        for begin in (0, 100):
            to.enter(begin, kernel)
            to.leave(begin + 50 - 10 * number, kernel)
    made.read()
    run = popmodel.metrics(made.folder)
    devices = run.to_dict()["runs"][0]["metrics"]["gpu-bsc"]
    assert devices["device_parallel_efficiency"] == pytest.approx((100 + 80) / (2 * 150))
    assert "nothing is recorded of the threads" in str(run)


@pytest.mark.parametrize(
    ("paradigm", "name"),
    [
        (Paradigm.UNKNOWN, "MPI_Barrier"),
        (Paradigm.USER, "MPI_Barrier()"),
        (Paradigm.USER, "mpi_barrier_"),
        (Paradigm.COMPILER, "PMPI_Barrier"),
    ],
)
def test_calls_of_writers_without_paradigms_are_known_by_their_names(
    tmp_path: Path, paradigm: Paradigm, name: str
) -> None:
    made = ArchiveMaker(tmp_path, [1])
    for begin, region in ((0, "MPI_Barrier_of_mine"), (100, name), (200, "main")):
        made.thread(0).enter(begin, made.region(region, paradigm=paradigm))
        made.thread(0).leave(begin + 50, made.region(region, paradigm=paradigm))
    calls = made.read().calls()
    assert [calls.names[name] for name in calls.name] == ["MPI_Barrier"]
    assert (calls.entry.tolist(), calls.exit.tolist()) == ([100], [150])


def test_a_function_named_like_a_call_is_none_where_calls_are_told(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])
    made.call(0, "MPI_Barrier", 0, 10)
    made.thread(0).enter(20, made.region("MPI_Send", paradigm=Paradigm.USER))
    made.thread(0).leave(30, made.region("MPI_Send", paradigm=Paradigm.USER))
    assert made.read().calls().names == ("MPI_Barrier",)


def test_a_function_of_the_program_is_no_call_though_its_paradigm_says_so(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1])  # TAU takes whatever has MPI in its name for a call
    made.call(0, "mpi_exchange(int) C [{x.c} {1,1}-{9,1}]", 0, 50)
    made.call(0, "MPI_Barrier()", 50, 60)
    assert made.read().calls().names == ("MPI_Barrier",)


def test_messages_without_calls_are_said(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [1, 1, 1])
    for begin in (0, 500):
        made.thread(0).mpi_send(begin, 1, made.world, 7, 8)
        made.thread(1).mpi_recv(begin + 100, 0, made.world, 7, 8)
    made.read()
    said = popmodel.metrics(made.folder).to_dict()["runs"][0]["caveats"]
    assert "2 messages are recorded, but no MPI calls: their time is not known as such" in said
    assert "nothing is recorded of the threads of 1 process: efficiencies mean little" in said


def test_nodes_are_those_of_the_system_tree(tmp_path: Path) -> None:
    made = ArchiveMaker(tmp_path, [2, 2, 2], nodes=2)
    for rank in range(3):
        made.call(rank, "MPI_Barrier", 0, 1)
    trace = made.read()
    assert trace.node_of_location.tolist() == [0, 0, 1, 1, 0, 0]
    assert trace.nodes == (4, 2)


def test_long_archives_are_read_by_several_cores_and_through_temporary_files(
    tmp_path: Path, real_trace: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A nonblocking collective tells its bytes when its entry is written already."""
    write_archive(tmp_path / "x.otf2", popmodel.read(real_trace("mixnbc.4")))
    whole = popmodel.read(tmp_path / "x.otf2")
    in_files = {"HELD": 0, "PIECE": 0, "BATCH": 16}
    for cores, limits in ((1, in_files), (3, {}), (4, {"LONG": 0, **in_files}), (9, {"LONG": 0})):
        with monkeypatch.context() as patch:
            patch.setattr(archive_reader, "usable_cores", lambda cores=cores: cores)
            for name, value in {"MANY": 0, **limits}.items():
                patch.setattr(archive_reader, name, value)
            parts = popmodel.read(tmp_path / "x.otf2")
        for table in ("states", "events", "messages"):
            wanted, found = (vars(getattr(trace.records, table)) for trace in (whole, parts))
            for name, column in wanted.items():
                assert np.array_equal(column, found[name]), (cores, table, name)
        assert parts.warnings == whole.warnings
        assert (parts.end, parts.origin) == (whole.end, whole.origin)
