"""A signature as the program of its processes: every iteration carried out, for the replay.

Computation comes from the terms of the model, spread over processes and steps by the imbalance of
the signature; communication is described once per item (`popmodel.model.exchange`) and repeated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.model.course import computation
from popmodel.model.exchange import Exchange, exchange, number, repetitions
from popmodel.model.performance import Model
from popmodel.model.program import COMMUNICATION, Item, Loop, Pipeline, items
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.replay.charges import Charges
from popmodel.replay.program import Collectives, Messages, Op, Program

_NS = 1e9

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Compute:
    """Computation of an average process: the part that grows with its work, and the rest, s."""

    work: float
    overhead: float


@dataclass(frozen=True)
class NewStep:
    """From here on other processes are slow."""


Event = Compute | NewStep | Exchange


@dataclass(frozen=True)
class Unrolled:
    """A program that is ready to be replayed.

    Attributes
    ----------
    program, charges : Program, Charges
        What all processes do and what the machine's network charges.
    computing : float64[P]
        Computation of each process, overhead of OpenMP not included, s.
    work : float
        The same of an average process, s.
    lasting : float64[P]
        By which part each process is slower than the average in every step.
    steps : int
        Steps in which processes are slow in turns.
    """

    program: Program
    charges: Charges
    computing: Array
    work: float
    lasting: Array
    steps: int


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
    """

    model: Model
    computed: Mapping[int, Compute]
    exchanged: Mapping[int, Exchange]

    def events(self, counts: Mapping[int, int]) -> Iterator[Event]:
        """Give what an average process does, in order.

        Parameters
        ----------
        counts : mapping of int to int
            Iterations to carry out instead of all, by ``id`` of the loop.
        """
        yield NewStep()
        yield from self._body(self.model.signature.program, counts, 0)

    def _body(self, body: Sequence[Item], counts: Mapping[int, int], turn: int) -> Iterator[Event]:
        for item in body:
            for _ in range(_times(number(self.model.value(item.every)), turn)):
                if isinstance(item, Loop) and id(item) not in self.computed:
                    yield from self._loop(item, counts)
                else:
                    yield from self._leaf(item)

    def _loop(self, loop: Loop, counts: Mapping[int, int]) -> Iterator[Event]:
        meets = any(isinstance(item, COMMUNICATION) for item in loop.body)
        count = counts.get(id(loop), repetitions(self.model, loop.count, loop.name))
        for turn in range(count):
            if meets:
                yield NewStep()
            yield from self._body(loop.body, counts, turn)

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
    """
    computed: dict[int, Compute] = {}
    exchanged: dict[int, Exchange] = {}

    def visit(body: Sequence[Item]) -> None:
        for item in body:
            if isinstance(item, Loop) and _communicates(item):
                visit(item.body)
                continue
            work = model.work_of(item)
            pure = 0.0 if isinstance(item, Pipeline) else number(computation(work))
            computed[id(item)] = Compute(pure, number(work.overhead))
            if isinstance(item, COMMUNICATION):
                exchanged[id(item)] = exchange(model, item)

    visit(model.signature.program)
    return Script(model, computed, exchanged)


def _communicates(loop: Loop) -> bool:
    return any(isinstance(item, COMMUNICATION) for item in items(loop.body))


def persistent_scores(processes: int, rng: np.random.Generator) -> Array:
    """Give standard normal scores for processes that are slow in every step.

    The scores that a sample of P has on average (G. Blom, 1958), in random order, centred, and
    scaled so that the largest one is the expected maximum q(P): one replay then stands for many.
    """
    normal = NormalDist()
    ranks = (np.arange(processes) + 1 - 0.375) / (processes + 0.25)
    scores = np.array([normal.inv_cdf(float(p)) for p in ranks])
    if processes > 1:
        scores *= expected_maximum(processes) / scores[-1]
    return rng.permutation(scores)


def transient_scores(processes: int, rng: np.random.Generator) -> Array:
    """Give standard normal scores for a step, less their mean: the whole work stays the same."""
    scores: Array = rng.standard_normal(processes)
    scores -= scores.mean()
    return scores


def unroll(
    script: Script, spread: Mapping[str, Any], seed: int, counts: Mapping[int, int]
) -> Unrolled:
    """Carry out a program step by step.

    Parameters
    ----------
    script : Script
        Its items.
    spread : mapping of str to value
        ``persistent_cv`` and ``transient_cv``; those missing are 0.
    seed : int
        Decides which processes are slow, and when.
    counts : mapping of int to int
        Iterations to carry out instead of all, by ``id`` of the loop.
    """
    processes = script.model.placement.processes
    rng = np.random.default_rng([seed, processes])
    persistent, transient = (
        number(spread.get(name, 0.0)) for name in ("persistent_cv", "transient_cv")
    )
    lasting = persistent * persistent_scores(processes, rng)
    parts: list[tuple[Exchange, Array, Array]] = []  # what is done, computation before, its factor
    pending, computing, factor = np.zeros(processes), np.zeros(processes), 1 + lasting
    work, steps = 0.0, 0
    for event in script.events(counts):
        match event:
            case NewStep():
                # no process has less than nothing to do
                now = transient * transient_scores(processes, rng) if transient else 0.0
                factor = np.maximum(1 + lasting + now, 0.0)
                steps += 1
            case Compute():
                pending = pending + (event.work * factor + event.overhead)
                computing += event.work * factor
                work += event.work
            case Exchange():
                parts.append((event, pending, factor))
                pending = np.zeros(processes)
                inside = event.program.compute() / _NS
                computing += inside * factor
                work += float(inside.mean())
    program, charges = _joined(parts, pending, script.model)
    return Unrolled(program, charges, computing, work, lasting, steps)


def _joined(
    parts: Sequence[tuple[Exchange, Array, Array]], tail: Array, model: Model
) -> tuple[Program, Charges]:
    """Put exchanges and the computation between them one after the other."""
    processes = tail.size
    counts = {id(part): np.diff(part.program.offsets) for part, _, _ in parts}
    total = sum((counts[id(part)] for part, _, _ in parts), np.zeros(processes, dtype=np.int64))
    offsets = np.concatenate([[0], np.cumsum(total)]).astype(np.int64)
    size = int(offsets[-1])
    kind, target, burst = np.empty(size, np.uint8), np.empty(size, np.int32), np.zeros(size)
    cursor, pending = offsets[:-1].copy(), np.zeros(processes)
    messages = collectives = 0
    for part, before, factor in parts:
        one, count = part.program, counts[id(part)]
        process = np.repeat(np.arange(processes), count)
        where = np.arange(one.operations) - one.offsets[process] + cursor[process]
        kind[where] = one.kind
        first = np.where(one.kind >= Op.COLLECTIVE, collectives, messages)
        target[where] = one.target + first
        burst[where] = one.burst * factor[process]
        pending += before * _NS
        acts = count > 0
        burst[cursor[acts]] += pending[acts]
        pending[acts] = 0.0
        pending += one.tail * factor
        cursor += count
        messages += len(one.messages)
        collectives += len(one.collectives)
    names = tuple(op.name.lower() for op in Op)
    program = Program(
        offsets=offsets,
        kind=kind,
        target=target,
        burst=burst,
        tail=pending + tail * _NS,
        messages=Messages(*_columns([part.program.messages for part, _, _ in parts], Messages)),
        collectives=Collectives(
            *_columns([part.program.collectives for part, _, _ in parts], Collectives)
        ),
        call=kind.astype(np.int32),
        call_name=names,
        call_code=np.arange(len(names), dtype=np.int32),
        call_time=np.zeros(len(names), dtype=np.int64),
        communicators={0: np.arange(processes, dtype=np.int32)},
        nodes=(np.arange(processes) // model.placement.per_node).astype(np.int32),
    )
    fields = [name for name in Charges.__annotations__ if name != "sender_waits_for_transfer"]
    every = {
        name: np.concatenate([getattr(part.charges, name) for part, _, _ in parts])
        for name in fields
    }
    return program, Charges(**every, sender_waits_for_transfer=True)


def _columns(tables: Sequence[Any], kind: type) -> list[NDArray[Any]]:
    return [
        np.concatenate([getattr(table, name) for table in tables]) for name in kind.__annotations__
    ]
