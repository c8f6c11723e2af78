"""A machine profile: what the machine is and does, what the profile is good for, how two differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.base import shell
from popmodel.base.units import format_size, plural
from popmodel.machines import profile_findings as findings
from popmodel.machines import register
from popmodel.machines.profile import Profile, named_quantities
from popmodel.machines.profile_findings import KINDS
from popmodel.machines.quantity import Quantity
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    Facts,
    Heading,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    folded,
    heads,
    narrowed,
    notes,
    row,
    titled,
)
from popmodel.reports.figures import figure, interval_text, percent_text, value_text
from popmodel.reports.views import Document, Views

# What a reader does not look for; it is in the profile.
_HIDDEN = frozenset(
    {"kernel", "load", "measured", "cpus_online", "cpus_allowed", "threads_per_core"}
)
_SOFTWARE = ("compiler", "mpi", "openmp")
_NOISE = {  # shares
    "run_cv": "spread between launches",
    "fwq": "time lost to interruptions",
    "drift": "drift during the measurement",
}
_TIERS = {"socket": "one socket", "intra": "one node", "inter": "two nodes"}
_HEADS = heads(["value", "90 %"])


def views(profile: Profile) -> Views:
    """How a profile is shown."""
    return Views(
        lambda _: _blocks(profile),
        ("quantities[]", "absent.PATH"),
        data=lambda _: _data(profile),
    )


def _blocks(profile: Profile) -> list[Section]:
    """The machine, what predictions rest on first, doubts; with everything all quantities."""
    facts = _facts(profile)
    found = [one for one in findings.inspect(profile) if one.kind != "unused"]
    absent = profile.document.get("absent", {})
    whole: tuple[Section, ...] = (
        (Facts(tuple(facts)),),
        *_sections(profile),
        titled("warnings", [one.text for one in found if one.kind != "missing"]),
        titled("not available", [f"{path}: {reason}" for path, reason in absent.items()]),
    )
    weighty = [one.text for one in found if one.kind == "failed"][:1]
    if profile.noisy:
        weighty.append(f"noisy: {', '.join(profile.noisy)}; measure again on a quiet machine")
    name = shell.quote(profile.name if profile.is_preset else profile.path)
    doubts: Section = (
        NoteBlock(f"{plural(len(found), 'warning')}:"),
        CommandBlock((f"popmodel machine check {name}",), depth=1),
    )
    rows = tuple(_essentials(profile))
    brief: tuple[Section, ...] = (
        (Facts(_in_brief(facts)),),
        notes(weighty, Role.WARNING),
        (narrowed(TableBlock(_HEADS, rows), ("90 %",)),) if rows else (),
        doubts if found else (),
    )
    return [(Brief(whole, brief),)]


def _in_brief(facts: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The machine, its processor and its node; other software in one line."""
    software = ", ".join(text for name, text in facts if name in _SOFTWARE)
    shown = [fact for fact in facts if fact[0] not in (*_SOFTWARE, "note", "caches")]
    return (*shown, *([("software", software)] if software else []))


def _essentials(profile: Profile) -> Iterator[TableRow]:
    """What predictions rest on first: clock, arithmetic, memory, messages, parallel regions."""
    clocks, bandwidths = (_ends(profile, name) for name in ("core.freq", "memory.by_cores"))
    known = [(f"clock, {plural(n, 'active core')}", f"core.freq.{n}") for n in clocks]
    known += [("floating-point operations", "core.flop_per_cycle")]
    known += [(f"bandwidth, {plural(n, 'core')}", f"memory.by_cores.{n}") for n in bandwidths]
    known += [] if bandwidths else [("bandwidth, 1 core", "memory.b1")]
    known += [("saturated bandwidth", "memory.bsat"), ("latency of memory", "memory.latency.MEM")]
    network, constructs = (profile.document.get(name, {}) for name in ("net", "openmp"))
    for tier, where in _TIERS.items():
        last = len(profile.class_bounds(tier)) - 1 if tier in network else 0
        known += [
            (f"latency, {where}", f"net.{tier}.classes[0].alpha"),
            (f"bandwidth, {where}", f"net.{tier}.classes[{last}].beta"),
        ]
    for name in ("parallel_for", "barrier"):
        if threads := constructs.get(name, {}).get("T", []):
            label = f"OpenMP {name}, {plural(threads[-1], 'thread')}"
            known.append((label, f"openmp.{name}.seconds[{len(threads) - 1}]"))
    for label, path in known:
        quantity = profile.quantities.get(path)
        unit = "" if quantity is None else unit_of(path)
        if quantity is not None and unit == "s/B":  # people know bandwidths
            quantity, unit = inverse(quantity), "B/s"
        if quantity is not None:
            yield _quantity_row(label, quantity, unit, depth=0)


