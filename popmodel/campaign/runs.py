"""The runs of a study, one after the other, within their budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from popmodel.campaign import command as commands
from popmodel.campaign.manifest import Manifest, Step, carried_out, is_done
from popmodel.campaign.plan import LEAST, Run, expected
from popmodel.campaign.traced import command_of, traced, words_of
from popmodel.errors import PopmodelError
from popmodel.tracer.commands import Command
from popmodel.tracer.library import Library
from popmodel.units import format_time, plural

__all__ = ["Tell", "done_runs", "make", "step_of", "suited"]

Tell = Callable[[str], None]
"""Told what happens, a line each."""


def step_of(run: Run) -> str:
    """Name of the step that makes a run."""
    return f"run {run.name}"


def done_runs(manifest: Manifest, runs: Sequence[Run]) -> dict[Run, Step]:
    """Return the runs that are there, with what was noted of them, in the order of the plan."""
    return {run: manifest.steps[step_of(run)] for run in runs if is_done(manifest, step_of(run))}


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

    Parameters
    ----------
    manifest : Manifest
        What has been done.
    words : sequence of str
        The command with placeholders.
    command : Command
        What it starts.
    runs : sequence of Run
        In the order of their worth.
    library : callable
        Gives what traces; called if there is a run to be made.
    budget : float
        Seconds for all runs. The first two are made in any case, each within the budget.
    tell : callable
        Told of every run.

    Raises
    ------
    PopmodelError
        A run fails.
    """
    done = done_runs(manifest, runs)
    is_told = bool(done)
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
        manifest = _made(manifest, words, command, run, library(), budget, tell)
        done = {**done, run: manifest.steps[step_of(run)]}
        if not _first(done).facts["has_mpi"]:
            raise PopmodelError(
                f"run {run.split}: no call of MPI was recorded",
                "a study needs an MPI program that is linked dynamically; see popmodel trace",
            )
    return manifest


def _made(
    manifest: Manifest,
    words: Sequence[str],
    command: Command,
    run: Run,
    library: Library,
    limit: float,
    tell: Tell,
) -> Manifest:
    own = words_of(words, run, command)

    def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
        found = traced(manifest.folder, own, run, library, limit)
        return found.files, {**run.to_dict(), "seconds": round(found.seconds, 6), **found.facts}

    tell(f"run {run.name}: {' '.join(own)}")
    return carried_out(manifest, step_of(run), command_of(manifest.folder, own, run), work)


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
