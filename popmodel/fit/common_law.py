"""One law for the parts of a program that grow alike, and laws of their own for the others.

Fitted one by one, many small parts would each follow the noise of the runs: coefficients are not
negative, so that what happens to be slow in the larger run grows for ever, what happens to be fast
does not shrink any faster, and the sum is too large. What makes a run slow makes all of its parts
slow, so that the errors of laws that were fitted apart do not cancel either. The law of the sum has
neither fault: parts share its constants but for their own size, unless their points contradict it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from popmodel.fit.law import FIT, TRACE, Constant, Law, law
from popmodel.fit.samples import END, UNKNOWN_ERROR, Sample
from popmodel.values import dataclass

SMALL = 0.005
"""Share of the sum in all runs below which a part has no say in laws."""
_CONTRADICTS = 3.0  # standard deviations
_LAWLESS = 0.15  # error of a law, from which there is none
_UNSTATED = 0.05  # relative error of a part that nobody stated: between runs and within


@dataclass(frozen=True)
class Pool:
    """Parts that grow alike."""

    law: Law  # Of their sum
    sizes: Mapping[int, Constant]  # By part, its value at the reference of the law


def pooled(
    parts: Sequence[Sequence[Sample]],
    hints: Sequence[str] = (),
    between: float | None = None,
) -> tuple[Pool, ...]:
    """Find out which parts of a program grow alike, and by which laws.

    Parts that agree with the first hint come first, then those that agree with the law of what is
    left, and so on; a part that agrees with none has a law of its own. Parts below `SMALL` that
    agree with no other follow the first law. Parts that follow no law have that of their sum.
    """
    if not parts:
        raise ValueError("a pool needs at least one part")
    runs = [(one.processes, one.threads, dict(one.parameters)) for one in parts[0]]
    for part in parts:
        if [(one.processes, one.threads, dict(one.parameters)) for one in part] != runs:
            raise ValueError("parts must have values of the same runs, in the same order")
    parts = [[_with_runs(one, between) for one in part] for part in parts]
    values = np.array([[one.value for one in part] for part in parts])
    some = np.flatnonzero(values.sum(axis=1) > 0).tolist()
    # of each run: what stays is a small part of few processes and a large one of many
    shares = (values / np.maximum(values.sum(axis=0), 1e-300)).max(axis=1)
    large = [i for i in some if shares[i] >= SMALL] or some
    pools: list[tuple[Law, list[int]]] = []
    left = set(large)
    while left:
        members, found = _alike(parts, sorted(left), hints, between, first=not pools)
        pools.append((found, members))
        left -= set(members)
    wild = [one for one in pools if one[0].error is not None and one[0].error > _LAWLESS]
    if len(wild) > 1:  # parts are not told apart alike in all runs: what one lacks another one has
        members = sorted(i for _, each in wild for i in each)
        found = law(_summed(parts, members, between), hints=hints)
        pools = [*(one for one in pools if one not in wild), (found, members)]
    for i in sorted(set(some) - set(large)):
        agreeing = [members for found, members in pools if _excess(parts[i], found) <= 1]
        (agreeing[0] if agreeing else pools[0][1]).append(i)
    return tuple(_pool(parts, sorted(members), found) for found, members in pools)


def _pool(parts: Sequence[Sequence[Sample]], members: Sequence[int], found: Law) -> Pool:
    """Sizes of parts; of those that follow no law, together what the law of their sum has."""
    sizes = {i: _size(parts[i], found) for i in members}
    off = max((_excess(parts[i], found) for i in members), default=0.0)
    if off > 1 and len(members) > 1:
        scale = found.constants["a"].value / sum(one.value for one in sizes.values())
        sizes = {
            i: replace(one, value=scale * one.value, low=scale * one.low, high=scale * one.high)
            for i, one in sizes.items()
        }
    return Pool(_doubted(found), sizes)


def _doubted(found: Law) -> Law:
    """Say that runs follow no law."""
    if found.error is None or found.error <= _LAWLESS:
        return found
    note = f"runs contradict each other by {100 * found.error:.0f} %: {found.form} is a guess"
    return replace(found, notes=(note, *found.notes))


def _alike(
    parts: Sequence[Sequence[Sample]],
    left: Sequence[int],
    hints: Sequence[str],
    between: float | None,
    *,
    first: bool,
) -> tuple[list[int], Law]:
    """Parts that agree with the law of their sum, and that law."""
    members = list(left)
    if first and hints:
        agreeing = [i for i in left if _excess(parts[i], _hinted(parts[i], hints)) <= 1]
        members = agreeing or members
    while True:
        found = law(_summed(parts, members, between), hints=hints)
        against = {i: excess for i in members if (excess := _excess(parts[i], found)) > 1}
        if not against or len(members) == 1:
            return members, found
        # one after the other: without the worst the sum is another
        members.remove(max(against, key=lambda i: against[i]))


def _hinted(part: Sequence[Sample], hints: Sequence[str]) -> Law:
    """The first hinted form through one point of a part."""
    there = [one for one in part if one.value > 0]
    return law(there[-1:], forms=hints[:1], hints=hints[:1])


def _with_runs(one: Sample, between: float | None) -> Sample:
    """A value of a part with the error by which runs differ, too."""
    stated = _UNSTATED if one.relative_error is None else one.relative_error
    error = math.hypot(stated, UNKNOWN_ERROR if between is None else between)
    return replace(one, relative_error=error)


def _summed(
    parts: Sequence[Sequence[Sample]], members: Sequence[int], between: float | None
) -> list[Sample]:
    """Sums of parts, in the runs that have all of them if there are several."""
    values = np.array([[one.value for one in parts[i]] for i in members])
    whole: Any = (values > 0).all(axis=0)
    kept = whole if np.count_nonzero(whole) > 1 else (values > 0).any(axis=0)
    return [
        replace(one, value=float(value), relative_error=between)
        for one, value, able in zip(parts[members[0]], values.sum(axis=0), kept, strict=True)
        if able
    ]


def _ratios(part: Sequence[Sample], found: Law) -> tuple[list[float], list[float]]:
    """Logarithms of the values over those of the law, relative to its reference, and errors."""
    home = found.constants["a"].value
    logs: list[float] = []
    errors: list[float] = []
    for one in part:
        if one.value > 0:
            there = found.at(one.processes, one.threads, one.parameters).value
            logs.append(math.log(one.value / there * home))
            errors.append(one.relative_error or UNKNOWN_ERROR)
    return logs, errors


def _excess(part: Sequence[Sample], found: Law) -> float:
    """By how much a part grows otherwise than the law; above 1 more than its errors allow."""
    logs, errors = map(np.array, _ratios(part, found))
    if len(logs) < 2:
        return 0.0
    weights = errors**-2.0
    mean = float(logs @ weights / weights.sum())
    misfit = float((logs - mean) ** 2 @ weights)
    return misfit / (_CONTRADICTS**2 * (len(logs) - 1))


def _size(part: Sequence[Sample], found: Law) -> Constant:
    """A part's value at the reference, from all runs that have it."""
    logs, errors = map(np.array, _ratios(part, found))
    weights = errors**-2.0
    mean = float(logs @ weights / weights.sum())
    spread = math.sqrt(float((logs - mean) ** 2 @ weights) / max(len(logs) - 1, 1))
    half = END * max(spread, 1.0) / math.sqrt(float(weights.sum()))
    # where a law hardly holds, a run that was not measured is as far off as those left out are
    half = math.hypot(half, END * found.discrepancy)
    return Constant(
        math.exp(mean),
        math.exp(mean - half),
        math.exp(mean + half),
        FIT if len(logs) > 1 else TRACE,
        found.constants["a"].meaning,
    )
