"""The items of a nest, places and loops, and a nest that is put together anew from such items."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from popmodel.base.arrays import distinct, spread
from popmodel.base.values import dataclass
from popmodel.structure.common_nest import Common
from popmodel.structure.structure import FoundLoop, Leaf, Nest, events_at, grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.structure.program_events import ProgramEvents

Number = TypeVar("Number", np.float64, np.int64)


@dataclass(frozen=True, eq=False)
class StructureItem:
    """A place or a loop of a nest."""

    number: int  # Among all items, depth first
    place: int  # Its number, or -1 of a loop
    # The same of items that do the same: calls of equal partners, tags and sizes, loops around
    # such.
    likeness: int
    kin: int  # The same of those that are alike but for sizes and partners
    # float64[n]: Computing in it at each of its executions, the mean of all sequences, ns.
    time: NDArray[np.float64]
    events: NDArray[np.int64]  # int64[n]: Events in it at each of them, of all sequences
    # int64[n]: How often a loop is repeated at each of them; empty of a place.
    counts: NDArray[np.int64]
    body: tuple[StructureItem, ...]

    @property
    def is_loop(self) -> bool:
        """Whether it has a body."""
        return self.place < 0

    @property
    def places(self) -> list[int]:
        """Numbers of the places in it."""
        return [place for item in self.body for place in item.places] or [self.place]


def items_of(events: ProgramEvents, common: Common) -> tuple[StructureItem, ...]:
    """Items of a nest, those at the top."""
    sequence = events.sequence
    time = events.computing / max(len(events.offsets) - 1, 1)
    rows_of = events_at(common.place, common.places)
    numbers = count()
    likenesses: dict[tuple[object, ...], int] = {}

    def likeness(*what: object) -> int:
        return likenesses.setdefault(what, len(likenesses))

    def of_nest(nest: Nest, executions: int) -> tuple[StructureItem, ...]:
        """Items of a body that is executed so often."""
        found = []
        for node in nest:
            if isinstance(node, Leaf):
                found += [of_place(place, executions) for place in node.places]
            else:
                found.append(of_loop(node))
        return tuple(found)

    def of_place(place: int, executions: int) -> StructureItem:
        rows = rows_of[place]
        turn = common.execution[rows]
        exact = distinct(events.exact[rows])
        # with partners, where each sequence has always the same
        steady = len(exact) <= len(distinct(sequence[rows]))
        like = tuple(exact.tolist()) if steady else ("varies", int(events.sized[rows].min()))
        return StructureItem(
            next(numbers),
            place,
            likeness("place", *like),
            likeness("kin", int(events.tagged[rows].min())),
            np.bincount(turn, time[rows], executions).astype(np.float64),
            np.bincount(turn, minlength=executions),
            np.empty(0, np.int64),
            (),
        )

    def of_loop(loop: FoundLoop) -> StructureItem:
        number, counts = next(numbers), np.array(loop.counts, np.int64)
        body = of_nest(loop.body, int(counts.sum()))
        return StructureItem(
            number,
            -1,
            likeness("loop", *(item.likeness for item in body)),
            likeness("kin of loops", *(item.kin for item in body)),
            _sums([item.time for item in body], counts),
            _sums([item.events for item in body], counts),
            counts,
            body,
        )

    return of_nest(common.nest, 1)


def _sums(columns: Sequence[NDArray[Number]], counts: NDArray[np.int64]) -> NDArray[Number]:
    """Sums of some columns, and of so many of their values after the other."""
    values = np.sum(columns, axis=0)
    passed = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values)])
    until = np.cumsum(counts)
    sums: NDArray[Number] = passed[until] - passed[until - counts]
    return sums


class Source(NamedTuple):
    """Executions of an item, and which those of the place or loop are that it comes into."""

    item: StructureItem
    old: NDArray[np.int64]
    new: NDArray[np.int64]

    def inside(self, before: NDArray[np.int64]) -> list[Source]:
        """What is in the body of a loop, where its executions begin with these iterations."""
        counts = self.item.counts[self.old]
        old_first = (np.cumsum(self.item.counts) - self.item.counts)[self.old]
        which, old = spread(old_first, counts)
        new = (before[self.new] - old_first)[which] + old
        found = []
        for item in self.item.body:
            there = item.events[old] > 0
            found.append(Source(item, old[there], new[there]))
        return found


Slot = list[Source]
"""Items that are alike and come together: a place, or a loop like theirs."""


def rewritten(
    common: Common, ahead: Sequence[Slot], steps: int, body: Sequence[Slot], behind: Sequence[Slot]
) -> tuple[Common, int]:
    """The nest of some slots, those of `body` in a new loop of so many steps, and where that is.

    Each execution of each place of the old nest is in one of them.
    """
    executions = np.zeros(common.places, np.int64)
    np.maximum.at(executions, common.place, common.execution.astype(np.int64) + 1)
    first = np.cumsum(executions) - executions
    place, execution = np.zeros((2, int(executions.sum())), np.int32)
    numbers = count()

    def nest_of(slots: Sequence[Slot], turns: int) -> Nest:
        nodes: list[int | FoundLoop] = []
        for slot in slots:
            if slot[0].item.is_loop:
                nodes.append(loop_of(slot, turns))
                continue
            nodes.append(number := next(numbers))
            for item, old, new in slot:
                known = old < executions[item.place]
                rows = first[item.place] + old[known]
                place[rows] = number
                execution[rows] = new[known]
        return grouped(nodes)

    def loop_of(slot: Slot, turns: int) -> FoundLoop:
        counts = np.zeros(turns, np.int64)
        for item, old, new in slot:
            counts[new] = item.counts[old]
        before = np.cumsum(counts) - counts
        inner = []
        for sources in zip(*(source.inside(before) for source in slot), strict=True):
            some = [source for source in sources if len(source.old)]
            if some:  # else no sequence has an event there
                inner.append(some)
        return FoundLoop(tuple(counts.tolist()), nest_of(inner, int(counts.sum())))

    begin = nest_of(ahead, 1)
    loop = FoundLoop((steps,), nest_of(body, steps))
    nest = (*begin, loop, *nest_of(behind, 1))
    row = first[common.place] + common.execution
    return Common(nest, place[row], execution[row]), len(begin)
