"""All splits of some cores, and the number of cores that is worth its cost.

The model has steps (threads that do not share a loop evenly, grids that fit badly): a number of
nodes that divides well may keep an efficiency that many smaller ones do not. So of few numbers each
is tried; many are halved until few are left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise, takewhile
from typing import Any

from popmodel.base.errors import UsageError
from popmodel.base.units import plural
from popmodel.base.values import NamedTuple, dataclass, document
from popmodel.machines.profile import Profile
from popmodel.model.predictor import Study
from popmodel.model.run.process_placement import WHOLE, Allocation, launch_line, mpirun_line
from popmodel.model.signature.application import Signature
from popmodel.model.symbols import factors_of
from popmodel.model.uncertainty import DEFAULT_COUNT, LEVEL
from popmodel.prediction.prediction import PredictedRun, doubts_of, study_of, subject, trust
from popmodel.prediction.split_choice import (
    Impossible,
    Refused,
    SplitCandidate,
    SplitChoice,
    choose,
    divisors,
    evaluate,
    evaluate_all,
    impossible,
    is_compared,
    judge,
    ratio,
)

SCHEMA = "popmodel/splits/1"

Step = Callable[[int, int], None]
"""Told how many splits of how many are done."""


class LargestSplit(NamedTuple):
    """The largest number of cores that keeps a parallel efficiency."""

    target: float  # The parallel efficiency to be kept by the fastest split
    cores: int  # The number
    efficiency: float  # What the fastest split of it has
    # The next number with its efficiency, which is too low; None if the machine has no more.
    beyond: tuple[int, float] | None

    def to_dict(self) -> dict[str, Any]:
        cores, efficiency = self.beyond or (None, None)
        return {
            "parallel_efficiency": self.target,
            "cores": self.cores,
            "reached": self.efficiency,
            "beyond": {"cores": cores, "parallel_efficiency": efficiency},
        }


@dataclass(frozen=True)
class SplitSweep:
    """All splits of some numbers of cores; made by `sweep`."""

    # Program and machine.
    signature: Signature
    profile: Profile
    settings: Mapping[str, float]  # Value of every parameter of the application
    bind: str  # Where the threads of a process are
    what_if: Mapping[str, float]  # Factors that were applied
    choices: tuple[SplitChoice, ...]  # One per number of cores that has a split
    refused: tuple[Refused, ...]  # Splits that are not possible, with the reason
    impossible: tuple[Impossible, ...]  # Numbers of cores of which none is
    largest: LargestSplit | None  # Why this number of cores, if it was searched
    # The runs that the signature was learnt from, `Study.learnt`; None without any.
    learnt: Mapping[str, Any] | None
    included: tuple[str, ...]  # What the intervals and probabilities include, `Study.included`
    # Draws behind them.
    draws: int
    seed: int

    @property
    def candidates(self) -> tuple[SplitCandidate, ...]:
        """All splits, by cores, then by rising threads."""
        return tuple(candidate for choice in self.choices for candidate in choice.candidates)

    def _started(self, split: SplitCandidate) -> str:
        """The program with its arguments, for a split."""
        at = split.placement
        return self.signature.started(at.processes, at.threads, self.settings)

    @property
    def _doubts(self) -> list[str]:
        outside = {
            one.validity.text: None for one in self.candidates if not one.validity.has_interval
        }
        return [*doubts_of(self.signature, self.learnt), *outside]

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/splits/1``, without provenance."""
        about = subject(self.signature, self.profile, self.settings)
        about["machine"]["cores_per_node"] = self.profile.topology.cores_per_node
        candidates = self.candidates
        return document(
            SCHEMA,
            **about,
            bind=self.bind,
            what_if=self.what_if,
            candidates=[
                {
                    **candidate.to_dict(),
                    "launch": launch_line(candidate.placement, self._started(candidate)),
                    "launch_mpirun": mpirun_line(candidate.placement, self._started(candidate)),
                }
                for candidate in candidates
            ],
            refused=[split._asdict() for split in self.refused],
            impossible=[count._asdict() for count in self.impossible],
            best=[candidate.split for choice in self.choices for candidate in choice.tied],
            choices=[
                choice.facts(self._started(choice.taken), self.profile) for choice in self.choices
            ],
            trust=trust(self._doubts),
            growth=growth(self.choices),
            largest=self.largest,
            assumptions=sorted(
                {text for candidate in candidates for text in candidate.assumptions}
            ),
            **({} if self.learnt is None else {"learnt": self.learnt}),
            intervals={"level": LEVEL, "include": self.included},
            draws=self.draws,
            seed=self.seed,
        )


