"""Signatures: the bundled ones; a checked one with its mistakes, in words, beside a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.units import count, format_size, format_time, plural
from popmodel.efficiency.hierarchy import load_families
from popmodel.model.kinds import tree
from popmodel.model.kinds.item import Entry, equation, quantity, value_text
from popmodel.reports.blocks import (
    Brief,
    Facts,
    Heading,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    folded,
    heads,
    notes,
    row,
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


_MOST = 3
"""Rows of a table on the screen."""
_RANKS = 8
"""Processes whose first difference is named."""


def agreement_blocks(checked: Document) -> list[Section]:
    """How far off it is, then efficiencies, phases and messages; a screen shows what differs."""
    document = checked["against"]
    tables = [
        *(_efficiencies(family, pairs) for family, pairs in document["metrics"].items()),
        (_table("computing of all processes", document["phases"], format_time),),
        (_table("messages and collectives", document["counts"], lambda x: count(round(x))),),
        (_table("their bytes", document["bytes"], lambda x: format_size(x, digits=4)),),
    ]
    return [
        notes(document["caveats"]),
        (NoteBlock(_verdict(document), Role.VERDICT),),
        (Facts(tuple(_agreement_facts(document))),),
        (Brief(tuple(tables), tuple(_differing(document))),),
        _differences(document),
        (folded((notes(document["notes"]),)),),
    ]


def _verdict(document: Document) -> str:
    same = "all operations are the same, in the same order"
    if differing := len(document["differences"]):
        of = f"{count(differing)} of {count(document['processes'])} processes"
        same = f"operations differ on {of}"
    worst = 100 * document["worst"]
    off = f"{worst:.0f}" if worst >= 100 else f"{worst:.2g}"
    return f"off by {off} % at most (runtime, or points of an efficiency); {same}"


def _agreement_facts(document: Document) -> list[tuple[str, str]]:
    runtime = document["runtime"]
    size = f"{count(document['processes'])} x {count(document['threads'])}"
    return [
        ("signature", document["signature"]),
        ("trace", f"{document['trace']} ({size})"),
        (
            "runtime",
            f"{format_time(runtime['signature'])}, the trace's {format_time(runtime['trace'])} "
            f"({_beside(runtime)}), both on the ideal network",
        ),
    ]


def _differing(document: Document) -> Iterator[Section]:
    """Efficiencies and phases that differ most, and what is exchanged differently."""

    def far(pairs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(pairs, key=lambda one: -abs(one["signature"] - one["trace"]))[:_MOST]

    for family, pairs in document["metrics"].items():
        yield _efficiencies(family, far(pairs))
    yield (_table("computing of all processes", far(document["phases"]), format_time),)
    unlike = [one for one in document["counts"] if one["signature"] != one["trace"]]
    if unlike and not document["differences"]:  # which are shown below
        yield (_table("messages and collectives", unlike[:1], lambda x: count(round(x))),)


def _table(
    title: str, pairs: Sequence[dict[str, Any]], shown: Callable[[float], str]
) -> TableBlock:
    rows = tuple(
        row(one["name"], shown(one["signature"]), shown(one["trace"]), _beside(one))
        for one in pairs
    )
    return TableBlock(heads(("signature", "trace", "beside")), rows, title=title)


def _beside(one: dict[str, Any]) -> str:
    """How far off the signature is, in percent of the trace."""
    if one["signature"] == one["trace"]:
        return "same"
    if not one["trace"]:
        return "none"
    return f"{100 * (one['signature'] / one['trace'] - 1):+.2f} %"


def _efficiencies(family: str, pairs: Sequence[dict[str, Any]]) -> Section:
    metrics = load_families()[family].metrics
    rows = tuple(
        row(
            metrics[one["name"]].name,
            f"{100 * one['signature']:.1f}",
            f"{100 * one['trace']:.1f}",
            f"{100 * (one['signature'] - one['trace']):+.2f}",
        )
        for one in pairs
    )
    return (TableBlock(heads(("signature", "trace", "points")), rows, title="efficiencies, %"),)


def _differences(document: Document) -> Section:
    """The first operation of processes that differs; a screen shows that of one."""
    lines = [
        f"rank {one['rank']}, operation {count(one['number'])}: {one['mine']} in the "
        f"signature, {one['other']} in the trace"
        for one in document["differences"][:_RANKS]
    ]
    if (rest := len(document["differences"]) - _RANKS) > 0:
        lines.append(f"and {count(rest)} more ranks")
    whole = titled("first operation that differs", lines)
    return (Brief((whole,), (whole[:2],)),) if lines else ()


AGREEMENT = Views(
    agreement_blocks,
    (
        "against.runtime",
        "against.metrics.FAMILY[]",
        "against.phases[]",
        "against.counts[]",
        "against.bytes[]",
    ),
)
