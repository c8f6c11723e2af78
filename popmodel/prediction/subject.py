"""What a document of the model is about: the application and the machine, as JSON types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.machine.profile import Profile
from popmodel.model.signature.program import Signature


def subject(
    signature: Signature, profile: Profile, settings: Mapping[str, float]
) -> dict[str, dict[str, Any]]:
    """Return the keys ``application`` and ``machine``."""
    return {
        "application": {
            "name": signature.name,
            "path": signature.path,
            "bundled": signature.is_bundled,
            "not_modelled": signature.not_modelled,
            "settings": dict(settings),
            "imbalance": signature.set_imbalance,
            "calibration": _calibration(signature, profile),
        },
        "machine": {
            "name": profile.name,
            "path": profile.path,
            "preset": profile.is_preset,
            "origin": profile.origin,
            "noisy": list(profile.noisy),
        },
    }


def _calibration(signature: Signature, profile: Profile) -> dict[str, Any] | None:
    """By what runs the signature was calibrated, and whether all of it holds on the machine."""
    known = signature.calibration
    if known is None:
        return None
    return {
        "runs": len(known.runs),
        "noise": known.noise,
        "machine": known.machine,
        "same_machine": known.machine_digest == profile.digest,
        "changed": list(known.changed),
    }
