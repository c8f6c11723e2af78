"""Files of Extra-P: text, JSON (two kinds) and JSON lines.

As documented with Extra-P 4 (docs/file-formats.md of github.com/extra-p/extrap). Names alone tell
what is the number of processes and what the runtime.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from popmodel.documents import read_shape, read_text
from popmodel.errors import UsageError
from popmodel.runs.measurement import MeasuredRow
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
from popmodel.shapes import (
    Items,
    NamedShape,
    OneOf,
    Plain,
    Real,
    TableShape,
    Text,
    WholeShape,
    record,
)
from popmodel.values import cut

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
_PROGRAM = (ROOT, "main", "program", "application", "total", "root")
"""Regions that are the program as a whole."""
_MOST_PARAMETERS = 4
"""Parameters that Extra-P reads from its text format."""
_BRACKETS = re.compile(r"[()]")
_TEXT_HINT = "its sections are PARAMETER, POINTS, REGION, METRIC and DATA, one line of DATA a point"
_LINE_HINT = 'a line is {"params": {"p": 4}, "metric": "runtime", "value": 1.5}'


def _open(**keys: Any) -> TableShape:
    """Shape of an object that has some keys, whatever else is in it."""
    return TableShape(keys, tuple(keys), others=Plain())


_LINE = TableShape(
    {
        "params": NamedShape(OneOf("a number or text", Real(), Text())),
        "value": OneOf("a number, or a list of numbers", Items(Real(), 1), Real()),
        "callpath": Text(),
        "metric": Text(),
    },
    ("params", "value"),
    others=Plain(),
)
_AT_POINT = TableShape({"point": Items(Real(), 1), "values": Items(Real(), 1)}, ("point", "values"))
_DOCUMENT = _open(
    parameters=Items(Text(), 1), measurements=NamedShape(NamedShape(Items(_AT_POINT)))
)
_NUMBERED = Items(_open(id=WholeShape(), name=Text()))
_PAIRS = Items(record({"parameter_id": WholeShape(), "parameter_value": Real()}))
_BY_NUMBERS = _open(
    parameters=_NUMBERED,
    metrics=_NUMBERED,
    callpaths=_NUMBERED,
    coordinates=Items(_open(id=WholeShape(), parameter_value_pairs=_PAIRS)),
    measurements=Items(
        _open(
            callpath_id=WholeShape(),
            coordinate_id=WholeShape(),
            metric_id=WholeShape(),
            value=Real(),
        )
    ),
)


class Value(NamedTuple):
    """One number that was measured at a point."""

    place: Place  # Where it stands
    point: Mapping[str, Any]  # Values of the parameters
    region: str  # The call path that it is of
    metric: str  # What was measured
    number: Any  # As it stands there


def _values(
    place: Place, point: Mapping[str, Any], region: str, metric: str, numbers: Sequence[Any]
) -> Iterator[Value]:
    """Values of one place: several are repeats."""
    before = f"{place.entry} " if place.entry else ""
    for count, number in enumerate(numbers, 1):
        own = place if len(numbers) == 1 else replace(place, entry=f"{before}value {count}")
        yield Value(own, point, region, metric, number)


def from_lines(path: str, lines: Iterable[tuple[int, Any]]) -> list[Value]:
    """Values of JSON lines."""
    values: list[Value] = []
    for line, text in lines:
        place = Place(path, line)
        read = read_shape(text, _LINE, path, TableError, line=line, hint=_LINE_HINT)
        point, numbers = read["params"], read["value"]
        if values and point.keys() != values[0].point.keys():
            names = ", ".join(values[0].point)
            raise place.error(f"its parameters are {', '.join(point)}, not {names}")
        named = read.get("callpath", ROOT), read.get("metric", UNNAMED)
        values += _values(place, point, *named, numbers if isinstance(numbers, list) else [numbers])
    return values


def is_extrap(document: Any) -> bool:
    """Whether a JSON document looks like one of Extra-P."""
    return isinstance(document, dict) and {"parameters", "measurements"} <= document.keys()


def from_document(document: Mapping[str, Any], path: str) -> list[Value]:
    """Values of a JSON document, of the present kind or the older one with numbered parts."""
    if isinstance(document["measurements"], list):
        return _by_numbers(read_shape(document, _BY_NUMBERS, path, TableError), path)
    read = read_shape(document, _DOCUMENT, path, TableError)
    names = read["parameters"]
    values: list[Value] = []
    for region, metrics in read["measurements"].items():
        for metric, points in metrics.items():
            for number, at in enumerate(points):
                place = Place(path, entry=f"{region}, {metric}[{number}]")
                if len(at["point"]) != len(names):
                    raise place.error(
                        f"the point has {len(at['point'])} coordinates for "
                        f"{len(names)} parameters ({', '.join(names)})"
                    )
                point = dict(zip(names, at["point"], strict=True))
                values += _values(place, point, region, metric, at["values"])
    return values


def _by_numbers(read: Mapping[str, Any], path: str) -> list[Value]:
    """Values of the older kind, whose repeats are measurements of their own."""
    names = {
        kind: {each["id"]: each["name"] for each in read[f"{kind}s"]}
        for kind in ("parameter", "metric", "callpath")
    }

    def named(kind: str, number: int, place: Place) -> Any:
        if number not in names[kind]:
            raise place.error(f"there is no {kind} {number}")
        return names[kind][number]

    names["coordinate"] = {
        at["id"]: {
            named("parameter", pair["parameter_id"], Place(path, entry=f"coordinates[{number}]")): (
                pair["parameter_value"]
            )
            for pair in at["parameter_value_pairs"]
        }
        for number, at in enumerate(read["coordinates"])
    }
    values = []
    for number, each in enumerate(read["measurements"]):
        place = Place(path, entry=f"measurements[{number}]")
        point, region, metric = (
            named(kind, each[f"{kind}_id"], place) for kind in ("coordinate", "callpath", "metric")
        )
        values.append(Value(place, point, region, metric, each["value"]))
    return values


def from_text(path: str, text: str) -> list[Value]:
    """Values of the text format."""
    names: list[str] = []
    points: list[dict[str, str]] = []
    values: list[Value] = []
    region, metric, at = ROOT, UNNAMED, 0
    place = Place(path)

    def complete() -> None:
        if 0 < at < len(points):
            problem = f"only {at} DATA lines before it for {len(points)} points"
            raise place.error(problem, _TEXT_HINT)

    for line, content in enumerate(text.split("\n"), 1):
        if not content.strip() or content.lstrip().startswith("#"):
            continue
        place = Place(path, line)
        section, _, rest = content.strip().replace("\t", " ").partition(" ")
        rest, words = rest.strip(), rest.split()
        if not words:
            raise place.error(f"section {cut(section, 80)} is empty", _TEXT_HINT)
        if section == "PARAMETER":
            if points:
                raise place.error("PARAMETER behind POINTS", _TEXT_HINT)
            names += words
        elif section == "POINTS":
            numbers = _BRACKETS.sub(" ", rest).split()
            if not names or len(numbers) % len(names):
                problem = f"{len(numbers)} coordinates are no points of {len(names)} parameters"
                raise place.error(problem, _TEXT_HINT)
            size = len(names)
            each = (numbers[first : first + size] for first in range(0, len(numbers), size))
            points += [dict(zip(names, point, strict=True)) for point in each]
        elif section in ("REGION", "METRIC"):
            complete()
            region, metric = (rest, metric) if section == "REGION" else (region, rest)
            at = 0
        elif section == "DATA":
            if at == len(points):
                raise place.error(f"more DATA lines than the {len(points)} points", _TEXT_HINT)
            values += _values(place, points[at], region, metric, words)
            at += 1
        else:
            problem = f"{cut(section, 80)} is no section of a text file of Extra-P"
            raise place.error(problem, _TEXT_HINT)
    complete()
    return values


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
    region = _region(values, told.pop("region", None), top)
    inside = [value for value in values if value.region == region]
    runtime = _runtime(inside, told.pop("metric", None), top)
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
        listed = ", ".join(incomplete)
        notes.append(f"not one value for each run: {listed}: left out where that is so")
    heads = dict.fromkeys(head for row in rows for head in row.values)
    own = [told.get(name, name) for name in names]
    others = [head for head in heads if head not in names]
    read = read_rows(list(heads), rows, known, top, told, own=own, others=others)
    return replace(read, notes=(*notes, *read.notes))


def _meant(name: str) -> str | None:
    """What a name usually means."""
    letters = re.sub(r"[^a-z0-9]", "", unit_of(name)[0].lower())
    return next((meant for meant, usual in _MEANT.items() if letters in usual), None)


def _region(values: Sequence[Value], asked: str | None, top: Place) -> str:
    """The region that is the whole program."""
    regions = list(dict.fromkeys(value.region for value in values))
    listed = ", ".join(regions[:3]) + (", ..." if len(regions) > 3 else "")
    if asked is not None and asked not in regions:
        raise top.error(f"has no region {asked!r}", f"its regions are {listed}")
    above = [one for one in regions if all(each.startswith(one) for each in regions)]
    programs = [one for one in regions if one in _PROGRAM] or above
    if asked is None and not programs:
        raise top.error(
            f"has {len(regions)} regions ({listed}), none of which is known as the whole program",
            f"say which: {top.path}:region={regions[0]}",
        )
    return asked or programs[0]


def _runtime(values: Sequence[Value], asked: str | None, top: Place) -> str:
    """The metric that is the runtime."""
    metrics = list(dict.fromkeys(value.metric for value in values))
    listed = ", ".join(metrics)
    if asked is not None and asked not in metrics:
        raise top.error(f"has no metric {asked!r}", f"its metrics are {listed}")
    if asked is not None or metrics == [UNNAMED]:
        return asked or UNNAMED
    usual = [metric for metric in metrics if _meant(metric) == "runtime"]
    named = [metric for metric in usual if unit_of(metric)[0] == "runtime"] or usual
    if len(named) != 1:
        which = "none" if not usual else f"each of {len(usual)}"
        raise top.error(
            f"{which} of its metrics may be the runtime ({listed})",
            f"say which: {top.path}:metric={(usual or metrics)[0]}",
        )
    return named[0]


def _rows(values: Sequence[Value], runtime: str) -> tuple[list[Row], list[str]]:
    """A row for every runtime, with the other metrics, and which of these do not fit."""
    unit = unit_of(runtime)[1]
    head = COLUMNS[2] if unit is None else f"{COLUMNS[2]} [{unit}]"
    points: dict[tuple[Any, ...], dict[str, list[Value]]] = {}
    for value in values:
        at = points.setdefault(tuple(value.point.items()), {})
        at.setdefault(value.metric, []).append(value)
    rows: list[Row] = []
    unfit: Counter[str] = Counter()
    for point, metrics in points.items():
        times = metrics.pop(runtime, [])
        if not times:
            where = ", ".join(f"{name}={value}" for name, value in point)
            first = next(iter(metrics.values()))[0]
            raise first.place.error(f"no {runtime} at this point: {where}")
        fit = {name: each for name, each in metrics.items() if len(each) == len(times)}
        unfit.update(metrics.keys() - fit.keys())
        for index, time in enumerate(times):
            others = {name: each[index].number for name, each in fit.items()}
            rows.append(Row(time.place, {**dict(point), head: time.number, **others}))
    return rows, list(unfit)


def write_lines(runs: Sequence[MeasuredRow], _: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Runs as JSON lines, a value each."""
    names = _parameters(runs)
    lines = (
        json.dumps(
            {
                "params": dict(zip(names, _point(run, names), strict=True)),
                "metric": metric,
                "value": value,
            },
            allow_nan=False,
        )
        for run in runs
        for metric, value in _measured(run).items()
    )
    return "".join(f"{line}\n" for line in lines), ()


