"""Loops of a signature: whole iterations, iterations that differ, counts in several runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.expressions import parse
from popmodel.fit.counts import Count, exact_law
from popmodel.fit.law import FIT, law
from popmodel.patterns.table import iterations
from popmodel.signature.assumed_scaling import Amount, Constant, paths
from popmodel.signature.law_notes import Fitted, exactly, told
from popmodel.signature.outline import Calls, Meeting, Repeat, Work
from popmodel.simulator.program import Op
from popmodel.structure.nest import Leaf, Loop, leaves
from popmodel.units import count, plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.fit.samples import Sample
    from popmodel.patterns.table import Table
    from popmodel.signature.align_runs import AlignedRun
    from popmodel.signature.assumed_scaling import Key
    from popmodel.signature.outline import Node, Outline
    from popmodel.structure.nest import Nest, Place
    from popmodel.structure.structure import Structure


# How often loops are executed, from several runs: exact formulas where there are, else laws.


_FEW = 2
"""Counts that some formula of P gives by chance."""
_SAME = 1e-6
"""Relative difference of counts that are the same."""
_BY_DATA = 0.02
"""Relative error of counts that no formula gives, such as those of a solver that converges."""
_DIGITS = 9


@dataclass(frozen=True)
class Counts:
    """How often loops are executed in several runs."""

    laws: Fitted
    # By path of each loop, and () for the program: how often its body is executed in each run
    # for each time that it is in the first one.
    executions: Mapping[tuple[int, ...], NDArray[np.float64]]


def counted(outline: Outline, runs: Sequence[AlignedRun], assumed: Mapping[Key, Amount]) -> Counts:
    """Find formulas that give the counts of the loops of all runs, or laws that come near."""
    amounts: dict[Key, Amount] = {}
    laws: list[dict[str, Any]] = []
    notes: list[str] = []
    executions: dict[tuple[int, ...], NDArray[np.float64]] = {(): np.ones(len(runs))}
    by_data: dict[tuple[float, ...], list[tuple[Key, float]]] = {}
    for path, node in paths(outline.body):
        if not isinstance(node, Repeat):
            continue
        around = executions[path[:-1]]
        inside = _places(outline, node.body)
        often = np.array([run.turns(inside, runs[0]) for run in runs])
        ratio = np.divide(often, around, out=np.ones(len(runs)), where=around > 0)
        executions[path] = ratio * around
        has = (often > 0) & (around > 0)
        if np.ptp(ratio[has]) <= _SAME * ratio[has].max(initial=0.0):
            in_all = "the same in all runs" + ("" if has.all() else " that have it")
            amounts["count", path] = Amount(assumed["count", path].formula, note=in_all)
            continue
        samples = _samples(runs, np.where(has, ratio, 0.0), node.count)
        exact = exact_law(samples, ("1", *runs[0].parameters))
        if exact is not None and exact.origin == FIT and _is_sure(exact, samples):
            what = f"iterations of {node.name}"
            amounts["count", path] = Amount(exact.text, note=f"{exact.origin}: exact in all runs")
            laws.append(exactly(what, exact, len(samples)))
            notes += [f"{what}: {note}" for note in exact.notes]
            continue
        key = tuple(np.where(has, ratio, 0.0).round(_DIGITS).tolist())
        by_data.setdefault(key, []).append((("count", path), node.count))
    for number, (ratio, members) in enumerate(by_data.items(), start=1):
        named = max(members, key=lambda member: member[1])[1]
        samples = [
            replace(one, relative_error=_BY_DATA) for one in _samples(runs, np.array(ratio), named)
        ]
        what = f"iterations of {plural(len(members), 'loop')} whose number data may decide"
        found = law(samples, hints=("1",))
        constants = tuple(
            Constant(
                f"n{number}_{key}", one.value, one.low, one.high, "1", one.origin,
                f"{what}, {one.meaning}",
            )
            for key, one in found.constants.items()
        )  # fmt: skip
        text = found.text(f"n{number}_")
        for key, times in members:
            part = text if times == named else f"{times / named:.12g}*({text})"
            formula = f"max(floor({part} + 1/2), 1)"
            amounts[key] = Amount(formula, constants, note=f"{found.origin}: near {found.form}")
        laws.append(told(what, "1", found, None))
        notes += [f"{what}: {note}" for note in found.notes]
    return Counts(Fitted(amounts, {}, tuple(laws), tuple(notes)), executions)


def _samples(runs: Sequence[AlignedRun], ratio: NDArray[np.float64], count: float) -> list[Sample]:
    """Counts in the runs that have a loop, by how they are over that of the first one."""
    return [
        run.sample(count * float(one), 0.0) for run, one in zip(runs, ratio, strict=True) if one > 0
    ]


def _is_sure(found: Count, samples: Sequence[Sample]) -> bool:
    """Whether a formula is no chance: some formula of P or T gives most pairs of counts."""
    return parse(found.text).names.isdisjoint(("P", "T")) or len(samples) > _FEW


def _places(outline: Outline, body: Sequence[Node]) -> list[int]:
    """Places directly in a body, in loops inside if there are none."""
    found: list[int] = []
    for node in body:
        match node:
            case Work():
                found.append(outline.points[node.point].place)
            case Calls():
                found += node.places
            case Meeting():
                found.append(node.place)
            case Repeat():
                pass
    if not found:
        for node in body:
            if isinstance(node, Repeat):
                found += _places(outline, node.body)
    return [place for place in found if place >= 0]


# How the iterations of a loop differ, and the loops with equal iterations that do the same.
#
# Iterations differ where a place is passed in some of them only, or an inner loop has another
# count.
# What comes again and again (every fifth step ends with a reduction) becomes a loop around its
# period; a few stretches of equal iterations become loops one after the other.


_MOST = 16
"""Stretches one after the other, or steps of a period, that are still worth writing out."""


@dataclass(frozen=True)
class Step:
    """Iterations that do the same."""

    count: int  # How many follow one another
    # int64[n]: Executions of the body that they are, over all executions of the loop.
    which: NDArray[np.int64]


@dataclass(frozen=True)
class Stretch:
    """Steps that are repeated."""

    count: int  # How often
    steps: tuple[Step, ...]  # In order


@dataclass(frozen=True)
class Turns:
    """A loop as stretches, one after the other, and what they do not say."""

    stretches: tuple[Stretch, ...]
    notes: tuple[str, ...] = ()


def turns(table: Table, loop: Loop, executions: int, which: NDArray[np.int64], name: str) -> Turns:
    """Find out how the iterations of a loop differ."""
    first = iterations(loop, executions)
    counts = first[which + 1] - first[which]
    kinds = _kinds(table, loop, int(first[-1]))
    notes: list[str] = []
    length = round(float(counts.mean()))
    if (counts != length).any():
        notes.append(
            f"{name} has {int(counts.min())} to {int(counts.max())} iterations: written as "
            f"{length}, their mean"
        )
        every = np.concatenate([np.arange(first[one], first[one + 1]) for one in which])
        return Turns((Stretch(length, (Step(1, every),)),) if length else (), tuple(notes))
    if not length:
        return Turns(())
    rows = first[which][:, None] + np.arange(length)  # executions x iterations
    of_first = kinds[rows[0]]
    if (kinds[rows] != of_first).any():
        notes.append(f"executions of {name} differ in what iterations do: the first is kept")
    stretches = _stretches(of_first)
    if stretches is None:
        number = plural(len(np.unique(of_first)), "kind")
        notes.append(
            f"the {count(length)} iterations of {name} are of {number} in no simple order: "
            "written as if each did all"
        )
        stretches = [(length, [(1, np.arange(length))])]
    return Turns(
        tuple(
            Stretch(
                times,
                tuple(Step(number, rows[:, turn].reshape(-1)) for number, turn in steps),
            )
            for times, steps in stretches
        ),
        tuple(notes),
    )


def _kinds(table: Table, loop: Loop, total: int) -> NDArray[np.int64]:
    """A number for each iteration of a loop, equal where the same is there: int64[total]."""
    columns: list[NDArray[np.int64]] = []
    for node in loop.body:
        if isinstance(node, Leaf):
            there = [(table.event[place][:, :total] >= 0).any(axis=0) for place in node.places]
            columns += [np.asarray(one, dtype=np.int64) for one in there]
        else:
            columns.append(_executions(table, node, total))
    stacked = np.stack(columns, axis=1)
    _, found = np.unique(stacked, axis=0, return_inverse=True)
    return np.asarray(found.reshape(-1), dtype=np.int64)


def _executions(table: Table, loop: Loop, total: int) -> NDArray[np.int64]:
    """A number for each execution of a loop, equal where all of its iterations are: int64[n]."""
    first = iterations(loop, total)
    inner = _kinds(table, loop, int(first[-1]))
    numbers: dict[bytes, int] = {}
    spans = pairwise(first.tolist())
    found = [numbers.setdefault(inner[a:b].tobytes(), len(numbers)) for a, b in spans]
    return np.array(found, dtype=np.int64)


def _stretches(
    kinds: NDArray[np.int64],
) -> list[tuple[int, list[tuple[int, NDArray[np.int64]]]]] | None:
    """Stretches of equal iterations: (count, [(count, iterations)]); None for no simple order."""
    runs = _runs(kinds)
    if len(runs) == 1:
        return [(len(kinds), [(1, np.arange(len(kinds)))])]
    for period in range(2, len(kinds) // 2 + 1):
        inside = _runs(kinds[:period])
        if len(inside) > _MOST or (kinds[period:] != kinds[:-period]).any():
            continue
        times = len(kinds) // period
        starts = np.arange(times)[:, None] * period
        steps = [(b - a, (starts + np.arange(a, b)).reshape(-1)) for a, b in inside]
        rest = _runs(kinds[times * period :])
        behind = times * period
        return [
            (times, steps),
            *((b - a, [(1, np.arange(behind + a, behind + b))]) for a, b in rest),
        ]
    if len(runs) <= _MOST:
        return [(b - a, [(1, np.arange(a, b))]) for a, b in runs]
    return None


def _runs(kinds: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Begin and end of stretches of equal values."""
    if not len(kinds):
        return []
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    return list(pairwise(edges))


