"""A signature from source code: what a program does, read from its files without running it.

A front end (`c_family`, `fortran_family`) turns files into one intermediate form
(`intermediate_form`). The interpreter carries it out with symbols for what only a run knows
(`symbolic_memory`, `symbolic_evaluation`, `function_calls`, `interpreter`; `mpi_arguments` and
`library_calls` for functions of others), and notes loops, messages and OpenMP (`source_events`).
`loop_costs` counts what an iteration does, `draft` writes all that as items of a signature, with
``"?"`` for what nobody can know, its formulas as `draft_formulas` names what they are of, and
`item_folding` shortens them to what a person reads. `trace_join` takes numbers from a traced run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.base.errors import FileError, UsageError
from popmodel.source import c_family, fortran_family
from popmodel.source.draft import Draft
from popmodel.source.intermediate_form import SourceProgram
from popmodel.source.interpreter import Interpreter
from popmodel.source.trace_join import functions_of

if TYPE_CHECKING:
    from popmodel.traces import Trace


def is_source(path: str) -> bool:
    """Whether a file is source code that is read, by its suffix."""
    return Path(path).suffix in (*c_family.SUFFIXES, *fortran_family.SUFFIXES)


def signature_of_source(
    paths: Sequence[str | os.PathLike[str]],
    name: str,
    options: Sequence[str] = (),
    trace: Trace | None = None,
) -> tuple[str, Draft]:
    """Find what a program does in its source.

    Parameters
    ----------
    paths : sequence of path
        Files of C, C++ or Fortran, one of them with `main` or the program.
    name : str
        Of the application.
    options : sequence of str
        Of the compiler, such as ``-Iinclude`` and ``-DUSE_MPI``.
    trace : Trace, optional
        Of a run, for numbers that the source does not say; it is checked against the source.

    Returns
    -------
    text : str
        The signature as TOML; ``"?"`` stands for what the source does not say.
    draft : Draft
        What it was written from.

    Raises
    ------
    FileError
        If a file cannot be read.
    UsageError
        If the files define no `main`, or several.
    """
    files = [Path(path) for path in paths]
    for file in files:
        try:
            file.open("rb").close()
        except OSError as error:
            raise FileError(
                file, f"cannot be read: {error.strerror}", hint="check the path"
            ) from error
    program = SourceProgram({}, {}, ())
    for family in (c_family, fortran_family):
        own = [file for file in files if file.suffix in family.SUFFIXES]
        if own:
            part = family.read(own, options)
            program = SourceProgram(
                {**program.functions, **part.functions},
                {**program.variables, **part.variables},
                (*program.problems, *part.problems),
                {**program.overriders, **part.overriders},
            )
    mains = [str(one.place) for one in program.functions.values() if one.name == "main"]
    if len(mains) != 1:
        several = f" and {len(files) - 1} more files" if len(files) > 1 else ""
        where = "signature from" if mains else f"{files[0].name}{several}"
        found = (
            f"main is defined {len(mains)} times: {', '.join(mains[:4])}" if mains else "no main"
        )
        errors = program.problems[:1] if not mains else ()  # what cannot be read may hold it
        hint = "name the file of one of them, and the files that it shares with the others"
        if not mains:
            hint = f"correct the source: {errors[0]}" if errors else "name all files of one program"
        raise UsageError(f"{where}: {found}", hint)
    classes = [one for one in program.problems if one.endswith("undeclared identifier 'MPI'")]
    if classes:
        raise UsageError(
            f"{classes[0].partition(': ')[0]}: uses the C++ classes of MPI, which MPI 3 removed "
            "and popmodel does not read",
            "call the functions of C: MPI_Send(...), not MPI::COMM_WORLD.Send(...)",
        )
    interpreter = Interpreter(program)
    if trace is not None:
        interpreter.traced = partial(functions_of, trace)
    interpreter.run()
    draft = Draft(interpreter, name, files, options)
    text = draft.text(trace)
    first = len(draft.findings) + len(draft.advice)
    draft.notes[first:first] = program.problems[:_SHOWN]
    if len(program.problems) > _SHOWN:
        draft.notes.insert(
            first + _SHOWN, f"{len(program.problems) - _SHOWN} more errors in the source"
        )
    return text, draft


_SHOWN = 5
"""Errors of the compiler that are shown."""
