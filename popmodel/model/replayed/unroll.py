"""A signature as the program of its processes: every iteration carried out, for the replay.

Computation comes from the terms of the model, spread over processes and steps by the imbalance of
the signature; communication is described once per item (`popmodel.model.replayed.script`) and
repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.model.replayed.domains import Domains
from popmodel.model.replayed.script import (
    Compute,
    Counts,
    Memory,
    NewStep,
    Own,
    Place,
    Script,
    ScriptList,
    ScriptMeeting,
)
from popmodel.model.replayed.shares import Factors
from popmodel.model.run.course import LARGEST
from popmodel.model.run.operations import Inside, NotUnrolled
from popmodel.model.run.point import ModelPoint
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.model.uncertainty import nominal
from popmodel.simulator.costs import Charges
from popmodel.simulator.program import Collectives, Op, Program, ProgramMessages
from popmodel.values import dataclass

_NS = 1e9

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class UnrollPart:
    """One execution of a communication in a program."""

    step: int  # The step in which it is
    # int64[k]: Processes that do something in it, and their first operation in the whole program.
    acting: Whole
    first: Whole
    # int64[n]: Operations before which something is computed inside, and their processes.
    where: Whole
    process: Whole
    burst: Array  # float64[n]: What an average process computes there, ns
    # float64[P] or None: What it computes after its last operation, ns; None if nothing.
    tail: Array | None
    place: Place = ()  # Which communication it is
    inside: Inside | None = None  # What it computes inside that processes share unevenly
    # int64[m] or None: Operations of the whole program before which that is, -1 after the last one
    # of the part.
    behind: Whole | None = None


@dataclass(frozen=True)
class UnrollOutline:
    """A program whose computation is that of an average process."""

    # What all processes do and what the machine's network charges; nothing is computed yet.
    program: Program
    charges: Charges
    parts: tuple[UnrollPart, ...]  # Communications in order
    # Before each part and after the last one: by step, computation that grows with the work of a
    # process, ns.
    work: tuple[dict[int, float], ...]
    own: tuple[dict[int, Own], ...]  # The same of items with a spread of their own, ns
    # The same of items of which more is known, with the step of each.
    listed: tuple[tuple[tuple[int, ScriptList], ...], ...]
    overhead: tuple[float, ...]  # The rest of what is computed there, ns
    # tuple of (float64[P] or None): By what that computation, but for the rest, is multiplied
    # because processes of a memory domain are not busy as long; None where they are, or where
    # chance decides who is.
    paces: tuple[Array | None, ...]
    inside: Array  # float64[steps, P]: Computation inside of parts, ns
    loops: tuple[int, ...]  # Of each step, the loop of which it is an iteration

    @property
    def steps(self) -> int:
        """Steps in which processes are slow in turns."""
        return len(self.inside)

    def in_step(self) -> Array:
        """Computation of an average process in every step, ns, shape (steps, P).

        That of items with a spread of their own left out.
        """
        found = self.inside.copy()
        for steps in self.work:
            for step, work in steps.items():
                found[step] += work
        return found


@dataclass(frozen=True)
class CarriedLoops:
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
    normal = NormalDist()
    ranks = (np.arange(processes) + 1 - 0.375) / (processes + 0.25)
    scores = np.array([normal.inv_cdf(float(p)) for p in ranks])
    if processes > 1:
        scores *= expected_maximum(processes) / scores[-1]
    return rng.permutation(scores)


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
    """Carry out a program step by step."""
    placement = script.point.placement
    meetings: list[tuple[ScriptMeeting, int]] = []  # what is done, and in which step
    work: list[dict[int, float]] = [{}]  # before each of them and after the last, by step
    own: list[dict[int, Own]] = [{}]
    listed: list[list[tuple[int, ScriptList]]] = [[]]
    overhead = [0.0]
    memory = [Memory()]
    step = -1
    loops: list[int] = []
    for event in script.events(counts):
        match event:
            case NewStep():
                step += 1
                loops.append(event.loop)
            case Compute():
                work[-1][step] = work[-1].get(step, 0.0) + event.work * _NS
                if event.own.work:
                    own[-1][step] = own[-1].get(step, Own()).plus(event.own.times(_NS))
                listed[-1] += [(step, one) for one in event.listed]
                overhead[-1] += event.overhead * _NS
                if event.memory.crowding:
                    memory[-1] = memory[-1].plus(event.memory)
            case ScriptMeeting():
                meetings.append((event, step))
                work.append({})
                own.append({})
                listed.append([])
                overhead.append(0.0)
                memory.append(Memory())
    if not meetings:  # such as what is done every 5th time in a loop of 4
        raise NotUnrolled("no messages in so few steps")
    inside = np.zeros((step + 1, placement.processes))
    for event, when in meetings:
        inside[when] += event.operations.program.compute()
    program, charges, parts = _joined(meetings, placement.per_node)
    paces = tuple(_paces(script.point, work, own, listed, memory))
    before = tuple(work), tuple(own), tuple(map(tuple, listed)), tuple(overhead), paces
    return UnrollOutline(program, charges, parts, *before, inside, tuple(loops))


def _paces(
    point: ModelPoint,
    work: Sequence[Mapping[int, float]],
    own: Sequence[Mapping[int, Own]],
    listed: Sequence[Sequence[tuple[int, ScriptList]]],
    memory: Sequence[Memory],
) -> Iterator[Array | None]:
    """By what the computations between communications are multiplied: `UnrollOutline.paces`."""
    crowded = any(one.crowding for one in memory) or any(
        one.memory.crowding for gap in listed for _, one in gap
    )
    if not crowded:
        yield from repeat(None, len(work))
        return
    domains = Domains.of(point.placement, point.parameters)
    known: dict[object, Array] = {}
    for common, owned, uneven, beside in zip(work, own, listed, memory, strict=True):
        if not any(one.is_known for _, one in uneven):
            yield None
            continue
        seconds = (sum(common.values()) + sum(one.work for one in owned.values())) / _NS
        key = seconds, beside, tuple(id(one) for _, one in uneven)
        if key not in known:  # most of them come again in every step
            all_alike = np.array([seconds, *beside])[:, None]
            loads = np.repeat(all_alike, point.placement.processes, axis=1)
            for _, one in uneven:
                loads += np.outer([one.seconds, *one.memory], one.levels)
            known[key] = domains.paces(*loads)
        yield known[key]


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

    turns = np.zeros((outline.steps, processes))
    many = [one for gap in outline.listed for _, one in gap]
    if (
        transient
        or any(one.turns for steps in outline.own for one in steps.values())
        or any(one.transient for one in many)
    ):
        # loops draw from streams of their own: fewer iterations of one change no other
        loops = np.array(outline.loops)
        for loop in set(outline.loops):
            of_loop = np.flatnonzero(loops == loop)
            stream = np.random.default_rng([seed, processes, 1, loop])
            turns[of_loop] = transient_scores(len(of_loop), processes, stream)
    # nobody has less than nothing to do
    factors = np.maximum(lasting(persistent) + transient * turns, 0.0)

    def of_own(one: Own, step: int) -> Array:
        ranks = one.work * lasting(one.lasting / one.work) if one.work else one.lasting * scores
        mine: Array = np.maximum(ranks + one.turns * turns[step], 0.0)
        return mine

    def of_listed(one: ScriptList, step: int) -> tuple[Array, Array]:
        """What processes compute, and their overhead beside it."""
        several, transient = shares[one.place], one.transient * turns[step]
        drawn = several.next(lasting(one.persistent) - 1, transient, one.executions)
        levels = [
            part.share * (1.0 if part.ranks is None else part.ranks) * factor
            for part, factor in zip(one.parts, drawn, strict=True)
        ]
        level = _NS * np.sum(levels, axis=0)
        return one.seconds * level, one.overhead * level

    # items and communications draw from streams of their own, as loops do
    uneven = {one.place: one.parts for one in many}
    uneven |= {part.place: part.inside.parts for part in outline.parts if part.inside is not None}
    shares = {
        place: Factors(parts, processes, [seed, processes, 2, *place])
        for place, parts in uneven.items()
    }
    burst, pending = np.zeros(program.operations), np.zeros(processes)
    in_step = outline.in_step() * factors
    saved = np.zeros(processes)
    for part, steps, owned, known, rest, pace in zip(
        (*outline.parts, None),
        outline.work,
        outline.own,
        outline.listed,
        outline.overhead,
        outline.paces,
        strict=True,
    ):
        common = [(step, work * factors[step]) for step, work in steps.items()]
        others = [(step, of_own(one, step)) for step, one in owned.items()]
        for step, item in known:
            mine, beside = of_listed(item, step)
            others.append((step, mine))
            pending += beside
        for step, mine in others:
            in_step[step] += mine
        for step, mine in (*common, *others):
            pending += mine
            if pace is not None:
                less = mine * (1 - pace)
                pending -= less
                in_step[step] -= less
                saved += less
        pending += rest
        if part is None:
            break
        if part.where.size:
            burst[part.where] = part.burst * factors[part.step][part.process]
        burst[part.first] += pending[part.acting]
        pending[part.acting] = 0.0
        if part.tail is not None:
            pending += part.tail * factors[part.step]
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
    return CarriedLoops(done, slowest, in_step.sum(axis=0) / _NS, saved / _NS)


@dataclass(frozen=True)
class _Laid:
    """What is the same of a communication wherever it stands in the program."""

    count: Whole  # Operations of every process
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
    meetings: Sequence[tuple[ScriptMeeting, int]], per_node: int
) -> tuple[Program, Charges, tuple[UnrollPart, ...]]:
    """Put communications one after the other."""
    one_of_each = {one.place: one.operations for one, _ in meetings}
    laid = {place: _Laid.of(one.program) for place, one in one_of_each.items()}
    processes = meetings[0][0].operations.program.processes
    total = sum((laid[one.place].count for one, _ in meetings), np.zeros(processes, np.int64))
    offsets = np.concatenate([[0], np.cumsum(total)]).astype(np.int64)
    size = int(offsets[-1])
    kind, target = np.empty(size, np.uint8), np.empty(size, np.int32)
    cursor = offsets[:-1].copy()
    messages = collectives = 0
    parts: list[UnrollPart] = []
    for meeting, step in meetings:
        one, here = meeting.operations.program, laid[meeting.place]
        where = here.behind + cursor[here.process]
        kind[where] = one.kind
        target[where] = one.target + np.where(here.is_collective, collectives, messages)
        parts.append(
            UnrollPart(
                step,
                here.acting,
                cursor[here.acting],
                where[here.computes],
                here.computing,
                here.burst,
                here.tail,
                *_among(meeting, cursor),
            )
        )
        cursor += here.count
        messages += len(one.messages)
        collectives += len(one.collectives)
    communicators = {0: np.arange(processes, dtype=np.int32)}
    renamed = {place: _renamed(one.program, communicators) for place, one in one_of_each.items()}
    every_one = [one.operations for one, _ in meetings]
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


def _among(meeting: ScriptMeeting, cursor: Whole) -> tuple[Place, Inside | None, Whole | None]:
    """What processes share unevenly in a communication that begins at ``cursor``."""
    inside, first = meeting.operations.inside, meeting.operations.program.offsets
    if inside is None:
        return meeting.place, None, None
    where = inside.where - first[inside.process] + cursor[inside.process]
    return meeting.place, inside, np.where(inside.where >= 0, where, -1)


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