def _ends(profile: Profile, table: str) -> list[int]:
    """The least and the largest number of cores of a table."""
    paths = (path for path in profile.quantities if path.startswith(f"{table}."))
    counts = sorted(int(path.rpartition(".")[2]) for path in paths)
    return counts if len(counts) < 3 else [counts[0], counts[-1]]


def _quantity_row(label: str, quantity: Quantity, unit: str, depth: int = 1) -> TableRow:
    return row(label, value_text(quantity, unit), interval_text(quantity, unit), depth=depth)


def _sections(profile: Profile) -> Iterator[Section]:
    """All quantities by the sections of the profile, by the names that comparisons show."""
    rows: dict[str, list[TableRow]] = {}
    for path, quantity in named_quantities(profile).items():
        section = path.partition(".")[0]
        rows.setdefault(section, []).append(_quantity_row(path, quantity, unit_of(path)))
    for section, lines in rows.items():
        yield (TableBlock(_HEADS, tuple(lines), first=section),)
    if noise := tuple(_noise(profile)):
        yield (TableBlock(_HEADS[:1], noise, first="noise"),)


def _noise(profile: Profile) -> Iterator[TableRow]:
    """How quiet the machine was: plain numbers, without intervals."""
    for name, entry in profile.document.get("noise", {}).items():
        number: Any = entry.get("value") if isinstance(entry, Mapping) else entry
        if isinstance(number, int | float):
            label = _NOISE.get(name)
            text = figure(number) if label is None else percent_text(number)
            yield row(label or str(name), text, depth=1)


def _data(profile: Profile) -> Document:
    """All quantities with their units, and those that are absent with the reason."""
    quantities = [
        {"path": path, "unit": unit_of(path), **quantity.to_dict()}
        for path, quantity in profile.quantities.items()
    ]
    return {"quantities": quantities, "absent": profile.document.get("absent", {})}


def _facts(profile: Profile) -> list[tuple[str, str]]:
    topology = profile.topology
    origin = "preset, not measured" if profile.is_preset else profile.origin
    if (moment := findings.measured_at(profile)) is not None:
        origin += f" {moment:%Y-%m-%d}"
    facts = [("machine", f"{profile.name} ({origin})")]
    facts += [
        (str(key).replace("_", " "), host_text(value))
        for key, value in profile.document.get("host", {}).items()
        if isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and key not in _HIDDEN
    ]
    node = ", ".join(
        [
            plural(topology.cores_per_node, "core"),
            plural(topology.sockets, "socket"),
            plural(topology.domains, "memory domain"),
        ]
    )
    if topology.memory_per_node is not None:
        node += f", {format_size(topology.memory_per_node, digits=3)}"
    facts.append(("node", node))
    if topology.nodes > 1:
        facts.append(("nodes", str(topology.nodes)))
    caches = [
        f"{cache.level} {format_size(cache.bytes, digits=3)}"
        + (f" shared by {cache.shared_by}" if cache.shared_by > 1 else "")
        for cache in topology.caches
    ]
    if caches:
        facts.append(("caches", ", ".join(caches)))
    return facts


def inverse(quantity: Quantity) -> Quantity | None:
    """A time per byte as a bandwidth; None if it is 0, a bandwidth without bound."""
    if quantity.value == 0:
        return None
    if quantity.low is None or quantity.high is None or quantity.low == 0:
        return Quantity(1 / quantity.value)
    return Quantity(1 / quantity.value, 1 / quantity.high, 1 / quantity.low)


def host_text(value: str | int | float) -> str:
    """What a profile says of its host, such as the MPI library."""
    # Open MPI adds who packaged it, when and where
    return str(value).partition(", package:")[0]


def unit_of(path: str) -> str:
    """Unit of a quantity by its path, such as ``s`` for ``net.intra.classes[0].alpha``."""
    parameter = register.find(path)
    if parameter is None or parameter.plain:
        raise KeyError(path)
    return parameter.unit


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
_KINDS_ON_A_SCREEN = 5


def _findings(document: Document) -> list[Section]:
    """The findings, by kind; a screen shows the first of each kind that matters."""
    found = {kind: _texts(document, kind) for kind in KINDS}
    whole = tuple(titled(_TITLES[kind], lines) for kind, lines in found.items())
    known = [(kind, lines) for kind, lines in found.items() if lines and kind != "unused"]
    brief = tuple(
        titled(_TITLES[kind] + (f": 1 of {len(lines)}" if len(lines) > 1 else ""), lines[:1])
        for kind, lines in known[:_KINDS_ON_A_SCREEN]
    )
    together = tuple(block for section in brief for block in section)
    warnings = sum(len(lines) for _, lines in known)
    usable, parameters = document["usable"], plural(document["quantities"], "parameter")
    facts = (
        ("machine", document["machine"]),
        ("profile", document["path"]),
        ("usable", f"{'yes' if usable else 'no'}, {parameters}"),
        ("warnings", str(warnings) if warnings else "none"),
    )
    return [(Facts(facts),), (Brief(whole, (together,)),)]


