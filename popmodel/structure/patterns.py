"""From the messages of a run to its grid of ranks and the patterns in it.

One grid is chosen for the whole program: that on which most bytes go between neighbours, if every
dimension of it is used. Every group of places (`popmodel.structure.message_groups`) is then read as
the most telling pattern that generates its messages; groups that follow one another become one
pattern where together they are one, such as the sides of a halo that are exchanged after each
other. Collectives are told by place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.values import dataclass
from popmodel.simulator.program import COLLECTIVES, Op
from popmodel.structure.message_groups import GroupMessages, MessageGroup, message_groups
from popmodel.structure.pattern_kinds import (
    PatternReading,
    extents_of,
    joined,
    on_grid,
    readings,
)
from popmodel.structure.rank_formulas import colour
from popmodel.structure.structure import events_at, loops_around
from popmodel.structure.traffic import given

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.structure import Structure

_LEAST = 0.01
"""Share of the bytes between processes that a grid explains at least."""
_CLASSES = 64
"""Sets of messages, those with most bytes, that say which grid it is."""


@dataclass(frozen=True)
class ProcessGrid:
    """A grid of ranks."""

    # Extents; their product is the number of ranks. The last dimension varies fastest.
    dims: tuple[int, ...]
    periodic: tuple[bool, ...]  # Whether the last along a dimension is a neighbour of the first
    # Share of the bytes of all point-to-point messages that go as on this grid, 0 to 1.
    confidence: float = 1.0


@dataclass(frozen=True)
class Pattern:
    """What the calls at some places do together."""

    # halo, shift, pipeline, butterfly, transpose, ring, pairwise, root, collective or list.
    kind: str
    places: tuple[int, ...]  # Where, in order
    executions: int  # How often
    # Of all executions.
    messages: int
    bytes: int
    # What generates the messages, in plain values; by kind. ``also`` names the other kinds that
    # generate the same ones.
    facts: Mapping[str, Any]
    why: str = ""  # Why it is not exact

    @property
    def exact(self) -> bool:
        """Whether generating it gives the same messages (sender, receiver, bytes) each time."""
        return not self.why


@dataclass(frozen=True)
class FoundCommunication:
    """What the communication of a run means."""

    # Of its ranks: the first explains most bytes, each further one most of what is left, where a
    # program arranges its ranks anew.
    grids: tuple[ProcessGrid, ...]
    why: str  # Why there is no grid, or what else the first could be
    patterns: tuple[Pattern, ...]  # In the order of their places


@dataclass(frozen=True)
class _Candidate:
    """A pattern of one group of places, or of several that follow one another."""

    groups: tuple[MessageGroup, ...]
    classes: tuple[tuple[GroupMessages, PatternReading], ...]
    also: tuple[str, ...]

    @property
    def kind(self) -> str:
        return self.classes[0][1].kind

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(place for group in self.groups for place in group.places)


def find_communication(structure: Structure) -> FoundCommunication:
    """Find the grid of ranks and the patterns of a run."""
    processes = structure.program.processes
    if len(structure.program.threads):
        why = "threads call MPI on their own: their messages are not read as patterns"
        return FoundCommunication((), why, tuple(_collectives(structure)))
    groups = message_groups(structure, processes)
    grids, why = _grids(groups, processes)
    dims = [grid.dims for grid in grids]
    found = _merged([each for group in groups for each in _read(group, processes, dims)])
    every = [*(_described(structure, each) for each in found), *_collectives(structure)]
    every.sort(key=lambda pattern: pattern.places)
    return FoundCommunication(
        tuple(_with_periods(grid, found) for grid in grids), why, tuple(every)
    )


def _with_periods(grid: ProcessGrid, found: Iterable[_Candidate]) -> ProcessGrid:
    """The grid with all dimensions that a pattern on it wraps around."""
    wraps = [
        reading.facts["periodic"]
        for candidate in found
        for _, reading in candidate.classes
        if reading.facts.get("dims") == grid.dims
    ]
    return replace(grid, periodic=tuple(np.any([grid.periodic, *wraps], axis=0).tolist()))


# Which grids the ranks have.


def _grids(groups: Iterable[MessageGroup], processes: int) -> tuple[list[ProcessGrid], str]:
    """Choose the grid on which most bytes go between neighbours, then one for what is left."""
    classes = [each for group in groups for each in group.classes]
    if not classes:
        return [], "no process sends messages to another"
    # Bytes between processes; a message counts a little even if it is empty.
    between = [
        each.messages[each.messages["sender"] != each.messages["receiver"]] for each in classes
    ]
    weights = [
        len(each.executions) * int((messages["size"] + 1).sum())
        for each, messages in zip(classes, between, strict=True)
    ]
    total = sum(weights)
    rest = sorted(range(len(classes)), key=lambda row: -weights[row])[:_CLASSES]
    read = {
        dims: {
            row: reading
            for row in rest
            if (reading := on_grid(classes[row].messages, dims)) is not None
        }
        for dims in extents_of(processes)
    }
    grids: list[ProcessGrid] = []
    why = ""
    while rest:
        scores = {
            dims: sum(weights[row] for row in rest if row in found)
            for dims, found in read.items()
            if _uses_all(dims, [found[row] for row in rest if row in found])
        }
        # of equal ones the simplest
        best = max(scores, key=lambda dims: scores[dims], default=None)
        if best is None or scores[best] < _LEAST * total:
            break
        mine = [row for row in rest if row in read[best]]
        wraps = np.any([read[best][row].facts["periodic"] for row in mine], axis=0)
        grids.append(ProcessGrid(best, tuple(wraps.tolist()), scores[best] / max(total, 1)))
        ties = [dims for dims, score in scores.items() if score == scores[best] and dims != best]
        if len(grids) == 1 and ties:
            why = "as good: " + " or ".join(" x ".join(map(str, dims)) for dims in ties)
        elif len(grids) == 1 and processes == 2:
            why = "two processes are neighbours in whatever grid"
        rest = [row for row in rest if row not in mine]
    return grids, why if grids else "no grid of the ranks explains who sends to whom"


def _uses_all(dims: Sequence[int], found: Sequence[PatternReading]) -> bool:
    """Whether messages go along every dimension."""
    moves = [way["move"] for reading in found for way in reading.facts["directions"]]
    return bool(np.any(np.array(moves) != 0, axis=0).all()) if moves else not dims


# Which patterns groups of places are.


def _read(group: MessageGroup, processes: int, dims: Sequence[tuple[int, ...]]) -> list[_Candidate]:
    """Patterns of one group: one for each kind that its executions are."""
    kinds: dict[Any, list[tuple[GroupMessages, PatternReading]]] = {}
    also: dict[Any, tuple[str, ...]] = {}
    for each in group.classes:
        first, *others = readings(each.messages, processes, dims)
        if group.chained and _one_way(first):
            first, others = first._replace(kind="pipeline"), [first, *others]
        key = _shape(first)
        kinds.setdefault(key, []).append((each, first))
        also[key] = tuple(dict.fromkeys(other.kind for other in others if other.kind != "list"))
    return [_Candidate((group,), tuple(each), also[key]) for key, each in kinds.items()]


def _one_way(reading: PatternReading) -> bool:
    """Whether messages go one way along each dimension, and wrap around none."""
    moves = [way["move"] for way in reading.facts.get("directions", ())]
    return (
        bool(moves)
        and not any(reading.facts["periodic"])
        and not any(tuple(-step for step in move) in moves for move in moves)
    )


def _shape(reading: PatternReading) -> tuple[Any, ...]:
    """What readings of one pattern have in common: everything but sizes."""
    facts = {key: value for key, value in reading.facts.items() if key != "bytes"}
    ways = facts.pop("directions", ())
    return reading.kind, tuple(way["move"] for way in ways), repr(sorted(facts.items()))


def _merged(found: Sequence[_Candidate]) -> list[_Candidate]:
    """Make one of patterns that follow one another and are one together."""
    merged: list[_Candidate] = []
    for each in found:
        if merged and (both := _together(merged[-1], each)) is not None:
            merged[-1] = both
        else:
            merged.append(each)
    return merged


def _together(one: _Candidate, other: _Candidate) -> _Candidate | None:
    """Both as one pattern; None if they are not."""
    adjacent = (
        one.places[-1] + 1 == other.places[0]
        and one.groups[-1].leaf == other.groups[0].leaf
        and one.groups[-1].leaf is not None
        and len(one.classes) == len(other.classes)
        and all(
            np.array_equal(a.executions, b.executions)
            for (a, _), (b, _) in zip(one.classes, other.classes, strict=True)
        )
    )
    if not adjacent:
        return None
    few = len(one.groups[-1].places) + len(other.places) <= 2
    classes = []
    for (a, reading), (b, second) in zip(one.classes, other.classes, strict=True):
        messages = joined(a.messages, b.messages)
        union = _union(reading, second)
        if union is None and few and "dims" in reading.facts:
            # Two exchanges of pairs, each of one call, as the two ways around a dimension of two.
            around = on_grid(messages, reading.facts["dims"])
            union = around if around is not None and around.kind == "halo" else None
        if union is None:
            return None
        classes.append((GroupMessages(a.executions, messages), union))
    also = tuple(kind for kind in one.also if kind in other.also)
    return _Candidate((*one.groups, *other.groups), tuple(classes), also)


def _union(one: PatternReading, other: PatternReading) -> PatternReading | None:
    """Two readings as one: a halo of several directions, a butterfly of several stages."""
    even = one.even and other.even
    first, second = one.facts, other.facts
    if {one.kind, other.kind} <= {"halo", "shift"} and first["dims"] == second["dims"]:
        directions = [*first["directions"], *second["directions"]]
        periodic = tuple(a or b for a, b in zip(first["periodic"], second["periodic"], strict=True))
        if len({way["move"] for way in directions}) < len(directions) or not (
            _consistent(first, periodic) and _consistent(second, periodic)
        ):
            return None
        own = first.get("with_itself", 0) + second.get("with_itself", 0)
        facts = {"dims": first["dims"], "periodic": periodic, "directions": directions}
        return PatternReading("halo", {**facts, **({"with_itself": own} if own else {})}, even)
    if one.kind == other.kind == "butterfly" and not set(first["flips"]) & set(second["flips"]):
        facts = {key: (*first[key], *second[key]) for key in ("flips", "times", "bytes")}
        return PatternReading("butterfly", facts, even)
    return None


def _consistent(facts: Mapping[str, Any], periodic: Sequence[bool]) -> bool:
    """Whether a part of a halo wraps around where the whole does, in the directions it has."""
    for axis, wraps in enumerate(periodic):
        goes = any(way["move"][axis] for way in facts["directions"])
        if goes and wraps != facts["periodic"][axis]:
            return False
    return True


def _described(structure: Structure, found: _Candidate) -> Pattern:
    """Say what was found in plain values, and whether it is exact."""
    executions = sum(len(each.executions) for each, _ in found.classes)
    messages = sum(len(each.executions) * len(each.messages) for each, _ in found.classes)
    sizes = [int(each.messages["size"].sum()) for each, _ in found.classes]
    often = [len(each.executions) for each, _ in found.classes]
    each, reading = found.classes[0]
    facts: dict[str, Any] = dict(reading.facts)
    if found.kind == "list":
        facts = _facts_of_list(each.messages, structure.program.processes)
    if found.kind == "pipeline":
        facts |= _facts_of_pipeline(structure, found.places[0], reading)
    if len(found.classes) > 1:
        facts["sizes"] = [
            {"executions": times, "bytes": size} for times, size in zip(often, sizes, strict=True)
        ]
    if found.also:
        facts["also"] = list(found.also)
    # where patterns take turns at the same places, each is exact by itself
    passes = found.groups[0].passes
    spoken = sum(len(each.executions) for each in found.groups[0].classes)
    return Pattern(
        kind=found.kind,
        places=found.places,
        executions=executions,
        messages=messages,
        bytes=sum(times * size for times, size in zip(often, sizes, strict=True)),
        facts=facts,
        why=_reasons(
            (found.kind == "list", "no pattern generates these messages"),
            (len(found.classes) > 1, f"{len(found.classes)} different sets of messages"),
            (not all(each.even for _, each in found.classes), "sizes differ between processes"),
            (spoken < passes, f"at {spoken} of {passes} executions only"),
        ),
    )


def _reasons(*checks: tuple[bool, str]) -> str:
    return ", ".join(text for holds, text in checks if holds)


def _facts_of_pipeline(structure: Structure, place: int, reading: PatternReading) -> dict[str, Any]:
    """Which dimensions a wavefront crosses, which way, and in how many blocks."""
    moves = np.array([way["move"] for way in reading.facts["directions"]])
    dims = [int(axis) for axis in np.flatnonzero(moves.any(axis=0))]
    ways = moves.sum(axis=0)
    around = loops_around(structure.nest)[place]
    return {
        "crosses": dims,
        "direction": ["forward" if ways[axis] > 0 else "backward" for axis in dims],
        "blocks": around[-1].count if around else 1.0,
    }


def _facts_of_list(messages: NDArray[np.void], processes: int) -> dict[str, Any]:
    """Messages by offset of the receiver, modulo P, and how much processes send."""
    offsets, often = np.unique(
        (messages["receiver"] - messages["sender"]) % processes, return_counts=True
    )
    sent = np.bincount(messages["sender"], minlength=processes)
    return {
        "by_offset": [
            {
                "offset": int(offset) - processes if 2 * offset > processes else int(offset),
                "messages": int(times),
            }
            for offset, times in zip(offsets, often, strict=True)
        ],
        "per_process": [int(sent.min()), int(sent.max())],
    }


# Collectives by place: which, how much, and who takes part together.


def _collectives(structure: Structure) -> list[Pattern]:
    """One pattern for each place of collectives, in the order of the places.

    A collective that its members call at several places, such as both branches of a condition, is
    one of the first of these. Its `messages` are the collective operations, one for each
    communicator that carries it out; its `bytes` what all members give.
    """
    program, events = structure.program, structure.events
    arrives = np.flatnonzero(np.isin(program.kind, (Op.COLLECTIVE, Op.ARRIVE)))
    of = events.of_operation[arrives]
    called, row = structure.place[of], program.target[arrives]
    first = np.full(len(program.collectives), len(structure.places), called.dtype)
    np.minimum.at(first, row, called)
    place = first[row]
    amount = given(program)
    found = []
    for number, mine in enumerate(events_at(place, len(structure.places))):
        if len(mine):
            here = mine[called[mine] == number]
            passes = len(np.unique(structure.execution[of[here]]))
            places = tuple(np.unique(called[mine]).tolist())
            found.append(_collective(structure, places, arrives[mine], passes, amount))
    return found


def _collective(
    structure: Structure,
    places: tuple[int, ...],
    operations: NDArray[np.int64],
    passes: int,
    amount: NDArray[np.int64],
) -> Pattern:
    program = structure.program
    every = program.collectives
    used = np.unique(program.target[operations])
    kinds = [COLLECTIVES[kind] for kind in np.unique(every.kind[used])]
    sizes = np.maximum(every.sent[used], every.received[used])
    members = [_members(program, number) for number in np.unique(every.communicator[used]).tolist()]
    comm = _comm(members, program.processes)
    roots = np.unique(every.root[used])
    facts: dict[str, Any] = {
        "op": ", ".join(kinds),
        "call": structure.places[places[0]].name,
        "blocking": bool(np.all(program.kind[operations] == Op.COLLECTIVE)),
        "bytes_min": int(sizes.min()),
        "bytes_max": int(sizes.max()),
        "members": sorted({len(each) for each in members}),
        "comm": comm,
    }
    if roots.max() >= 0:
        facts["roots"] = roots.tolist()
    return Pattern(
        kind="collective",
        places=places,
        executions=passes,
        messages=len(used),
        bytes=int(amount[operations].sum()),
        facts=facts,
        why=_reasons(
            (len(kinds) > 1, "different collectives"),
            (sizes.min() != sizes.max(), "sizes differ"),
            (len(roots) > 1 and len(members) == 1, "roots differ"),
            # a member each time: no process is missing at one of the executions
            (
                len(operations) != passes * sum(map(len, members)),
                "some processes are not always there",
            ),
            (comm is None, "no formula tells the communicators apart"),
            (
                bool(np.isin(operations, program.uneven.operation).any()),
                "sizes differ between members",
            ),
        ),
    )


def _members(program: Program, communicator: int) -> NDArray[np.int32]:
    if communicator in program.communicators:
        members = program.communicators[communicator]
        return members[members < program.processes]
    return np.arange(program.processes, dtype=np.int32)


def _comm(members: Sequence[NDArray[np.int32]], processes: int) -> str | None:
    """``all``, or a formula of the rank whose value is the colour; None where there is none."""
    if len(members) == 1 and len(members[0]) == processes:
        return "all"
    ranks = np.concatenate(members)
    return colour(members, processes) if len(np.unique(ranks)) == len(ranks) else None
