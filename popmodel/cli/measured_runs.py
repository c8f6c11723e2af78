"""Measured runs from any mix of traces and tables, for all that compares or fits them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

from popmodel.base.errors import FileError, UsageError
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.cli.inputs import TraceLike, kind_of, path_of, several, trace_of
from popmodel.efficiency.measure import analyse
from popmodel.runs.measurement import MeasuredRow, checked, from_run
from popmodel.runs.run_files import read_file
from popmodel.runs.same_program import difference
from popmodel.runs.table import RunTimes, numbers_of, split
from popmodel.structure.focus import part_of_run
from popmodel.traces import Trace
from popmodel.traces.selection import PROGRAM, TracePart


@dataclass(frozen=True)
class MeasuredRuns:
    """Measured runs, and where they come from."""

    runs: tuple[MeasuredRow, ...]  # Every run once, in the order of the files
    tables: tuple[RunTimes, ...]  # The tables that were read
    warnings: tuple[str, ...]  # What is doubtful about the runs, one line each
    files: tuple[str, ...]  # The files that were read


def read_runs(
    sources: TraceLike | Iterable[TraceLike],
    parameters: Iterable[str] | None = None,
    *,
    settled: Collection[str] = (),
    asked: TracePart | None = None,
    application: int = 1,
) -> MeasuredRuns:
    """Read measured runs."""
    given = several(sources)
    if not given:
        raise UsageError("no measured run given", "name at least one trace or table")
    known = None if parameters is None else tuple(parameters)
    part = asked or PROGRAM
    once, warnings = _once([named(one) for one in given])
    if part != PROGRAM and all(kind_of(one) == "table" for one, _, _ in once):
        raise UsageError(
            "a window, a region or the whole run can be taken of traces, not of tables of runtimes",
            "leave them out, or name a trace",
        )
    tables: list[RunTimes] = []
    runs: list[MeasuredRow] = []
    traces: list[Trace] = []
    for one, path, said in once:
        if kind_of(one) == "table":
            tables.append(read_file(path, known, said))
            runs += tables[-1].runs
            continue
        trace = trace_of(one, application=application)
        if traces and (other := difference(traces[0], trace)):
            if other.sure:
                raise FileError(
                    trace.path,
                    f"not the program of {traces[0].path}: {other.text}",
                    hint="give runs of one program, best of one build",
                )
            warnings.append(f"{trace.path}: another program than {traces[0].path}? {other.text}")
        runs.append(_traced(trace, said, known, part))
        traces.append(trace)
    kept, doubts = checked(runs, settled)
    notes = [f"{table.path}: {note}" for table in tables for note in table.notes]
    return MeasuredRuns(
        kept,
        tuple(tables),
        (*warnings, *notes, *doubts),
        tuple(path for _, path, _ in once),
    )


Named = tuple[TraceLike, str, Mapping[str, str]]
"""What is to be read, its file, and what is said of its runs."""


def named(given: TraceLike) -> Named:
    """What is to be read, its file, and what is said behind the file's name."""
    path = path_of(given)
    if isinstance(given, Trace) or os.path.exists(path):  # noqa: PTH110 (names of files may hold anything)
        return given, path, {}
    path, said = split(path)
    return path, path, said


def _once(given: list[Named]) -> tuple[list[Named], list[str]]:
    """Every file once, and what was given more often."""
    found: dict[tuple[object, ...], Named] = {}
    again: list[str] = []
    for one, path, said in given:
        # several runs may be held in one loaded trace's file: windows of it
        same = id(one) if isinstance(one, Trace) else os.path.realpath(path)
        key = (same, *sorted(said.items()))
        if key in found:
            again.append(path)
        else:
            found[key] = one, path, said
    return list(found.values()), [
        f"{plural(len(again), 'file is', 'files are')} named again, first {path}: read once"
        for path in again[:1]
    ]


def _traced(
    trace: Trace, said: Mapping[str, str], known: tuple[str, ...] | None, asked: TracePart
) -> MeasuredRow:
    values = numbers_of(trace.path, said)
    for name in values:
        if known is not None and name not in known:
            raise UsageError(
                f"{trace.path}: {name} is not a parameter of the application "
                f"({', '.join(known) or 'none'})",
                "leave it out, or name it as the application does",
            )
        if values[name] <= 0:
            raise UsageError(f"{trace.path}: {name} must be above 0, not {values[name]:g}")
    return from_run(analyse(trace, part=part_of_run(asked, trace)), values)
