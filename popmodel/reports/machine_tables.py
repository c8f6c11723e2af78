"""A machine profile as a page: what the machine is, what it does, what limits the profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.base import shell
from popmodel.base.units import format_size, plural
from popmodel.machines import profile_findings as findings
from popmodel.machines.parameter import Parameter, is_free
from popmodel.machines.profile import Profile
from popmodel.machines.quantity import Quantity
from popmodel.machines.register import REGISTER
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
from popmodel.reports.views import Record, Views

_SIZES = (8, 1 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20)  # of messages that are shown
_THREADS = 3  # columns of thread counts at most
# what a reader of the page does not look for; it is in the profile
_HIDDEN = frozenset(
    {"kernel", "load", "measured", "cpus_online", "cpus_allowed", "threads_per_core"}
)
_NOISE = {  # shares
    "run_cv": "spread between launches",
    "fwq": "time lost to interruptions",
    "drift": "drift during the measurement",
}
_COUNTED = {"core.freq": ("active core", _THREADS), "memory.by_cores": ("core", 4)}
"""Tables by numbers of cores: what is counted, and how many entries are shown."""
_TIERS = {"socket": "one socket", "intra": "one node", "inter": "two nodes"}


def views(profile: Profile) -> Views:
    """How a profile is shown."""
    return Views(lambda _: _blocks(profile), lambda _: _records(profile))


def _blocks(profile: Profile) -> list[Section]:
    """What the machine is, what it does, what limits the profile."""
    facts, remarks = _facts(profile), dict(_remarks(profile))
    whole: tuple[Section, ...] = (
        (Facts(tuple(facts)),),
        *((table,) for table in _tables(profile) if table.rows),
        *(titled(title, lines) for title, lines in remarks.items()),
    )
    found = [one for one in findings.inspect(profile) if one.kind != "unused"]
    weighty = [one.text for one in found if one.kind == "failed"][:1]
    if profile.noisy:
        weighty.append(f"noisy: {', '.join(profile.noisy)}; measure again on a quiet machine")
    name = shell.quote(profile.name if profile.is_preset else profile.path)
    doubts: Section = (
        NoteBlock(f"{plural(len(found), 'warning')}:"),
        CommandBlock((f"popmodel machine check {name}",), depth=1),
    )
    table = _essentials(profile)
    values = replace(
        table,
        heads=table.heads[:1],
        rows=tuple(replace(row, cells=row.cells[:1]) for row in table.rows),
    )
    brief: tuple[Section, ...] = (
        (Facts(_in_brief(facts)),),
        notes(weighty, Role.WARNING),
        (FitBlock((((table,),), ((values,),))),) if table.rows else (),
        doubts if found else (),
    )
    return [(Brief(whole, brief),)]


def _in_brief(facts: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The machine, its processor and its node; other software in one line."""
    software = ", ".join(text for name, text in facts if name in _SOFTWARE)
    shown = [row for row in facts if row[0] not in (*_SOFTWARE, "note", "caches")]
    return (*shown, *([("software", software)] if software else []))


_SOFTWARE = ("compiler", "mpi", "openmp")
_ESSENTIAL = (
    "core.freq",
    "core.flop_per_cycle",
    "memory.b1",
    "memory.by_cores",
    "memory.bsat",
    "memory.latency.MEM",
)


def _essentials(profile: Profile) -> TableBlock:
    """What predictions rest on first: clock, arithmetic, memory, messages, parallel regions."""
    rows = [
        TableRow(row.label, row.cells)
        for parameter in REGISTER
        if parameter.shown and parameter.stem in _ESSENTIAL
        for row in _of(profile, parameter, most=2)
    ]
    for tier, where in _TIERS.items():
        last = (
            len(profile.class_bounds(tier)) - 1 if tier in profile.document.get("net", {}) else -1
        )
        for what, path in (("latency", "classes[0].alpha"), ("bandwidth", f"classes[{last}].beta")):
            rows += _row(profile, f"{what}, {where}", f"net.{tier}.{path}", depth=0)
    for name in ("parallel_for", "barrier"):
        threads = profile.document.get("openmp", {}).get(name, {}).get("T", [])
        if threads:
            path = f"openmp.{name}.seconds[{len(threads) - 1}]"
            label = f"OpenMP {name}, {plural(threads[-1], 'thread')}"
            rows += _row(profile, label, path, depth=0)
    return TableBlock(heads(["value", "90 %"]), tuple(rows))


