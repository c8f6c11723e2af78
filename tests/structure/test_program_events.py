"""What sequences do, from traces: calls that act, regions, threads, tokens."""

from pathlib import Path

import numpy as np
import pytest

from popmodel.simulator.from_trace import from_trace
from popmodel.structure.iterations import find
from popmodel.structure.program_events import events_of
from popmodel.traces import read
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter

REGION, FUNCTION, RUNNING, NOT_TRACING = 60000001, 60000018, 1, 14
SEND, RECEIVE, IPROBE = (50000001, 1), (50000001, 2), (50000001, 61)
ALLREDUCE = (50000002, 10)


class Run:
    """A run of some processes, all times given in ns."""

    def __init__(self, *threads: int, labels: Labels | None = None) -> None:
        self.ranks = list(range(len(threads)))
        self.writer = TraceWriter(threads, communicators={1: self.ranks}, labels=labels)

    def call(self, process, kind, begin, end, attributes=(), thread=0):
        self.writer.event(process, thread, begin, [kind, *attributes])
        self.writer.event(process, thread, end, [(kind[0], 0)])

    def allreduce(self, begin, end):
        told = [(50100001, 8), (50100002, 8), (50100004, 1)]
        for process in self.ranks:
            self.call(process, ALLREDUCE, begin, end, told)

    def region(self, process, begin, end, threads=1):
        self.writer.event(process, 0, begin, [(REGION, 1)])
        for thread in range(threads):
            self.writer.event(process, thread, begin, [(FUNCTION, 1)])
            self.writer.event(process, thread, end, [(FUNCTION, 0)])
            self.writer.state(process, thread, begin, end, RUNNING)
        self.writer.event(process, 0, end, [(REGION, 0)])

    def read(self, folder: Path, end: int):
        for process in self.ranks:
            self.writer.event(process, 0, 0, [(40000001, 1)])
            self.writer.event(process, 0, end, [(40000001, 0)])
        self.writer.write(folder / "run.prv")
        return read(folder / "run.prv")


def found(trace):
    return events_of(from_trace(trace), trace)


def test_regions_stand_between_calls_with_the_computing_around_them(tmp_path):
    run = Run(1, 1)
    for process in run.ranks:
        run.region(process, 300, 900)
    run.allreduce(100, 200)
    run.allreduce(1000, 1100)
    events = found(run.read(tmp_path, 1500))
    assert events.offsets.tolist() == [0, 3, 6]
    assert events.is_region.tolist() == [False, True, False] * 2
    assert events.begin[:3].tolist() == [100, 300, 1000]
    assert events.end[:3].tolist() == [200, 900, 1100]
    assert events.before[:3].tolist() == [100, 100, 100]
    assert events.after.tolist() == [400, 400]
    assert np.diff(events.first).tolist() == [1, 0, 1] * 2


def test_calls_inside_of_a_region_come_after_it_and_have_no_computing_of_their_own(tmp_path):
    run = Run(2)
    run.region(0, 300, 900)
    run.allreduce(500, 600)
    run.allreduce(950, 1000)
    events = found(run.read(tmp_path, 1200))
    assert events.is_region.tolist() == [True, False, False]
    assert events.before.tolist() == [300, 0, 50]
    assert events.after.tolist() == [200]


def test_time_in_which_tracing_was_disabled_is_no_computing(tmp_path):
    run = Run(1)
    run.region(0, 100, 200)
    run.writer.state(0, 0, 250, 450, NOT_TRACING)
    run.allreduce(500, 600)
    events = found(run.read(tmp_path, 700))
    assert events.before.tolist() == [100, 100]


def test_calls_that_do_nothing_are_no_events(tmp_path):
    """Polling, as often as it may be, does not hide what repeats."""
    run = Run(1, 1)
    for step in range(12):
        for poll in range(step % 5):
            run.call(0, IPROBE, 1000 * step + 100 + 20 * poll, 1000 * step + 110 + 20 * poll)
        run.allreduce(1000 * step + 500, 1000 * step + 600)
    structure = find(run.read(tmp_path, 12_000))
    assert structure.events.names == ("MPI_Allreduce",)
    assert structure.loop is not None
    assert structure.loop.counts == (12,)


def test_a_loop_of_regions_without_mpi(tmp_path):
    run = Run(2)
    for step in range(10):
        run.region(0, 1000 * step + 100, 1000 * step + 900, threads=2)
    structure = find(run.read(tmp_path, 10_000))
    assert structure.loop is not None
    assert structure.loop.counts == (10,)
    assert structure.period == pytest.approx(1e-6)
    assert [place.is_region for place in structure.places] == [True]


def test_threads_that_call_mpi_are_sequences_of_their_own(tmp_path):
    run = Run(2, 2)
    for step in range(8):
        at = 1000 * step
        for process in run.ranks:
            run.region(process, at + 100, at + 900, threads=2)
        run.call(0, SEND, at + 200, at + 210, thread=1)
        run.call(1, RECEIVE, at + 150, at + 400, thread=1)
        run.writer.message((0, 1), (1, 1), (at + 200, at + 210), (at + 150, at + 400), 8)
    structure = find(run.read(tmp_path, 8_000))
    assert structure.program.sequences == 4
    assert structure.loop is not None
    assert structure.loop.count >= 7  # the first fork and the last end differ from the others
    assert {"MPI_Send", "MPI_Recv"} <= {place.name for place in structure.places}


def test_a_user_s_region_tells_equal_calls_apart(tmp_path):
    """The same call inside and outside of the innermost region of the user's own is another."""
    type_ = 60000019
    labels = Labels(
        event_types={type_: "User region"}, event_values={type_: {0: "End", 1: "outer", 2: "solve"}}
    )
    run = Run(1, labels=labels)
    for time, value in ((150, 1), (250, 2), (350, 0), (450, 0)):
        run.writer.event(0, 0, time, [(type_, value)])
    for begin in (100, 200, 300, 400, 500):
        run.allreduce(begin, begin + 10)
    events = found(run.read(tmp_path, 600))
    assert [events.insides[each] for each in events.inside] == ["", "outer", "solve", "outer", ""]
    for tokens in (events.coarse, events.exact):
        assert tokens[0] == tokens[4] != tokens[1] == tokens[3] != tokens[2]


def test_tokens_are_the_finer_the_more_they_tell():
    events = found(read(Path(__file__).parent.parent / "data" / "mix.4.prv.gz"))
    kinds = [len(np.unique(each)) for each in (events.coarse, events.tagged, events.sized)]
    assert kinds == sorted(kinds)
    assert kinds[0] < len(np.unique(events.exact))
    for coarser, finer in ((events.coarse, events.tagged), (events.tagged, events.sized)):
        # What is equal in a finer token is equal in a coarser one.
        assert len(np.unique(np.stack([coarser, finer]), axis=1).T) == len(np.unique(finer))
