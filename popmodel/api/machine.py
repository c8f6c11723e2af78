"""Machine profiles: what one says, and what is doubtful in it."""

from __future__ import annotations

from typing import Any

from popmodel.api.inputs import ProfileLike, profile_of
from popmodel.base.plain import document
from popmodel.machines import profile_findings as findings


def show(machine: ProfileLike | None = None) -> dict[str, Any]:
    """Return what a profile says, schema ``popmodel/machine-show/1``, without provenance."""
    profile = profile_of(machine)
    return document(
        "popmodel/machine-show/1",
        machine=profile.name,
        path=profile.path,
        preset=profile.is_preset,
        origin=profile.origin,
        profile=profile.document,
        findings=findings.inspect(profile),
    )


def check(machine: ProfileLike | None = None) -> dict[str, Any]:
    """Return what is doubtful in a profile, ``popmodel/machine-check/1``, without provenance.

    A profile that loads is usable if any quantity is in it: noise alone predicts nothing.
    """
    profile = profile_of(machine)
    return document(
        "popmodel/machine-check/1",
        machine=profile.name,
        path=profile.path,
        usable=bool(profile.quantities),
        quantities=len(profile.quantities),
        findings=findings.inspect(profile),
    )
