"""What metrics and other words mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from popmodel.reports.blocks import Facts, Heading, NoteBlock, Role, Section, notes
from popmodel.reports.views import Document, Record, Views

Entry: TypeAlias = Mapping[str, Any]


def blocks(document: Document) -> Sequence[Section]:
    """One name in each of its meanings, or one family, or the list of all."""
    if "families" in document:
        (one, *others) = document["families"]
        return _list(document) if others else _family(one)
    metric = document["metric"]
    return [
        (Heading(f"{one['name']} ({one['family']}.{metric})"), Facts(tuple(_facts(one)), margin=1))
        for one in document["definitions"]
    ] + [
        (Heading(f"{word['name']} ({word['topic']})"), Facts(tuple(_word_facts(word)), margin=1))
        for word in document["words"]
    ]


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


def _list(document: Document) -> list[Section]:
    families: list[Section] = [
        (
            Heading(f"{family['family']}: {family['title']}"),
            NoteBlock(family["use"], Role.REMARK),
            *(NoteBlock(one["metric"], Role.NAME, one["depth"]) for one in family["metrics"]),
        )
        for family in document["families"]
    ]
    terms: list[Section] = [
        (
            Heading(f"terms: {topic}"),
            NoteBlock(", ".join(word["name"] for word in words), Role.NAME),
        )
        for topic, words in _by_topic(document).items()
    ]
    more = (
        "popmodel explain NAME explains a family, a metric or a term",
        "popmodel docs grammar: the keys of signatures",
    )
    return [*families, *terms, notes(more)]


def _family(family: Entry) -> list[Section]:
    """When to use a family, and its tree with a short meaning of each metric."""
    return [
        (
            Heading(f"{family['family']}: {family['title']}"),
            Facts((("use", family["use"]), ("source", family["source"]))),
        ),
        tuple(
            NoteBlock(
                f"{one['metric']}: {_first_sentence(one['meaning'])}", Role.TERM, one["depth"]
            )
            for one in family["metrics"]
        ),
        (NoteBlock(f"popmodel explain {family['family']}.METRIC explains a metric"),),
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


VIEWS = Views(blocks, records)
