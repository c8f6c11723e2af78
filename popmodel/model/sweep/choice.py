"""Which split to take: probabilities, expected regret, what decides, what to measure next.

Every split is judged in the same draws of the uncertain inputs, so that what is common to all
(a memory that may be faster than assumed) does not blur which is best. A choice is judged by its
expected regret: how much longer it takes than the best of each draw, on average. What a measured
run would add is its expected value of information: by how much the regret of the choice that
would then be made is smaller (H. Raiffa, R. Schlaifer, Applied Statistical Decision Theory, 1961).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.expressions.elementary import Value
from popmodel.machine.topology import Topology
from popmodel.model.prediction import Estimate
from popmodel.model.replayed.agreement import CLOSED_FORM, REPLAY
from popmodel.model.run.placement import Placement, launch_line, mpirun_line
from popmodel.model.study import estimate
from popmodel.model.uncertainty import shares
from popmodel.model.validity import Validity
from popmodel.values import dataclass

Array = NDArray[np.float64]

WITHIN = 0.02
"""Splits that are no more than this part slower than the best are as good as it."""
LIKELY = 0.1
"""Probability of being as good as the best from which a split is in the tie set."""
SURE = 0.95
"""Probability of being the best from which nothing more need be measured."""

_BINS = 10


@dataclass(frozen=True)
class Evaluated:
    """One split with what the model says of it, before it is compared with others.

    Attributes
    ----------
    placement : Placement
        Processes, threads, nodes.
    extent : tuple of int
        Processes along each grid dimension; empty without a grid.
    memory : float or None
        Bytes of a process, if the signature tells.
    runtime, efficiency : value
        Runtime, s, and parallel efficiency in every draw; draw 0 is the best estimate.
    validity : Validity
        How far the split goes beyond what was measured of the machine.
    source : str
        What both come from: the closed form, or the replay.
    """

    placement: Placement
    extent: tuple[int, ...]
    memory: float | None
    runtime: Value
    efficiency: Value
    validity: Validity
    source: str = CLOSED_FORM


@dataclass(frozen=True)
class Candidate:
    """One split, compared with the others of the same number of cores.

    Attributes
    ----------
    placement, grid, memory_per_process, validity, source
        As in `Evaluated`.
    runtime, parallel_efficiency : Estimate
        Runtime, s, and parallel efficiency.
    probability_best, probability_tied : float or None
        Share of the draws in which it is the fastest of its cores, and no more than `WITHIN`
        slower than the fastest; None if it is not compared.
    regret : float or None
        Expected loss: expected time above the best of each draw, relative.
    draws : array of shape (n + 1,)
        Runtime in every draw, s; entry 0 is the best estimate.
    """

    placement: Placement
    grid: tuple[int, ...]
    runtime: Estimate
    parallel_efficiency: Estimate
    memory_per_process: float | None
    probability_best: float | None
    probability_tied: float | None
    regret: float | None
    validity: Validity
    source: str
    draws: Array = field(repr=False, compare=False)

    @property
    def split(self) -> tuple[int, int]:
        """Processes and threads."""
        return self.placement.processes, self.placement.threads

    def to_dict(self) -> dict[str, Any]:
        """Give the candidate as JSON types."""
        return {
            "processes": self.placement.processes,
            "threads": self.placement.threads,
            "cores": self.placement.cores,
            "nodes": self.placement.nodes,
            "processes_per_node": self.placement.per_node,
            "grid": list(self.grid),
            "runtime": self.runtime.to_dict(),
            "parallel_efficiency": self.parallel_efficiency.to_dict(),
            "memory_per_process": self.memory_per_process,
            "probability_best": self.probability_best,
            "probability_tied": self.probability_tied,
            "regret": self.regret,
            "validity": self.validity.to_dict(),
            "source": self.source,
        }


@dataclass(frozen=True)
class Default:
    """What people take without a model, beside what to take.

    Attributes
    ----------
    name : str
        What it is called.
    split : tuple of int
        Processes and threads.
    loss : Estimate or None
        Its runtime relative to that of the taken split, minus 1; None if it is not possible.
    """

    name: str
    split: tuple[int, int]
    loss: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """Give the default as JSON types."""
        return {
            "name": self.name,
            "split": list(self.split),
            "loss": None if self.loss is None else self.loss.to_dict(),
        }


@dataclass(frozen=True)
class Doubt:
    """Why the choice is not certain.

    Attributes
    ----------
    inputs : mapping of str to float
        Share of uncertain inputs in the variance of how the first and the second choice compare,
        the largest first.
    measure : tuple of int
        The split whose measured runtime is worth most for the choice.
    """

    inputs: Mapping[str, float]
    measure: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        """Give the doubt as JSON types."""
        return {"inputs": dict(self.inputs), "measure": list(self.measure)}


@dataclass(frozen=True)
class Choice:
    """What to take for a number of cores.

    Attributes
    ----------
    cores : int
        Cores to be used.
    taken : Candidate
        The split with the least expected regret.
    tied : tuple of Candidate
        Splits that are likely as good as the best, by regret; `taken` is the first.
    defaults : tuple of Default
        Usual choices.
    doubt : Doubt or None
        None if the taken split is the best with a probability of at least `SURE`.
    """

    cores: int
    taken: Candidate
    tied: tuple[Candidate, ...]
    defaults: tuple[Default, ...]
    doubt: Doubt | None

    def to_dict(self, program: str) -> dict[str, Any]:
        """Give the choice as JSON types, with the commands that launch a program."""
        return {
            "cores": self.cores,
            "take": list(self.taken.split),
            "tied": [list(one.split) for one in self.tied],
            "regret": self.taken.regret,
            "defaults": [one.to_dict() for one in self.defaults],
            "doubt": None if self.doubt is None else self.doubt.to_dict(),
            "launch": launch_line(self.taken.placement, program),
            "launch_mpirun": mpirun_line(self.taken.placement, program),
        }


@dataclass(frozen=True)
class Growth:
    """What more cores bring, each number of cores with the split to take.

    Attributes
    ----------
    cores : tuple of int
        The smaller and the larger number.
    speedup : Estimate
        Runtime on the smaller number over that on the larger.
    efficiency : tuple of float
        Parallel efficiency of both.
    """

    cores: tuple[int, int]
    speedup: Estimate
    efficiency: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Give the comparison as JSON types."""
        return {
            "cores": list(self.cores),
            "speedup": self.speedup.to_dict(),
            "parallel_efficiency": list(self.efficiency),
        }


