"""``popmodel trace -- COMMAND``: the run, and the trace that is made of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from popmodel.base.errors import PopmodelError
from popmodel.cli.trace_merge import merged
from popmodel.cli.trace_target import shown, target_of, tracer

if TYPE_CHECKING:
    from popmodel.tracer.commands import Settings, TracedCommand
    from popmodel.tracer.library import Library


def trace(
    arguments: Sequence[str],
    words: Sequence[str],
    output: str | None,
    settings: Settings,
    *,
    keep_raw: bool,
    force: bool,
) -> None:
    """Run a command; its output and its exit status are its own."""
    from popmodel.base.files import as_exits
    from popmodel.tracer import raw_directory
    from popmodel.tracer.commands import place, refuse_as_rank, understand, variables
    from popmodel.tracer.run import run

    refuse_as_rank()
    command = understand(words)
    target = target_of(output, command, force=force)
    library = tracer(command)
    raw = raw_directory.of_output(target)
    raw_directory.create(raw, force=force)
    call = place(command, variables(library.path, raw, settings), os.environ)
    with raw_directory.held(raw):
        try:
            status = run(command.path, call.words, {**os.environ, **call.environment})
        except PopmodelError:
            raw_directory.clear(raw)
            raise
        try:
            with as_exits():
                if not raw_directory.files(raw):
                    raw_directory.clear(raw)
                    raise _nothing(command, status, settings)
                _finish(
                    arguments,
                    command,
                    raw,
                    target,
                    library,
                    settings,
                    keep_raw=keep_raw,
                    force=force,
                )
        except PopmodelError as error:
            if status == 0:
                raise
            # What the program said of its failure comes first, and its status is what counts.
            from popmodel.cli.streams import complain

            complain(error.message, error.hint)
    if status != 0:
        raise typer.Exit(status)


def _finish(
    arguments: Sequence[str],
    command: TracedCommand,
    raw: Path,
    target: Path,
    library: Library,
    settings: Settings,
    *,
    keep_raw: bool,
    force: bool,
) -> None:
    """Make the trace of what was recorded, and say what it is."""
    from popmodel.api.trace import traced
    from popmodel.base.provenance import stamped
    from popmodel.cli.output import terminal_style
    from popmodel.reports.formats import TABLE
    from popmodel.reports.trace import VIEWS

    runs, notes = merged(raw, target, force=force, after_the_run=True)
    if library.without_mpi is not None:
        notes += (f"MPI is not traced: {library.without_mpi}",)
    if not any(run.openmp for run in runs):
        if settings.openmp in _NO_OPENMP:
            notes += (f"no OpenMP: {_NO_OPENMP[settings.openmp]} (--openmp {settings.openmp})",)
        if "OpenMP" in _built_in(command):
            notes += ("no OpenMP: the runtime is statically linked",)
    if not keep_raw:
        _remove(raw)
    found = traced(runs, raw=shown(raw) if keep_raw else None, notes=notes)
    style = terminal_style(sys.stderr)
    _say(TABLE.render(stamped(found, arguments), VIEWS, style))


def _remove(raw: Path) -> None:
    from popmodel.cli.streams import remark
    from popmodel.tracer import raw_directory

    try:
        raw_directory.clear(raw)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remark(f"the raw files in {shown(raw)} could not be removed: {reason}")


_NO_OPENMP = {
    "off": "it was switched off",
    "ompt": "the program does not use it, or its runtime has no tools interface",
    "gomp": "the program does not use it, or its runtime is not libgomp",
}


def _nothing(command: TracedCommand, status: int, settings: Settings) -> PopmodelError:
    """The error for a run of which nothing was recorded."""
    name = command.words[command.start] if command.program is None else command.program.name
    if built := _built_in(command):
        are = "are" if len(built) > 1 else "is"
        return PopmodelError(
            f"{name}: nothing was recorded: {' and '.join(built)} {are} linked "
            "statically, so the tracer cannot intercept calls",
            "link shared libraries: no -static, no -static-libgomp, no MPI archives (.a)",
        )
    if status != 0:
        # launchers have statuses of their own above 128
        ending = f"status {status}" if command.is_launcher else _ending(status)
        return PopmodelError(
            f"{name}: nothing was recorded: it ended with {ending} before a process called "
            "MPI_Init or entered a parallel region with the tracer loaded",
            "run it without popmodel: if it fails as well, the tracer is not the cause",
        )
    if settings.openmp in _NO_OPENMP:
        return PopmodelError(
            f"{name}: nothing was recorded: no process called MPI_Init, and no OpenMP: "
            f"{_NO_OPENMP[settings.openmp]} (--openmp {settings.openmp})",
            "leave --openmp out: popmodel then detects how to observe OpenMP",
        )
    return PopmodelError(
        f"{name}: nothing was recorded: no process called MPI_Init or entered a parallel region "
        "with the tracer loaded",
        "the program must link shared libraries of MPI or OpenMP (see ldd); a script that starts "
        "ranks elsewhere must pass on the variables of popmodel trace --print-env",
    )


def _built_in(command: TracedCommand) -> list[str]:
    from popmodel.tracer.symbol_table import built_in

    return [] if command.program is None else built_in(str(command.program))


def _ending(status: int) -> str:
    """An exit status in words: shells make 128 + number of signals."""
    try:
        return f"signal {signal.Signals(status - 128).name}" if status > 128 else f"status {status}"
    except ValueError:
        return f"status {status}"


def _say(text: str) -> None:
    """Write to standard error: standard output is the program's."""
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
