"""Input and output in archives: calls for files and operations on them, read and written."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("_otf2", reason="archives need the extra popmodel-hpc[otf2]")

from hypothesis import given, settings
from hypothesis import strategies as st
from otf2.enums import (
    IoHandleFlag,
    IoOperationFlag,
    IoOperationMode,
    IoParadigmClass,
    IoParadigmFlag,
    Paradigm,
    RegionRole,
)
from otf2_archives import ArchiveMaker

import popmodel
from popmodel.traces import Trace
from popmodel.traces.codes import INPUT_OUTPUT, Event
from popmodel.traces.otf2.archive_writer import write_archive
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.numbers import MPI_CALLS, NUMBERS
from popmodel.traces.paraver.writer import TraceWriter

CALL, BYTES, MPI_BYTES, MPI_IO = 40000004, 40000011, 50000110, 50000005
WRITE_ALL = next(value for value, name in MPI_CALLS.items() if name == "MPI_File_write_all")


class FileMaker(ArchiveMaker):
    """An archive with calls for files; handles of POSIX, of C and of MPI."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, [1])
        define = self.definitions
        self.handles = {}
        for name, kind in (("POSIX", "SERIAL"), ("ISOC", "SERIAL"), ("MPI-IO", "PARALLEL")):
            of = getattr(IoParadigmClass, kind), IoParadigmFlag.NONE
            paradigm = define.io_paradigm(name, name, *of)
            file = define.io_regular_file(name="data", scope=self.nodes[0])
            self.handles[name] = define.io_handle(
                name="", file=file, io_paradigm=paradigm, io_handle_flags=IoHandleFlag.NONE
            )
        self.number = 0

    def file_region(self, name: str):
        return self.region(name, RegionRole.FILE_IO, Paradigm.NONE)

    def begin(self, time: int, handle: str, mode: str = "WRITE", flag: str = "NONE") -> int:
        self.number += 1
        self.thread(0).io_operation_begin(
            time,
            self.handles[handle],
            getattr(IoOperationMode, mode),
            getattr(IoOperationFlag, flag),
            99,
            self.number,
        )
        return self.number

    def end(self, time: int, handle: str, moved: int, number: int) -> None:
        self.thread(0).io_operation_complete(time, self.handles[handle], moved, number)


def events(trace: Trace, type_: int) -> list[tuple[int, int]]:
    rows = trace.records.events
    chosen = rows.type == type_
    return list(zip(rows.time[chosen].tolist(), rows.value[chosen].tolist(), strict=True))


def test_of_layers_of_one_operation_the_outermost_call_tells_time_and_bytes(
    tmp_path: Path,
) -> None:
    made = FileMaker(tmp_path)
    to = made.thread(0)
    to.enter(0, made.user("main"))
    to.enter(10, made.file_region("fwrite"))
    outer = made.begin(11, "ISOC")
    to.enter(12, made.file_region("write"))
    inner = made.begin(13, "POSIX")
    made.end(14, "POSIX", 4096, inner)
    to.leave(15, made.file_region("write"))
    made.end(16, "ISOC", 100, outer)
    to.leave(17, made.file_region("fwrite"))
    to.leave(20, made.user("main"))
    trace = made.read()
    calls = trace.records.file_io()
    assert (calls.begin.tolist(), calls.end.tolist()) == ([10], [17])
    assert events(trace, CALL) == [(10, 4), (12, 2), (15, 4), (17, 0)]
    assert events(trace, BYTES) == [(16, 100)]
    assert trace.records.in_state(INPUT_OUTPUT).total().tolist() == [7]
    assert trace.warnings == ()


def test_bytes_of_mpi_io_are_those_of_its_own_layer(tmp_path: Path) -> None:
    made = FileMaker(tmp_path)
    to = made.thread(0)
    to.enter(0, made.region("MPI_File_write_all"))
    outer = made.begin(1, "MPI-IO")
    to.enter(2, made.file_region("pwrite"))
    inner = made.begin(2, "POSIX")
    made.end(5, "POSIX", 1 << 20, inner)
    to.leave(6, made.file_region("pwrite"))
    made.end(7, "MPI-IO", 4096, outer)
    to.leave(8, made.region("MPI_File_write_all"))
    trace = made.read()
    assert events(trace, MPI_BYTES) == [(7, 4096)]
    assert events(trace, BYTES) == []
    io = popmodel.metrics(trace).runs[0].observables.io
    assert io is not None
    assert (io.mpi.tolist(), io.posix.tolist()) == ([8e-9], [0.0])