def _texts(document: Document, kind: str) -> list[str]:
    """The findings of a kind, without the words that its title repeats."""
    repeated = "not used: " if kind == "unused" else ""
    return [
        finding["text"].removeprefix(repeated)
        for finding in document["findings"]
        if finding["kind"] == kind
    ]


CHECKED = Views(_findings, ("findings[]",), ("machine",))

# -- two profiles

_DIGITS = range(3, 7)
_NAMES_SHOWN = 12  # of quantities that only one profile has
_ROWS_SHOWN = 10
_HOSTS_SHOWN = 3


def _differences(document: Document) -> list[Section]:
    """What differs: hardware and software, what lies beyond intervals, what one does not have."""
    first, second = document["machines"]
    summary = document["summary"]
    equal = f"{summary['within']} of {summary['compared']}"
    facts = (
        ("a", f"{first['machine']} ({first['path']})"),
        ("b", f"{second['machine']} ({second['path']})"),
        ("equal within intervals", equal if summary["compared"] else "no common parameters"),
    )
    hosts = [
        # What only one states says nothing about the machines.
        f"{one['key'].replace('_', ' ')}: {one['a']} (a), {one['b']} (b)"
        for one in document["host"]
        if one["a"] is not None and one["b"] is not None
    ]
    rows, title = tuple(_outside(document)), "different hardware or software"
    only = (
        titled(f"only in {name}", _listed(document[f"only_{name}"]), Role.REMARK) for name in "ab"
    )
    return [
        (Facts(facts),),
        (Brief((titled(title, hosts),), (titled(title, hosts[:_HOSTS_SHOWN]),)),),
        (Heading("differ beyond the intervals"), *_compared(rows)) if rows else (),
        (folded(tuple(only)),),
    ]


def _compared(rows: Sequence[TableRow]) -> Section:
    """A table; on a screen its first rows, where that is narrow only how much they differ."""
    table = TableBlock(heads(["a", "b", "b / a"]), tuple(rows))
    left = len(rows) - _ROWS_SHOWN
    few = narrowed(replace(table, rows=table.rows[:_ROWS_SHOWN]), ("a", "b"))
    more = notes([f"and {left} more (--all)"] if left > 0 else [], Role.REMARK)
    return (Brief(((narrowed(table, ("a", "b")),),), ((few, *more),)),)


def _outside(document: Document) -> Iterator[TableRow]:
    for entry in document["rows"]:
        if not entry["within"]:
            ratio = "-" if entry["ratio"] is None else f"{entry['ratio']:.3f}"
            yield row(entry["path"], *_told_apart(entry), ratio, depth=1)


def _told_apart(entry: Mapping[str, Any]) -> list[str]:
    """Both values, with more digits than three where those are the same."""
    both = [
        Quantity(entry[name]["value"], entry[name].get("low"), entry[name].get("high"))
        for name in "ab"
    ]
    tries = ([value_text(one, entry["unit"], digits) for one in both] for digits in _DIGITS)
    values: list[str] = []
    for values in tries:
        if values[0] != values[1]:
            break
    return values


def _listed(names: Sequence[str]) -> list[str]:
    """Names in a line, not all of many; nothing for none."""
    more = len(names) - _NAMES_SHOWN
    line = ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return [line] if names else []


COMPARED = Views(_differences, ("rows[]",))

# -- this machine


def _host(document: Document) -> list[Section]:
    """The checks: what was found, and below it what to do."""
    checks: list[tuple[str, str]] = []
    for check in document["checks"]:
        checks.append((check["name"], f"{check['status']}: {check['found']}"))
        checks += [("", f"-> {check['todo']}")] if check["todo"] else []
    ready = NoteBlock("ready to measure:")
    measure = CommandBlock(("popmodel machine measure -o machine.json",), depth=1)
    return [
        (Facts((("machine", describe_machine(document["machine"])), *checks)),),
        (ready, measure) if document["measurable"] else (),
    ]


def describe_machine(machine: Mapping[str, Any]) -> str:
    """The machine in a line: its processor, what it has of it."""
    shape = [plural(machine["cores_per_node"], "core")]
    if machine["sockets"] > 1:
        shape.append(plural(machine["sockets"], "socket"))
    if machine["domains"] > machine["sockets"]:
        shape.append(plural(machine["domains"], "memory domain"))
    if machine.get("virtual"):
        shape.append("virtual")
    return ", ".join([machine.get("cpu", "unknown CPU"), *shape])


HOST = Views(_host, ("checks[]",))
