"""A fit as a signature that predictions take: constants with new values, and what ties them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from popmodel.calibration.fit import Fit
from popmodel.machine.quantity import END, Quantity
from popmodel.model.calibration import Calibration, root_of
from popmodel.model.signature.program import Signature
from popmodel.model.uncertainty import spread

Array = NDArray[np.float64]

_UNTOUCHED = 0.02  # of a score: what is moved and narrowed by less was not learnt


def learnt(found: Fit) -> Signature:
    """Return the signature that runs have calibrated.

    Its constants have the values and intervals that the runs left, so that a reader sees them; what
    is known of the machine and of the laws, and how all depends on each other, is beside them.
    """
    setting = found.setting
    kept = _learnt(found)
    names = tuple(setting.names[number] for number in kept)
    covariance = found.covariance[np.ix_(kept, kept)]
    means = found.means[kept].copy()
    deviations = np.sqrt(np.diag(covariance))
    signature, scale = setting.signature, np.ones(len(names))
    tables = {"params": signature.params, "constants": signature.constants}
    tables["imbalance"] = signature.imbalance
    for number, name in enumerate(names):
        table, _, key = name.partition(".")
        if key in tables.get(table, ()):
            one = moved(tables[table][key], means[number], deviations[number])
            tables[table] = {**tables[table], key: one}
            means[number], scale[number] = 0.0, 1 / deviations[number]
    known = Calibration(
        setting.profile.name,
        setting.profile.digest,
        names,
        means,
        root_of(covariance * np.outer(scale, scale)),
        setting.own,
        found.noise,
        {name: unit for name, unit in setting.residuals.items() if name in names},
        setting.drifts,
        setting.hull,
        {run.digest: run.place for run in setting.runs},
    )
    return replace(
        signature,
        params=tables["params"],
        constants=tables["constants"],
        imbalance=tables["imbalance"],
        calibration=known,
    )


def moved(quantity: Quantity, mean: float, deviation: float) -> Quantity:
    """Return a quantity at another score, with the interval that the deviation of it leaves."""
    ends = mean + END * deviation * np.array([0.0, -1.0, 1.0])
    value, low, high = (float(one) for one in spread(quantity, ends))
    return replace(quantity, value=value, low=low, high=high, origin="fit")


def _learnt(found: Fit) -> list[int]:
    """Numbers of the names that runs tell something of, and of times that may be missing."""
    relative = found.means / found.setting.prior
    narrowed = np.sqrt(np.diag(found.covariance)) / found.setting.prior
    return [
        number
        for number in range(len(relative) - len(found.setting.suspects))
        if found.setting.positive[number]
        or abs(relative[number]) > _UNTOUCHED
        or narrowed[number] < 1 - _UNTOUCHED
    ]
