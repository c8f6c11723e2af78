"""What the runtime of a run depends on: a conclusion, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.units import count, format_bandwidth, format_time, plural
from popmodel.efficiency.verdict import network_costs, network_sentence, region_sentence
from popmodel.reports import sensitivity_path, sensitivity_regions
from popmodel.reports.blocks import (
    BarBlock,
    Brief,
    Facts,
    Heading,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    notes,
    texts,
    titled,
)
from popmodel.reports.networks import properties
from popmodel.reports.sensitivity_plot import picture
from popmodel.reports.views import Document, Record, Views

_ROWS = 8  # of a curve on a screen
_ROUNDING = 1e-9
_UNLIKE = 1.1  # measured over replayed runtime: another network than the one of the run

_DISTANCES = {"within": " within a node", "between": " between nodes", "all": ""}


def blocks(document: Document) -> list[Section]:
    """The conclusion, the run, its runtime by cause, tolerances, the curves."""
    return [
        notes(document["caveats"]),
        (
            NoteBlock(conclusion(document), Role.VERDICT),
            NoteBlock(region_sentence(document), Role.VERDICT),
        ),
        (Facts(tuple(_facts(document))),),
        (_made_of(document), *_explained(document)),
        (_tolerances(document), *_unlimited(document)),
        sensitivity_regions.regions(document),
        sensitivity_regions.scenarios(document),
        *sensitivity_path.path(document),
        _curves(document),
        titled("notes", _notes(document)),
    ]


def conclusion(document: Document) -> str:
    """In one sentence: what bounds the run, and how much of it the run tolerates."""
    costs = network_costs(document)
    said = network_sentence(document)
    if not document["operations"]:
        return said
    if costs.bound in ("latency", "bandwidth"):
        return f"{said}; {_tolerated(document, costs.bound)}"
    return f"{said}; {_both(document)}"


def _tolerated(document: Document, name: str) -> str:
    """How much of what bounds it the run tolerates."""
    first = document["tolerance"][0]
    slower = f"before it is {_slowdown(first)} slower"
    if first[name] is None or (name == "bandwidth" and first[name] == 0):
        return f"no {name} makes it {_slowdown(first)} slower"
    now = _parameter(document, name)
    return f"the run tolerates {_write(name, first[name])} (now {now}) {slower}"


def _both(document: Document) -> str:
    first = document["tolerance"][0]
    limits = [
        _write(name, first[name])
        for name in ("latency", "bandwidth")
        if first[name] is not None and first[name] != 0
    ]
    if not limits:
        return f"no network makes it {_slowdown(first)} slower"
    return f"the run tolerates {' or '.join(limits)} before it is {_slowdown(first)} slower"


def _facts(document: Document) -> Iterator[tuple[str, str]]:
    network = document["network"]
    yield "trace", document["trace"]
    operations = plural(document["operations"], "MPI operation")
    where = f"{count(document['processes'])} on {plural(document['nodes'], 'node')}"
    yield "processes", f"{where}, {operations}"
    told = ", ".join(properties(network, ()))
    yield "network", f"{network['name']}: {told}"
    measured = document["measured_runtime"]
    others = [f"ideal network {format_time(document['ideal_runtime'])}"]
    if measured is not None:
        others.append(f"measured {format_time(measured)}")
    yield "runtime", f"{format_time(document['runtime'])} ({', '.join(others)})"
    if "written" in document:
        yield "critical path", f"written to {document['written']}"


def _made_of(document: Document) -> TableBlock:
    """What the runtime is made of, and what it would be without each part."""
    runtime, shares = document["runtime"], document["shares"]
    rows = []
    for name in ("computing", "latency", "bandwidth", "overhead"):
        if name == "overhead" and not shares[name]:
            continue
        without = document["without"].get(name)
        rows.append(_part(name, shares[name], runtime, without))
        tiers = [one for one in document["tiers"] if name in one and len(document["tiers"]) > 1]
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
    share = time / runtime if runtime else 0.0
    change = "" if without is None else _change(without, runtime)
    cells = texts([format_time(time), f"{100 * share:.1f}", change])
    return TableRow(name, (*cells, BarBlock(share)), depth)


def _change(runtime: float, now: float) -> str:
    text = f"{100 * (runtime / now - 1):+.1f} %" if now else "-"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text


def _explained(document: Document) -> Section:
    """What the column without a part says, where it is less than the part."""
    if not any(document["shares"][name] for name in ("latency", "bandwidth")):
        return ()
    return (
        NoteBlock(
            "without: with no latency, or infinite bandwidth, and all else as it is. It may be "
            "less than the part, as another path becomes the longest.",
            Role.REMARK,
        ),
    )


def _tolerances(document: Document) -> TableBlock:
    """How slow the network may be."""
    rows = [TableRow("now", texts(_now(document)))]
    rows += [TableRow(f"{_slowdown(one)} slower", _limits(one)) for one in document["tolerance"]]
    efficient = document["efficient"]
    head = f"transfer efficiency {100 * efficient['transfer_efficiency']:g} %"
    rows.append(TableRow(head, _limits(efficient)))
    return TableBlock(
        (("", "runtime"), ("latency", "up to"), ("bandwidth", "from")),
        tuple(rows),
        first="tolerated",
    )


def _now(document: Document) -> list[str]:
    return [
        format_time(document["runtime"]),
        _parameter(document, "latency"),
        _parameter(document, "bandwidth"),
    ]


def _limits(one: Mapping[str, Any]) -> tuple[TableCell, ...]:
    return texts(
        [
            format_time(one["runtime"]),
            *(
                _write(name, one[name]) if one[name] else _unwritten(one["why"].get(name, ""))
                for name in ("latency", "bandwidth")
            ),
        ]
    )


def _unwritten(why: str) -> str:
    """A limit that is no number: none at all, or one that nothing reaches."""
    return "none" if why.startswith("even") else "any"


def _unlimited(document: Document) -> Section:
    """What words in place of limits mean."""
    rows = [*document["tolerance"], document["efficient"]]
    reasons = {why for one in rows for why in one["why"].values()}
    told = []
    if any(why.startswith("even") for why in reasons):
        told.append("none: even with no latency, or infinite bandwidth, the run takes longer")
    if any(why.startswith("no ") for why in reasons):
        told.append("any: none makes the run take that long")
    return notes(told, Role.REMARK)


def _curves(document: Document) -> Section:
    """The runtime over latency and over 1/bandwidth: tables of pieces, in brief a line each."""
    whole: list[Section] = []
    brief: list[NoteBlock] = []
    for key, name, paid in (
        ("latency", "latency", "latencies"),
        ("inverse_bandwidth", "bandwidth", "bytes"),
    ):
        curve = document[key]
        if not curve["slopes"][-1]:  # nothing depends on it
            continue
        error = f"up to {format_time(curve['error'])} more between breakpoints"
        missing = [NoteBlock(error, Role.REMARK)] if curve["error"] else []
        whole.append((*_pieces(curve, name, paid, document["runtime"]), *missing))
        brief += [NoteBlock(_in_brief(curve, name, paid), Role.HANGING), *missing]
    return (Brief(tuple(whole), (tuple(brief),)),) if whole else ()


def _pieces(curve: Mapping[str, Any], name: str, paid: str, now: float) -> Section:
    """Where pieces begin, with the runtime there and what the critical path pays from there on."""
    shown = _telling(curve["slopes"])
    rows = [
        TableRow(
            str(index + 1) if index < len(curve["slopes"]) else "end",
            texts(
                [
                    _write(name, _inverse(name, curve["breakpoints"][index])),
                    format_time(curve["runtimes"][index]),
                    _change(curve["runtimes"][index], now),
                    *(_paid(slope) for slope in curve["slopes"][index : index + 1]),
                ]
            ),
        )
        for index in shown
    ]
    heading = f"runtime over {name}: {plural(len(curve['slopes']), 'piece')}"
    if len(shown) <= len(curve["slopes"]):
        heading += ", the ends and the sharpest bends"
    columns = (("from", name), ("", "runtime"), ("against", "now"), ("critical path", paid))
    return Heading(heading), TableBlock(columns, tuple(rows), first="piece")


def _in_brief(curve: Mapping[str, Any], name: str, paid: str) -> str:
    """A curve in a sentence, where its table has no room."""
    low, high = (_write(name, _inverse(name, curve["breakpoints"][end])) for end in (0, -1))
    first, last = (_paid(curve["slopes"][end]) for end in (0, -1))
    pieces = plural(len(curve["slopes"]), "piece")
    if len(curve["slopes"]) == 1:
        return f"over {name}, {low} .. {high}: {pieces}, {first} {paid} on the critical path"
    return f"over {name}, {low} .. {high}: {pieces}, {first} .. {last} {paid} on the critical path"


def _telling(slopes: Sequence[float]) -> list[int]:
    """Both ends of a curve, and the breakpoints at which its slope changes most, in order."""
    bends = sorted(range(1, len(slopes)), key=lambda index: slopes[index - 1] - slopes[index])
    return [0, *sorted(bends[: _ROWS - 2]), len(slopes)]


def _paid(slope: float) -> str:
    """How many latencies or bytes: mostly whole numbers."""
    return f"{slope:,.0f}" if slope >= 10 else f"{slope:.3g}"


def _notes(document: Document) -> list[str]:
    """What stays as it is, how exact the planes are, what was left out."""
    planes, error = document["planes"], document["planes_error"]
    told = [
        "exact as long as sizes decide who waits for a receive, messages meet as traced, and "
        "collectives keep their algorithms; links and memory are not shared",
        f"over latency, bandwidth and speed of computing together the runtime is "
        f"{'one plane' if len(planes) == 1 else f'the greatest of {len(planes)} planes'}"
        f"{f', within {100 * error:.2g} %' if error > _ROUNDING else ''} (in JSON)",
    ]
    if "tiers" in document["network"]:
        name = document["tiers"][-1]["name"]
        told.append(f"latency and bandwidth change{_DISTANCES[name]}, for all sizes alike")
    measured, runtime = document["measured_runtime"], document["runtime"]
    if measured is not None and runtime and measured / runtime > _UNLIKE:
        told.append(
            f"the measured run took {measured / runtime:.1f} times as long: its own network, noise "
            "or shared links cost more than this network"
        )
    return [*told, *document["notes"]]


def records(document: Document) -> list[Record]:
    """One line for each value: parts of the critical path, tolerances, ends of pieces."""
    lines: list[Record] = [
        _record("critical path", name, "time", "s", time)
        for name, time in document["shares"].items()
    ]
    efficient = document["efficient"]
    limits = [
        *((f"{_slowdown(one)} slower", one) for one in document["tolerance"]),
        (f"transfer efficiency {100 * efficient['transfer_efficiency']:g} %", efficient),
    ]
    lines += [
        _record("tolerance", name, quantity, unit, one[quantity], runtime=one["runtime"])
        for name, one in limits
        for quantity, unit in (("latency", "s"), ("bandwidth", "B/s"))
    ]
    for key, unit in (("latency", "s"), ("inverse_bandwidth", "s/B")):
        curve = document[key]
        lines += [
            _record(f"runtime over {key}", str(number), key, unit, point, runtime, slope)
            for number, (point, runtime, slope) in enumerate(
                zip(
                    curve["breakpoints"],
                    curve["runtimes"],
                    [*curve["slopes"], None],
                    strict=True,
                ),
                start=1,
            )
        ]
    lines += [*sensitivity_regions.records(document), *sensitivity_path.records(document)]
    return [{"trace": document["trace"], **line} for line in lines]


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


def _parameter(document: Document, name: str) -> str:
    """A value of the network, as it is now."""
    value = document["network"][name]
    return _write(name, float("inf") if value is None else value)


def _inverse(name: str, value: float) -> float:
    if name == "latency":
        return value
    return 1 / value if value else float("inf")


def _write(name: str, value: float) -> str:
    if name == "latency":
        return format_time(value, digits=3, trim=True)
    return format_bandwidth(value, digits=3)


def _slowdown(one: Mapping[str, Any]) -> str:
    return f"{100 * one['slowdown']:g} %"


VIEWS = Views(blocks, records, picture)
