"""Files of Extra-P: text, JSON (two kinds) and JSON lines.

As documented with Extra-P 4 (docs/file-formats.md of github.com/extra-p/extrap). Names alone tell
what is the number of processes and what the runtime.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.documents import read_shape, read_text
from popmodel.errors import UsageError
from popmodel.runs.measurement import Measurement
from popmodel.runs.table import (
    COLUMNS,
    Place,
    Row,
    RunTimes,
    TableError,
    read_rows,
    unit_of,
    values_of,
    whole,
)
from popmodel.shapes import Items, Named, OneOf, Plain, Real, Table, Text, Whole, record
from popmodel.values import cut, dataclass

ROOT = "<root>"
"""What Extra-P calls the program as a whole where no call path is given."""
UNNAMED = "<default>"
"""And a metric without a name."""


_MEANT = {
    "processes": (
        *("processes", "procs", "nprocs", "nprocesses", "np", "p", "ranks", "nranks", "mpi"),
        *("mpiranks", "mpiprocesses", "tasks", "ntasks", "numprocs"),
    ),
    "threads": (
        *("threads", "nthreads", "t", "ompthreads", "ompnumthreads", "threadsperprocess"),
        *("numthreads",),
    ),
    "runtime": (
        *("runtime", "time", "walltime", "wallclocktime", "elapsed", "elapsedtime"),
        *("executiontime", "totaltime"),
    ),
}
"""What names mean, in small letters and without what separates their words."""
_WHOLE = (ROOT, "main", "program", "application", "total", "root")
"""Regions that are the program as a whole, by the last name of their paths."""
_REGION, _METRIC = "region", "metric"
_MOST_PARAMETERS = 4
"""Parameters that Extra-P reads from its text format."""


@dataclass(frozen=True)
class Value:
    """What was measured at one point: a number, or several for repeats."""

    place: Place  # Where it stands
    point: Mapping[str, Any]  # Values of the parameters
    region: str  # The call path that it is of
    metric: str  # What was measured
    numbers: tuple[Any, ...]  # The values as they stand there


_LINE = Table(
    {
        "params": Named(OneOf("a number or text", Real(), Text())),
        "value": OneOf("a number, or a list of numbers", Items(Real(), 1), Real()),
        "callpath": Text(),
        "metric": Text(),
    },
    ("params", "value"),
    others=Plain(),
)


def from_lines(path: str, lines: Iterable[tuple[int, Any]]) -> list[Value]:
    """Values of JSON lines."""
    found: list[Value] = []
    for line, value in lines:
        place = Place(path, line)
        read = read_shape(value, _LINE, path, TableError, line=line, hint=_LINE_HINT)
        point, numbers = read["params"], read["value"]
        if found and point.keys() != found[0].point.keys():
            names = ", ".join(found[0].point)
            raise place.error(f"its parameters are {', '.join(point)}, not {names}")
        found.append(
            Value(
                place,
                point,
                read.get("callpath", ROOT),
                read.get("metric", UNNAMED),
                tuple(numbers) if isinstance(numbers, list) else (numbers,),
            )
        )
    return found


_LINE_HINT = 'a line is {"params": {"p": 4}, "metric": "runtime", "value": 1.5}'

_AT_POINT = Table({"point": Items(Real(), 1), "values": Items(Real(), 1)}, ("point", "values"))
_PARAMETERS = Items(Text(), 1)
_DOCUMENT = Table(
    {"parameters": _PARAMETERS, "measurements": Named(Named(Items(_AT_POINT)))},
    ("parameters", "measurements"),
    others=Plain(),
)
_NUMBERED = Items(Table({"id": Whole(), "name": Text()}, ("id", "name"), others=Plain()))
_BY_NUMBERS = Table(
    {
        "parameters": _NUMBERED,
        "metrics": _NUMBERED,
        "callpaths": _NUMBERED,
        "coordinates": Items(
            Table(
                {
                    "id": Whole(),
                    "parameter_value_pairs": Items(
                        record({"parameter_id": Whole(), "parameter_value": Real()})
                    ),
                },
                ("id", "parameter_value_pairs"),
                others=Plain(),
            )
        ),
        "measurements": Items(
            Table(
                {
                    **dict.fromkeys(("callpath_id", "coordinate_id", "metric_id"), Whole()),
                    "value": Real(),
                },
                ("callpath_id", "coordinate_id", "metric_id", "value"),
                others=Plain(),
            )
        ),
    },
    ("parameters", "metrics", "callpaths", "coordinates", "measurements"),
    others=Plain(),
)


def is_extrap(document: Any) -> bool:
    """Whether a JSON document looks like one of Extra-P."""
    return isinstance(document, dict) and {"parameters", "measurements"} <= document.keys()


def from_document(document: Mapping[str, Any], path: str) -> list[Value]:
    """Values of a JSON document, of the present kind or the older one with numbered parts."""
    if isinstance(document["measurements"], list):
        return _by_numbers(read_shape(document, _BY_NUMBERS, path, TableError), path)
    read = read_shape(document, _DOCUMENT, path, TableError)
    names = read["parameters"]
    found = []
    for region, metrics in read["measurements"].items():
        for metric, values in metrics.items():
            for number, one in enumerate(values):
                place = Place(path, entry=f"{region}, {metric}[{number}]")
                if len(one["point"]) != len(names):
                    raise place.error(
                        f"the point has {len(one['point'])} coordinates for "
                        f"{len(names)} parameters ({', '.join(names)})"
                    )
                point = dict(zip(names, one["point"], strict=True))
                found.append(Value(place, point, region, metric, tuple(one["values"])))
    return found


def _by_numbers(read: Mapping[str, Any], path: str) -> list[Value]:
    """Values of the older kind, whose repeats are measurements of their own."""
    names = {
        kind: {one["id"]: one["name"] for one in read[kind]}
        for kind in ("parameters", "metrics", "callpaths")
    }
    points: dict[int, dict[str, float]] = {}
    for number, one in enumerate(read["coordinates"]):
        place = Place(path, entry=f"coordinates[{number}]")
        points[one["id"]] = {
            _named(names["parameters"], pair["parameter_id"], "parameter", place): pair[
                "parameter_value"
            ]
            for pair in one["parameter_value_pairs"]
        }
    found: list[Value] = []
    for number, one in enumerate(read["measurements"]):
        place = Place(path, entry=f"measurements[{number}]")
        if one["coordinate_id"] not in points:
            raise place.error(f"there is no coordinate {one['coordinate_id']}")
        found.append(
            Value(
                place,
                points[one["coordinate_id"]],
                _named(names["callpaths"], one["callpath_id"], "callpath", place),
                _named(names["metrics"], one["metric_id"], "metric", place),
                (one["value"],),
            )
        )
    return found


def _named(names: Mapping[int, str], number: int, what: str, place: Place) -> str:
    if number not in names:
        raise place.error(f"there is no {what} {number}")
    return names[number]


_BRACKETS = re.compile(r"[()]")


def from_text(path: str, text: str) -> list[Value]:
    """Values of the text format."""
    names: list[str] = []
    points: list[dict[str, str]] = []
    found: list[Value] = []
    region, metric, at = ROOT, UNNAMED, 0
    place = Place(path)
    for line, content in enumerate(text.split("\n"), 1):
        if not content.strip() or content.lstrip().startswith("#"):
            continue
        place = Place(path, line)
        section, *others = content.split(maxsplit=1)
        rest = others[0].strip() if others else ""
        words = rest.split()
        if not words:
            raise place.error(f"section {cut(section, 80)} is empty", _TEXT_HINT)
        if section == "PARAMETER":
            if points:
                raise place.error("PARAMETER behind POINTS", _TEXT_HINT)
            names += words
        elif section == "POINTS":
            points += _points(rest, names, place)
        elif section in ("REGION", "METRIC"):
            _complete(at, points, place)
            region, metric = (rest, metric) if section == "REGION" else (region, rest)
            at = 0
        elif section == "DATA":
            if at == len(points):
                raise place.error(f"more DATA lines than the {len(points)} points", _TEXT_HINT)
            found.append(Value(place, points[at], region, metric, tuple(words)))
            at += 1
        else:
            raise place.error(
                f"{cut(section, 80)} is no section of a text file of Extra-P", _TEXT_HINT
            )
    _complete(at, points, place)
    return found


_TEXT_HINT = "its sections are PARAMETER, POINTS, REGION, METRIC and DATA, one line of DATA a point"


def _points(text: str, names: Sequence[str], place: Place) -> Iterator[dict[str, str]]:
    """Points: in brackets, or bare for one parameter."""
    numbers = _BRACKETS.sub(" ", text).split()
    if not names or len(numbers) % len(names):
        raise place.error(
            f"{len(numbers)} coordinates are no points of {len(names)} parameters", _TEXT_HINT
        )
    for first in range(0, len(numbers), len(names)):
        yield dict(zip(names, numbers[first : first + len(names)], strict=True))


def _complete(at: int, points: Sequence[object], place: Place) -> None:
    """Refuse data of fewer points than there are."""
    if 0 < at < len(points):
        raise place.error(f"only {at} DATA lines before it for {len(points)} points", _TEXT_HINT)


def read_extrap_text(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from a text file of Extra-P; arguments as for `popmodel.runs.files.read_file`."""
    name = os.fspath(path)
    return runs_of(name, from_text(name, read_text(path, TableError)), parameters, said)


