"""An exchange of boundary layers with the neighbours in the grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from popmodel.base.expressions import parse
from popmodel.base.expressions.elementary import Value, maximum
from popmodel.base.values import NamedTuple, dataclass
from popmodel.model.kinds.item import CELLS, Amount, Entry, Further, Item, many, quantity, symbol
from popmodel.model.kinds.p2p import Sending, threads_sentence
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.operations import ELSEWHERE, ON_NODE, OperationsBuilder, places_of
from popmodel.model.run.work import RunWork
from popmodel.model.terms import message
from popmodel.model.terms.message import face_bytes, neighbours
from popmodel.model.uncertainty import nominal
from popmodel.network import point_to_point as p2p

_MODES = {
    "nonblocking": "all messages at once (nonblocking)",
    "blocking": "one message after the other (blocking)",
}
_PACKING = {
    "serial": "the master thread packs",
    "parallel": "all threads pack",
    "none": "nothing is packed",
}


@dataclass(frozen=True)
class Halo(Sending):
    """Every process exchanges layers of cells with its neighbours in the grid."""

    kind: ClassVar[str] = "halo"
    further: ClassVar[Further] = {
        "mode": {"choices": tuple(_MODES)},
        "pack": {"choices": tuple(_PACKING)},
    }
    needs: ClassVar[str] = CELLS
    remedies: ClassVar[Mapping[str, tuple[str, str]]] = {
        "pack": ("pack {} in a parallel region", "All threads copy the halo to and from messages."),
        "overlap": (
            "overlap {} fully with computation",
            "The whole exchange is hidden: the most that nonblocking communication can bring.",
        ),
    }

    width: Amount
    bytes_per_cell: Amount
    mode: str
    pack: str
    overlap: Amount

    def sizes(self, point: ModelPoint) -> list[Value]:
        """Return the bytes of the message to a neighbour along each dimension."""
        return face_bytes(point.cells(), self.width, self.bytes_per_cell)

    def work(self, point: ModelPoint) -> RunWork:
        sizes = self.sizes(point)
        time = Neighbours.of(point, self.comm_threads).time(sizes, self.mode)
        exposed = RunWork(transfer=time * (1 - self.overlap), steps=1.0)
        if self.pack == "none" or point.placement.processes == 1:
            return exposed
        bandwidth = point.parameters.optional("memory.copy_bw")
        if bandwidth is None:
            return exposed
        counts = neighbours(point.extent, point.periodic)
        sent: Value = sum(n * size for n, size in zip(counts, sizes, strict=True))
        copied = 2 * sent  # packed before, unpacked behind
        return exposed.plus(copying(point, copied, bandwidth, shared=self.pack == "parallel"))

    def most_operations(self, point: ModelPoint) -> float:
        return 8 * len(point.extent)

    def operations(self, point: ModelPoint, build: OperationsBuilder) -> None:
        around = Neighbours.of(point, self.comm_threads)
        sizes = [nominal(size) for size in self.sizes(point)]
        if self.mode == "blocking":
            around.one_at_a_time(build, sizes, 1 - self.overlap)
        else:
            around.all_at_once(build, sizes, 1 - self.overlap)

    def faster(self, threads: int) -> Iterator[tuple[str, Item]]:
        if self.pack == "serial" and threads > 1:
            yield "pack", replace(self, pack="parallel")
        whole = parse("1")
        if self.overlap != whole:
            yield "overlap", replace(self, overlap=whole)

    @staticmethod
    def sentence(entry: Entry) -> str:
        text = (
            f"exchange {many(entry['width'], 'layer')} of cells with the neighbours, "
            f"{quantity(entry['bytes_per_cell'])} per cell, {_MODES[entry['mode']]}; "
            f"{_PACKING[entry['pack']]}"
        )
        if entry["overlap"]["formula"] != "0":
            text += f"; a share of {symbol(entry['overlap'])} is hidden behind computation"
        return text + threads_sentence(entry)


def copying(point: ModelPoint, size: Value, bandwidth: Value, *, shared: bool) -> RunWork:
    """Return the work of copying ``size`` bytes, by the master or shared by the threads.

    A copy is a load and a store for every 8 bytes.
    """
    threads = point.placement.threads if shared else 1
    frequency = point.parameters.frequency(point.placement.per_node * threads)
    time = size / bandwidth
    instructions = size / 4
    if not shared:
        return RunWork(serial=time, serial_cycles=time * frequency, instructions=instructions)
    share = time / point.team
    return RunWork(
        share=share,
        stretched=share,
        single_thread=time,
        region_cycles=share * frequency,
        instructions=instructions,
    )


class Neighbours(NamedTuple):
    """The neighbours of all processes in the grid; made by `Neighbours.of`."""

    point: ModelPoint  # The machine and the placement
    threads: int  # Threads of a process that send
    # Dimension and partners of every direction: down and up along each dimension.
    towards: list[tuple[int, NDArray[np.int64]]]
    # Where the partners are, see `popmodel.model.run.operations.Messages.places`.
    places: NDArray[np.int8]
    # Costs of messages by place, with those that are on their way at the same time.
    classes: Mapping[int, Sequence[p2p.SizeClass]]

    @staticmethod
    def of(point: ModelPoint, threads: int = 1) -> Neighbours:
        """Find the neighbours in the grid of a point, of which some threads send."""
        messages = point.messages
        towards, places, staying, leaving = _around(
            point.extent, point.periodic, point.placement.per_node
        )
        classes = messages.classes(staying, leaving, threads)
        return Neighbours(point, threads, towards, places, classes)

    def time(self, sizes: Sequence[Value], mode: str) -> Value:
        """Return the time to exchange with all neighbours, that of the slowest process.

        Nonblocking: the messages of a process follow each other through its port, those inside the
        node and those that leave it at the same time; a latency is paid once, an overhead for
        every further message. Blocking: dimension by dimension and side by side. Several threads
        share the messages that may be sent at once, and cut those that may not into parts.
        """
        in_order = [sizes[dim] for dim, _ in self.towards]
        known: dict[object, Any] = {}
        patterns = _different(self.places)
        times = [self._to_all(pattern, in_order, mode, known) for pattern in patterns]
        return maximum(*times)

    def _to_all(
        self, pattern: NDArray[np.int8], sizes: Sequence[Value], mode: str, known: dict[object, Any]
    ) -> Value:
        """Time of a process whose partners are where ``pattern`` says."""
        if not pattern.any():
            return 0.0
        there = [(size, int(place)) for size, place in zip(sizes, pattern, strict=True) if place]
        for size, place in there:
            if (place, id(size)) not in known:
                self.point.messages.use(place, size)
                known[place, id(size)] = None
        if mode == "blocking":
            parts = ((size / self.threads, self.classes[place]) for size, place in there)
            return sum(p2p.by_size(part, classes) for part, classes in parts)
        times = self._through_port(pattern, sizes, known)
        # messages to the same kind of place follow each other: the last one is the latest
        last = {int(pattern[direction]): time for direction, time in times.items()}
        return maximum(*last.values())

    def _through_port(
        self, pattern: NDArray[np.int8], sizes: Sequence[Value], known: dict[object, Any]
    ) -> dict[int, Value]:
        """Time until each message of a nonblocking exchange has arrived, by direction.

        Nothing moves before the last message is posted. Then messages follow each other through
        the port of the process, those inside the node and those that leave it at the same time.
        ``known`` has the latencies and gaps of messages of the same sizes in other patterns.
        """
        parameters, threads = self.point.parameters, self.threads
        count = int(np.count_nonzero(pattern))
        # threads deal the messages out; if there are fewer, each is cut for all to have as much
        part, rounds = min(1.0, count / threads), max(count / threads, 1.0)
        name = "net.inter.os" if (pattern == ELSEWHERE).any() else "net.intra.os"
        overhead = parameters.optional(name) if rounds > 1 else None
        slower = self.point.messages.slowdown(threads) if overhead is not None else 1.0
        posting = 0.0 if overhead is None else (rounds - 1) * overhead * slower
        queued: dict[int, Value] = {}
        times: dict[int, Value] = {}
        for direction in np.flatnonzero(pattern).tolist():
            place, size = int(pattern[direction]), sizes[direction]
            key = place, id(size), part
            if key not in known:
                latency = p2p.by_size(0, self.classes[place])
                known[key] = latency, p2p.by_size(size * part, self.classes[place]) - latency
            latency, gap = known[key]
            queued[place] = queued.get(place, 0.0) + gap / min(threads, count)
            times[direction] = latency + queued[place] + posting
        return times

    # -- the replay

    def all_at_once(self, build: OperationsBuilder, sizes: Sequence[float], exposed: float) -> None:
        """Let every process post all receives and sends, then wait for all."""
        places, ranks = self.places, np.arange(self.places.shape[1])
        arriving = np.zeros_like(places)
        for index, (_, targets) in enumerate(self.towards):
            there = places[index] > 0
            arriving[index, targets[there]] = places[index, there]
        in_order = [sizes[dim] for dim, _ in self.towards]
        departed, arrived = (self._of_all(where, in_order) for where in (places, arriving))
        sent: list[list[int]] = [[] for _ in ranks]
        received: list[list[int]] = [[] for _ in ranks]
        for index, (dim, targets) in enumerate(self.towards):
            for rank in np.flatnonzero(places[index]).tolist():
                target = int(targets[rank])
                time = exposed * max(departed[index, rank], arrived[index, target])
                waits = build.waits(int(places[index, rank]), sizes[dim])
                row = build.message(rank, target, sizes[dim], time, waits)
                sent[rank].append(row)
                received[target].append(row)
        for rank in ranks.tolist():
            build.post(rank, received[rank])
            build.isend(rank, sent[rank])
            build.wait_receive(rank, received[rank])
            build.wait_send(rank, sent[rank])

    def _of_all(self, places: NDArray[np.int8], sizes: Sequence[float]) -> NDArray[np.float64]:
        """Time of every message through the port of its process, shape (directions, P)."""
        time = np.zeros(places.shape)
        known: dict[object, Any] = {}
        patterns, which = np.unique(places, axis=1, return_inverse=True)
        for index, pattern in enumerate(patterns.T):
            for direction, value in self._through_port(pattern, sizes, known).items():
                time[direction, which.ravel() == index] = value
        return time

    def one_at_a_time(
        self, build: OperationsBuilder, sizes: Sequence[float], exposed: float
    ) -> None:
        """Let every process exchange with each of its neighbours in turn.

        Even and odd coordinates start on different sides, so that nobody waits for a whole line.
        """
        parts = [sizes[dim] / self.threads for dim, _ in self.towards]
        costs = [
            build.cost(place, part, self.classes)
            for part, place in zip(parts, self.places, strict=True)
        ]
        rows = [
            build.each(targets, part, cost._replace(time=exposed * cost.time), self.threads)
            for (_, targets), part, cost in zip(self.towards, parts, costs, strict=True)
        ]
        ranks = np.arange(self.places.shape[1])
        coordinates = np.unravel_index(ranks, self.point.extent)
        for dim in range(len(self.point.extent)):
            down, up = 2 * dim, 2 * dim + 1
            for rank in ranks.tolist():
                sides = (up, down) if coordinates[dim][rank] % 2 == 0 else (down, up)
                for side in sides:
                    if rank not in rows[side]:
                        continue
                    opposite = down if side == up else up
                    received = [rows[opposite][int(self.towards[side][1][rank])]]
                    build.post(rank, received)
                    build.send(rank, [rows[side][rank]])
                    build.wait_receive(rank, received)


@lru_cache(maxsize=2)  # evaluations of a run ask again and again
def _around(
    extent: tuple[int, ...], periodic: tuple[bool, ...], per_node: int
) -> tuple[list[tuple[int, NDArray[np.int64]]], NDArray[np.int8], int, int]:
    """Partners of every direction, where they are, and messages at once in nodes and between."""
    towards = [
        (dim, message.grid_neighbours(extent, dim, by, periodic=periodic[dim]))
        for dim in range(len(extent))
        for by in (-1, 1)
    ]
    nodes = np.arange(prod(extent)) // per_node
    places = places_of([targets for _, targets in towards], nodes)
    # a process sends one message after the other: as many at once as processes of a node send
    staying, leaving = (
        int(np.bincount(nodes[(places == where).any(axis=0)]).max(initial=0))
        for where in (ON_NODE, ELSEWHERE)
    )
    return towards, places, staying, leaving


def _different(places: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the different columns, shape (columns, directions), without sorting them all."""
    weights = 3 ** np.arange(len(places))
    counts = np.bincount(weights @ places.astype(np.int64), minlength=1)
    return (np.flatnonzero(counts)[:, None] // weights % 3).astype(np.int8)
