"""A signature as the program of its processes: every iteration carried out, for the replay.

Computation comes from the terms of the model, spread over processes and steps by the imbalance of
the signature; communication is described once per item (`popmodel.model.script`) and
repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.values import NamedTuple, dataclass
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.memory_domains import Domains
from popmodel.model.run.operations import Inside, NotUnrolled
from popmodel.model.run.work import LARGEST, UnevenWork
from popmodel.model.script import (
    Compute,
    Counts,
    Place,
    ProcessLoad,
    Script,
    ScriptList,
    ScriptPart,
)
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.model.uncertainty import nominal
from popmodel.simulator.costs import Charges
from popmodel.simulator.program import Collectives, Op, Program, ProgramMessages

_NS = 1e9

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass
class UnrollGap:
    """What an average process computes between two communications, before the first or at last."""

    # By step, and whether items have a spread of their own: computation, s.
    loads: dict[tuple[int, bool], ProcessLoad] = field(default_factory=dict)
    listed: list[tuple[int, ScriptList]] = field(default_factory=list)
    overhead: float = 0.0  # The rest, s

    def add(self, compute: Compute, step: int) -> None:
        for load, is_own in ((compute.common, False), (compute.own, True)):
            if load.seconds:
                before = self.loads.get((step, is_own))
                self.loads[step, is_own] = load if before is None else before.plus(load)
        self.listed += [(step, item) for item in compute.listed]
        self.overhead += compute.overhead


class UnrollPart(NamedTuple):
    """One execution of a communication in a program."""

    step: int  # The step in which it is
    place: Place  # Which communication it is
    laid: _Laid  # What is the same in all of its executions
    first: Whole  # int64[k]: First operation in the whole program of the processes that act in it
    where: Whole  # int64[n]: Operations before which something is computed inside
    inside: Inside | None  # What it computes inside that processes share unevenly
    # int64[m] or None: Operations of the whole program before which that is, -1 after the last one
    # of the part.
    behind: Whole | None


class UnrollOutline(NamedTuple):
    """A program whose computation is that of an average process."""

    # What all processes do and what the machine's network charges; nothing is computed yet.
    program: Program
    charges: Charges
    parts: tuple[UnrollPart, ...]  # Communications in order
    gaps: list[UnrollGap]  # Before each of them and after the last one
    inside: Array  # float64[steps, P]: Computation inside of parts, ns
    loops: list[int]  # Of each step, the loop of which it is an iteration
    common: tuple[Whole, Whole, Array]  # Computation of common items: gap, step, s
    # float64[gaps, P] or None: By what all but overhead is multiplied because processes of a memory
    # domain are not busy as long; None where they are, or where chance decides who is.
    pace: Array | None


class CarriedLoops(NamedTuple):
    """A program of processes that have more and less to do."""

    program: Program  # What all processes do
    # Sum over all steps of the computation of the process that is the slowest in the step, s.
    slowest: float
    computed: Array  # float64[P]: Computation of every process, s
    # float64[P]: What it would take longer if the others of its memory domain were busy as long as
    # it, s.
    saved: Array


def persistent_scores(processes: int, rng: np.random.Generator) -> Array:
    """Return standard normal scores for processes that are slow in every step.

    The scores that a sample of P has on average (G. Blom, 1958), in random order, centred, and
    scaled so that the largest one is the expected maximum q(P): one replay then stands for many.
    """
    return rng.permutation(_rising_scores(processes))


@lru_cache(maxsize=8)
def _rising_scores(processes: int) -> Array:
    normal = NormalDist()
    ranks = (np.arange(processes) + 1 - 0.375) / (processes + 0.25)
    scores = np.array([normal.inv_cdf(float(p)) for p in ranks])
    return scores * (expected_maximum(processes) / scores[-1]) if processes > 1 else scores


def with_one(factors: Array, holder: int, level: float) -> Array:
    """Return factors of processes of which one is a level or more, the rest as much less.

    The sum stays what it is.
    """
    most, total = float(factors[holder]), float(factors.sum())
    level = min(level, total)
    if level <= most or most == total:
        return factors
    found: Array = factors * ((total - level) / (total - most))
    found[holder] = level
    return found


def transient_scores(steps: int, processes: int, rng: np.random.Generator) -> Array:
    """Return standard normal scores for steps, less their means: the whole work stays the same.

    Shape (steps, P); the first of many steps are those of few.
    """
    scores: Array = rng.standard_normal((steps, processes))
    scores -= scores.mean(axis=1, keepdims=True)
    return scores


def outline(script: Script, counts: Counts) -> UnrollOutline:
    placement = script.point.placement
    meetings: list[tuple[ScriptPart, int]] = []  # what is done, and in which step
    gaps, step = [UnrollGap()], -1
    loops: list[int] = []
    for event in script.events(counts):
        match event:
            case int():
                step += 1
                loops.append(event)
            case Compute():
                gaps[-1].add(event, step)
            case ScriptPart():
                meetings.append((event, step))
                gaps.append(UnrollGap())
    if not meetings:  # such as what is done every 5th time in a loop of 4
        raise NotUnrolled("no messages in so few steps")
    inside = np.zeros((step + 1, placement.processes))
    program, charges, parts = _joined(meetings, placement.per_node)
    for part, (event, _) in zip(parts, meetings, strict=True):
        assert event.meeting is not None
        inside[part.step] += event.meeting.program.compute()
    rows = [
        (number, at, load.seconds)
        for number, gap in enumerate(gaps)
        for (at, is_own), load in gap.loads.items()
        if not is_own
    ]
    number, at, seconds = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    common = number.astype(np.int64), at.astype(np.int64), seconds
    pace = _pace(script.point, gaps)
    return UnrollOutline(program, charges, parts, gaps, inside, loops, common, pace)


def _pace(point: ModelPoint, gaps: Sequence[UnrollGap]) -> Array | None:
    """Find by what computation is multiplied where processes leave their memory to others."""
    crowded = (
        any(load.crowding for load in (*gap.loads.values(), *(item.load for _, item in gap.listed)))
        for gap in gaps
    )
    if not any(crowded):
        return None
    domains = Domains.of(point.placement, point.parameters)
    known: dict[object, Array] = {}
    found = np.ones((len(gaps), point.placement.processes))
    for number, gap in enumerate(gaps):
        if not any(item.is_known for _, item in gap.listed):
            continue
        alike = ProcessLoad()
        for load in gap.loads.values():
            alike = alike.plus(load)
        key = alike, tuple(id(item) for _, item in gap.listed)
        if key not in known:  # most of them come again in every step
            together = np.zeros((3, point.placement.processes))
            every = [(alike, np.ones(1)), *((item.load, item.levels) for _, item in gap.listed)]
            for load, levels in every:
                together += np.outer((load.seconds, load.crowding, load.moved), levels)
            known[key] = domains.paces(*together)
        found[number] = known[key]
    return found


def carry_out(outline: UnrollOutline, spread: Mapping[str, Any], seed: int) -> CarriedLoops:
    """Let some processes have more to do than others."""
    program = outline.program
    processes = program.processes
    rng = np.random.default_rng([seed, processes])
    persistent, transient = (
        nominal(spread.get(name, 0.0)) for name in ("persistent_cv", "transient_cv")
    )
    scores = persistent_scores(processes, rng)
    holder, level = int(np.argmax(scores)), 1 + nominal(spread.get(LARGEST, 0.0))

    def lasting(cv: float) -> Array:
        return with_one(1 + cv * scores, holder, level)

    turns = np.zeros((len(outline.inside), processes))
    many = [item for gap in outline.gaps for _, item in gap.listed]
    loads = (load for gap in outline.gaps for (_, is_own), load in gap.loads.items() if is_own)
    if transient or any(load.turns for load in loads) or any(item.cv[1] for item in many):
        # loops draw from streams of their own: fewer iterations of one change no other
        loops = np.array(outline.loops)
        for loop in set(outline.loops):
            of_loop = np.flatnonzero(loops == loop)
            stream = np.random.default_rng([seed, processes, 1, loop])
            turns[of_loop] = transient_scores(len(of_loop), processes, stream)
    # nobody has less than nothing to do
    factors = np.maximum(lasting(persistent) + transient * turns, 0.0)
    # items and communications draw from streams of their own, as loops do
    uneven = {item.place: item.parts for item in many}
    uneven |= {part.place: part.inside.parts for part in outline.parts if part.inside is not None}
    shares = {
        place: Factors(parts, processes, [seed, processes, 2, *place])
        for place, parts in uneven.items()
    }

    def of_own(load: ProcessLoad, step: int) -> Array:
        ranks = load.seconds * lasting(load.lasting / load.seconds)
        mine: Array = np.maximum(ranks + load.turns * turns[step], 0.0)
        return mine

    def of_listed(item: ScriptList, step: int) -> Array:
        """Work of every process over that of an average one."""
        persistent, transient = item.cv
        known, varied = shares[item.place], transient * turns[step]
        drawn = known.next(lasting(persistent) - 1, varied, item.executions)
        levels = [
            part.share * (1.0 if part.ranks is None else part.ranks) * factor
            for part, factor in zip(item.parts, drawn, strict=True)
        ]
        level: Array = np.sum(levels, axis=0)
        return level

    # what is computed before each communication, ns: that of common items in all gaps at once
    ready = np.zeros((len(outline.gaps), processes))
    where, step_of, seconds = outline.common
    rows = [(where, step_of, seconds[:, None] * factors[step_of])]
    for number, gap in enumerate(outline.gaps):
        ready[number] = _NS * gap.overhead
        each = [(at, of_own(load, at)) for (at, is_own), load in gap.loads.items() if is_own]
        for at, item in gap.listed:
            level_of = of_listed(item, at)
            each.append((at, item.load.seconds * level_of))
            ready[number] += _NS * item.overhead * level_of
        rows += [(np.array([number]), np.array([at]), mine[None]) for at, mine in each]
    where, step_of, computed = (np.concatenate(column) for column in zip(*rows, strict=True))
    computed *= _NS
    paced = computed if outline.pace is None else computed * outline.pace[where]
    in_step = outline.inside * factors
    _add_rows(ready, where, paced)
    _add_rows(in_step, step_of, paced)
    burst, pending = np.zeros(program.operations), np.zeros(processes)
    for part, computing in zip((*outline.parts, None), ready, strict=True):
        pending += computing
        if part is None:
            break
        laid = part.laid
        if part.where.size:
            burst[part.where] = laid.burst * factors[part.step][laid.computing]
        burst[part.first] += pending[laid.acting]
        pending[laid.acting] = 0.0
        if laid.tail is not None:
            pending += laid.tail * factors[part.step]
        if part.inside is not None and part.behind is not None:
            inside, step = part.inside, part.step
            drawn = shares[part.place].next(lasting(persistent) - 1, transient * turns[step])
            mine = inside.seconds * _NS * drawn[inside.part, inside.process]
            in_step[step] += np.bincount(inside.process, mine, processes)
            among = part.behind >= 0
            np.add.at(burst, part.behind[among], mine[among])
            pending += np.bincount(inside.process[~among], mine[~among], processes)
    slowest = float(in_step.max(axis=1).sum()) / _NS
    done = replace(program, burst=burst, tail=pending)
    saved = (computed - paced).sum(axis=0) / _NS
    return CarriedLoops(done, slowest, in_step.sum(axis=0) / _NS, saved)


def _add_rows(table: Array, rows: Whole, values: Array) -> None:
    """Add values to rows of a table, some of which come several times."""
    order = np.argsort(rows, kind="stable")
    starts = np.flatnonzero(np.diff(rows[order], prepend=-1))
    if starts.size:
        table[rows[order[starts]]] += np.add.reduceat(values[order], starts, axis=0)


class _Laid(NamedTuple):
    """What is the same of a communication wherever it stands in the program."""

    operations: Whole  # Of every process
    # Of every operation, its process, and how many that has before it.
    process: Whole
    behind: Whole
    is_collective: NDArray[np.bool_]  # Whether it is one of all
    acting: Whole  # Processes with an operation
    # Operations with a computation before them, the process of each, and the computation, ns.
    computes: Whole
    computing: Whole
    burst: Array
    tail: Array | None  # Computation after the last operation, ns; None for none

    @staticmethod
    def of(program: Program) -> _Laid:
        """Lay out the program of a communication alone."""
        count = np.diff(program.offsets)
        process = np.repeat(np.arange(len(count)), count)
        computes = np.flatnonzero(program.burst)
        return _Laid(
            count,
            process,
            np.arange(program.operations) - program.offsets[process],
            program.kind >= Op.COLLECTIVE,
            np.flatnonzero(count),
            computes,
            process[computes],
            program.burst[computes].astype(np.float64, copy=False),
            program.tail if program.tail.any() else None,
        )


def _joined(
    meetings: Sequence[tuple[ScriptPart, int]], per_node: int
) -> tuple[Program, Charges, tuple[UnrollPart, ...]]:
    """Put communications one after the other."""
    one_of_each = {one.place: one.meeting for one, _ in meetings if one.meeting is not None}
    laid = {place: _Laid.of(one.program) for place, one in one_of_each.items()}
    processes = next(iter(one_of_each.values())).program.processes
    total = sum((laid[one.place].operations for one, _ in meetings), np.zeros(processes, np.int64))
    offsets = np.concatenate([[0], np.cumsum(total)]).astype(np.int64)
    size = int(offsets[-1])
    kind, target = np.empty(size, np.uint8), np.empty(size, np.int32)
    cursor = offsets[:-1].copy()
    messages = collectives = 0
    parts: list[UnrollPart] = []
    for meeting, step in meetings:
        operations, here = one_of_each[meeting.place], laid[meeting.place]
        one, inside = operations.program, operations.inside
        where = here.behind + cursor[here.process]
        kind[where] = one.kind
        target[where] = one.target + np.where(here.is_collective, collectives, messages)
        behind = None
        if inside is not None:
            behind = inside.where - one.offsets[inside.process] + cursor[inside.process]
            behind = np.where(inside.where >= 0, behind, -1)
        first, computes = cursor[here.acting], where[here.computes]
        parts.append(UnrollPart(step, meeting.place, here, first, computes, inside, behind))
        cursor += here.operations
        messages += len(one.messages)
        collectives += len(one.collectives)
    communicators = {0: np.arange(processes, dtype=np.int32)}
    renamed = {place: _renamed(one.program, communicators) for place, one in one_of_each.items()}
    every_one = [one_of_each[one.place] for one, _ in meetings]
    names = tuple(op.name.lower() for op in Op)
    program = Program(
        offsets=offsets,
        kind=kind,
        target=target,
        burst=np.zeros(size),
        tail=np.zeros(processes),
        messages=ProgramMessages(**_columns([one.program.messages for one in every_one])),
        collectives=Collectives(**_columns([renamed[one.place] for one, _ in meetings])),
        call=kind.astype(np.int32),
        call_name=names,
        call_code=np.arange(len(names), dtype=np.int32),
        call_time=np.zeros(len(names), dtype=np.int64),
        communicators=communicators,
        nodes=(np.arange(processes) // per_node).astype(np.int32),
    )
    charges = Charges(**_columns([one.charges for one in every_one]))
    return program, charges, tuple(parts)


def _renamed(part: Program, communicators: dict[int, NDArray[np.int32]]) -> Collectives:
    """Return the communicators of a part numbers that no other part uses, and add them."""
    first = len(communicators) - 1
    own = part.collectives.communicator
    communicators |= {
        number + first: members for number, members in part.communicators.items() if number
    }
    return replace(part.collectives, communicator=np.where(own > 0, own + first, 0))


def _columns(tables: Sequence[Any]) -> dict[str, Any]:
    """Arrays one after the other, and what is the same in all tables, by name."""
    return {
        name: np.concatenate([getattr(table, name) for table in tables])
        if isinstance(value, np.ndarray)
        else value
        for name, value in vars(tables[0]).items()
    }


# What each process has to do in each step, where more is known of it than a spread.


class _Decks:
    """Deals out factors, execution by execution.

    Every process takes the values of a part in an order of its own until none is left, and then
    again: after as many executions as there are values it has done all of them once, so that its
    whole work is exact. Parts with as many values share a deck.
    """

    def __init__(self, values: Sequence[Array], processes: int, stream: Sequence[int]) -> None:
        sizes = sorted({one.size for one in values})
        self._shape = len(values), processes
        self._decks = []
        for size in sizes:
            rows = [row for row, one in enumerate(values) if one.size == size]
            many = np.stack([values[row] for row in rows])
            self._decks.append((rows, many, _deck(many, processes, [*stream, size])))

    def mean(self, times: int) -> Array:
        """Return the mean of the next executions: a deck that is dealt out whole has its own."""
        found = np.empty(self._shape)
        for rows, values, deck in self._decks:
            whole, rest = divmod(times, values.shape[1])
            total = sum((next(deck) for _ in range(rest)), np.zeros((len(rows), self._shape[1])))
            found[rows] = (whole * values.sum(axis=1, keepdims=True) + total) / times
        return found


def _deck(values: Array, processes: int, stream: Sequence[int]) -> Iterator[Array]:
    """Deal out the values of parts that have as many."""
    rng = np.random.default_rng(stream)
    whole = np.repeat(values[:, :, None], processes, axis=2)
    while True:
        shuffled = rng.permuted(whole, axis=1)
        yield from shuffled.transpose(1, 0, 2)


class Factors:
    """By what the work of processes is multiplied in each execution of some parts."""

    def __init__(self, parts: Sequence[UnevenWork], processes: int, stream: Sequence[int]) -> None:
        self._known = np.array([one.ranks is not None for one in parts])[:, None]
        self._sequence = {
            row: one.sequence for row, one in enumerate(parts) if one.sequence is not None
        }
        self._drawn = [
            row
            for row, one in enumerate(parts)
            if one.turns is not None and row not in self._sequence
        ]
        turns = [parts[row].turns for row in self._drawn]
        self._decks = _Decks([one for one in turns if one is not None], processes, stream)
        self._execution = 0

    def next(self, lasting: Array, turns: Array, times: int = 1) -> Array:
        """Return the mean factors of the next executions, those of known processes left out."""
        base = np.where(self._known, 1.0, 1.0 + lasting)
        # where processes are known, they vary in proportion to what they have to do
        found: Array = np.maximum(base + turns, 0.0)
        if self._drawn:
            found[self._drawn] = np.maximum(base[self._drawn], 0.0) * self._decks.mean(times)
        for row, sequence in self._sequence.items():
            passed = (self._execution + np.arange(times)) % sequence.shape[1]
            found[row] = sequence[:, passed].mean(axis=1)
        self._execution += times
        return found
