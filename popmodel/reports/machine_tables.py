"""A machine profile: what the machine is, what it does, what limits the profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.base import shell
from popmodel.base.units import format_size, plural
from popmodel.machines import profile_findings as findings
from popmodel.machines.profile import Profile, named_quantities
from popmodel.machines.quantity import Quantity
from popmodel.reports.blocks import (
    Brief,
    CommandBlock,
    Facts,
    FitBlock,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.machine_values import (
    figure,
    host_text,
    interval_text,
    inverse,
    percent_text,
    unit_of,
    value_text,
)
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
    table = TableBlock(_HEADS, rows)
    values = TableBlock(_HEADS[:1], tuple(replace(row, cells=row.cells[:1]) for row in rows))
    brief: tuple[Section, ...] = (
        (Facts(_in_brief(facts)),),
        notes(weighty, Role.WARNING),
        (FitBlock((((table,),), ((values,),))),) if rows else (),
        doubts if found else (),
    )
    return [(Brief(whole, brief),)]


def _in_brief(facts: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The machine, its processor and its node; other software in one line."""
    software = ", ".join(text for name, text in facts if name in _SOFTWARE)
    shown = [row for row in facts if row[0] not in (*_SOFTWARE, "note", "caches")]
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
            yield _row(label, quantity, unit, depth=0)


def _ends(profile: Profile, table: str) -> list[int]:
    """The least and the largest number of cores of a table."""
    paths = (path for path in profile.quantities if path.startswith(f"{table}."))
    counts = sorted(int(path.rpartition(".")[2]) for path in paths)
    return counts if len(counts) < 3 else [counts[0], counts[-1]]


def _row(label: str, quantity: Quantity, unit: str, depth: int = 1) -> TableRow:
    cells = texts([value_text(quantity, unit), interval_text(quantity, unit)])
    return TableRow(label, cells, depth)


def _sections(profile: Profile) -> Iterator[Section]:
    """All quantities by the sections of the profile, by the names that comparisons show."""
    rows: dict[str, list[TableRow]] = {}
    for path, quantity in named_quantities(profile).items():
        section = path.partition(".")[0]
        rows.setdefault(section, []).append(_row(path, quantity, unit_of(path)))
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
            yield TableRow(label or str(name), texts([text]), depth=1)


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
