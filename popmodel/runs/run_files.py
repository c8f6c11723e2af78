"""Files of runs by their names: what reads each, and what writes it; those in CSV and JSON.

JSON is a list of rows, rows in lines, or a document of ``convert`` or ``metrics``. Extra-P and
sacct have modules of their own.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from popmodel.base.documents import (
    DocumentKind,
    Flag,
    Items,
    NamedShape,
    Optional,
    Plain,
    Real,
    Shape,
    ShapeError,
    TableShape,
    Text,
    WholeShape,
    csv_cell,
    parse_json,
    read_text,
    record,
)
from popmodel.base.errors import PopmodelError
from popmodel.base.values import document
from popmodel.efficiency.family import AGGREGATES
from popmodel.efficiency.observables import Observables, RegionObservables
from popmodel.efficiency.vector_counts import VectorCounts
from popmodel.runs.extrap_files import (
    from_document,
    from_lines,
    is_extrap,
    is_extrap_text,
    read_extrap_text,
    runs_of,
    write_lines,
)
from popmodel.runs.measurement import (
    AGGREGATE,
    COLUMNS,
    FACTS,
    MAIN_FAMILY,
    MeasuredRow,
    facts_of,
    from_observables,
    require_plausible,
    row_of,
)
from popmodel.runs.sacct_files import is_sacct, read_sacct
from popmodel.runs.table import RunTimes, numbers_of, read_rows
from popmodel.runs.text_tables import Place, Row, TableError, text_rows
from popmodel.traces.selection import TraceFocus
from popmodel.traces.source import HEAD, foreign_file

SCHEMA = "popmodel/runs/1"
"""Schema of the documents of runs that popmodel writes."""
_NS = 1e9
_TIME = Real(least=0)
_WINDOW = TableShape(
    {
        "begin": Real(),
        "end": Real(),
        "left_out": TableShape(dict.fromkeys(("before", "between", "after"), _TIME)),
        "region": Optional(Text()),
        "occurrences": WholeShape(0),
        "why": Text(),
    },
    ("begin", "end", "left_out", "region", "occurrences", "why"),
    others=Plain(),
)
_OF_TRACES: dict[str, Shape] = {
    "caveats": Items(Text()),
    "window": Optional(_WINDOW),
    "disturbed": Flag(),
}
_ROW = TableShape(
    {
        "parameters": NamedShape(Plain()),
        "metrics": NamedShape(Plain()),
        AGGREGATE: NamedShape(Plain()),
        "source": Text(),
        **_OF_TRACES,
    },
    others=Plain(),
)
_HINT = 'a list of runs: [{"processes": 4, "threads": 2, "runtime": 1.5}, ...]'
_RUNS = DocumentKind(
    SCHEMA,
    "document of runs",
    TableShape({"runs": Items(Plain(), 1)}, ("runs",), others=Plain()),
    _HINT,
)
_ALWAYS = ("useful", "omp_useful", "in_mpi", "serial_useful", "in_openmp", "serial_mpi")
_OFTEN = ("not_in_mpi", "instructions", "cycles")
_SCALARS = (
    *("idle_serial", "idle_imbalance", "idle_scheduling"),
    *("openmp_imbalance", "openmp_synchronisation", "openmp_scheduling", "openmp_mpi"),
)
_REGION = TableShape(
    {
        **{each.name: Real() for each in fields(RegionObservables)},
        "name": Text(),
        "count": WholeShape(0),
    },
    ("name", "count", "wall", "parallel_efficiency", "load_balance", "cost"),
)
_OBSERVABLES = TableShape(
    {
        "runtime": Real(above=0),
        "threads": Items(WholeShape(1), 1),
        "node": Items(WholeShape(0), 1),
        **dict.fromkeys(_ALWAYS, Items(_TIME)),
        **dict.fromkeys(_OFTEN, Optional(Items(_TIME))),
        **dict.fromkeys(_SCALARS, Optional(_TIME)),
        "ideal_runtime": Optional(Real(above=0)),
        "has_mpi": Flag(),
        "has_openmp": Flag(),
        "vector_counts": record({each.name: _TIME for each in fields(VectorCounts)}),
        "regions": Items(_REGION),
        "absent": NamedShape(Text()),
    },
    ("runtime", "threads", "node", *_ALWAYS, "has_mpi", "has_openmp"),
)
_RUN = TableShape(
    {"trace": Text(), **_OF_TRACES, "waited": Real(least=0), "observables": _OBSERVABLES},
    ("trace", "observables"),
    others=Plain(),
)
_METRICS = DocumentKind(
    "popmodel/metrics/1",
    "document of metrics",
    TableShape({"runs": Items(_RUN, 1)}, ("runs",), others=Plain()),
    "popmodel metrics TRACE... -o metrics.json writes one",
)


def read_text_table(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from a table in text (`text_tables`), what sacct prints, or text of Extra-P."""
    if is_extrap_text(read_text(path, TableError)):
        return read_extrap_text(path, parameters, said)
    top, heads, rows = text_rows(path)
    if is_sacct(heads):
        return read_sacct(top, heads, rows, parameters, said)
    return read_rows(heads, rows, parameters, top, said)


