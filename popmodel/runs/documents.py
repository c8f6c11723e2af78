"""Measured runs in JSON: lists of rows, one row per line, and documents of popmodel itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from popmodel.documents import Kind, parse_json, read_text
from popmodel.runs.columns import AGGREGATE, COLUMNS, MAIN_FAMILY
from popmodel.runs.extrap import runs_of
from popmodel.runs.extrap_formats import from_document, from_lines, is_document
from popmodel.runs.observed import METRICS, WINDOW, analysed, window_of
from popmodel.runs.place import Place, TableError
from popmodel.runs.rows import Row, RunTimes, read_rows
from popmodel.runs.sources import numbers_of
from popmodel.shapes import Flag, Items, Named, Optional, Plain, ShapeError, Table, Text
from popmodel.trace.foreign import HEAD, foreign_file
from popmodel.values import dataclass

SCHEMA = "popmodel/runs/1"
"""Schema of the documents of runs that popmodel writes."""

_ROW = Table(
    {
        "parameters": Named(Plain()),
        "metrics": Named(Plain()),
        AGGREGATE: Named(Plain()),
        "source": Text(),
        "caveats": Items(Text()),
        "window": Optional(WINDOW),
        "disturbed": Flag(),
    },
    others=Plain(),
)
_HINT = 'a list of runs: [{"processes": 4, "threads": 2, "runtime": 1.5}, ...]'
RUNS = Kind(
    SCHEMA, "document of runs", Table({"runs": Items(Plain(), 1)}, ("runs",), others=Plain()), _HINT
)
"""Documents of runs, as ``popmodel convert`` writes them."""


@dataclass(frozen=True)
class _Entry:
    """A row of a document, flattened, and which of its names are parameters."""

    row: Row
    parameters: tuple[str, ...]


def read_document(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from JSON; arguments as for `popmodel.runs.table.read_table`.

    A list of rows, a document of runs (`SCHEMA`), one of ``popmodel metrics``, or one of Extra-P. A
    row is an object with what columns of a table have, and with ``parameters``, ``metrics`` (by
    family and id, or as in a table) and ``aggregates``.
    """
    place = Place(os.fspath(path))
    text = read_text(path, TableError)
    document = parse_json(text, path, TableError)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == METRICS.schema:
        values = numbers_of(place.path, said or {})
        _refuse_unknown(values, parameters, place)
        return RunTimes(place.path, analysed(document, place.path, values), tuple(values), ())
    if schema is None and is_document(document):
        return runs_of(place.path, from_document(document, place.path), parameters, said)
    if isinstance(document, list):
        rows, root = document, ""
    elif schema is not None:
        rows, root = RUNS.read(document, path, TableError)["runs"], "runs"
    elif foreign := foreign_file(Path(place.path), text[:HEAD].encode()):
        raise place.error(f"is {foreign.name}", foreign.advice)
    else:
        raise place.error(f"is not a table of runs: it has no schema such as {SCHEMA!r}", _HINT)
    entries = [
        _entry(row, Place(place.path, entry=f"{root}[{index}]")) for index, row in enumerate(rows)
    ]
    return _read(entries, parameters, place, said)


def read_lines(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from JSON lines, a row in each or a value of Extra-P; as `read_document`."""
    place, values = Place(os.fspath(path)), list(objects(path))
    if values and isinstance(values[0][1], Mapping) and "params" in values[0][1]:
        return runs_of(place.path, from_lines(place.path, values), parameters, said)
    entries = [_entry(row, Place(place.path, line)) for line, row in values]
    return _read(entries, parameters, place, said)


def objects(path: str | os.PathLike[str]) -> Iterator[tuple[int, Any]]:
    """The values of JSON lines, with the numbers of the lines."""
    for line, text in enumerate(read_text(path, TableError).split("\n"), 1):
        if text.strip():
            yield line, parse_json(text, path, TableError, line=line)


def _read(
    entries: Sequence[_Entry],
    parameters: Iterable[str] | None,
    place: Place,
    said: Mapping[str, str] | None,
) -> RunTimes:
    heads = dict.fromkeys(head for entry in entries for head in entry.row.values)
    own = dict.fromkeys(name for entry in entries for name in entry.parameters)
    return read_rows(
        list(heads), [entry.row for entry in entries], parameters, place, said, own=own
    )


def _entry(value: Any, place: Place) -> _Entry:
    if not isinstance(value, Mapping):
        raise place.error("a run must be an object", _HINT)
    try:
        read = _ROW.read(value)
    except ShapeError as reason:
        raise place.error(str(reason), reason.hint) from None
    values: dict[str, Any] = {}
    for name, cell in read.items():
        if name in _ROW.keys:
            continue
        if isinstance(cell, Mapping | list):
            raise place.error(f"{name} must be a number or text", _HINT)
        values[name] = cell
    parameters = read.get("parameters", {})
    for name in parameters:
        if name in values:
            raise place.error(f"has {name} twice: as a parameter, and beside them")
    quantities = {
        f"{AGGREGATE}.{name}": cell
        for name, cell in read.get(AGGREGATE, {}).items()
        if name not in COLUMNS  # of all threads together, and the same again
    }
    facts = {
        "window": window_of(read.get("window")),
        "caveats": tuple(read.get("caveats", ())),
        "disturbed": read.get("disturbed", False),
    }
    cells = {**values, **parameters, **_metrics(read.get("metrics", {})), **quantities}
    return _Entry(Row(place, cells, facts), tuple(parameters))


def _metrics(given: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics by what stands above them in tables."""
    found: dict[str, Any] = {}
    for name, cell in given.items():
        if isinstance(cell, Mapping):
            found |= {f"{name}.{own}": value for own, value in cell.items()}
        else:
            found[name if "." in name else f"{MAIN_FAMILY}.{name}"] = cell
    return found


def _refuse_unknown(
    values: Mapping[str, float], parameters: Iterable[str] | None, place: Place
) -> None:
    known = None if parameters is None else tuple(parameters)
    for name in values:
        if known is not None and name not in known:
            raise place.error(
                f"{name} is not a parameter of the application ({', '.join(known) or 'none'})"
            )