# Iterations that complete what they begin, where the loops that were found begin in between.
#
# What repeats can be cut anywhere: a loop may begin with waits for requests of the iteration
# before,
# whose first ones stand in front of it and whose last ones wait behind it. Lists of calls complete
# what they begin, so such loops are turned until they begin behind these waits.


_WAITS = Op.WAIT_RECEIVE, Op.WAIT_SEND


def whole_iterations(structure: Structure) -> Structure:
    """Return a structure whose loops begin behind waits for what was begun before them.

    A loop is turned where the same waits follow it once more: they are those of its last iteration.
    What else is known of its iterations, such as when they begin, stays that of the loop as found.
    """
    turning = _Turning(structure)
    nest = turning.settled(structure.nest, 1)
    return turning.renumbered(nest) if turning.changed else structure


class _Turning:
    """Places and executions of events, while loops are turned; new places get further numbers."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.changed = False
        self.places = list(structure.places)
        self.place = structure.place.astype(np.int64)
        self.execution = structure.execution.astype(np.int64)
        self.waits = _waiting(structure)

    def settled(self, nodes: Sequence[Loop | Leaf], executions: int) -> tuple[Loop | Leaf, ...]:
        """Turn the loops among some nodes, the last one first, and those inside."""
        behind: list[Loop | Leaf] = []
        for index in range(len(nodes) - 1, -1, -1):
            node = nodes[index]
            if isinstance(node, Loop):
                bounds = iterations(node, executions)
                node = replace(node, body=self.settled(node.body, int(bounds[-1])))
                behind = self.turned(node, bounds, behind)
            elif behind and isinstance(behind[0], Leaf):
                behind[0] = Leaf(node.places + behind[0].places)
            else:
                behind.insert(0, node)
        return tuple(behind)

    def turned(
        self, loop: Loop, bounds: NDArray[np.int64], behind: list[Loop | Leaf]
    ) -> list[Loop | Leaf]:
        """Return a loop and what stands behind it, with the waits that it began with before it."""
        waits = self.leading(loop)
        count = len(waits)
        following = behind[0].places if behind and isinstance(behind[0], Leaf) else ()
        alike = len(following) >= count and all(
            self.alike(one, other) for one, other in zip(waits, following, strict=False)
        )
        if not count or not alike or (np.diff(bounds) < 1).any():
            return [loop, *behind]
        self.changed = True
        before = tuple(self.copied(one) for one in waits)
        for one, first, last in zip(waits, before, following, strict=False):
            here = np.flatnonzero(self.place == one)
            is_first = np.isin(self.execution[here], bounds[:-1])
            opening, rest = here[is_first], here[~is_first]
            closing = np.flatnonzero(self.place == last)
            self.place[opening] = first
            self.execution[opening] = np.searchsorted(bounds, self.execution[opening])
            self.execution[rest] -= 1
            self.place[closing] = one
            self.execution[closing] = bounds[self.execution[closing] + 1] - 1
        head = loop.body[0]
        assert isinstance(head, Leaf)
        body = _joined(Leaf(head.places[count:]), *loop.body[1:], Leaf(waits))
        rest_of = Leaf(following[count:])
        return _joined(Leaf(before), replace(loop, body=tuple(body)), rest_of, *behind[1:])

    def leading(self, loop: Loop) -> tuple[int, ...]:
        """Places at the begin of a loop where nothing is done but waiting."""
        head = loop.body[0]
        if not isinstance(head, Leaf):
            return ()
        count = next((i for i, one in enumerate(head.places) if not self.waits[one]), None)
        return head.places[:count]

    def alike(self, one: int, other: int) -> bool:
        """Whether two places are of the same call."""
        first, second = self.places[one], self.places[other]
        return (first.name, first.inside) == (second.name, second.inside) and self.waits[other]

    def copied(self, place: int) -> int:
        """A new place of the same call."""
        self.places.append(self.places[place])
        self.waits.append(self.waits[place])
        return len(self.places) - 1

    def renumbered(self, nest: Nest) -> Structure:
        """The structure with places in the order of the program."""
        order = [place for leaf in leaves(nest) for place in leaf.places]
        number = np.full(len(self.places), -1, dtype=np.int64)
        number[order] = np.arange(len(order))
        leaf = [index for index, one in enumerate(leaves(nest)) for _ in one.places]

        def named(node: Loop | Leaf) -> Loop | Leaf:
            if isinstance(node, Leaf):
                return Leaf(tuple(number[list(node.places)].tolist()))
            return replace(node, body=tuple(map(named, node.body)))

        places: list[Place] = [
            replace(self.places[old], number=new, leaf=leaf[new]) for new, old in enumerate(order)
        ]
        return replace(
            self.structure,
            nest=tuple(map(named, nest)),
            places=tuple(places),
            place=number[self.place].astype(np.int32),
            execution=self.execution.astype(np.int32),
        )


def _waiting(structure: Structure) -> list[bool]:
    """Whether nothing is done at a place but waiting for messages: of each place."""
    program, events = structure.program, structure.events
    operation = np.arange(program.operations)
    event = np.searchsorted(events.first, operation, side="right") - 1
    other = ~np.isin(program.kind, _WAITS)
    found = np.ones(len(structure.places), dtype=bool)
    found[structure.place[event[other]]] = False
    found[structure.place[events.is_region]] = False
    waits: list[bool] = found.tolist()
    return waits


def _joined(*nodes: Loop | Leaf) -> list[Loop | Leaf]:
    """Nodes without empty leaves, and with one leaf for those that follow one another."""
    found: list[Loop | Leaf] = []
    for node in nodes:
        if isinstance(node, Leaf) and found and isinstance(found[-1], Leaf):
            found[-1] = Leaf(found[-1].places + node.places)
        elif not isinstance(node, Leaf) or node.places:
            found.append(node)
    return found
