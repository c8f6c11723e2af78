"""Measured runs to compare predictions with: from a trace, or from a table of run times."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from popmodel.documents import read_text
from popmodel.errors import FileError
from popmodel.metrics.hierarchy import load_families
from popmodel.metrics.measure import Run
from popmodel.trace.focus import Focus

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
    reader = csv.DictReader(io.StringIO(read_text(path, TableError)), skipinitialspace=True)
    names = [name.strip() for name in reader.fieldnames or ()]
    for name in COLUMNS:
        if name not in names:
            raise TableError(
                path,
                f"has no column {name!r}",
                line=1,
                hint=f"its first line should be {','.join(COLUMNS)}",
            )
    reader.fieldnames = names
    found = []
    for row in reader:
        line = reader.line_num
        processes, threads = (_count(row[name], name, path, line) for name in COLUMNS[:2])
        runtime = _seconds(row["runtime"], path, line)
        found.append(Measurement(os.fspath(path), processes, threads, runtime, {}))
    if not found:
        raise TableError(path, "has no runs", hint="one line per run, below the names of columns")
    return found


def _count(text: str | None, name: str, path: Path, line: int) -> int:
    number = (text or "").strip()
    if not (number.isascii() and number.isdigit() and len(number) <= 9 and int(number) > 0):
        raise TableError(path, f"{name} should be a whole number from 1, not {number!r}", line=line)
    return int(number)


def _seconds(text: str | None, path: Path, line: int) -> float:
    number = (text or "").strip()
    try:
        seconds = float(number)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise TableError(path, f"runtime should be seconds above 0, not {number!r}", line=line)
    return seconds
