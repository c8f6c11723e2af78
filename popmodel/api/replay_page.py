"""Replays as a page: beside single networks, sliders between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from popmodel.api.sensitivity import sensitivity
from popmodel.base.errors import PopmodelError
from popmodel.reports.html.contents import Contents, alone

if TYPE_CHECKING:
    from popmodel.network.network import Network
    from popmodel.reports.views import Document


def with_sensitivity(document: Document, network: Network, part: Mapping[str, Any]) -> Contents:
    """Return what the page of replays of a trace shows: them, and what the run depends on."""
    report = dict(alone(document).document)
    trace = document["runs"][0]["trace"]
    try:
        found = sensitivity(trace, network, **part).to_dict()
    except PopmodelError as error:
        left_out = [{"trace": trace, "what": "sensitivity", "why": error.message}]
        return Contents({**report, "left_out": left_out})
    found["provenance"] = document["provenance"]  # the same command, from the same files
    return Contents({**report, "documents": [document, found]})
