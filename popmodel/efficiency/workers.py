"""What threads do that no parallel region explains: they are not OpenMP's, or events were lost.

Such a thread's running time is useful like any other, but outside of all regions. Families that
take a process for its master thread do not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.tables import part_of
from popmodel.units import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.efficiency.observables import Observables

NOTEWORTHY = 0.01
"""Share of all thread time from which on it has to be known before the numbers are read."""


def apart(run: Observables) -> bool:
    """Whether workers run or call MPI outside of parallel regions for a noteworthy time."""
    kinds = _kinds(run)
    length = sum(_useful(run)[of].sum() for of in kinds.values()) + run.in_mpi[kinds[_CALL]].sum()
    return bool(length > NOTEWORTHY * run.threads.sum() * run.runtime)


def remarks(run: Observables) -> list[str]:
    """Say which threads do what outside of parallel regions, one sentence for each kind."""
    told = []
    for what, of in _kinds(run).items():
        if not of.any():
            continue
        useful, in_mpi = _useful(run)[of].sum(), run.in_mpi[of].sum()
        times = [f"{useful:.3g} s of useful time, counted outside regions"] if useful else []
        if in_mpi and what == _CALL:
            times.append(f"{in_mpi:.3g} s in MPI")
        told.append(f"{_who(run, of)} {what[int(of.sum() > 1)]} ({', '.join(times)})")
    if told and run.has_mpi:
        told[-1] += (
            "; the families mpi and mpi-additive count master threads only, hybrid-additive and "
            "talp all"
        )
    return told


# What one thread does, and what several do.
_CALL = (
    "calls MPI but belongs to no parallel region",
    "call MPI but belong to no parallel region",
)
_RUN = ("runs but belongs to no parallel region", "run but belong to no parallel region")
_BESIDE = ("also runs outside its parallel regions", "also run outside their parallel regions")


def _kinds(run: Observables) -> dict[tuple[str, str], NDArray[np.bool_]]:
    """Which threads are of a kind, in words for one and for several."""
    worker = np.ones(len(run.useful), dtype=bool)
    worker[run.masters] = False
    in_region = run.omp_useful > 0
    calls = run.in_mpi > 0
    runs = _useful(run) > 0
    return {
        _CALL: worker & ~in_region & calls,
        _RUN: worker & ~in_region & ~calls & runs,
        _BESIDE: worker & in_region & runs,
    }


def _useful(run: Observables) -> NDArray[np.float64]:
    return run.useful - run.omp_useful


def _who(run: Observables, of: NDArray[np.bool_]) -> str:
    """Processes and threads of some threads: ``rank 0: threads 1-3``."""
    which = np.flatnonzero(of)
    process = part_of(run.masters, which)
    threads: dict[int, list[int]] = {}
    for rank, thread in zip(process.tolist(), (which - run.masters[process]).tolist(), strict=True):
        threads.setdefault(rank, []).append(thread)
    first = next(iter(threads.values()))
    ranks = [rank for rank, mine in threads.items() if mine == first]
    named = f"{_numbers('rank', ranks)}: {_numbers('thread', first)}"
    others = len(threads) - len(ranks)
    return f"{named} and others of {plural(others, 'process', 'processes')}" if others else named


def _numbers(noun: str, numbers: Sequence[int]) -> str:
    """``thread 1``, ``threads 1-3`` or ``threads 1-3, 7``; they ascend."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    listed = ", ".join("-".join(map(str, run)) for run in runs)
    return f"{noun}{'s' if len(numbers) > 1 else ''} {listed}"
