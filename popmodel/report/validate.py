"""Predictions beside measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.report.export import Record, markdown_table
from popmodel.report.joint import joint_caveats
from popmodel.report.names import run_names
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Cell, Row, Style, pairs, paragraph, percent, table
from popmodel.report.warnings import caveat_lines

_HEADS = ("predicted", "90 %", "measured", "differs")


def views(families: Sequence[str]) -> Views:
    """How a validation is shown: the runtime, and the metrics of some families."""
    return Views(
        lambda document, style: _screen(document, style, families),
        _records,
        lambda document: _markdown(document, families),
    )


def _screen(document: Document, style: Style, families: Sequence[str]) -> list[str]:
    lines = caveat_lines(_caveats(document), style)
    lines += pairs(
        [
            ("application", document["application"]),
            ("machine", document["machine"]),
        ],
        style,
    )
    for title, rows in _runs(document, families):
        drawn = [Row(label, tuple(map(Cell, cells))) for label, cells in rows]
        lines += ["", *paragraph(title, style)]
        lines += table([[head] for head in _HEADS], drawn, style)
    return [*lines, "", *pairs(_summary(document), style)]


def _records(document: Document) -> list[Record]:
    return [dict(row) for row in document["rows"]]


def _markdown(document: Document, families: Sequence[str]) -> list[str]:
    lines = [f"## {document['application']} on {document['machine']}"]
    lines += [line for caveat in _caveats(document) for line in ("", caveat)]
    for title, rows in _runs(document, families):
        body = [[label, *cells] for label, cells in rows]
        lines += ["", title, "", *markdown_table(["", *_HEADS], body)]
    return [*lines, "", *(f"- {name}: {value}" for name, value in _summary(document))]


def _caveats(document: Document) -> list[str]:
    runs = document["measured"]
    return joint_caveats(runs, run_names([run["source"] for run in runs])) if runs else []


def _runs(
    document: Document, families: Sequence[str]
) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """For every run its name, and label and cells of each quantity."""
    titles = {
        (family.id, metric.id): metric.name
        for family in load_families().values()
        for metric in family.metrics.values()
    }
    run: list[Mapping[str, Any]] = []
    groups: list[list[Mapping[str, Any]]] = []
    for row in document["rows"]:
        if row["metric"] == "runtime":
            run = []
            groups.append(run)
        run.append(row)
    for rows in groups:
        first = rows[0]
        shown = [("runtime, s", _cells(first))]
        shown += [
            (titles[row["family"], row["metric"]], _cells(row))
            for row in rows[1:]
            if row["family"] in families
        ]
        yield f"{first['processes']} x {first['threads']}  {first['source']}", shown


def _cells(row: Mapping[str, Any]) -> list[str]:
    if row["metric"] == "runtime":
        bounds = [f"{row[key]:.3g}" for key in ("low", "high") if row[key] is not None]
        values = [f"{row[key]:.4g}" for key in ("predicted", "measured")]
        change = f"{100 * row['difference']:+.1f} %"
    else:
        bounds = [percent(row[key], 0) for key in ("low", "high") if row[key] is not None]
        values = [percent(row[key]) for key in ("predicted", "measured")]
        change = f"{row['difference']:+.1f}"
    mark = " !" if row["covered"] is False else ""
    return [values[0], " .. ".join(bounds) or "-", values[1], change + mark]


def _summary(document: Document) -> list[tuple[str, str]]:
    runtime = document["summary"]["runtime"]
    lines = [
        (
            "runtime",
            f"median error {100 * runtime['median_error']:.1f} %, largest "
            f"{100 * runtime['largest_error']:.1f} %, bias {100 * runtime['bias']:+.1f} %",
        ),
        ("intervals", _covered(runtime)),
    ]
    if metrics := document["summary"].get("metrics"):
        lines.append(
            (
                "efficiencies",
                f"median error {metrics['median_error']:.1f} points, largest "
                f"{metrics['largest_error']:.1f}; {_covered(metrics)}",
            )
        )
    if any(row["covered"] is False for row in document["rows"]):
        lines.append(("!", "the interval, of parameters only, does not hold the measurement"))
    return lines


def _covered(errors: Mapping[str, Any]) -> str:
    if not errors["intervals"]:
        return "the predictions have none"
    return f"{errors['covered']} of {errors['intervals']} hold the measurement"
