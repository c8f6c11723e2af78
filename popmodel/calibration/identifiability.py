"""What runs tell and what they cannot: how much of each input was learnt, and what is tied.

Two inputs that only ever act together (a rate and the number of operations) cannot be told apart:
the runs know their product, and each alone only as well as it was known before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from popmodel.calibration.fit import Fit, solved
from popmodel.calibration.posterior import OF_ONE
from popmodel.calibration.problem import DISTURBED
from popmodel.machine.quantity import END
from popmodel.model.calibration import CHANCE, RESIDUAL
from popmodel.values import dataclass

Array = NDArray[np.float64]

LEARNT = 0.2
"""Part of the prior deviation that must be gone for a value to count as learnt."""
_PARALLEL = 0.9  # cosine between what two inputs do to the runs
_SMALL = 0.2  # of what another input does: such a one is not what hides it
_SURER = 0.5  # what is known of a product over what is known of its factors
_OPEN = 0.5  # of the prior deviation: a factor that is known better is known alone
_UNSEEN = 1e-4  # of the largest singular value: slopes are differences over a part of a score
_BOUND = 1.5  # in ends of the interval that was stated before
_MOVED = 0.5  # of the deviation of the answer


@dataclass(frozen=True)
class Identified:
    """What runs tell of an input."""

    name: str  # Of its score
    learnt: float  # By what part runs narrowed it, 0 to 1
    score: float  # Where it is now, in standard deviations of what was known before
    at_bound: bool  # Whether it lies far outside of the interval that was stated before
    is_tied: bool  # Whether the runs know it in a `Tie` only

    @property
    def is_identifiable(self) -> bool:
        """Whether the runs tell enough of it for a value."""
        return self.learnt >= LEARNT and not self.is_tied


@dataclass(frozen=True)
class Tie:
    """Inputs that runs know together better than each alone."""

    names: tuple[str, ...]  # The inputs
    # What is known of them: the last of three or more that do not all act in one direction.
    together: str
    correlation: float  # Of the scores of two of them: the strongest


@dataclass(frozen=True)
class Identifiability:
    """What can be told of the inputs from these runs."""

    # Every quantity and law that the runs depend on, in all splits: not what a split has for
    # itself, nor what the signature lacks.
    inputs: tuple[Identified, ...]
    ties: tuple[Tie, ...]  # Those that cannot be told apart
    # Condition number of what the runs tell of these inputs, in units of what was known before: the
    # largest over the smallest singular value, infinite where some direction is not seen.
    condition: float
    # Inputs whose earlier interval, and not the runs, moves the runtime of the largest run: by what
    # part.
    moved: tuple[tuple[str, float], ...]


def identifiability(found: Fit) -> Identifiability:
    """Tell what runs have identified."""
    problem = found.problem
    prior = problem.prior
    common = [
        number
        for number, name in enumerate(problem.names)
        if OF_ONE not in name and not name.startswith((RESIDUAL, CHANCE, DISTURBED))
    ]
    relative = np.sqrt(np.diag(found.covariance)) / prior
    told = _told(found, common)
    ties = _ties(found, common, told)
    tied = {name for one in ties for name in one.names}
    inputs = tuple(
        Identified(
            problem.names[number],
            float(1 - relative[number]),
            float(found.means[number]),
            bool(abs(found.means[number]) > _BOUND * END),
            bool(problem.names[number] in tied and relative[number] > _OPEN),
        )
        for number in common
    )
    return Identifiability(inputs, tuple(ties), _condition(told), _moved(found, common))


def _ties(found: Fit, common: list[int], told: Array) -> list[Tie]:
    """Inputs that move all runs in the same proportion, of which only this movement is known."""
    norms = np.linalg.norm(told, axis=0)
    remaining = [column for column in np.argsort(-norms) if norms[column] > 1]  # above the prior
    ties = []
    while remaining:
        first = remaining[0]
        cosines = told[:, remaining].T @ told[:, first] / (norms[remaining] * norms[first])
        near = (np.abs(cosines) > _PARALLEL) & (norms[remaining] > _SMALL * norms[first])
        group = [column for column, is_near in zip(remaining, near, strict=True) if is_near]
        remaining = [column for column in remaining if column not in group]
        if len(group) > 1:
            numbers = np.sort([common[column] for column in group])
            tie = _tie(found, numbers, told[:, [common.index(one) for one in numbers]])
            ties += [] if tie is None else [tie]
    return ties


def _tie(found: Fit, numbers: NDArray[np.int64], told: Array) -> Tie | None:
    """What is known of inputs whose columns are parallel; None if each is known alone."""
    prior = found.problem.prior[numbers]
    covariance = found.covariance[np.ix_(numbers, numbers)] / np.outer(prior, prior)
    deviations = np.sqrt(np.diag(covariance))
    seen = np.linalg.svd(told, full_matrices=False)[2][0]
    together = float(np.sqrt(seen @ covariance @ seen))
    if together > _SURER * deviations.min() or deviations.max() < _OPEN:
        return None
    correlations = covariance / np.outer(deviations, deviations) - np.eye(len(prior))
    strongest = correlations.flat[np.abs(correlations).argmax()]
    if (np.sign(seen) == np.sign(seen[0])).all():
        kind = "product"
    else:
        kind = "ratio" if len(prior) == 2 else "combination"
    return Tie(tuple(found.problem.names[one] for one in numbers), kind, float(strongest))


def _told(found: Fit, common: list[int]) -> Array:
    """What the runs tell of inputs, in what was known before; the other scores being open."""
    at, prior = found.linear, found.problem.prior
    others = np.setdiff1d(np.arange(len(prior)), common)
    open_ = at.slope[:, others] * prior[others]
    noise = open_ @ open_.T + np.eye(len(at.gap))
    root = np.linalg.cholesky(noise)
    found_: Array = np.linalg.solve(root, at.slope[:, common] * prior[common])
    return found_


def _condition(told: Array) -> float:
    """Condition number of what the runs tell."""
    rows, columns = told.shape
    if not columns:
        return 1.0
    values = np.linalg.svd(told, compute_uv=False)
    if rows < columns or values[-1] <= _UNSEEN * values[0]:
        return float("inf")
    return float(values[0] / values[-1])


def _moved(found: Fit, common: list[int]) -> tuple[tuple[str, float], ...]:
    """Inputs without whose earlier interval the runtime of the largest run would be another."""
    problem, at = found.problem, found.linear
    _, slopes = found.runtimes
    sizes = [one.placement.processes * one.placement.threads for one in problem.configurations]
    largest = int(np.argmax(sizes))
    slope = slopes[largest]
    spread = float(np.sqrt(slope @ found.covariance @ slope))
    with_all, _ = solved(at, found.means, problem.prior, problem.bounds)
    moved = []
    for number in common:
        prior = problem.prior.copy()
        prior[number] *= _WEAKER
        without, _ = solved(at, found.means, prior, problem.bounds)
        change = float(slope @ (with_all - without))
        if abs(change) > max(_MOVED * spread, _NOTHING):
            moved.append((problem.names[number], float(np.expm1(change))))
    return tuple(sorted(moved, key=lambda one: -abs(one[1])))


_WEAKER = 10.0  # times the prior deviation
_NOTHING = 0.01
