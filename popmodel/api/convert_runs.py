"""Measured runs of traces and tables as one table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from popmodel import provenance
from popmodel.api.focus import Asked
from popmodel.api.inputs import TraceLike
from popmodel.api.measured import read_runs
from popmodel.api.results import save_text
from popmodel.plain import plain
from popmodel.runs.files import Form, read_file
from popmodel.units import plural
from popmodel.values import dataclass


@dataclass(frozen=True)
class ConvertedRuns:
    """A table of runs that was written, as returned by `popmodel.convert`."""

    files: tuple[str, ...]  # The traces and tables
    path: str  # The file
    format: str  # Its format
    runs: int  # Runs in it
    # What limits the numbers, and what the file does not hold or what had to be assumed.
    caveats: tuple[str, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """The file and what is in it, in a line."""
        return f"{self.path}: {self.format}, {plural(self.runs, 'run')}"


def convert_runs(
    sources: Iterable[TraceLike],
    output: str | os.PathLike[str],
    form: Form,
    asked: Asked,
    *,
    application: int,
    arguments: Sequence[str],
) -> ConvertedRuns:
    """Write measured runs as a table; the file is known to be writable."""
    found = read_runs(sources, asked=asked, application=application)
    origin = provenance.collect(arguments, filter(os.path.isfile, found.files))
    text, notes = form.write(found.runs, plain(origin))
    save_text(output, text, read_file)
    caveats = dict.fromkeys(f"{run.source}: {text}" for run in found.runs for text in run.caveats)
    return ConvertedRuns(
        found.files,
        os.fspath(output),
        form.name,
        len(found.runs),
        tuple(caveats),
        (*found.warnings, *notes),
    )
