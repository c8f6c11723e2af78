"""Times and instructions of phases in each run, and how the one follows from the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.efficiency.measure import useful_times
from popmodel.fit.common_law import pooled
from popmodel.fit.law import law
from popmodel.fit.samples import Sample
from popmodel.phases.counted import counted
from popmodel.phases.stretches import bursts, regions
from popmodel.phases.teams import measured
from popmodel.signature.assumed_scaling import Amount
from popmodel.signature.computing import Timing
from popmodel.signature.law_notes import Factor, factor_of, told
from popmodel.signature.toml import Noted, number
from popmodel.signature.toml import number as rounded
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.fit.common_law import Pool
    from popmodel.phases.stretches import Stretches
    from popmodel.signature.align_runs import Beside
    from popmodel.signature.assumed_scaling import Key
    from popmodel.signature.outline import Outline
    from popmodel.signature.recorded_times import Description
    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace


# Instructions of what a program computes, where hardware counters of them were traced.


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


# Times of phases as instructions times seconds per instruction, each by a law of its own.
#
# Instructions repeat from run to run where times do not, so that their law tells what every process
# does again from what is divided, and what processes execute for each other. How long an
# instruction
# takes hardly changes with P; where it does, caches or a memory that is shared are behind it.


_DIGITS = 6


@dataclass(frozen=True)
class Executed:
    """Instructions of phases that grow alike, by a law."""

    pool: Pool  # The law, and the size of each part
    factor: Factor  # By which they grow
    name: str  # Of the factor

    def amount(self, part: int, turns: int) -> Amount:
        """Instructions of an execution of a part."""
        size = rounded(self.pool.sizes[part].value / turns, _DIGITS)
        note = f"{self.pool.law.origin}: {self.pool.law.form}"
        return Amount(f"{size:.12g}*{self.name}", self.factor.constants, note)


def executed_by(
    prefix: str, what: Sequence[str], parts: Sequence[Sequence[Sample]], likely: Sequence[str]
) -> list[Executed]:
    """Find the laws of instructions."""
    found = []
    pools = pooled(parts, hints=likely, between=ERROR_OF_COUNTS)
    for order, pool in enumerate(pools, start=1):
        name = f"{prefix}_instructions" + (str(order) if order > 1 else "")
        let, constants = factor_of(name, pool.law)
        members = list(pool.sizes)
        of = _of([what[index] for index in members])
        home = pool.law.constants["a"].value
        values = tuple(
            pool.law.at(one.processes, one.threads, one.parameters).value / home
            for one in parts[members[0]]
        )
        label = f"instructions {of}"
        notes = tuple(f"{label}: {note}" for note in pool.law.notes)
        laws = (told(label, "1", pool.law, None),)
        meaning = pool.law.constants["a"].meaning
        found.append(Executed(pool, Factor(let, constants, values, meaning, laws, notes), name))
    return found


def _of(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} alike"


def paced(
    name: str,
    one: Executed,
    times: Mapping[int, Sequence[Sample]],
    parts: Sequence[Sequence[Sample]],
) -> tuple[Factor, float | None]:
    """Find the factor on times from that on instructions."""
    first = next(iter(times.values()))
    spent = np.array([[each.value for each in samples] for samples in times.values()]).sum(axis=0)
    done = np.array([[each.value for each in parts[index]] for index in times]).sum(axis=0)
    samples = [
        Sample(run.processes, run.threads, float(time / count), run.parameters)
        for run, time, count in zip(first, spent, done, strict=True)
        if time > 0 and count > 0
    ]
    found = law(samples, hints=("1",))
    pace = f"{name}_pace"
    let, constants = factor_of(pace, found)
    home = found.constants["a"].value
    values = tuple(
        value * found.at(run.processes, run.threads, run.parameters).value / home
        for value, run in zip(one.factor.values, first, strict=True)
    )
    label = "seconds per instruction " + one.factor.laws[0]["of"].removeprefix("instructions ")
    whole: dict[str, Any] = {
        name: Noted(f"{one.name}*{pace}", "instructions times seconds per instruction")
    }
    errors = (one.pool.law.error, found.error)
    known = [error for error in errors if error is not None]
    return (
        Factor(
            {**one.factor.let, **let, **whole},
            (*one.factor.constants, *constants),
            values,
            one.factor.meaning,
            (told(label, "s", found, None),),
            tuple(f"{label}: {note}" for note in found.notes),
        ),
        math.hypot(*known) if len(known) == len(errors) else None,
    )


# What several runs spend at the points of the first one: seconds, and instructions.


ERROR_OF_COUNTS = 0.003
"""Relative error of instructions: what they repeat to between runs."""


def seconds(
    outline: Outline, point: int, one: Description, runs: Sequence[Beside], by_run: bool
) -> list[Sample]:
    """Return the seconds of an average process in every run, of an average thread in regions."""
    computing, team = outline.points[point], outline.teams[point]
    error = _error_of(one)
    if team is not None:
        return [run.sample(run.useful(point), error) for run in runs]
    spent = [
        value / run.processes
        for run, value in zip(
            runs, _per_execution(computing.place, runs, "computing", by_run=by_run), strict=True
        )
    ]
    return [
        run.sample(one.mean * value / spent[0] if spent[0] else 0.0, error)
        for run, value in zip(runs, spent, strict=True)
    ]


def executed(
    outline: Outline, point: int, one: Description, runs: Sequence[Beside], by_run: bool
) -> list[Sample] | None:
    """Return the instructions of an average process in every run, of an average thread in regions.

    Parameters are those of `seconds`. None where nobody counted them in one of the runs.
    """
    computing = outline.points[point]
    if computing.instructions is None or any(run.counted is None for run in runs):
        return None
    in_team = outline.teams[point] is not None
    mean = float(computing.instructions.sum()) / (len(computing.seconds) * max(one.executions, 1))
    which = "inside" if in_team else "before"
    found = [
        value / (run.processes * (run.threads if in_team else 1))
        for run, value in zip(
            runs, _per_execution(computing.place, runs, which, by_run=by_run), strict=True
        )
    ]
    first = mean / (runs[0].threads if in_team else 1)
    return [
        run.sample(first * value / found[0] if found[0] else 0.0, ERROR_OF_COUNTS)
        for run, value in zip(runs, found, strict=True)
    ]


def _per_execution(place: int, runs: Sequence[Beside], what: str, *, by_run: bool) -> list[float]:
    """What all processes spend or count at a place, per execution of each or of the first run."""
    base = runs[0]
    group = np.array([place]) if what == "inside" else _group(place, runs)
    own = place if all(run.both[place] for run in runs) else int(group[-1])

    def of(run: Beside) -> float:
        table = run.totals if what == "computing" else run.counted
        often = (run if by_run else base).totals.executions[own]
        return float(getattr(table, what)[group].sum()) / max(float(often), 1.0)

    return [of(run) for run in runs]


def _group(place: int, runs: Sequence[Beside]) -> NDArray[np.int64]:
    """Places around one that end where all runs have a place: their times are known together."""
    common = np.flatnonzero(np.logical_and.reduce([run.both for run in runs]))
    place = len(runs[0].both) - 1 if place < 0 else place
    last = int(common[np.searchsorted(common, place)])
    before = common[common < last]
    return np.arange(int(before[-1]) + 1 if len(before) else 0, last + 1)


def _error_of(one: Description) -> float | None:
    """Relative error of a mean, from its interval; None if nobody knows."""
    if one.low is None or one.high is None or not one.low > 0:
        return None
    return max(math.log(one.high / one.low) / (2 * 1.645), 0.01)
