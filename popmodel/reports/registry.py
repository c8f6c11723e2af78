"""How documents are shown, by their schemas: for documents that were saved and are read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from popmodel.reports.views import Document, Views


def _metrics(document: Document) -> Views:
    if "history" in document:
        history: Views = _attribute("history_tables.VIEWS")
        return history
    parts = next((key for key in ("by_process", "by_region") if key in document["runs"][0]), None)
    place = f"breakdown_tables.{parts.upper()}" if parts else "efficiency_tables.VIEWS"
    views: Views = _attribute(place)
    return views


def _whatif(document: Document) -> Views:
    name = "scenario" if "runs" in document else "sensitivity"
    views: Views = _attribute(f"{name}_tables.VIEWS")
    return views


def _checked_signature(document: Document) -> Views:
    against = document["against"] is not None
    views: Views = _attribute("signature_words.AGREEMENT" if against else "signature_words.CHECKED")
    return views


def _predicted(document: Document) -> Views:
    module = "projection" if "projection" in document else "prediction"
    views: Views = _attribute(f"{module}_tables.VIEWS")
    return views


def _documentation(document: Document) -> Views:
    views: Views = _attribute(f"explanations.{'MANUAL' if 'page' in document else 'VIEWS'}")
    return views


def _profile(document: Document) -> Views:
    from popmodel.machines.profile import from_document
    from popmodel.reports.machine_tables import views

    return views(from_document({**document, "provenance": {}}))


def _splits(document: Document) -> Views:
    views: Views = _attribute(
        "projection_tables.SPLITS"
        if "projection" in document
        else "study_tables.VIEWS"
        if "study" in document
        else "split_tables.VIEWS"
    )
    return views


SHOWN: Mapping[str, str | Callable[[Document], Views]] = {
    "check": "check_tables.VIEWS",
    "host-check": "machine_tables.HOST",
    "machine-check": "machine_tables.CHECKED",
    "machine-compare": "machine_tables.COMPARED",
    "docs": _documentation,
    "formula": "prediction_words.VIEWS",
    "inspect": "run_tables.VIEWS",
    "machine": _profile,
    "metrics": _metrics,
    "predict": _predicted,
    "splits": _splits,
    "trace": "recording_tables.VIEWS",
    "signature-check": _checked_signature,
    "signature-from": "signature_tables.VIEWS",
    "signatures": "signature_words.LISTED",
    "study-plan": "study_tables.PLAN",
    "validate": "validation_tables.VIEWS",
    "whatif": _whatif,
}
"""The views, or what finds them, by the name in the schema (``metrics`` of ``popmodel/metrics/1``).

A text is a module of this package and a name in it.
"""


def views_of(document: Document) -> Views:
    """How a document is shown."""
    found = SHOWN[str(document["schema"]).split("/")[1]]
    if isinstance(found, str):
        views: Views = _attribute(found)
        return views
    return found(document)


def _attribute(name: str) -> Any:
    module, _, attribute = name.partition(".")
    return getattr(import_module(f"popmodel.reports.{module}"), attribute)
