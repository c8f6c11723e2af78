"""Merged traces: everything that was recorded is there once, and popmodel reads and replays it."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracer.builder import Run, group_hash, post, receive, send, tally
from tracer.plan import BEGIN, Plan, plans

from popmodel import traces as reader
from popmodel.base.errors import TraceError, UsageError
from popmodel.efficiency.measure import analyse
from popmodel.tracer import conversion
from popmodel.tracer import message_ends as messages
from popmodel.tracer import temporary as spool
from popmodel.tracer.conversion import Merged, merge
from popmodel.tracer.raw_records import HEADER, RECORD, Construct, RecordKind
from popmodel.tracer.symbol_table import SymbolPlace
from popmodel.traces import Trace
from popmodel.traces import codes as states
from popmodel.traces.caveats import ABORTED, CUT, FULL, KILLED, RecordLoss, losses
from popmodel.traces.codes import Event
from popmodel.traces.paraver.numbers import NUMBERS
from popmodel.traces.selection import TracePart


@contextmanager
def merged(run: Run, name: str = "x.prv", **options) -> Iterator[tuple[Trace, Merged]]:
    """Merge a run in a folder of the moment, and read the result."""
    with tempfile.TemporaryDirectory() as folder:
        raw = run.write(Path(folder) / "raw")
        told = merge(raw, Path(folder) / name, **options)
        yield reader.read(told.path), told
        assert {path.name for path in Path(folder).iterdir()} == {
            "raw", name, "x.pcf", "x.row",
        }  # fmt: skip


@contextmanager
def small_steps(size: int) -> Iterator[None]:
    """Let the merge do everything a few rows at a time."""
    with (
        mock.patch.object(conversion, "CHUNK", size),
        mock.patch.object(conversion, "WINDOW", 2 * size),
        mock.patch.object(spool, "STRIDE", max(size // 4, 1)),
        mock.patch.object(messages, "HELD", size),
        mock.patch.object(messages, "_BLOCK", size),
    ):
        yield


def rows_of(table, *names: str) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(table, name).tolist() for name in names), strict=True))


@given(plans())
def test_everything_of_a_random_program_is_there_once(plan: Plan) -> None:
    with merged(plan.run) as (trace, told):
        assert trace.warnings == ()
        assert told.warnings == ()
        calls, warnings = tally(trace)
        assert warnings == ()
        # Tests in a row that find nothing are one entry in a trace.
        folded = sum(
            1 for thread in plan.masters for row in thread.rows
            if row[1] == RecordKind.LEAVE and row[4] > 0
        )  # fmt: skip
        expected = Counter(plan.calls)
        assert Counter(told.calls) == expected
        if expected.pop("MPI_Test", 0):
            expected["MPI_Test (found nothing)"] = folded
        assert Counter(calls) == expected

        found = trace.messages
        process = trace.process_of_location()
        seen = zip(
            process[found.sender].tolist(), process[found.receiver].tolist(),
            *(
                getattr(found, name).tolist()
                for name in (
                    "logical_send", "physical_send", "logical_receive", "physical_receive",
                    "size", "tag",
                )
            ),
            strict=True,
        )  # fmt: skip
        as_tuples = [tuple(vars(message).values()) for message in plan.messages]
        assert sorted(seen) == sorted(as_tuples)
        assert told.messages == len(plan.messages)
        assert told.message_bytes == sum(message.size for message in plan.messages)

        check_states_tile(trace, plan)
        check_times(trace, plan)


def check_states_tile(trace: Trace, plan: Plan) -> None:
    """States of a master tile its time; those of the others leave gaps where they are idle."""
    ends = [plan.end(rank) - BEGIN for rank in range(plan.size)]
    process = trace.process_of_location()
    masters = set(trace.process_offsets[:-1].tolist())
    for location in range(trace.locations):
        mine = slice(trace.states.offsets[location], trace.states.offsets[location + 1])
        begin, end, state = (getattr(trace.states, c)[mine] for c in ("begin", "end", "state"))
        assert begin[0] == 0
        assert np.all(end > begin)
        assert np.all(begin[1:] >= end[:-1])
        assert not np.any(state == states.IDLE)
        joins = begin[1:] == end[:-1]
        assert np.all(state[1:][joins] != state[:-1][joins])
        if location in masters:
            assert np.all(joins)
            assert end[-1] == ends[process[location]]
        assert end[-1] <= ends[process[location]]


def check_times(trace: Trace, plan: Plan) -> None:
    done = analyse(trace, part=TracePart(from_start=True))
    run = done.observables
    assert "ideal_runtime" not in run.absent, run.absent["ideal_runtime"]
    assert run.runtime == pytest.approx(max(plan.end(r) - BEGIN for r in range(plan.size)) / 1e9)
    first = trace.process_offsets[:-1]
    assert run.in_mpi[first] * 1e9 == pytest.approx(plan.in_mpi)
    assert run.in_openmp * 1e9 == pytest.approx(plan.parallel)
    useful = run.useful * 1e9
    for rank in range(plan.size):
        if plan.run.processes[rank].threads[1:]:
            assert useful[first[rank] + 1] == pytest.approx(plan.useful[rank])
        total = plan.end(rank) - BEGIN
        regions = Counter(row[1] for row in plan.masters[rank].rows)[RecordKind.PARALLEL_BEGIN]
        # On the master only fork (10 ns) and join (30 ns) of each region are not useful.
        assert useful[first[rank]] == pytest.approx(total - plan.in_mpi[rank] - 40 * regions)
    sent = trace.records.events.value[trace.records.events.type == 50100001].sum()
    assert sent == plan.collective_bytes


@given(plans(), st.integers(1, 40))
def test_the_trace_does_not_depend_on_how_many_rows_are_held(plan: Plan, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        raw = plan.run.write(Path(folder) / "raw")
        at_once = merge(raw, Path(folder) / "a.prv").path.read_bytes()
        with small_steps(size):
            in_steps = merge(raw, Path(folder) / "b.prv").path.read_bytes()
    times = [
        int(line.split(b":")[5]) for line in in_steps.splitlines() if line[:2] in (b"1:", b"2:")
    ]
    assert times == sorted(times)
    # Messages that are sent at one time may stand in another order.
    assert sorted(in_steps.splitlines()) == sorted(at_once.splitlines())


def test_a_compressed_trace_holds_the_same(tmp_path: Path) -> None:
    plan = Plan(2)
    plan.send(0, 1, 0, 0, 10)
    raw = plan.finish().write(tmp_path / "raw")
    plain = merge(raw, tmp_path / "a.prv")
    packed = merge(raw, tmp_path / "b.prv.gz")
    assert gzip.decompress(packed.path.read_bytes()) == plain.path.read_bytes()
    assert packed.size == packed.path.stat().st_size
    assert (tmp_path / "b.pcf").is_file()


def test_collectives_name_communicators_that_all_processes_share() -> None:
    plan = Plan(3)
    plan.collective("Bcast", 1, 64)
    with merged(plan.finish()) as (trace, _):
        numbers = trace.records.events.value[trace.records.events.type == 50100004]
        (number,) = set(numbers.tolist())
        assert trace.communicators[number].tolist() == [0, 1, 2]
        assert trace.communicators[1].tolist() == [0, 1, 2]
        assert number != 1
        assert sorted(len(ranks) for ranks in trace.communicators.values()) == [1, 1, 1, 3, 3]
        roots = trace.records.events.value[trace.records.events.type == 50100003]
        assert roots.tolist() == [1]


def test_a_rank_without_files_was_never_created() -> None:
    plan = Plan(3)
    run = plan.finish()
    del run.processes[1]
    with merged(run) as (trace, told):
        assert trace.processes == 3
        assert trace.communicators[1].tolist() == [0, 1, 2]
        mine = slice(trace.states.offsets[1], trace.states.offsets[2])
        assert trace.states.state[mine].tolist() == [2]
        (warning,) = told.warnings
        assert warning.text.startswith("processes without files")
        assert "the first is rank 1" in warning.text
        assert warning.count == 1


def test_a_killed_process_ends_where_its_records_end() -> None:
    run = Run(1)
    process = run.process(0, begin=0)
    thread = process.thread()
    thread.call("Init", 0, 100)
    thread.put(500, RecordKind.ENTER, 39, 1)
    with merged(run) as (trace, told):
        assert [(w.text, w.count) for w in told.warnings] == [
            ("processes that were killed or crashed: their trace ends there", 1),
            ("MPI calls that had not returned when their thread ended (assumed to end there)", 1),
        ]
        assert tally(trace) == ({"MPI_Barrier": 1, "MPI_Init": 1}, ())
        assert trace.end == 500


def test_hosts_are_nodes_and_their_clocks_are_aligned() -> None:
    run = Run(2)
    for rank, shift in ((0, 0), (1, 7_000_000)):
        process = run.process(rank, host=f"h{rank}", begin=1000 + shift)
        thread = process.thread()
        thread.call("Init", 1000 + shift, 2000 + shift)
        if rank == 0:
            thread.call("Send", 3000, 3100, send(1, 0, 8))
        else:
            thread.call("Recv", 2500 + shift, 3300 + shift, post(1), *receive(0, 0, 8, 1))
            for when, at in (("init", 1500), ("finalize", 4000)):
                trip = [at + shift - 40, at, at + shift + 40]
                process.say("clock", when=when, round_trips=[trip], **{"with": "h0"})
        thread.call("Finalize", 4000 + shift, 4500 + shift)
        process.end(5000 + shift)
    with merged(run) as (trace, told):
        assert told.hosts == 2
        assert told.clock_residual == 40
        assert trace.nodes == (1, 1)
        assert trace.node_of_location.tolist() == [0, 1]
        assert trace.messages.physical_receive.tolist() == [2300]
        assert trace.end == 4000


def test_messages_that_are_received_before_they_are_sent_are_told() -> None:
    run = Run(2)
    for rank in range(2):
        process = run.process(rank)
        thread = process.thread()
        thread.call("Init", 1000, 2000)
        if rank == 0:
            thread.call("Send", 5000, 5100, send(1, 0, 8))
        else:
            thread.call("Recv", 2500, 3000, post(1), *receive(0, 0, 9, 1))
        process.end(6000)
    with merged(run) as (_, told):
        assert {(w.text.split(":")[0], w.count) for w in told.warnings} == {
            ("messages received before they were sent", 1),
            ("messages whose sender and receiver state different sizes", 1),
        }


def test_openmp_threads_have_the_rows_of_their_numbers() -> None:
    run = Run(0)
    process = run.process(begin=0)
    master = process.thread()
    # Thread 2 of the team records first; it ends, and another one takes its number.
    late, first, second = process.thread(), process.thread(), process.thread()
    process.say("function", address="0x10", name=None, module="/bin/app", offset="0x1234")
    for begin, threads in ((100, [first, late]), (1000, [first, second])):
        master.put(begin, RecordKind.PARALLEL_BEGIN, a=3, b=16, c=begin)
        master.put(begin + 10, RecordKind.TASK_BEGIN, 1, 0, 16, begin)
        for number, thread in enumerate(threads, start=1):
            thread.put(begin + 20 + number, RecordKind.TASK_BEGIN, 1, number, 16, begin)
            thread.put(begin + 200, RecordKind.TASK_END, 1, number, 16, begin)
        master.put(begin + 250, RecordKind.TASK_END, 1, 0, 16, begin)
        master.put(begin + 260, RecordKind.PARALLEL_END, b=16, c=begin)
    late.put(500, RecordKind.END)
    process.end(2000)

    def locate(module: str, offsets) -> list[SymbolPlace]:
        assert module == "/bin/app"
        return [SymbolPlace("solve", f"solve.c:{offset}") for offset in offsets]

    with merged(run, locate=locate) as (trace, told):
        assert told.threads == (3,)
        assert told.warnings == ()
        mine = slice(trace.states.offsets[2], trace.states.offsets[3])
        assert rows_of(trace.states, "begin", "end", "state")[mine] == [
            (0, 122, 2), (122, 300, 1), (1022, 1200, 1),
        ]  # fmt: skip
        (region,) = analyse(trace).observables.regions
        assert region.name == "solve (solve.c:4660)"
        assert region.count == 2


def test_tracing_switched_by_one_of_several_threads_is_told() -> None:
    run = Run(1)
    process = run.process(0, begin=0)
    master, other = process.thread(), process.thread()
    master.call("Init", 0, 100)
    other.call("Barrier", 150, 160, a=1)
    master.put(200, RecordKind.TRACING, a=0)
    master.put(300, RecordKind.TRACING, a=1)
    process.end(1000)
    with merged(run) as (_, told):
        text = (
            "threads shown as if traced throughout, although another thread of the process "
            "switched tracing off"
        )
        assert [w.count for w in told.warnings if w.text == text] == [1]
        assert not told.only_masters_call


def test_threads_that_are_no_team_follow_it() -> None:
    run = Run(1)
    process = run.process(0, begin=0)
    master, own, nested = process.thread(), process.thread(), process.thread()
    master.call("Init", 0, 100)
    master.put(200, RecordKind.PARALLEL_BEGIN, b=1, c=1)
    master.put(200, RecordKind.TASK_BEGIN, 1, 0, 1, 1)
    master.put(300, RecordKind.PARALLEL_BEGIN, b=2, c=2)
    master.put(300, RecordKind.TASK_BEGIN, 2, 0, 2, 2)
    nested.put(310, RecordKind.TASK_BEGIN, 2, 1, 2, 2)
    nested.put(390, RecordKind.TASK_END, 2, 1, 2, 2)
    master.put(400, RecordKind.TASK_END, 2, 0, 2, 2)
    master.put(400, RecordKind.PARALLEL_END, b=2, c=2)
    master.put(500, RecordKind.TASK_END, 1, 0, 1, 1)
    master.put(500, RecordKind.PARALLEL_END, b=1, c=1)
    own.call("Barrier", 600, 700, a=1)
    process.end(1000)
    with merged(run) as (trace, told):
        assert trace.threads.tolist() == [3]
        assert {(w.text, w.count) for w in told.warnings} == {
            ("threads that the program created itself, listed after those of the team", 1),
            ("threads of nested parallel regions, listed after those of the team", 1),
            ("nested parallel regions (counted as part of the enclosing one)", 1),
            ("nested parallel regions took 100.0 ns of the threads that begin them", 1),
        }
        is_parallel = trace.records.events.type == 60000001
        assert rows_of(trace.records.events, "time", "value")[: len(is_parallel)] != []
        assert trace.records.events.time[is_parallel].tolist() == [200, 500]
        outlined = trace.records.events.value[(trace.records.events.type == 60000018)].tolist()
        assert outlined == [1, 2, 1, 0, 2, 0]
        assert len(analyse(trace).observables.regions) == 1


def test_threads_of_the_program_that_follow_one_another_share_a_row() -> None:
    run = Run(1)
    process = run.process(0, begin=0)
    master, first, beside, second = (process.thread() for _ in range(4))
    master.call("Init", 0, 100)
    for thread, begin, end in ((first, 200, 300), (beside, 250, 900), (second, 300, 400)):
        thread.call("Send", begin, end - 10, a=1)
        thread.put(end, RecordKind.END)
    later = process.thread()
    later.call("Send", 500, 600, a=1)  # which does not say that it ended
    last = process.thread()
    last.call("Send", 700, 800, a=1)
    last.put(800, RecordKind.END)
    process.end(1000)
    with merged(run) as (trace, told):
        assert trace.threads.tolist() == [4]
        sends = trace.records.events.value == 1
        assert [
            trace.records.events.time[slice(*trace.records.events.offsets[row : row + 2])][
                sends[slice(*trace.records.events.offsets[row : row + 2])]
            ].tolist()
            for row in (1, 2, 3)
        ] == [[200, 300, 500], [250], [700]]
        text = "threads that the program created itself, listed after those of the team"
        assert [w.count for w in told.warnings if w.text == text] == [5]


def test_programs_without_mpi_are_processes_in_order_of_their_start() -> None:
    run = Run(0)
    for begin in (5000, 1000):
        process = run.process(begin=begin)
        process.thread().put(begin + 10, RecordKind.PARALLEL_BEGIN)
        process.end(begin + 500)
    with merged(run) as (trace, told):
        assert trace.processes == 2
        assert [(w.text, w.count) for w in told.warnings] == [
            ("programs without MPI, treated as processes in the order of their start", 2)
        ]


def test_an_output_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"x\.csv: must end in \.prv or \.prv\.gz"):
        merge(tmp_path, tmp_path / "x.csv")


def test_planted_links_are_not_written_through(tmp_path: Path) -> None:
    raw = Plan(1).finish().write(tmp_path / "raw")
    (tmp_path / "victim").write_text("precious")
    planted = ["x.prv", "x.pcf", "x.row"]
    planted += [f".x.{suffix}.{os.getpid()}.partial" for suffix in ("prv", "pcf", "row")]
    for name in planted:
        (tmp_path / name).symlink_to("victim")
    merge(raw, tmp_path / "x.prv")
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / "x.prv").read_text().startswith("#Paraver")
    assert not (tmp_path / "x.prv").is_symlink()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    raw = Plan(1).finish().write(tmp_path / "raw")
    full = OSError(28, os.strerror(28))
    with (
        mock.patch.object(conversion, "write_beside", side_effect=full),
        pytest.raises(TraceError, match="cannot be written: no space left on device"),
    ):
        merge(raw, tmp_path / "x.prv")
    with (
        mock.patch.object(spool.os, "pwrite", side_effect=full),
        pytest.raises(TraceError, match="no space left on device") as error,
    ):
        merge(raw, tmp_path / "x.prv")
    assert "more space" in str(error.value.hint)
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_a_duplicate_made_by_group_has_its_members_from_who_is_there() -> None:
    run = Run(3)
    for rank in range(3):
        process = run.process(rank, begin=0)
        thread = process.thread()
        thread.call("Init", 0, 100)
        if rank:  # the first member, rank 1, would list them, but it says nothing
            process.say(
                "communicator", id=3, size=2, hash=group_hash([1, 2]), ordinal=0, rank=rank - 1
            )
            thread.call("Barrier", 200, 300, a=3)
        process.end(1000)
    with merged(run) as (trace, _):
        assert [1, 2] in [ranks.tolist() for ranks in trace.communicators.values()]


def test_waiting_constructs_are_states_and_their_bodies_are_not() -> None:
    run = Run(0)
    process = run.process(begin=0)
    thread = process.thread()
    for construct in Construct:
        at = 1000 * construct
        thread.put(at, RecordKind.OMP_ENTER, construct, 0, 0)
        thread.put(at + 100, RecordKind.OMP_LEAVE, construct, 0, 0)
    process.end(20_000)
    with merged(run) as (trace, _):
        rows = rows_of(trace.states, "begin", "end", "state")
        waits = {begin // 1000: state for begin, end, state in rows if end - begin == 100}
        assert waits == {1: 5, 2: 5, 3: 5, 5: 5, 8: 7, 10: 5, 11: 5, 12: 5, 13: 7}
        opened = trace.records.events.type[trace.records.events.value != 0].tolist()
        assert opened == [
            40000001, 60000005, 60000005, 60000007, 60000007, 60000008, 60000008, 60000002,
            60000010, 60000002, 60000033, 60000022, 60000027, 60000016,
        ]  # fmt: skip


@pytest.mark.parametrize("time", [2**64 - 1, 2**63, 2**63 - 1, 2**62 + 1])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_time_that_no_clock_shows_is_told(tmp_path: Path, time: int, place: int) -> None:
    plan = Plan(2)
    plan.send(0, 1, 0, 0, 10)
    raw = plan.finish().write(tmp_path / "raw")
    file = min(raw.glob("*.raw"))
    content = file.read_bytes()
    records = np.frombuffer(content, RECORD, offset=HEADER.size).copy()
    records["time"][place] = time
    file.write_bytes(content[: HEADER.size] + records.tobytes())
    number = place % len(records)
    with pytest.raises(TraceError) as caught:
        merge(raw, tmp_path / "x.prv")
    assert caught.value.problem == f"record {number} has an impossible time: {time} ns"
    assert str(caught.value.hint).startswith("the file is damaged: ")
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def states_of(trace: Trace, location: int) -> list[tuple[int, ...]]:
    mine = slice(trace.states.offsets[location], trace.states.offsets[location + 1])
    return rows_of(trace.states, "begin", "end", "state")[mine]


def test_a_process_that_was_killed_is_not_traced_from_then_on() -> None:
    run = Run(2)
    killed, other = run.process(0, begin=0), run.process(1, begin=0)
    first, second, master = killed.thread(), killed.thread(), other.thread()
    for thread in (first, master):
        thread.call("Init", 0, 100)
    second.call("Barrier", 150, 160, a=1)
    first.call("Barrier", 300, 400, a=1)
    master.call("Finalize", 900, 1000)
    other.end(1000)
    with merged(run) as (trace, told):
        assert states_of(trace, 0)[-2:] == [(300, 400, 13), (400, 1000, 14)]
        # Nothing happened on this thread after its last record, as long as its process lived.
        assert states_of(trace, 1)[-2:] == [(160, 400, 1), (400, 1000, 14)]
        assert states_of(trace, 2)[-1] == (900, 1000, 15)
        assert losses(trace) == [RecordLoss(0, 2, 400, KILLED)]
        assert trace.records.labels.event_value(NUMBERS[Event.LOST], KILLED) == "killed or crashed"
        assert [w.count for w in told.warnings if "killed or crashed" in w.text] == [1]


def test_a_process_that_aborts_is_not_traced_from_then_on() -> None:
    run = Run(2)
    aborting, other = run.process(0, begin=0), run.process(1, begin=0)
    for process, end in ((aborting, 500), (other, 800)):
        thread = process.thread()
        thread.call("Init", 0, 100)
        process.end(end, "abort" if process is aborting else "exit")
    with merged(run) as (trace, _):
        assert states_of(trace, 0)[-1] == (500, 800, 14)
        assert losses(trace) == [RecordLoss(0, 1, 500, ABORTED)]


def test_a_thread_whose_disk_was_full_is_not_traced_from_then_on() -> None:
    run = Run(1)
    process = run.process(0, begin=0)
    master, other = process.thread(), process.thread()
    master.call("Init", 0, 100)
    other.call("Barrier", 150, 160, a=1)
    process.say("full", thread=1, lost_from=300, why="No space left on device")
    process.end(1000)
    with merged(run) as (trace, _):
        assert states_of(trace, 0)[-1] == (100, 1000, 1)
        assert states_of(trace, 1)[-2:] == [(160, 300, 1), (300, 1000, 14)]
        assert losses(trace) == [RecordLoss(0, 1, 300, FULL)]


def test_a_file_that_was_cut_short_is_not_traced_from_its_last_record_on() -> None:
    run = Run(1)
    process = run.process(0, begin=0)
    master = process.thread()
    master.call("Init", 0, 100)
    master.call("Barrier", 200, 300, a=1)
    process.end(1000)
    del master.rows[-2:]
    with merged(run) as (trace, _):
        assert states_of(trace, 0)[-1] == (100, 1000, 14)
        assert losses(trace) == [RecordLoss(0, 1, 100, CUT)]
