"""What metrics and other words mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from popmodel.reports.blocks import (
    Brief,
    Facts,
    Heading,
    MarkdownBlock,
    NoteBlock,
    Role,
    Section,
    folded,
    notes,
)
from popmodel.reports.views import Document, Views

Entry: TypeAlias = Mapping[str, Any]


def blocks(document: Document) -> Sequence[Section]:
    """One name in each of its meanings, or one family, or the list of all."""
    if "pages" in document:
        return _list(document)
    if "families" in document:
        return _family(document["families"][0])
    metric = document["metric"]
    meanings = [
        (f"{one['family']}.{metric}", _definition(metric, one)) for one in document["definitions"]
    ]
    meanings += [(word["name"], _word(word)) for word in document["words"]]
    sections = [section for _, section in meanings]
    shown = 1 if metric else 2 if len(sections) > 3 else 3
    if len(sections) <= shown:
        return sections
    others = ", ".join(dict.fromkeys(name for name, _ in meanings[shown:]))
    brief = (NoteBlock(f"other meanings: {others}"),)
    return [*sections[:shown], (Brief(tuple(sections[shown:]), (brief,)),)]


def _definition(metric: str, definition: Entry) -> Section:
    head = Heading(f"{definition['name']} ({definition['family']}.{metric})")
    facts = _facts(definition)
    brief = [(name, text) for name, text in facts if name not in ("source", "family")]
    whole = (head, Facts(tuple(facts), margin=1))
    return (Brief((whole,), ((head, Facts(tuple(brief), margin=1)),)),)


def _word(word: Entry) -> Section:
    return (Heading(f"{word['name']} ({word['topic']})"), Facts(tuple(_word_facts(word)), margin=1))


def _list(document: Document) -> list[Section]:
    """The pages; with everything also families and terms."""
    rows = tuple((page["page"], page["title"]) for page in document["pages"])
    pages, others = Facts(rows[:_PAGES], "pages"), Facts(rows[_PAGES:], "pages")
    families: list[Section] = [
        (
            Heading(f"{family['family']}: {family['title']}"),
            NoteBlock(family["use"], Role.REMARK),
            *(NoteBlock(one["metric"], Role.ENTRY, one["depth"]) for one in family["metrics"]),
        )
        for family in document["families"]
    ]
    terms: list[Section] = [
        (
            Heading(f"terms: {topic}"),
            NoteBlock(", ".join(word["name"] for word in words), Role.ENTRY),
        )
        for topic, words in _by_topic(document).items()
    ]
    keys = "popmodel docs grammar: the keys of signatures"
    return [
        (NoteBlock("popmodel docs NAME shows a page or explains a name on a screen:"), pages),
        (folded(((others,), *families, *terms, notes((keys,)))),),
    ]


_PAGES = 20  # those that a screen has room for


def _family(family: Entry) -> list[Section]:
    """When to use a family, and its tree; with everything a short meaning of each metric."""
    head, use = Heading(f"{family['family']}: {family['title']}"), ("use", family["use"])
    whole = (head, Facts((use, ("source", family["source"]))))
    meanings = tuple(
        NoteBlock(f"{one['metric']}: {_first_sentence(one['meaning'])}", Role.TERM, one["depth"])
        for one in family["metrics"]
    )
    names = tuple(NoteBlock(one["metric"], Role.TERM, one["depth"]) for one in family["metrics"])
    return [
        (Brief((whole, meanings), ((head, Facts((use,))), names)),),
        (NoteBlock(f"popmodel docs {family['family']}.METRIC explains a metric"),),
    ]


def _first_sentence(text: str) -> str:
    end = re.search(r"[.:;](?=\s|$)", text)
    return text[: end.start()] if end else text


def _facts(definition: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Label and text of what is known of a metric, in the order in which people ask."""
    terms = [
        f"{term['symbol']}: {term['meaning']}{in_unit(term['unit'])}"
        for term in definition["terms"]
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


def in_unit(unit: str) -> str:
    """A unit behind the meaning of a term; nothing for a plain number."""
    return f" ({unit})" if unit not in {"", "1"} else ""


VIEWS = Views(
    blocks,
    ("definitions[]", "families[].metrics[]", "pages[]", "words[]"),
    ("metric", "families[].family"),
)


def _page_blocks(document: Document) -> list[Section]:
    """A page, below what else its name means."""
    words = [_word(word) for word in document["words"]]
    return [*words, (MarkdownBlock(document["text"], document["shown"]),)]


MANUAL = Views(_page_blocks, ("text",), ("page", "title"), is_text=True)
"""How a page of the documentation is shown."""
