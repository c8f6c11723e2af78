"""The document of the phases of a run, schema ``popmodel/phases/1``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.arrays import quantiles
from popmodel.base.plain import document
from popmodel.structure.phase_variation import Causes, causes, idle_regions, interruptions, remark
from popmodel.structure.traffic import calls_in_part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.phases import Phase, Phases
    from popmodel.structure.structure import Structure
    from popmodel.traces import Trace
    from popmodel.traces.selection import TraceFocus

_BINS = 24
_QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}


def described(
    path: str,
    structure: Structure,
    whole: Trace,
    found: Phases,
    trace: Trace,
    focus: TraceFocus,
    caveats: Sequence[str],
) -> dict[str, Any]:
    """Describe phases as plain data."""
    owner = structure.program.owner.astype(np.int64)
    sums = _Sums(found, owner)
    balance = causes(sums.useful, sums.instructions, sums.cycles)
    broken = interruptions(found)
    told = [text for text in (remark(broken), idle_regions(found)) if text]
    iterations = _iterations(structure, found)
    return document(
        "popmodel/phases/1",
        trace=path,
        processes=found.processes,
        threads=int(trace.locations),
        analysed=focus,
        caveats=[*caveats, *told],
        notes=[*found.notes, *structure.notes],
        iterations=iterations,
        computing=found.seconds,
        useful=float(sums.useful.sum()),
        load_balance=_balance(balance),
        interrupted={"bursts": broken.bursts, "time": broken.lost, "share": broken.share},
        phases=[_of_phase(found, phase, owner, balance) for phase in found.phases],
        calls=[
            {
                "name": use.name,
                "calls": use.calls,
                "per_process": use.calls / found.processes,
                "per_iteration": use.calls / (found.processes * iterations) if iterations else None,
                "time": use.time if trace.timed else None,
                "computing_before": use.before,
                "bytes": use.bytes,
            }
            for use in calls_in_part(structure, whole, found.begin, found.end)
        ],
    )


class _Sums:
    """Sums over phases by process; None where a phase lacks the counter."""

    def __init__(self, found: Phases, owner: NDArray[np.int64]) -> None:
        self.useful = np.zeros(found.processes)
        for phase in found.phases:
            self.useful += _by_process(phase, phase.useful, owner, found.processes)
        self.instructions = _summed(found, "instructions", owner)
        self.cycles = _summed(found, "cycles", owner)


def _summed(found: Phases, name: str, owner: NDArray[np.int64]) -> NDArray[np.float64] | None:
    columns = [getattr(phase, name) for phase in found.phases]
    if not columns or any(column is None for column in columns):
        return None
    total = np.zeros(found.processes)
    for phase, column in zip(found.phases, columns, strict=True):
        total += _by_process(phase, column, owner, found.processes)
    return total


def _by_process(
    phase: Phase, values: NDArray[np.float64], owner: NDArray[np.int64], processes: int
) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = np.bincount(owner[phase.sequence], values, processes).astype(
        np.float64
    )
    return sums


def _balance(found: Causes | None) -> dict[str, Any] | None:
    if found is None:
        return None
    factors = {name: getattr(found, name) for name in ("instructions", "ipc", "frequency")}
    return {"value": found.balance, "process": found.process, **factors, "main": found.main}


def _of_phase(
    found: Phases, phase: Phase, owner: NDArray[np.int64], balance: Causes | None
) -> dict[str, Any]:
    useful = _by_process(phase, phase.useful, owner, found.processes)
    counted = {
        name: None if values is None else _by_process(phase, values, owner, found.processes)
        for name, values in (("instructions", phase.instructions), ("cycles", phase.cycles))
    }
    instructions, cycles = counted["instructions"], counted["cycles"]
    spread = phase.imbalance
    excess = None if balance is None else float(useful[balance.process] - useful.mean())
    quantiles = phase.quantiles(tuple(_QUANTILES.values()))
    return {
        "name": phase.name,
        "kind": phase.kind,
        "place": phase.place,
        "path": phase.path,
        "part": phase.part or None,
        "small": phase.small,
        "executions": phase.executions,
        "processes": int(np.count_nonzero(np.bincount(owner[phase.sequence]))),
        "time": float(phase.wall.sum()),
        "share": found.share(phase),
        "useful": float(phase.useful.sum()),
        "duration": {
            "mean": float(phase.wall.mean()),
            **dict(zip(_QUANTILES, quantiles, strict=True)),
            "min": float(phase.wall.min()),
            "max": float(phase.wall.max()),
        },
        "persistent": spread.persistent,
        "transient": spread.transient,
        "common": spread.common,
        "by_process": [None if np.isnan(one) else one for one in spread.by_rank.tolist()],
        "excess": excess,
        "load_balance": _balance(causes(useful, instructions, cycles)),
        "instructions": None if instructions is None else float(instructions.sum()),
        "cycles": None if cycles is None else float(cycles.sum()),
        "ipc": _quotient(instructions, cycles),
        "frequency": _quotient(cycles, useful),
        "team": _team(phase),
        "histogram": _histogram(phase),
    }


def _quotient(above: NDArray[np.float64] | None, below: NDArray[np.float64] | None) -> float | None:
    if above is None or below is None or not below.sum() > 0:
        return None
    return float(above.sum() / below.sum())


def _team(phase: Phase) -> dict[str, Any] | None:
    """Threads inside a parallel region."""
    if phase.team is None:
        return None
    return {
        "threads": int(phase.team.threads.max()),
        "imbalance": phase.team.imbalance,
        "busiest": phase.team.worst,
        "by_thread": phase.team.by_thread.tolist(),
        "overhead": phase.overhead,
    }


def _histogram(phase: Phase) -> dict[str, list[float]]:
    """How often executions take how long; the outermost thousandths are in the outer bins."""
    values = phase.uncut
    if len(values) == 1:
        return {"edges": [float(values[0])] * 2, "counts": [1]}
    low, high = quantiles(values, (0.001, 0.999))
    bins = min(_BINS, max(2, math.ceil(2 * math.sqrt(len(values)))))
    if not high > low:
        return {"edges": [low, high], "counts": [len(values)]}
    logarithmic = low > 0 and high > 10 * low
    edges = (np.geomspace if logarithmic else np.linspace)(low, high, bins + 1)
    counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def _iterations(structure: Structure, found: Phases) -> float | None:
    """Iterations that lie in what is analysed, parts of them included; None without any."""
    if structure.loop is None or len(structure.iterations) < 2:
        return None
    begins, turns = structure.iterations, np.arange(len(structure.iterations))
    held = [
        float(np.interp(last, begins[:, mine], turns) - np.interp(first, begins[:, mine], turns))
        for mine, (first, last) in enumerate(zip(found.begin, found.end, strict=True))
    ]
    return sum(held) / len(held) or None
