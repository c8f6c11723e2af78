"""Writes traces of MPI runs call by call: each process has a clock that its calls move on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from popmodel.traces import Trace, read
from popmodel.traces.paraver.writer import TraceWriter

POINT_TO_POINT, COLLECTIVE, OTHER = 50000001, 50000002, 50000003
ONE_SIDED, IO = 50000004, 50000005
VALUES = {
    "Send": (POINT_TO_POINT, 1),
    "Recv": (POINT_TO_POINT, 2),
    "Isend": (POINT_TO_POINT, 3),
    "Irecv": (POINT_TO_POINT, 4),
    "Wait": (POINT_TO_POINT, 5),
    "Waitall": (POINT_TO_POINT, 6),
    "Bsend": (POINT_TO_POINT, 33),
    "Sendrecv": (POINT_TO_POINT, 41),
    "Bcast": (COLLECTIVE, 7),
    "Barrier": (COLLECTIVE, 8),
    "Reduce": (COLLECTIVE, 9),
    "Allreduce": (COLLECTIVE, 10),
    "Alltoall": (COLLECTIVE, 11),
    "Alltoallv": (COLLECTIVE, 12),
    "Gather": (COLLECTIVE, 13),
    "Gatherv": (COLLECTIVE, 14),
    "Scatter": (COLLECTIVE, 15),
    "Scatterv": (COLLECTIVE, 16),
    "Allgather": (COLLECTIVE, 17),
    "Allgatherv": (COLLECTIVE, 18),
    "Scan": (COLLECTIVE, 30),
    "Reduce_scatter": (COLLECTIVE, 80),
    "Reduce_scatter_block": (COLLECTIVE, 168),
    "Alltoallw": (COLLECTIVE, 170),
    "Iallreduce": (COLLECTIVE, 155),
    "Ibarrier": (COLLECTIVE, 156),
    "Ialltoall": (COLLECTIVE, 158),
    "Ialltoallv": (COLLECTIVE, 159),
    "Ialltoallw": (COLLECTIVE, 171),
    "Init": (OTHER, 31),
    "Finalize": (OTHER, 32),
    "Comm_split": (OTHER, 23),
    "Startall": (OTHER, 124),
    "Testall": (OTHER, 125),
    "Neighbor_alltoall": (COLLECTIVE, 178),
    "Ineighbor_alltoall": (COLLECTIVE, 179),
    "Probe": (POINT_TO_POINT, 61),
    "Put": (ONE_SIDED, 65),
    "File_write": (IO, 145),
}


class Call(NamedTuple):
    """When a call of a process began and ended, ns."""

    process: int
    entry: int
    exit: int


class Script:
    """A run that is written as a trace.

    All processes are on one node; communicator 1 has all of them.
    """

    def __init__(
        self,
        processes: int,
        threads: int = 1,
        communicators: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        groups = {1: list(range(processes)), **(communicators or {})}
        self.writer = TraceWriter([threads] * processes, communicators=groups)
        self.clock = [0] * processes

    def compute(self, process: int, length: int, state: int = 1) -> None:
        """Let a process run (or be in another state) for some ns."""
        begin = self.clock[process]
        if length:
            self.writer.state(process, 0, begin, begin + length, state)
        self.clock[process] += length

    def call(
        self,
        process: int,
        name: str,
        length: int = 10,
        attributes: Sequence[tuple[int, int]] = (),
        thread: int = 0,
        attributes_first: bool = False,
    ) -> Call:
        """Let a process call MPI for some ns."""
        type_, value = VALUES[name]
        begin = self.clock[process]
        pairs = [(type_, value), *attributes]
        if attributes_first:
            pairs = [*attributes, (type_, value)]
        self.writer.event(process, thread, begin, pairs)
        self.writer.event(process, thread, begin + length, [(type_, 0)])
        if length:
            self.writer.state(process, thread, begin, begin + length, 13)
        self.clock[process] += length
        return Call(process, begin, begin + length)

    def collective(
        self,
        process: int,
        name: str,
        length: int = 10,
        communicator: int = 1,
        sent: int = 8,
        received: int = 8,
        root: bool = False,
        **options: bool,
    ) -> Call:
        """Let a process call a collective."""
        attributes = [(50100001, sent), (50100002, received), (50100004, communicator)]
        if root:
            attributes.append((50100003, 1))
        return self.call(process, name, length, attributes, **options)

    def message(self, send: Call, post: Call, wait: Call, size: int = 8, tag: int = 0) -> None:
        """Record a message between calls; `post` and `wait` are one call for Recv and Sendrecv.

        Times as Extrae gives them: the receive of an Irecv counts from its exit.
        """
        posted = post.entry if post == wait else post.exit
        self.writer.message(
            (send.process, 0),
            (post.process, 0),
            (send.entry, send.exit),
            (posted, wait.exit),
            size,
            tag,
        )

    def end(self) -> None:
        """End the application on all processes at their clocks."""
        for process, time in enumerate(self.clock):
            self.writer.event(process, 0, time, [(40000001, 0)])

    def read(self, folder: Path) -> Trace:
        """Write the trace and read it."""
        self.writer.write(folder / "script.prv")
        return read(folder / "script.prv")
