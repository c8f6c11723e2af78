"""What the runtime of a run depends on: a conclusion, then what it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.files import run_path
from popmodel.base.units import (
    count,
    format_bandwidth,
    format_size,
    format_time,
    plural,
)
from popmodel.efficiency.verdict import (
    SMALL,
    hidden_region_sentence,
    network_costs,
    network_sentence,
    region_gain,
    region_sentence,
)
from popmodel.network.network import Network, describe
from popmodel.reports.blocks import (
    Brief,
    Facts,
    Listing,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    folded,
    notes,
    row,
    titled,
)
from popmodel.reports.figures import percent
from popmodel.reports.scenario_tables import caveats, properties
from popmodel.reports.views import Document, Views

Entry = Mapping[str, Any]

_ROWS = 8  # of a table
_HELPS = 2  # regions on a screen, and as many scenarios
_SLOWDOWNS = (0.01, 0.05)  # in a table; documents have more
_ENTRIES = 5  # of a table of the critical path
_ROUNDING = 1e-9
_UNLIKE = 1.1  # measured over replayed runtime: another network than the one of the run
_FASTER = (0.1, 0.5)  # shares taken away from a region that a table shows; documents have more
_TOGETHER = ("all ideal", "balanced, no transfer")  # scenarios that are ideal in several things
_PARTS = ("computing", "latency", "bandwidth", "overhead")
_DISTANCES = {"within": "within a node", "between": "between nodes", "all": ""}


def flat(document: Document) -> Document:
    """What is known of the run and of what it depends on, side by side."""
    return {**document, **document.get("sensitivity", {})}


def blocks(document: Document) -> list[Section]:
    """The conclusion, the run, its runtime by cause, what would help; then everything in detail."""
    run = flat(document)
    trusted = not run["doubts"]
    verdicts = notes([conclusion(run), region_sentence(run)], Role.VERDICT) if trusted else ()
    room = len(run["caveats"]) < 2
    hidden = notes(filter(None, [hidden_region_sentence(run) if room else ""]), Role.REMARK)
    return [
        *caveats(run),
        (Brief((verdicts,), (verdicts[:1],)),),
        (Brief(((Facts((*_facts(run), *_network(run))),),), ((Facts(tuple(_facts(run))),),)),),
        (Brief((_parts(run, tiers=True),), (_parts(run, tiers=False),)),),
        (
            Brief(
                (_regions(run), _helping(run), *_path(run)),
                ((*_helping(run, _HELPS), *hidden),) if trusted else (),
            ),
        ),
        (folded((titled("notes", _notes(run)),)),),
    ]


def conclusion(document: Document) -> str:
    """In one sentence: what bounds the run, and how much of it the run tolerates."""
    run = flat(document)
    said = network_sentence(run)
    if not run["operations"]:
        return said
    bound = network_costs(run).bound
    tolerated = _tolerated(run, bound) if bound in ("latency", "bandwidth") else _both(run)
    return f"{said}; {tolerated}"


def _tolerated(run: Document, name: str) -> str:
    """How much of what costs most the run tolerates."""
    first = run["tolerance"][0]
    slower = f"before it is {_slowdown(first)} slower"
    if first[name] is None or (name == "bandwidth" and first[name] == 0):
        return f"no {name} makes it {_slowdown(first)} slower"
    now = _parameter(run, name)
    return f"the run tolerates {_write(name, first[name])} (now {now}) {slower}"


def _both(run: Document) -> str:
    first = run["tolerance"][0]
    limits = [
        _write(name, first[name])
        for name in ("latency", "bandwidth")
        if first[name] is not None and first[name] != 0
    ]
    if not limits:
        return f"no network makes it {_slowdown(first)} slower"
    return f"the run tolerates {' or '.join(limits)} before it is {_slowdown(first)} slower"


def _facts(run: Document) -> Iterator[tuple[str, str]]:
    size = plural(run["processes"], "process", "processes")
    where = f"{size} on {plural(run['nodes'], 'node')}"
    operations = plural(run["operations"], "MPI operation")
    yield run["kind"], f"{run_path(run['trace']).name}, {where}, {operations}"
    name, network = run["network"]["name"], run["network"]
    flat = Network(latency=network["latency"], bandwidth=_finite(network["bandwidth"]))
    times = [f"{format_time(run['runtime'])} on {name} ({describe(flat)})"]
    if run["measured_runtime"] is not None:
        times.append(f"measured {format_time(run['measured_runtime'])}")
    yield "runtime", "; ".join(times)
    if "written" in run:
        yield "written", f"critical path, to {run['written']}"


def _network(run: Document) -> Iterator[tuple[str, str]]:
    network = run["network"]
    yield "ideal", f"{format_time(run['ideal_runtime'])} without latency, sizes and overheads"
    yield "network", f"{network['name']}: {', '.join(properties(network, ()))}"


def _parts(run: Document, *, tiers: bool) -> Section:
    """What the runtime is made of, what it would be without each part, and what it tolerates."""
    runtime, shares = run["runtime"], run["shares"]
    tolerated = [one for one in run["tolerance"] if one["slowdown"] in _SLOWDOWNS]
    rows = []
    for name in _PARTS:
        if not shares[name] and (name == "overhead" or not run["operations"]):
            continue
        figures = _time_and_share(shares[name], runtime)
        if name in run["without"]:
            figures += [
                _change(run["without"][name], runtime),
                _parameter(run, name),
                *(_limit(one, name) for one in tolerated),
            ]
        rows.append(row(name, *figures))
        distances = run["tiers"] if tiers and len(run["tiers"]) > 1 else ()
        rows += [
            row(_DISTANCES[one["name"]], *_time_and_share(one[name], runtime), depth=1)
            for one in distances
            if name in one
        ]
    limits = ((_slowdown(one), "slower at") for one in tolerated)
    heads = (("", "time"), ("", "%"), ("runtime", "without"), ("", "now"), *limits)
    width = max(len(line.cells) for line in rows)
    table = TableBlock(heads[:width], tuple(rows), first="critical path")
    reasons = {why for one in tolerated for why in one["why"].values()} if width > 2 else set()
    told = []
    if any(why.startswith("even") for why in reasons):
        told.append("none: even with no latency, or infinite bandwidth, the run takes longer")
    if any(why.startswith("no ") for why in reasons):
        told.append("any: none makes the run take that long")
    return (table, *notes(told, Role.REMARK))


def _time_and_share(time: float, runtime: float) -> list[str]:
    return [format_time(time), f"{100 * time / runtime:.1f}"]


def _change(runtime: float, now: float) -> str:
    text = f"{100 * (runtime / now - 1):+.1f} %" if now else "-"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text


def _limit(one: Entry, name: str) -> str:
    """A limit; a word where it is no number: none at all, or one that nothing reaches."""
    if one[name]:
        return _write(name, one[name])
    return "none" if one["why"].get(name, "").startswith("even") else "any"


# What faster regions and ideal scenarios are worth.


def _helping(run: Document, most: int | None = None) -> Section:
    """What would help: the regions that pay most, and what is ideal in scenarios."""
    runtime = run["runtime"]
    if not run["regions"] or not runtime:
        return ()
    regions = [(region_gain(one, runtime), _made_faster(one)) for one in run["regions"]]
    ideals = [
        (one["gain"] / runtime, f"{one['name']}: {one['meaning']}")
        for one in run["scenarios"]
        if most is None or one["name"] not in _TOGETHER
    ]
    gains = [
        (gain, text)
        for gain, text in [
            *sorted(regions, reverse=True)[:most],
            *ideals[:most],
        ]
        if (abs(gain) if most is None else gain) >= SMALL
    ]
    if not gains:
        return (NoteBlock("nothing helps: less than 0.1 % of the runtime in every scenario"),)
    rows = (row(text, percent(gain), format_time((1 - gain) * runtime)) for gain, text in gains)
    listing = Listing("what would help", ("gain %", "runtime"), tuple(rows))
    longer = "below 0: ranks that were early for others get more to do"
    negative = any(gain < 0 for gain, _ in gains)
    return (listing, NoteBlock(longer, Role.REMARK)) if negative else (listing,)


def _regions(run: Document) -> Section:
    """What faster regions are worth, those with the highest gain first."""
    runtime, found = run["runtime"], run["regions"]
    if not found or not runtime:
        return ()
    told = [one for one in found if max(one["share"], one["critical"] / runtime) >= SMALL]
    shown = told[:_ROWS]
    rows = tuple(row(one["name"], *_figures(one, runtime)) for one in shown)
    heads = ("self %", "path %", *(f"-{100 * one:.0f} %" for one in _FASTER), "slowest", "even")
    legend = (
        "self %: computing in it, mean over ranks; path %: its part of the critical path; -10 %, "
        "-50 %: how much shorter the run is if it takes that much less time; slowest: -50 % on its "
        "slowest rank only; even: if all its ranks take equally long; all in % of the runtime"
    )
    if any(1 - one["balanced"] / runtime <= -SMALL for one in shown):
        legend += "; below 0: where ranks that were early for others get more to do"
    hidden = [run["other_regions"], *(one for one in found if one not in shown)]
    listing = Listing("which region pays", heads, rows)
    return (listing, *_more(hidden, runtime), NoteBlock(legend, Role.REMARK))


def _more(hidden: Sequence[Entry], runtime: float) -> Section:
    """What is known of regions that are not shown: a number of others, then those by name."""
    number = hidden[0]["regions"] + len(hidden) - 1
    if not number:
        return ()
    share, critical = (sum(one[name] for one in hidden) for name in ("share", "critical"))
    text = (
        f"and {plural(number, 'region')} more: together {percent(share)} % of the time, "
        f"{percent(critical / runtime)} % of the critical path, which is the most they can gain"
    )
    return (NoteBlock(text, Role.REMARK),)


def _figures(one: Entry, runtime: float) -> list[str]:
    """Figures of a region: its shares, and what is gained, in per cent of the runtime."""
    slowest = next(gain for gain in one["slowest"]["gain"] if gain["faster"] == 0.5)
    gains = [
        *(region_gain(one, runtime, faster) for faster in _FASTER),
        1 - slowest["runtime"] / runtime,
        1 - one["balanced"] / runtime,
    ]
    shares = one["share"], one["critical"] / runtime
    plain = (0.0 if abs(gain) < SMALL else gain for gain in gains)  # no sign of a nothing
    return [percent(value) for value in (*shares, *plain)]


def _made_faster(one: Entry) -> str:
    what = "computing" if one["kind"] == "phase" else "in"
    return f"10 % less time {what} {one['name']}"


# The critical path: what it is spent on, and where.


def _path(run: Document) -> list[Section]:
    """Ranks, calls and pairs of ranks on the critical path, and where it changes rank."""
    found, runtime = run["critical_path"], run["runtime"]
    if not found["steps"] or not runtime:
        return []
    tables = [
        (*_table(found["ranks"], "critical path by rank", _TIMES, runtime), _stays(found)),
        _table(found["calls"], "critical path by MPI call", _COUNTS, runtime),
        _table(found["pairs"], "critical path by pair of ranks", _COUNTS, runtime),
    ]
    shown = [table for table in tables if table]
    if len(shown) > 1:
        legend = (
            "latencies, bytes: how often the path waits for a latency, and for how many bytes: "
            "the derivatives of the runtime by latency and by time per byte"
        )
        shown[-1] = (*shown[-1], NoteBlock(legend, Role.REMARK))
    return shown


def _stays(found: Entry) -> NoteBlock:
    """How often the path changes rank, and where it stays longest."""
    stay = found["longest"]
    if not found["changes"]:
        return NoteBlock(f"in % of the runtime; it stays on rank {stay['rank']}", Role.REMARK)
    return NoteBlock(
        f"in % of the runtime; it changes rank {plural(found['changes'], 'time')}, and stays "
        f"longest on rank {stay['rank']}: {format_time(stay['end'] - stay['begin'])}, from "
        f"{format_time(stay['begin'])} of the replay",
        Role.REMARK,
    )


def _table(
    table: Entry, title: str, columns: Mapping[str, Callable[[Entry, float], str]], runtime: float
) -> Section:
    """Entries of a table with their shares of the runtime, and what else is told of them."""
    entries = table["entries"]
    shown = [entry for entry in entries[:_ENTRIES] if entry["share"] >= SMALL]
    if not shown:
        return ()
    rows = tuple(
        row(
            entry["name"],
            percent(entry["share"]),
            *(write(entry, runtime) for write in columns.values()),
        )
        for entry in shown
    )
    others = len(entries) - len(shown) + table["others"]
    time = sum(map(_time, entries[len(shown) :])) + table["others_time"]
    listing = Listing(title, ("%", *columns), rows)
    if not others:
        return (listing,)
    more = f"and {count(others)} more: {percent(time / runtime)} %"
    return (listing, NoteBlock(more, Role.REMARK))


def _time(entry: Entry) -> float:
    return float(sum(entry["spent"].values()))


def _computing(entry: Entry, runtime: float) -> str:
    return percent(entry["spent"]["computing"] / runtime)


def _in_mpi(entry: Entry, runtime: float) -> str:
    return percent((_time(entry) - entry["spent"]["computing"]) / runtime)


def _latencies(entry: Entry, _: float) -> str:
    whole = round(entry["latencies"])
    near = abs(entry["latencies"] - whole) < 0.05
    return count(whole) if near else f"{entry['latencies']:.1f}"


def _bytes(entry: Entry, _: float) -> str:
    return format_size(entry["bytes"]) if entry["bytes"] else "-"


_TIMES = {"computing": _computing, "in MPI": _in_mpi}
_COUNTS = {"latencies": _latencies, "bytes": _bytes}


def _curves(run: Document) -> Iterator[str]:
    """The runtime over latency and over 1/bandwidth, a sentence each."""
    for key, name, paid in (
        ("latency", "latency", "latencies"),
        ("inverse_bandwidth", "bandwidth", "bytes"),
    ):
        curve = run[key]
        if not curve["slopes"][-1]:  # nothing depends on it
            continue
        ends = [curve["breakpoints"][end] for end in (0, -1)]
        if name == "bandwidth":
            ends = [1 / end if end else math.inf for end in ends]
        low, high = (_write(name, end) for end in ends)
        first, last = (_paid(curve["slopes"][end]) for end in (0, -1))
        slopes = first if len(curve["slopes"]) == 1 else f"{first} .. {last}"
        error = curve["error"]
        missing = f", up to {format_time(error)} more between breakpoints" if error else ""
        yield (
            f"over {name}, {low} .. {high}: {plural(len(curve['slopes']), 'piece')}, {slopes} "
            f"{paid} on the critical path{missing} (breakpoints in JSON and CSV)"
        )


def _paid(slope: float) -> str:
    """How many latencies or bytes: mostly whole numbers."""
    return f"{slope:,.0f}" if slope >= 10 else f"{slope:.3g}"


def _notes(run: Document) -> list[str]:
    """What stays as it is, how exact the planes are, what was left out."""
    planes, error = run["planes"], run["planes_error"]
    told = [
        *_curves(run),
        "exact as long as sizes decide who waits for a receive, messages meet as traced, and "
        "collectives keep their algorithms; links and memory are not shared",
        f"over latency, bandwidth and speed of computing together the runtime is "
        f"{'one plane' if len(planes) == 1 else f'the greatest of {len(planes)} planes'}"
        f"{f', within {100 * error:.2g} %' if error > _ROUNDING else ''} (in JSON)",
    ]
    if "tiers" in run["network"]:
        name = run["tiers"][-1]["name"]
        told.append(f"latency and bandwidth change {_DISTANCES[name]}, for all sizes alike")
    measured, runtime = run["measured_runtime"], run["runtime"]
    if measured is not None and runtime and measured / runtime > _UNLIKE:
        told.append(
            f"the measured run took {measured / runtime:.1f} times as long: its own network, noise "
            "or shared links cost more than this network"
        )
    return [*told, *run["notes"]]


def _parameter(run: Document, name: str) -> str:
    """A value of the network, as it is now."""
    return _write(name, _finite(run["network"][name]))


def _finite(value: float | None) -> float:
    """A document writes what has no limit as null."""
    return math.inf if value is None else value


def _write(name: str, value: float) -> str:
    if name == "latency":
        return format_time(value, digits=3, trim=True)
    return format_bandwidth(value, digits=3)


def _slowdown(one: Entry) -> str:
    return f"{100 * one['slowdown']:g} %"


VIEWS = Views(
    blocks,
    (
        "sensitivity.shares",
        "sensitivity.tolerance[]",
        "sensitivity.efficient",
        "sensitivity.latency[]",
        "sensitivity.inverse_bandwidth[]",
        "sensitivity.regions[]",
        "sensitivity.regions[].gain[]",
        "sensitivity.regions[].slowest.gain[]",
        "sensitivity.scenarios[]",
        "sensitivity.critical_path.GROUP.entries[]",
    ),
    ("trace", "sensitivity.regions[].name"),
)
