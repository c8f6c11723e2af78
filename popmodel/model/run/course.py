"""How a run goes beyond the work of an average process: who is slowest, and who waits for whom.

A process that is slow in every step lacks load balance; processes that are slow in turns lose time
by serialisation (`popmodel.model.terms.imbalance`).
"""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.expressions.elementary import Value, maximum
from popmodel.model.run.work import Work
from popmodel.model.terms import imbalance
from popmodel.model.uncertainty import nominal
from popmodel.values import dataclass

_NOTHING = 1e-12  # of the time of a process: a delay that is less cannot be scaled


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


@dataclass(frozen=True)
class Delays:
    """By what a run is longer than the work of an average process, s.

    Attributes
    ----------
    unequal : value
        Computation of the process that has the most of it, above that of an average one.
    waiting : value
        Waiting that no network removes.
    transfer : value
        What the network adds.
    """

    unequal: Value
    waiting: Value
    transfer: Value


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


def delays(work: Work, course: Course) -> Delays:
    """Give by what a run is longer than the work of an average process."""
    return Delays(
        course.computing - computation(work),
        course.ideal - course.computing - work.overhead,
        course.runtime - course.ideal,
    )


def corrected(work: Work, course: Course, closed: Delays, replayed: Delays) -> Course:
    """Give the course of an evaluation as a replay of the best estimate says it.

    What the replay finds for each of the delays relative to the closed form holds for every
    evaluation of the same split: for other draws, and for a machine that is changed a little.

    Parameters
    ----------
    work, course : Work, Course
        Of the closed form; numbers or draws.
    closed, replayed : Delays
        Of the best estimate; numbers.
    """
    least = _NOTHING * (nominal(computation(work)) + nominal(work.overhead))
    found = delays(work, course)
    computing = computation(work) + _like(found.unequal, closed.unequal, replayed.unequal, least)
    waiting = _like(found.waiting, closed.waiting, replayed.waiting, least)
    ideal = computing + work.overhead + waiting
    transfer = _like(found.transfer, closed.transfer, replayed.transfer, least)
    return Course(computing, ideal, ideal + transfer)


def _like(delay: Value, closed: float, replayed: float, least: float) -> Value:
    """Change a delay as the replay changes that of the best estimate."""
    if closed <= least:
        return maximum(delay - closed + replayed, 0.0)
    return delay * (replayed / closed)
