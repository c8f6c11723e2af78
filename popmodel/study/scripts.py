"""The runs of a study as a job of a batch system, and what became of them.

Each run has a script of its own (`popmodel.tracer.run`); the job calls one after the other, and
the benchmarks of the machine where these are wanted. It needs no Python on the compute nodes, and
what has ended well is not done again when the job is submitted a second time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from popmodel import files, shell
from popmodel.bench import job_script, measurement, run_directory
from popmodel.bench.measurement import MeasurementRequest as Benchmarks
from popmodel.errors import PopmodelError
from popmodel.host import hardware
from popmodel.machine.parameter import PARTS
from popmodel.study.executor import (
    RunFailed,
    Tell,
    log_of,
    merged,
    noted,
    require_some,
    said,
    step_of,
    tell_of_loss,
    trace_of,
    words_of,
)
from popmodel.study.machine import PROFILE
from popmodel.study.manifest import Manifest, is_done, unwritable
from popmodel.study.plan import PlannedRun, in_turn
from popmodel.study.request import Prepared
from popmodel.tracer import raw_directory
from popmodel.tracer import run as script
from popmodel.tracer.commands import understand
from popmodel.tracer.library import Library

JOB = "job.sh"
_SPARE_MINUTES = 10
_BENCH_MINUTES = 5

_HEAD = """\
#!/bin/bash
# Makes the runs of a study of {program} with popmodel.
#
#   submit   {submit}
#   then     the popmodel study command that wrote this, again
#
# Add what your site requires (account, partition) to sbatch or as #SBATCH lines, and load the
# modules that the program needs below. A job that was ended goes on when it is submitted again.
#
#SBATCH --job-name={name}
#SBATCH --nodes=1
#SBATCH --ntasks={cores}
#SBATCH --cpus-per-task=1
#SBATCH --exclusive
#SBATCH --time={minutes}

cd {folder} || exit 1
failed=0

# run NAME THREADS
run() {{
    [ "$(cat "runs/$1.status" 2>/dev/null)" = 0 ] && return
    echo "$(date +%T) run $1"
    OMP_NUM_THREADS=$2 bash "runs/$1.trace/job.sh" >"runs/$1.log" 2>&1
    local status=$?
    echo $status >"runs/$1.status"
    if [ $status -ne 0 ]; then
        failed=1
        echo "run $1 failed: $(tail -n 1 "runs/$1.log")" >&2
    fi
}}

"""
_BENCH = """
echo "$(date +%T) measuring this machine"
(cd {samples} && SLURM_SUBMIT_DIR=$PWD bash {script}) || failed=1
"""
_TAIL = """
exit $failed
"""


def is_there(folder: Path) -> bool:
    """Whether the runs of a study are made by a job."""
    return (folder / JOB).exists()


def submit(folder: Path) -> str:
    """The command that submits the job."""
    return shell.join(["sbatch", str(folder / JOB)])


def write(folder: Path, about: Prepared, library: Library, budget: float, *, measure: bool) -> Path:
    """Write the job, and what it needs."""
    lines = []
    try:
        (folder / "runs").mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    for run in in_turn(about.runs):
        command = understand(words_of(about.words, run, about.command), os.environ)
        job = script.TracedJob(command, nodes=1, ranks=run.processes, threads=run.threads)
        made_for = None if library.mpi is None else library.mpi.name
        script.write(job, library.path, trace_of(folder, run), mpi=made_for, force=True)
        lines.append(f"run {shell.quote(run.name)} {run.threads}\n")
    minutes = math.ceil(budget / 60) + _SPARE_MINUTES + (_BENCH_MINUTES if measure else 0)
    path = folder / JOB
    text = _HEAD.format(
        program=shell.visible(about.name),
        submit=submit(folder),
        name=shell.quote(f"study-{about.name}"),
        cores=about.cores,
        minutes=minutes,
        folder=shell.quote(shell.plain(str(folder.absolute()), "the path of the study")),
    )
    bench = _benchmarks(folder, about.cores) if measure else ""
    try:
        files.write_text(path, "".join([text, *lines, bench, _TAIL]), files.PROGRAM)
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def _benchmarks(folder: Path, cores: int) -> str:
    """Write the benchmarks of a node, and give the lines of the job that run them."""
    request = Benchmarks("quick", PARTS, ranks=cores, launcher="srun")
    machine = hardware.here()
    made = measurement.make_plan(request, machine)
    using = measurement.tools(Benchmarks("quick", PARTS), max(machine.usable_cores, 2))
    samples = run_directory.beside(folder / PROFILE)
    with run_directory.held(samples):
        run = measurement.open_run(samples, made, using.identity, force=True, keep=False)
        path = job_script.write(run, using.programs, output=str(folder / PROFILE))
    return _BENCH.format(samples=shell.quote(samples.name), script=shell.quote(path.name))


def collected(state: Manifest, about: Prepared, tell: Tell) -> Manifest:
    """Merge what the job recorded; runs that failed are noted and left out."""
    missing = []
    for run in in_turn(about.runs):
        status = _status(state.folder, run)
        if is_done(state, step_of(run)):
            continue
        if status is None:
            missing.append(run.name)
            continue
        tell_of_loss(state, run, tell)
        state = noted(state, about, run, partial(_merged, state.folder, about, run, status))
    if missing:
        raise PopmodelError(
            f"{state.folder}: the job has not made {', '.join(missing)} yet",
            f"wait until it has ended; to submit it: {submit(state.folder)}",
        )
    require_some(state, about.runs, tell)
    return state


def _merged(
    folder: Path, about: Prepared, run: PlannedRun, status: int
) -> tuple[Sequence[Path], Mapping[str, Any]]:
    """Make a trace of what the job recorded last of a run."""
    if status != 0:
        log = log_of(folder, run)
        why = said(log, about.program) or f"exit status {status}"
        raise RunFailed(f"run {run.split} failed in the job: {why}", f"its output is in {log}")
    target = trace_of(folder, run)
    place = target.with_name(f"{run.name}{script.SUFFIX}")
    raws = [path for path in place.glob("raw-*") if raw_directory.files(path)]
    newest = max(raws, key=lambda path: path.stat().st_mtime, default=place)
    return merged(newest, run, target)


def _status(folder: Path, run: PlannedRun) -> int | None:
    """Exit status of a run in the job; None if it has not ended."""
    try:
        return int((folder / "runs" / f"{run.name}.status").read_text())
    except (OSError, ValueError):
        return None
