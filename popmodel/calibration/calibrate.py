"""Calibrate a signature by measured runs: everything that is said of it, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from popmodel.calibration.fit import Fit, noise_of, relevant
from popmodel.calibration.identify import Identifiability, identifiability
from popmodel.calibration.learnt import learnt
from popmodel.calibration.left_out import LeftOut, left_out, sizes_left_out
from popmodel.calibration.setting import setting
from popmodel.calibration.suspects import Suspect, robust
from popmodel.calibration.terms import Term, with_terms
from popmodel.calibration.threads import one_thread
from popmodel.machine.profile import Profile
from popmodel.model.run.placement import WHOLE, Allocation
from popmodel.model.signature.program import Signature
from popmodel.runs.measurement import Measurement
from popmodel.values import dataclass


@dataclass(frozen=True)
class Calibrated:
    """A signature that runs have calibrated."""

    signature: Signature  # With what the runs left of its constants, of the machine and of the laws
    before: Signature  # As it was given
    profile: Profile  # The machine of the runs
    runs: tuple[Measurement, ...]  # The runs
    fit: Fit  # The scores behind it
    suspects: tuple[Suspect, ...]  # Runs that do not fit the others
    terms: tuple[Term, ...]  # Residual terms that the runs might have asked for
    left_out: tuple[LeftOut, ...]  # Every configuration foretold from the others
    # Every configuration foretold from those with other parameters; empty if all have the same.
    sizes_left_out: tuple[LeftOut, ...]
    identifiable: Identifiability  # What the runs tell of the inputs, and what they cannot


def calibrate(
    signature: Signature,
    profile: Profile,
    runs: Sequence[Measurement],
    settings: Mapping[str, float] | None = None,
    allocation: Allocation = WHOLE,
) -> Calibrated:
    """Calibrate a signature."""
    first = setting(signature, profile, runs, settings or {}, allocation)
    first = first.replayed(np.zeros(len(first.names)))
    noise = noise_of(first)
    with one_thread():
        found, suspects = robust(relevant(first, noise), noise)
        found, terms = with_terms(found)
        return Calibrated(
            learnt(found),
            signature,
            profile,
            tuple(runs),
            found,
            suspects,
            terms,
            tuple(left_out(found)),
            tuple(sizes_left_out(found)),
            identifiability(found),
        )
