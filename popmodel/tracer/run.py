"""Runs a command to its end and gives its exit status, as if the user had started it.

Standard input, output and error are the user's. Signals that are sent to popmodel are passed on;
those that the terminal sends (Ctrl-C) have reached the command already, and a second one would have
a launcher kill what is about to end by itself.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.base import files, shell
from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.base.values import dataclass
from popmodel.tracer.commands import (
    PRELOAD,
    CommandError,
    Settings,
    TracedCommand,
    place,
    refuse_unloadable,
    variables,
)
from popmodel.tracer.raw_directory import stem
from popmodel.tracer.symbol_table import built_in

if TYPE_CHECKING:
    from popmodel.tracer.library import Library

_PASSED_ON = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGCONT,
    }
)
_OF_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Signals that Python ignores for itself, and programs do not."""
_FROM_THE_KERNEL = 0x80  # SI_KERNEL
_OF_A_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGHUP})
_LOOK = 1.0  # seconds until one looks again: a caller's other threads may have taken the signal


def run(
    path: str, words: Sequence[str], environment: Mapping[str, str], output: int | None = None
) -> int:
    """Run a command to its end; `output` is a descriptor in place of standard output."""
    with _kept() as (before, taken):
        try:
            child = os.posix_spawn(
                path,
                list(words),
                dict(environment),
                setsigmask=before,
                setsigdef=[of for of in _OF_PYTHON if signal.getsignal(of) == signal.SIG_IGN],
                file_actions=[] if output is None else [(os.POSIX_SPAWN_DUP2, output, 1)],
            )
        except OSError as error:
            raise _not_started(path, error) from error
        status = _ended(child, taken)
        # Signals for a command that is gone are none for the work that follows.
        while signal.sigtimedwait(_PASSED_ON, 0) is not None:
            pass
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


@contextmanager
def _kept() -> Iterator[tuple[set[int], list[int]]]:
    """Keep signals until they are asked for.

    Gives those that were kept back before, and a list that gets those that another thread takes:
    they are kept back in this one only, and the threads of NumPy let in all.
    """
    taken: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _: taken.append(number))
        for number in _PASSED_ON
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    # Who started us may have had us ignore it: then no child's end would be told, nor its status.
    handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON | {signal.SIGCHLD})
    try:
        yield {int(number) for number in before}, taken
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _ended(child: int, taken: list[int]) -> int:
    """Wait for the end of a process, passing signals on; its wait status."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            return status
        while taken:  # where it comes from is not known of one that another thread took
            number = taken.pop(0)
            if number not in _OF_A_TERMINAL or not _is_in_foreground():
                os.kill(child, number)
        until = time.monotonic() + _LOOK
        came = signal.sigtimedwait(_PASSED_ON | {signal.SIGCHLD}, _LOOK)
        # Where a stop outlasts the wait, Python gives a signal that never came, and not None.
        continued = signal.SIGCONT in signal.sigpending() or signal.SIGCONT in taken
        if came is None or (continued and time.monotonic() > until):
            continue
        if came.si_signo == signal.SIGCHLD:
            continue
        if came.si_code != _FROM_THE_KERNEL:
            os.kill(child, came.si_signo)


def _is_in_foreground() -> bool:
    """Whether Ctrl-C at a terminal reaches this process, and so the command."""
    try:
        with Path("/dev/tty").open() as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def _not_started(path: str, error: OSError) -> CommandError:
    if error.errno == errno.ENOEXEC:
        return CommandError(
            f"{path}: cannot be executed on this system",
            "a script must begin with its interpreter, such as #!/bin/bash",
        )
    reason = (error.strerror or str(error)).lower()
    return CommandError(f"{path}: cannot be started: {reason}", "check its permissions")


# The job script of a batch system that runs a program traced, without Python on its nodes.
#
# It is written into a directory of its own beside a copy of the library, and every job that it
# makes
# records into a new directory there: two jobs never mix. It is never submitted from here.


SYSTEMS = ("slurm",)
SCRIPT = "job.sh"
SUFFIX = ".trace"

_RAW = "POPMODEL_RAW_DIRECTORY"  # stands for the shell's "$raw" until the words are quoted

_TEXT = """\
#!/bin/bash
# Runs {program} and records a trace with popmodel.
#
#   submit   sbatch {script}
#   then     popmodel trace merge RAW -o {output}
#
# RAW is a directory beside this file, one per job; the end of the job's output names it. Add what
# your site requires (account, partition, time) to sbatch or as #SBATCH lines, and load the modules
# that the program needs below. The tracer beside this file is for {mpi}.
#
#SBATCH --job-name={name}
{sizes}
cd {folder} || exit 1
here={here}
raw=$here/raw-${{SLURM_JOB_ID:-$$}}
mkdir "$raw" || exit 1
{threads}
{command}
status=$?