def judge(found: Sequence[Evaluated]) -> list[Candidate]:
    """Compare the splits of one number of cores draw by draw.

    Replays and closed forms are not compared with each other: for waves that follow each other the
    closed form may be many times longer. Where some splits are replayed, those that are too large
    for it are left out of the comparison; one process, which waits for nobody, never is.

    Parameters
    ----------
    found : sequence of Evaluated
        At least one; all from the same draws.

    Returns
    -------
    list of Candidate
        In the same order.
    """
    size = max(np.size(one.runtime) for one in found)
    times = np.array([np.broadcast_to(one.runtime, size) for one in found], dtype=np.float64)
    compared = [index for index, one in enumerate(found) if is_compared(one, found)]
    drawn = _without_nominal(times[compared])
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
            times[index],
        )
        for index, one in enumerate(found)
    ]


def is_compared(one: Evaluated, found: Sequence[Evaluated]) -> bool:
    """Whether a split is compared with the others of its cores."""
    if one.source == REPLAY or one.placement.processes == 1:
        return True
    return all(other.source == CLOSED_FORM for other in found)


def estimated(value: Value, validity: Validity) -> Estimate:
    """Give an estimate, without interval where the draws say too little about the result."""
    found = estimate(value)
    return found if validity.has_interval else Estimate(found.value, why=validity.text)


def _ratio(one: Candidate, other: Candidate, *, less: float = 0) -> Estimate:
    """The runtime of one split over that of another, less a number."""
    beyond = other.validity if one.validity.has_interval else one.validity
    return estimated(one.draws / other.draws - less, beyond)


