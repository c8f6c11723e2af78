"""Least squares of relative errors: sums of two terms with coefficients that are not negative."""

from __future__ import annotations

import numpy as np

from popmodel.fit.samples import Array


def fit_two(first: Array, second: Array, values: Array, errors: Array) -> tuple[Array, Array]:
    """Coefficients of many sums of two terms at once, and their misfits.

    As `scipy.optimize.nnls` of each: both coefficients where these are not negative, else the
    better of the two terms alone. A law with no value above 0 at some point has an infinite misfit.

    Parameters
    ----------
    first, second
        Terms at the points, shape (m, n).
    values, errors
        Of the points, and their relative errors, shape (n).

    Returns
    -------
    Coefficients, shape (m, 2), and the sum of squares of the relative residuals over the errors,
    shape (m).
    """
    terms = np.stack([first, second], axis=-1) / (values * errors)[:, None]  # (m, n, 2)
    wanted = 1 / errors
    products = np.einsum("mni,mnj->mij", terms, terms)
    sums = np.einsum("mni,n->mi", terms, wanted)
    with np.errstate(all="ignore"):
        determinant = products[:, 0, 0] * products[:, 1, 1] - products[:, 0, 1] ** 2
        both = np.stack(
            [
                products[:, 1, 1] * sums[:, 0] - products[:, 0, 1] * sums[:, 1],
                products[:, 0, 0] * sums[:, 1] - products[:, 0, 1] * sums[:, 0],
            ],
            axis=1,
        ) / determinant[:, None]  # fmt: skip
        alone = sums / np.diagonal(products, axis1=1, axis2=2)
        none = np.zeros(len(both))
        tried = np.stack(
            [both, np.stack([alone[:, 0], none], 1), np.stack([none, alone[:, 1]], 1)]
        )  # (3, m, 2)
        model = np.einsum("mni,kmi->kmn", terms, tried)
        misfit = ((model - wanted) ** 2).sum(axis=2)
        able = (tried >= 0).all(axis=2) & (model > 0).all(axis=2) & np.isfinite(misfit)
    misfit = np.where(able, misfit, np.inf)
    best, rows = misfit.argmin(axis=0), np.arange(len(both))
    return tried[best, rows], misfit[best, rows]
