"""How a run goes beyond the work of an average process: who is slowest, and who waits for whom.

A process that is slow in every step lacks load balance; processes that are slow in turns lose time
by serialisation (`popmodel.model.terms.imbalance`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from popmodel.expressions.elementary import Value, is_symbolic, maximum
from popmodel.model.terms import imbalance
from popmodel.model.work import Work

_NOTHING = 1e-12  # of the runtime: what is less cannot be scaled


@dataclass(frozen=True)
class Course:
    """Times of a run, s.

    Attributes
    ----------
    computing : value
        Computation of the process that has the most of it.
    ideal : value
        Runtime on a network that costs nothing.
    runtime : value
        Runtime.
    """

    computing: Value
    ideal: Value
    runtime: Value


def computation(work: Work) -> Value:
    """Give the part of an average process's time that grows with its work, s."""
    return work.serial + work.stretched


def closed_form(
    work: Work, processes: int, spread: Mapping[str, Value], *, has_mpi: bool
) -> Course:
    """Give the course of a run in which all processes wait for the slowest in every step.

    Parameters
    ----------
    work : Work
        What an average process does.
    processes : int
        P.
    spread : mapping of str to value
        ``persistent_cv`` and ``transient_cv`` at this number of processes; those missing are 0.
    has_mpi : bool
        Whether the program communicates at all.
    """
    persistent = spread.get("persistent_cv", 0.0)
    transient = spread.get("transient_cv", 0.0)
    steps = maximum(work.steps, 1.0)
    overall = 1 + imbalance.slowest_overall(persistent, transient, steps, processes)
    # without communication nobody waits before the end
    per_step = (
        1 + imbalance.slowest_per_step(persistent, transient, processes) if has_mpi else overall
    )
    computing = computation(work)
    ideal = computing * per_step + work.overhead + work.waiting
    return Course(computing * overall, ideal, ideal + work.transfer)


def corrected(work: Work, course: Course, replayed: Course) -> Course:
    """Give the course of every draw as a replay of the best estimate says it.

    What the replay finds for the three delays (the slowest process above the average one, waiting,
    transfer) relative to the closed form of the best estimate holds for every draw.

    Parameters
    ----------
    work, course : Work, Course
        In all draws, draw 0 being the best estimate.
    replayed : Course
        Of the best estimate; numbers.
    """
    average = computation(work)
    excess = _like(course.computing - average, replayed.computing - _first(average), course)
    waiting = _like(
        course.ideal - course.computing - work.overhead,
        replayed.ideal - replayed.computing - _first(work.overhead),
        course,
    )
    transfer = _like(course.runtime - course.ideal, replayed.runtime - replayed.ideal, course)
    computing = average + excess
    ideal = computing + work.overhead + waiting
    return Course(computing, ideal, ideal + transfer)


def _like(delay: Value, wanted: float, course: Course) -> Value:
    """Scale a delay so that its best estimate is the wanted one."""
    best = _first(delay)
    if best <= _NOTHING * _first(course.runtime):
        return maximum(delay - best + wanted, 0.0)
    return delay * (wanted / best)


def _first(value: Value) -> float:
    """Give draw 0."""
    if is_symbolic(value):
        raise TypeError("a replay corrects numbers only")
    import numpy as np

    return float(np.ravel(value)[0])
