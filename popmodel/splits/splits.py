"""The splits of some cores into processes and threads: which are possible, what each takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from popmodel.efficiency.hierarchy import load_families
from popmodel.errors import UsageError
from popmodel.expressions import ExpressionError
from popmodel.machine.profile import MissingQuantity
from popmodel.model.evaluation import Outcome
from popmodel.model.run import grid
from popmodel.model.run.nearest import on_nodes
from popmodel.model.run.placement import Placement
from popmodel.model.study import Study
from popmodel.model.uncertainty import Draws, nominal
from popmodel.prediction.prediction import MAIN_FAMILY
from popmodel.prediction.validity import assess
from popmodel.splits.candidate import Breakdown, Evaluated
from popmodel.units import format_size
from popmodel.values import dataclass

MOST_CORES = 10**9
"""More than any machine has; the divisors of such a number are found at once."""

UNKNOWN_MEMORY = "the signature does not give the memory of a process"
NEEDS = "needs"  # what begins the reason of a split that takes more memory than is allowed

_REACH = 1000  # how far to look for the nearest number of cores


@dataclass(frozen=True)
class Refused:
    """A split that is not possible."""

    # The split.
    processes: int
    threads: int
    why: str  # What stands against it


@dataclass(frozen=True)
class Impossible:
    """A number of cores of which no split is possible."""

    cores: int  # The number
    why: str  # What stands against it
    hint: str | None  # What is possible


def evaluate_all(
    study: Study,
    drawn: Draws,
    cores: int,
    max_memory: float | None = None,
    step: Callable[[], None] | None = None,
    *,
    replayed: bool = True,
) -> tuple[list[Evaluated], list[Refused]]:
    """Evaluate every split of some cores."""
    found: list[Evaluated] = []
    refused: list[Refused] = []
    for threads in divisors(cores):
        split = cores // threads, threads
        try:
            found.append(evaluate(study, drawn, *split, max_memory, replayed=replayed))
        except UsageError as error:
            refused.append(Refused(*split, _short(error.message)))
        if step is not None:
            step()
    return found, refused


def evaluate(
    study: Study,
    drawn: Draws,
    processes: int,
    threads: int,
    max_memory: float | None = None,
    *,
    replayed: bool = True,
) -> Evaluated:
    """Evaluate one split as predictions show it: replayed where that is possible.

    Its numbers depend on the split alone, never on the others it is compared with: a sweep and a
    prediction agree.
    """
    placement = _admit(study, processes, threads, max_memory)
    if replayed:
        outcome = study.outcome(placement, drawn)
    else:
        outcome = Outcome(study.run(placement, drawn), None, None)
    run, agreement = outcome.run, outcome.agreement
    metrics = load_families()[MAIN_FAMILY].evaluate_samples(
        run.modelled.aggregates, run.modelled.absent
    )
    return Evaluated(
        placement,
        run.extent,
        run.memory,
        run.modelled.runtime,
        metrics.values["parallel_efficiency"],
        assess(study.profile, placement, run.machine.used, study.beyond(placement)),
        None if agreement is None else agreement.gap,
        outcome.why_not,
        run.form.scores,
        Breakdown(
            {part: nominal(value) for part, value in run.modelled.time.items()},
            {metric: nominal(value) for metric, value in metrics.values.items()},
        ),
        tuple(study.assumptions(placement, run)),
    )


def divisors(number: int) -> list[int]:
    """Return the divisors of a number of cores, rising."""
    if number > MOST_CORES:
        raise UsageError(
            f"{number} cores are more than any machine has", f"ask for at most {MOST_CORES}"
        )
    return grid.divisors(number)


def _admit(study: Study, processes: int, threads: int, max_memory: float | None) -> Placement:
    """Place a split that machine, application and the limit of memory allow."""
    placement = study.admit(processes, threads)
    if max_memory is not None:
        memory = study.memory(placement)
        if memory is None:
            raise UsageError(UNKNOWN_MEMORY)
        if memory > max_memory:
            sizes = (format_size(one, digits=3) for one in (memory, max_memory))
            raise UsageError(f"{NEEDS} {' per process, more than '.join(sizes)}")
    return placement


def _short(message: str) -> str:
    """The reason alone, without the split that it is about."""
    return message.partition(" is not possible: ")[2] or message


def impossible(
    study: Study, count: int, refused: Sequence[Refused], max_memory: float | None = None
) -> Impossible:
    """Say why no split of some cores is possible, and name the nearest cores that have one."""
    near = [str(n) for n in nearest_possible(study, count, max_memory)]
    limited = [one for one in refused if one.why == UNKNOWN_MEMORY or one.why.startswith(NEEDS)]
    if limited:
        one = limited[0]
        return Impossible(
            count,
            f"{study.signature.name}: no split of {count} cores fits into --max-memory: "
            f"{one.processes} x {one.threads}: {one.why}",
            "add memory_per_rank to its [limits], or leave --max-memory out"
            if one.why == UNKNOWN_MEMORY
            else f"possible: {' or '.join(near)} cores for {study.signature.name}"
            if near
            else "allow more memory, or ask for more cores",
        )
    choices = [f"{' or '.join(near)} cores for {study.signature.name}"] if near else []
    if (nodes := enough_nodes(study, count)) is not None:
        choices.append(on_nodes(nodes, study.profile.topology))
    return Impossible(
        count,
        f"{study.signature.name}: no split of {count} cores is possible: {refused[0].why}",
        f"possible: {', or '.join(choices)}" if choices else None,
    )


def enough_nodes(study: Study, count: int) -> int | None:
    """Return the nodes that the cores fill if there are fewer, and a split is possible there."""
    nodes, cores = study.allocation.available(study.profile.topology)
    full = math.ceil(count / cores)
    allocation = replace(study.allocation, nodes=full)
    if full > nodes and any(study.is_possible(count // t, t, allocation) for t in divisors(count)):
        return full
    return None


def is_possible(study: Study, cores: int, max_memory: float | None = None) -> bool:
    """Tell whether some split of the cores fits machine and application."""

    def fits(processes: int, threads: int) -> bool:
        try:
            _admit(study, processes, threads, max_memory)
        except (UsageError, ExpressionError, MissingQuantity):
            return False
        return True

    return any(fits(cores // threads, threads) for threads in divisors(cores))


def nearest_possible(study: Study, count: int, max_memory: float | None = None) -> list[int]:
    """Return the nearest numbers of cores below and above of which some split is possible."""
    top = math.prod(study.allocation.available(study.profile.topology))
    start = min(count - 1, top)
    below = range(start, max(start - _REACH, 0), -1)
    above = range(count + 1, min(count + _REACH, top) + 1)
    found = (
        next((n for n in side if is_possible(study, n, max_memory)), None)
        for side in (below, above)
    )
    return [n for n in found if n is not None]
