"""Traces as programs for other simulators."""

from __future__ import annotations

import os
from pathlib import Path

from popmodel.api.focus import Asked, Foa
from popmodel.api.inputs import TraceLike, path_of, trace_of
from popmodel.errors import FileError, UsageError
from popmodel.files import expect_writable, refuse_planted
from popmodel.simulator import from_trace
from popmodel.simulator.formats import format_of, write
from popmodel.trace.focus import focused
from popmodel.trace.part import Window
from popmodel.units import count, plural
from popmodel.values import dataclass

__all__ = ["Converted", "convert"]


@dataclass(frozen=True)
class Converted:
    """A program that was written, as returned by `convert`.

    Attributes
    ----------
    trace, path : str
        The trace, and the file.
    format : str
        Its format.
    processes, operations : int
        Processes, and MPI operations of all of them in the trace.
    caveats, notes : tuple of str
        What limits the program: of the trace, and what the file does not hold as it is.
    """

    trace: str
    path: str
    format: str
    processes: int
    operations: int
    caveats: tuple[str, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """The file and what is in it, in a line."""
        size = f"{plural(self.processes, 'process', 'processes')}, {count(self.operations)}"
        return f"{self.path}: {self.format}, {size} MPI operations"


def convert(
    trace: TraceLike,
    output: str | os.PathLike[str],
    *,
    force: bool = False,
    flop_rate: float | None = None,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    application: int = 1,
    cache: bool = True,
) -> Converted:
    """Write what the processes of a trace do as a program for another simulator.

    Parameters
    ----------
    trace : path or Trace
        The trace.
    output : path
        The file: ``.ti`` or ``.ti.txt`` for SimGrid SMPI, ``.goal`` for LogGOPSim; with ``.gz``
        compressed.
    force : bool
        Whether a file may be replaced.
    flop_rate : float, optional
        As for `popmodel.read`.
    window, region, from_start, foa, application, cache
        As for `popmodel.replay`, whose program it is.

    Raises
    ------
    FileError
        If the trace cannot be read, or the file not written.
    UsageError
        If the name of the file asks for no format, or it exists.

    Examples
    --------
    >>> import popmodel
    >>> written = popmodel.convert("tests/data/cg.S.2.prv.gz", "cg.goal.gz")  # doctest: +SKIP
    """
    asked = Asked.of(window, region, from_start, foa)
    form, goal = format_of(output), Path(output)
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
    whole = trace_of(trace, application=application, cache=cache, flop_rate=flop_rate, rated=True)
    source, focus = focused(whole, asked.of_run(whole))
    program = from_trace(source)
    notes = write(program, goal)
    return Converted(
        path_of(trace),
        os.fspath(output),
        form.name,
        program.processes,
        program.operations,
        focus.caveats,
        (*program.notes, *notes),
    )
