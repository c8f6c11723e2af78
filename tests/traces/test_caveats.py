"""What is said first of a run that is analysed."""

from pathlib import Path

import pytest

from popmodel.traces import Trace, read
from popmodel.traces.caveats import caveats, too_small, untraced, writing
from popmodel.traces.codes import TRACING_DISABLED
from popmodel.traces.info import info
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.selection import TracePart, focused

SEND, PARALLEL = 50000001, 60000001
MS = 10**6


@pytest.mark.parametrize(
    ("milliseconds", "sends", "regions", "said"),
    [
        (20, 10, 0, None),
        (20, 4, 6, None),
        (20, 0, 0, None),  # a serial program has none
        (9, 10, 0, "lasts only 9.00 ms"),
        (20, 9, 0, "has only 9 MPI calls"),
        (20, 1, 8, "has only 1 MPI call and 8 parallel regions"),
        (20, 0, 1, "has only 1 parallel region"),
        (1000, 0, 1, None),  # long enough for that
        (9, 1, 0, "lasts only 9.00 ms and has only 1 MPI call"),
    ],
)
def test_what_is_too_small_is_said(
    tmp_path: Path, milliseconds: int, sends: int, regions: int, said: str | None
) -> None:
    writer = TraceWriter([1], duration=milliseconds * MS)
    writer.state(0, 0, 0, milliseconds * MS, 1)
    for number, type_ in enumerate([SEND] * sends + [PARALLEL] * regions):
        writer.event(0, 0, 100 * number, [(type_, 1)])
        writer.event(0, 0, 100 * number + 50, [(type_, 0)])
    writer.write(tmp_path / "x.prv")
    told = [] if said is None else [f"the analysed part {said}: too little for reliable numbers"]
    trace = read(tmp_path / "x.prv")
    assert too_small(trace) == told
    assert list(caveats(*focused(trace, TracePart(from_start=True)))) == told


def switched_off(folder: Path, milliseconds: int) -> Trace:
    """A run of 100 ms whose first process has tracing off at its end; that of the other is on."""
    writer = TraceWriter([1, 1], duration=100 * MS)
    on = (100 - milliseconds) * MS
    writer.state(0, 0, 0, on, 1)
    writer.state(0, 0, on, 100 * MS, TRACING_DISABLED)
    writer.state(1, 0, 0, 100 * MS, 1)
    writer.write(folder / "x.prv")
    return read(folder / "x.prv")


def test_for_how_long_tracing_was_off_is_said(tmp_path: Path) -> None:
    trace = switched_off(tmp_path, 50)
    told = "tracing was off for 25 % of the time: only the rest is in the numbers"
    assert caveats(*focused(trace)) == (told,)
    assert info(trace)["caveats"] == [told]
    assert caveats(*focused(trace.window(0, 50 * MS))) == ()


def test_a_moment_of_it_is_no_matter(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=100 * MS)
    writer.state(0, 0, 0, 10, TRACING_DISABLED)
    writer.state(0, 0, 10, 100 * MS, 1)
    writer.write(tmp_path / "x.prv")
    assert untraced(read(tmp_path / "x.prv")) == []


def test_time_without_tracing_does_not_make_a_run_longer(tmp_path: Path) -> None:
    part = switched_off(tmp_path, 95).window(0, 100 * MS)
    writer = TraceWriter([1], duration=100 * MS)
    writer.state(0, 0, 0, 4 * MS, 1)
    writer.state(0, 0, 4 * MS, 100 * MS, TRACING_DISABLED)
    writer.write(tmp_path / "y.prv")
    assert too_small(part) == []
    assert too_small(read(tmp_path / "y.prv")) == [
        "the analysed part lasts only 4.00 ms: too little for reliable numbers"
    ]


def test_what_is_analysed_is_said_before(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=100 * MS)
    writer.state(0, 0, 0, 100 * MS, 1)
    writer.write(tmp_path / "x.prv")
    trace = read(tmp_path / "x.prv")
    assert caveats(*focused(trace, TracePart(1 * MS, 3 * MS))) == (
        "analysed 2 ms of 100 ms: 1 ms to 3 ms (left out: 1 ms before, 97 ms after)",
        "the analysed part lasts only 2.00 ms: too little for reliable numbers",
    )


def test_what_the_tracer_wrote_is_told_from_the_programs_own_io(tmp_path: Path) -> None:
    """State 12 in one thread is of a flush, a call of POSIX and one of MPI-IO."""
    flush, posix, mpi_io = 40000003, 40000004, 50000005
    writer = TraceWriter([1, 1], duration=100 * MS)
    times: tuple[list[tuple[int, int, list[int]]], ...] = (
        [(10, 20, [flush, posix]), (30, 45, [posix]), (50, 60, [mpi_io])],
        [(10, 12, [flush])],
    )
    for process, written in enumerate(times):
        at = 0
        for begin, end, types in written:
            writer.state(process, 0, at * MS, begin * MS, 1)
            writer.state(process, 0, begin * MS, end * MS, 12)
            writer.event(process, 0, begin * MS, [(type_, 2) for type_ in types])
            writer.event(process, 0, end * MS, [(type_, 0) for type_ in types])
            at = end
        writer.state(process, 0, at * MS, 100 * MS, 1)
    writer.write(tmp_path / "x.prv")
    trace = read(tmp_path / "x.prv")
    (said,) = writing(trace)
    assert "for 10.00 ms (10 % of the runtime) in thread 0 of rank 0, the most" in said
    assert said in caveats(*focused(trace, TracePart(from_start=True)))
    (part,) = writing(trace.window(15 * MS, 65 * MS))
    assert "for 5.000 ms (10 % of the runtime)" in part
    assert writing(trace.window(20 * MS, 100 * MS)) == []  # of the program's own
