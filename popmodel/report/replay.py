"""Replays of a trace on networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.report.export import Record, markdown_table
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Cell, Row, Style, count, pairs, paragraph, table
from popmodel.units import format_bandwidth, format_size, format_time

if TYPE_CHECKING:
    from popmodel.replay import Execution

Run = Mapping[str, Any]


def document(
    trace: str, measured: float, notes: Sequence[str], executions: Sequence[Execution]
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
    executions : sequence of Execution
        One for each network.
    """
    return {
        "schema": "popmodel/replay/1",
        "measured_runtime": measured,
        "notes": list(notes),
        "runs": [
            {
                "trace": trace,
                "network": execution.network.to_dict(),
                "runtime": execution.runtime,
                "operations": int(execution.operations),
                "ranks": [
                    {"compute": compute, "end": end}
                    for compute, end in zip(
                        execution.compute.tolist(), execution.end.tolist(), strict=True
                    )
                ],
            }
            for execution in executions
        ],
    }


def screen(document: Document, style: Style) -> list[str]:
    """The replays below each other: what they share, what differs, and what came out."""
    varied = _varied(document["runs"])
    lines = pairs(_shared(document, varied), style)
    for first, heads, rows in _tables(document, varied):
        lines += ["", *table(heads, rows, style, first=first)]
    if document["notes"]:
        lines += ["", "notes"]
        for note in document["notes"]:
            lines += paragraph(note, style, first=" - ")
    return lines


def records(document: Document) -> list[Record]:
    """One line per replay and rank; the quantities of the replay repeat on each of its lines."""
    return [
        {
            "trace": run["trace"],
            **{f"network_{name}": value for name, value in run["network"].items()},
            "measured_runtime": document["measured_runtime"],
            "runtime": run["runtime"],
            "operations": run["operations"],
            "rank": rank,
            "compute": times["compute"],
            "end": times["end"],
        }
        for run in document["runs"]
        for rank, times in enumerate(run["ranks"])
    ]


def markdown(document: Document) -> list[str]:
    """The same as the screen, as Markdown tables."""
    varied = _varied(document["runs"])
    lines = markdown_table(["replay", ""], _shared(document, varied))
    for first, heads, rows in _tables(document, varied):
        body = [[row.label, *(cell.text for cell in row.cells)] for row in rows]
        lines += ["", *markdown_table([first, *(" ".join(head).strip() for head in heads)], body)]
    return lines + [line for note in document["notes"] for line in ("", note)]


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
    run = document["runs"][0]
    facts = [
        ("trace", str(run["trace"])),
        ("processes", count(len(run["ranks"]))),
        ("operations", count(run["operations"])),
        ("measured", format_time(document["measured_runtime"])),
    ]
    return facts + [
        (_words(name), _write(name, value))
        for name, value in run["network"].items()
        if name not in varied
    ]


def _tables(
    document: Document, varied: Sequence[str]
) -> list[tuple[str, list[list[str]], list[Row]]]:
    """What came out for each network, and the extremes over the ranks."""
    measured = document["measured_runtime"]
    results, extremes = [], []
    for number, run in enumerate(document["runs"], start=1):
        compute = [rank["compute"] for rank in run["ranks"]]
        ends = [rank["end"] for rank in run["ranks"]]
        result = [
            *(_write(name, run["network"][name]) for name in varied),
            format_time(run["runtime"]),
            f"{100 * (run['runtime'] / measured - 1):+.1f} %",
        ]
        range_ = [format_time(each) for each in (min(compute), max(compute), min(ends), max(ends))]
        results.append(Row(str(number), tuple(Cell(text) for text in result)))
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


VIEWS = Views(screen, records, markdown)