def write_extrap_json(
    runs: Sequence[MeasuredRow], _: Mapping[str, Any]
) -> tuple[str, tuple[str, ...]]:
    """Runs as a document of the present kind."""
    names = _parameters(runs)
    metrics, notes = _by_metric(runs, names)
    measurements = {
        metric: [{"point": list(point), "values": values} for point, values in points.items()]
        for metric, points in metrics.items()
    }
    document = {"parameters": list(names), "measurements": {"main": measurements}}
    return f"{json.dumps(document, indent=2, allow_nan=False)}\n", notes


def write_text(runs: Sequence[MeasuredRow], _: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Runs as text."""
    names = _parameters(runs)
    for name in names:
        if len(name.split()) != 1:
            raise UsageError(
                f"the text format of Extra-P has no names with blanks, such as {name!r}",
                "write .jsonl, or rename it",
            )
    metrics, notes = _by_metric(runs, names)
    points = " ".join(f"( {' '.join(map(repr, point))} )" for point in metrics["runtime"])
    lines = [f"PARAMETER {' '.join(names)}", f"POINTS {points}", "", "REGION main"]
    for metric, at in metrics.items():
        lines.append(f"METRIC {metric}")
        lines += [f"DATA {' '.join(map(repr, values))}" for values in at.values()]
    if len(names) > _MOST_PARAMETERS:
        notes = (
            *notes,
            f"Extra-P reads {_MOST_PARAMETERS} parameters from text at most, these are "
            f"{len(names)}: write .jsonl for it",
        )
    return "\n".join([*lines, ""]), notes


def _measured(run: MeasuredRow) -> dict[str, float]:
    """What was measured of a run: the runtime, then all else."""
    return {"runtime": run.runtime, **values_of(run)}


def _parameters(runs: Sequence[MeasuredRow]) -> tuple[str, ...]:
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


def _point(run: MeasuredRow, names: Sequence[str]) -> tuple[float, ...]:
    known = {"processes": run.processes, "threads": run.threads, **run.parameters}
    return tuple(whole(known[name]) for name in names)


def _by_metric(
    runs: Sequence[MeasuredRow], names: Sequence[str]
) -> tuple[dict[str, dict[tuple[float, ...], list[float]]], tuple[str, ...]]:
    """Values by metric and point, of metrics that all runs have, and a note on the others."""
    measured = [_measured(run) for run in runs]
    every = dict.fromkeys(name for values in measured for name in values)
    shared = [name for name in every if all(name in values for values in measured)]
    metrics: dict[str, dict[tuple[float, ...], list[float]]] = {name: {} for name in shared}
    for run, values in zip(runs, measured, strict=True):
        for name in shared:
            metrics[name].setdefault(_point(run, names), []).append(values[name])
    left = len(every) - len(shared)
    note = f"{left} of {len(every)} metrics are not known of all runs: left out"
    return metrics, (note,) if left else ()
