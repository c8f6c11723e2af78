"""All splits of some cores into processes and threads, and which of them to take.

Every split is evaluated in the same draws of the uncertain inputs, so that what is common to all
(a memory that may be faster than assumed) does not blur which is best. A choice is judged by its
expected regret: how much longer it takes than the best of each draw, on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.errors import UsageError
from popmodel.machine.profile import Profile
from popmodel.model.changes import factors_of
from popmodel.model.placement import Placement, launch_line, mpirun_line, place
from popmodel.model.prediction import MAIN_FAMILY, Estimate
from popmodel.model.signature import Signature
from popmodel.model.study import Study, check_memory, estimate
from popmodel.model.uncertainty import DEFAULT_COUNT
from popmodel.units import format_size

SCHEMA = "popmodel/sweep/1"

WITHIN = 0.02
"""Splits that are no more than this part slower than the best are as good as it."""
LIKELY = 0.1
"""Probability of being as good as the best from which a split is in the tie set."""


@dataclass(frozen=True)
class Candidate:
    """One split, evaluated.

    Attributes
    ----------
    placement : Placement
        Processes, threads, nodes.
    grid : tuple of int
        Processes along each grid dimension; empty without a grid.
    runtime, parallel_efficiency : Estimate
        Runtime, s, and parallel efficiency.
    memory_per_process : float or None
        Bytes, if the signature tells.
    probability_best, probability_tied : float
        Share of the draws in which it is the fastest of its cores, and no more than `WITHIN`
        slower than the fastest.
    regret : float
        Expected time above the best of each draw, relative.
    """

    placement: Placement
    grid: tuple[int, ...]
    runtime: Estimate
    parallel_efficiency: Estimate
    memory_per_process: float | None
    probability_best: float
    probability_tied: float
    regret: float

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
        }


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
    defaults : mapping of str to float
        Runtime of usual choices relative to that of `taken`, minus 1.
    """

    cores: int
    taken: Candidate
    tied: tuple[Candidate, ...]
    defaults: Mapping[str, float]


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
    refused : tuple of (int, int, str)
        Splits that are not possible, with the reason.
    choices : tuple of Choice
        One per number of cores.
    doubtful : mapping of str to float
        Share of uncertain inputs in the variance of the runtime of the first choice.
    draws, seed : int
        Draws behind the intervals and probabilities.
    """

    signature: Signature
    profile: Profile
    settings: Mapping[str, float]
    what_if: Mapping[str, float]
    candidates: tuple[Candidate, ...]
    refused: tuple[tuple[int, int, str], ...]
    choices: tuple[Choice, ...]
    doubtful: Mapping[str, float]
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
            "refused": [
                {"processes": processes, "threads": threads, "why": why}
                for processes, threads, why in self.refused
            ],
            "best": [
                [one.placement.processes, one.placement.threads]
                for choice in self.choices
                for one in choice.tied
            ],
            "choices": [
                {
                    "cores": choice.cores,
                    "take": [choice.taken.placement.processes, choice.taken.placement.threads],
                    "tied": [
                        [one.placement.processes, one.placement.threads] for one in choice.tied
                    ],
                    "regret": choice.taken.regret,
                    "defaults": dict(choice.defaults),
                    "launch": launch_line(choice.taken.placement, f"./{self.signature.name}"),
                    "launch_mpirun": mpirun_line(
                        choice.taken.placement, f"./{self.signature.name}"
                    ),
                }
                for choice in self.choices
            ],
            "doubtful": dict(self.doubtful),
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
    candidates: list[Candidate] = []
    refused: list[tuple[int, int, str]] = []
    choices: list[Choice] = []
    doubtful: Mapping[str, float] | None = None
    for count in dict.fromkeys(cores):
        found: list[tuple[Placement, Any]] = []
        for threads in _divisors(count):
            try:
                placement = place(count // threads, threads, profile.topology)
                study.check(placement)
                run = study.run(placement, drawn)
                check_memory(run.memory, placement, profile, signature)
                _check_limit(run.memory, max_memory)
            except UsageError as error:
                refused.append((count // threads, threads, _short(error.message)))
                continue
            found.append((placement, run))
        if not found:
            first = next(why for p, t, why in refused if p * t == count)
            raise UsageError(
                f"{signature.name}: no split of {count} cores is possible: {first}",
                _nearest(signature, study, profile, count),
            )
        mine = _judged(found)
        candidates += mine
        choices.append(_choice(count, mine, profile))
        if doubtful is None:
            best = choices[0].taken.placement
            runtime = next(run.modelled.runtime for where, run in found if where == best)
            doubtful = study.doubtful(drawn, runtime)
    return Sweep(
        signature,
        profile,
        {name: quantity.value for name, quantity in study.params.items()},
        changes,
        tuple(candidates),
        tuple(refused),
        tuple(choices),
        doubtful or {},
        draws,
        seed,
    )


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


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


def _nearest(signature: Signature, study: Study, profile: Profile, count: int) -> str | None:
    """Name the nearest numbers of cores of which some split is possible."""

    def possible(cores: int) -> bool:
        for threads in _divisors(cores):
            try:
                placement = place(cores // threads, threads, profile.topology)
                study.check(placement)
            except UsageError:
                continue
            return True
        return False

    below = next((n for n in range(count - 1, 0, -1) if possible(n)), None)
    above = next((n for n in range(count + 1, 2 * count + 1) if possible(n)), None)
    near = [str(n) for n in (below, above) if n is not None]
    return f"possible: {' or '.join(near)} cores for {signature.name}" if near else None


def _judged(found: Sequence[tuple[Placement, Any]]) -> list[Candidate]:
    """Compare the splits of one number of cores draw by draw."""
    count = max(np.size(run.modelled.runtime) for _, run in found)
    times: NDArray[np.float64] = np.array(
        [np.broadcast_to(run.modelled.runtime, count) for _, run in found]
    )
    drawn = times[:, 1:] if count > 1 else times
    best = drawn.min(axis=0)
    winners = np.bincount(drawn.argmin(axis=0), minlength=len(found)) / drawn.shape[1]
    tied = (drawn <= best * (1 + WITHIN)).mean(axis=1)
    regret = (drawn / best - 1).mean(axis=1)
    return [
        Candidate(
            placement,
            run.extent,
            estimate(run.modelled.runtime),
            estimate(_parallel_efficiency(run.modelled.aggregates)),
            run.memory,
            float(winners[index]),
            float(tied[index]),
            float(regret[index]),
        )
        for index, (placement, run) in enumerate(found)
    ]


def _parallel_efficiency(aggregates: Mapping[str, Any]) -> Any:
    """Give the parallel efficiency, as the main family defines it."""
    from popmodel.metrics.hierarchy import load_families

    family = load_families()[MAIN_FAMILY]
    return family.evaluate_samples(aggregates, {}).values["parallel_efficiency"]


def _choice(cores: int, candidates: Sequence[Candidate], profile: Profile) -> Choice:
    ranked = sorted(candidates, key=lambda one: (one.regret, one.placement.threads))
    taken = ranked[0]
    tied = tuple(one for one in ranked if one is taken or one.probability_tied > LIKELY)
    socket = profile.topology.cores_per_socket
    usual = {"all MPI": 1, "one process per socket": min(socket, cores)}
    defaults = {
        name: one.runtime.value / taken.runtime.value - 1
        for name, threads in usual.items()
        for one in candidates
        if one.placement.threads == threads
    }
    return Choice(cores, taken, tied, defaults)
