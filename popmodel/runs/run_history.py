"""The history of a program: a file that grows by one line of JSON for each run.

A line says what a later comparison needs and nothing else: label, machine, configuration, runtime,
its factors (`popmodel.runs.regression`), all metrics, and the time in regions and calls.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from popmodel.base import files
from popmodel.base.documents import (
    DocumentKind,
    Items,
    NamedShape,
    OneOf,
    Plain,
    Real,
    Text,
    WholeShape,
    parse_json,
    read_text,
    record,
)
from popmodel.base.errors import FileError
from popmodel.base.values import dataclass, document, fields_of
from popmodel.runs.same_program import names_differ

SCHEMA = "popmodel/history/1"
_HINT = "take the line out or restore the file; nothing was added to it"
_NUMBERS = NamedShape(Real())
KIND = DocumentKind(
    SCHEMA,
    "line of a history",
    record(
        {
            "schema": Text(),
            "label": Text(),
            "time": Text(),
            "run": Text(),
            "machine": Text(),
            "processes": WholeShape(1),
            "threads": OneOf("a number or a list of numbers", WholeShape(1), Items(WholeShape(1))),
            "part": Text(),
            "calls": NamedShape(WholeShape(1)),
            "functions": Items(Text()),
            "runtime": Real(above=0),
            "factors": NamedShape(Real(above=0)),
            "metrics": NamedShape(_NUMBERS),
            "regions": _NUMBERS,
            "call_sites": _NUMBERS,
            "caveats": Items(Text()),
            "provenance": Plain(),
        },
        others=Plain(),
    ),
    _HINT,
)


@dataclass(frozen=True)
class HistoryLine:
    """One run."""

    label: str  # Of what was run, such as a commit; repeats have the same one
    time: str  # When it was added, UTC
    run: str  # Name of its trace
    machine: str  # Processor and number of CPUs of the computer that analysed the run
    processes: int
    threads: int | tuple[int, ...]  # Of a process; of each where they differ
    part: str  # Which part of the run was asked for; empty for the program
    # How often each kind of MPI call is made, and functions: they tell programs from each other.
    calls: Mapping[str, int]
    functions: tuple[str, ...]
    runtime: float  # s
    factors: Mapping[str, float]  # What the runtime is made of, SI units
    metrics: Mapping[str, Mapping[str, float]]  # By family
    # Seconds of an average process in user regions and parallel regions, and in calls of MPI.
    regions: Mapping[str, float]
    call_sites: Mapping[str, float]
    caveats: tuple[str, ...]
    provenance: Mapping[str, Any]

    def value(self, id: str) -> float | None:
        """The runtime, or a metric by ``FAMILY.METRIC``; None where the run has none."""
        family, _, metric = id.rpartition(".")
        return self.runtime if id == "runtime" else self.metrics.get(family, {}).get(metric)

    def is_comparable(self, other: HistoryLine) -> bool:
        """Whether two runs are of one machine, configuration and part, and may be of one program.

        A commit may rename functions: `names_differ` says what is too much.
        """
        return self._setting == other._setting and not names_differ(
            (self.functions, self.calls), (other.functions, other.calls)
        )

    def is_same_run(self, other: HistoryLine) -> bool:
        """Whether two lines are of one trace file under one label."""
        mine, theirs = (line.provenance.get("inputs") for line in (self, other))
        prints = [[one["head_sha256"], one["size"]] for one in mine or ()]
        return (
            bool(prints)
            and prints == [[one["head_sha256"], one["size"]] for one in theirs or ()]
            and (self.label, self._setting) == (other.label, other._setting)
        )

    @property
    def _setting(self) -> tuple[object, ...]:
        return self.machine, self.processes, self.threads, self.part

    def to_dict(self) -> dict[str, Any]:
        """The line as it stands in the file."""
        return document(SCHEMA, **fields_of(self))


def read_history(path: str | os.PathLike[str]) -> list[HistoryLine]:
    """Read all lines; none of a file that is not there. A damaged line is named by its number."""
    if not os.path.lexists(path):
        return []
    lines = []
    for number, text in enumerate(read_text(path).split("\n"), 1):
        if text.strip():
            found = KIND.read(parse_json(text, path, line=number, hint=_HINT), path, line=number)
            values: dict[str, Any] = {
                name: tuple(found[name]) if isinstance(found[name], list) else found[name]
                for name in HistoryLine.__dataclass_fields__
            }
            lines.append(HistoryLine(**values))
    return lines


def append_history(
    path: str | os.PathLike[str], runs: Iterable[HistoryLine]
) -> tuple[list[HistoryLine], int]:
    """Add runs at the end of a history, all or none; return all lines and how many are new.

    A run that the history has already under the same label is not added again, so that a command
    can be repeated. Commands that add to one file at a time wait for each other.
    """
    try:
        with files.locked_file(path) as target:
            known = read_history(path)
            new: list[HistoryLine] = []
            for run in runs:
                if not any(run.is_same_run(line) for line in (*known, *new)):
                    new.append(run)
            if new:
                before = read_text(path).rstrip("\n")
                texts = [
                    json.dumps(run.to_dict(), separators=(",", ":"), allow_nan=False) for run in new
                ]
                files.write_text(target, "".join(f"{text}\n" for text in (before, *texts) if text))
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise FileError(path, problem, hint="choose another path with --history") from error
    return [*known, *new], len(new)
