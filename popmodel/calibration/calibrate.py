"""Calibrate a signature by measured runs: everything that is said of it, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from popmodel.calibration.cross_validation import LeftOut, error_scale, left_out, sizes_left_out
from popmodel.calibration.fit import CalibrationFit, noise_of, relevant
from popmodel.calibration.initial_values import with_growth
from popmodel.calibration.outliers import Outlier, robust
from popmodel.calibration.posterior import Told, calibrated_signature, told_of
from popmodel.calibration.problem import problem
from popmodel.calibration.term_selection import Term, with_terms
from popmodel.calibration.threads import one_thread
from popmodel.machine.profile import Profile
from popmodel.model.run.placement import WHOLE, Allocation
from popmodel.model.signature.program import Signature
from popmodel.runs.measurement import MeasuredRow
from popmodel.values import dataclass


@dataclass(frozen=True)
class Calibrated:
    """A signature that runs have calibrated."""

    signature: Signature  # With what the runs left of its constants, of the machine and of the laws
    before: Signature  # As it was given
    profile: Profile  # The machine of the runs
    runs: tuple[MeasuredRow, ...]  # The runs
    fit: CalibrationFit  # The scores behind it
    outliers: tuple[Outlier, ...]  # Runs that do not fit the others
    terms: tuple[Term, ...]  # Residual terms that the runs might have asked for
    left_out: tuple[LeftOut, ...]  # Every configuration foretold from the others
    # Every configuration foretold from those with other parameters; empty if all have the same.
    sizes_left_out: tuple[LeftOut, ...]
    told: tuple[Told, ...]  # What the runs tell of each input
    # By how much configurations that are left out miss what the others announce of them, at least
    # 1: intervals of the calibrated signature are as much wider.
    error_scale: float = 1.0


def calibrate(
    signature: Signature,
    profile: Profile,
    runs: Sequence[MeasuredRow],
    settings: Mapping[str, float] | None = None,
    allocation: Allocation = WHOLE,
) -> Calibrated:
    """Calibrate a signature."""
    grown = with_growth(signature, runs)
    first = problem(grown, profile, runs, settings or {}, allocation)
    first = first.replayed(np.zeros(len(first.names)))
    noise = noise_of(first)
    with one_thread():
        found, outliers = robust(relevant(first, noise), noise)
        found, terms = with_terms(found)
        foretold = left_out(found)
        # whatever disturbs a run makes it longer
        longer = {one.run for one in outliers if one.factor > 1}
        longer |= {number for number, run in enumerate(runs) if run.disturbed}
        scale = error_scale(found, foretold, longer)
        return Calibrated(
            calibrated_signature(found, scale),
            signature,
            profile,
            tuple(runs),
            found,
            outliers,
            terms,
            tuple(foretold),
            tuple(sizes_left_out(found)),
            told_of(found),
            scale,
        )
