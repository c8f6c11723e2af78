"""The splits of some cores into processes and threads: which are possible, and which to take.

Every split is judged in the same draws of the uncertain inputs, so that what is common to all (a
memory that may be faster than assumed) does not blur which is best. Of the errors of the laws a
part is each split's own (`popmodel.model.model_error`): two splits whose best estimates differ by
less may be the other way round. A split is judged by its expected loss: how much longer it takes
than the best of each draw, on average.

What a measured run would add is its expected value of information: by how much the loss of the
choice that would then be made is smaller (H. Raiffa, R. Schlaifer, Applied Statistical Decision
Theory, 1961).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import UsageError
from popmodel.base.expressions import ExpressionError
from popmodel.base.expressions.elementary import Value, numbers
from popmodel.base.units import format_size
from popmodel.base.values import NamedTuple, dataclass, fields_of
from popmodel.efficiency.hierarchy import load_families
from popmodel.machines.profile import MissingQuantity, Profile, measuring_first
from popmodel.machines.quantity import Topology
from popmodel.model.model_error import contrast
from popmodel.model.predictor import Study
from popmodel.model.replayed_run import CLOSED_FORM, REPLAY
from popmodel.model.run.feasible_splits import divisors as all_divisors
from popmodel.model.run.feasible_splits import on_nodes
from popmodel.model.run.process_placement import Placement, launch_line, mpirun_line
from popmodel.model.uncertainty import (
    FIRST,
    Draws,
    Estimate,
    drawn_only,
    estimate,
    nominal,
    shares,
)
from popmodel.prediction.prediction import MAIN_FAMILY, Validity, validity_of

Array = NDArray[np.float64]

WITHIN = 0.02
"""Splits at most this part slower than the best are equally good."""
LIKELY = 0.1
"""Probability of being as good as the best from which a split counts as equally good."""
SURE = 0.95
"""Probability of being the best from which nothing more need be measured."""
WORTH = 0.005
"""Expected loss below which nothing more need be measured: no measurement can save more."""
_BINS = 10

MOST_CORES = 10**9
"""More than any machine has; the divisors of such a number are found at once."""
UNKNOWN_MEMORY = "the signature does not give the memory of a process"
NEEDS = "needs"  # what begins the reason of a split that takes more memory than is allowed
_REACH = 1000  # how far to look for the nearest number of cores


@dataclass(frozen=True)
class SplitCandidate:
    """One split: what the model says of it, and how it compares with others of its cores."""

    placement: Placement  # Processes, threads, nodes
    grid: tuple[int, ...]  # Processes along each grid dimension; empty without a grid
    runtime: Estimate  # s
    parallel_efficiency: Estimate
    memory_per_process: float | None  # Bytes, if the signature tells
    validity: Validity  # How far the split goes beyond what was measured of the machine
    time: Mapping[str, float]  # Parts of the runtime at the best estimate, s
    metrics: Mapping[str, float]  # Efficiencies of `MAIN_FAMILY` at the best estimate
    # Runtime in every draw, s; entry 0 is the best estimate.
    draws: Array = field(repr=False, compare=False)
    # Standard normal scores of the laws, `ModelForm.scores`.
    laws: Mapping[str, Array] = field(default_factory=dict, repr=False, compare=False)
    # Parallel efficiency of the replay less that of the closed form; None without a replay.
    gap: float | None = None
    not_replayed: str | None = None  # Why there is no replay
    assumptions: tuple[str, ...] = ()  # What is assumed of the machine, for the profile lacks it
    # Share of the draws in which it is the fastest of its cores, and no more than `WITHIN` slower
    # than the fastest; None if it is not compared, as is the expected loss: its time above that of
    # the best of each draw, relative, on average.
    probability_best: float | None = None
    probability_tied: float | None = None
    regret: float | None = None

    @property
    def split(self) -> tuple[int, int]:
        """Processes and threads."""
        return self.placement.processes, self.placement.threads

    @property
    def source(self) -> str:
        """What runtime and efficiency come from, `REPLAY` or `CLOSED_FORM`."""
        return CLOSED_FORM if self.gap is None else REPLAY

    def to_dict(self) -> dict[str, Any]:
        at = self.placement
        return {
            "processes": at.processes,
            "threads": at.threads,
            "cores": at.cores,
            "nodes": at.nodes,
            "processes_per_node": at.per_node,
            **fields_of(self, "grid", "runtime", "parallel_efficiency", "memory_per_process"),
            **fields_of(self, "probability_best", "probability_tied", "regret", "validity"),
            "source": self.source,
            "breakdown": fields_of(self, "time", "metrics"),
        }


class Refused(NamedTuple):
    """A split that is not possible."""

    processes: int
    threads: int
    why: str  # What stands against it


class Impossible(NamedTuple):
    """A number of cores of which no split is possible."""

    cores: int
    why: str  # What stands against it
    hint: str | None  # What is possible


def evaluate_all(
    study: Study,
    drawn: Draws,
    cores: int,
    max_memory: float | None = None,
    step: Callable[[], None] = lambda: None,
    *,
    replayed: bool = True,
) -> tuple[list[SplitCandidate], list[Refused]]:
    """Evaluate every split of some cores."""
    candidates: list[SplitCandidate] = []
    refused: list[Refused] = []
    for threads in divisors(cores):
        split = cores // threads, threads
        try:
            candidates.append(evaluate(study, drawn, *split, max_memory, replayed=replayed))
        except UsageError as error:
            # the reason alone, without the split that it is about
            why = error.message.partition(" is not possible: ")[2] or error.message
            refused.append(Refused(*split, why))
        step()
    return candidates, refused


def evaluate(
    study: Study,
    drawn: Draws,
    processes: int,
    threads: int,
    max_memory: float | None = None,
    *,
    replayed: bool = True,
) -> SplitCandidate:
    """Evaluate one split as predictions show it: replayed where that is possible.

    Its numbers depend on the split alone, never on the others it is compared with: a sweep and a
    prediction agree.
    """
    placement = _admit(study, processes, threads, max_memory)
    run = study.outcome(placement, drawn, replayed=replayed)
    metrics = load_families()[MAIN_FAMILY].evaluate_samples(
        run.modelled.aggregates, run.modelled.absent
    )
    validity = validity_of(study, placement, run.machine.used)
    return SplitCandidate(
        placement,
        run.extent,
        estimated(run.modelled.runtime, validity),
        estimated(metrics.values["parallel_efficiency"], validity),
        run.memory,
        validity,
        {part: nominal(value) for part, value in run.modelled.time.items()},
        {metric: nominal(value) for metric, value in metrics.values.items()},
        numbers(run.modelled.runtime),
        run.form.scores,
        None if run.agreement is None else run.agreement.gap,
        run.why_not,
        tuple(study.assumptions(placement, run)),
    )


def estimated(value: Value, validity: Validity) -> Estimate:
    """Return an estimate, without interval where the draws say too little about the result."""
    whole = estimate(value)
    return whole if validity.has_interval else Estimate(whole.value, why=validity.text)


def ratio(candidate: SplitCandidate, other: SplitCandidate, *, less: float = 0) -> Estimate:
    """The runtime of one split over that of another, less a number."""
    beyond = other.validity if candidate.validity.has_interval else candidate.validity
    return estimated(candidate.draws / other.draws - less, beyond)


def divisors(number: int) -> list[int]:
    """Return the divisors of a number of cores, rising."""
    if number > MOST_CORES:
        raise UsageError(
            f"{number} cores are more than any machine has", f"ask for at most {MOST_CORES}"
        )
    return all_divisors(number)


def _admit(study: Study, processes: int, threads: int, max_memory: float | None) -> Placement:
    """Place a split that machine, application and the limit of memory allow."""
    placement = study.admit(processes, threads)
    if max_memory is not None:
        memory = study.memory(placement)
        if memory is None:
            raise UsageError(UNKNOWN_MEMORY)
        if memory > max_memory:
            sizes = (format_size(size, digits=3) for size in (memory, max_memory))
            raise UsageError(f"{NEEDS} {' per process, more than '.join(sizes)}")
    return placement


def impossible(
    study: Study, count: int, refused: Sequence[Refused], max_memory: float | None = None
) -> Impossible:
    """Say why no split of some cores is possible, and name the nearest cores that have one."""
    near = [str(n) for n in nearest_possible(study, count, max_memory)]
    of_program = f"{' or '.join(near)} cores for {study.signature.name}"
    limited = [
        split for split in refused if split.why == UNKNOWN_MEMORY or split.why.startswith(NEEDS)
    ]
    if limited:
        processes, threads, why = limited[0]
        if why == UNKNOWN_MEMORY:
            hint = "add memory_per_rank to its [limits], or leave --max-memory out"
        else:
            hint = f"possible: {of_program}" if near else "allow more memory, or ask for more cores"
        return Impossible(
            count,
            f"{study.signature.name}: no split of {count} cores fits into --max-memory: "
            f"{processes} x {threads}: {why}",
            hint,
        )
    choices = [of_program] if near else []
    nodes, cores = study.allocation.available(study.profile.topology)
    full = math.ceil(count / cores)
    on_more = replace(study.allocation, nodes=full)
    if full > nodes and any(study.is_possible(count // t, t, on_more) for t in divisors(count)):
        choices.append(on_nodes(full, study.profile.topology))
    return Impossible(
        count,
        f"{study.signature.name}: no split of {count} cores is possible: {refused[0].why}",
        f"possible: {', or '.join(choices)}"
        if choices
        else "no number of cores near it has a split: look at the signature or the machine",
    )


def is_possible(study: Study, cores: int, max_memory: float | None = None) -> bool:
    """Tell whether some split of the cores fits machine and application, and has a runtime."""

    def fits(processes: int, threads: int) -> bool:
        try:
            placement = _admit(study, processes, threads, max_memory)
            study.require_time(placement, study.best(placement))
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
    nearest = (
        next((n for n in side if is_possible(study, n, max_memory)), None)
        for side in (below, above)
    )
    return [n for n in nearest if n is not None]


# Which split to take.


class Default(NamedTuple):
    """What people take without a model, beside what to take."""

    name: str  # What it is called
    split: tuple[int, int]  # Processes and threads
    # Its runtime relative to that of the taken split, minus 1; None if it is not possible.
    loss: Estimate | None


class ChoiceDoubt(NamedTuple):
    """Why the choice is not certain."""

    # Share of uncertain inputs in the variance of how the first and the second choice compare, the
    # largest first.
    inputs: Mapping[str, float]
    measure: tuple[int, int]  # The split whose measured runtime is worth most for the choice


@dataclass(frozen=True)
class SplitChoice:
    """What to take for a number of cores."""

    cores: int  # Cores to be used
    candidates: tuple[SplitCandidate, ...]  # All splits of them, by rising threads
    # The recommended split: the one with the least expected loss or, if all are equally good, the
    # simplest.
    taken: SplitCandidate
    # Splits that are likely as good as the best, by expected loss; `taken` comes first.
    tied: tuple[SplitCandidate, ...]
    # Whether none of several splits stands out: whichever is taken costs at most `WITHIN` more than
    # another, at the best estimate and on average over the draws.
    indifferent: bool
    defaults: tuple[Default, ...]  # Usual choices
    # None if `taken` is the best with a probability of at least `SURE`, or if the least expected
    # loss is below `WORTH`.
    doubt: ChoiceDoubt | None

    @property
    def source(self) -> str:
        """What the splits are compared by, `REPLAY` or `CLOSED_FORM` (`judge`)."""
        replayed = any(candidate.source == REPLAY for candidate in self.candidates)
        return REPLAY if replayed else CLOSED_FORM

    def facts(self, program: str, profile: Profile) -> dict[str, Any]:
        """Return what a document has of it, with commands to launch a program and to measure."""
        doubt = self.doubt
        gaps = {
            candidate.split: candidate.gap
            for candidate in self.candidates
            if candidate.gap is not None
        }
        largest = max(gaps, key=lambda split: abs(gaps[split]), default=None)
        return {
            "cores": self.cores,
            "take": self.taken.split,
            "tied": [candidate.split for candidate in self.tied],
            "indifferent": self.indifferent,
            "regret": self.taken.regret,
            "defaults": [default._asdict() for default in self.defaults],
            "doubt": None
            if doubt is None
            else {
                **doubt._asdict(),
                "command": measuring_first(profile, doubt.inputs),
            },
            "launch": launch_line(self.taken.placement, program),
            "launch_mpirun": mpirun_line(self.taken.placement, program),
            "checked": {
                "replayed": list(gaps),
                "largest_gap": None
                if largest is None
                else {"split": largest, "parallel_efficiency": gaps[largest]},
                "not_replayed": [
                    {"split": candidate.split, "why": candidate.not_replayed or ""}
                    for candidate in self.candidates
                    if candidate.gap is None
                ],
                "source": self.source,
            },
        }


def judge(candidates: Sequence[SplitCandidate], surest: float = 1.0) -> list[SplitCandidate]:
    """Compare the splits of one number of cores draw by draw; none is surer to be best.

    Replays and closed forms are not compared with each other: for waves that follow each other the
    closed form may be many times longer. Where some splits are replayed, those that are too large
    for it are left out of the comparison; one process, which waits for nobody, never is.
    """
    size = max(candidate.draws.size for candidate in candidates)
    times = np.array([np.broadcast_to(candidate.draws, size) for candidate in candidates])
    compared = [
        row for row, candidate in enumerate(candidates) if is_compared(candidate, candidates)
    ]
    drawn = compared_draws(times[compared])
    best = drawn.min(axis=0)
    winners = np.bincount(drawn.argmin(axis=0), minlength=len(compared)) / drawn.shape[1]
    winners = winners if len(compared) == 1 else np.minimum(winners, surest)
    tied = (drawn <= best * (1 + WITHIN)).mean(axis=1)
    regret = (drawn / best - 1).mean(axis=1)
    judged = [
        replace(candidate, draws=row) for candidate, row in zip(candidates, times, strict=True)
    ]
    for at, row in enumerate(compared):
        judged[row] = replace(
            judged[row],
            probability_best=float(winners[at]),
            probability_tied=float(tied[at]),
            regret=float(regret[at]),
        )
    return judged


def is_compared(candidate: SplitCandidate, candidates: Sequence[SplitCandidate]) -> bool:
    """Whether a split is compared with the others of its cores."""
    if candidate.source == REPLAY or candidate.placement.processes == 1:
        return True
    return all(other.source == CLOSED_FORM for other in candidates)


def compared_draws(times: Array) -> Array:
    """Return the draws by which splits are compared: the best estimate where nothing was drawn."""
    return drawn_only(times) if times.shape[-1] > FIRST else times[..., :1]


def choose(
    candidates: Sequence[SplitCandidate],
    topology: Topology,
    scores: Mapping[str, Array],
    *,
    trusted: bool = True,
) -> SplitChoice:
    """Recommend a split; where predictions are not trusted, all that may be the best are tied."""
    compared = [
        (candidate.regret, candidate.placement.threads, candidate)
        for candidate in candidates
        if candidate.regret is not None
    ]
    ranked = [candidate for *_, candidate in sorted(compared, key=lambda row: row[:2])]
    times = [candidate.runtime.value for candidate in ranked]
    losses = [candidate.regret or 0.0 for candidate in ranked]
    indifferent = (
        len(ranked) > 1
        and max(times) <= min(times) * (1 + WITHIN)
        and max(losses) <= min(losses) + WITHIN
    )
    taken = _simplest(ranked, topology) if indifferent else ranked[0]
    tied = (
        taken,
        *(
            candidate
            for candidate in ranked
            if candidate is not taken
            and (
                (candidate.probability_tied or 0) > LIKELY
                or (not trusted and _overlap(candidate, taken))
            )
        ),
    )
    cores = taken.placement.cores
    return SplitChoice(
        cores,
        tuple(candidates),
        taken,
        tied,
        indifferent,
        tuple(_defaults(cores, taken, candidates, topology)),
        _doubt(taken, ranked, tied, scores, trusted=trusted),
    )


def _overlap(candidate: SplitCandidate, other: SplitCandidate) -> bool:
    """Whether a split may be as fast as another one, as far as their intervals tell."""
    low, high = candidate.runtime.low, other.runtime.high
    return low is None or high is None or low <= high


def _simplest(candidates: Sequence[SplitCandidate], topology: Topology) -> SplitCandidate:
    """The one that surprises least: a usual default within what was measured of the machine."""
    usual = list(_usual(topology).values())

    def surprise(candidate: SplitCandidate) -> tuple[bool, int, int]:
        threads = candidate.placement.threads
        rank = usual.index(threads) if threads in usual else len(usual)
        return not candidate.validity.has_interval, rank, threads

    return min(candidates, key=surprise)


def _usual(topology: Topology) -> dict[str, int]:
    """What people take without a model: name, and threads per process."""
    return {
        "all MPI": 1,
        "one process per socket": topology.cores_per_socket,
        "one process per node": topology.cores_per_node,
    }


def _defaults(
    cores: int, taken: SplitCandidate, candidates: Sequence[SplitCandidate], topology: Topology
) -> list[Default]:
    """The usual defaults; one that coincides with another comes once."""
    known = {candidate.placement.threads: candidate for candidate in candidates}
    defaults: list[Default] = []
    for name, threads in _usual(topology).items():
        split = (cores // threads, threads)
        # on fewer cores than those of a socket, or on part of a node, it is no default
        if cores % threads or split in [default.split for default in defaults]:
            continue
        candidate = known.get(threads)
        loss = None if candidate is None else ratio(candidate, taken, less=1)
        defaults.append(Default(name, split, loss))
    return defaults


def _doubt(
    taken: SplitCandidate,
    ranked: Sequence[SplitCandidate],
    tied: Sequence[SplitCandidate],
    scores: Mapping[str, Array],
    *,
    trusted: bool,
) -> ChoiceDoubt | None:
    """What decides between the first and the second choice, and what to measure."""
    is_sure = (taken.probability_best or 0) >= SURE or (ranked[0].regret or 0) < WORTH
    if len(ranked) == 1 or (trusted and is_sure):
        return None
    second = next(candidate for candidate in ranked if candidate is not taken)
    rivals = tied if len(tied) > 1 else (taken, second)
    values = [_value_of_measuring(candidate, ranked) for candidate in rivals]
    measure = rivals[int(np.argmax(values))]
    inputs = {**scores, **contrast(taken.laws, second.laws)}
    return ChoiceDoubt(shares(inputs, second.draws / taken.draws), measure.split)


def _value_of_measuring(candidate: SplitCandidate, candidates: Sequence[SplitCandidate]) -> float:
    """By how much knowing the runtime of a split lessens the expected loss.

    The draws are sorted by that runtime into `_BINS` classes, in each of which the split with the
    least regret is taken: the expected value of partial perfect information, estimated from given
    draws (M. Strong, J. E. Oakley, Med. Decis. Making 33 (2013) 755). What chance adds is the same
    for all splits, so only their order counts.
    """
    drawn = compared_draws(np.array([other.draws for other in candidates]))
    regret = drawn / drawn.min(axis=0) - 1
    order = np.argsort(compared_draws(candidate.draws), kind="stable")
    classes = [part for part in np.array_split(order, _BINS) if part.size]
    informed = sum(regret[:, part].sum(axis=1).min() for part in classes) / order.size
    return float(regret.mean(axis=1).min() - informed)