def write_csv(runs: Sequence[MeasuredRow], _: Mapping[str, Any]) -> str:
    """Runs as CSV: sizes and runtime, parameters, how they were made, metrics, quantities."""
    rows = [row_of(run) for run in runs]
    every = dict.fromkeys(name for row in rows for name in row)
    parameters = [name for run in runs for name in run.parameters]
    first = dict.fromkeys([*COLUMNS, *parameters, *(name for name in FACTS if name in every)])
    last = [name for each in AGGREGATES if (name := f"{AGGREGATE}.{each}") in every]
    heads = [*first, *(name for name in every if name not in first and name not in last), *last]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(map(csv_cell, heads))
    cells_of = ([row.get(head, "") for head in heads] for row in rows)
    lines.writerows(
        [csv_cell(cell) if isinstance(cell, str) else cell for cell in line] for line in cells_of
    )
    return text.getvalue()


def read_json(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from JSON; arguments as for `read_csv`.

    A list of rows, a document of runs (`SCHEMA`), one of ``popmodel metrics``, or one of Extra-P. A
    row is an object with what columns of a table have, and with ``parameters``, ``metrics`` (by
    family and id, or as in a table) and ``aggregates``.
    """
    place = Place(os.fspath(path))
    text = read_text(path, TableError)
    document = parse_json(text, path, TableError, hint=_HINT)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == _METRICS.schema:
        return _of_metrics(document, place, parameters, numbers_of(place.path, said or {}))
    if schema is None and is_extrap(document):
        return runs_of(place.path, from_document(document, place.path), parameters, said)
    told = [row for row in document if isinstance(row, dict)] if isinstance(document, list) else []
    foreign = foreign_file(Path(place.path), text[:HEAD].encode()) if schema is None else None
    if foreign and not any("processes" in row for row in told):
        raise place.error(f"is {foreign.name}", foreign.advice)
    if isinstance(document, list):
        rows, root = document, ""
    elif schema is None and (
        placed := _of_hyperfine(document, place) or _of_columns(document, place)
    ):
        return _read(placed, parameters, place, said)
    elif schema is not None:
        rows, root = _RUNS.read(document, path, TableError)["runs"], "runs"
    else:
        raise place.error(f"is not a table of runs: it has no schema such as {SCHEMA!r}", _HINT)
    places = [Place(place.path, entry=f"{root}[{index}]") for index in range(len(rows))]
    return _read(list(zip(places, rows, strict=True)), parameters, place, said)


def _of_hyperfine(document: Any, place: Place) -> list[tuple[Place, Any]]:
    """Rows of what ``hyperfine --export-json`` writes: one for each time; none of others."""
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, list):
        return []
    return [
        (
            place._replace(entry=f"results[{number}]: times[{index}]"),
            {"command": result.get("command", ""), "runtime": time}
            | dict(result.get("parameters") or {}),
        )
        for number, result in enumerate(results)
        if isinstance(result, dict) and isinstance(result.get("times"), list)
        for index, time in enumerate(result["times"])
    ]


def _of_columns(document: Any, place: Place) -> list[tuple[Place, Any]]:
    """Rows of a table that is written by columns, as by pandas, or below a name; none of others."""
    if not isinstance(document, dict):
        return []
    for name, rows in document.items():
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
            return [(place._replace(entry=f"{name}[{at}]"), row) for at, row in enumerate(rows)]
    if not all(isinstance(column, dict | list) for column in document.values()):
        return []
    columns = [
        [*(cells.values() if isinstance(cells, dict) else cells)] for cells in document.values()
    ]
    if len({len(cells) for cells in columns}) != 1:
        return []
    return [
        (place._replace(entry=f"row {number}"), dict(zip(document, cells, strict=True)))
        for number, cells in enumerate(zip(*columns, strict=True))
    ]


def read_json_lines(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from JSON lines, a row in each or a value of Extra-P; as `read_json`."""
    place = Place(os.fspath(path))
    values = [
        (line, parse_json(text, path, TableError, line=line, hint=_HINT))
        for line, text in enumerate(read_text(path, TableError).split("\n"), 1)
        if text.strip()
    ]
    if values and isinstance(values[0][1], Mapping) and "params" in values[0][1]:
        return runs_of(place.path, from_lines(place.path, values), parameters, said)
    placed = [(Place(place.path, line), row) for line, row in values]
    return _read(placed, parameters, place, said)


def _read(
    placed: Sequence[tuple[Place, Any]],
    parameters: Iterable[str] | None,
    place: Place,
    said: Mapping[str, str] | None,
) -> RunTimes:
    read = [_row(value, where) for where, value in placed]
    rows = [row for row, _ in read]
    own = dict.fromkeys(name for _, names in read for name in names)
    heads = dict.fromkeys(head for row in rows for head in row.values)
    return read_rows(list(heads), rows, parameters, place, said, own=own)


def _row(value: Any, place: Place) -> tuple[Row, Iterable[str]]:
    """A row of a document, flattened, and which of its names are parameters."""
    if not isinstance(value, Mapping):
        raise place.error("a run must be an object", _HINT)
    try:
        read = _ROW.read(value)
    except ShapeError as reason:
        raise place.error(str(reason), reason.hint) from None
    values = {name: cell for name, cell in read.items() if name not in _ROW.keys}
    for name, cell in values.items():
        if isinstance(cell, Mapping | list):
            raise place.error(f"{name} must be a number or text", _HINT)
    parameters = read.get("parameters", {})
    for name in parameters:
        if name in values:
            raise place.error(f"has {name} twice: as a parameter, and beside them")
    metrics: dict[str, Any] = {}
    for name, cell in read.get("metrics", {}).items():
        if isinstance(cell, Mapping):
            metrics |= {f"{name}.{own}": number for own, number in cell.items()}
        else:
            metrics[name if "." in name else f"{MAIN_FAMILY}.{name}"] = cell
    quantities = {
        f"{AGGREGATE}.{name}": cell
        for name, cell in read.get(AGGREGATE, {}).items()
        if name not in COLUMNS  # of all threads together, and the same again
    }
    return Row(place, {**values, **parameters, **metrics, **quantities}, _facts(read)), parameters


def _facts(read: Mapping[str, Any]) -> dict[str, Any]:
    """What a document keeps of a traced run beside numbers."""
    facts = {"window": _window(read.get("window")), "caveats": tuple(read.get("caveats", ()))}
    return facts | ({"disturbed": True} if read.get("disturbed") else {})


def _window(table: Mapping[str, Any] | None) -> TraceFocus | None:
    """The part of a trace that a document names, in nanoseconds."""
    if table is None:
        return None
    left = {"before": 0.0, "between": 0.0, "after": 0.0, **table["left_out"]}
    seconds = {"begin": table["begin"], "end": table["end"], **left}
    return TraceFocus(
        **{name: round(time * _NS) for name, time in seconds.items()},
        why=table["why"],
        region=table["region"],
        occurrences=table["occurrences"],
    )


def _of_metrics(
    document: Any, place: Place, parameters: Iterable[str] | None, values: Mapping[str, float]
) -> RunTimes:
    """Runs that were analysed elsewhere, of a document of ``popmodel metrics``."""
    known = None if parameters is None else tuple(parameters)
    for name in values:
        if known is not None and name not in known:
            listed = ", ".join(known) or "none"
            raise place.error(f"{name} is not a parameter of the application ({listed})")
    read = _METRICS.read(document, place.path, TableError)["runs"]
    runs = tuple(
        _analysed(run, Place(place.path, entry=f"runs[{number}]"), values)
        for number, run in enumerate(read)
    )
    return RunTimes(place.path, runs, tuple(values), ())


def _analysed(run: Mapping[str, Any], place: Place, values: Mapping[str, float]) -> MeasuredRow:
    seen = dict(run["observables"])
    seen["regions"] = tuple(RegionObservables(**each) for each in seen.get("regions", ()))
    if "vector_counts" in seen:
        seen["vector_counts"] = VectorCounts(**seen["vector_counts"])
    facts = _facts(run)
    try:
        measured = from_observables(
            run["trace"],
            Observables(**seen),
            facts["window"],
            facts["caveats"],
            "disturbed" in facts,
            values,
            run.get("waited") or None,
        )
        require_plausible(measured.metrics)
    except (PopmodelError, ValueError) as reason:
        text = reason.message if isinstance(reason, PopmodelError) else str(reason)
        raise place.error(text) from None
    return measured


def write_json(runs: Sequence[MeasuredRow], provenance: Mapping[str, Any]) -> str:
    """Runs as a document, schema `SCHEMA`."""
    rows = [
        {
            "processes": run.processes,
            "threads": run.threads,
            "runtime": run.runtime,
            **facts_of(run),
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
    told = {**document(SCHEMA, runs=rows), "provenance": dict(provenance)}
    return f"{json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)}\n"


# Which reads and writes what.


_TRACES = (".ti.txt",)
"""Ends of names of traces that end as tables do."""


_TEXTS = (".csv", ".txt", ".tsv", ".dat", ".md", ".sacct")
_READERS: Mapping[str, Callable[..., RunTimes]] = {
    **dict.fromkeys(_TEXTS, read_text_table),
    ".json": read_json,
    ".jsonl": read_json_lines,
}
SUFFIXES = tuple(_READERS)
"""Of the files that hold tables of runs."""


class FileForm(NamedTuple):
    """A format in which tables of runs are written."""

    name: str  # For people
    # From runs and the provenance of the file, which a table has no place for, to its text.
    write: Callable[[Sequence[MeasuredRow], Mapping[str, Any]], str]


FORMATS: Mapping[str, FileForm] = {
    ".csv": FileForm("CSV", write_csv),
    ".json": FileForm(SCHEMA, write_json),
    ".jsonl": FileForm("Extra-P JSON lines", write_lines),
}
"""By the suffix of the file."""


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a table of runs, and no trace, by its name."""
    name = os.fspath(path).lower()
    return name.endswith(SUFFIXES) and not name.endswith(_TRACES)


def read_file(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = None,
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read a table of runs in any of its formats; arguments as for `read_csv`."""
    suffix = next(each for each in SUFFIXES if os.fspath(path).lower().endswith(each))
    return _READERS[suffix](path, parameters, said)


def form_of(path: str | os.PathLike[str]) -> FileForm | None:
    """The format of tables of runs that the name of a file asks for; None if it asks for none."""
    name = os.fspath(path).lower()
    if name.endswith(_TRACES):
        return None
    return next((form for suffix, form in FORMATS.items() if name.endswith(suffix)), None)
