"""Signatures: which ones come with popmodel, what one says, and the formulas of a prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import (
    ProfileLike,
    SignatureLike,
    allocation_of,
    profile_of,
    signature_of,
)
from popmodel.base.plain import document
from popmodel.model.signatures import summaries

if TYPE_CHECKING:
    from popmodel.prediction.derivation import Formula


def bundled() -> dict[str, Any]:
    """Return the signatures that come with popmodel, schema ``popmodel/signatures/1``."""
    return document("popmodel/signatures/1", signatures=summaries())


def formula(
    application: SignatureLike | None,
    machine: ProfileLike | None,
    procs: int,
    threads: int,
    metric: str,
    settings: Mapping[str, float],
    *,
    nodes: int | None = None,
    cores_per_node: int | None = None,
    bind: str = "close",
    imbalance: Mapping[str, float] | None = None,
) -> Formula:
    """Derive the formula of a metric, or of the runtime; other arguments as for `predict`."""
    from popmodel.prediction import derivation

    return derivation.formula(
        signature_of(application).with_imbalance(imbalance or {}),
        profile_of(machine),
        procs,
        threads,
        metric,
        settings,
        allocation=allocation_of(nodes, cores_per_node, bind),
    )
