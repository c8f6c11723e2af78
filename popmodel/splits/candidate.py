"""The splits of one number of cores, compared draw by draw.

Every split is judged in the same draws of the uncertain inputs, so that what is common to all
(a memory that may be faster than assumed) does not blur which is best. Of the errors of the laws a
part is each split's own (`popmodel.model.form`): two splits whose best estimates differ by less may
be the other way round. A split is judged by its expected loss: how much longer it takes than the
best of each draw, on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.expressions.elementary import Value, numbers
from popmodel.model.replayed.agreement import CLOSED_FORM, REPLAY
from popmodel.model.run.placement import Placement
from popmodel.model.uncertainty import FIRST, Estimate, drawn_only, estimate
from popmodel.plain import fields_of
from popmodel.prediction.validity import Validity
from popmodel.values import dataclass

Array = NDArray[np.float64]

WITHIN = 0.02
"""Splits at most this part slower than the best are equally good."""


@dataclass(frozen=True)
class Breakdown:
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
    breakdown: Breakdown = field(default_factory=Breakdown)  # Where the time goes
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
class Candidate:
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
    breakdown: Breakdown
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


def judge(found: Sequence[Evaluated]) -> list[Candidate]:
    """Compare the splits of one number of cores draw by draw.

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
    tied = (drawn <= best * (1 + WITHIN)).mean(axis=1)
    regret = (drawn / best - 1).mean(axis=1)

    def judged(shares: Array, index: int) -> float | None:
        return float(shares[compared.index(index)]) if index in compared else None

    return [
        Candidate(
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


def ratio(one: Candidate, other: Candidate, *, less: float = 0) -> Estimate:
    """The runtime of one split over that of another, less a number."""
    beyond = other.validity if one.validity.has_interval else one.validity
    return estimated(one.draws / other.draws - less, beyond)


def compared_draws(times: Array) -> Array:
    """Return the draws by which splits are compared: the best estimate where nothing was drawn."""
    return drawn_only(times) if times.shape[-1] > FIRST else times[..., :1]
