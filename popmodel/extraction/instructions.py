"""Instructions of what a program computes, where hardware counters of them were traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.efficiency.measure import useful_times
from popmodel.extraction.amounts import Amount
from popmodel.extraction.computing import Timing
from popmodel.extraction.written import number
from popmodel.phases.counted import counted
from popmodel.phases.stretches import bursts, regions
from popmodel.phases.teams import measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.extraction.amounts import Key
    from popmodel.extraction.outline import Outline
    from popmodel.extraction.spread import Description
    from popmodel.phases.stretches import Stretches
    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace

_COUNTER = "instructions"


def instructions(trace: Trace, structure: Structure) -> Timing | None:
    """Count the instructions of what is computed before, in and behind the events of a run."""
    if not trace.timed or not trace.records.counter_names():
        return None
    events, useful = structure.events, useful_times(trace)
    serial, parallel = bursts(structure, trace), regions(structure)
    location = np.asarray(trace.process_offsets[:-1], np.int64)[serial.sequence]
    outside = counted(trace, useful.running, location, serial.begin, serial.end)[0].get(_COUNTER)
    if outside is None:
        return None
    before, inside = np.zeros(len(events)), np.zeros(len(events))
    acting = serial.place >= 0
    before[_events(structure, serial, acting)] = outside[acting]
    if len(parallel):
        there = np.ones(len(parallel), bool)
        teams = measured(trace, parallel, parallel.sequence.astype(np.int64), useful)
        if _COUNTER not in teams.counts:
            return None
        inside[_events(structure, parallel, there)] = teams.counts[_COUNTER]
    sequences = structure.program.sequences
    after = np.bincount(serial.sequence[~acting], outside[~acting], sequences).astype(np.float64)
    return Timing(before, inside, after)


def _events(structure: Structure, rows: Stretches, which: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The events of some stretches, by sequence, place and execution, which no other one has."""
    executions = int(structure.execution.max(initial=0)) + 1
    places = len(structure.places)

    def key(
        sequence: NDArray[np.int64], place: NDArray[np.int32], execution: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        return (sequence.astype(np.int64) * places + place) * executions + execution

    every = key(structure.events.sequence, structure.place, structure.execution.astype(np.int64))
    order = np.argsort(every, kind="stable")
    wanted = key(rows.sequence[which].astype(np.int64), rows.place[which], rows.execution[which])
    return order[np.searchsorted(every[order], wanted)]


def instructed(
    outline: Outline,
    descriptions: Sequence[Description],
    amounts: Mapping[Key, Amount],
    threads: int,
    factors: Mapping[str, float],
) -> dict[Key, Amount]:
    """Return the instructions of phases that have no law of them: they grow as their times do."""
    found: dict[Key, Amount] = {}
    for point, (one, computing) in enumerate(zip(descriptions, outline.points, strict=True)):
        if computing.instructions is None or ("instructions", point) in amounts:
            continue
        parts = max(one.executions, 1) * len(computing.seconds)
        parts *= 1 if outline.teams[point] is None else threads
        factor = str(amounts["seconds", point].formula).partition("*")[2]
        each = number(float(computing.instructions.sum()) / parts / factors.get(factor, 1.0))
        formula = f"{each:g}*{factor}" if factor and each else each
        found["instructions", point] = Amount(formula, note="trace; as its time with P and T")
    return found
