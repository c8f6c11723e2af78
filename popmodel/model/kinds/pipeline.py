"""A wavefront that runs through grid dimensions block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from popmodel.expressions import parse
from popmodel.expressions.elementary import maximum
from popmodel.model.grammar.keys import NOT_NEGATIVE, ONE_OR_MORE, Key
from popmodel.model.grammar.reading import Reading
from popmodel.model.grammar.toml_lines import Path
from popmodel.model.kinds import sending, words
from popmodel.model.kinds.item import GRID, Amount, Item
from popmodel.model.run.work import Work
from popmodel.model.terms import message, pipeline
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.model.run.operations import Cost, OperationsBuilder
    from popmodel.model.run.point import Point

LEAST_BLOCKS = 16
"""Blocks that say at least how long the others take."""


def _dimensions(reading: Reading, table: Mapping[str, Any], where: Path) -> tuple[int, ...]:
    dims = table["dims"]
    if (
        not isinstance(dims, list)
        or not dims
        or len(set(map(str, dims))) != len(dims)
        or not all(type(dim) is int and 0 <= dim < reading.dimensions for dim in dims)
    ):
        hint = sending.hint_of_dimensions(reading.dimensions)
        problem = f"dims must list grid dimensions, each once, not {dims!r}"
        raise reading.error(where, problem, hint)
    return tuple(dims)


@dataclass(frozen=True)
class Pipeline(Item):
    """A wavefront that runs through grid dimensions block by block."""

    kind: ClassVar[str] = "pipeline"
    about: ClassVar[str] = "a wavefront through grid dimensions, block by block"
    own: ClassVar[tuple[Key, ...]] = (
        Key(
            "dims",
            "",
            None,
            "list of the grid dimensions that the wavefront crosses",
            read=_dimensions,
        ),
        Key("blocks", "1", None, "blocks per process and sweep", ONE_OR_MORE),
        Key(
            "seconds",
            "s",
            None,
            "time of the whole sweep on one process, executed by the master thread",
            NOT_NEGATIVE,
        ),
        Key("bytes", "B", None, "message to the next process after each block", NOT_NEGATIVE),
    )
    needs: ClassVar[str] = GRID
    remedies: ClassVar[Mapping[str, tuple[str, str]]] = {
        "blocks": ("twice the blocks in {}", "Processes start earlier and send more often.")
    }
    communicates: ClassVar[bool] = True
    computes_between: ClassVar[bool] = True
    one_sender: ClassVar[str] = "the blocks of a pipeline are sent one after the other"

    dims: tuple[int, ...]
    blocks: Amount
    seconds: Amount
    bytes: Amount

    def towards(self, point: Point) -> list[NDArray[np.int64]]:
        """Return the next process of every rank along each dimension that has several."""
        return [
            message.grid_neighbours(point.extent, dim, 1, periodic=False)
            for dim in self.dims
            if point.extent[dim] > 1
        ]

    def work(self, point: Point) -> Work:
        """Return the work of one sweep: the master's, and the waiting for its start."""
        extent = [point.extent[dim] for dim in self.dims]
        times = [
            sending.exchanged(point, targets, self.bytes)[0] for targets in self.towards(point)
        ]
        slowest = maximum(*times) if times else 0.0
        frequency = point.parameters.frequency(point.placement.per_node)
        return Work(
            serial=self.seconds,
            waiting=pipeline.ideal_time(extent, self.blocks, self.seconds) - self.seconds,
            serial_cycles=self.seconds * frequency,
            transfer=pipeline.transfer_time(extent, self.blocks, slowest),
            steps=1.0,
            instructions=None,
        )

    def most_operations(self, point: Point) -> float:  # noqa: ARG002
        """Return the operations of a process in one sweep, at most."""
        return float(4 * len(self.dims) * self.blocks)

    def lighter(self, part: float, point: Point) -> Self:  # noqa: ARG002
        """Return the sweep with fewer blocks of the same length."""
        least = min(round(self.blocks), LEAST_BLOCKS)
        blocks = max(round(part * self.blocks), least, 1)
        if blocks == self.blocks:
            return self
        return replace(self, blocks=blocks, seconds=self.seconds * blocks / self.blocks)

    def operations(self, point: Point, build: OperationsBuilder) -> None:
        """Let every process receive a block, compute and send, block by block.

        A short message keeps its sender busy as long as it takes; of several, the slowest does.
        """
        blocks = build.repetitions(self.blocks, self.name)
        towards = self.towards(point)
        costs = _slowest_busy([build.pattern(targets, self.bytes) for targets in towards])
        steps = list(zip(towards, costs, strict=True))
        sources = [
            {int(targets[rank]): rank for rank in np.flatnonzero(cost.place).tolist()}
            for targets, cost in steps
        ]
        sent = [
            [build.each(targets, self.bytes, cost) for targets, cost in steps]
            for _ in range(blocks)
        ]
        for rank in range(point.placement.processes):
            received = [
                [
                    of[source[rank]]
                    for of, source in zip(rows, sources, strict=True)
                    if rank in source
                ]
                for rows in sent
            ]
            build.post(rank, received[0])
            for turn, rows in enumerate(sent):
                build.wait_receive(rank, received[turn])
                build.compute(rank, self.seconds / blocks)
                # posted before the block is sent, so that both messages move at the same time
                build.post(rank, received[turn + 1] if turn + 1 < blocks else [])
                # the one that keeps the sender busy goes last, lest the others leave after it
                mine = sorted((of[rank] for of in rows if rank in of), key=build.busy)
                build.isend(rank, mine)
                build.wait_send(rank, mine)

    def faster(self, threads: int) -> Iterator[tuple[str, Item]]:  # noqa: ARG002
        """Send more often."""
        yield "blocks", replace(self, blocks=parse(f"2*({self.blocks.text})"))

    @staticmethod
    def sentence(entry: words.Entry) -> str:
        """Say where the wavefront runs, and what it does in each block."""
        dims = words.listed([str(dim) for dim in entry["dims"]])
        noun = "dimension" if len(entry["dims"]) == 1 else "dimensions"
        return (
            f"a wavefront through grid {noun} {dims}: {words.many(entry['blocks'], 'block')} per "
            f"process, which take the master thread {words.quantity(entry['seconds'])} in total; "
            f"{words.quantity(entry['bytes'])} to the next process after each"
        )


def _slowest_busy(costs: Sequence[Cost]) -> list[Cost]:
    """Let the slowest message of each sender, unless it waits, keep it busy all its time."""
    if not costs:
        return []
    slowest = np.array([cost.time for cost in costs]).argmax(axis=0)
    kept = [(slowest == index) & ~cost.waits for index, cost in enumerate(costs)]
    return [
        replace(cost, time=np.where(keeps, 0.0, cost.time), busy=np.where(keeps, cost.time, 0.0))
        for cost, keeps in zip(costs, kept, strict=True)
    ]
