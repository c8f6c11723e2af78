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
from popmodel.fit.samples import END, UNKNOWN_ERROR, Array, Sample
from popmodel.fit.terms import read_form
from popmodel.values import dataclass

SMALL = 0.005
"""Share of the sum in all runs below which a part has no say in laws."""
_CONTRADICTS = 2.5  # standard deviations
_MOST = 6  # laws, beside that of the hint
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

    Parts that agree with the first hint come first, then those that grow as the largest of what is
    left does, and so on. Parts below `SMALL` go with those that they agree with best, those that
    agree with none together; so does what is left behind `_MOST` laws. Parts that follow no law
    have that of their sum.
    """
    if not parts:
        raise ValueError("a pool needs at least one part")
    runs = [(one.processes, one.threads, dict(one.parameters)) for one in parts[0]]
    for part in parts:
        if [(one.processes, one.threads, dict(one.parameters)) for one in part] != runs:
            raise ValueError("parts must have values of the same runs, in the same order")
    parts = [[_with_runs(one, between) for one in part] for part in parts]
    values = np.array([[one.value for one in part] for part in parts])
    errors = np.array([[one.relative_error or UNKNOWN_ERROR for one in part] for part in parts])
    # of each run: what stays is a small part of few processes and a large one of many
    shares = (values / np.maximum(values.sum(axis=0), 1e-300)).max(axis=1)
    order = [i for i in np.argsort(-shares, kind="stable").tolist() if shares[i] > 0]
    if not order:
        return ()
    groups = _alike(parts, order, values, errors, shares, hints)
    pools = [(law(_summed(parts, members, between), hints=hints), members) for members in groups]
    wild = [one for one in pools if one[0].error is not None and one[0].error > _LAWLESS]
    if len(wild) > 1:  # parts are not told apart alike in all runs: what one lacks another one has
        members = sorted(i for _, each in wild for i in each)
        found = law(_summed(parts, members, between), hints=hints)
        pools = [*(one for one in pools if one not in wild), (found, members)]
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
    order: Sequence[int],
    values: Array,
    errors: Array,
    shares: Array,
    hints: Sequence[str],
) -> list[list[int]]:
    """Parts in groups that grow alike from run to run, the largest parts first."""
    left = [i for i in order if shares[i] >= SMALL] or [*order]
    groups: list[list[int]] = []
    if hints:
        rows = [one.configuration for one in parts[0]]
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        form = np.sum([term.at(columns) for term in read_form(hints[0])], axis=0)
        members = [i for i in left if _apart(values[i], errors[i], form) <= 1]
        others = values[[i for i in left if i not in members]].sum(axis=0)
        if members and _apart(others, np.full(len(others), UNKNOWN_ERROR), form) <= 1:
            members = left  # what is slow by chance in one of the others is fast in another one
        groups += [members] if members else []
        left = [i for i in left if i not in members]
    while left and len(groups) < _MOST:
        choices = []
        for start in (left, left[:1]):  # as the sum of all, else as the largest
            members = start
            for _ in range(2):
                like = values[members].sum(axis=0)
                beside = errors[members[0]] if len(members) == 1 else np.zeros(len(like))
                apart = [_apart(values[i], np.hypot(errors[i], beside), like) for i in left]
                members = [i for i, one in zip(left, apart, strict=True) if one <= 1] or left[:1]
            choices.append(members)
        groups.append(max(choices, key=lambda members: float(shares[members].sum())))
        left = [i for i in left if i not in groups[-1]]
    sums = [values[members].sum(axis=0) for members in groups]
    others = []
    for i in set(order).difference(*groups):
        apart = [_apart(values[i], errors[i], like) for like in sums]
        # what is small may be large where nobody looked: it need not grow as any other
        (groups[int(np.argmin(apart))] if min(apart) <= 1 or i in left else others).append(i)
    return [*groups, others] if others else groups


def _apart(values: Array, errors: Array, like: Array) -> float:
    """By how much a part grows otherwise than another one; above 1 more than errors allow."""
    there = (values > 0) & (like > 0)
    if np.count_nonzero(there) < 2:
        return 0.0
    logs, weights = np.log(values[there] / like[there]), errors[there] ** -2.0
    mean = float(logs @ weights / weights.sum())
    return float((logs - mean) ** 2 @ weights) / (_CONTRADICTS**2 * (len(logs) - 1))


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
    whole = (values > 0).all(axis=0)
    kept: Any = whole if np.count_nonzero(whole) > 1 else (values > 0).any(axis=0)
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
