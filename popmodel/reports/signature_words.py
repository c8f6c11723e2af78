"""Signatures: the list of the bundled ones; a checked one with its mistakes, or in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.units import count, plural
from popmodel.model.kinds import tree
from popmodel.model.kinds.words import Entry, equation, quantity, value_text
from popmodel.reports.blocks import (
    Brief,
    Facts,
    Heading,
    NoteBlock,
    Role,
    Section,
    notes,
    titled,
)
from popmodel.reports.views import Document, Views

CHANGING = "what changes with P and T"
_SHOWN = 5
"""Mistakes and remarks on the screen."""
_ITEMS = 12
"""Items of a program on the screen."""
_LINE = 68
"""Characters of an item on the screen."""


def blocks(document: Document) -> list[Section]:
    """Mistakes if there are any, remarks, and what the signature says."""
    explained = document["explained"]
    findings = list(_findings(document))
    if len(findings) > _SHOWN:
        more = (NoteBlock(f"and {len(findings) - _SHOWN} more", Role.REMARK),)
        findings = [(Brief(tuple(findings), (*findings[:_SHOWN], more)),)]
    return [
        notes(document["caveats"]),
        (Facts(tuple(_facts(document))),),
        *findings,
        *(_explained(explained) if explained is not None else ()),
    ]


def _explained(explained: Entry) -> Iterator[Section]:
    """Parameters and the items of the program; every formula where all is asked for."""
    sections = [titled(title, entries, Role.ENTRY) for title, entries in _sections(explained)]
    items = list(tree(explained["program"]))
    sections.append(
        (Heading("program"), *(NoteBlock(text, Role.ENTRY, depth) for depth, text in items))
    )
    sections.append(titled(CHANGING, _dependence(explained), Role.ENTRY))
    yield (Brief(tuple(sections), tuple(_in_short(explained, items))),)


def _in_short(explained: Entry, items: Sequence[tuple[int, str]]) -> Iterator[Section]:
    given = [_parameter(entry) for entry in explained["params"]]
    constants = plural(len(explained["constants"]), "constant")
    yield (
        Facts(
            (
                ("parameters", ", ".join(given) or "none"),
                ("constants", constants if explained["constants"] else "none"),
            )
        ),
    )
    shown = [NoteBlock(_first_words(text), Role.ENTRY, depth) for depth, text in items[:_ITEMS]]
    hidden = len(items) - len(shown)
    more = [NoteBlock(f"and {plural(hidden, 'other item')}", Role.ENTRY)] if hidden else []
    yield (Heading("program"), *shown, *more)


def _first_words(text: str) -> str:
    """The beginning of a sentence on one line of a screen; what is left out has a mark."""
    return text if len(text) <= _LINE else f"{text[:_LINE].rsplit(' ', 1)[0]} ..."


def _facts(document: Document) -> list[tuple[str, str]]:
    mistakes, remarks = (len(document[key]) for key in ("mistakes", "remarks"))
    verdict = plural(mistakes, "mistake") if mistakes else "no mistakes"
    if remarks:
        verdict += f", {plural(remarks, 'remark')}"
    facts = [
        ("signature", document["application"] or "unreadable"),
        ("file", document["path"]),
        ("check", verdict),
    ]
    explained = document["explained"]
    if explained and explained["description"]:
        facts.insert(1, ("about", explained["description"]))
    return facts


# -- mistakes and remarks


def _findings(document: Document) -> Iterator[Section]:
    """Mistakes, then remarks, as compilers write them, so that editors jump to their places."""
    for begin, findings in (("", document["mistakes"]), ("remark: ", document["remarks"])):
        for one in findings:
            place = _place(document["path"], one)
            finding = NoteBlock(f"{place} {begin}{one['message']}", Role.HANGING)
            hint = [f"hint: {one['hint']}"] if one["hint"] else []
            yield (finding, *notes(hint, Role.REMARK))


def _place(path: str, finding: Entry) -> str:
    numbers = [finding["line"], finding["column"]]
    return ":".join([path, *(str(number) for number in numbers if number is not None)]) + ":"


# -- the parts before the program

_MEMORY: dict[str, list[str]] = {
    "threads": [],  # the default of OpenMP programs
    "master": ["the data of a process lies where its master thread touched it first"],
    "interleaved": ["the data of a process is interleaved over memory domains"],
}


def _sections(explained: Entry) -> Iterator[tuple[str, list[str]]]:
    """Titles and lines of what stands before the program; none of what is not there."""
    for title, entries in (
        ("parameters", [_parameter(entry) for entry in explained["params"]]),
        ("constants", [_parameter(entry) for entry in explained["constants"]]),
        ("derived", [f"{entry['name']} = {equation(entry)}" for entry in explained["let"]]),
        ("decomposition", _decomposition(explained["decomposition"])),
        ("limits", _limits(explained["limits"])),
        ("imbalance", _imbalance(explained["imbalance"])),
        ("memory", _MEMORY[explained["first_touch"]]),
    ):
        if entries:
            yield title, entries


def _parameter(entry: Entry) -> str:
    if entry["value"] is None:
        return f"{entry['name']} is unknown"
    text = f"{entry['name']} = {value_text(entry)}"
    if "low" in entry:
        ends = (value_text({**entry, "value": entry[end]}) for end in ("low", "high"))
        text += f", 90 %: {' .. '.join(ends)}"
    origin = entry["origin"]
    if origin == "user":
        return text
    return f"{text} (assumed)" if origin == "assumed" else f"{text} (from {origin})"


def _decomposition(grid: Entry | None) -> list[str]:
    if grid is None:
        return []
    lines = []
    if grid["global"] is not None:
        lines.append(f"cells: {_product(grid['global'])}")
    if grid["grid"] == "auto":
        lines.append("grid: P processes, with the smallest surface")
    else:
        lines.append(f"grid: {_product(grid['grid'])} processes")
    wraps = grid["periodic"]
    if all(wraps) or not any(wraps):
        lines.append(f"periodic boundaries: {'yes' if all(wraps) else 'no'}")
    else:
        around = ", ".join(str(dim) for dim, wrap in enumerate(wraps) if wrap)
        lines.append(f"periodic boundaries: in dimension {around}")
    if grid["global"] is not None:
        local = ", ".join(f"n{dim}" for dim in range(len(wraps)))
        lines.append(f"cells per process: {local}")
    return lines


def _product(formulas: Sequence[Entry]) -> str:
    text = " x ".join(str(formula["formula"]) for formula in formulas)
    values = [value_text({**formula, "unit": "1"}) for formula in formulas if formula["value"]]
    known = len(values) == len(formulas) and text != " x ".join(values)
    return f"{text} = {' x '.join(values)}" if known else text


def _limits(limits: Entry) -> list[str]:
    lines = [f"requires {condition}" for condition in limits["require"]]
    if limits["excludes"]:
        numbers = ", ".join(count(number) for number in limits["possible"])
        lines.append(f"possible P: {numbers}, ...")
    if limits["memory_per_rank"] is not None:
        lines.append(f"memory per process: {quantity(limits['memory_per_rank'])}")
    return lines


_IMBALANCE = {
    "persistent_cv": "work per process varies by {0} (cv), the same in every step",
    "transient_cv": "work per process varies by {0} (cv), drawn anew in every step",
    "reference_processes": "given for {0} processes",
    "growth_exponent": "grows as P to the power of {0}",
    "largest": "one process has {0} of all work, or more",
}


def _imbalance(known: Entry) -> list[str]:
    return [
        words.format("?" if known[name]["value"] is None else f"{known[name]['value']:g}")
        for name, words in _IMBALANCE.items()
        if name in known
    ]


def _dependence(explained: Entry) -> list[str]:
    """Which items have formulas that depend on processes and threads."""
    # names may have commas in them
    items = {name: "; ".join(explained["depends"][name]) for name in "PT"}
    return [
        f"P: {items['P'] or 'nothing; every process does the same work'}",
        f"T: {items['T'] or 'nothing; the threads share the work'}",
    ]


def _formulas(program: Sequence[Entry]) -> Iterator[Entry]:
    """Kind and name of every item with its formulas, by key."""
    for item in program:
        about = {"kind": item["kind"], "name": item["name"]}
        for key, entry in item.items():
            if key != "body":
                yield from (
                    {**about, "key": path, **formula} for path, formula in _below(key, entry)
                )
        yield from _formulas(item.get("body", ()))


def _below(key: str, entry: Any) -> Iterator[tuple[str, Entry]]:
    if isinstance(entry, Mapping):
        if "formula" in entry:
            yield key, entry
        else:
            for name, one in entry.items():
                yield from _below(f"{key}.{name}", one)


CHECKED = Views(
    blocks,
    (
        "mistakes[]",
        "remarks[]",
        "explained.params[]",
        "explained.constants[]",
        "explained.let[]",
        "formulas[]",
    ),
    ("application",),
    data=lambda document: {
        **document,
        "formulas": [*_formulas((document["explained"] or {"program": ()})["program"])],
    },
)


# -- the list of the bundled signatures


def _list_blocks(document: Document) -> list[Section]:
    return [
        (Facts(tuple((one["name"], _summary(one)) for one in document["signatures"])),),
        notes(
            (
                "popmodel signature show NAME > my_app.toml: copy one as a start",
                "popmodel signature check my_app.toml: explain it and find its mistakes",
                "popmodel docs grammar: every key with its unit",
            ),
            Role.HANGING,
        ),
    ]


def _summary(one: Entry) -> str:
    params = " ".join(f"{name}={value:g}" for name, value in one["params"].items())
    return f"{one['description']} ({params})"


LISTED = Views(_list_blocks, ("signatures[]",))
