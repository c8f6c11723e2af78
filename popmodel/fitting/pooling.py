"""One law for the parts of a program that grow alike, and laws of their own for the others.

Fitted one by one, many small parts would each follow the noise of the runs: coefficients are not
negative, so that what happens to be slow in the larger run grows for ever, what happens to be fast
does not shrink any faster, and the sum is too large. What makes a run slow makes all of its parts
slow, so that the errors of laws that were fitted apart do not cancel either. The law of the sum has
neither fault: parts share its constants but for their own size, unless their points contradict it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from popmodel.fitting.formula import FIT, TRACE, Constant
from popmodel.fitting.law import Law, law
from popmodel.fitting.samples import END, UNKNOWN_ERROR, Sample
from popmodel.values import dataclass

SMALL = 0.005
"""Share of the sum below which a part always follows the law of the sum."""
_CONTRADICTS = 3.0  # standard deviations
_UNSTATED = 0.05  # relative error of a part that nobody stated: between runs and within


@dataclass(frozen=True)
class Pool:
    """The law of a sum, and its parts.

    Attributes
    ----------
    law : Law or None
        Of the sum of the parts that follow it; None if none does, or all of them are 0.
    sizes : tuple of Constant or None
        By part, its value at the law's reference; None for parts with a law of their own, and for
        those that are always 0.
    own : tuple of Law or None
        By part, its own law if it has one.
    """

    law: Law | None
    sizes: tuple[Constant | None, ...]
    own: tuple[Law | None, ...]


def pooled(parts: Sequence[Sequence[Sample]], hints: Sequence[str] = ()) -> Pool:
    """Fit the law of a sum, and find out which parts follow it.

    Parameters
    ----------
    parts : sequence of sequence of Sample
        Of each part its values in the same runs, in the same order; 0 where a run has no such part,
        which says nothing. Their errors are those within a run; what runs differ by is added.
    hints : sequence of str
        As of `law`.

    Raises
    ------
    ValueError
        If there is no part, or parts are of different runs.
    """
    if not parts:
        raise ValueError("a pool needs at least one part")
    runs = [(one.processes, one.threads, dict(one.parameters)) for one in parts[0]]
    for part in parts:
        if [(one.processes, one.threads, dict(one.parameters)) for one in part] != runs:
            raise ValueError("parts must have values of the same runs, in the same order")
    values = np.array([[one.value for one in part] for part in parts])
    some = values.sum(axis=1) > 0
    following = some.copy()
    shares = values.max(axis=1) / max(float(values.sum(axis=0).max()), 1e-300)
    found: Law | None = None
    for _ in parts:
        if not following.any():
            found = None
            break
        found = law(_summed(parts[0], values[following].sum(axis=0)), hints=hints)
        against = {
            i: excess
            for i in np.flatnonzero(following).tolist()
            if shares[i] >= SMALL and (excess := _excess(parts[i], found)) > 1
        }
        if not against or int(following.sum()) == 1:
            break
        # one after the other: without the worst the sum is another
        following[max(against, key=lambda i: against[i])] = False
    apart = some & ~following
    return Pool(
        found,
        tuple(
            _size(part, found) if found is not None and following[i] else None
            for i, part in enumerate(parts)
        ),
        tuple(law(part, hints=hints) if apart[i] else None for i, part in enumerate(parts)),
    )


def _summed(like: Sequence[Sample], values: np.typing.NDArray[np.float64]) -> list[Sample]:
    return [
        replace(one, value=float(value), relative_error=None)
        for one, value in zip(like, values, strict=True)
        if value > 0
    ]


def _ratios(part: Sequence[Sample], found: Law) -> tuple[list[float], list[float]]:
    """Logarithms of the values over those of the law, relative to its reference, and errors."""
    home = found.constants["a"].value
    logs, errors = [], []
    for one in part:
        if one.value > 0:
            there = found.at(one.processes, one.threads, one.parameters).value
            logs.append(math.log(one.value / there * home))
            stated = _UNSTATED if one.relative_error is None else one.relative_error
            errors.append(math.hypot(stated, UNKNOWN_ERROR))
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
    return Constant(
        math.exp(mean),
        math.exp(mean - half),
        math.exp(mean + half),
        FIT if len(logs) > 1 else TRACE,
        found.constants["a"].meaning,
    )
