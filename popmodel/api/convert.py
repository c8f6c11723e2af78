"""Traces as programs for other simulators or as timelines, and measured runs as tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from popmodel.api.convert_runs import SITES, ConvertedRuns, convert_runs, convert_sites
from popmodel.api.convert_timeline import (
    TIMELINES,
    ConvertedTimeline,
    timeline_of,
    write_timeline,
)
from popmodel.api.inputs import TraceLike, path_of, several, trace_of
from popmodel.base.errors import FileError, UsageError
from popmodel.base.files import expect_writable, refuse_planted
from popmodel.base.units import count, plural
from popmodel.base.values import dataclass
from popmodel.runs.files import FORMATS, form_of
from popmodel.simulator import from_trace
from popmodel.simulator.program import unmodelled_calls
from popmodel.simulator.program_files import ProgramFormat, format_of, write
from popmodel.structure.part_of_run import part_of_run
from popmodel.traces.caveats import devices
from popmodel.traces.selection import Foa, TracePart, Window, focused


@dataclass(frozen=True)
class Converted:
    """A program that was written, as returned by `convert`."""

    # The trace, and the file.
    trace: str
    path: str
    format: str  # Its format
    # Processes, and MPI operations of all of them in the trace.
    processes: int
    operations: int
    # What limits the program: of the trace, and what the file does not hold as it is.
    caveats: tuple[str, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """The file and what is in it, in a line."""
        size = f"{plural(self.processes, 'process', 'processes')}, {count(self.operations)}"
        return f"{self.path}: {self.format}, {size} MPI operations"


def convert(
    trace: TraceLike | Iterable[TraceLike],
    output: str | os.PathLike[str],
    *,
    force: bool = False,
    flop_rate: float | None = None,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    application: int = 1,
    arguments: Sequence[str] = (),
) -> Converted | ConvertedTimeline | ConvertedRuns:
    """Write a trace as a program or as a timeline, or measured runs as a table.

    Parameters
    ----------
    trace : path or Trace, or several of them
        The trace. For a table of runs several traces, and tables of runs; parameters of the
        application may stand behind each: ``run.prv.gz:N=256``.
    output : path
        The file: ``.ti`` or ``.ti.txt`` for SimGrid SMPI, ``.goal`` for LogGOPSim,
        ``.perfetto.json`` for the viewers of Perfetto and Chrome; with ``.gz`` compressed.
        ``.svg`` is a drawing of the run over time, above its ideal replay. Tables of runs are
        ``.csv``, ``.json`` (`popmodel/runs/1`), and ``.jsonl`` for Extra-P. ``.sites.csv`` is a
        table of what the traced runs do at each place in the code that calls MPI or holds a
        parallel region.
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
    asked = TracePart.of(window, region, from_start, foa)
    given, goal = several(trace), Path(output)
    timeline = timeline_of(output)
    table = None if timeline else form_of(output)
    form = None if timeline or table else _program(output)
    if table is None:
        _expect_one(output, given, "timeline" if timeline else "program")
    if flop_rate is not None and form is None:
        what = "tables hold what was measured" if table else "a timeline holds measured times"
        raise UsageError(
            f"a flop rate is for programs of simulators: {what}", "leave out --flop-rate"
        )
    _expect_free(output, force)
    if os.fspath(output).lower().endswith(SITES):
        return convert_sites(given, output, asked, application=application)
    if table is not None:
        return convert_runs(
            given,
            output,
            table,
            asked,
            application=application,
            arguments=arguments,
        )
    rated = form is not None
    whole = trace_of(given[0], application=application, flop_rate=flop_rate, rated=rated)
    source, focus = focused(whole, part_of_run(asked, whole))
    said = (*devices(whole), *focus.caveats)
    names = path_of(given[0]), os.fspath(output)
    if form is None:
        return write_timeline(source, *names, said, arguments)
    program = from_trace(source)
    notes = write(program, goal)
    return Converted(
        *names,
        form.name,
        program.processes,
        program.operations,
        (*unmodelled_calls(program.unmodelled), *said),
        (*program.notes, *notes),
    )


def _program(output: str | os.PathLike[str]) -> ProgramFormat:
    """The format of a program that is written."""
    try:
        return format_of(output)
    except UsageError as error:
        timelines, tables = ", ".join(TIMELINES), ", ".join(FORMATS)
        others = f"{timelines} for timelines; {tables} for tables of runs"
        raise UsageError(error.message, f"{error.hint}; {others}") from None


def _expect_one(output: str | os.PathLike[str], given: Sequence[TraceLike], what: str) -> None:
    if len(given) != 1:
        raise UsageError(
            f"-o {os.fspath(output)}: one trace makes a {what}, not {len(given)}",
            f"name one, or write a table of runs: {', '.join(FORMATS)}",
        )


def _expect_free(output: str | os.PathLike[str], force: bool) -> None:
    """Make sure, before the work, that the file may be written."""
    goal = Path(output)
    if goal.is_dir():
        raise UsageError(f"-o {output}: is a directory", "name a file in it")
    refuse_planted(goal, "choose another path with -o")
    if not force and (goal.exists() or goal.is_symlink()):
        raise UsageError(f"-o {output}: the file exists", "use --force to overwrite it")
    try:
        expect_writable(goal)
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise FileError(goal, problem, hint="choose another path with -o") from error