def choose(
    candidates: Sequence[Candidate], topology: Topology, scores: Mapping[str, Array]
) -> Choice:
    """Take the split with the least expected regret.

    Parameters
    ----------
    candidates : sequence of Candidate
        All possible splits of one number of cores, from `judge`.
    topology : Topology
        Of the machine, which the usual choices go by.
    scores : mapping of str to array of shape (n + 1,)
        Standard normal scores of every uncertain input, from `Draws.scores`.
    """
    compared = [
        (one.regret, one.placement.threads, one) for one in candidates if one.regret is not None
    ]
    ranked = [one for *_, one in sorted(compared, key=lambda each: each[:2])]
    taken = ranked[0]
    tied = tuple(one for one in ranked if one is taken or (one.probability_tied or 0) > LIKELY)
    cores = taken.placement.cores
    return Choice(
        cores,
        taken,
        tied,
        tuple(_defaults(cores, taken, candidates, topology)),
        _doubt(ranked, tied, scores),
    )


def growth(choices: Sequence[Choice]) -> list[Growth]:
    """Compare every number of cores with the next larger one."""
    rising = sorted(choices, key=lambda choice: choice.cores)
    return [
        Growth(
            (one.cores, more.cores),
            _ratio(one.taken, more.taken),
            (one.taken.parallel_efficiency.value, more.taken.parallel_efficiency.value),
        )
        for one, more in pairwise(rising)
    ]


def _defaults(
    cores: int, taken: Candidate, candidates: Sequence[Candidate], topology: Topology
) -> list[Default]:
    """What people take without a model; a default that is another one too is told once."""
    usual = {
        "all MPI": 1,
        "one process per socket": topology.cores_per_socket,
        "one process per node": topology.cores_per_node,
    }
    known = {one.placement.threads: one for one in candidates}
    defaults: list[Default] = []
    for name, threads in usual.items():
        split = (cores // threads, threads)
        # on fewer cores than those of a socket, or on part of a node, it is no default
        if cores % threads or split in [one.split for one in defaults]:
            continue
        one = known.get(threads)
        loss = None if one is None else _ratio(one, taken, less=1)
        defaults.append(Default(name, split, loss))
    return defaults


def _doubt(
    ranked: Sequence[Candidate], tied: Sequence[Candidate], scores: Mapping[str, Array]
) -> Doubt | None:
    """What decides between the first and the second choice, and what to measure."""
    taken = ranked[0]
    if len(ranked) == 1 or (taken.probability_best or 0) >= SURE:
        return None
    second = ranked[1]
    rivals = tied if len(tied) > 1 else (taken, second)
    values = [_value_of_measuring(one, ranked) for one in rivals]
    measure = rivals[int(np.argmax(values))]
    return Doubt(shares(scores, second.draws / taken.draws), measure.split)


def _value_of_measuring(one: Candidate, candidates: Sequence[Candidate]) -> float:
    """By how much knowing the runtime of a split lessens the expected regret.

    The draws are sorted by that runtime into `_BINS` classes, in each of which the split with the
    least regret is taken: the expected value of partial perfect information, estimated from given
    draws (M. Strong, J. E. Oakley, Med. Decis. Making 33 (2013) 755). What chance adds is the same
    for all splits, so only their order counts.
    """
    drawn = _without_nominal(np.array([each.draws for each in candidates]))
    regret = drawn / drawn.min(axis=0) - 1
    order = np.argsort(_without_nominal(one.draws[np.newaxis])[0], kind="stable")
    classes = [part for part in np.array_split(order, _BINS) if part.size]
    informed = sum(regret[:, part].sum(axis=1).min() for part in classes) / order.size
    return float(regret.mean(axis=1).min() - informed)


def _without_nominal(times: Array) -> Array:
    """Drop the best estimate, which is no draw; keep it where nothing was drawn."""
    return times[:, 1:] if times.shape[1] > 1 else times
