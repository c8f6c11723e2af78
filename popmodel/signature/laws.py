"""Amounts of a signature from several runs: laws of P, T and the parameters of the problem."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.expressions import parse
from popmodel.fit.common_law import pooled
from popmodel.fit.law import FIT, TRACE
from popmodel.signature.assumed_scaling import SignatureAmount, SignatureConstant
from popmodel.signature.law_notes import FittedLaws, LawFactor, factor_of, told
from popmodel.signature.loops import counted
from popmodel.signature.message_sizes import likely_forms, sized
from popmodel.signature.names import TIME
from popmodel.signature.phase_times import Executed, PointTimes, alike, executed_by, paced
from popmodel.signature.threads import ACTIVE, beside_work, saturated
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.fit.samples import Sample
    from popmodel.signature.align_runs import AlignedRun, RunTable
    from popmodel.signature.assumed_scaling import Key
    from popmodel.signature.outline import Outline
    from popmodel.signature.recorded_times import Description


def fitted(
    table: RunTable,
    descriptions: Sequence[Description],
    assumed: Mapping[Key, SignatureAmount],
    scaling: str,
) -> FittedLaws:
    """Find the laws by which the amounts of a program grow."""
    outline, runs = table.outline, table.rows
    counts_of_loops = counted(outline, runs, assumed)
    often, times = counts_of_loops.laws, PointTimes(table, descriptions, counts_of_loops.executions)
    moved = sized(table)
    in_steps = any(
        key[0] == "count" and not amount.constants and "P" in parse(str(amount.formula)).names
        for key, amount in often.amounts.items()
    )
    amounts = {**assumed, **often.amounts, **moved.amounts}
    laws: list[dict[str, Any]] = []
    notes: list[str] = []
    let: dict[str, Any] = {}
    for in_teams in (False, True):
        points = [
            point
            for point, one in enumerate(descriptions)
            if one.mean > 0 and (outline.teams[point] is not None) is in_teams
        ]
        if points:
            samples = {point: times.seconds(point) for point in points}
            done = {point: times.instructions(point) for point in points}
            counts = {point: one for point, one in done.items() if one is not None}
            counts = counts if len(counts) == len(points) else {}
            part = _computing(samples, counts, outline, descriptions, runs, scaling, in_steps)
            amounts |= part.amounts
            let |= part.let
            laws += part.laws
            notes += part.notes
    beside = beside_work(outline, descriptions, runs)
    amounts |= beside.amounts
    let |= beside.let
    for part in (often, moved, beside):
        laws += part.laws
        notes += part.notes
    return FittedLaws(amounts, let, tuple(laws), tuple(dict.fromkeys(notes)))


@dataclass(frozen=True)
class _Group:
    """Parts that grow alike."""

    name: str  # Of their factor
    factor: LawFactor  # How they grow
    # Time of each where the factor is 1, and its interval, s.
    sizes: Mapping[int, tuple[float, float, float]]


def _computing(
    samples: Mapping[int, Sequence[Sample]],
    counts: Mapping[int, Sequence[Sample]],
    outline: Outline,
    descriptions: Sequence[Description],
    runs: Sequence[AlignedRun],
    scaling: str,
    in_steps: bool,
) -> FittedLaws:
    """Laws of phases, all serial or all parallel regions: one for those that grow alike.

    Where instructions were counted in all runs, those have laws as well, and times are these times
    seconds per instruction.
    """
    points = list(samples)
    in_teams = outline.teams[points[0]] is not None
    shared = ("1/(P*T)" if in_teams else "1/P") if scaling == "strong" else "1"
    # work that is shared out in steps whose number grows with P: a step has a P-th of a P-th
    likely = (*likely_forms(runs, shared), *(["1/P**2"] if in_steps else ()))
    prefix = "share" if in_teams else "work"
    labels = [outline.labels[point] for point in points]
    turns = [descriptions[point].executions for point in points]
    parts = _times_turns([samples[point] for point in points], turns)
    time = sum(point.total for point in outline.points) or 1.0
    shares = [outline.points[point].total / time for point in points]
    groups = _by_time(prefix, labels, parts, runs, scaling, likely, shares)
    amounts: dict[Key, SignatureAmount] = {
        ("seconds", point): SignatureAmount(0, note="0 in all runs") for point in points
    }
    let: dict[str, Any] = {}
    laws: list[dict[str, Any]] = []
    notes: list[str] = []
    if counts:
        counted_parts = _times_turns([counts[point] for point in points], turns)
        every = executed_by(prefix, labels, counted_parts, likely)
        for one in every:
            let |= one.factor.let
            laws += one.factor.laws
            notes += one.factor.notes
            for index in one.pool.sizes:
                amounts["instructions", points[index]] = one.amount(index, turns[index])
        by_count = _by_instructions(prefix, every, parts, counted_parts)
        if by_count and not any(ACTIVE in one.factor.let for one in groups):
            groups = by_count
    for group in groups:
        let |= group.factor.let
        laws += group.factor.laws
        notes += group.factor.notes
        shape = group.factor.constants
        for index, (value, low, high) in group.sizes.items():
            point, turn = points[index], turns[index]
            origin = FIT if sum(one.value > 0 for one in parts[index]) > 1 else TRACE
            constant = SignatureConstant(
                TIME + outline.names[point], value / turn, low / turn, high / turn, "s", origin,
                f"{labels[index]}, {group.factor.meaning}",
            )  # fmt: skip
            amounts["seconds", point] = SignatureAmount(
                f"{constant.name}*{group.name}", (constant, *shape)
            )
            shape = ()
    return FittedLaws(amounts, let, tuple(laws), tuple(notes))


def _times_turns(parts: Sequence[Sequence[Sample]], turns: Sequence[int]) -> list[list[Sample]]:
    return [
        [replace(one, value=one.value * count) for one in part]
        for part, count in zip(parts, turns, strict=True)
    ]


def _by_time(
    prefix: str,
    labels: Sequence[str],
    parts: Sequence[Sequence[Sample]],
    runs: Sequence[AlignedRun],
    scaling: str,
    likely: Sequence[str],
    shares: Sequence[float],
) -> list[_Group]:
    """Groups of parts by their times."""
    found = []
    for order, pool in enumerate(pooled(parts, hints=likely), start=1):
        name = prefix + (str(order) if order > 1 else "")
        what = alike([labels[index] for index in pool.sizes])
        values = {index: [one.value for one in parts[index]] for index in pool.sizes}
        sums = np.array([*values.values()]).sum(axis=0).tolist()
        full = saturated(name, what, sums, runs, scaling) if prefix == "share" else None
        if isinstance(full, LawFactor):
            sizes = {index: full.size(each) for index, each in values.items()}
            found.append(_Group(name, full, sizes))
            continue
        let, constants = factor_of(name, pool.law)
        law = told(what, "s", pool.law, sum(shares[index] for index in pool.sizes))
        notes = [f"{what}: {note}" for note in pool.law.notes]
        meaning = pool.law.constants["a"].meaning
        factor = LawFactor(let, constants, (), meaning, (law,), (*([full] if full else []), *notes))
        sizes = {index: (one.value, one.low, one.high) for index, one in pool.sizes.items()}
        found.append(_Group(name, factor, sizes))
    return found


def _by_instructions(
    prefix: str,
    every: Sequence[Executed],
    parts: Sequence[Sequence[Sample]],
    counts: Sequence[Sequence[Sample]],
) -> list[_Group]:
    """Groups of parts by their instructions; none if some time has no instructions."""
    known = {index for one in every for index in one.pool.sizes}
    timed = {index for index, part in enumerate(parts) if any(one.value > 0 for one in part)}
    if not timed <= known:
        return []
    found = []
    for order, one in enumerate(every, start=1):
        name = prefix + (str(order) if order > 1 else "")
        times = {index: parts[index] for index in one.pool.sizes if index in timed}
        if times:
            factor = paced(name, one, times, counts)
            sizes = {
                index: factor.size([each.value for each in part]) for index, part in times.items()
            }
            found.append(_Group(name, factor, sizes))
    return found
