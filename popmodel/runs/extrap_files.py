"""Files of Extra-P: text, JSON and JSON lines.

As documented with Extra-P 4 (docs/file-formats.md of github.com/extra-p/extrap). Names alone tell
what is the number of processes and what the runtime.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from popmodel.base.documents import (
    Items,
    NamedShape,
    OneOf,
    Plain,
    Real,
    TableShape,
    Text,
    read_shape,
    read_text,
)
from popmodel.base.errors import UsageError
from popmodel.base.values import cut
from popmodel.runs.column_names import meaning_of, unit_of
from popmodel.runs.measurement import COLUMNS, MeasuredRow, values_of, whole
from popmodel.runs.table import RunTimes, read_rows
from popmodel.runs.text_tables import Place, Row, TableError

ROOT = "<root>"
"""What Extra-P calls the program as a whole where no call path is given."""
UNNAMED = "<default>"
"""And a metric without a name."""
_PROGRAM = (ROOT, "main", "program", "application", "total", "root")
"""Regions that are the program as a whole."""
_TEXT_HINT = "its sections are PARAMETER, POINTS, REGION, METRIC and DATA, one line of DATA a point"
_LINE_HINT = 'a line is {"params": {"p": 4}, "metric": "runtime", "value": 1.5}'
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
_DOCUMENT = TableShape(
    {
        "parameters": Items(Text(), 1),
        "measurements": NamedShape(NamedShape(Items(_AT_POINT))),
    },
    ("parameters", "measurements"),
    others=Plain(),
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
        own = place if len(numbers) == 1 else place._replace(entry=f"{before}value {count}")
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
    """Values of a JSON document."""
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


def is_extrap_text(text: str) -> bool:
    """Whether a text has the sections of the text format."""
    return bool(re.match(r"\s*(?:#.*\s+)*(?:PARAMETER|POINTS|REGION|METRIC|DATA)(?:\s|$)", text))


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
        section, *words = content.split()
        if not words:
            kind = "an empty" if section in _TEXT_HINT else "no"
            problem = f"{cut(section, 80)} is {kind} section of a text file of Extra-P"
            raise place.error(problem, _TEXT_HINT)
        if section == "PARAMETER":
            if points:
                raise place.error("PARAMETER behind POINTS", _TEXT_HINT)
            names += words
        elif section == "POINTS":
            numbers = re.sub(r"[()]", " ", " ".join(words)).split()
            size = len(names)
            if not size or len(numbers) % size:
                problem = f"{len(numbers)} coordinates are no points of {size} parameters"
                raise place.error(problem, _TEXT_HINT)
            each = (numbers[first : first + size] for first in range(0, len(numbers), size))
            points += [dict(zip(names, point, strict=True)) for point in each]
        elif section in ("REGION", "METRIC"):
            complete()
            name = content.strip().replace("\t", " ").partition(" ")[2].strip()
            region, metric = (name, metric) if section == "REGION" else (region, name)
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
    """Read runs from a text file of Extra-P; arguments as for `runs.run_files.read_file`."""
    name = os.fspath(path)
    return runs_of(name, from_text(name, read_text(path, TableError)), parameters, said)


def runs_of(
    path: str,
    values: Sequence[Value],
    parameters: Iterable[str] | None,
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Runs of the values at the points of a file."""
    given = dict(said or {})
    known = None if parameters is None else tuple(parameters)
    top = Place(path)
    if not values:
        raise top.error("has no values")
    names = list(values[0].point)
    region = _region(values, given.pop("region", None), top)
    inside = [value for value in values if value.region == region]
    runtime = _runtime(inside, given.pop("metric", None), top)
    notes = []
    if runtime == UNNAMED:
        notes.append("its metric has no name: taken for the runtime, in seconds")
    meant = {given.get(name, name) for name in (*names, *given)}.difference(known or ())
    if not any(kind.kind == "processes" for kind in map(meaning_of, meant) if kind):
        raise top.error(
            f"none of its parameters is known as the number of processes ({', '.join(names)})",
            f"say which: {path}:{names[0]}=processes, or how many: {path}:processes=4",
        )
    rows, incomplete = _rows(inside, runtime)
    if incomplete:
        listed = ", ".join(incomplete)
        notes.append(f"not one value for each run: {listed}: left out where that is so")
    heads = dict.fromkeys(head for row in rows for head in row.values)
    own = [given.get(name, name) for name in names]
    others = [head for head in heads if head not in names]
    read = read_rows(list(heads), rows, known, top, given, own=own, others=others)
    return read._replace(notes=(*notes, *read.notes))


def _region(values: Sequence[Value], asked: str | None, top: Place) -> str:
    """The region that is the whole program."""
    regions = list(dict.fromkeys(value.region for value in values))
    listed = ", ".join(regions[:3]) + (", ..." if len(regions) > 3 else "")
    if asked is not None and asked not in regions:
        raise top.error(f"has no region {asked!r}", f"its regions are {listed}")
    above = [name for name in regions if all(other.startswith(name) for other in regions)]
    programs = [name for name in regions if name in _PROGRAM] or above
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
    kinds = {metric: meaning for metric in metrics if (meaning := meaning_of(metric))}
    usual = [metric for metric, meaning in kinds.items() if meaning.kind == "runtime"]
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
    points: dict[tuple[Any, ...], dict[str, list[Value]]] = defaultdict(lambda: defaultdict(list))
    for value in values:
        points[tuple(value.point.items())][value.metric].append(value)
    rows: list[Row] = []
    unfit: Counter[str] = Counter()
    for point, metrics in points.items():
        times = metrics.pop(runtime, [])
        if not times:
            where = ", ".join(f"{name}={value}" for name, value in point)
            first = next(iter(metrics.values()))[0]
            raise first.place.error(f"no {runtime} at this point: {where}")
        fit = {name: numbers for name, numbers in metrics.items() if len(numbers) == len(times)}
        unfit.update(metrics.keys() - fit.keys())
        for index, time in enumerate(times):
            others = {name: numbers[index].number for name, numbers in fit.items()}
            rows.append(Row(time.place, {**dict(point), head: time.number, **others}))
    return rows, list(unfit)


def write_lines(runs: Sequence[MeasuredRow], _: Mapping[str, Any]) -> str:
    """Runs as JSON lines, a value each; all points of Extra-P have the same parameters."""
    names = tuple(dict.fromkeys(name for run in runs for name in run.parameters))
    lines = []
    for run in runs:
        for name in names:
            if name not in run.parameters:
                raise UsageError(
                    f"{run.place}: {name} is not known, and points of Extra-P have all parameters",
                    f"say it, as {run.source}:{name}=VALUE, or write .csv or .json",
                )
        point = {"processes": run.processes, "threads": run.threads}
        params = point | {name: whole(run.parameters[name]) for name in names}
        for metric, value in {"runtime": run.runtime, **values_of(run)}.items():
            line = {"params": params, "metric": metric, "value": value}
            lines.append(f"{json.dumps(line, allow_nan=False)}\n")
    return "".join(lines)
