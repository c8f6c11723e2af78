"""Times and instructions of phases in each run, and how the one follows from the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.efficiency.measure import useful_times
from popmodel.fit.common_law import pooled
from popmodel.fit.law import law
from popmodel.fit.samples import Sample
from popmodel.signature.assumed_scaling import SignatureAmount, paths
from popmodel.signature.computing import Timing
from popmodel.signature.law_notes import LawFactor, factor_of, told
from popmodel.signature.outline import OutlineCalls, OutlineWork
from popmodel.signature.toml import Noted, number
from popmodel.signature.toml import number as rounded
from popmodel.structure.bursts import bursts, counted, regions, teams
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.fit.common_law import Pool
    from popmodel.signature.align_runs import RunTable
    from popmodel.signature.assumed_scaling import Key
    from popmodel.signature.computing import Computing
    from popmodel.signature.outline import Node, Outline
    from popmodel.signature.recorded_times import Description
    from popmodel.structure.bursts import Stretches
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
        counts = teams(trace, parallel, parallel.sequence.astype(np.int64), useful)[1]
        if _COUNTER not in counts:
            return None
        inside[_events(structure, parallel, there)] = counts[_COUNTER]
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
    amounts: Mapping[Key, SignatureAmount],
    threads: int,
    factors: Mapping[str, float],
) -> dict[Key, SignatureAmount]:
    """Return the instructions of phases that have no law of them: they grow as their times do."""
    found: dict[Key, SignatureAmount] = {}
    for point, (one, computing) in enumerate(zip(descriptions, outline.points, strict=True)):
        if computing.instructions is None or ("instructions", point) in amounts:
            continue
        parts = max(one.executions, 1) * len(computing.seconds)
        parts *= 1 if outline.teams[point] is None else threads
        factor = str(amounts["seconds", point].formula).partition("*")[2]
        each = number(float(computing.instructions.sum()) / parts / factors.get(factor, 1.0))
        formula = f"{each:g}*{factor}" if factor and each else each
        found["instructions", point] = SignatureAmount(
            formula, note="trace; as its time with P and T"
        )
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
    factor: LawFactor  # By which they grow
    name: str  # Of the factor

    def amount(self, part: int, turns: int) -> SignatureAmount:
        """Instructions of an execution of a part."""
        size = rounded(self.pool.sizes[part].value / turns, _DIGITS)
        note = f"{self.pool.law.origin}: {self.pool.law.form}"
        return SignatureAmount(f"{size:.12g}*{self.name}", self.factor.constants, note)


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
        of = alike([what[index] for index in members])
        home = pool.law.constants["a"].value
        values = tuple(
            pool.law.at(one.processes, one.threads, one.parameters).value / home
            for one in parts[members[0]]
        )
        label = f"instructions {of}"
        notes = tuple(f"{label}: {note}" for note in pool.law.notes)
        laws = (told(label, "1", pool.law, None),)
        meaning = pool.law.constants["a"].meaning
        found.append(Executed(pool, LawFactor(let, constants, values, meaning, laws, notes), name))
    return found


def alike(labels: Sequence[str]) -> str:
    """What a law is of."""
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} alike"


def paced(
    name: str,
    one: Executed,
    times: Mapping[int, Sequence[Sample]],
    parts: Sequence[Sequence[Sample]],
) -> LawFactor:
    """Find the factor on times from that on instructions."""
    first = next(iter(times.values()))
    spent = np.array([[each.value for each in samples] for samples in times.values()]).sum(axis=0)
    done = np.array([[each.value for each in parts[index]] for index in times]).sum(axis=0)
    samples = [
        Sample(run.processes, run.threads, float(time / count), run.parameters)
        for run, time, count in zip(first, spent, done, strict=True)
        if time > 0 and count > 0
    ]
    found = law(samples, hints=("1", "1 + P"))
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
    return LawFactor(
        {**one.factor.let, **let, **whole},
        (*one.factor.constants, *constants),
        values,
        one.factor.meaning,
        (told(label, "s", found, None),),
        tuple(f"{label}: {note}" for note in found.notes),
    )


# What several runs spend at the points of the first one: seconds, and instructions.


ERROR_OF_COUNTS = 0.003
"""Relative error of instructions: what they repeat to between runs."""


class PointTimes:
    """Seconds and instructions of the points of an outline in all runs of a table.

    Of an execution of an average process, in regions of an average thread. Bursts that are known
    together in all runs grow alike, so that their sum is that of each run.
    """

    def __init__(
        self,
        table: RunTable,
        descriptions: Sequence[Description],
        executions: Mapping[tuple[int, ...], NDArray[np.float64]],
    ) -> None:
        self.table, self.descriptions = table, descriptions
        self.outline, self.runs = table.outline, table.rows
        self.processes = np.array([run.processes for run in self.runs], dtype=np.float64)
        # float64[points, runs]: How often each is executed, for each time in the first run.
        self.executions = np.ones((len(self.outline.points), len(self.runs)))
        for path, node in paths(self.outline.body):
            for point in _points(node):
                self.executions[point] = executions[path[:-1]]

    def seconds(self, point: int) -> list[Sample]:
        """Return the seconds in every run; 0 where a run does not execute it."""
        error = _error_of(self.descriptions[point])
        if self.outline.teams[point] is None:
            spent = np.array([run.before for run in self.runs])
            values = self.descriptions[point].mean * self._growth(point, spent, _seconds)
        else:
            useful = [run.teams[point].useful if point in run.teams else 0.0 for run in self.runs]
            values = np.array(useful) * self._turns(point)
        return [
            run.sample(value, error) for run, value in zip(self.runs, values.tolist(), strict=True)
        ]

    def instructions(self, point: int) -> list[Sample] | None:
        """Return the instructions in every run; None where nobody counted them in one of them."""
        computing, one = self.outline.points[point], self.descriptions[point]
        counted = [run.instructions for run in self.runs if run.instructions is not None]
        if computing.instructions is None or len(counted) < len(self.runs):
            return None
        mean = float(computing.instructions.sum()) / (
            len(computing.seconds) * max(one.executions, 1)
        )
        if self.outline.teams[point] is None:
            before = np.array([before for before, _ in counted])
            values = mean * self._growth(point, before, _instructions)
        else:
            site = np.isin(self.table.site, self.table.site[computing.places])
            inside = np.array([float(inside[site].sum()) for _, inside in counted])
            often = np.array([float(run.executions[computing.places].sum()) for run in self.runs])
            threads = np.array([run.threads for run in self.runs])
            each = inside / (self.processes * np.maximum(often, 1.0) * threads)
            values = each * self._turns(point)
            values *= mean / threads[0] / values[0] if values[0] else 0.0
        return [
            run.sample(value, ERROR_OF_COUNTS)
            for run, value in zip(self.runs, values.tolist(), strict=True)
        ]

    def _growth(
        self,
        point: int,
        done: NDArray[np.float64],
        of_point: Callable[[Computing], float],
    ) -> NDArray[np.float64]:
        """What an execution takes over what it takes in the first run, as all bursts around it."""
        points, burst = self.outline.points, self.table.burst
        mine = points[point].places or [points[point].place]
        group = np.isin(burst, burst[mine])
        alike = np.zeros(len(self.runs))
        for number_, one in enumerate(points):
            if self.outline.teams[number_] is None and group[one.places or [one.place]].any():
                alike += of_point(one) * self.executions[number_]
        whole = done[:, group].sum(axis=1) / self.processes
        growth = np.zeros(len(whole))
        np.divide(whole, alike, out=growth, where=alike > 0)
        return growth / growth[0] if growth[0] else np.zeros(len(whole))

    def _turns(self, point: int) -> NDArray[np.float64]:
        """Executions of a region in each run over those that the counts of loops give."""
        mine = self.outline.points[point].places
        often = np.array([run.executions[mine].sum() for run in self.runs])
        given = self.executions[point] * float(often[0])
        turns = np.zeros(len(often))
        np.divide(often, given, out=turns, where=given > 0)
        return turns


def _points(node: Node) -> Iterator[int]:
    """Points of an item, those of rows of calls among them."""

    def of_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[int]:
        for row in rows:
            if "point" in row:
                yield row["point"]
            yield from of_rows(row.get("calls", ()))

    if isinstance(node, OutlineWork):
        yield node.point
    elif isinstance(node, OutlineCalls):
        yield from of_rows(node.rows)


def _seconds(computing: Computing) -> float:
    return computing.total


def _instructions(computing: Computing) -> float:
    return 0.0 if computing.instructions is None else float(computing.instructions.sum())


def _error_of(one: Description) -> float | None:
    """Relative error of a mean, from its interval; None if nobody knows."""
    if one.low is None or one.high is None or not one.low > 0:
        return None
    return max(math.log(one.high / one.low) / (2 * 1.645), 0.01)
