"""A wavefront that runs through grid dimensions block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from popmodel.base.expressions import parse
from popmodel.base.expressions.elementary import Value, choose, maximum, minimum
from popmodel.base.values import NamedTuple, dataclass
from popmodel.model.kinds.item import GRID, Amount, Entry, Further, Item, listed, many, quantity
from popmodel.model.kinds.p2p import hint_of_dimensions
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.operations import (
    ELSEWHERE,
    ON_NODE,
    TIERS,
    OperationCost,
    OperationsBuilder,
)
from popmodel.model.run.work import RunWork
from popmodel.model.signature.reading import GrammarReading, Path
from popmodel.model.terms import message, pipeline
from popmodel.model.uncertainty import nominal
from popmodel.network import point_to_point as p2p

DIRECTIONS = {"forward": 1, "backward": -1}
"""Ways along a dimension of the grid."""
LEAST_BLOCKS = 16
"""Blocks that say at least how long the others take."""


def _dimensions(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> tuple[int, ...]:
    dims = table["dims"]
    if (
        not isinstance(dims, list)
        or not dims
        or len(set(map(str, dims))) != len(dims)
        or not all(type(dim) is int and 0 <= dim < reading.dimensions for dim in dims)
    ):
        hint = hint_of_dimensions(reading.dimensions)
        problem = f"dims must list grid dimensions, each once, not {dims!r}"
        raise reading.error(where, problem, hint)
    return tuple(dims)


def _direction(
    reading: GrammarReading, table: Mapping[str, Any], where: Path
) -> str | tuple[str, ...]:
    value = table.get("direction", "forward")
    if isinstance(value, str) and value in DIRECTIONS:
        return value
    if isinstance(value, list) and value and all(one in tuple(DIRECTIONS) for one in value):
        if isinstance(table["dims"], list) and len(value) == len(table["dims"]):
            return tuple(value)
        problem = f"direction has {len(value)} entries, dims has {len(table['dims'])}"
        raise reading.error(where, problem, "give one for each of dims, or one word for all")
    problem = f"direction must be forward, backward or a list of them, not {value!r}"
    raise reading.error(where, problem)


@dataclass(frozen=True)
class Pipeline(Item):
    """A wavefront that runs through grid dimensions block by block."""

    kind: ClassVar[str] = "pipeline"
    further: ClassVar[Further] = {"dims": {"read": _dimensions}, "direction": {"read": _direction}}
    needs: ClassVar[str] = GRID
    remedies: ClassVar[Mapping[str, tuple[str, str]]] = {
        "blocks": ("twice the blocks in {}", "Processes start earlier and send more often.")
    }
    communicates: ClassVar[bool] = True
    computes_between: ClassVar[bool] = True
    one_sender: ClassVar[str] = "the blocks of a pipeline are sent one after the other"

    dims: tuple[int, ...]
    direction: str | tuple[str, ...]
    blocks: Amount
    seconds: Amount
    bytes: Amount

    @property
    def ways(self) -> dict[int, int]:
        """By dimension, 1 where the wavefront goes up along it and -1 where it goes down."""
        words = self.direction
        each = [words] * len(self.dims) if isinstance(words, str) else words
        return {dim: DIRECTIONS[word] for dim, word in zip(self.dims, each, strict=True)}

    def links(self, point: ModelPoint) -> list[_Link]:
        """Return where blocks go along each dimension that has several processes."""
        return [
            _Link(dim, way, message.grid_neighbours(point.extent, dim, way, periodic=False))
            for dim, way in self.ways.items()
            if point.extent[dim] > 1
        ]

    def fronts(self, point: ModelPoint) -> pipeline.Fronts:
        found = {}
        links = self.links(point)
        # processes in the middle are late by the first of the messages that they send to others
        middle = next((link for link in links if point.extent[link.dim] > 2), None)
        earlier: Value = 0.0  # messages of the same block that are sent first
        for link in links:
            processes = point.extent[link.dim]
            messages = self.messages(point, link)
            leaving = link.leaving(point) if ELSEWHERE in messages else 0
            counts = {ON_NODE: processes - 1 - leaving, ELSEWHERE: leaving}
            sending = maximum(*(one.sending for one in messages.values()))
            hops = sum(counts[place] * one.time for place, one in messages.items())
            hops = hops + (processes - 1) * earlier
            late = maximum(*(one.late for one in messages.values())) if link is middle else 0.0
            found[link.dim, link.way] = pipeline.front(
                processes, self.blocks, self.seconds, hops, sending, late
            )
            earlier = earlier + maximum(*(one.port for one in messages.values()))
        return found

    def messages(self, point: ModelPoint, link: _Link) -> dict[int, _PipelineMessage]:
        where = message.traffic(link.targets, point.placement.per_node)
        classes = point.messages.classes(where.staying, where.leaving)
        # the messages of a block share the time until the next ones
        meanwhile = self.seconds / (self.blocks * len(self.links(point)))
        return {place: self._message(point, place, of, meanwhile) for place, of in classes.items()}

    def _message(
        self, point: ModelPoint, place: int, classes: Sequence[p2p.SizeClass], meanwhile: Value
    ) -> _PipelineMessage:
        """Return a message inside a node, or between nodes."""
        point.messages.use(place, self.bytes)
        tier, parameters = f"net.{TIERS[place]}", point.parameters
        time = p2p.by_size(self.bytes, classes)
        largest = p2p.eager_threshold(parameters.get(f"{tier}.eager_threshold"))
        waits = p2p.waits_for_receiver(self.bytes, largest)
        busy = port = time
        if f"{tier}.os" in parameters.profile.quantities:
            overhead, gap = parameters.get(f"{tier}.os"), time - p2p.by_size(0, classes)
            busy = pipeline.sending_time(time, gap, meanwhile, overhead)
            port = minimum(time, maximum(overhead, gap))
        else:
            parameters.remarks.add(
                f"the profile has no {tier}.os: each block of {self.name!r} keeps its sender busy "
                "for a whole message"
            )
        return _PipelineMessage(
            time, choose(waits, time, busy), choose(waits, time, port), choose(waits, time, 0.0)
        )

    def work(self, point: ModelPoint) -> RunWork:
        fronts = self.fronts(point)
        frequency = point.parameters.frequency(point.placement.per_node)
        return RunWork(
            serial=self.seconds,
            stated=self.seconds,
            waiting=pipeline.waiting(fronts, {}),
            serial_cycles=self.seconds * frequency,
            transfer=pipeline.transfer(fronts, {}),
            steps=1.0,
            instructions=None,
        )

    def most_operations(self, point: ModelPoint) -> float:  # noqa: ARG002
        return float(3 * len(self.dims) * self.blocks)

    def lighter(self, part: float, point: ModelPoint) -> Self:  # noqa: ARG002
        """Return the sweep with fewer blocks of the same length."""
        least = min(round(self.blocks), LEAST_BLOCKS)
        blocks = max(round(part * self.blocks), least, 1)
        if blocks == self.blocks:
            return self
        return replace(self, blocks=blocks, seconds=self.seconds * blocks / self.blocks)

    def operations(self, point: ModelPoint, build: OperationsBuilder) -> None:
        """Let every process receive a block, compute and send, block by block.

        Messages of a block are sent one after the other. A short one keeps its sender busy for a
        while and then is on its way; a long one holds it until it has arrived.
        """
        blocks = build.repetitions(self.blocks, self.name)
        links = self.links(point)
        costs = list(self._costs(point, links, build))
        steps = [(link.targets, cost) for link, cost in zip(links, costs, strict=True)]
        sources = [
            {int(targets[rank]): rank for rank in np.flatnonzero(cost.place).tolist()}
            for targets, cost in steps
        ]
        sent = [build.each(targets, self.bytes, cost) for targets, cost in steps]
        each = sum(len(rows) for rows in sent)
        build.messages_again(each, blocks - 1)
        for rank in range(point.placement.processes):
            received = [
                rows[source[rank]]
                for rows, source in zip(sent, sources, strict=True)
                if rank in source
            ]
            sends = [rows[rank] for rows in sent if rank in rows]
            build.post(rank, received)
            if blocks > 1:
                with build.repeated(rank, blocks - 1, each):
                    build.wait_receive(rank, received)
                    build.compute(rank, self.seconds / blocks)
                    # posted before the block is sent, so that no process waits for another's sends
                    build.post(rank, [row + each for row in received])
                    build.send(rank, sends)
            last = each * (blocks - 1)
            build.wait_receive(rank, [row + last for row in received])
            build.compute(rank, self.seconds / blocks)
            build.send(rank, [row + last for row in sends])

    def _costs(
        self, point: ModelPoint, links: Sequence[_Link], build: OperationsBuilder
    ) -> Iterator[OperationCost]:
        """Return the cost of the message that each rank sends along each dimension."""
        queue = np.zeros(point.placement.processes)  # of messages that the port has still to send
        for link in links:
            cost = build.pattern(link.targets, self.bytes)
            busy, port = np.zeros(queue.shape), np.zeros(queue.shape)
            for place, one in self.messages(point, link).items():
                busy[cost.place == place] = nominal(one.sending)
                port[cost.place == place] = nominal(one.port)
            time = cost.time + queue - busy
            queue += port - busy
            yield cost._replace(
                time=np.where(cost.waits, cost.time, time),
                busy=np.where(cost.waits, 0.0, busy),
            )

    def faster(self, threads: int) -> Iterator[tuple[str, Item]]:  # noqa: ARG002
        yield "blocks", replace(self, blocks=parse(f"2*({self.blocks.text})"))

    @staticmethod
    def sentence(entry: Entry) -> str:
        dims = listed([str(dim) for dim in entry["dims"]])
        noun = "dimension" if len(entry["dims"]) == 1 else "dimensions"
        way = entry["direction"]
        if not isinstance(way, str):
            way = listed(list(way))
        towards = "" if way == "forward" else f", {way}"
        return (
            f"a wavefront through grid {noun} {dims}{towards}: "
            f"{many(entry['blocks'], 'block')} per process, "
            f"which take the master thread {quantity(entry['seconds'])} in total; "
            f"{quantity(entry['bytes'])} to the next process after each"
        )


class _Link(NamedTuple):
    """Where the blocks of a wavefront go along one dimension."""

    # Dimension, and 1 or -1 along it.
    dim: int
    way: int
    targets: NDArray[np.int64]  # int64[P]: The next process of every rank, -1 for none

    def leaving(self, point: ModelPoint) -> int:
        """Count the messages between nodes on the way through all processes, at most."""
        place = point.messages.places([self.targets])[0].reshape(point.extent)
        return int((place == ELSEWHERE).sum(axis=self.dim).max())


class _PipelineMessage(NamedTuple):
    """What a message costs."""

    time: Value  # From its sending until it has arrived, s
    sending: Value  # How long its sender cannot go on, s
    port: Value  # How long later it lets the next message of the block leave, s
    late: Value  # ``sending`` of a message which waits for its receiver, 0 for others, s
