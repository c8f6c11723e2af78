"""Replays of a trace on networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.report.export import Record, markdown_table
from popmodel.report.reasons import Reasons
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Cell, Row, Style, pairs, paragraph, table
from popmodel.report.warnings import caveat_lines
from popmodel.units import count, format_bandwidth, format_size, format_time

if TYPE_CHECKING:
    from popmodel.network.network import Network
    from popmodel.simulator import Execution
    from popmodel.trace.focus import Focus

Run = Mapping[str, Any]


def document(
    trace: str,
    measured: float,
    notes: Sequence[str],
    replays: Sequence[tuple[Network, Execution | str]],
    window: Focus,
    caveats: Sequence[str],
) -> dict[str, Any]:
    """The plain data of replays, ``popmodel/replay/1``.

    Parameters
    ----------
    trace : str
        The trace that was replayed.
    measured : float
        Its measured runtime in seconds.
    notes : sequence of str
        What the replay left out or took as local time.
    replays : sequence of (Network, Execution or str)
        For each network what came out, or why nothing did.
    window : Focus
        What of the trace was replayed.
    caveats : sequence of str
        What has to be known before the numbers are read.
    """
    return {
        "schema": "popmodel/replay/1",
        "caveats": list(caveats),
        "window": window.to_dict(),
        "measured_runtime": measured,
        "notes": list(notes),
        "runs": [_run(trace, network, outcome) for network, outcome in replays],
    }


def differences(document: Document, number: int) -> str:
    """In words what tells a replay, counted from 1, from the others: ``latency 5 us``."""
    run = document["runs"][number - 1]
    return ", ".join(
        f"{_words(name)} {_write(name, run['network'][name])}" for name in _varied(document["runs"])
    )


def screen(document: Document, style: Style) -> list[str]:
    """The replays below each other: what they share, what differs, and what came out."""
    varied = _varied(document["runs"])
    reasons = Reasons()
    lines = caveat_lines(document["caveats"], style)
    lines += pairs(_shared(document, varied), style)
    for first, heads, rows in _tables(document, varied, reasons):
        lines += ["", *table(heads, rows, style, first=first)]
    lines += reasons.lines(style)
    if document["notes"]:
        lines += ["", "notes"]
        for note in document["notes"]:
            lines += paragraph(note, style, first=" - ")
    return lines


def records(document: Document) -> list[Record]:
    """One line per replay and rank; the quantities of the replay repeat on each of its lines.

    A replay that stopped has one line, with the reason and without rank.
    """
    nobody = {"rank": None, "compute": None, "end": None}
    return [
        {
            "trace": run["trace"],
            **{f"network_{name}": value for name, value in run["network"].items()},
            "window_begin": document["window"]["begin"],
            "window_end": document["window"]["end"],
            "measured_runtime": document["measured_runtime"],
            "runtime": run["runtime"],
            "operations": run["operations"],
            **times,
            "error": run.get("error", ""),
        }
        for run in document["runs"]
        for times in [{"rank": rank, **one} for rank, one in enumerate(run["ranks"])] or [nobody]
    ]


def markdown(document: Document) -> list[str]:
    """The same as the screen, as Markdown tables."""
    varied = _varied(document["runs"])
    reasons = Reasons()
    lines = [line for caveat in document["caveats"] for line in (caveat, "")]
    lines += markdown_table(["replay", ""], _shared(document, varied))
    for first, heads, rows in _tables(document, varied, reasons):
        body = [[row.label, *(cell.text for cell in row.cells)] for row in rows]
        lines += ["", *markdown_table([first, *(" ".join(head).strip() for head in heads)], body)]
    told = [*reasons.texts(), *document["notes"]]
    return lines + [line for text in told for line in ("", text)]


def _run(trace: str, network: Network, outcome: Execution | str) -> dict[str, Any]:
    head = {"trace": trace, "network": network.to_dict()}
    if isinstance(outcome, str):
        return {**head, "runtime": None, "operations": None, "ranks": [], "error": outcome}
    times = zip(outcome.compute.tolist(), outcome.end.tolist(), strict=True)
    return {
        **head,
        "runtime": outcome.runtime,
        "operations": int(outcome.operations),
        "ranks": [{"compute": compute, "end": end} for compute, end in times],
    }


_WRITERS: dict[str, Callable[[Any], str]] = {
    "latency": lambda value: format_time(value, trim=True),
    "bandwidth": lambda value: format_bandwidth(_finite(value)),
    "eager_threshold": lambda value: format_size(_finite(value)),
    "cpu_factor": lambda value: f"{value:g}",
}


def _finite(value: float | None) -> float:
    """A document writes what has no limit as null."""
    return math.inf if value is None else value


def _write(name: str, value: Any) -> str:
    return _WRITERS.get(name, str)(value)


def _words(name: str) -> str:
    return {"name": "preset", "cpu_factor": "CPU factor"}.get(name, name.replace("_", " "))


def _varied(runs: Sequence[Run]) -> list[str]:
    """Parameters of the network in which the replays differ."""
    first = runs[0]["network"]
    return [name for name in first if any(run["network"][name] != first[name] for run in runs)]


def _shared(document: Document, varied: Sequence[str]) -> list[tuple[str, str]]:
    facts = [("trace", str(document["runs"][0]["trace"]))]
    for run in [run for run in document["runs"] if run["ranks"]][:1]:
        facts.append(("processes", count(len(run["ranks"]))))
        facts.append(("operations", count(run["operations"])))
    facts.append(("measured", format_time(document["measured_runtime"])))
    return facts + [
        (_words(name), _write(name, value))
        for name, value in document["runs"][0]["network"].items()
        if name not in varied
    ]


def _tables(
    document: Document, varied: Sequence[str], reasons: Reasons
) -> list[tuple[str, list[list[str]], list[Row]]]:
    """What came out for each network, and the extremes over the ranks."""
    results, extremes = [], []
    for number, run in enumerate(document["runs"], start=1):
        if run["ranks"]:
            outcome, range_ = _outcome(run, document["measured_runtime"])
        else:
            mark = reasons.mark(run["error"])
            outcome, range_ = [mark] * 2, [mark] * 4
        network = [_write(name, run["network"][name]) for name in varied]
        results.append(Row(str(number), tuple(Cell(text) for text in [*network, *outcome])))
        extremes.append(Row(str(number), tuple(Cell(text) for text in range_)))
    heads = [(["", *_words(name).split(" ", 1)])[-2:] for name in varied]
    return [
        ("run", [*heads, ["", "runtime"], ["against", "measured"]], results),
        (
            "run",
            [["compute", "least"], ["compute", "most"], ["end", "first"], ["end", "last"]],
            extremes,
        ),
    ]


def _outcome(run: Run, measured: float) -> tuple[list[str], list[str]]:
    """Runtime and its change; least and most of the compute times and the ends of the ranks."""
    compute = [rank["compute"] for rank in run["ranks"]]
    ends = [rank["end"] for rank in run["ranks"]]
    change = f"{100 * (run['runtime'] / measured - 1):+.1f} %"
    extremes = (min(compute), max(compute), min(ends), max(ends))
    return [format_time(run["runtime"]), change], [format_time(each) for each in extremes]


VIEWS = Views(screen, records, markdown)
