"""Measuring a machine: launch after launch of a plan, here or in a job, whatever becomes of one.

What is measured is in the run directory at every moment: an interrupt, a rank that dies or a job
that hangs costs the job it was in. A launch that fails is given up, the others go on, without the
job in which it failed; a program that does not even begin is not tried again.
"""

from __future__ import annotations

import math
import os
import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from popmodel.base import files, shell
from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.bench import run_directory
from popmodel.machines.bench.bench_plan import BenchPlan, PlannedLaunch
from popmodel.machines.bench.jobs import BenchJob
from popmodel.machines.bench.run_directory import Files, StoredMeasurement
from popmodel.machines.host.launcher import LaunchError, start
from popmodel.machines.host.toolchain import Mpi

_PATIENCE = 20.0  # s without a sample, in addition to some budgets, after which a launch hangs
_BUDGETS = 10.0
_FASTEST, _SLOWEST = 0.1, 3.0  # bounds of the time of jobs over what is planned for them
_ROOM = 1 << 20  # bytes: with less free space a failure is one of the disk


class Progress(NamedTuple):
    """How far a measurement is."""

    part: str  # Part of the suite whose job is being done
    # Jobs, over all launches.
    done: int
    all: int
    left: float  # Seconds that are left, from what the jobs took so far


@dataclass(frozen=True)
class Failure:
    """A launch that was given up."""

    launch: int  # Its number
    program: str  # ``node`` or ``mpi``
    job: BenchJob | None  # What it was doing; None if it did not begin
    error: PopmodelError  # What went wrong

    @property
    def where(self) -> str:
        """Launch and job in words."""
        doing = "before its first job" if self.job is None else f"in {self.job.line}"
        return f"launch {self.launch} ({self.program}) failed {doing}"

    @property
    def text(self) -> str:
        """What went wrong, and where."""
        return f"{self.where}: {self.error.message}"


class Starter(Protocol):
    """Runs one launch to its end; raises LaunchError if it fails."""

    def __call__(
        self,
        launch: PlannedLaunch,
        arguments: Sequence[str],
        there: Files,
        patience: float,
        on_progress: Callable[[int], None],
    ) -> None:
        """Start the program of a launch; `on_progress` is told the lines of the samples."""


def starter(programs: Mapping[str, Path], mpi: Mpi | None) -> Starter:
    """Return what starts the built programs on this machine."""

    def begin(
        launch: PlannedLaunch,
        arguments: Sequence[str],
        there: Files,
        patience: float,
        on_progress: Callable[[int], None],
    ) -> None:
        start(
            programs[launch.program],
            arguments,
            log=there.log,
            samples=there.samples,
            mpi=mpi if launch.program == "mpi" else None,
            ranks=launch.ranks,
            threads=launch.threads,
            environment=binding(launch.program, os.environ),
            patience=patience,
            on_progress=on_progress,
        )

    return begin


