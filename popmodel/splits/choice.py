"""Which split to take: expected loss, usual defaults, what decides, what to measure next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from popmodel.machine import remeasure
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Topology
from popmodel.model.form import contrast
from popmodel.model.replayed.agreement import CLOSED_FORM, REPLAY
from popmodel.model.run.launch import launch_line, mpirun_line
from popmodel.model.uncertainty import Estimate, shares
from popmodel.plain import fields_of
from popmodel.splits.splits import WITHIN, Array, Evaluated, SplitCandidate, compared_draws, ratio
from popmodel.values import dataclass

# Which split to take: expected loss, usual defaults, what decides, what to measure next.
#
# What a measured run would add is its expected value of information: by how much the loss of the
# choice that would then be made is smaller (H. Raiffa, R. Schlaifer, Applied Statistical Decision
# Theory, 1961).


LIKELY = 0.1
"""Probability of being as good as the best from which a split counts as equally good."""
SURE = 0.95
"""Probability of being the best from which nothing more need be measured."""
WORTH = 0.005
"""Expected loss below which nothing more need be measured: no measurement can save more."""

_BINS = 10


@dataclass(frozen=True)
class Default:
    """What people take without a model, beside what to take."""

    name: str  # What it is called
    split: tuple[int, int]  # Processes and threads
    # Its runtime relative to that of the taken split, minus 1; None if it is not possible.
    loss: Estimate | None


@dataclass(frozen=True)
class Doubt:
    """Why the choice is not certain."""

    # Share of uncertain inputs in the variance of how the first and the second choice compare, the
    # largest first.
    inputs: Mapping[str, float]
    measure: tuple[int, int]  # The split whose measured runtime is worth most for the choice

    def facts(self, profile: Profile) -> dict[str, Any]:
        """Return what a document has of it, with the command that measures an input."""
        return {**fields_of(self), "command": remeasure.first_command(profile, self.inputs)}


@dataclass(frozen=True)
class SplitChoice:
    """What to take for a number of cores."""

    cores: int  # Cores to be used
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
    doubt: Doubt | None

    def facts(self, program: str, profile: Profile) -> dict[str, Any]:
        """Return what a document has of it, with commands to launch a program and to measure."""
        return {
            "cores": self.cores,
            "take": self.taken.split,
            "tied": [one.split for one in self.tied],
            "indifferent": self.indifferent,
            "regret": self.taken.regret,
            "defaults": self.defaults,
            "doubt": None if self.doubt is None else self.doubt.facts(profile),
            "launch": launch_line(self.taken.placement, program),
            "launch_mpirun": mpirun_line(self.taken.placement, program),
        }


def choose(
    candidates: Sequence[SplitCandidate],
    topology: Topology,
    scores: Mapping[str, Array],
    *,
    trusted: bool = True,
) -> SplitChoice:
    """Recommend a split; where predictions are not trusted, all that may be the best are tied."""
    compared = [
        (one.regret, one.placement.threads, one) for one in candidates if one.regret is not None
    ]
    ranked = [one for *_, one in sorted(compared, key=lambda each: each[:2])]
    indifferent = len(ranked) > 1 and _are_equal(ranked)
    taken = _simplest(ranked, topology) if indifferent else ranked[0]
    others = [
        one
        for one in ranked
        if one is not taken
        and ((one.probability_tied or 0) > LIKELY or (not trusted and _overlap(one, taken)))
    ]
    tied = (taken, *others)
    cores = taken.placement.cores
    return SplitChoice(
        cores,
        taken,
        tied,
        indifferent,
        tuple(_defaults(cores, taken, candidates, topology)),
        _doubt(taken, ranked, tied, scores, trusted=trusted),
    )


def _overlap(one: SplitCandidate, other: SplitCandidate) -> bool:
    """Whether a split may be as fast as another one, as far as their intervals tell."""
    low, high = one.runtime.low, other.runtime.high
    return low is None or high is None or low <= high


def _are_equal(candidates: Sequence[SplitCandidate]) -> bool:
    """Whether all are equally good, as far as the model can tell."""
    times = [one.runtime.value for one in candidates]
    losses = [one.regret or 0.0 for one in candidates]
    return max(times) <= min(times) * (1 + WITHIN) and max(losses) <= min(losses) + WITHIN


def _simplest(candidates: Sequence[SplitCandidate], topology: Topology) -> SplitCandidate:
    """The one that surprises least: a usual default within what was measured of the machine."""
    usual = list(_usual(topology).values())

    def surprise(one: SplitCandidate) -> tuple[bool, int, int]:
        threads = one.placement.threads
        rank = usual.index(threads) if threads in usual else len(usual)
        return not one.validity.has_interval, rank, threads

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
    known = {one.placement.threads: one for one in candidates}
    defaults: list[Default] = []
    for name, threads in _usual(topology).items():
        split = (cores // threads, threads)
        # on fewer cores than those of a socket, or on part of a node, it is no default
        if cores % threads or split in [one.split for one in defaults]:
            continue
        one = known.get(threads)
        loss = None if one is None else ratio(one, taken, less=1)
        defaults.append(Default(name, split, loss))
    return defaults


def _doubt(
    taken: SplitCandidate,
    ranked: Sequence[SplitCandidate],
    tied: Sequence[SplitCandidate],
    scores: Mapping[str, Array],
    *,
    trusted: bool,
) -> Doubt | None:
    """What decides between the first and the second choice, and what to measure."""
    is_sure = (taken.probability_best or 0) >= SURE or (ranked[0].regret or 0) < WORTH
    if len(ranked) == 1 or (trusted and is_sure):
        return None
    second = next(one for one in ranked if one is not taken)
    rivals = tied if len(tied) > 1 else (taken, second)
    values = [_value_of_measuring(one, ranked) for one in rivals]
    measure = rivals[int(np.argmax(values))]
    inputs = {**scores, **contrast(taken.laws, second.laws)}
    return Doubt(shares(inputs, second.draws / taken.draws), measure.split)


def _value_of_measuring(one: SplitCandidate, candidates: Sequence[SplitCandidate]) -> float:
    """By how much knowing the runtime of a split lessens the expected loss.

    The draws are sorted by that runtime into `_BINS` classes, in each of which the split with the
    least regret is taken: the expected value of partial perfect information, estimated from given
    draws (M. Strong, J. E. Oakley, Med. Decis. Making 33 (2013) 755). What chance adds is the same
    for all splits, so only their order counts.
    """
    drawn = compared_draws(np.array([each.draws for each in candidates]))
    regret = drawn / drawn.min(axis=0) - 1
    order = np.argsort(compared_draws(one.draws), kind="stable")
    classes = [part for part in np.array_split(order, _BINS) if part.size]
    informed = sum(regret[:, part].sum(axis=1).min() for part in classes) / order.size
    return float(regret.mean(axis=1).min() - informed)


# What more cores bring, each number of cores with its recommended split.


@dataclass(frozen=True)
class SplitGrowth:
    """What more cores bring, each number of cores with the split to take."""

    cores: tuple[int, int]  # The smaller and the larger number
    speedup: Estimate  # Runtime on the smaller number over that on the larger
    efficiency: tuple[float, float]  # Parallel efficiency of both

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON types."""
        return {
            **fields_of(self, "cores", "speedup"),
            "efficiency": self.speedup.value * self.cores[0] / self.cores[1],
            "parallel_efficiency": self.efficiency,
        }


