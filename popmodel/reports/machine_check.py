"""What a machine profile is good for."""

from __future__ import annotations

from popmodel.base.units import plural
from popmodel.machines.profile_findings import KINDS
from popmodel.reports.blocks import Facts, Section, titled
from popmodel.reports.views import Document, Record, Views

_TITLES = {
    "missing": "missing, needed by some predictions",
    "failed": "not measured as planned",
    "noisy": "noisy measurements",
    "remark": "remarks on the measurement",
    "wide": "wide intervals",
    "preset": "not measured",
    "age": "may be outdated",
    "unused": "measured, but not used by the model",
}

_REPEATED = {"unused": "not used: "}


def blocks(document: Document) -> list[Section]:
    """The findings, by kind."""
    found = (titled(_TITLES[kind], _texts(document, kind)) for kind in KINDS)
    return [(Facts(tuple(_facts(document))),), *found]


def records(document: Document) -> list[Record]:
    """One line per finding."""
    return [{"machine": document["machine"], **finding} for finding in document["findings"]]


def _texts(document: Document, kind: str) -> list[str]:
    """The findings of a kind, without the words that its title repeats."""
    repeated = _REPEATED.get(kind, "")
    return [
        finding["text"].removeprefix(repeated)
        for finding in document["findings"]
        if finding["kind"] == kind
    ]


def _facts(document: Document) -> list[tuple[str, str]]:
    warnings = sum(finding["kind"] != "unused" for finding in document["findings"])
    parameters = plural(document["quantities"], "parameter")
    return [
        ("machine", document["machine"]),
        ("profile", document["path"]),
        ("usable", f"{'yes' if document['usable'] else 'no'}, {parameters}"),
        ("warnings", str(warnings) if warnings else "none"),
    ]


CHECKED = Views(blocks, records)