def test_operations_in_no_call_are_calls_unless_they_do_not_block_or_are_of_mpi(
    tmp_path: Path,
) -> None:
    made = FileMaker(tmp_path)
    to = made.thread(0)
    to.enter(0, made.user("main"))
    for begin, mode in ((10, "READ"), (20, "WRITE"), (30, "FLUSH")):
        made.end(begin + 4, "POSIX", begin, made.begin(begin, "POSIX", mode))
    later = made.begin(40, "POSIX", "WRITE", "NON_BLOCKING")
    made.end(60, "POSIX", 40, later)
    made.end(75, "MPI-IO", 70, made.begin(70, "MPI-IO"))
    to.leave(80, made.user("main"))
    trace = made.read()
    assert events(trace, CALL) == [(10, 1), (14, 0), (20, 2), (24, 0), (30, 103), (34, 0)]
    assert events(trace, BYTES) == [(14, 10), (24, 20), (34, 30), (60, 40), (75, 70)]
    assert trace.records.in_state(INPUT_OUTPUT).total().tolist() == [12]


def test_operations_without_an_end_do_not_hold_up_those_behind(tmp_path: Path) -> None:
    made = FileMaker(tmp_path)
    to = made.thread(0)
    to.enter(0, made.user("main"))
    for begin in (10, 20):
        to.enter(begin, made.file_region("write"))
        number = made.begin(begin + 1, "POSIX")
        if begin == 20:
            made.end(begin + 2, "POSIX", 7, number)
        to.leave(begin + 3, made.file_region("write"))
    to.leave(30, made.user("main"))
    assert events(made.read(), BYTES) == [(22, 7)]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["compute", "posix", "file", "empty"]),
        st.integers(1, 9),
        st.sampled_from([1, 2, 4, 11, 103]),
        st.none() | st.integers(0, 1 << 40),
    ),
    min_size=1,
    max_size=12,
)


def written(path: Path, ranks: list[list[tuple[str, int, int, int | None]]]) -> Trace:
    """A trace as Extrae has it: what a call moves stands at its begin."""
    writer = TraceWriter([1] * len(ranks), communicators={1: list(range(len(ranks)))})
    last = max(sum(length for _, length, *_ in steps) for steps in ranks)
    for rank, steps in enumerate(ranks):
        time = 0
        for kind, length, value, size in [*steps, ("compute", 1, 0, None)]:
            end = time + length
            writer.state(rank, 0, time, end, 1 if kind == "compute" else INPUT_OUTPUT)
            call = {"posix": (CALL, value), "file": (MPI_IO, WRITE_ALL)}.get(kind)
            if call is not None:
                of = BYTES if kind == "posix" else MPI_BYTES
                writer.event(rank, 0, time, [call, *([] if size is None else [(of, size)])])
                writer.event(rank, 0, end, [(call[0], 0)])
            time = end
        writer.state(rank, 0, time, last + 2, 1)
    writer.write(path)
    return popmodel.read(path)


@settings(deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=3))
def test_calls_for_files_and_their_bytes_survive_being_written(
    tmp_path_factory: pytest.TempPathFactory, ranks: list
) -> None:
    folder = tmp_path_factory.mktemp("io")
    trace = written(folder / "x.prv", ranks)
    write_archive(folder / "x.otf2", trace)
    again = popmodel.read(folder / "x.otf2")
    assert again.warnings == ()
    for event in (Event.FILE_CALL, Event.FILE_BYTES, Event.MPI_FILE_BYTES):
        wanted, found = (
            [value for _, value in events(each, NUMBERS[event])] for each in (trace, again)
        )
        assert wanted == found, event
    wanted, found = (popmodel.metrics(each).runs[0].observables.io for each in (trace, again))
    assert (wanted is None) == (found is None)
    if wanted is not None and found is not None:
        masters = np.arange(len(ranks))
        assert wanted.to_dict(masters) == found.to_dict(masters)


def test_all_counters_of_the_hardware_survive_being_written(tmp_path: Path) -> None:
    """Those of vector instructions have a family of their own."""
    names = ("SCALAR", "128B_PACKED", "256B_PACKED", "512B_PACKED")
    types = {
        42000500 + number: f"FP_ARITH:{name}_DOUBLE (instructions)"
        for number, name in enumerate(names)
    }
    writer = TraceWriter([1, 1], communicators={1: [0, 1]}, labels=Labels(event_types=types))
    for rank in (0, 1):
        writer.state(rank, 0, 0, 100, 1)
        for time in (0, 40, 100):
            counts = [(type_, 10 * number + time) for number, type_ in enumerate(types, 1)]
            writer.event(rank, 0, time, counts)
    writer.write(tmp_path / "x.prv")
    trace = popmodel.read(tmp_path / "x.prv")
    assert write_archive(tmp_path / "x.otf2", trace) == ()
    again = popmodel.read(tmp_path / "x.otf2")
    for name in types.values():
        wanted, found = (
            each.records.counters((name.split()[0],), slice(0, 2))[0] for each in (trace, again)
        )
        assert found.value.tolist() == wanted.value.tolist()
    values = [popmodel.metrics(each).evaluations[0]["vector"].values for each in (trace, again)]
    assert values[0] == values[1]
    assert values[0]
