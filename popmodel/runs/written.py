"""Measured runs written as tables: CSV, JSON, and the formats of Extra-P."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from popmodel.documents import csv_cell
from popmodel.efficiency.aggregates import AGGREGATES
from popmodel.errors import UsageError
from popmodel.plain import document
from popmodel.runs.columns import AGGREGATE, COLUMNS, MAIN_FAMILY
from popmodel.runs.documents import SCHEMA
from popmodel.runs.measurement import Measurement
from popmodel.runs.rows import computed
from popmodel.values import dataclass

_MOST = 4
"""Parameters that Extra-P reads from its text format."""


@dataclass(frozen=True)
class Written:
    """A table of runs as text."""

    text: str  # The file
    notes: tuple[str, ...] = ()  # What it does not hold, one line each


@dataclass(frozen=True)
class Form:
    """A format of tables of runs."""

    name: str  # For people
    # From runs and the provenance of the file to the table.
    write: Callable[[Sequence[Measurement], Mapping[str, Any]], Written]


def form_of(path: str | os.PathLike[str]) -> Form | None:
    """The format of tables of runs that the name of a file asks for; None if it asks for none."""
    name = os.fspath(path).lower()
    if name.endswith(".ti.txt"):
        return None
    return next((form for suffix, form in FORMATS.items() if name.endswith(suffix)), None)


def _csv(runs: Sequence[Measurement], _: Mapping[str, Any]) -> Written:
    rows = [_row(run) for run in runs]
    heads = _heads(runs, rows)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(map(csv_cell, heads))
    lines.writerows([row.get(head, "") for head in heads] for row in rows)
    return Written(text.getvalue())


def _json(runs: Sequence[Measurement], provenance: Mapping[str, Any]) -> Written:
    rows = [
        {
            "processes": run.processes,
            "threads": run.threads,
            "runtime": run.runtime,
            "parameters": run.parameters,
            "metrics": run.metrics,
            AGGREGATE: {
                name: value for name, value in run.aggregates.items() if name not in COLUMNS
            },
            "source": run.source,
            "caveats": run.caveats,
            "window": run.window,
            "disturbed": run.disturbed,
        }
        for run in runs
    ]
    found = {**document(SCHEMA, runs=rows), "provenance": dict(provenance)}
    return Written(f"{json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False)}\n")


def _lines(runs: Sequence[Measurement], _: Mapping[str, Any]) -> Written:
    names = _parameters(runs)
    values = (
        {"params": _point(run, names), "metric": name, "value": value}
        for run in runs
        for name, value in _values(run).items()
    )
    return Written("".join(f"{json.dumps(one, allow_nan=False)}\n" for one in values))


def _extrap_json(runs: Sequence[Measurement], _: Mapping[str, Any]) -> Written:
    names = _parameters(runs)
    points = _by_point(runs, names)
    shared, notes = _shared([one for same in points.values() for one in same])
    metrics = {
        name: [
            {"point": list(point), "values": [one[name] for one in same]}
            for point, same in points.items()
        ]
        for name in shared
    }
    found = {"parameters": list(names), "measurements": {"main": metrics}}
    return Written(f"{json.dumps(found, indent=2, allow_nan=False)}\n", notes)


def _text(runs: Sequence[Measurement], _: Mapping[str, Any]) -> Written:
    names = _parameters(runs)
    for name in names:
        if len(name.split()) != 1:
            raise UsageError(
                f"the text format of Extra-P has no names with blanks, such as {name!r}",
                "write .jsonl, or rename it",
            )
    points = _by_point(runs, names)
    shared, notes = _shared([one for same in points.values() for one in same])
    lines = [
        f"PARAMETER {' '.join(names)}",
        f"POINTS {' '.join(f'( {_joined(point)} )' for point in points)}",
        "",
        "REGION main",
    ]
    for name in shared:
        lines.append(f"METRIC {name}")
        lines += [f"DATA {_joined([one[name] for one in same])}" for same in points.values()]
    if len(names) > _MOST:
        notes = (
            *notes,
            f"Extra-P reads {_MOST} parameters from text at most, these are {len(names)}: write "
            ".jsonl for it",
        )
    return Written("\n".join([*lines, ""]), notes)


FORMATS: Mapping[str, Form] = {
    ".csv": Form("CSV", _csv),
    ".extrap.json": Form("Extra-P JSON", _extrap_json),
    ".json": Form(SCHEMA, _json),
    ".jsonl": Form("Extra-P JSON lines", _lines),
    ".txt": Form("Extra-P text", _text),
}
"""By the suffix of the file; the first that fits."""


def _row(run: Measurement) -> dict[str, Any]:
    """What is known of a run by what stands above the columns of a table."""
    return {
        "processes": run.processes,
        "threads": run.threads,
        "runtime": run.runtime,
        **{name: _number(value) for name, value in run.parameters.items()},
        **_metrics(run),
    }


def _metrics(run: Measurement) -> dict[str, float]:
    """Metrics of the main family, those that do not follow from quantities, and the quantities."""
    amounts = {name: value for name, value in run.aggregates.items() if name not in COLUMNS}
    follow = computed(run.aggregates) if amounts else {}
    return {
        **run.metrics.get(MAIN_FAMILY, {}),
        **{
            f"{family}.{name}": value
            for family, values in run.metrics.items()
            for name, value in values.items()
            if family != MAIN_FAMILY and follow.get(family, {}).get(name) != value
        },
        **{f"{AGGREGATE}.{name}": value for name, value in amounts.items()},
    }


def _heads(runs: Sequence[Measurement], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns of all rows: sizes and runtime, parameters, metrics, quantities."""
    parameters = dict.fromkeys(name for run in runs for name in run.parameters)
    others = dict.fromkeys(name for row in rows for name in row)
    quantities = [f"{AGGREGATE}.{name}" for name in AGGREGATES]
    first = dict.fromkeys([*COLUMNS, *parameters])
    metrics = [name for name in others if name not in first and name not in quantities]
    return [*first, *metrics, *(name for name in quantities if name in others)]


