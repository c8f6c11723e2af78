"""Least squares of relative errors for laws of one and two terms, many laws at once.

A law of two terms is ``a ((1 - b) g + b h)``: its value at a reference times terms that are 1
there, b the share of the second. The coefficients are not negative wherever b is from 0 to 1, and
for each b the best a is a mean of logarithms. So the fit is a search along b alone, which needs no
start.

Shapes: m laws, n points, s shares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from popmodel.fit.samples import Array
from popmodel.values import dataclass

Whole = NDArray[np.int64]

_LOGITS = np.linspace(-14, 14, 85)
SHARES: Array = np.concatenate([[0.0], 1 / (1 + np.exp(-_LOGITS)), [1.0]])
"""Shares of the second term that a search tries before it refines the best of them."""
_FEW_SHARES = SHARES[::4]
_STEPS = 8
_ALIKE = 1e-9  # range of the logarithm of the ratio of two terms that no points tell apart
_AT_ONCE = 400  # laws, to bound memory


@dataclass(frozen=True)
class Fits:
    """Laws fitted to the same points."""

    scale: Array  # Logarithm of the value at the reference
    share: Array  # Of the second term at the reference
    misfit: Array  # Sum of squares of the residuals over the errors of the points
    # Residual of the logarithm of each point from a fit to the others; infinite where these do not
    # determine the law.
    left_out: Array
    leverage: Array  # By how much each point determines its own value, from 0 to 1


def fit_one(terms: Array, logs: Array, errors: Array) -> Fits:
    """Fit laws of one term each."""
    weights = errors**-2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = logs - np.log(terms)
        scale = gaps @ weights / weights.sum()
        residual = gaps - scale[:, None]
        misfit = residual**2 @ weights
        others = 1 - weights / weights.sum()
        if len(logs) > 1:
            left_out = residual / np.maximum(others, 1e-300)
        else:
            left_out = np.full(residual.shape, np.inf)
    misfit = np.where(np.isfinite(misfit), misfit, np.inf)
    left_out = np.where(np.isfinite(left_out), left_out, np.inf)
    leverage = np.broadcast_to(1 - others, left_out.shape)
    return Fits(scale, np.zeros(len(terms)), misfit, left_out, leverage)


def fit_two(first: Array, second: Array, logs: Array, errors: Array) -> Fits:
    """Fit laws of two terms each; parameters as of `fit_one`."""
    parts = [
        _fit_two(first[i : i + _AT_ONCE], second[i : i + _AT_ONCE], logs, errors)
        for i in range(0, len(first), _AT_ONCE)
    ]
    return Fits(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("scale", "share", "misfit", "left_out", "leverage")
        )
    )


def nearest(first: Array, second: Array, logs: Array, errors: Array, most: int) -> Whole:
    """Choose laws of two terms that come near to all points, of very many.

    A law is off by no less at a point that it was not fitted to than at one that it was, so those
    that miss the points already cannot foretell them.
    """
    if len(first) <= most:
        return np.arange(len(first))
    weights = errors**-2.0
    weights = weights / weights.sum()
    misfit = np.full(len(first), np.inf)
    for i in range(0, len(first), _AT_ONCE):
        rows = slice(i, i + _AT_ONCE)
        gaps = _gaps(first[rows, None, :], second[rows, None, :], _FEW_SHARES[:, None], logs)
        with np.errstate(invalid="ignore"):
            against = gaps**2 @ weights - (gaps @ weights) ** 2
        misfit[rows] = np.where(np.isfinite(against), against, np.inf).min(axis=1)
    return np.sort(np.argsort(misfit, kind="stable")[:most])


def _fit_two(first: Array, second: Array, logs: Array, errors: Array) -> Fits:
    n = len(logs)
    weights = errors**-2.0
    weights = weights / weights.max()
    # row 0: all points; row i + 1: all but point i
    kept = np.vstack([np.ones(n), 1 - np.eye(n)]) * weights
    gaps = _gaps(first[:, None, :], second[:, None, :], SHARES[:, None], logs)  # (m, s, n)
    finite = np.isfinite(gaps)
    known = np.where(finite, gaps, 0.0)
    total, squares = known @ kept.T, known**2 @ kept.T  # (m, s, n + 1)
    against = squares - total**2 / np.maximum(kept.sum(axis=1), 1e-300)
    against = np.where(~finite @ (kept.T > 0), np.inf, against)
    best = SHARES[against.argmin(axis=1)]  # (m, n + 1)
    share = _refined(best, first, second, logs, kept)
    gaps = _gaps(first[:, None, :], second[:, None, :], share[:, :, None], logs)  # (m, n + 1, n)
    with np.errstate(invalid="ignore"):
        means = np.where(kept > 0, gaps * kept, 0.0).sum(axis=2) / np.maximum(
            kept.sum(axis=1), 1e-300
        )
        residuals = gaps - means[:, :, None]
        misfit = (residuals[:, 0] ** 2) @ errors**-2.0
        left_out = np.diagonal(residuals[:, 1:], axis1=1, axis2=2).copy()
    told = _told(first, second, kept)
    misfit = np.where(np.isfinite(misfit) & told[:, 0], misfit, np.inf)
    left_out = np.where(np.isfinite(left_out) & told[:, 1:], left_out, np.inf)
    leverage = _leverage(first, second, share[:, 0], weights)
    return Fits(means[:, 0], share[:, 0], misfit, left_out, leverage)


def _leverage(first: Array, second: Array, share: Array, weights: Array) -> Array:
    """Diagonal of the matrix that turns values into fitted ones, near the best coefficients."""
    at, part = share[:, None], weights / weights.sum()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = (second - first) / ((1 - at) * first + at * second)
        slope = slope - (slope * part).sum(axis=1)[:, None]
        own = slope**2 * part / (slope**2 * part).sum(axis=1)[:, None]
    leverage: Array = np.minimum(part + np.nan_to_num(own), 1.0)
    return leverage


def _gaps(first: Array, second: Array, share: Array, logs: Array) -> Array:
    """Logarithms of the values less those of the law without its scale; infinite where it is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps: Array = logs - np.log((1 - share) * first + share * second)
    return gaps


