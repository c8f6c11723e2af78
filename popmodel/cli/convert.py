"""``popmodel convert``: traces as programs of simulators or as timelines, runs as tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import UsageError
from popmodel.base.units import plural
from popmodel.base.values import dataclass, document
from popmodel.cli.command import argument, flag, option
from popmodel.cli.completion import TABLES, TRACES
from popmodel.cli.options import APPLICATION, FLOP_RATE, FOA, FROM_START, REGION, WINDOW
from popmodel.reports.result import Result, save_text

if TYPE_CHECKING:
    import pandas

    from popmodel.cli.inputs import TraceLike
    from popmodel.reports.blocks import Section
    from popmodel.reports.views import Document, Views
    from popmodel.runs.run_files import FileForm
    from popmodel.traces import Trace
    from popmodel.traces.selection import Foa, TracePart, Window

RESOURCES = True
EXAMPLES = (
    "popmodel convert run.prv.gz -o run.ti.gz",
    "popmodel convert run.prv.gz -o run.goal --from-start",
    "popmodel convert run.prv.gz -o run.perfetto.json.gz",
    "popmodel convert run.prv.gz -o timeline.svg --foa auto",
    "popmodel convert run.prv.gz -o run.otf2",
    "popmodel convert a.prv.gz:N=128 b.prv.gz:N=256 -o runs.csv",
    "popmodel convert runs.csv -o runs.jsonl",
    "popmodel convert a.prv.gz:N=128 b.prv.gz:N=256 -o run.sites.csv",
)
TIMELINES: Mapping[str, str] = {
    ".perfetto.json": "Trace Event Format",
    ".svg": "SVG",
    ".otf2": "OTF2",
}
"""Formats of timelines by suffix; the first may be followed by ``.gz``."""
SITES = ".sites.csv"
"""Ends the name of a table of sites."""


@dataclass(frozen=True)
class Converted(Result):
    """A file that was written, as returned by `convert`."""

    files: tuple[str, ...]  # What it is made of
    path: str
    format: str
    counts: Mapping[str, int]  # What is in it: processes, operations, runs, ...
    # What limits it: of the traces, and what the file does not hold as it is.
    caveats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    table: pandas.DataFrame | None = None  # Of a table of runs or sites

    def __repr__(self) -> str:
        return f"<Converted {_line(self.to_dict())}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/convert/1``, without provenance."""
        return document(
            "popmodel/convert/1",
            path=self.path,
            format=self.format,
            counts=self.counts,
            caveats=self.caveats,
            notes=self.notes,
        )

    @property
    def views(self) -> Views:
        """How the document is shown."""
        from popmodel.reports.views import Views

        return Views(_blocks, ("",), is_text=True)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the runs, or what they do at each site, as a pandas table."""
        return super().to_dataframe() if self.table is None else self.table


_NOTES = 6  # on a screen


def _blocks(found: Document) -> list[Section]:
    from popmodel.reports.blocks import Brief, Code, NoteBlock, Role, notes

    said = notes((*found["notes"], *found["caveats"]), Role.WARNING)
    line = Code((_line(found),))
    if len(said) <= _NOTES:
        return [(line, *said)]
    more = NoteBlock(f"{len(said) - _NOTES} more: --all")
    return [(line, Brief((said,), ((*said[:_NOTES], more),)))]


def _line(found: Document) -> str:
    """The file and what is in it."""
    words = {"processes": ("process", "processes"), "operations": ("MPI operation",)}
    held = [
        plural(number, *words.get(name, (name.removesuffix("s"),)))
        for name, number in found["counts"].items()
    ]
    return f"{found['path']}: {', '.join([found['format'], *held])}"


def convert(
    sources: Annotated[
        TraceLike | Iterable[TraceLike],
        argument(
            "TRACE_OR_TABLE",
            "A trace (.prv, .otf2, .ti, .dim, .goal, or with .gz). For a table of runs: traces, "
            "tables (.csv, .md, .txt, .json, ..., also of sacct -P), each with parameters of the "
            "application, such as run.prv.gz:N=128.",
            several=True,
            complete=(*TRACES, *TABLES),
        ),
    ],
    output: Annotated[
        str | os.PathLike[str] | None,
        option(
            "FILE",
            "Write to FILE. A program: .ti or .ti.txt for SimGrid SMPI, .goal for LogGOPSim. A "
            "timeline: .perfetto.json for ui.perfetto.dev and chrome://tracing, .otf2 for Vampir, "
            ".svg for a drawing. .gz compresses. A table of runs: .csv, .json, or .jsonl for "
            "Extra-P; .sites.csv has what traced runs do at each place in the code.",
            short="-o",
        ),
    ] = None,
    *,
    force: Annotated[bool, flag("Overwrite FILE if it exists.")] = False,
    flop_rate: Annotated[float | None, FLOP_RATE] = None,
    window: Annotated[Window | None, WINDOW] = None,
    region: Annotated[str | None, REGION] = None,
    from_start: Annotated[bool, FROM_START] = False,
    foa: Annotated[Foa | None, FOA] = None,
    application: Annotated[int, APPLICATION] = 1,
    arguments: Sequence[str] = (),
) -> Converted:
    """Write a trace as a program or as a timeline, or runs as a table.

    The program is what whatif simulates: what every process computes and calls, in order, without
    the time spent in MPI. A timeline has what every thread does over time, and the ideal replay
    beside it. A table has processes, threads, parameters, runtime and metrics of each run. What
    the format cannot express is said. An archive of OTF2 has the whole run unless a part is named.

    Parameters
    ----------
    sources : path or Trace, or several of them
        The trace. For a table of runs several traces, and tables of runs; parameters of the
        application may stand behind each: ``run.prv.gz:N=256``.
    output : path
        The file, whose suffix decides: ``.ti`` or ``.ti.txt`` for SimGrid SMPI, ``.goal`` for
        LogGOPSim, ``.perfetto.json``, ``.otf2`` and ``.svg`` for timelines; with ``.gz``
        compressed. Tables of runs are ``.csv``, ``.json`` (`popmodel/runs/1`), and ``.jsonl`` for
        Extra-P; ``.sites.csv`` has what traced runs do at each place in the code.
    force : bool
        Whether a file may be replaced.
    flop_rate : float, optional
        As for `popmodel.read`.
    window, region, from_start, foa, application
        As for `popmodel.whatif`, whose program it is.
    arguments : sequence of str
        The command line that is kept in a document.

    Raises
    ------
    FileError
        If a trace or a table cannot be read, or the file not written.
    UsageError
        If the name of the file asks for no format, it exists, or the format cannot hold the runs.

    Examples
    --------
    >>> import popmodel
    >>> written = popmodel.convert("tests/data/cg.S.2.prv.gz", "cg.goal.gz")  # doctest: +SKIP
    """
    from popmodel.cli.inputs import several
    from popmodel.cli.output import refuse_existing
    from popmodel.runs.run_files import form_of
    from popmodel.simulator.program_files import format_of
    from popmodel.traces.selection import TracePart

    if output is None:
        raise UsageError(
            "-o FILE is missing",
            "try -o program.ti.gz, -o program.goal, -o timeline.svg or -o runs.csv",
        )
    asked = TracePart.of(window, region, from_start, foa)
    given, path = several(sources), os.fspath(output)
    if path.endswith(".otf2") and asked == TracePart():
        asked = TracePart(from_start=True)  # cut, calls at both ends would lack their partners
    timeline = next((end for end in TIMELINES if _plain_name(path, end).endswith(end)), "")
    table = None if timeline else form_of(output)
    if not (timeline or table):
        try:
            format_of(output)
        except UsageError as error:
            others = f"{', '.join(TIMELINES)} for timelines; {_tables()} for tables of runs"
            raise UsageError(error.message, f"{error.hint}; {others}") from None
    if table is None and len(given) != 1:
        what = "timeline" if timeline else "program"
        raise UsageError(
            f"-o {path}: one trace makes a {what}, not {len(given)}",
            f"name one, or write a table of runs: {_tables()}",
        )
    if flop_rate is not None and (timeline or table):
        what = "tables hold what was measured" if table else "a timeline holds measured times"
        raise UsageError(
            f"a flop rate is for programs of simulators: {what}", "leave out --flop-rate"
        )
    refuse_existing(Path(path), force=force)
    if path.lower().endswith(SITES):
        return _sites(given, path, asked, application)
    if table is not None:
        return _runs(given, path, table, asked, application, arguments)
    return _program_or_timeline(given[0], path, timeline, asked, application, flop_rate, arguments)


def _plain_name(path: str, suffix: str) -> str:
    """The name of a file; drawings and archives are never compressed as a whole."""
    return Path(path).name.removesuffix(".gz" if suffix == ".perfetto.json" else "")


def _tables() -> str:
    from popmodel.runs.run_files import FORMATS

    return ", ".join(FORMATS)


def _program_or_timeline(
    source: TraceLike,
    path: str,
    timeline: str,
    asked: TracePart,
    application: int,
    flop_rate: float | None,
    arguments: Sequence[str],
) -> Converted:
    from popmodel.cli.inputs import path_of, trace_of
    from popmodel.simulator.from_trace import from_trace
    from popmodel.simulator.program import unmodelled_calls
    from popmodel.simulator.program_files import format_of, write
    from popmodel.structure.focus import part_of_run
    from popmodel.traces.caveats import devices
    from popmodel.traces.selection import focused

    whole = trace_of(source, application=application, flop_rate=flop_rate, rated=not timeline)
    trace, focus = focused(whole, part_of_run(asked, whole))
    said, files = (*devices(whole), *focus.caveats), (path_of(source),)
    if timeline:
        name, processes = TIMELINES[timeline], {"processes": trace.processes}
        found = Converted(files, path, name, processes, said)
        if timeline == ".otf2":
            return _archived(found, trace)
        return _drawn(found, trace, arguments) if timeline == ".svg" else _exported(found, trace)
    program = from_trace(trace)
    notes = write(program, Path(path))
    return Converted(
        files,
        path,
        format_of(path).name,
        {"processes": program.processes, "operations": program.operations},
        (*unmodelled_calls(program.unmodelled), *said),
        (*program.notes, *notes),
    )


def _archived(found: Converted, trace: Trace) -> Converted:
    """Write an archive of OTF2."""
    from popmodel.traces.otf2.archive_writer import write_archive

    notes = write_archive(found.path, trace)
    counts = {**found.counts, "threads": trace.locations, "messages": len(trace.messages.size)}
    return replace(found, counts=counts, notes=notes)


def _exported(found: Converted, trace: Trace) -> Converted:
    """Write a timeline for viewers."""
    from popmodel.timeline.trace_events import export

    told = export(trace, found.path)
    counts = {**found.counts, "slices": told.slices, "messages": told.messages}
    return replace(found, counts=counts, notes=told.notes)


def _drawn(found: Converted, trace: Trace, arguments: Sequence[str]) -> Converted:
    """Write a timeline as a drawing."""
    from popmodel.base import provenance
    from popmodel.base.values import plain
    from popmodel.reports.pictures import COLUMNS, ROWS, run_timeline
    from popmodel.reports.renderers.svg import draw
    from popmodel.timeline.timeline import LIMITS, timeline

    shown = timeline(trace, limits=replace(LIMITS, rows=ROWS, columns=COLUMNS))
    origin = provenance.collect(arguments, filter(os.path.isfile, found.files))
    save_text(found.path, draw(run_timeline, shown, plain(origin)))
    notes = (f"no ideal replay: {shown.why_no_ideal}",) if shown.why_no_ideal else ()
    return replace(found, counts={**found.counts, "lanes": len(shown.labels)}, notes=notes)


def _runs(
    sources: Sequence[TraceLike],
    path: str,
    form: FileForm,
    asked: TracePart,
    application: int,
    arguments: Sequence[str],
) -> Converted:
    """Write measured runs as a table."""
    from popmodel.base import provenance
    from popmodel.base.values import plain
    from popmodel.cli.measured_runs import read_runs
    from popmodel.runs.measurement import runs_frame
    from popmodel.runs.run_files import read_file

    found = read_runs(sources, asked=asked, application=application)
    origin = provenance.collect(arguments, filter(os.path.isfile, found.files))
    save_text(path, form.write(found.runs, plain(origin)), read_file)
    caveats = dict.fromkeys(f"{run.source}: {text}" for run in found.runs for text in run.caveats)
    return Converted(
        found.files,
        path,
        form.name,
        {"runs": len(found.runs)},
        tuple(caveats),
        found.warnings,
        runs_frame(found.runs),
    )


def _sites(
    sources: Sequence[TraceLike], path: str, asked: TracePart, application: int
) -> Converted:
    """Write what traced runs do at each site of the code."""
    import pandas

    from popmodel.cli.inputs import trace_of
    from popmodel.cli.measured_runs import named
    from popmodel.runs.run_files import is_table
    from popmodel.runs.sites import sites_of
    from popmodel.runs.table import numbers_of
    from popmodel.structure.focus import part_of_run
    from popmodel.traces import Trace

    tables, files = [], []
    for source, name, said in map(named, sources):
        if not isinstance(source, Trace) and is_table(name):
            raise UsageError(f"{name}: is a table of runs, which have no sites", "name traces")
        given = source if isinstance(source, Trace) else name
        trace = trace_of(given, application=application)
        table = sites_of(trace, part_of_run(asked, trace))
        threads = "..".join(map(str, sorted({int(trace.threads.min()), int(trace.threads.max())})))
        run: dict[str, Any] = {
            "run": trace.path,
            "run_processes": trace.processes,
            "run_threads": threads,
        }
        for number, (column, value) in enumerate((run | numbers_of(name, said)).items()):
            table.insert(number, column, value)
        tables.append(table)
        files.append(trace.path)
    sites = pandas.concat(tables, ignore_index=True)
    save_text(path, sites.to_csv(index=False))
    return Converted(tuple(files), path, "CSV of sites", {"runs": len(tables)}, table=sites)
