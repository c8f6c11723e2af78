"""What metrics mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from popmodel.report.export import Record, markdown_table
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Style, pairs, paragraph

if TYPE_CHECKING:
    from popmodel.efficiency.explain import Explanation
    from popmodel.efficiency.family import Family


def document(explanation: Explanation) -> dict[str, Any]:
    """The plain data of one metric's explanation, ``popmodel/explain/1``."""
    return {"schema": "popmodel/explain/1", **asdict(explanation)}


def catalogue(families: Iterable[Family]) -> dict[str, Any]:
    """The plain data of the metrics of families, ``popmodel/explain/1``."""
    return {
        "schema": "popmodel/explain/1",
        "families": [
            {
                "family": family.id,
                "title": family.title,
                "use": family.use,
                "source": family.source,
                "metrics": [
                    {
                        "metric": line.metric,
                        "name": metric.name,
                        "depth": line.depth,
                        "meaning": metric.meaning,
                    }
                    for line in _lines(family)
                    for metric in [family.metrics[line.metric]]
                ],
            }
            for family in families
        ],
    }


def screen(document: Document, style: Style) -> list[str]:
    """One metric in each of its families, or one family, or the list of all."""
    if "families" in document:
        (one, *others) = document["families"]
        return _list(document, style) if others else _family(one, style)
    lines: list[str] = []
    for definition in document["definitions"]:
        head = f"{definition['family']}.{document['metric']}"
        lines += ["", *paragraph(f"{definition['name']} ({head})", style)]
        lines += pairs(_facts(definition), Style(style.width - 1, style.depth))
    return lines[1:]


def records(document: Document) -> list[Record]:
    """One line per metric of the list, or per family that defines the metric."""
    if "families" in document:
        return [
            {
                "family": family["family"],
                "metric": metric["metric"],
                "name": metric["name"],
                "meaning": metric["meaning"],
            }
            for family in document["families"]
            for metric in family["metrics"]
        ]
    fields = ("family", "name", "formula", "meaning", "advice", "source")
    return [
        {"metric": document["metric"], **{field: one[field] for field in fields}}
        for one in document["definitions"]
    ]


def markdown(document: Document) -> list[str]:
    """The same as the screen, as Markdown."""
    lines: list[str] = []
    if "families" in document:
        for family in document["families"]:
            lines += ["", f"## {family['title']}", "", family["use"], ""]
            rows = [
                ("  " * one["depth"] + one["name"], one["metric"], _first_sentence(one["meaning"]))
                for one in family["metrics"]
            ]
            lines += markdown_table(["metric", family["family"], "meaning"], rows)
        return lines[1:]
    for definition in document["definitions"]:
        title = f"## {definition['name']} ({definition['family']})"
        lines += ["", title, "", *markdown_table(["", ""], _facts(definition))]
    return lines[1:]


def _lines(family: Family) -> list[Any]:
    """Every metric once, where the family's trees list it first."""
    found: dict[str, Any] = {}
    for walk in family.tree():
        for line in walk.rows:
            found.setdefault(line.metric, line)
    return list(found.values())


def _list(document: Document, style: Style) -> list[str]:
    lines: list[str] = []
    for family in document["families"]:
        lines += ["", *paragraph(f"{family['family']}: {family['title']}", style)]
        lines += paragraph(family["use"], style, first=" ")
        lines += [
            line
            for one in family["metrics"]
            for line in paragraph(one["metric"], style, first=" " * (3 + one["depth"]))
        ]
    return [*lines[1:], "", *paragraph("popmodel explain FAMILY or METRIC says more", style)]


def _family(family: Mapping[str, Any], style: Style) -> list[str]:
    """When to use a family, and its tree with a short meaning of each metric."""
    lines = paragraph(f"{family['family']}: {family['title']}", style)
    lines += pairs([("use", family["use"]), ("source", family["source"])], style)
    lines += [""]
    for one in family["metrics"]:
        indent = " " * (2 * one["depth"])
        text = f"{one['metric']}: {_first_sentence(one['meaning'])}"
        lines += paragraph(text, style, first=indent, rest=f"{indent}    ")
    return [*lines, "", *paragraph(f"popmodel explain {family['family']}.METRIC says more", style)]


def _first_sentence(text: str) -> str:
    end = re.search(r"[.:;](?=\s|$)", text)
    return text[: end.start()] if end else text


def _facts(definition: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Label and text of what is known of a metric, in the order in which people ask."""
    terms = [
        f"{term['symbol']}: {term['meaning']}{_unit(term['unit'])}" for term in definition["terms"]
    ]
    entries: Sequence[tuple[str, Sequence[str]]] = (
        ("meaning", [definition["meaning"]]),
        ("formula", [definition["formula"]]),
        ("where", terms),
        ("made of", definition["parts"]),
        ("part of", definition["parents"]),
        ("view of", [definition["view_of"]] if definition["view_of"] else []),
        ("if low", [definition["advice"]]),
        ("absent if", definition["absent_when"]),
        ("source", [definition["source"]]),
        ("family", [f"{definition['title']}. {definition['use']}"]),
    )
    return [
        (label if index == 0 else "", text)
        for label, texts in entries
        for index, text in enumerate(texts)
    ]


def _unit(unit: str) -> str:
    return f" ({unit})" if unit not in {"", "1"} else ""


VIEWS = Views(screen, records, markdown)
