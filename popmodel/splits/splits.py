"""The splits of some cores into processes and threads: which are possible, what each takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.efficiency.hierarchy import load_families
from popmodel.errors import UsageError
from popmodel.expressions import ExpressionError
from popmodel.expressions.elementary import Value, numbers
from popmodel.machine.profile import MissingQuantity
from popmodel.model.evaluation import EvaluationOutcome
from popmodel.model.replayed.agreement import CLOSED_FORM, REPLAY
from popmodel.model.run import grid
from popmodel.model.run.nearest import on_nodes
from popmodel.model.run.placement import Placement
from popmodel.model.study import Study
from popmodel.model.uncertainty import FIRST, Draws, Estimate, drawn_only, estimate, nominal
from popmodel.plain import fields_of
from popmodel.prediction.prediction import MAIN_FAMILY, Validity, validity_of
from popmodel.units import format_size
from popmodel.values import dataclass

# The splits of one number of cores, compared draw by draw.
#
# Every split is judged in the same draws of the uncertain inputs, so that what is common to all
# (a memory that may be faster than assumed) does not blur which is best. Of the errors of the laws
# a
# part is each split's own (`popmodel.model.form`): two splits whose best estimates differ by less
# may
# be the other way round. A split is judged by its expected loss: how much longer it takes than the
# best of each draw, on average.


Array = NDArray[np.float64]

WITHIN = 0.02
"""Splits at most this part slower than the best are equally good."""


@dataclass(frozen=True)
class SplitBreakdown:
    """Where the time of a split goes, at the best estimate."""

    # Parts of the runtime, s; they add up to it.
    time: Mapping[str, float] = field(default_factory=dict)
    # Efficiencies of `popmodel.efficiency.terms.FAMILY`.
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluated:
    """One split with what the model says of it, before it is compared with others."""

    placement: Placement  # Processes, threads, nodes
    extent: tuple[int, ...]  # Processes along each grid dimension; empty without a grid
    memory: float | None  # Bytes of a process, if the signature tells
    # Runtime, s, and parallel efficiency in every draw; entry 0 is the best estimate.
    runtime: Value
    efficiency: Value
    validity: Validity  # How far the split goes beyond what was measured of the machine
    # Parallel efficiency of the replay less that of the closed form; None without a replay.
    gap: float | None = None
    not_replayed: str | None = None  # Why there is no replay
    # Standard normal scores of the laws, `Form.scores`.
    laws: Mapping[str, Array] = field(default_factory=dict)
    breakdown: SplitBreakdown = field(default_factory=SplitBreakdown)  # Where the time goes
    assumptions: tuple[str, ...] = ()  # What is assumed of the machine, for the profile lacks it

    @property
    def split(self) -> tuple[int, int]:
        """Processes and threads."""
        return self.placement.processes, self.placement.threads

    @property
    def source(self) -> str:
        """What runtime and efficiency come from, `REPLAY` or `CLOSED_FORM`."""
        return CLOSED_FORM if self.gap is None else REPLAY


@dataclass(frozen=True)
class SplitCandidate:
    """One split, compared with the others of the same number of cores."""

    # As in `Evaluated`.
    placement: Placement
    grid: tuple[int, ...]
    # Runtime, s, and parallel efficiency.
    runtime: Estimate
    parallel_efficiency: Estimate
    memory_per_process: float | None
    # Share of the draws in which it is the fastest of its cores, and no more than `WITHIN` slower
    # than the fastest; None if it is not compared.
    probability_best: float | None
    probability_tied: float | None
    regret: float | None  # Expected loss: expected time above the best of each draw, relative
    validity: Validity
    source: str
    breakdown: SplitBreakdown
    # Runtime in every draw, s; entry 0 is the best estimate.
    draws: Array = field(repr=False, compare=False)
    laws: Mapping[str, Array] = field(repr=False, compare=False)  # As in `Evaluated`
    assumptions: tuple[str, ...] = ()

    @property
    def split(self) -> tuple[int, int]:
        """Processes and threads."""
        return self.placement.processes, self.placement.threads

    def to_dict(self) -> dict[str, Any]:
        """Return the candidate as JSON types."""
        return {
            "processes": self.placement.processes,
            "threads": self.placement.threads,
            "cores": self.placement.cores,
            "nodes": self.placement.nodes,
            "processes_per_node": self.placement.per_node,
            **fields_of(self, without=("placement", "draws", "laws", "assumptions")),
        }


def judge(found: Sequence[Evaluated], surest: float = 1.0) -> list[SplitCandidate]:
    """Compare the splits of one number of cores draw by draw; none is surer to be best.

    Replays and closed forms are not compared with each other: for waves that follow each other the
    closed form may be many times longer. Where some splits are replayed, those that are too large
    for it are left out of the comparison; one process, which waits for nobody, never is.
    """
    drawn_times = [numbers(one.runtime) for one in found]
    size = max(one.size for one in drawn_times)
    times = np.array([np.broadcast_to(one, size) for one in drawn_times])
    compared = [index for index, one in enumerate(found) if is_compared(one, found)]
    drawn = compared_draws(times[compared])
    best = drawn.min(axis=0)
    winners = np.bincount(drawn.argmin(axis=0), minlength=len(compared)) / drawn.shape[1]
    winners = winners if len(compared) == 1 else np.minimum(winners, surest)
    tied = (drawn <= best * (1 + WITHIN)).mean(axis=1)
    regret = (drawn / best - 1).mean(axis=1)

    def judged(shares: Array, index: int) -> float | None:
        return float(shares[compared.index(index)]) if index in compared else None

    return [
        SplitCandidate(
            one.placement,
            one.extent,
            estimated(one.runtime, one.validity),
            estimated(one.efficiency, one.validity),
            one.memory,
            judged(winners, index),
            judged(tied, index),
            judged(regret, index),
            one.validity,
            one.source,
            one.breakdown,
            times[index],
            one.laws,
            one.assumptions,
        )
        for index, one in enumerate(found)
    ]


def is_compared(one: Evaluated, found: Sequence[Evaluated]) -> bool:
    """Whether a split is compared with the others of its cores."""
    if one.source == REPLAY or one.placement.processes == 1:
        return True
    return all(other.source == CLOSED_FORM for other in found)


def estimated(value: Value, validity: Validity) -> Estimate:
    """Return an estimate, without interval where the draws say too little about the result."""
    found = estimate(value)
    return found if validity.has_interval else Estimate(found.value, why=validity.text)


def ratio(one: SplitCandidate, other: SplitCandidate, *, less: float = 0) -> Estimate:
    """The runtime of one split over that of another, less a number."""
    beyond = other.validity if one.validity.has_interval else one.validity
    return estimated(one.draws / other.draws - less, beyond)


def compared_draws(times: Array) -> Array:
    """Return the draws by which splits are compared: the best estimate where nothing was drawn."""
    return drawn_only(times) if times.shape[-1] > FIRST else times[..., :1]


# The splits of some cores into processes and threads: which are possible, what each takes.


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
        outcome = EvaluationOutcome(study.run(placement, drawn), None, None)
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
        validity_of(study, placement, run.machine.used),
        None if agreement is None else agreement.gap,
        outcome.why_not,
        run.form.scores,
        SplitBreakdown(
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