def _records(profile: Profile) -> list[Record]:
    """One line per quantity, and one per path that is absent with the reason."""
    known: list[Record] = [
        {
            "path": path,
            "value": quantity.value,
            "low": quantity.low,
            "high": quantity.high,
            "unit": unit_of(path),
            "origin": quantity.origin,
            "n": quantity.n,
            "source": quantity.source,
            "absent": None,
        }
        for path, quantity in profile.quantities.items()
    ]
    absent = profile.document.get("absent", {})
    return known + [{"path": path, "absent": reason} for path, reason in absent.items()]


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


def _tables(profile: Profile) -> Iterator[TableBlock]:
    """What the machine does; a table has no rows where nothing is known of it."""
    columns = heads(["value", "90 %"])
    yield TableBlock(columns, tuple(_rows(profile, "core")), first="core")
    yield TableBlock(columns, tuple(_rows(profile, "memory")), first="memory")
    yield TableBlock(columns, tuple(_messages(profile)), first="messages")
    yield _message_times(profile)
    yield _collectives(profile)
    yield _overheads(profile)
    yield TableBlock(heads(["value"]), tuple(_noise(profile)), first="noise")


def _row(profile: Profile, label: str, path: str, depth: int = 1) -> Iterator[TableRow]:
    """A line for a quantity, if the profile has it."""
    quantity = profile.quantities.get(path)
    unit = "" if quantity is None else unit_of(path)
    if quantity is not None and unit == "s/B":  # people know bandwidths
        quantity, unit = inverse(quantity), "B/s"
    if quantity is not None:
        yield TableRow(
            label, texts([value_text(quantity, unit), interval_text(quantity, unit)]), depth=depth
        )


def _rows(profile: Profile, section: str) -> Iterator[TableRow]:
    """Lines for the quantities of a section that the page names, in the order of the register."""
    for parameter in REGISTER:
        if parameter.section == section and parameter.shown and not parameter.has_tiers:
            yield from _of(profile, parameter)


def _of(profile: Profile, parameter: Parameter, most: int | None = None) -> Iterator[TableRow]:
    """Lines for a parameter: one for each entry of its table, for some of many core counts."""
    if parameter.stem in _COUNTED:
        what, usual = _COUNTED[parameter.stem]
        counts = sorted(int(path.rpartition(".")[2]) for path in _below(profile, parameter.stem))
        for count in _few(counts, most or usual):
            label = parameter.shown.format(plural(count, what))
            yield from _row(profile, label, f"{parameter.stem}.{count}")
    elif "{}" in parameter.shown:
        for path in _below(profile, parameter.stem):
            if (name := _entry(parameter, path)) is not None:
                yield from _row(profile, parameter.shown.format(name), path)
    elif not (parameter.stem == "memory.b1" and "memory.by_cores.1" in profile.quantities):
        yield from _row(profile, parameter.shown, parameter.stem)


def _messages(profile: Profile) -> Iterator[TableRow]:
    network = profile.document.get("net", {})
    for tier, where in _TIERS.items():
        if tier not in network:
            continue
        yield TableRow(where)
        last = len(profile.class_bounds(tier)) - 1
        for parameter in REGISTER:
            if parameter.has_tiers and parameter.shown:
                path = parameter.in_tier(tier)
                index = 0 if parameter.unit == "s" else last  # latency of small, bandwidth of large
                yield from _row(profile, parameter.shown, path.replace("[]", f"[{index}]"))
    if rows := list(_rows(profile, "net")):
        yield TableRow("all messages")
        yield from rows


def _message_times(profile: Profile) -> TableBlock:
    """Time of a message by size and tier."""
    network = profile.document.get("net", {})
    tiers = [tier for tier in _TIERS if network.get(tier, {}).get("table")]
    times = {
        tier: {int(_number(entry["bytes"])): index for index, entry in _entries(network, tier)}
        for tier in tiers
    }
    sizes = [size for size in _SIZES if any(size in times[tier] for tier in tiers)]
    rows = []
    for size in sizes:
        cells = []
        for tier in tiers:
            index = times[tier].get(size)
            path = f"net.{tier}.table[{index}].seconds"
            cells += _pair(profile.quantities.get(path))
        rows.append(TableRow(format_size(size), texts(cells), depth=1))
    columns = heads(name for tier in tiers for name in (_TIERS[tier], "90 %"))
    return TableBlock(columns, tuple(rows), first="half round trip")