def growth(choices: Sequence[SplitChoice]) -> list[dict[str, Any]]:
    """Compare every number of cores with the next larger one, for a document."""
    rows = []
    for fewer, more in pairwise(sorted(choices, key=lambda choice: choice.cores)):
        speedup = ratio(fewer.taken, more.taken)
        efficiencies = (choice.taken.parallel_efficiency.value for choice in (fewer, more))
        rows.append(
            {
                "cores": (fewer.cores, more.cores),
                "speedup": speedup,
                "efficiency": speedup.value * fewer.cores / more.cores,
                "parallel_efficiency": tuple(efficiencies),
            }
        )
    return rows


def sweep(
    signature: Signature,
    profile: Profile,
    cores: Sequence[int] | None,
    settings: Mapping[str, float] | None = None,
    *,
    what_if: Mapping[str, float] | None = None,
    allocation: Allocation = WHOLE,
    max_memory: float | None = None,
    efficiency: float | None = None,
    draws: int = DEFAULT_COUNT,
    seed: int = 0,
    step: Step | None = None,
    trusted: bool = True,
) -> SplitSweep:
    """Evaluate every split of some cores into P processes with T threads, P T = cores."""
    changes = dict(what_if or {})
    factors = factors_of(changes)
    study = study_of(signature, profile, settings or {}, draws, seed, factors, allocation)
    largest: LargestSplit | None = None
    if cores is None:
        if efficiency is None:
            raise UsageError("cores and efficiency are both missing", "give one of them")
        largest = largest_cores(study, efficiency, max_memory)
        cores = [largest.cores]
    drawn = study.sources()
    counts = list(dict.fromkeys(cores))
    total, done = sum(len(divisors(count)) for count in counts), 0

    def one_more() -> None:
        nonlocal done
        done += 1
        if step is not None:
            step(done, total)

    judged: list[list[SplitCandidate]] = []
    refused: list[Refused] = []
    without: list[Impossible] = []
    for count in counts:
        candidates, no = evaluate_all(study, drawn, count, max_memory, one_more)
        refused += no
        if candidates:
            judged.append(judge(candidates, study.surest))
        else:
            without.append(impossible(study, count, no, max_memory))
    if not judged:
        raise UsageError(without[0].why, without[0].hint)
    scores = study.scores(drawn)
    trusted = trusted and not study.doubts
    choices = tuple(choose(mine, profile.topology, scores, trusted=trusted) for mine in judged)
    return SplitSweep(
        signature,
        profile,
        study.values,
        allocation.bind,
        changes,
        choices,
        tuple(refused),
        tuple(without),
        largest,
        study.learnt(),
        study.included,
        draws,
        seed,
    )