def runs_of(
    path: str,
    values: Sequence[Value],
    parameters: Iterable[str] | None,
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Runs of the values at the points of a file."""
    told = dict(said or {})
    known = None if parameters is None else tuple(parameters)
    top = Place(path)
    if not values:
        raise top.error("has no values")
    names = list(values[0].point)
    region = _region(values, told.pop(_REGION, None), top)
    inside = [one for one in values if one.region == region]
    runtime = _runtime(inside, told.pop(_METRIC, None), top)
    notes = []
    if runtime == UNNAMED:
        notes.append("its metric has no name: taken for the runtime, in seconds")
    for name in names:
        meant, settled = _meant(name), (*names, *told, *told.values())
        free = name not in (*(known or ()), *told)
        if meant in COLUMNS[:2] and free and meant not in settled:
            told[name] = meant
    if "processes" not in {*names, *told, *told.values()}:
        raise top.error(
            f"none of its parameters is known as the number of processes ({', '.join(names)})",
            f"say which: {path}:{names[0]}=processes, or how many: {path}:processes=4",
        )
    if "threads" not in {*names, *told, *told.values()}:
        told["threads"] = "1"
        notes.append(f"no threads are given: 1 per process assumed, {path}:threads=N sets them")
    rows, incomplete = _rows(inside, runtime)
    if incomplete:
        names_of = ", ".join(incomplete)
        notes.append(f"not one value for each run: {names_of}: left out where that is so")
    heads = dict.fromkeys(head for row in rows for head in row.values)
    own = [told.get(name, name) for name in names]
    others = [head for head in heads if head not in names]
    found = read_rows(list(heads), rows, known, top, told, own=own, others=others)
    return RunTimes(found.path, found.runs, found.parameters, found.ignored, (*notes, *found.notes))


def _meant(name: str) -> str | None:
    """What a name usually means."""
    plain = re.sub(r"[^a-z0-9]", "", unit_of(name)[0].lower())
    return next((meant for meant, usual in _MEANT.items() if plain in usual), None)


def _region(values: Sequence[Value], asked: str | None, top: Place) -> str:
    """The region that is the whole program."""
    regions = list(dict.fromkeys(one.region for one in values))
    listed = ", ".join(regions[:3]) + (", ..." if len(regions) > 3 else "")
    if asked is not None:
        if asked not in regions:
            raise top.error(f"has no region {asked!r}", f"its regions are {listed}")
        return asked
    if len(regions) == 1:
        return regions[0]
    programs = [one for one in regions if one in _WHOLE]
    above = [one for one in regions if all(each.startswith(one) for each in regions)]
    if not (programs or above):
        raise top.error(
            f"has {len(regions)} regions ({listed}), none of which is known as the whole program",
            f"say which: {top.path}:region={regions[0]}",
        )
    return (programs or above)[0]


def _runtime(values: Sequence[Value], asked: str | None, top: Place) -> str:
    """The metric that is the runtime."""
    metrics = list(dict.fromkeys(one.metric for one in values))
    listed = ", ".join(metrics)
    if asked is not None:
        if asked not in metrics:
            raise top.error(f"has no metric {asked!r}", f"its metrics are {listed}")
        return asked
    if metrics == [UNNAMED]:
        return UNNAMED
    usual = [one for one in metrics if _meant(one) == "runtime"]
    named = [one for one in usual if unit_of(one)[0] == "runtime"]
    if len(named or usual) != 1:
        which = "none" if not usual else f"each of {len(usual)}"
        raise top.error(
            f"{which} of its metrics may be the runtime ({listed})",
            f"say which: {top.path}:metric={(usual or metrics)[0]}",
        )
    return (named or usual)[0]


def _rows(values: Sequence[Value], runtime: str) -> tuple[list[Row], list[str]]:
    """A row for every runtime, with the other metrics, and which of these do not fit."""
    at: dict[tuple[tuple[str, Any], ...], dict[str, list[tuple[Place, Any]]]] = {}
    for one in values:
        cells = at.setdefault(tuple(one.point.items()), {}).setdefault(one.metric, [])
        cells += zip(_places(one), one.numbers, strict=True)
    rows: list[Row] = []
    unfit: dict[str, None] = {}
    for point, metrics in at.items():
        times = metrics.get(runtime, [])
        if not times:
            first = next(iter(metrics.values()))[0][0]
            where = ", ".join(f"{name}={value}" for name, value in point)
            raise first.error(f"no {runtime} at this point: {where}")
        unfit |= dict.fromkeys(name for name in metrics if len(metrics[name]) != len(times))
        for index, (place, time) in enumerate(times):
            values_here = {
                name: cells[index][1]
                for name, cells in metrics.items()
                if name != runtime and len(cells) == len(times)
            }
            rows.append(Row(place, {**dict(point), _head(runtime): time, **values_here}))
    return rows, list(unfit)


def _places(value: Value) -> list[Place]:
    """Where each of the numbers of a value stands."""
    if len(value.numbers) == 1:
        return [value.place]
    before = f"{value.place.entry} " if value.place.entry else ""
    return [
        replace(value.place, entry=f"{before}value {number}")
        for number in range(1, len(value.numbers) + 1)
    ]


def _head(runtime: str) -> str:
    """What stands above a column of the runtime, with its unit."""
    unit = unit_of(runtime)[1]
    return COLUMNS[2] if unit is None else f"{COLUMNS[2]} [{unit}]"


def write_lines(runs: Sequence[Measurement], _: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    names = _parameters(runs)
    values = (
        {"params": _point(run, names), "metric": name, "value": value}
        for run in runs
        for name, value in _values(run).items()
    )
    return "".join(f"{json.dumps(one, allow_nan=False)}\n" for one in values), ()


def write_extrap_json(
    runs: Sequence[Measurement], _: Mapping[str, Any]
) -> tuple[str, tuple[str, ...]]:
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
    return f"{json.dumps(found, indent=2, allow_nan=False)}\n", notes


def write_text(runs: Sequence[Measurement], _: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
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
    if len(names) > _MOST_PARAMETERS:
        notes = (
            *notes,
            f"Extra-P reads {_MOST_PARAMETERS} parameters from text at most, these are "
            f"{len(names)}: write .jsonl for it",
        )
    return "\n".join([*lines, ""]), notes


def _values(run: Measurement) -> dict[str, float]:
    """What was measured of a run: the runtime, then all else."""
    return {"runtime": run.runtime, **values_of(run)}


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
    return {name: whole(known[name]) for name in names}


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


def _joined(numbers: Sequence[float]) -> str:
    return " ".join(map(repr, numbers))
