"""Measured runs to compare predictions with: from a trace, or from a table of run times."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from popmodel.documents import read_text
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import Run
from popmodel.errors import FileError
from popmodel.shapes import Real, shown
from popmodel.trace.focus import Focus
from popmodel.values import dataclass

COLUMNS = ("processes", "threads", "runtime")


class TableError(FileError):
    """A table of run times is damaged."""


@dataclass(frozen=True)
class Measurement:
    """One run as measured.

    Attributes
    ----------
    source : str
        File that it comes from.
    processes, threads : int
        P, and T of every process.
    runtime : float
        Seconds.
    metrics : mapping of str to mapping of str to float
        By family and metric id; empty if only the runtime is known.
    window : Focus or None
        What of a trace was measured; None of a run time from a table.
    caveats : tuple of str
        What has to be known before the numbers are read.
    """

    source: str
    processes: int
    threads: int
    runtime: float
    metrics: Mapping[str, Mapping[str, float]]
    window: Focus | None = None
    caveats: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What was measured, for JSON; the values stand beside their predictions."""
        return {
            "source": self.source,
            "caveats": list(self.caveats),
            "window": None if self.window is None else self.window.to_dict(),
        }


def from_run(run: Run) -> Measurement:
    """Evaluate all families for a traced run.

    Raises
    ------
    FileError
        If its processes have different numbers of threads: a prediction has one.
    """
    observed = run.observables
    threads = sorted(set(observed.threads.tolist()))
    if len(threads) > 1:
        raise FileError(
            run.trace,
            f"its processes have {threads[0]} to {threads[-1]} threads, a prediction has as many "
            "everywhere",
        )
    aggregates = observed.aggregates()
    metrics = {
        name: family.evaluate(aggregates, observed.absent).values
        for name, family in load_families().items()
    }
    return Measurement(
        run.trace,
        len(observed.threads),
        int(threads[0]),
        float(aggregates["runtime"]),
        metrics,
        run.window,
        run.caveats,
    )


def read_table(path: str | os.PathLike[str]) -> list[Measurement]:
    """Read run times from a CSV file with the columns processes, threads and runtime (seconds).

    Other columns may be there; runs of the same size are several runs.

    Raises
    ------
    TableError
        If a column or a number is missing or wrong; names the line.
    """
    path = Path(path)
    lines = csv.reader(io.StringIO(read_text(path, TableError), newline=""), skipinitialspace=True)
    try:
        names = [name.strip() for name in next(lines, ())]
        places = {name: _place(name, names, path) for name in COLUMNS}
        found = [
            _measurement(
                {name: _cell(row, at) for name, at in places.items()}, path, lines.line_num
            )
            for row in lines
            if row
        ]
    except csv.Error as reason:
        raise TableError(path, f"is not CSV: {reason}", line=lines.line_num) from None
    if not found:
        raise TableError(path, "has no runs", hint="one line per run, below the names of columns")
    return found


def _place(name: str, names: Sequence[str], path: Path) -> int:
    hint = f"its first line should be {','.join(COLUMNS)}"
    if name not in names:
        raise TableError(path, f"has no column {name!r}", line=1, hint=hint)
    if names.count(name) > 1:
        raise TableError(path, f"has several columns {name!r}", line=1, hint=hint)
    return names.index(name)


def _cell(row: Sequence[str], at: int) -> str:
    return row[at].strip() if at < len(row) else ""


def _measurement(cells: Mapping[str, str], path: Path, line: int) -> Measurement:
    processes, threads = (_count(cells[name], name, path, line) for name in COLUMNS[:2])
    runtime = _seconds(cells["runtime"], path, line)
    return Measurement(os.fspath(path), processes, threads, runtime, {})


def _count(text: str, name: str, path: Path, line: int) -> int:
    if not re.fullmatch(r"0*[1-9]\d{0,8}", text, re.ASCII):
        problem = f"{name} should be a whole number from 1, not {shown(text)}"
        raise TableError(path, problem, line=line)
    return int(text)


def _seconds(text: str, path: Path, line: int) -> float:
    try:
        return Real(above=0).read(float(text))
    except ValueError:  # no number, or none that a run can take
        problem = f"runtime should be seconds above 0, not {shown(text)}"
        raise TableError(path, problem, line=line) from None