def _entries(network: Mapping[str, Any], tier: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    yield from enumerate(network[tier]["table"])


def _number(entry: Any) -> float:
    return float(entry["value"] if isinstance(entry, Mapping) else entry)


def _pair(quantity: Quantity | None) -> list[str]:
    if quantity is None:
        return ["-", "-"]
    return [value_text(quantity, "s"), interval_text(quantity, "s")]


def _collectives(profile: Profile) -> TableBlock:
    """Time of collectives of the largest communicator, by size."""
    found: dict[str, dict[int, Quantity]] = {}
    largest = 0
    for entries in profile.document.get("coll", {}).values():
        largest = max([largest, *(entry["P"] for entry in entries)])
    for op, entries in profile.document.get("coll", {}).items():
        for index, entry in enumerate(entries):
            quantity = profile.quantities.get(f"coll.{op}[{index}].seconds")
            if entry["P"] == largest and quantity is not None:
                found.setdefault(op, {})[int(_number(entry["bytes"]))] = quantity
    sizes = _few(sorted({size for times in found.values() for size in times if size}))
    rows = []
    for op, times in found.items():
        shown = [0] if set(times) == {0} else sizes  # a barrier has no size
        cells = (value_text(times[size], "s") if size in times else "-" for size in shown)
        rows.append(TableRow(op, texts(cells), depth=1))
    columns = heads([format_size(size) for size in sizes] or ["time"])
    return TableBlock(columns, tuple(rows), first=f"{largest} ranks")


def _overheads(profile: Profile) -> TableBlock:
    """Overhead of OpenMP constructs by threads, with the interval of the last column."""
    constructs = profile.document.get("openmp", {})
    counts = _few(sorted({count for entry in constructs.values() for count in entry["T"]}))
    cycle = _cycle(profile)
    rows = []
    for name, entry in sorted(constructs.items()):
        known = {
            count: profile.quantities[f"openmp.{name}.seconds[{index}]"]
            for index, count in enumerate(entry["T"])
        }
        cells = [_overhead(known[n], cycle) if n in known else "-" for n in counts]
        last = known.get(counts[-1])
        told = last is not None and (last.high is None or last.high >= cycle)
        cells.append(interval_text(last, "s") if last is not None and told else "-")
        rows.append(TableRow(name, texts(cells), depth=1))
    columns = heads([*(plural(count, "thread") for count in counts), "90 %"])
    return TableBlock(columns, tuple(rows), first="OpenMP")


def _cycle(profile: Profile) -> float:
    """Shortest clock cycle, s; 0 where no clock is known."""
    clocks = [profile.quantities[path].value for path in _below(profile, "core.freq")]
    return 1 / max(clocks) if clocks else 0.0


def _overhead(quantity: Quantity, cycle: float) -> str:
    """A time on a processor: nothing takes a part of a cycle, so below one only that is told."""
    if 0 < quantity.value < cycle:
        return f"< {value_text(Quantity(cycle), 's')}"
    return value_text(quantity, "s")


def _noise(profile: Profile) -> Iterator[TableRow]:
    """How quiet the machine was: plain numbers, without intervals."""
    for name, entry in profile.document.get("noise", {}).items():
        if isinstance(entry, int | float) or (isinstance(entry, Mapping) and "value" in entry):
            number = _number(entry)
            label = _NOISE.get(name)
            text = figure(number) if label is None else percent_text(number)
            yield TableRow(label or str(name), texts([text]), depth=1)


def _below(profile: Profile, table: str) -> list[str]:
    return [path for path in profile.quantities if path.startswith(f"{table}.")]


def _entry(parameter: Parameter, path: str) -> str | None:
    """Name of the entry that a path leads to; None if it leads to another parameter's."""
    names, meant = path.split("."), parameter.path.split(".")
    free = [name for name, wanted in zip(names, meant, strict=False) if is_free(wanted)]
    same = [
        name == wanted for name, wanted in zip(names, meant, strict=False) if not is_free(wanted)
    ]
    return free[0] if len(names) == len(meant) and all(same) else None


def _few(numbers: Sequence[int], most: int = _THREADS) -> list[int]:
    """First, last and those evenly between, if there are more than some."""
    if len(numbers) <= most:
        return list(numbers)
    last = len(numbers) - 1
    return [numbers[round(index * last / (most - 1))] for index in range(most)]


def _remarks(profile: Profile) -> Iterator[tuple[str, list[str]]]:
    """What limits the profile, with a title."""
    warnings = [
        finding.text
        for finding in findings.inspect(profile)
        if finding.kind not in ("unused", "missing")
    ]
    yield "warnings", warnings
    absent = profile.document.get("absent", {})
    yield "not available", [f"{path}: {reason}" for path, reason in absent.items()]
