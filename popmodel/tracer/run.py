"""Runs a command to its end and gives its exit status, as if the user had started it.

Standard input, output and error are the user's. Signals that are sent to popmodel are passed on;
those that the terminal sends (Ctrl-C) have reached the command already, and a second one would have
a launcher kill what is about to end by itself.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from popmodel.base import files, shell
from popmodel.base.errors import FileError, UsageError
from popmodel.base.values import dataclass
from popmodel.tracer.commands import (
    CommandError,
    Settings,
    TracedCommand,
    place,
    refuse_unloadable,
    variables,
)
from popmodel.tracer.raw_directory import stem

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
_LOOK = 1.0  # seconds until one looks again: a caller's other threads may have taken the signal


def run(
    path: str, words: Sequence[str], environment: Mapping[str, str], output: int | None = None
) -> int:
    """Run a command to its end; `output` is a descriptor in place of standard output."""
    with _kept() as before:
        try:
            child = os.posix_spawn(
                path,
                list(words),
                dict(environment),
                setsigmask=before,
                setsigdef=[number for number in _OF_PYTHON if _is_pythons(number)],
                file_actions=[] if output is None else [(os.POSIX_SPAWN_DUP2, output, 1)],
            )
        except OSError as error:
            raise _not_started(path, error) from error
        status = _ended(child)
        # Signals for a command that is gone are none for the work that follows.
        while signal.sigtimedwait(_PASSED_ON, 0) is not None:
            pass
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


@contextmanager
def _kept() -> Iterator[set[int]]:
    """Keep signals until they are asked for; gives those that were kept back before."""
    # Who started us may have had us ignore it: then no child's end would be told, nor its status.
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON | {signal.SIGCHLD})
    try:
        yield {int(number) for number in before}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, handler)


def _ended(child: int) -> int:
    """Wait for the end of a process, passing signals on; its wait status."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            return status
        came = signal.sigtimedwait(_PASSED_ON | {signal.SIGCHLD}, _LOOK)
        if came is None or came.si_signo == signal.SIGCHLD:
            continue
        if came.si_code != _FROM_THE_KERNEL:
            os.kill(child, came.si_signo)


def _is_pythons(number: signal.Signals) -> bool:
    return signal.getsignal(number) == signal.SIG_IGN


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