def binding(program: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that keep the threads of the node program on cores, where the user's do not.

    The threads of ranks go where the launcher puts their rank.
    """
    wanted = {"OMP_PLACES": "cores", "OMP_PROC_BIND": "close"} if program == "node" else {}
    return {name: value for name, value in wanted.items() if name not in environment}


def limits_of(launch: PlannedLaunch, jobs: int) -> list[str]:
    """Arguments of a program, without its files, for a launch of which some jobs are left to do."""
    limits = launch.limits
    words = ["-n", str(launch.number), "--budget", f"{limits.budget:g}"]
    words += [
        "--least",
        str(limits.least),
        "--most",
        str(limits.most),
        "--precision",
        f"{limits.precision:g}",
    ]
    words += ["--limit", f"{launch.limit(jobs):g}"]
    if launch.thread_level is not None:
        words += ["--thread-level", launch.thread_level]
    return words


def measure(
    run: StoredMeasurement, begin: Starter, on_progress: Callable[[Progress], None] = lambda _: None
) -> list[Failure]:
    """Do what is left of a measurement."""
    left = {launch.number: run_directory.missing(run, launch) for launch in run.plan.launches}
    clock = _SuiteClock(run.plan, left, on_progress)
    failures: list[Failure] = []
    given_up: set[BenchJob] = set()
    dead: set[tuple[str, str | None]] = set()
    for launch in run.plan.launches:
        jobs = [job for job in left[launch.number] if job not in given_up]
        clock.drop(launch, len(left[launch.number]) - len(jobs))
        if (launch.program, launch.thread_level) in dead or not jobs:
            clock.drop(launch, len(jobs))
            continue
        there = run_directory.files(run, launch, jobs)
        patience = _PATIENCE + _BUDGETS * launch.limits.budget
        follow = clock.of(launch, jobs)
        words = ["-j", str(there.jobs), "-o", str(there.samples), *limits_of(launch, len(jobs))]
        try:
            begin(launch, words, there, patience, follow)
        except LaunchError as error:
            if shutil.disk_usage(run.folder).free < _ROOM:
                raise  # the next launch would fail as well; what is there can be gone on with
            done, _ = run_directory.done_in(there.samples)
            at = jobs[len(done)] if len(done) < len(jobs) and there.samples.exists() else None
            failures.append(Failure(launch.number, launch.program, at, error))
            if at is None and not done:
                dead.add((launch.program, launch.thread_level))
            elif at is not None:
                given_up.add(at)
        clock.end(launch, jobs)
    return failures


def nothing_measured(failures: Sequence[Failure]) -> PopmodelError:
    """The error for a measurement of which every launch failed."""
    first = failures[0]
    return PopmodelError(f"nothing could be measured: {first.text}", first.error.hint)


class _SuiteClock:
    """Turns numbers of jobs into progress and time left.

    The time of a job is its budget times a pace, which is what jobs took so far over their budgets.
    """

    def __init__(
        self,
        plan: BenchPlan,
        left: Mapping[int, Sequence[BenchJob]],
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._on_progress = on_progress
        self._all = sum(len(launch.jobs) for launch in plan.launches)
        self._done = self._all - sum(len(jobs) for jobs in left.values())
        self._ahead = sum(
            launch.seconds(len(left[launch.number]))
            for launch in plan.launches
            if left[launch.number]
        )
        self._begin = time.monotonic()
        self._planned = 0.0

    def drop(self, launch: PlannedLaunch, jobs: int) -> None:
        """Jobs that will not be done."""
        self._all -= jobs
        self._ahead -= jobs * launch.limits.budget

    def of(self, launch: PlannedLaunch, jobs: Sequence[BenchJob]) -> Callable[[int], None]:
        """Return what a launch tells the lines of its samples, the first of which is the header."""

        def follow(lines: int) -> None:
            done = min(max(lines - 1, 0), len(jobs))
            current = jobs[min(done, len(jobs) - 1)]
            self._tell(launch.part(current), done, launch.seconds(done))

        return follow

    def end(self, launch: PlannedLaunch, jobs: Sequence[BenchJob]) -> None:
        """A launch is over, however many of its jobs it did."""
        seconds = launch.seconds(len(jobs))
        self._done += len(jobs)
        self._planned += seconds
        self._ahead -= seconds
        self._tell(launch.part(jobs[-1]), 0, 0.0)

    def _tell(self, part: str, done: int, planned: float) -> None:
        """Tell the progress with some jobs of the present launch done, planned to take a time."""
        behind = self._planned + planned
        pace = (time.monotonic() - self._begin) / behind if behind else 1.0
        # Early on a slow start says little about the rest.
        left = max(self._ahead - planned, 0.0) * min(max(pace, _FASTEST), _SLOWEST)
        self._on_progress(Progress(part, self._done + done, self._all, left))


# The job script of a batch system, which measures without Python on the compute nodes.
#
# It is written beside the jobs and copies of the programs, so that the directory is all that the
# compute nodes need. It is never submitted from here: account, partition and time are the user's.


SYSTEMS = ("slurm",)
SCRIPT = "job.sh"

_SPARE_MINUTES = 5  # the system starts steps, file systems are slow

_HEAD = """\
#!/bin/bash
# Measures {nodes} of a cluster for popmodel: {mode} mode, about {minutes} min.
#
#   submit    cd {folder} && sbatch {script}
#   collect   popmodel machine measure --samples {folder} -o {output}
#
# Add what your site requires (account, partition) to sbatch or as #SBATCH lines. The script is for
# identical nodes with {cores} cores; for others write it again with --ranks (ranks on all nodes).
# An interrupted job resumes when it is submitted again: finished launches are not repeated.
#
#SBATCH --job-name=popmodel
#SBATCH --nodes={number}
#SBATCH --ntasks-per-node={per_node}
#SBATCH --cpus-per-task=1
#SBATCH --exclusive
#SBATCH --time={time}

cd "${{SLURM_SUBMIT_DIR:-$(dirname "$0")}}" || exit 1
if [ ! -x popmodel-node ]; then
    echo "popmodel-node not found: submit from the directory of the script" >&2
    exit 1
fi
if [ "${{SLURM_CPUS_ON_NODE:-{cores}}}" -lt {cores} ]; then
    echo "the script is for nodes with {cores} cores, this job has $SLURM_CPUS_ON_NODE:" \\
        "write it again with --ranks" >&2
    exit 1
fi

failed=0

# launch NAME NODES RANKS RANKS_PER_NODE CORES_PER_RANK PROGRAM ARGUMENTS...
launch() {{
    local name=$1 nodes=$2 ranks=$3 per_node=$4 cores=$5 program=$6 samples=$1 again=1
    shift 6
    while [ -e "$samples.jsonl" ]; do
        grep -q '^{{"end"' "$samples.jsonl" && return
        again=$((again + 1))
        samples=$name-$again
    done
    echo "$(date +%T) $samples: $program, ranks $ranks, nodes $nodes"
    {launcher} --nodes="$nodes" --ntasks="$ranks" --ntasks-per-node="$per_node" \\
        --cpus-per-task="$cores" --cpu-bind=cores \\
        "./popmodel-$program" -j "$name.jobs" -o "$samples.jsonl" "$@" \\
        >"$samples.log" 2>&1 && return
    failed=1
    echo "$samples failed: $(tail -n 1 "$samples.log")" >&2
}}

"""

_TAIL = """
if [ $failed -ne 0 ]; then
    echo "some launches failed; the samples of the others can be collected" >&2
fi
exit $failed
"""


def write_script(
    run: StoredMeasurement,
    programs: Mapping[str, Path],
    *,
    output: str,
    launcher: str = "srun",
) -> Path:
    """Write the script, the jobs of all launches and copies of the programs."""
    words = shlex.split(launcher)
    if not words or Path(words[0]).name != "srun":
        raise UsageError(
            f"--launcher {launcher}: must be srun for a Slurm script",
            'omit it, or give srun with options: --launcher "srun --mpi=pmix"',
        )
    script = run.folder / SCRIPT
    try:
        for name, program in programs.items():
            files.copy(program, run.folder / f"popmodel-{name}", files.PROGRAM)
        steps = [
            _step(launch, run_directory.files(run, launch, launch.jobs))
            for launch in run.plan.launches
        ]
        text = _head(run, output, shell.join(words)) + "".join(steps) + _TAIL
        files.write_text(script, text, files.PROGRAM)
    except OSError as error:
        raise run_directory.unwritable(run.folder, error) from error
    return script


def _head(run: StoredMeasurement, output: str, launcher: str) -> str:
    plan = run.plan
    minutes = math.ceil(sum(launch.limit() for launch in plan.launches) / 60)
    hours, rest = divmod(minutes + _SPARE_MINUTES, 60)
    per_node = plan.ranks // plan.nodes
    return _HEAD.format(
        nodes="a node" if plan.nodes == 1 else f"{plan.nodes} nodes",
        number=plan.nodes,
        mode=plan.mode,
        minutes=minutes,
        folder=_word(str(run.folder.resolve()), "the path of the directory"),
        script=SCRIPT,
        output=_word(output, "the name of the profile"),
        cores=max(launch.threads for launch in plan.launches),
        per_node=per_node,
        time=f"{hours:02d}:{rest:02d}:00",
        launcher=launcher,
    )


def _word(name: str, what: str) -> str:
    return shell.quote(shell.plain(name, what))


def _step(launch: PlannedLaunch, there: Files) -> str:
    """One launch. Its jobs are written already; the script names the samples."""
    places = (
        "OMP_PLACES=${OMP_PLACES:-cores} OMP_PROC_BIND=${OMP_PROC_BIND:-close} "
        if launch.program == "node"
        else ""
    )
    head = [
        there.jobs.stem,
        launch.nodes,
        launch.ranks,
        launch.ranks // launch.nodes,
        launch.threads,
        launch.program,
    ]
    words = [*map(str, head), *limits_of(launch, len(launch.jobs))]
    return f"{places}launch {shell.join(words)}\n"
