"""All splits of some cores into processes and threads, evaluated in the same draws.

`popmodel.model.choice` judges them and says which to take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from popmodel.errors import UsageError
from popmodel.machine.profile import Profile
from popmodel.metrics.hierarchy import load_families
from popmodel.model.changes import factors_of
from popmodel.model.choice import Candidate, Choice, Evaluated, choose, growth, judge
from popmodel.model.placement import place
from popmodel.model.prediction import MAIN_FAMILY
from popmodel.model.signature import Signature
from popmodel.model.study import Study, check_memory
from popmodel.model.uncertainty import DEFAULT_COUNT, Draws
from popmodel.units import format_size

SCHEMA = "popmodel/sweep/1"

MOST_CORES = 10**9
"""More than any machine has; the divisors of such a number are found at once."""

_REACH = 1000  # how far to look for the nearest number of cores

Step = Callable[[int, int], None]
"""Told how many splits of how many are done."""


@dataclass(frozen=True)
class Refused:
    """A split that is not possible.

    Attributes
    ----------
    processes, threads : int
        The split.
    why : str
        What stands against it.
    """

    processes: int
    threads: int
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Give the split as JSON types."""
        return {"processes": self.processes, "threads": self.threads, "why": self.why}


@dataclass(frozen=True)
class Sweep:
    """All splits of some numbers of cores; made by `sweep`.

    Attributes
    ----------
    signature, profile : Signature, Profile
        Program and machine.
    settings : mapping of str to float
        Value of every parameter of the application.
    what_if : mapping of str to float
        Factors that were applied.
    candidates : tuple of Candidate
        By cores, then by rising threads.
    refused : tuple of Refused
        Splits that are not possible, with the reason.
    choices : tuple of Choice
        One per number of cores.
    draws, seed : int
        Draws behind the intervals and probabilities.
    """

    signature: Signature
    profile: Profile
    settings: Mapping[str, float]
    what_if: Mapping[str, float]
    candidates: tuple[Candidate, ...]
    refused: tuple[Refused, ...]
    choices: tuple[Choice, ...]
    draws: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Give the document, schema ``popmodel/sweep/1``, without provenance."""
        return {
            "schema": SCHEMA,
            "application": {
                "name": self.signature.name,
                "path": self.signature.path,
                "bundled": self.signature.is_bundled,
                "settings": dict(self.settings),
            },
            "machine": {
                "name": self.profile.name,
                "path": self.profile.path,
                "preset": self.profile.is_preset,
                "origin": self.profile.origin,
                "cores_per_node": self.profile.topology.cores_per_node,
            },
            "what_if": dict(self.what_if),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "refused": [one.to_dict() for one in self.refused],
            "best": [list(one.split) for choice in self.choices for one in choice.tied],
            "choices": [choice.to_dict(f"./{self.signature.name}") for choice in self.choices],
            "growth": [one.to_dict() for one in growth(self.choices)],
            "draws": self.draws,
            "seed": self.seed,
        }


def sweep(
    signature: Signature,
    profile: Profile,
    cores: Sequence[int],
    settings: Mapping[str, float] | None = None,
    *,
    what_if: Mapping[str, float] | None = None,
    max_memory: float | None = None,
    draws: int = DEFAULT_COUNT,
    seed: int = 0,
    step: Step | None = None,
) -> Sweep:
    """Evaluate every split of some cores into P processes with T threads, P T = cores.

    Parameters
    ----------
    signature, profile : Signature, Profile
        Application and machine.
    cores : sequence of int
        Numbers of cores to be used.
    settings : mapping of str to float, optional
        Values instead of the signature's parameters.
    what_if : mapping of str to float, optional
        Factors by the words of `popmodel.model.changes.WHAT_IF`.
    max_memory : float, optional
        Bytes that a process may take at most.
    draws, seed : int
        Draws of the uncertain inputs, and their seed.
    step : callable, optional
        Called after every split with the number of splits done and that of all.

    Raises
    ------
    UsageError
        If no split of a number of cores is possible; the message says why the first is not.
    MissingQuantity
        If the profile does not know something that the application needs.
    """
    changes = dict(what_if or {})
    study = Study(signature, profile, settings or {}, draws, seed, factors_of(changes))
    drawn = study.sources()
    by_cores = {count: divisors(count) for count in cores}
    total, done = sum(map(len, by_cores.values())), 0
    evaluated: dict[int, list[Evaluated]] = {}
    refused: list[Refused] = []
    for count, threads_of in by_cores.items():
        found = evaluated[count] = []
        for threads in threads_of:
            try:
                found.append(evaluate(study, drawn, count // threads, threads, max_memory))
            except UsageError as error:
                refused.append(Refused(count // threads, threads, _short(error.message)))
            done += 1
            if step is not None:
                step(done, total)
        if not found:
            raise _impossible(study, count, refused)
    judged = [judge(found) for found in evaluated.values()]
    scores = study.scores(drawn)
    return Sweep(
        signature,
        profile,
        {name: quantity.value for name, quantity in study.params.items()},
        changes,
        tuple(candidate for mine in judged for candidate in mine),
        tuple(refused),
        tuple(choose(mine, profile.topology, scores) for mine in judged),
        draws,
        seed,
    )


def evaluate(
    study: Study, drawn: Draws, processes: int, threads: int, max_memory: float | None = None
) -> Evaluated:
    """Evaluate one split.

    Parameters
    ----------
    study : Study
        Program and machine.
    drawn : Draws
        From ``study.sources``.
    processes, threads : int
        P and T.
    max_memory : float, optional
        Bytes that a process may take at most.

    Raises
    ------
    UsageError
        If the split is not possible.
    """
    placement = place(processes, threads, study.profile.topology)
    study.check(placement)
    run = study.run(placement, drawn)
    check_memory(run.memory, placement, study.profile, study.signature)
    _check_limit(run.memory, max_memory)
    family = load_families()[MAIN_FAMILY]
    metrics = family.evaluate_samples(run.modelled.aggregates, run.modelled.absent)
    efficiency = metrics.values["parallel_efficiency"]
    return Evaluated(placement, run.extent, run.memory, run.modelled.runtime, efficiency)


def divisors(number: int) -> list[int]:
    """Give the divisors of a number of cores, rising.

    Raises
    ------
    UsageError
        If it is more than `MOST_CORES`.
    """
    if number > MOST_CORES:
        raise UsageError(
            f"{number} cores are more than any machine has", f"ask for at most {MOST_CORES}"
        )
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return small + [number // d for d in reversed(small) if d * d != number]


def _check_limit(memory: float | None, limit: float | None) -> None:
    if limit is None:
        return
    if memory is None:
        raise UsageError("the signature does not tell the memory of a process")
    if memory > limit:
        raise UsageError(f"needs {format_size(memory, digits=3)} per process")


def _short(message: str) -> str:
    """The reason alone, without the split that it is about."""
    return message.partition(" is not possible: ")[2] or message


def _impossible(study: Study, count: int, refused: Sequence[Refused]) -> UsageError:
    first = next(one.why for one in refused if one.processes * one.threads == count)
    near = [str(n) for n in nearest_possible(study, count)]
    hint = f"possible: {' or '.join(near)} cores for {study.signature.name}" if near else None
    return UsageError(
        f"{study.signature.name}: no split of {count} cores is possible: {first}", hint
    )


def is_possible(study: Study, cores: int) -> bool:
    """Tell whether some split of the cores fits machine and application, memory aside."""
    for threads in divisors(cores):
        try:
            study.check(place(cores // threads, threads, study.profile.topology))
        except UsageError:
            continue
        return True
    return False


def nearest_possible(study: Study, count: int) -> list[int]:
    """Give the nearest numbers of cores below and above of which some split is possible."""
    topology = study.profile.topology
    top = topology.nodes * topology.cores_per_node
    start = min(count - 1, top)
    below = range(start, max(start - _REACH, 0), -1)
    above = range(count + 1, min(count + _REACH, top) + 1)
    found = (next((n for n in side if is_possible(study, n)), None) for side in (below, above))
    return [n for n in found if n is not None]