def other_sizes(
    predicted: PredictedRun | SplitSweep, allocation: Allocation, step: Step
) -> dict[str, Any]:
    """Splits of half as many cores, as many and twice as many, of problems of three sizes.

    A page shows these as they are, and interpolates between the sizes: half, as much and twice the
    first parameter of the program. What the machine or the program do not allow is left out.
    """
    signature, settings, done = predicted.signature, predicted.settings, 0
    factors = factors_of(predicted.what_if if isinstance(predicted, SplitSweep) else {})
    study = study_of(
        *(signature, predicted.profile, settings, predicted.draws, predicted.seed, factors),
        allocation,
    )
    if isinstance(predicted, SplitSweep):
        cores = predicted.choices[-1].cores
    else:
        cores = predicted.placement.processes * predicted.placement.threads
    name = next(iter(signature.params), "")
    values = [settings[name] * factor for factor in (0.5, 1, 2)] if name else [0.0]
    splits = [
        (count // threads, threads)
        for count in dict.fromkeys((max(cores // 2, 1), cores, 2 * cores))
        for threads in divisors(count)
    ]
    rows = []
    for value in values:
        sized = study.with_settings({name: value}) if name else study
        drawn = sized.sources()
        for processes, threads in splits:
            with suppress(UsageError):
                split = evaluate(sized, drawn, processes, threads)
                rows.append(
                    {
                        **{"value": value, "processes": processes, "threads": threads},
                        "runtime": split.runtime.to_dict(),
                        "parallel_efficiency": split.parallel_efficiency.to_dict(),
                    }
                )
            done += 1
            step(done, len(values) * len(splits))
    return {"parameter": name, "rows": rows}


# How many cores are worth their cost: the largest number that keeps a parallel efficiency.


_EACH = 16  # as many numbers are tried one by one
_FARTHEST = 8  # steps between a number that is not possible and one taken instead


def largest_cores(study: Study, target: float, max_memory: float | None = None) -> LargestSplit:
    """Find the largest number of cores whose fastest split keeps a parallel efficiency.

    Beyond one node only whole nodes are looked at, from the whole machine down: each number of up
    to 16 nodes, and each number of cores of a node that has no more. On larger machines powers of
    two show where the efficiency falls below the target for the last time. Numbers in between are
    halved on a logarithmic scale until 16 are left, of which each is tried; one that divides well
    and lies farther beyond may be missed.
    """
    counts = _Counts(study, max_memory)
    high: int | None = None
    # from above: what lies below the last one that keeps it is not replayed
    for low in counts.ladder():
        if counts.efficiency(low) < target:
            high = low
            continue
        while high is not None and (middle := counts.middle(low, high)) is not None:
            if counts.efficiency(middle) >= target:
                low = middle
            else:
                high = middle
        if high is not None:
            for between in reversed(counts.between(low, high)):
                if counts.efficiency(between) >= target:
                    low = between
                    break
                high = between
        above = None if high is None else (high, counts.efficiency(high))
        return LargestSplit(target, low, counts.efficiency(low), above)
    hint = None
    if counts.known:
        best = max(counts.known, key=counts.efficiency)
        most = f"{100 * counts.efficiency(best):.1f}"
        near = float(most) >= 100 * target  # as it is printed it would be enough
        hint = (
            f"the highest is {'slightly less' if near else f'{most} %'}, on {plural(best, 'core')}"
        )
    raise UsageError(
        f"{study.signature.name}: no number of cores has a parallel efficiency of "
        f"{100 * target:g} %",
        hint,
    )


class _Counts:
    """Numbers of cores, single ones within a node and whole nodes beyond, with their efficiency."""

    def __init__(self, study: Study, max_memory: float | None) -> None:
        self._study, self._max_memory = study, max_memory
        self._drawn = study.sources(draws=0)
        self._nodes, self._node = study.allocation.available(study.profile.topology)
        self._possible: dict[int, bool] = {}
        self.known: dict[int, float] = {}  # Numbers whose efficiency has been looked at

    def is_possible(self, cores: int) -> bool:
        """Whether the number has a split."""
        if cores not in self._possible:
            self._possible[cores] = bool(self._evaluated(cores, replayed=False))
        return self._possible[cores]

    def efficiency(self, cores: int) -> float:
        """Parallel efficiency of the fastest split of a number that has one."""
        if cores not in self.known:
            candidates = self._evaluated(cores)
            compared = [candidate for candidate in candidates if is_compared(candidate, candidates)]
            fastest = min(compared, key=lambda candidate: candidate.runtime.value)
            self.known[cores] = fastest.parallel_efficiency.value
        return self.known[cores]

    def _evaluated(self, cores: int, *, replayed: bool = True) -> list[SplitCandidate]:
        study, drawn = self._study, self._drawn
        return evaluate_all(study, drawn, cores, self._max_memory, replayed=replayed)[0]

    def _further(self, cores: int, steps: int) -> int:
        """Some steps up or down: a core within a node, else a whole node."""
        if cores + steps <= self._node:
            return max(cores + steps, 1)
        return self._node * max(math.ceil(cores / self._node) + steps, 1)

    def _nearest(self, cores: int, low: int, high: int) -> int | None:
        """The nearest number that has a split; None if that is too far."""
        near = (self._further(cores, sign * n) for n in range(_FARTHEST + 1) for sign in (-1, 1))
        return next((n for n in near if low <= n <= high and self.is_possible(n)), None)

    def middle(self, low: int, high: int) -> int | None:
        """A number between two that has a split; None if few are between, or none is near."""
        if self._further(low, _EACH + 1) >= high:
            return None
        inner = self._further(low, 1), self._further(high, -1)
        return self._nearest(self._further(round(math.sqrt(low * high)), 0), *inner)

    def between(self, low: int, high: int) -> list[int]:
        """Numbers between two that have a split, of those next to the lower one."""
        steps = (self._further(low, step) for step in range(1, _EACH + 2))
        return [n for n in takewhile(lambda cores: cores < high, steps) if self.is_possible(n)]

    def ladder(self) -> Iterator[int]:
        """Numbers that have a split, descending: each of few, else near the powers of two."""
        single = range(1, self._node) if self._node <= _EACH else _powers(self._node)
        nodes = self._nodes
        whole = range(1, nodes + 1) if nodes <= _EACH else [*_powers(nodes), nodes]
        most = self._node * nodes
        lower = most + 1
        for rung in reversed([*single, *(self._node * n for n in whole)]):
            possible = self._nearest(rung, 1, most)
            if possible is not None and possible < lower:
                lower = possible
                yield possible


def _powers(limit: int) -> list[int]:
    """Powers of two below a limit."""
    return [2**n for n in range((limit - 1).bit_length())]
