"""The runs of a study, one after the other, within their budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from popmodel import shell
from popmodel.errors import PopmodelError
from popmodel.study import command as commands
from popmodel.study.manifest import DONE, FAILED, Manifest, Step, carried_out, is_done
from popmodel.study.plan import LEAST, Run, expected
from popmodel.study.traced import RunFailed, command_of, traced, words_of
from popmodel.tracer.commands import Command
from popmodel.tracer.library import Library
from popmodel.units import format_time, plural

Tell = Callable[[str], None]
"""Told what happens, a line each."""


def step_of(run: Run) -> str:
    """Name of the step that makes a run."""
    return f"run {run.name}"


def done_runs(manifest: Manifest, runs: Sequence[Run]) -> dict[Run, Step]:
    """Return the runs that are there, with what was noted of them, in the order of the plan."""
    return {run: manifest.steps[step_of(run)] for run in runs if is_done(manifest, step_of(run))}


def tell_of_loss(manifest: Manifest, run: Run, tell: Tell) -> None:
    """Tell that a run was done and its files are no longer what it left."""
    step = manifest.steps.get(step_of(run))
    if step is not None and step.state == DONE:
        tell(f"run {run.name}: its files were changed or lost: it is made again")


def failure(manifest: Manifest, run: Run) -> str | None:
    """Return why a run failed; None if it did not."""
    step = manifest.steps.get(step_of(run))
    return step.error if step is not None and step.state == FAILED else None


def tried(
    manifest: Manifest, runs: Sequence[Run], cores: int
) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Return P, T and parameters of the runs that the program made, and of those it refused.

    Runs on more cores than there are may have failed for want of them.
    """

    def of(some: Iterable[Run]) -> list[dict[str, float]]:
        return [{"P": one.processes, "T": one.threads, **dict(one.settings)} for one in some]

    failed = (run for run in runs if run.cores <= cores and failure(manifest, run) is not None)
    return of(done_runs(manifest, runs)), of(failed)


def require_enough(
    done: Sequence[Run], failures: Mapping[Run, RunFailed], planned: int, tell: Tell
) -> None:
    """Go on without the runs that failed, or stop with the first of them."""
    if failures and len(done) < LEAST:
        raise next(iter(failures.values()))
    if failures:
        names = ", ".join(run.name for run in failures)
        tell(
            f"warning: {len(failures)} of {plural(planned, 'run')} failed ({names}): the study "
            "goes on without"
        )


def suited(runs: Sequence[Run], words: Sequence[str], facts: Mapping[str, Any]) -> tuple[Run, ...]:
    """Return the runs that make sense for a program, of which one run is known.

    Several threads do for one that uses OpenMP, or that is told their number.
    """
    several = facts["has_openmp"] or commands.uses(words, commands.THREADS)
    return tuple(run for run in runs if several or run.threads == 1)


def make(
    manifest: Manifest,
    words: Sequence[str],
    command: Command,
    runs: Sequence[Run],
    library: Callable[[], Library],
    budget: float,
    tell: Tell,
) -> Manifest:
    """Make what is missing of some runs, as far as the budget allows.

    A program need not take every number of processes: a run that it refuses is noted and left out.
    """
    done = done_runs(manifest, runs)
    is_told = bool(done)
    failures: dict[Run, RunFailed] = {}
    for number, run in enumerate(runs):
        if run in done or (done and run not in suited([run], words, _first(done).facts)):
            continue
        timed = {one: float(step.facts["seconds"]) for one, step in done.items()}
        likely = expected(run, timed)
        if likely is not None and len(done) >= LEAST and sum(timed.values()) + likely > budget:
            tell(
                f"run {run.name} is left out: about {_time(likely)} more would exceed the budget "
                f"of {_time(budget)}"
            )
            continue
        if timed and not is_told:
            is_told = True
            tell(_outlook(suited(runs[number:], words, _first(done).facts), timed))
        tell_of_loss(manifest, run, tell)
        manifest = _made(manifest, words, command, run, library(), budget, tell, failures)
        if run in failures:
            tell(f"{failures[run].message}; {failures[run].hint}")
            continue
        done = {**done, run: manifest.steps[step_of(run)]}
        if not _first(done).facts["has_mpi"]:
            raise PopmodelError(
                f"run {run.split}: no call of MPI was recorded",
                "a study needs an MPI program that is linked dynamically; see popmodel trace",
            )
    require_enough(tuple(done), failures, len(runs), tell)
    return manifest


def _made(
    manifest: Manifest,
    words: Sequence[str],
    command: Command,
    run: Run,
    library: Library,
    limit: float,
    tell: Tell,
    failures: dict[Run, RunFailed],
) -> Manifest:
    own = words_of(words, run, command)

    def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
        try:
            found = traced(manifest.folder, own, run, library, limit)
        except RunFailed as error:
            failures[run] = error
            raise
        return found.files, {**run.to_dict(), "seconds": round(found.seconds, 6), **found.facts}

    tell(f"run {run.name}: {shell.join(own)}")
    does = command_of(manifest.folder, own, run)
    return carried_out(manifest, step_of(run), does, work, may_fail=(RunFailed,))


def _outlook(left: Sequence[Run], timed: Mapping[Run, float]) -> str:
    """What the other runs are and how long they will take, from the first one."""
    times = [expected(run, timed) or 0.0 for run in left]
    sizes = {run.settings for run in left} - {run.settings for run in timed}
    about = "at least" if sizes else "at most about"
    (first,) = timed.values()
    return (
        f"it took {_time(first)}; {plural(len(left), 'more run')}, {about} {_time(sum(times))}: "
        f"{', '.join(run.name for run in left)}"
    )


def _time(seconds: float) -> str:
    return format_time(seconds, digits=2, trim=True)


def _first(done: Mapping[Run, Step]) -> Step:
    return next(iter(done.values()))
