"""What metrics and other words mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from popmodel.report.export import Record, markdown_table
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Style, pairs, paragraph

if TYPE_CHECKING:
    pass

Entry: TypeAlias = Mapping[str, Any]


def screen(document: Document, style: Style) -> list[str]:
    """One name in each of its meanings, or one family, or the list of all."""
    if "families" in document:
        (one, *others) = document["families"]
        return _list(document, style) if others else _family(one, style)
    lines: list[str] = []
    for definition in document["definitions"]:
        head = f"{definition['family']}.{document['metric']}"
        lines += ["", *paragraph(f"{definition['name']} ({head})", style)]
        lines += pairs(_facts(definition), Style(style.width - 1, style.depth))
    for word in document["words"]:
        lines += ["", *paragraph(f"{word['name']} ({word['topic']})", style)]
        lines += pairs(_word_facts(word), Style(style.width - 1, style.depth))
    return lines[1:]


def records(document: Document) -> list[Record]:
    """One line per metric and word of the list, or per family that defines the metric."""
    words: list[Record] = [
        {
            "family": "",
            "metric": "",
            **{field: word[field] for field in ("name", "meaning", "unit")},
        }
        for word in document["words"]
    ]
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
        ] + words
    fields = ("family", "name", "formula", "meaning", "advice", "source")
    return [
        {"metric": document["metric"], **{field: one[field] for field in fields}}
        for one in document["definitions"]
    ] + words


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
        for topic, words in _by_topic(document).items():
            rows = [(word["name"], word["unit"], word["meaning"]) for word in words]
            title = f"## Terms: {topic}"
            lines += ["", title, "", *markdown_table(["word", "unit", "meaning"], rows)]
        return lines[1:]
    for definition in document["definitions"]:
        title = f"## {definition['name']} ({definition['family']})"
        lines += ["", title, "", *markdown_table(["", ""], _facts(definition))]
    for word in document["words"]:
        title = f"## {word['name']} ({word['topic']})"
        lines += ["", title, "", *markdown_table(["", ""], _word_facts(word))]
    return lines[1:]


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
    for topic, words in _by_topic(document).items():
        listed = ", ".join(word["name"] for word in words)
        lines += ["", *paragraph(f"terms: {topic}", style)]
        lines += paragraph(listed, style, first="   ", rest="   ")
    lines += ["", *paragraph("popmodel explain NAME explains a family, a metric or a term", style)]
    return [*lines[1:], *paragraph("popmodel docs grammar: the keys of signatures", style)]


def _family(family: Mapping[str, Any], style: Style) -> list[str]:
    """When to use a family, and its tree with a short meaning of each metric."""
    lines = paragraph(f"{family['family']}: {family['title']}", style)
    lines += pairs([("use", family["use"]), ("source", family["source"])], style)
    lines += [""]
    for one in family["metrics"]:
        indent = " " * (2 * one["depth"])
        text = f"{one['metric']}: {_first_sentence(one['meaning'])}"
        lines += paragraph(text, style, first=indent, rest=f"{indent}    ")
    return [
        *lines,
        "",
        *paragraph(f"popmodel explain {family['family']}.METRIC explains a metric", style),
    ]


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
        ("parts", definition["parts"]),
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


def _by_topic(document: Document) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for word in document["words"]:
        found.setdefault(word["topic"], []).append(word)
    return found


def _word_facts(word: Entry) -> list[tuple[str, str]]:
    """Label and text of what is known of a word."""
    facts = [
        ("meaning", word["meaning"]),
        ("unit", "" if word["unit"] == "1" else word["unit"]),
        ("also", ", ".join(word["also"])),
        ("see", ", ".join(word["see"])),
        ("measure", word["measure"]),
    ]
    return [(label, text) for label, text in facts if text]


def _unit(unit: str) -> str:
    return f" ({unit})" if unit not in {"", "1"} else ""


VIEWS = Views(screen, records, markdown)