def _values(run: Measurement) -> dict[str, float]:
    """What was measured of a run: the runtime, then all else."""
    return {"runtime": run.runtime, **_metrics(run)}


def _parameters(runs: Sequence[Measurement]) -> tuple[str, ...]:
    """Parameters of points in Extra-P, which are the same at all points."""
    names = tuple(dict.fromkeys(name for run in runs for name in run.parameters))
    for name in names:
        for run in runs:
            if name not in run.parameters:
                raise UsageError(
                    f"{run.place}: {name} is not known, and points of Extra-P have all parameters",
                    f"say it, as {run.source}:{name}=VALUE, or write .csv or .json",
                )
    return (*COLUMNS[:2], *names)


def _point(run: Measurement, names: Sequence[str]) -> dict[str, float]:
    known = {"processes": run.processes, "threads": run.threads, **run.parameters}
    return {name: _number(known[name]) for name in names}


def _by_point(
    runs: Sequence[Measurement], names: Sequence[str]
) -> dict[tuple[float, ...], list[dict[str, float]]]:
    """What was measured of each run by their points, in the order of the first of each."""
    found: dict[tuple[float, ...], list[dict[str, float]]] = {}
    for run in runs:
        found.setdefault(tuple(_point(run, names).values()), []).append(_values(run))
    return found


def _shared(runs: Sequence[Mapping[str, float]]) -> tuple[list[str], tuple[str, ...]]:
    """What is known of all runs, as Extra-P needs it, and a note on what is not."""
    every = dict.fromkeys(name for run in runs for name in run)
    shared = [name for name in every if all(name in run for run in runs)]
    left = len(every) - len(shared)
    note = f"{left} of {len(every)} metrics are not known of all runs: left out"
    return shared, (note,) if left else ()


def _number(value: float) -> float:
    """A number, a whole one without a fraction."""
    return int(value) if float(value).is_integer() and abs(value) < 1 << 53 else value


def _joined(numbers: Sequence[float]) -> str:
    return " ".join(map(repr, numbers))
