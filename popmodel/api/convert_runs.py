"""Measured runs of traces and tables as one table, and what traced runs do at each site."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import TraceLike, trace_of
from popmodel.api.measured import named, read_runs
from popmodel.base import provenance
from popmodel.base.errors import UsageError
from popmodel.base.plain import plain
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.reports.result import save_text
from popmodel.runs.files import FileForm, is_table, read_file
from popmodel.runs.measurement import MeasuredRow
from popmodel.runs.sites import sites_of
from popmodel.runs.table import numbers_of, runs_frame
from popmodel.structure.part_of_run import part_of_run
from popmodel.traces import Trace
from popmodel.traces.selection import TracePart

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class ConvertedRuns:
    """A table of runs that was written, as returned by `popmodel.convert`."""

    files: tuple[str, ...]  # The traces and tables
    path: str  # The file
    format: str  # Its format
    runs: int  # Runs in it
    # What limits the numbers, and what the file does not hold or what had to be assumed.
    caveats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    measured: tuple[MeasuredRow, ...] = ()  # The runs
    sites: pandas.DataFrame | None = None  # Where it is a table of sites

    def __str__(self) -> str:
        """The file and what is in it, in a line."""
        return f"{self.path}: {self.format}, {plural(self.runs, 'run')}"

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the runs, or what they do at each site, as a pandas table."""
        return runs_frame(self.measured) if self.sites is None else self.sites


def convert_runs(
    sources: Iterable[TraceLike],
    output: str | os.PathLike[str],
    form: FileForm,
    asked: TracePart,
    *,
    application: int,
    arguments: Sequence[str],
) -> ConvertedRuns:
    """Write measured runs as a table; the file is known to be writable."""
    found = read_runs(sources, asked=asked, application=application)
    origin = provenance.collect(arguments, filter(os.path.isfile, found.files))
    save_text(output, form.write(found.runs, plain(origin)), read_file)
    caveats = dict.fromkeys(f"{run.source}: {text}" for run in found.runs for text in run.caveats)
    return ConvertedRuns(
        found.files,
        os.fspath(output),
        form.name,
        len(found.runs),
        tuple(caveats),
        found.warnings,
        found.runs,
    )


SITES = ".sites.csv"
"""Ends the name of a table of sites."""


def convert_sites(
    sources: Sequence[TraceLike],
    output: str | os.PathLike[str],
    asked: TracePart,
    *,
    application: int,
) -> ConvertedRuns:
    """Write what traced runs do at each site of the code; the file is known to be writable."""
    import pandas

    tables, files = [], []
    for trace, path, said in map(named, sources):
        if not isinstance(trace, Trace) and is_table(path):
            raise UsageError(f"{path}: is a table of runs, which have no sites", "name traces")
        read = trace_of(trace if isinstance(trace, Trace) else path, application=application)
        table = sites_of(read, part_of_run(asked, read))
        threads = "..".join(map(str, sorted({int(read.threads.min()), int(read.threads.max())})))
        run: dict[str, Any] = {
            "run": read.path,
            "run_processes": read.processes,
            "run_threads": threads,
        }
        for number, (name, value) in enumerate((run | numbers_of(path, said)).items()):
            table.insert(number, name, value)
        tables.append(table)
        files.append(read.path)
    sites = pandas.concat(tables, ignore_index=True)
    save_text(output, sites.to_csv(index=False))
    names = tuple(files), os.fspath(output), "CSV of sites"
    return ConvertedRuns(*names, len(tables), sites=sites)
