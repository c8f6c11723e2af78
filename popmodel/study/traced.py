"""One small run of a study: the program traced, its output kept, its records merged.

The run is in a session of its own, so that Ctrl-C and a run that hangs leave nothing behind.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from popmodel import shell
from popmodel.errors import PopmodelError
from popmodel.host.launch import start
from popmodel.host.probe import LaunchError, meaningful, quote
from popmodel.study.command import filled
from popmodel.study.manifest import unwritable
from popmodel.study.plan import Run
from popmodel.tracer import raw_directory
from popmodel.tracer.commands import Command, understand
from popmodel.tracer.environment import Settings, place, variables
from popmodel.tracer.library import Library
from popmodel.tracer.merge import Merged, merge_runs
from popmodel.tracer.symbols import SourceLines
from popmodel.values import dataclass

SUFFIX = ".prv.gz"
_BINDING = ("--bind-to", "-bind-to", "--map-by", "-map-by", "--rankfile", "-rf", "--cpus-per-proc")
"""Options of Open MPI by which a user says where ranks and their threads are."""
_BETWEEN_RULES = re.compile(r"^([-=])\1{19,}\s*$.*?(^\1{20,}\s*$|\Z)", re.MULTILINE | re.DOTALL)


class RunFailed(PopmodelError):
    """A run ended with an error of its own: others may not."""


@dataclass(frozen=True)
class Traced:
    """A run that was traced."""

    seconds: float  # From the start of the command to its end
    # What later steps need to know: seconds, whether OpenMP was seen, calls of MPI.
    facts: Mapping[str, object]
    files: tuple[Path, ...]  # The trace and what belongs to it, and the output of the program


def trace_of(folder: Path, run: Run) -> Path:
    """The trace of a run in the directory of a study."""
    return folder / "runs" / f"{run.name}{SUFFIX}"


def words_of(words: Sequence[str], run: Run, command: Command) -> tuple[str, ...]:
    """Return the words of a run.

    Open MPI binds each of one or two ranks to one core, with all of its threads, unless it is told
    otherwise: where the user does not say, threads are bound to nothing.
    """
    made = filled(words, run.values)
    is_told = any(word.startswith(_BINDING) for word in words)
    if command.family == "Open MPI" and run.threads > 1 and not is_told:
        first = command.start + 1
        made = (*made[:first], "--bind-to", "none", *made[first:])
    return made


def command_of(folder: Path, words: Sequence[str], run: Run) -> str:
    """Return the command that traces a run by itself."""
    call = ["popmodel", "trace", "-o", str(trace_of(folder, run)), "--force", "--", *words]
    return f"OMP_NUM_THREADS={run.threads} {shell.join(call)}"


def traced(folder: Path, words: Sequence[str], run: Run, library: Library, limit: float) -> Traced:
    """Run a program traced, and merge its records."""
    target = trace_of(folder, run)
    log = target.with_name(f"{run.name}.log")
    raw = raw_directory.of_output(target)
    try:
        target.parent.mkdir(exist_ok=True)
        log.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(target.parent, error) from error
    raw_directory.create(raw, force=True)
    command = understand(words)
    given = {
        **variables(library.path, raw, Settings()),
        "OMP_NUM_THREADS": str(run.threads),
    }
    call = place(command, given, os.environ)
    own = {"OMP_NUM_THREADS": str(run.threads)}  # of launchers that hand on their environment
    begin = time.monotonic()
    try:
        with raw_directory.held(raw):
            start(
                command.path,
                call.words[1:],
                log=log,
                environment={**own, **call.environment},
                patience=limit,
                limit=limit,
            )
            seconds = time.monotonic() - begin
            return merged(raw, target, seconds, [log])
    except LaunchError as error:
        raise _failed(run, command, words, log, error) from error
    finally:
        raw_directory.clear(raw)


def merged(raw: Path, target: Path, seconds: float | None, others: Sequence[Path] = ()) -> Traced:
    """Make a trace of the records of a run."""
    if not raw_directory.files(raw):
        raise PopmodelError(
            f"{target.name.removesuffix(SUFFIX)}: nothing was recorded: no process called MPI_Init "
            "or entered a parallel region with the tracer loaded",
            "the program must link shared libraries of MPI or OpenMP (see ldd); popmodel trace "
            "with the same command says more",
        )
    found = merge_runs(raw, target, locate=SourceLines())
    if len(found) > 1:
        raise PopmodelError(
            f"{target.name.removesuffix(SUFFIX)}: the command ran {len(found)} programs",
            "a study takes a command that runs one: trace them by hand, then popmodel signature "
            "from",
        )
    (run,) = found
    facts = facts_of(run)
    return Traced(
        run.duration * 1e-9 if seconds is None else seconds, facts, (*files_of(target), *others)
    )


def facts_of(run: Merged) -> dict[str, object]:
    """Return what later steps need to know of a run."""
    return {
        "processes": run.processes,
        "threads": max(run.threads),
        "has_openmp": bool(run.openmp),
        "has_mpi": bool(run.library),
        "messages": run.messages,
    }


def files_of(target: Path) -> tuple[Path, ...]:
    """The files of a trace."""
    stem = raw_directory.stem(target)
    return tuple(target.with_name(f"{stem}{suffix}") for suffix in (SUFFIX, ".pcf", ".row"))


def _failed(
    run: Run, command: Command, words: Sequence[str], log: Path, error: LaunchError
) -> PopmodelError:
    if error.is_hang:
        return PopmodelError(
            f"run {run.split}: {error.message}",
            "allow more time with --budget 30min, or make the problem smaller with --set",
        )
    return RunFailed(
        f"run {run.split} failed: {_said(log, command.program) or error.message}",
        f"its output is in {log}; without popmodel: {shell.join(words)}; to make other runs, "
        "name them with --runs",
    )


def _said(log: Path, program: Path | None) -> str:
    """Last line that a program wrote; launchers tell of its end between rules.

    What it says in its own name counts wherever it is: on a busy machine that is among the words
    of the launcher.
    """
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    own = () if program is None else re.findall(rf"^{re.escape(program.name)}: .+$", text, re.M)
    return quote(own or meaningful(_BETWEEN_RULES.sub("", text)))
