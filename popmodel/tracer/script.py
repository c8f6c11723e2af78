"""The job script of a batch system that runs a program traced, without Python on its nodes.

It is written into a directory of its own beside a copy of the library, and every job that it makes
records into a new directory there: two jobs never mix. It is never submitted from here.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from popmodel import files, shell
from popmodel.errors import FileError, UsageError
from popmodel.tracer.commands import Command
from popmodel.tracer.environment import Settings, place, refuse_unloadable, variables
from popmodel.tracer.raw_directory import stem
from popmodel.values import dataclass

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
class Job:
    """What a job runs."""

    command: Command  # A program, which srun starts, or a launcher with its program
    nodes: int = 1  # Nodes
    # Ranks in all, and threads of each; left to sbatch if None.
    ranks: int | None = None
    threads: int | None = None
    settings: Settings = field(default_factory=Settings)  # What is recorded


def write(
    job: Job, library: Path, output: Path, *, mpi: str | None = None, force: bool = False
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


def _text(job: Job, folder: Path, library: str, output: Path, mpi: str | None) -> str:
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
        command=_command(job, folder / library),
    )


def _command(job: Job, library: Path) -> str:
    command = job.command
    if not command.is_launcher:
        # srun of a job does not take over --cpus-per-task of sbatch by itself since Slurm 22.05.
        flags = [] if job.threads is None else [f"--cpus-per-task={job.threads}"]
        command = Command(
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
