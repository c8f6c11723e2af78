"""Makes the runs of a study: each traced, its output kept, its records merged, its time taken.

A run is in a session of its own, so that Ctrl-C and a run that hangs leave nothing behind. What a
program refuses, and what the budget does not allow, is noted, and the study goes on without.

A job of a batch system may make the runs instead: each has a script of its own
(`popmodel.tracer.run`); the job calls one after the other, and the benchmarks of the machine where
these are wanted. It needs no Python on the compute nodes, and what has ended well is not done again
when the job is submitted a second time.
"""

from __future__ import annotations

import math
import os
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from popmodel.base import files, shell
from popmodel.base.errors import PopmodelError
from popmodel.base.shell import filled
from popmodel.base.units import format_time, plural
from popmodel.machines.bench import bench_plan, run_directory, suite
from popmodel.machines.bench.bench_plan import MeasurementRequest as Benchmarks
from popmodel.machines.host import hardware
from popmodel.machines.host.launcher import LaunchError, meaningful, quote, start
from popmodel.machines.register import PARTS
from popmodel.studies.manifest import (
    DONE,
    FAILED,
    Manifest,
    StudyStep,
    carried_out,
    is_done,
    unwritable,
)
from popmodel.studies.plan import (
    LEAST,
    MOST_REPEATS,
    THREADS,
    PlannedRun,
    Prepared,
    expected,
    in_turn,
    next_configuration,
    uses,
)
from popmodel.studies.study_machine import PROFILE
from popmodel.tracer import raw_directory
from popmodel.tracer import run as script
from popmodel.tracer.commands import Settings, TracedCommand, place, understand, variables
from popmodel.tracer.conversion import merge_runs
from popmodel.tracer.library import Library
from popmodel.tracer.symbol_table import SourceLines
from popmodel.traces import read
from popmodel.traces.caveats import waiting
from popmodel.traces.selection import focused

Tell = Callable[[str], None]
"""Told what happens, a line each."""

DISTURBED = 0.1
"""Share of the time that threads were ready to run and waited for CPUs, above which a run is no
measure of the program."""
SUFFIX = ".prv.gz"
_BINDING = ("--bind-to", "-bind-to", "--map-by", "-map-by", "--rankfile", "-rf", "--cpus-per-proc")
"""Options of Open MPI by which a user says where ranks and their threads are."""
_BETWEEN_RULES = re.compile(r"^([-=])\1{19,}\s*$.*?(^\1{20,}\s*$|\Z)", re.MULTILINE | re.DOTALL)


class RunFailed(PopmodelError):
    """A run ended with an error of its own: others may not."""


def step_of(run: PlannedRun) -> str:
    """Name of the step that makes a run."""
    return f"run {run.name}"


def trace_of(folder: Path, run: PlannedRun) -> Path:
    """The trace of a run in the directory of a study."""
    return folder / "runs" / f"{run.name}{SUFFIX}"


def log_of(folder: Path, run: PlannedRun) -> Path:
    """What the program of a run wrote."""
    return folder / "runs" / f"{run.name}.log"


def done_runs(manifest: Manifest, planned: Sequence[PlannedRun]) -> dict[PlannedRun, StudyStep]:
    """Return the runs that are there, with what was noted of them, by configuration."""
    return {
        run: step for run, step in _made_once(manifest, planned) if is_done(manifest, step.name)
    }


def _made_once(
    manifest: Manifest, planned: Sequence[PlannedRun]
) -> list[tuple[PlannedRun, StudyStep]]:
    """The runs that were made, be their files there or not."""
    most = max([MOST_REPEATS, *(run.repeat for run in planned)])
    runs = (
        replace(run, repeat=repeat)
        for run in dict.fromkeys(run.configuration for run in planned)
        for repeat in range(1, most + 1)
    )
    steps = ((run, manifest.steps.get(step_of(run))) for run in runs)
    return [(run, step) for run, step in steps if step is not None and step.state == DONE]


def failure(manifest: Manifest, run: PlannedRun) -> str | None:
    """Return why a run failed; None if it did not."""
    step = manifest.steps.get(step_of(run))
    return step.error if step is not None and step.state == FAILED else None


