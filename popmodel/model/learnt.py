"""How far what runs have taught holds on a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from popmodel.errors import UsageError
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity
from popmodel.model.calibration import RESIDUAL, Calibration
from popmodel.model.laws import LAWS
from popmodel.model.residual import RESIDUALS
from popmodel.model.uncertainty import group

_OF_PROGRAM = ("params.", "constants.", "imbalance.")


def holding(
    known: Calibration | None, profile: Profile, quantities: Mapping[str, Quantity]
) -> Calibration | None:
    """Return what runs have taught as far as it holds on a machine.

    On another one than that of the runs it is what they taught of the program; what was set by hand
    is as it was set.
    """
    if known is None:
        return None
    for name in known.residuals:
        if name not in RESIDUALS:
            raise UsageError(
                f"calibration: there is no term {name!r}", f"there are {', '.join(RESIDUALS)}"
            )
    there = {group(path) for path, one in quantities.items() if one.is_uncertain}
    kept = {name for name in known.names if name in there}
    if known.machine_digest == profile.digest:
        kept |= {name for name in known.names if name.startswith((RESIDUAL, *LAWS))}
    else:
        kept = {name for name in kept if name.startswith(_OF_PROGRAM)}
        known = replace(known, drifts={})  # from a place on that machine
    return known.only(kept) if kept else None
