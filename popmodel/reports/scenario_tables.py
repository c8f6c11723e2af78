"""A run in scenarios: on other networks, nodes and CPUs; networks in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from popmodel.base.files import run_path
from popmodel.base.units import format_bandwidth, format_size, format_time, plural
from popmodel.efficiency.family import FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import NO_REGIONS
from popmodel.network.network import PRESETS
from popmodel.network.placement import TRACED
from popmodel.reports.blocks import (
    Brief,
    Facts,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    first_rows,
    folded,
    heads,
    notes,
    row,
    titled,
)
from popmodel.reports.figures import efficiency, lifted, tree_rows
from popmodel.reports.notes import Reasons
from popmodel.reports.views import Document, Views

Run = Mapping[str, Any]

_APART = 0.01  # of the runtime: ranks that end closer together are not worth a column
_ROWS, _ROWS_WITH_TREE = 11, 3  # of scenarios on a screen


_MOST_LINES = 8  # of scenarios in a line each, before a grid is shorter


def blocks(document: Document) -> list[Section]:
    """What the scenarios share, one table of what came out, and the efficiencies if asked for."""
    reasons = Reasons()
    return [
        *caveats(document),
        (Brief(((_shared(document, properties),),), ((_shared(document, unusual),),)),),
        *_results(document, reasons),
        *_efficiencies(document, reasons),
        reasons.section(),
        (folded((titled("notes", _notes(document)),)),),
    ]


def caveats(document: Document) -> list[Section]:
    """What limits the numbers: the first few on a screen; then what makes them doubtful."""
    told = document["caveats"]
    most = 1 if document["doubts"] else 2
    shown = told
    if len(told) > most:
        *first, last = told[:most]
        shown = [*first, f"{last}; and {len(told) - most} more (--all)"]
    doubts = notes(document["doubts"], Role.VERDICT)
    return [(Brief((notes(told),), (notes(shown),)),), doubts]


def _shared(
    document: Document, told: Callable[[Mapping[str, Any], Sequence[str]], Sequence[str]]
) -> Facts:
    """What all scenarios have in common, and what `told` says of each network."""
    runs = document["runs"]
    varied = varying(runs)
    about, times = [run_path(document["trace"]).name], []
    done = [run for run in runs if run["ranks"]]
    if document["measured_runtime"] is not None:
        times.append(f"measured {format_time(document['measured_runtime'])}")
    if done:
        size = plural(len(done[0]["ranks"]), "process", "processes")
        about.append(f"{size} on {plural(document['nodes'], 'node')}")
        about.append(plural(done[0]["operations"], "MPI operation"))
        if "cpu_factor" not in varied:
            times.append(f"computing {_computing(done[0])} per process")
    facts = [(str(document["kind"]), ", ".join(about))]
    facts += [("runtime", "; ".join(times))] if times else []
    facts += [("written", str(document["written"]))] if "written" in document else []
    networks = {} if _without_mpi(document) else {r["network"]["name"]: r["network"] for r in runs}
    for name, network in networks.items():
        text = ", ".join(told(network, varied)) or "as usual"
        own = "tiers" in network or (name in PRESETS and network == PRESETS[name].to_dict())
        based = name if own else f"based on {name}"
        facts.append((name, text) if len(networks) > 1 else ("network", f"{based}: {text}"))
    return Facts(tuple(facts))


def _computing(run: Run) -> str:
    """Least and most computation of the processes of a scenario."""
    times = [rank["compute"] for rank in run["ranks"]]
    least, most = format_time(min(times)), format_time(max(times))
    if least == most:
        return least
    (number, unit), (_, other) = least.split(" "), most.split(" ")
    return f"{number if unit == other else least} .. {most}"


def _results(document: Document, reasons: Reasons) -> list[Section]:
    """What came out for each network, one row each; none where there was no MPI to replay."""
    runs, varied = document["runs"], varying(document["runs"])
    if _without_mpi(document):
        return []
    if len(varied) == 2 and len(runs) > _MOST_LINES and (grid := _grid(document, varied, reasons)):
        return [grid]
    results = _columns(document, varied)
    rows = []
    for number, run in enumerate(runs, start=1):
        if run["ranks"]:
            outcome = [write(run) for write in results.values()]
        else:
            outcome = [reasons.mark(run["error"])] * len(results)
        network = [written(run["network"], name) for name in varied]
        rows.append(row(str(number), *network, *outcome))
    columns = (*map(_head, varied), *results)
    most = _ROWS_WITH_TREE if any("metrics" in run for run in runs) else _most(document)
    return [first_rows(TableBlock(columns, tuple(rows), first="run"), most)]


def _most(document: Document) -> int:
    """Rows of a table on a screen."""
    return _ROWS - 4 if document["doubts"] else _ROWS


def _grid(document: Document, names: Sequence[str], reasons: Reasons) -> Section:
    """Runtimes over two parameters; nothing where the scenarios are not all combinations."""
    runs = document["runs"]
    pairs = [tuple(written(run["network"], name) for name in names) for run in runs]
    down, across = (tuple(dict.fromkeys(values)) for values in zip(*pairs, strict=True))
    if pairs != list(product(down, across)):
        return ()
    times = [format_time(run["runtime"]) if run["ranks"] else "" for run in runs]
    units = {time.split(" ")[1] for time in times if time}
    unit = units.pop() if len(units) == 1 else ""  # said once, where it is the same for all
    cells = iter(
        time.removesuffix(f" {unit}") if time else reasons.mark(run["error"])
        for time, run in zip(times, runs, strict=True)
    )
    rows = tuple(row(name, *(next(cells) for _ in across)) for name in down)
    said = f"runtime, {unit}," if unit else "runtime"
    first, second = map(words, names)
    table = TableBlock(tuple(map(_two_lines, across)), rows, first=first)
    above = NoteBlock(f"{said} by {first} (down) and {second} (across)")
    return (above, *first_rows(table, _most(document)))


def _two_lines(value: str) -> tuple[str, str]:
    number, _, unit = value.partition(" ")
    return (number, unit) if unit else ("", number)


def _without_mpi(document: Document) -> bool:
    return all(run["operations"] == 0 for run in document["runs"])


def _head(name: str) -> tuple[str, str]:
    above, _, head = words(name).partition(" ")
    return (above, head) if head else ("", above)


def _columns(
    document: Document, varied: Sequence[str]
) -> dict[tuple[str, str], Callable[[Run], str]]:
    """Columns of results by their heads: those that say nothing here are left out."""
    what = document["against"]["what"]
    columns: dict[tuple[str, str], Callable[[Run], str]] = {
        ("", "runtime"): lambda run: format_time(run["runtime"]),
        ("against", "run 1" if what == "first" else what): _change,
    }
    if "cpu_factor" in varied:
        columns["", "compute"] = _computing
    done = [run for run in document["runs"] if run["ranks"]]
    if any(_first_end(run) < (1 - _APART) * run["runtime"] for run in done):
        columns["first", "rank ends"] = lambda run: format_time(_first_end(run))
    return columns


def _change(run: Run) -> str:
    return "-" if run["change"] is None else f"{100 * run['change']:+.1f} %"


def _first_end(run: Run) -> float:
    return float(min(rank["end"] for rank in run["ranks"]))


def _efficiencies(document: Document, reasons: Reasons) -> list[Section]:
    """For each family the tree of its metrics; on a screen that of MPI, and few runs."""
    if _without_mpi(document):
        return []
    known = document.get("measured_metrics") or {}
    runs = [(f"run {number}", run) for number, run in enumerate(document["runs"], start=1)]
    whole = list(_trees(known, runs, reasons))
    if not whole:
        return []
    few = next(_trees(known, runs[:_ROWS_WITH_TREE], reasons))
    return [(Brief(tuple((tree,) for tree in whole), ((few,),)),)]


def _trees(
    known: Mapping[str, Any], runs: Sequence[tuple[str, Run]], reasons: Reasons
) -> Iterator[TableBlock]:
    columns = heads([*(["measured"] if known else []), *(name for name, _ in runs)])
    names = dict.fromkeys([*known, *(name for _, run in runs for name in run.get("metrics", {}))])
    for name in names:
        family = load_families()[name]
        measured = [known[name]] if known else []
        found = [*measured, *(run.get("metrics", {}).get(name, run) for _, run in runs)]

        def cells(
            line: FamilyLine, found: Sequence[Mapping[str, Any]] = found
        ) -> list[TableCell] | None:
            if line.view or not any(line.metric in values for values in found):
                return None
            return [_efficiency(values, line.metric, reasons) for values in found]

        rows = lifted(tree_rows(family, family.tree()[0].rows, cells))
        yield TableBlock(columns, rows, first=family.title)


def _efficiency(values: Mapping[str, Any], metric: str, reasons: Reasons) -> TableCell:
    if metric in values:
        return efficiency(values[metric])
    return TableCell(reasons.mark(values["error"]) if "error" in values else "-")


def _notes(document: Document) -> list[str]:
    """What the replays leave out or assume, and which efficiencies they cannot give."""
    told = list(document["notes"])
    if any("tiers" in run["network"] for run in document["runs"]):
        mapped = any("mapping" in run["network"] for run in document["runs"])
        placed = "traced or as mapped" if mapped else "traced"
        told.append(
            f"machines: best estimates of the profile, processes on nodes as {placed}; sharing of "
            "links and memory channels is not modelled"
        )
    families = load_families()
    return told + [
        f"{families[name].title}: not known for replays, {why}"
        for name, why in (document.get("unknown_families") or {}).items()
        if why != NO_REGIONS
    ]


VIEWS = Views(
    blocks,
    ("runs[]", "runs[].ranks[RANK]"),
    ("trace", "measured_runtime", "against", "runs[].network"),
)


_OF_TIERS = (
    "latency",
    "bandwidth",
    "eager_threshold",
    "send_is_detached_thresh",
    "send_overhead",
    "receive_overhead",
)  # which tiers say by distance and size
_COUNTS = ("output_links", "input_links", "links_within", "buses")  # 0: as many as needed
_USUAL = {
    "mapping": TRACED,
    "algorithms": "the first of each operation",
    "speeds": "as traced",
    "send_is_detached_thresh": 0.0,
    "send_overhead": 0.0,
    "receive_overhead": 0.0,
    "sharing": "fifo",
    "topology": "none",
    **dict.fromkeys(_COUNTS, 0),
}
_RULES = ("rules", "eager_threshold", "collectives", "collective_cost")
_TIERS = {"within": "within a node", "between": "between nodes"}


def differences(document: Document, number: int) -> str:
    """In words what tells a replay, counted from 1, from the others: ``latency 5 us``."""
    network = document["runs"][number - 1]["network"]
    return ", ".join(
        f"{words(name)} {written(network, name)}" for name in varying(document["runs"])
    )


_WRITERS: dict[str, Callable[[Any], str]] = {
    "latency": lambda value: format_time(value, trim=True),
    "bandwidth": lambda value: format_bandwidth(_finite(value)),
    "eager_threshold": lambda value: format_size(_finite(value)),
    "send_is_detached_thresh": lambda value: format_size(_finite(value)),
    "send_overhead": lambda value: format_time(value, trim=True),
    "receive_overhead": lambda value: format_time(value, trim=True),
    "cpu_factor": lambda value: f"{value:g}",
}


def _finite(value: float | None) -> float:
    """A document writes what has no limit as null."""
    return math.inf if value is None else value


def write(name: str, value: Any) -> str:
    """A value of a parameter with its unit."""
    return _WRITERS.get(name, str)(value)


def words(name: str) -> str:
    """A parameter as a person names it."""
    special = {"name": "network", "cpu_factor": "CPU factor", "speeds": "rank speeds"}
    return special.get(name, name.replace("_", " "))


def parameters(runs: Sequence[Run]) -> list[str]:
    """Parameters of networks that are one value each; some networks lack those at the end."""
    names = dict.fromkeys(name for run in runs for name in run["network"])
    return [name for name in names if name != "tiers"]


def varying(runs: Sequence[Run]) -> list[str]:
    """What tells replays apart: the network's name, and what differs between those of one name.

    What depends on the messages of a network by size and distance tells nothing.
    """
    networks: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        networks.setdefault(run["network"]["name"], []).append(run["network"])
    tiered = all("tiers" in run["network"] for run in runs)
    told = [name for name in parameters(runs) if not (tiered and name in _OF_TIERS)]
    return [
        name
        for name in told
        if (name == "name" and len(networks) > 1)
        or any(
            _known(one, name) != _known(some[0], name) for some in networks.values() for one in some
        )
    ]


def _known(network: Mapping[str, Any], name: str) -> Any:
    """Value of a parameter; networks say nothing of what is as usual."""
    return network.get(name, _USUAL.get(name))


def written(network: Mapping[str, Any], name: str) -> str:
    """Value of a parameter; one that depends on the message is not one number."""
    if "tiers" in network and name in _OF_TIERS:
        return "-"
    return write(name, _known(network, name))


def properties(network: Mapping[str, Any], varied: Sequence[str]) -> list[str]:
    """Parameters of a network that no column shows, in words."""
    by_size = [_tier(_TIERS[key], tier) for key, tier in network.get("tiers", {}).items()]
    unsaid = {"name", "tiers", *varied, *(_OF_TIERS if by_size else ())}
    if network["cpu_factor"] == 1:
        unsaid.add("cpu_factor")
    unsaid.update(name for name in _COUNTS if not network.get(name))
    if "topology" in network:
        unsaid.add("sharing")
    return by_size + [
        _property(name, value) for name, value in network.items() if name not in unsaid
    ]


def unusual(network: Mapping[str, Any], varied: Sequence[str]) -> list[str]:
    """The same without rules that are as in most networks."""
    usual = PRESETS["ideal"].to_dict()
    same = [name for name in _RULES if network.get(name) == usual[name]]
    return properties(network, [*varied, *same])


def _property(name: str, value: Any) -> str:
    if name == "latency" and value == 0:
        return "no latency"
    if name == "bandwidth" and value is None:
        return "infinite bandwidth"
    return f"{words(name)} {write(name, value)}"


def _tier(where: str, tier: Mapping[str, Any]) -> str:
    """Latency and bandwidth of a tier: those of empty and of the longest messages."""
    first, last = tier["classes"][0], tier["classes"][-1]
    rate = format_bandwidth(1 / last["beta"] if last["beta"] else math.inf)
    eager = format_size(_finite(tier["eager_threshold"]), digits=3)
    latency = format_time(first["alpha"], trim=True)
    overheads = "".join(
        f", {words(name)} {write(name, tier[name])}"
        for name in ("send_overhead", "receive_overhead")
        if name in tier
    )
    return f"{where} latency {latency}, bandwidth up to {rate}, eager threshold {eager}{overheads}"
