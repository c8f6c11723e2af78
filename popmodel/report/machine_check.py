"""What a machine profile is good for."""

from __future__ import annotations

from popmodel.machine.findings import KINDS
from popmodel.report.export import Record, markdown_table
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Style, pairs, paragraph
from popmodel.units import plural

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


def screen(document: Document, style: Style) -> list[str]:
    """The findings on a terminal, by kind."""
    lines = pairs(_facts(document), style)
    for kind in KINDS:
        texts = _texts(document, kind)
        if texts:
            lines += ["", _TITLES[kind]]
            for text in texts:
                lines += paragraph(text, style, first=" - ")
    return lines


def records(document: Document) -> list[Record]:
    """One line per finding."""
    return [{"machine": document["machine"], **finding} for finding in document["findings"]]


def markdown(document: Document) -> list[str]:
    """The same as the screen, as Markdown."""
    lines = markdown_table(["machine", document["machine"]], _facts(document)[1:])
    for kind in KINDS:
        if texts := _texts(document, kind):
            lines += ["", f"**{_TITLES[kind]}**", "", *(f"- {text}" for text in texts)]
    return lines


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


CHECKED = Views(screen, records, markdown)
