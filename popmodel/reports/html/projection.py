"""Projected efficiencies: each factor over the processes, all sizes beside each other, the laws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from popmodel.base.units import format_time
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.reports.blocks import NoteBlock, Role, TableBlock, TableCell, TableRow, notes, texts
from popmodel.reports.figures import percent
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.drawings import SMALL, figures
from popmodel.reports.html.section import Section
from popmodel.reports.joint import joint_caveats
from popmodel.reports.names import run_names
from popmodel.reports.pictures import Charts
from popmodel.reports.project_plot import picture
from popmodel.reports.projection_tables import (
    RUNTIME,
    facts,
    first_family,
    is_above,
    laws,
    plain,
    sizes,
)
from popmodel.reports.reasons import Reasons
from popmodel.reports.renderers.html import html
from popmodel.reports.trees import efficiency, label
from popmodel.reports.views import Document

Found = Mapping[tuple[int, int, str, str], Mapping[str, Any]]
Texts = Callable[[float], str]


def section(contents: Contents) -> Section | None:
    """All projections."""
    documents = (*contents.of("predict"), *contents.of("splits"))
    found = [one["projection"] for one in documents if "projection" in one]
    if not found:
        return None
    shown = [_projection(one, f"projection-{n}") for n, one in enumerate(found)]
    return Section(
        "projection", "Projection to other sizes", {"projections": shown}, uses=("parts",)
    )


def _projection(document: Document, id: str) -> Mapping[str, Any]:
    drawn = picture(document)
    assert isinstance(drawn.shown, Charts)
    names = run_names([run["source"] for run in document["runs"]])
    scaling, reasons = document["scaling"], Reasons()
    tables = _tables(document, reasons)
    return {
        "title": f"{', '.join(names)}: {scaling['mode']} scaling",
        "facts": facts(document),
        "warnings": document["warnings"],
        "caveats": joint_caveats(document["runs"], names),
        "figures": figures(drawn.shown, id, SMALL),
        "remarks": drawn.remarks,
        "tables": html([tables, reasons.section()]),
        "laws": html(laws(line, several=len(document["lines"]) > 1) for line in document["lines"]),
        "baselines": html([plain(document)]),
        "why": html(
            [notes([document["scaling"]["why"], *document["scaling"]["notes"]], Role.REMARK)]
        ),
    }


def _tables(document: Document, reasons: Reasons) -> tuple[TableBlock | NoteBlock, ...]:
    """Runtime and metrics, all sizes beside each other, each with its interval and its law."""
    asked = sizes(document)
    found: Found = {
        (row["processes"], row["threads"], row["family"], row["metric"]): row
        for row in document["rows"]
    }
    each = (((f"{p} x {t}", "projected"), ("", "90 %")) for p, t in asked)
    heads = (*chain.from_iterable(each), ("", "by law"))

    def row(name: str, family: str, metric: str, text: Texts, depth: int = 0) -> TableRow:
        some = [found.get((*size, family, metric)) for size in asked]
        coloured = family not in ("", SCALING)
        cells = [cell for one in some for cell in _cells(one, text, reasons, coloured=coloured)]
        known = {one["law"] for one in some if one is not None} - {"derived"}
        return TableRow(name, (*cells, TableCell(", ".join(sorted(known)))), depth)

    def trees() -> Iterator[TableBlock]:
        shown = first_family(document)
        there = {(row["family"], row["metric"]) for row in document["rows"]}
        first = [row("runtime", "", RUNTIME, format_time)]
        if (SCALING, "speedup") in there:
            first.append(row("speed-up", SCALING, "speedup", "{:.3g}".format))
        yield TableBlock(heads, tuple(first), title="runtime")
        for name in dict.fromkeys((*shown, SCALING)):
            family = load_families()[name]
            is_ratio = name == SCALING
            rows = tuple(
                row(
                    label(family, line),
                    name,
                    line.metric,
                    "{:.3f}".format if is_ratio else percent,
                    line.depth,
                )
                for line in family.tree()[0].rows
                if (name, line.metric) in there and not is_above(name, line.metric, shown)
            )
            if rows:
                yield TableBlock(
                    heads, rows, title=f"{family.title}{', ratios' if is_ratio else ', %'}"
                )

    return tuple(trees())


def _cells(
    one: Mapping[str, Any] | None, text: Texts, reasons: Reasons, *, coloured: bool
) -> tuple[TableCell, ...]:
    """The value of one size and its interval, or the number of the reason why there is none."""
    if one is None:
        return texts(("-", "-"))
    if one["value"] is None:
        return texts((reasons.mark(one["why"]), ""))
    interval = (
        reasons.mark(one["why"])
        if one["low"] is None
        else f"{text(one['low'])} .. {text(one['high'])}"
    )
    value = efficiency(one["value"]) if coloured else TableCell(text(one["value"]))
    return value, TableCell(interval)