def _refined(share: Array, first: Array, second: Array, logs: Array, kept: Array) -> Array:
    """Improve shares by Gauss-Newton steps that are taken only where they help."""
    totals = np.maximum(kept.sum(axis=1), 1e-300)

    def centred(values: Array) -> Array:
        used = np.where(kept > 0, values, 0.0)
        means = (used * kept).sum(axis=2) / totals
        deviations: Array = np.where(kept > 0, used - means[:, :, None], 0.0)
        return deviations

    def misfit(at: Array) -> Array:
        residual = centred(_gaps(first[:, None, :], second[:, None, :], at[:, :, None], logs))
        squares: Array = np.nan_to_num((residual**2 * kept).sum(axis=2), nan=np.inf)
        return squares

    with np.errstate(all="ignore"):  # terms that are 0, and steps from there, are nan: not better
        least = misfit(share)
        for _ in range(_STEPS):
            at = share[:, :, None]
            model = (1 - at) * first[:, None, :] + at * second[:, None, :]
            residual = centred(logs - np.log(model))
            slope = centred((second - first)[:, None, :] / model)
            step = (residual * slope * kept).sum(axis=2) / (slope**2 * kept).sum(axis=2)
            trial = np.clip(share + np.nan_to_num(step), 0.0, 1.0)
            found = misfit(trial)
            better = found < least
            if not better.any():
                break
            share, least = np.where(better, trial, share), np.where(better, found, least)
    return share


def _told(first: Array, second: Array, kept: Array) -> Array:
    """Whether points tell two terms apart, shape (m, n + 1): their ratio is not always the same."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(first) - np.log(second)  # infinite where one of them is 0
    high = np.where(kept > 0, ratio[:, None, :], -np.inf).max(axis=2)
    low = np.where(kept > 0, ratio[:, None, :], np.inf).min(axis=2)
    return np.asarray(high > low + _ALIKE)


def profile(first: Array, second: Array, logs: Array, errors: Array) -> tuple[Array, Array, Array]:
    """Best scale and misfit of one law of two terms for each share of the second."""
    shares = np.concatenate([[0.0], 1 / (1 + np.exp(-np.linspace(-14, 14, 449))), [1.0]])
    weights = errors**-2.0
    gaps = _gaps(first, second, shares[:, None], logs)
    with np.errstate(invalid="ignore"):
        scales = gaps @ weights / weights.sum()
        misfits = (gaps - scales[:, None]) ** 2 @ weights
    kept = np.isfinite(misfits)
    return shares[kept], scales[kept], misfits[kept]
