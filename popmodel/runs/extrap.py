"""Measured runs from files of Extra-P, in which names alone tell what is P and what the runtime."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.documents import read_text
from popmodel.runs.columns import COLUMNS, unit_of
from popmodel.runs.extrap_formats import ROOT, UNNAMED, Value, from_text
from popmodel.runs.place import Place, TableError
from popmodel.runs.rows import Row, RunTimes, read_rows

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


def read_extrap_text(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from a text file of Extra-P; arguments as for `runs_of`."""
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
    whole = [one for one in regions if one in _WHOLE]
    above = [one for one in regions if all(each.startswith(one) for each in regions)]
    if not (whole or above):
        raise top.error(
            f"has {len(regions)} regions ({listed}), none of which is known as the whole program",
            f"say which: {top.path}:region={regions[0]}",
        )
    return (whole or above)[0]


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
            raise first.error(f"no {runtime} at this point: {_point(point)}")
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


def _point(point: Sequence[tuple[str, Any]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in point)
