"""What an average process does, item by item and in order: the program of a signature, unrolled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from popmodel.model.replayed.exchange import Exchange, exchange, repetitions
from popmodel.model.run.course import computation
from popmodel.model.run.performance import Model
from popmodel.model.signature.program import COMMUNICATION, Item, Loop, Pipeline, items
from popmodel.model.uncertainty import nominal
from popmodel.values import dataclass


@dataclass(frozen=True)
class Compute:
    """Computation of an average process: the part that grows with its work, and the rest, s."""

    work: float
    overhead: float


@dataclass(frozen=True)
class NewStep:
    """From here on other processes are slow: a step of a loop, 0 before the first of them."""

    loop: int


Event = Compute | NewStep | Exchange


@dataclass(frozen=True)
class Script:
    """The items of a program, each worked out once.

    Attributes
    ----------
    model : Model
        With numbers for its values, not draws.
    computed : mapping of int to Compute
        By ``id`` of the item: what it computes, communication included (packing).
    exchanged : mapping of int to Exchange
        By ``id`` of the item: what it communicates.
    repeated : mapping of int to int
        By ``id`` of a loop that communicates: its iterations.
    every : mapping of int to float
        By ``id`` of any item: in how many turns of its loop it is executed once.
    """

    model: Model
    computed: Mapping[int, Compute]
    exchanged: Mapping[int, Exchange]
    repeated: Mapping[int, int]
    every: Mapping[int, float]

    def operations(self, counts: Mapping[int, int]) -> float:
        """Count the operations of all processes.

        Parameters
        ----------
        counts : mapping of int to int
            Iterations instead of all, by ``id`` of the loop.
        """

        def of(body: Sequence[Item]) -> float:
            total = 0.0
            for item in body:
                if id(item) in self.repeated:
                    assert isinstance(item, Loop)
                    once = counts.get(id(item), self.repeated[id(item)]) * of(item.body)
                else:
                    meeting = self.exchanged.get(id(item))
                    once = 0 if meeting is None else meeting.program.operations
                total += once / self.every[id(item)]
            return total

        return of(self.model.signature.program)

    def events(self, counts: Mapping[int, int]) -> Iterator[Event]:
        """Return what an average process does, in order.

        Parameters
        ----------
        counts : mapping of int to int
            Iterations to carry out instead of all, by ``id`` of the loop.
        """
        yield NewStep(0)
        yield from self._body(self.model.signature.program, counts, 0)

    def _body(self, body: Sequence[Item], counts: Mapping[int, int], turn: int) -> Iterator[Event]:
        for item in body:
            for _ in range(_times(self.every[id(item)], turn)):
                if id(item) in self.repeated:
                    assert isinstance(item, Loop)
                    yield from self._loop(item, counts)
                else:
                    yield from self._leaf(item)

    def _loop(self, loop: Loop, counts: Mapping[int, int]) -> Iterator[Event]:
        meetings = [item for item in loop.body if isinstance(item, COMMUNICATION)]
        number = 1 + list(self.repeated).index(id(loop))
        met = bool(meetings)
        for turn in range(counts.get(id(loop), self.repeated[id(loop)])):
            if met:
                yield NewStep(number)
            yield from self._body(loop.body, counts, turn)
            # a step lasts until processes meet, as in the closed form
            met = any(_times(self.every[id(item)], turn) for item in meetings)

    def _leaf(self, item: Item) -> Iterator[Event]:
        compute, meeting = self.computed[id(item)], self.exchanged.get(id(item))
        if meeting is None:
            yield compute
            return
        half = Compute(compute.work / 2, compute.overhead / 2)  # packing before, unpacking after
        yield half
        yield meeting
        yield half


def _times(every: float, turn: int) -> int:
    """How often an item is executed in a turn of its loop, so that it is 1/every on average."""
    return math.floor((turn + 1) / every + 1e-9) - math.floor(turn / every + 1e-9)


def script(model: Model) -> Script:
    """Work out every item of a program once.

    Parameters
    ----------
    model : Model
        With numbers for its values, not draws.

    Raises
    ------
    NotUnrolled
        If an item cannot be carried out.
    """
    computed: dict[int, Compute] = {}
    exchanged: dict[int, Exchange] = {}
    repeated: dict[int, int] = {}
    every: dict[int, float] = {}

    def visit(body: Sequence[Item]) -> None:
        for item in body:
            every[id(item)] = nominal(model.value(item.every))
            if isinstance(item, Loop) and _communicates(item):
                repeated[id(item)] = repetitions(model, item.count, item.name)
                visit(item.body)
                continue
            work = model.work_of(item)
            pure = 0.0 if isinstance(item, Pipeline) else nominal(computation(work))
            computed[id(item)] = Compute(pure, nominal(work.overhead))
            if isinstance(item, COMMUNICATION):
                exchanged[id(item)] = exchange(model, item)

    visit(model.signature.program)
    return Script(model, computed, exchanged, repeated, every)


def _communicates(loop: Loop) -> bool:
    return any(isinstance(item, COMMUNICATION) for item in items(loop.body))