if [ -n "$(ls -A "$raw")" ]; then
    echo "popmodel: recorded: popmodel trace merge $(printf '%q -o %q' "$raw" {output})" >&2
else
    echo "popmodel: nothing was recorded: is the program linked with shared libraries?" >&2
fi
exit $status
"""


@dataclass(frozen=True)
class TracedJob:
    """What a job runs."""

    command: TracedCommand  # A program, which srun starts, or a launcher with its program
    nodes: int = 1  # Nodes
    # Ranks in all, and threads of each; left to sbatch if None.
    ranks: int | None = None
    threads: int | None = None
    settings: Settings = field(default_factory=Settings)  # What is recorded


def write(
    job: TracedJob, library: Path, output: Path, *, mpi: str | None = None, force: bool = False
) -> Path:
    """Write the script and a copy of the library into a directory beside the trace."""
    folder = (output.parent / f"{stem(output)}{SUFFIX}").absolute()
    refuse_unloadable(folder / library.name, "choose another trace with -o, in another directory")
    path = folder / SCRIPT
    files.refuse_planted(folder, "choose another path with -o")
    if path.exists() and not force:
        raise UsageError(f"{path}: the file exists", "use --force to overwrite it")
    text = _text(job, folder, library.name, output, mpi)
    try:
        folder.mkdir(exist_ok=True)
        files.copy(library, folder / library.name, files.PROGRAM)
        files.write_text(path, text, files.PROGRAM)
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise FileError(folder, problem, hint="choose another path with -o") from error
    return path


def _text(job: TracedJob, folder: Path, library: str, output: Path, mpi: str | None) -> str:
    program = job.command.program
    name = "app" if program is None else program.name
    sizes = {"nodes": job.nodes, "ntasks": job.ranks, "cpus-per-task": job.threads}
    lines = [f"#SBATCH --{option}={n}" for option, n in sizes.items() if n is not None]
    return _TEXT.format(
        program=shell.plain(name, "the name of the program"),
        name=shell.quote(f"trace-{name}"),
        script=_word(str(folder / SCRIPT), "the path of the script"),
        output=_word(str(output.absolute()), "the path of the trace"),
        mpi=shell.visible(mpi or "OpenMP without MPI"),
        sizes="\n".join(lines) + "\n",
        folder=_word(str(Path.cwd()), "the path of this directory"),
        here=_word(str(folder), "the path of the script"),
        threads="export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-1}}",
        command=job_command(job, folder / library),
    )


def job_command(job: TracedJob, library: Path) -> str:
    """The line of a job that starts its program; its files go to the directory "$raw"."""
    command = job.command
    if not command.is_launcher:
        # srun of a job does not take over --cpus-per-task of sbatch by itself since Slurm 22.05.
        flags = [] if job.threads is None else [f"--cpus-per-task={job.threads}"]
        command = TracedCommand(
            ("srun", *flags, *command.words), "srun", 0, True, "srun", command.program
        )
    # The environment of the job is not that of this moment.
    call = place(command, variables(library, Path(_RAW), job.settings), {})
    words = [f"{name}={_quoted(value)}" for name, value in call.environment.items()]
    return " ".join([*words, *map(_quoted, call.words)])


def _quoted(word: str) -> str:
    """A word for the shell, with the raw directory as the variable that it is there."""
    quoted = shell.quote(word)
    before, mark, _ = quoted.partition("'")  # nothing, or the $ of a word with escapes
    return quoted.replace(_RAW, f"'\"$raw\"{before}'" if mark else '"$raw"')


def _word(name: str, what: str) -> str:
    return shell.quote(shell.plain(name, what))


# Why nothing, or no MPI or OpenMP, was recorded.


_SCRIPT = 1 << 16  # bytes of a script that are looked into

_NO_OPENMP = {
    "off": "it was switched off",
    "ompt": "the program does not use it, or its runtime has no tools interface",
    "gomp": "the program does not use it, or its runtime is not libgomp",
}


def not_traced(
    command: TracedCommand, library: Library, settings: Settings, has_openmp: bool
) -> list[str]:
    """Why there is no MPI, or no OpenMP, in what was recorded."""
    notes = []
    if library.without_mpi is not None:
        notes.append(f"MPI is not traced: {library.without_mpi}")
    if not has_openmp:
        if settings.openmp in _NO_OPENMP:
            notes.append(f"no OpenMP: {_NO_OPENMP[settings.openmp]} (--openmp {settings.openmp})")
        if "OpenMP" in _built_in(command):
            notes.append("no OpenMP: the runtime is statically linked")
    return notes


def nothing_recorded(command: TracedCommand, status: int, settings: Settings) -> PopmodelError:
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
        return PopmodelError(
            f"{name}: nothing was recorded: it ended with {ending(command, status)} before a "
            "process called MPI_Init or entered a parallel region with the tracer loaded",
            "run it without popmodel: if it fails as well, the tracer is not the cause",
        )
    if settings.openmp in _NO_OPENMP:
        return PopmodelError(
            f"{name}: nothing was recorded: no process called MPI_Init, and no OpenMP: "
            f"{_NO_OPENMP[settings.openmp]} (--openmp {settings.openmp})",
            "leave --openmp out: popmodel then detects how to observe OpenMP",
        )
    problem = (
        f"{name}: nothing was recorded: no process called MPI_Init or entered a parallel region "
        "with the tracer loaded"
    )
    if without := _without_preload(command.words):
        return PopmodelError(
            problem,
            f"{without} takes {PRELOAD} away, which loads the tracer: leave that out, or keep what "
            f"is in it ({PRELOAD}=...:${PRELOAD})",
        )
    return PopmodelError(
        problem,
        "the program must link shared libraries of MPI or OpenMP (see ldd), and end before the "
        "command does; a script that starts ranks elsewhere must pass on the variables of popmodel "
        "trace --print-env",
    )


def _without_preload(words: Sequence[str]) -> str | None:
    """What of a command changes the variable that loads the tracer: itself, or a script in it."""
    if re.search(rf"\benv (-|-i|--ignore-environment) |{PRELOAD}", " ".join(words)):
        return "the command"
    for word in words:
        try:
            with Path(shutil.which(word) or word).open("rb") as file:
                text = file.read(_SCRIPT)
        except (OSError, ValueError):
            continue  # no file
        if PRELOAD.encode() in text and b"\0" not in text:
            return word
    return None


def _built_in(command: TracedCommand) -> list[str]:
    return [] if command.program is None else built_in(str(command.program))


def ending(command: TracedCommand, status: int) -> str:
    """An exit status in words: shells make 128 + number of signals, launchers have their own."""
    if command.is_launcher or status <= 128:
        return f"status {status}"
    try:
        return f"signal {signal.Signals(status - 128).name}"
    except ValueError:
        return f"status {status}"