def growth(choices: Sequence[SplitChoice]) -> list[SplitGrowth]:
    """Compare every number of cores with the next larger one."""
    rising = sorted(choices, key=lambda choice: choice.cores)
    return [
        SplitGrowth(
            (one.cores, more.cores),
            ratio(one.taken, more.taken),
            (one.taken.parallel_efficiency.value, more.taken.parallel_efficiency.value),
        )
        for one, more in pairwise(rising)
    ]


# Which splits of a sweep were replayed, and by how much that changed them.


Split = tuple[int, int]


@dataclass(frozen=True)
class SplitCheck:
    """Which splits of one number of cores were replayed, and by how much that changed them."""

    # Parallel efficiency of the replay less that of the closed form, by split.
    gaps: Mapping[Split, float]
    not_replayed: Mapping[Split, str]  # Why a split was not replayed

    @property
    def source(self) -> str:
        """What the splits are compared by, `REPLAY` or `CLOSED_FORM` (`choice.judge`)."""
        return REPLAY if self.gaps else CLOSED_FORM

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of documents."""
        largest = max(self.gaps, key=lambda split: abs(self.gaps[split]), default=None)
        return {
            "replayed": list(self.gaps),
            "largest_gap": None
            if largest is None
            else {"split": largest, "parallel_efficiency": self.gaps[largest]},
            "not_replayed": [
                {"split": split, "why": why} for split, why in self.not_replayed.items()
            ],
            "source": self.source,
        }


def check(found: Sequence[Evaluated]) -> SplitCheck:
    """Say which of the splits of one number of cores were replayed."""
    return SplitCheck(
        {one.split: one.gap for one in found if one.gap is not None},
        {one.split: one.not_replayed or "" for one in found if one.gap is None},
    )
