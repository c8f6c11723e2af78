"""What a few measured efficiencies leave open of a form: draws from its posterior on a grid.

The errors of the points are known up to a common factor, whose square has an inverse gamma prior of
`FREEDOM` degrees of freedom, so the likelihood is Student's. The efficiency at the reference is
uniform a priori in its logarithm, the share of the second term uniform; so forms of different terms
can be weighed against each other by their evidence.
"""

from __future__ import annotations

import math

import numpy as np

from popmodel.fit.samples import Array
from popmodel.projection.forms import Form
from popmodel.values import dataclass

FREEDOM = 3.0
_LEVELS = 61
_REACH = 8.0  # standard deviations of the level that are looked at
_LEAST, _MOST = 1e-6, 100.0  # of 1/E - 1 at the reference
_NEGLIGIBLE = 1e-5  # posterior of a level over the largest, from which the grid is refined
_RANGE = math.log(1 + _MOST)


@dataclass(frozen=True)
class Posterior:
    """What points leave open of a form."""

    form: Form  # The form
    reference: float  # x at which its terms are 1
    # Equally likely levels, shares and factors of the errors.
    levels: Array
    shares: Array
    scatter: Array
    evidence: float  # Logarithm of the likelihood of the points, averaged over the prior

    def logarithms(self, x: Array) -> Array:
        """Logarithms of E by draw and x, shape (d, n); NaN where there is no value."""
        relative = self.form.relative(x, self.reference, self.shares)
        return self.form.logarithm(self.levels[:, None], relative)


def posterior(
    form: Form,
    x: Array,
    logs: Array,
    errors: Array,
    reference: float,
    draws: int,
    seed: int = 1,
) -> Posterior:
    """Draw from what points leave open of a form."""
    relative = form.relative(x, reference, form.shares)  # (k, n)
    weights = errors**-2.0
    if form.offset:
        bounds = (
            np.full(len(form.shares), math.log(_LEAST)),
            np.full(len(form.shares), math.log(_MOST)),
        )
        bounds = _refined(form, relative, logs, weights, bounds)
    else:
        bounds = _about_best(form, relative, logs, weights)
    steps, width = _steps(bounds)
    weighed, misfit = _weighed(form, relative, logs, weights, steps, width)
    most = float(weighed.max())
    share_of = np.exp(weighed - most)
    evidence = most + math.log(float(share_of.sum())) - math.log(len(form.shares))
    generator = np.random.default_rng(seed)
    cumulative = np.cumsum(share_of.ravel())
    cells = np.searchsorted(cumulative, generator.random(draws) * cumulative[-1])
    row, column = np.unravel_index(cells, share_of.shape)
    jitter = (generator.random(draws) - 0.5) * width[row]
    freedom = FREEDOM + len(x)
    scatter = np.sqrt((FREEDOM + misfit[row, column]) / generator.chisquare(freedom, draws))
    return Posterior(
        form,
        reference,
        np.exp(steps[row, column] + jitter),
        form.shares[row],
        scatter,
        evidence,
    )


def _about_best(form: Form, relative: Array, logs: Array, weights: Array) -> tuple[Array, Array]:
    """Bounds of the logarithm of the level for each share, of a form without offset."""
    sign = -1.0 if form.is_inverse else 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = sign * logs - np.log(np.where(relative > 0, relative, np.nan))
    centre = np.nan_to_num(gaps @ weights / weights.sum())
    misfit = ((gaps - centre[:, None]) ** 2) @ weights
    least = float(np.nanmin(misfit))
    scatter = math.sqrt((FREEDOM + least) / (FREEDOM + len(logs)))
    half = _REACH * max(scatter, 1.0) / math.sqrt(float(weights.sum()))
    return centre - half, centre + half


def _refined(
    form: Form, relative: Array, logs: Array, weights: Array, bounds: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Bounds within which the posterior is, for each share."""
    steps, width = _steps(bounds)
    weighed, _ = _weighed(form, relative, logs, weights, steps, width)
    able = weighed > weighed.max(axis=1, keepdims=True) + math.log(_NEGLIGIBLE)
    first = np.maximum(able.argmax(axis=1) - 1, 0)
    last = np.minimum(able.shape[1] - able[:, ::-1].argmax(axis=1), able.shape[1] - 1)
    rows = np.arange(len(steps))
    return steps[rows, first], steps[rows, last]


def _steps(bounds: tuple[Array, Array]) -> tuple[Array, Array]:
    """Logarithms of levels by share, shape (k, m), and their distance."""
    low, high = bounds
    steps = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _LEVELS)
    return steps, (high - low) / (_LEVELS - 1)


def _weighed(
    form: Form, relative: Array, logs: Array, weights: Array, steps: Array, width: Array
) -> tuple[Array, Array]:
    """Logarithm of likelihood times prior of each cell, and its misfit; shape (k, m)."""
    levels = np.exp(steps)
    model = form.logarithm(levels[:, :, None], relative[:, None, :])
    misfit = ((model - logs) ** 2) @ weights
    misfit = np.where(np.isnan(misfit), np.inf, misfit)
    likelihood = -0.5 * (FREEDOM + len(logs)) * np.log1p(misfit / FREEDOM)
    prior = np.log(levels / (form.offset + levels) * width[:, None] / _RANGE)
    return likelihood + prior, misfit
