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
from typing import Any, NamedTuple

import numpy as np

from popmodel.fit.candidates import read_form
from popmodel.fit.law import FIT, TRACE, Constant, Law, law
from popmodel.fit.samples import END, UNKNOWN_ERROR, Array, Sample

SMALL = 0.005
"""Share of the sum in all runs below which a part has no say in laws."""
_CONTRADICTS = 2.5  # standard deviations
_MOST = 6  # laws, beside that of the hint
_LAWLESS = 0.15  # error of a law, from which there is none
_UNSTATED = 0.05  # relative error of a part that nobody stated: between runs and within


class Pool(NamedTuple):
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
    have that of their sum. ``between`` is the relative error by which runs differ.
    """
    if not parts:
        raise ValueError("a pool needs at least one part")
    runs = parts[0]
    places = [(run.processes, run.threads, dict(run.parameters)) for run in runs]
    for part in parts:
        if [(run.processes, run.threads, dict(run.parameters)) for run in part] != places:
            raise ValueError("parts must have values of the same runs, in the same order")
    values = np.array([[sample.value for sample in part] for part in parts])
    stated = [[sample.relative_error for sample in part] for part in parts]
    within = [[_UNSTATED if error is None else error for error in row] for row in stated]
    errors = np.hypot(within, UNKNOWN_ERROR if between is None else between)
    # of each run: what stays is a small part of few processes and a large one of many
    shares = (values / np.maximum(values.sum(axis=0), 1e-300)).max(axis=1)
    order = [i for i in np.argsort(-shares, kind="stable").tolist() if shares[i] > 0]
    if not order:
        return ()

    def law_of(members: Sequence[int]) -> Law:
        """The law of a sum, from the runs that have all parts of it if there are several."""
        some = values[list(members)]
        whole = (some > 0).all(axis=0)
        kept: Any = whole if np.count_nonzero(whole) > 1 else (some > 0).any(axis=0)
        sums = zip(runs, some.sum(axis=0).tolist(), kept, strict=True)
        return law(
            [
                replace(run, value=value, relative_error=between)
                for run, value, able in sums
                if able
            ],
            hints=hints,
        )

    pools = [(law_of(group), group) for group in _alike(runs, order, values, errors, shares, hints)]
    wild = [pool for pool in pools if pool[0].error is not None and pool[0].error > _LAWLESS]
    if len(wild) > 1:  # parts are not told apart alike in all runs: what one lacks another one has
        members = sorted(i for _, group in wild for i in group)
        pools = [*(pool for pool in pools if pool not in wild), (law_of(members), members)]
    return tuple(_pool(runs, values, errors, sorted(group), common) for common, group in pools)


def _pool(
    runs: Sequence[Sample], values: Array, errors: Array, members: Sequence[int], common: Law
) -> Pool:
    """Sizes of parts; of those that follow no law, together what the law of their sum has."""
    like = np.array([common.at(run.processes, run.threads, run.parameters).value for run in runs])
    sizes = {i: _size(values[i], errors[i], like, common) for i in members}
    if len(members) > 1 and max(_apart(values[i], errors[i], like) for i in members) > 1:
        scale = common.constants["a"].value / sum(size.value for size in sizes.values())
        sizes = {
            i: replace(size, value=scale * size.value, low=scale * size.low, high=scale * size.high)
            for i, size in sizes.items()
        }
    if common.error is not None and common.error > _LAWLESS:
        note = f"runs contradict each other by {100 * common.error:.0f} %: {common.form} is a guess"
        common = replace(common, notes=(note, *common.notes))
    return Pool(common, sizes)


def _alike(
    runs: Sequence[Sample],
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
        rows = [run.configuration for run in runs]
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


def _size(values: Array, errors: Array, like: Array, common: Law) -> Constant:
    """A part's value at the reference, from all runs that have it."""
    there, home = values > 0, common.constants["a"]
    logs, weights = np.log(values[there] / like[there] * home.value), errors[there] ** -2.0
    mean = float(logs @ weights / weights.sum())
    spread = math.sqrt(float((logs - mean) ** 2 @ weights) / max(len(logs) - 1, 1))
    half = END * max(spread, 1.0) / math.sqrt(float(weights.sum()))
    # where a law hardly holds, a run that was not measured is as far off as those left out are
    half = math.hypot(half, END * common.discrepancy)
    origin = FIT if len(logs) > 1 else TRACE
    ends = (math.exp(mean), math.exp(mean - half), math.exp(mean + half))
    return Constant(*ends, origin, home.meaning)
