"""What the runtime of a run depends on: a conclusion, then what it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

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
    BarBlock,
    Brief,
    Facts,
    Heading,
    Listing,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    notes,
    texts,
    titled,
)
from popmodel.reports.figures import percent
from popmodel.reports.networks import properties
from popmodel.reports.scenario_tables import caveats, further
from popmodel.reports.views import Document, Record, Views

Entry = Mapping[str, Any]

_ROWS = 8  # of a table
_HELPS = 3  # regions on a screen; scenarios: one less
_ENTRIES = 5  # of a table of the critical path
_PIECES = 8  # of a curve
_ROUNDING = 1e-9
_UNLIKE = 1.1  # measured over replayed runtime: another network than the one of the run
_FASTER = (0.1, 0.5)  # shares taken away from a region that a table shows; documents have more
_TOGETHER = ("all ideal", "balanced, no transfer")  # scenarios that are ideal in several things
_PARTS = ("computing", "latency", "bandwidth", "overhead")
_DISTANCES = {"within": " within a node", "between": " between nodes", "all": ""}


def flat(document: Document) -> Document:
    """What is known of the run and of what it depends on, side by side."""
    return {**document, **document.get("sensitivity", {})}


def blocks(document: Document) -> list[Section]:
    """The conclusion, the run, its runtime by cause, what would help; then everything in detail."""
    run = flat(document)
    trusted = not run["doubts"]
    verdict = NoteBlock(conclusion(run), Role.VERDICT)
    hidden = notes(filter(None, [hidden_region_sentence(run)]), Role.REMARK)
    return [
        *caveats(run),
        (Brief(((verdict, NoteBlock(region_sentence(run), Role.VERDICT)),), ((verdict,),)),)
        if trusted
        else (),
        (Brief(((Facts(tuple(_facts(run))),),), ((Facts(tuple(_brief_facts(run))),),)),),
        (
            Brief(
                ((_made_of(run), *_explained(run)), (_tolerances(run), *_unlimited(run))),
                ((_in_brief(run), *(_unlimited(run, 0, -1) if run["operations"] else ())),),
            ),
        ),
        (
            Brief(
                (_regions(run), _scenarios(run), *_path(run), *_curves(run)),
                ((*_helping(run), *hidden),) if trusted else (),
            ),
        ),
        *further(titled("notes", _notes(run))),
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


def _brief_facts(run: Document) -> Iterator[tuple[str, str]]:
    network = Network(
        latency=run["network"]["latency"], bandwidth=_finite(run["network"]["bandwidth"])
    )
    where = f"{count(run['processes'])} on {plural(run['nodes'], 'node')}"
    yield (
        run["kind"],
        f"{PurePath(run['trace']).name}, {where}, {plural(run['operations'], 'MPI operation')}",
    )
    measured = run["measured_runtime"]
    told = "" if measured is None else f"; measured {format_time(measured)}"
    on = f"{run['network']['name']} ({describe(network)})"
    yield "runtime", f"{format_time(run['runtime'])} on {on}{told}"
    if "written" in run:
        yield "written", f"critical path, to {run['written']}"


def _facts(run: Document) -> Iterator[tuple[str, str]]:
    network = run["network"]
    yield run["kind"], run["trace"]
    operations = plural(run["operations"], "MPI operation")
    where = f"{count(run['processes'])} on {plural(run['nodes'], 'node')}"
    yield "processes", f"{where}, {operations}"
    told = ", ".join(properties(network, ()))
    yield "network", f"{network['name']}: {told}"
    measured = run["measured_runtime"]
    others = [f"ideal network {format_time(run['ideal_runtime'])}"]
    if measured is not None:
        others.append(f"measured {format_time(measured)}")
    yield "runtime", f"{format_time(run['runtime'])} ({', '.join(others)})"
    if "written" in run:
        yield "critical path", f"written to {run['written']}"


def _in_brief(run: Document) -> TableBlock:
    """What the runtime is made of, and how slow the network may be."""
    runtime, shares = run["runtime"], run["shares"]
    tolerated = (run["tolerance"][0], run["tolerance"][-1])
    rows = []
    for name in _PARTS:
        if not shares[name] and (name == "overhead" or not run["operations"]):
            continue
        figures = [format_time(shares[name]), f"{100 * _part_of(shares[name], runtime):.1f}"]
        if name in run["without"]:
            figures += [
                _change(run["without"][name], runtime),
                _parameter(run, name),
                *(_limit(one, name) for one in tolerated),
            ]
        rows.append(TableRow(name, texts(figures)))
    limits = ((f"{_slowdown(one)}", "slower at") for one in tolerated)
    heads = (("", "time"), ("", "%"), ("runtime", "without"), ("", "now"), *limits)
    width = max(len(row.cells) for row in rows)
    return TableBlock(heads[:width], tuple(rows), first="critical path")


def _made_of(run: Document) -> TableBlock:
    """What the runtime is made of, and what it would be without each part."""
    runtime, shares = run["runtime"], run["shares"]
    rows = []
    for name in _PARTS:
        if name == "overhead" and not shares[name]:
            continue
        rows.append(_part(name, shares[name], runtime, run["without"].get(name)))
        tiers = [one for one in run["tiers"] if name in one and len(run["tiers"]) > 1]
        rows += [
            _part(f"{name}{_DISTANCES[one['name']]}", one[name], runtime, None, depth=1)
            for one in tiers
        ]
    return TableBlock(
        (("", "time"), ("", "%"), ("runtime", "without"), ("", "")),
        tuple(rows),
        first="critical path",
    )


def _part(
    name: str, time: float, runtime: float, without: float | None, depth: int = 0
) -> TableRow:
    share = _part_of(time, runtime)
    change = "" if without is None else _change(without, runtime)
    cells = texts([format_time(time), f"{100 * share:.1f}", change])
    return TableRow(name, (*cells, BarBlock(share)), depth)


def _part_of(time: float, runtime: float) -> float:
    return time / runtime if runtime else 0.0


def _change(runtime: float, now: float) -> str:
    text = f"{100 * (runtime / now - 1):+.1f} %" if now else "-"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text


def _explained(run: Document) -> Section:
    """What the column without a part says, where it is less than the part."""
    if not any(run["shares"][name] for name in ("latency", "bandwidth")):
        return ()
    return (
        NoteBlock(
            "without: with no latency, or infinite bandwidth, and all else as it is. It may be "
            "less than the part, as another path becomes the longest.",
            Role.REMARK,
        ),
    )


def _tolerances(run: Document) -> TableBlock:
    """How slow the network may be."""
    now = [format_time(run["runtime"]), _parameter(run, "latency"), _parameter(run, "bandwidth")]
    efficient = run["efficient"]
    head = f"transfer efficiency {100 * efficient['transfer_efficiency']:g} %"
    limits = [*((f"{_slowdown(one)} slower", one) for one in run["tolerance"]), (head, efficient)]
    rows = [
        TableRow(
            name,
            texts([format_time(one["runtime"]), _limit(one, "latency"), _limit(one, "bandwidth")]),
        )
        for name, one in limits
    ]
    return TableBlock(
        (("", "runtime"), ("latency", "up to"), ("bandwidth", "from")),
        (TableRow("now", texts(now)), *rows),
        first="tolerated",
    )


def _limit(one: Entry, name: str) -> str:
    """A limit; a word where it is no number: none at all, or one that nothing reaches."""
    if one[name]:
        return _write(name, one[name])
    return "none" if one["why"].get(name, "").startswith("even") else "any"


def _unlimited(run: Document, *some: int) -> Section:
    """What words in place of limits mean, of all tolerances or of some."""
    every = [*run["tolerance"], run["efficient"]]
    shown = [run["tolerance"][index] for index in some] or every
    reasons = {why for one in shown for why in one["why"].values()}
    told = []
    if any(why.startswith("even") for why in reasons):
        told.append("none: even with no latency, or infinite bandwidth, the run takes longer")
    if any(why.startswith("no ") for why in reasons):
        told.append("any: none makes the run take that long")
    return notes(told, Role.REMARK)


# What faster regions and ideal scenarios are worth.


def _helping(run: Document) -> Section:
    """What would help: the regions that pay most, and the scenarios."""
    runtime = run["runtime"]
    if not run["regions"] or not runtime:
        return ()
    regions = [(region_gain(one, runtime), _made_faster(one)) for one in run["regions"]]
    single = [one for one in run["scenarios"] if one["name"] not in _TOGETHER]
    scenarios = [(one["gain"] / runtime, f"{one['name']}: {one['meaning']}") for one in single]
    gains = [*sorted(regions, reverse=True)[:_HELPS], *scenarios[: _HELPS - 1]]
    rows = tuple(
        TableRow(text, texts([percent(gain), format_time((1 - gain) * runtime)]))
        for gain, text in gains
        if gain >= SMALL
    )
    if not rows:
        return (NoteBlock("nothing helps: less than 0.1 % of the runtime in every scenario"),)
    return (Listing("what would help", ("gain %", "runtime"), rows),)


def _regions(run: Document) -> Section:
    """What faster regions are worth, those with the highest gain first."""
    runtime, found = run["runtime"], run["regions"]
    if not found or not runtime:
        return ()
    told = [one for one in found if max(one["share"], one["critical"] / runtime) >= SMALL]
    shown = told[:_ROWS]
    rows = tuple(TableRow(one["name"], texts(_figures(one, runtime))) for one in shown)
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


def _scenarios(run: Document) -> Section:
    """Ideal scenarios, the highest gain first."""
    runtime, found = run["runtime"], run["scenarios"]
    if not found or not runtime:
        return ()
    rows = tuple(
        TableRow(
            f"{one['name']}: {one['meaning']}",
            texts(
                [
                    percent(one["gain"] / runtime),
                    format_time(one["gain"]),
                    format_time(one["runtime"]),
                ]
            ),
        )
        for one in found
        if abs(one["gain"]) >= SMALL * runtime
    )
    if not rows:
        return (
            NoteBlock("potential gains: less than 0.1 % of the runtime in every ideal scenario"),
        )
    table = Listing("potential gains", ("gain %", "gain", "runtime"), rows)
    if all(one["gain"] > -SMALL * runtime for one in found):
        return (table,)
    return (
        table,
        NoteBlock("below 0: ranks that were early for others get more to do", Role.REMARK),
    )


def _figures(one: Entry, runtime: float) -> list[str]:
    """Figures of a region: its shares, and what is gained, in per cent of the runtime."""
    gains = [
        *(region_gain(one, runtime, faster) for faster in _FASTER),
        1 - _at(one["slowest"]["gain"], 0.5) / runtime,
        1 - one["balanced"] / runtime,
    ]
    shares = one["share"], one["critical"] / runtime
    plain = (0.0 if abs(gain) < SMALL else gain for gain in gains)  # no sign of a nothing
    return [percent(value) for value in (*shares, *plain)]


def _at(gains: Sequence[Mapping[str, float]], faster: float) -> float:
    return next(one["runtime"] for one in gains if one["faster"] == faster)


def _made_faster(one: Entry) -> str:
    if one["kind"] == "phase":
        return f"10 % less computing {one['name']}"
    return f"making {one['name']} 10 % faster"


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
        TableRow(
            entry["name"],
            texts(
                [percent(entry["share"]), *(write(entry, runtime) for write in columns.values())]
            ),
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


# The runtime over latency and over 1/bandwidth.


def _curves(run: Document) -> Iterator[Section]:
    """Tables of the pieces of the curves that depend on anything."""
    for key, name, paid in (
        ("latency", "latency", "latencies"),
        ("inverse_bandwidth", "bandwidth", "bytes"),
    ):
        curve = run[key]
        if curve["slopes"][-1]:
            error = f"up to {format_time(curve['error'])} more between breakpoints"
            missing = [NoteBlock(error, Role.REMARK)] if curve["error"] else []
            yield (*_pieces(curve, name, paid, run["runtime"]), *missing)


def _pieces(curve: Entry, name: str, paid: str, now: float) -> Section:
    """Where pieces begin, with the runtime there and what the critical path pays from there on."""
    slopes, points = curve["slopes"], curve["breakpoints"]
    bends = sorted(range(1, len(slopes)), key=lambda index: slopes[index - 1] - slopes[index])
    shown = [0, *sorted(bends[: _PIECES - 2]), len(slopes)]  # the ends and the sharpest bends
    rows = [
        TableRow(
            str(index + 1) if index < len(slopes) else "end",
            texts(
                [
                    _write(name, points[index] if name == "latency" else _inverse(points[index])),
                    format_time(curve["runtimes"][index]),
                    _change(curve["runtimes"][index], now),
                    *(_paid(slope) for slope in slopes[index : index + 1]),
                ]
            ),
        )
        for index in shown
    ]
    heading = f"runtime over {name}: {plural(len(slopes), 'piece')}"
    if len(shown) <= len(slopes):
        heading += ", the ends and the sharpest bends"
    columns = (("from", name), ("", "runtime"), ("against", "now"), ("critical path", paid))
    return Heading(heading), TableBlock(columns, tuple(rows), first="piece")


def _paid(slope: float) -> str:
    """How many latencies or bytes: mostly whole numbers."""
    return f"{slope:,.0f}" if slope >= 10 else f"{slope:.3g}"


def _notes(run: Document) -> list[str]:
    """What stays as it is, how exact the planes are, what was left out."""
    planes, error = run["planes"], run["planes_error"]
    told = [
        "exact as long as sizes decide who waits for a receive, messages meet as traced, and "
        "collectives keep their algorithms; links and memory are not shared",
        f"over latency, bandwidth and speed of computing together the runtime is "
        f"{'one plane' if len(planes) == 1 else f'the greatest of {len(planes)} planes'}"
        f"{f', within {100 * error:.2g} %' if error > _ROUNDING else ''} (in JSON)",
    ]
    if "tiers" in run["network"]:
        name = run["tiers"][-1]["name"]
        told.append(f"latency and bandwidth change{_DISTANCES[name]}, for all sizes alike")
    measured, runtime = run["measured_runtime"], run["runtime"]
    if measured is not None and runtime and measured / runtime > _UNLIKE:
        told.append(
            f"the measured run took {measured / runtime:.1f} times as long: its own network, noise "
            "or shared links cost more than this network"
        )
    return [*told, *run["notes"]]


def records(document: Document) -> list[Record]:
    """One line for each value: parts of the critical path, tolerances, pieces, regions."""
    run = flat(document)
    lines = [
        *(_record("critical path", name, "time", "s", run["shares"][name]) for name in _PARTS),
        *_limit_records(run),
        *_curve_records(run),
        *_region_records(run),
        *_path_records(run),
    ]
    return [{"trace": run["trace"], **line} for line in lines]


def _limit_records(run: Document) -> Iterator[Record]:
    efficient = run["efficient"]
    limits = [
        *((f"{_slowdown(one)} slower", one) for one in run["tolerance"]),
        (f"transfer efficiency {100 * efficient['transfer_efficiency']:g} %", efficient),
    ]
    for name, one in limits:
        for quantity, unit in (("latency", "s"), ("bandwidth", "B/s")):
            yield _record("tolerance", name, quantity, unit, one[quantity], one["runtime"])


def _curve_records(run: Document) -> Iterator[Record]:
    for key, unit in (("latency", "s"), ("inverse_bandwidth", "s/B")):
        curve = run[key]
        points = zip(curve["breakpoints"], curve["runtimes"], [*curve["slopes"], None], strict=True)
        for number, (point, runtime, slope) in enumerate(points, start=1):
            yield _record(f"runtime over {key}", str(number), key, unit, point, runtime, slope)


def _region_records(run: Document) -> Iterator[Record]:
    for one in run["regions"]:
        name = one["name"]
        slow = one["slowest"]["gain"]
        yield _record("region", name, "share", "1", one["share"])
        yield _record("region", name, "faster", "1", 0.0, run["runtime"], -one["critical"])
        for quantity, gains in (("faster", one["gain"]), ("faster on the slowest rank", slow)):
            for gain in gains:
                yield _record("region", name, quantity, "1", gain["faster"], gain["runtime"])
        yield _record("region", name, "balance", "1", one["balance"])
        yield _record("region", name, "balance", "1", 1.0, one["balanced"])
    for one in run["scenarios"]:
        yield _record("scenario", one["name"], "gain", "s", one["gain"], one["runtime"])


def _path_records(run: Document) -> Iterator[Record]:
    """The time, the latencies and the bytes of each entry of each table."""
    for table in ("ranks", "regions", "calls", "pairs"):
        part = f"critical path by {table.removesuffix('s')}"
        for entry in run["critical_path"][table]["entries"]:
            yield _record(part, entry["name"], "time", "s", _time(entry))
            yield _record(part, entry["name"], "latencies", "1", entry["latencies"])
            yield _record(part, entry["name"], "bytes", "B", entry["bytes"])


def _record(
    part: str,
    name: str,
    quantity: str,
    unit: str,
    value: float | None,
    runtime: float | None = None,
    slope: float | None = None,
) -> Record:
    return {
        "part": part,
        "name": name,
        "quantity": quantity,
        "unit": unit,
        "value": value,
        "runtime": runtime,
        "slope": slope,
    }


def _parameter(run: Document, name: str) -> str:
    """A value of the network, as it is now."""
    return _write(name, _finite(run["network"][name]))


def _finite(value: float | None) -> float:
    """A document writes what has no limit as null."""
    return math.inf if value is None else value


def _inverse(value: float) -> float:
    return 1 / value if value else math.inf


def _write(name: str, value: float) -> str:
    if name == "latency":
        return format_time(value, digits=3, trim=True)
    return format_bandwidth(value, digits=3)


def _slowdown(one: Entry) -> str:
    return f"{100 * one['slowdown']:g} %"


VIEWS = Views(blocks, records)
