"""From the messages of a run to its grid of ranks and the patterns in it.

One grid is chosen for the whole program: that on which most bytes go between neighbours, if every
dimension of it is used. Every group of places (`popmodel.patterns.units`) is then read as the most
telling pattern that generates its messages; groups that follow one another become one pattern
where together they are one, such as the sides of a halo that are exchanged after each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.patterns.collectives import collectives
from popmodel.patterns.facts import of_list, of_pipeline
from popmodel.patterns.grid import ProcessGrid
from popmodel.patterns.grids import grids_of
from popmodel.patterns.groups import groups_of
from popmodel.patterns.pattern import Pattern
from popmodel.patterns.recognise import PatternReading, on_grid, readings
from popmodel.patterns.units import Class, PatternUnit
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.structure.structure import Structure


@dataclass(frozen=True)
class FoundCommunication:
    """What the communication of a run means."""

    # Of its ranks: the first explains most bytes, each further one most of what is left, where a
    # program arranges its ranks anew.
    grids: tuple[ProcessGrid, ...]
    why: str  # Why there is no grid, or what else the first could be
    patterns: tuple[Pattern, ...]  # In the order of their places

    @property
    def grid(self) -> ProcessGrid | None:
        """The grid that explains most bytes; None if there is none."""
        return self.grids[0] if self.grids else None


@dataclass(frozen=True)
class _FoundPattern:
    """A pattern of one unit, or of several that follow one another."""

    units: tuple[PatternUnit, ...]
    kind: str
    classes: tuple[tuple[Class, PatternReading], ...]
    also: tuple[str, ...]

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(place for unit in self.units for place in unit.places)


def patterns(structure: Structure) -> tuple[Pattern, ...]:
    """Patterns of a run, in the order of their places; see `find`."""
    return find(structure).patterns


def grid(structure: Structure) -> ProcessGrid | None:
    """Grid of the ranks of a run; None where its messages tell none."""
    return find(structure).grid


def find(structure: Structure) -> FoundCommunication:
    """Find the grid of ranks and the patterns of a run."""
    processes = structure.program.processes
    if len(structure.program.threads):
        why = "threads call MPI on their own: their messages are not read as patterns"
        return FoundCommunication((), why, tuple(collectives(structure)))
    groups = groups_of(structure, processes)
    grids, why = grids_of(groups, processes)
    dims = [each.dims for each in grids]
    found = _merged([each for unit in groups for each in _read(unit, processes, dims)])
    grids = [_with_periods(each, found) for each in grids]
    described = [_described(structure, each) for each in found]
    every = [*described, *collectives(structure)]
    every.sort(key=lambda pattern: pattern.places)
    return FoundCommunication(tuple(grids), why, tuple(every))


def _with_periods(grid: ProcessGrid, found: Iterable[_FoundPattern]) -> ProcessGrid:
    """The grid with all dimensions that a pattern on it wraps around."""
    wraps = [
        reading.facts["periodic"]
        for one in found
        for _, reading in one.classes
        if reading.facts.get("dims") == grid.dims
    ]
    return replace(grid, periodic=tuple(np.any([grid.periodic, *wraps], axis=0).tolist()))


def _read(
    unit: PatternUnit, processes: int, dims: Sequence[tuple[int, ...]]
) -> list[_FoundPattern]:
    """Patterns of one unit: one for each kind that its executions are."""
    kinds: dict[Any, list[tuple[Class, PatternReading]]] = {}
    also: dict[Any, tuple[str, ...]] = {}
    for each in unit.classes:
        first, *others = readings(each.messages, processes, dims)
        if unit.chained and _one_way(first):
            first, others = replace(first, kind="pipeline"), [first, *others]
        key = _shape(first)
        kinds.setdefault(key, []).append((each, first))
        also[key] = tuple(dict.fromkeys(other.kind for other in others if other.kind != "list"))
    return [_FoundPattern((unit,), key[0], tuple(each), also[key]) for key, each in kinds.items()]


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


def _merged(found: Sequence[_FoundPattern]) -> list[_FoundPattern]:
    """Make one of patterns that follow one another and are one together."""
    merged: list[_FoundPattern] = []
    for each in found:
        if merged and (both := _together(merged[-1], each)) is not None:
            merged[-1] = both
        else:
            merged.append(each)
    return merged


def _together(one: _FoundPattern, other: _FoundPattern) -> _FoundPattern | None:
    """Both as one pattern; None if they are not."""
    adjacent = (
        one.places[-1] + 1 == other.places[0]
        and one.units[-1].leaf == other.units[0].leaf
        and one.units[-1].leaf is not None
        and len(one.classes) == len(other.classes)
        and all(
            np.array_equal(a.executions, b.executions)
            for (a, _), (b, _) in zip(one.classes, other.classes, strict=True)
        )
    )
    if not adjacent:
        return None
    pairs = [
        (a, b, _union(reading, second) or _around(one, other, a, b, reading))
        for (a, reading), (b, second) in zip(one.classes, other.classes, strict=True)
    ]
    classes = tuple(
        (Class(a.executions, a.messages + b.messages), union)
        for a, b, union in pairs
        if union is not None
    )
    if len(classes) < len(pairs):
        return None
    also = tuple(kind for kind in one.also if kind in other.also)
    return _FoundPattern((*one.units, *other.units), classes[0][1].kind, classes, also)


def _around(
    one: _FoundPattern, other: _FoundPattern, a: Class, b: Class, reading: PatternReading
) -> PatternReading | None:
    """Two exchanges of pairs, each of one call, as the two ways around a dimension of two."""
    if "dims" not in reading.facts or len(one.units[-1].places) + len(other.places) > 2:
        return None
    both = on_grid(a.messages + b.messages, reading.facts["dims"])
    return both if both is not None and both.kind == "halo" else None


def _union(one: PatternReading, other: PatternReading) -> PatternReading | None:
    """Two readings as one: a halo of several directions, a butterfly of several stages."""
    even = one.even and other.even
    sides = {"halo", "shift"}
    if {one.kind, other.kind} <= sides and one.facts["dims"] == other.facts["dims"]:
        first, second = one.facts, other.facts
        moves = [way["move"] for way in (*first["directions"], *second["directions"])]
        if len(set(moves)) < len(moves):
            return None
        periodic = tuple(a or b for a, b in zip(first["periodic"], second["periodic"], strict=True))
        if not _consistent(first, periodic) or not _consistent(second, periodic):
            return None
        facts = {
            "dims": first["dims"],
            "periodic": periodic,
            "directions": [*first["directions"], *second["directions"]],
        }
        own = first.get("with_itself", 0) + second.get("with_itself", 0)
        return PatternReading("halo", {**facts, **({"with_itself": own} if own else {})}, even)
    if one.kind == other.kind == "butterfly":
        first, second = one.facts, other.facts
        if set(first["flips"]) & set(second["flips"]):
            return None
        facts = {key: (*first[key], *second[key]) for key in ("flips", "times", "bytes")}
        return PatternReading("butterfly", facts, even)
    return None


def _consistent(facts: Any, periodic: Sequence[bool]) -> bool:
    """Whether a part of a halo wraps around where the whole does, in the directions it has."""
    for axis, wraps in enumerate(periodic):
        goes = any(way["move"][axis] for way in facts["directions"])
        if goes and wraps != facts["periodic"][axis]:
            return False
    return True


def _described(structure: Structure, found: _FoundPattern) -> Pattern:
    """Say what was found in plain values, and whether it is exact."""
    executions = sum(len(each.executions) for each, _ in found.classes)
    messages = sum(len(each.executions) * len(each.messages) for each, _ in found.classes)
    size = sum(len(each.executions) * int(each.messages.size.sum()) for each, _ in found.classes)
    _, first = found.classes[0]
    facts: dict[str, Any] = dict(first.facts)
    if found.kind == "list":
        facts = of_list(found.classes[0][0], structure.program.processes)
    if found.kind == "pipeline":
        facts |= of_pipeline(structure, found.places[0], first)
    if len(found.classes) > 1:
        facts["sizes"] = [
            {"executions": len(each.executions), "bytes": int(each.messages.size.sum())}
            for each, _ in found.classes
        ]
    if found.also:
        facts["also"] = list(found.also)
    # where patterns take turns at the same places, each is exact by itself
    passes, spoken = found.units[0].passes, found.units[0].spoken
    checks = [
        (found.kind == "list", "no pattern generates these messages"),
        (len(found.classes) > 1, f"{len(found.classes)} different sets of messages"),
        (not all(reading.even for _, reading in found.classes), "sizes differ between processes"),
        (found.units[0].at_once, "sent and received in different loops, in whatever order"),
        (spoken < passes, f"at {spoken} of {passes} executions only"),
    ]
    why = [text for holds, text in checks if holds]
    return Pattern(
        kind=found.kind,
        places=found.places,
        executions=executions,
        messages=messages,
        bytes=size,
        facts=facts,
        exact=not why,
        why=", ".join(why),
    )