def by_configuration(runs: Mapping[PlannedRun, StudyStep]) -> dict[PlannedRun, list[StudyStep]]:
    """Return what was noted of the repeats of each configuration."""
    found: dict[PlannedRun, list[StudyStep]] = {}
    for run, step in runs.items():
        found.setdefault(run.configuration, []).append(step)
    return found


def without_threads(words: Sequence[str], done: Mapping[PlannedRun, StudyStep]) -> str | None:
    """Return why several threads are no use for a program, as far as its runs tell; else None."""
    if uses(words, THREADS):
        return None
    if not all(step.facts["has_openmp"] for step in done.values()):
        return "no OpenMP in the program"
    for run, step in done.items():
        if run.threads > 1 and step.facts["used_threads"] == 1:
            return f"no parallel region in a run with OMP_NUM_THREADS={run.threads}"
    return None


def suited(
    words: Sequence[str], done: Mapping[PlannedRun, StudyStep]
) -> dict[PlannedRun, StudyStep]:
    """Return the runs that make sense for a program: of one thread where more are no use."""
    single = without_threads(words, done) is not None
    return {run: step for run, step in done.items() if run.threads == 1 or not single}


def tried(
    manifest: Manifest, planned: Sequence[PlannedRun], cores: int
) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Return P, T and parameters of the configurations that the program made, and refused.

    Runs on more cores than there are may have failed for want of them.
    """

    def of(runs: Iterable[PlannedRun]) -> list[dict[str, float]]:
        return [dict(run.values) for run in dict.fromkeys(run.configuration for run in runs)]

    failed = (run for run in planned if run.cores <= cores and failure(manifest, run) is not None)
    return of(done_runs(manifest, planned)), of(failed)


def own_time(step: StudyStep) -> float:
    """How long a run would have taken if its threads had not waited for CPUs, about, s."""
    return float(step.facts["runtime"] * (1 - step.facts["waited"]))


def undisturbed(runs: Mapping[PlannedRun, StudyStep]) -> dict[PlannedRun, StudyStep]:
    """Return the repeats that had their CPUs; all of a configuration of which none had."""
    quiet = {run for run, step in runs.items() if step.facts["waited"] <= DISTURBED}
    known = {run.configuration for run in quiet}
    return {
        run: step for run, step in runs.items() if run in quiet or run.configuration not in known
    }


def make(
    manifest: Manifest,
    about: Prepared,
    library: Callable[[], Library],
    budget: float,
    tell: Tell,
    look: Callable[[Manifest], Manifest],
) -> Manifest:
    """Make what is missing of the runs, in turn, until the budget is used or their times stand.

    Those whose files were lost come first, and are made again whatever the budget. Before the first
    run the load of the machine is noted, by ``look``.
    """
    done = done_runs(manifest, about.runs)
    lost = [run for run, _ in _made_once(manifest, about.runs) if run not in done]
    ended: set[PlannedRun] = set()
    is_told, has_looked = bool(done), False
    while True:
        if without_threads(about.words, done) is not None:
            ended |= {run.configuration for run in about.runs if run.threads > 1}
        repeats = by_configuration(done)
        counts = {run: len(steps) for run, steps in repeats.items()}
        runtimes = {
            run: [own_time(step) for step in steps]
            for run, steps in by_configuration(undisturbed(done)).items()
        }
        again = [run for run in lost if run not in done and run.configuration not in ended]
        configuration = (
            again[0].configuration
            if again
            else next_configuration(about.runs, runtimes, counts, ended)
        )
        if configuration is None:
            break
        timed = {
            run: statistics.fmean(step.facts["seconds"] for step in steps)
            for run, steps in repeats.items()
        }
        likely = expected(configuration, timed)
        spent = sum(step.facts["seconds"] for step in done.values())
        if not again and likely is not None and len(timed) >= LEAST and spent + likely > budget:
            ended.add(configuration)
            if configuration not in counts:
                tell(
                    f"run {configuration.name} is left out: about {_time(likely)} more would "
                    f"exceed the budget of {_time(budget)}"
                )
            continue
        if timed and not is_told:
            is_told = True
            tell(_outlook(about.runs, ended, timed))
        numbers = (replace(configuration, repeat=number) for number in range(1, len(done) + 2))
        run = next(number for number in numbers if number not in done)
        if not has_looked:
            has_looked = True
            manifest = look(manifest)
        manifest = _made(manifest, about, run, library(), budget, tell)
        if failure(manifest, run) is not None:
            ended.add(configuration)
            continue
        step = manifest.steps[step_of(run)]
        done = {**done, run: step}
        if not step.facts["has_mpi"]:
            raise PopmodelError(
                f"run {run.split}: no call of MPI was recorded",
                "a study needs an MPI program that is linked dynamically; see popmodel trace",
            )
    require_some(manifest, about.runs, tell)
    return manifest


def require_some(manifest: Manifest, planned: Sequence[PlannedRun], tell: Tell) -> None:
    """Go on without the runs that failed, or stop with the first of them if there is no other."""
    failed = [run for run in in_turn(planned) if failure(manifest, run) is not None]
    if failed and not done_runs(manifest, planned):
        log = log_of(manifest.folder, failed[0])
        raise RunFailed(
            failure(manifest, failed[0]) or "",
            f"its output is in {log}; to make other runs, name them with --runs",
        )
    if failed:
        names = ", ".join(run.name for run in failed)
        tell(f"warning: {plural(len(failed), 'run')} failed ({names}): the study goes on without")


def _outlook(
    planned: Sequence[PlannedRun], ended: set[PlannedRun], timed: Mapping[PlannedRun, float]
) -> str:
    """What the other runs are and how long they will take, from the first one."""
    known = {*timed, *ended}
    left = [run for run in dict.fromkeys(r.configuration for r in planned) if run not in known]
    times = [expected(run, timed) or 0.0 for run in left]
    sizes = {run.settings for run in left} - {run.settings for run in timed}
    about = "at least" if sizes else "at most about"
    return (
        f"it took {_time(next(iter(timed.values())))}; {plural(len(left), 'other')}, {about} "
        f"{_time(sum(times))}, then all again: {', '.join(run.name for run in left)}"
    )


def tell_of_loss(manifest: Manifest, run: PlannedRun, tell: Tell) -> None:
    """Tell that a run was done and its files are no longer what it left."""
    step = manifest.steps.get(step_of(run))
    if step is not None and step.state == DONE:
        tell(f"run {run.name}: its files were changed or lost: it is made again")


def _time(seconds: float) -> str:
    return format_time(seconds, digits=2, trim=True)


# -- one run


def _made(
    manifest: Manifest, about: Prepared, run: PlannedRun, library: Library, limit: float, tell: Tell
) -> Manifest:
    own = words_of(about.words, run, about.command)

    def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
        try:
            return traced(manifest.folder, own, run, library, limit)
        except RunFailed as error:
            tell(f"{error.message}; {error.hint}")
            raise

    tell_of_loss(manifest, run, tell)
    tell(f"run {run.name}" + (f": {shell.join(own)}" if run.repeat == 1 else ""))
    manifest = noted(manifest, about, run, work)
    waited = manifest.steps[step_of(run)].facts.get("waited", 0.0)
    if waited > DISTURBED and run.repeat == 1:
        tell(f"run {run.name}: its threads waited for CPUs {100 * waited:.0f} % of the time")
    return manifest


def noted(
    manifest: Manifest,
    about: Prepared,
    run: PlannedRun,
    work: Callable[[], tuple[Sequence[Path], Mapping[str, Any]]],
) -> Manifest:
    """Make a run a step of the study, whether it fails or not."""
    does = command_of(manifest.folder, about, run)
    return carried_out(manifest, step_of(run), does, work, may_fail=(RunFailed,))


def words_of(words: Sequence[str], run: PlannedRun, command: TracedCommand) -> tuple[str, ...]:
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


def command_of(folder: Path, about: Prepared, run: PlannedRun) -> str:
    """Return the command that traces a run by itself."""
    words = words_of(about.words, run, about.command)
    call = ["popmodel", "trace", "-o", str(trace_of(folder, run)), "--force", "--", *words]
    return f"OMP_NUM_THREADS={run.threads} {shell.join(call)}"


def traced(
    folder: Path, words: Sequence[str], run: PlannedRun, library: Library, limit: float
) -> tuple[tuple[Path, ...], dict[str, Any]]:
    """Run a program traced; give the files that it left, and what later steps need to know."""
    target = trace_of(folder, run)
    log = log_of(folder, run)
    raw = raw_directory.of_output(target)
    try:
        target.parent.mkdir(exist_ok=True)
        log.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(target.parent, error) from error
    raw_directory.create(raw, force=True)
    command = understand(words)
    own = {"OMP_NUM_THREADS": str(run.threads)}  # of launchers that hand on their environment
    call = place(command, {**variables(library.path, raw, Settings()), **own}, os.environ)
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
            return merged(raw, run, target, seconds)
    except LaunchError as error:
        raise _failed(run, command, words, log, error) from error
    finally:
        raw_directory.clear(raw)


def merged(
    raw: Path, run: PlannedRun, target: Path, seconds: float | None = None
) -> tuple[tuple[Path, ...], dict[str, Any]]:
    """Make a trace of the records of a run; results as of `traced`."""
    if not raw_directory.files(raw):
        raise PopmodelError(
            f"{run.name}: nothing was recorded: no process called MPI_Init "
            "or entered a parallel region with the tracer loaded",
            "the program must link shared libraries of MPI or OpenMP (see ldd); popmodel trace "
            "with the same command says more",
        )
    found = merge_runs(raw, target, locate=SourceLines())
    if len(found) > 1:
        raise PopmodelError(
            f"{run.name}: the command ran {len(found)} programs",
            "a study takes a command that runs one: trace them by hand, then popmodel signature "
            "from",
        )
    (whole,) = found
    part = focused(read(target))[0]
    facts = {
        **run.to_dict(),
        "seconds": round(whole.duration * 1e-9 if seconds is None else seconds, 6),
        "runtime": (part.end - part.begin) / 1e9,  # as metrics has it
        "waited": waiting(part),
        "used_threads": max(whole.threads),
        "has_openmp": bool(whole.openmp),
        "has_mpi": bool(whole.library),
    }
    stem = raw_directory.stem(target)
    files = tuple(target.with_name(f"{stem}{suffix}") for suffix in (SUFFIX, ".pcf", ".row"))
    return (*files, log_of(target.parents[1], run)), facts


def _failed(
    run: PlannedRun, command: TracedCommand, words: Sequence[str], log: Path, error: LaunchError
) -> RunFailed:
    if error.is_hang:
        return RunFailed(
            f"run {run.split}: {error.message}",
            "allow more time with --budget 30min, or make the problem smaller with --set",
        )
    return RunFailed(
        f"run {run.split} failed: {said(log, command.program) or error.message}",
        f"its output is in {log}; without popmodel: {shell.join(words)}; to make other runs, "
        "name them with --runs",
    )


def said(log: Path, program: Path | None) -> str:
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


# The runs as a job of a batch system, and what became of them.


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


def has_job(folder: Path) -> bool:
    """Whether the runs of a study are made by a job."""
    return (folder / JOB).exists()


def submit_command(folder: Path) -> str:
    """The command that submits the job."""
    return shell.join(["sbatch", str(folder / JOB)])


def write_job(
    folder: Path, about: Prepared, library: Library, budget: float, *, measure: bool
) -> Path:
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
        submit=submit_command(folder),
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
    made = bench_plan.make_plan(request, machine)
    using = bench_plan.tools(Benchmarks("quick", PARTS), max(machine.usable_cores, 2))
    samples = run_directory.beside(folder / PROFILE)
    with run_directory.held(samples):
        run = run_directory.open_run(samples, made, using.identity, force=True, keep=False)
        path = suite.write_script(run, using.programs, output=str(folder / PROFILE))
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
        state = noted(state, about, run, partial(_merged_of_job, state.folder, about, run, status))
    if missing:
        raise PopmodelError(
            f"{state.folder}: the job has not made {', '.join(missing)} yet",
            f"wait until it has ended; to submit it: {submit_command(state.folder)}",
        )
    require_some(state, about.runs, tell)
    return state


def _merged_of_job(
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
