"""Which places of a program are read together as one pattern."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.patterns.grid import extents_of
from popmodel.patterns.recognise import readings
from popmodel.patterns.units import Class, PatternUnit, at_once, units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from popmodel.structure.structure import Structure


def groups_of(structure: Structure, processes: int) -> list[PatternUnit]:
    """Group places; what only open requests hold together is divided if no pattern generates it."""
    smaller: dict[int, PatternUnit] = {}
    for unit in units(structure, requests=False):
        smaller |= dict.fromkeys(unit.places, unit)
    found: list[PatternUnit] = []
    for unit in units(structure):
        inside = list({id(one): one for p in unit.places if (one := smaller.get(p))}.values())
        if len(inside) > 1 and not _is_one(unit, processes):
            found += inside
        elif (
            unit.leaf is None
            and len(unit.classes) > 1
            and _is_one(whole := at_once(unit), processes)
        ):
            found.append(whole)
        else:
            found.append(unit)
    return _pairwise(found, processes)


def _is_one(unit: PatternUnit, processes: int) -> bool:
    """Whether a unit is one pattern, whose messages are there once if they are of one execution."""
    for each in unit.classes:
        first = readings(each.messages, processes, tuple(extents_of(processes)))[0]
        often = "times" in first.facts and not unit.at_once
        if first.kind == "list" or not first.even or often:
            return False
    return True


def _pairwise(groups: Sequence[PatternUnit], processes: int) -> list[PatternUnit]:
    """Make one unit of exchanges that follow each other and together are those of all pairs."""
    found: list[PatternUnit] = []
    run: list[PatternUnit] = []
    for unit in [*groups, None]:
        if run and not (unit is not None and _follows(run[-1], unit)):
            found += _all_pairs(run, processes)
            run = []
        if unit is not None:
            run.append(unit)
    return found


def _follows(one: PatternUnit, other: PatternUnit) -> bool:
    """Whether a unit stands right behind another and is carried out as often."""
    return (
        one.leaf is not None
        and one.leaf == other.leaf
        and one.places[-1] + 1 == other.places[0]
        and len(one.classes) == len(other.classes) == 1
        and len(one.classes[0].messages) == len(other.classes[0].messages)
        and np.array_equal(one.classes[0].executions, other.classes[0].executions)
    )


def _all_pairs(run: list[PatternUnit], processes: int) -> list[PatternUnit]:
    """The units of a run as one, if that is an exchange of all pairs of more than two."""
    if len(run) < processes - 1 or processes < 3:
        return run
    messages = run[0].classes[0].messages
    for unit in run[1:]:
        messages = messages + unit.classes[0].messages
    if readings(messages, processes, ())[0].kind != "pairwise":
        return run
    places = tuple(place for unit in run for place in unit.places)
    executions = run[0].classes[0].executions
    return [replace(run[0], places=places, classes=(Class(executions, messages),), chained=False)]
