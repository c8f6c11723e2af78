"""How the times of one thing differ over processes and executions, in few numbers.

A phase takes ``d[p, k]`` on process p at execution k. What is kept of it, from the least on:

- the mean;
- ``by_rank``: the mean of each process over that of all, which lasts (persistent imbalance);
- ``quantiles``: how executions of a process differ from its mean (transient imbalance), as the
  means of equal parts of the sorted relative times: heavy tails stay, in the last of them;
- the recorded times, where the runtime depends on which processes are slow at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.values import dataclass
from popmodel.fit.samples import student
from popmodel.network.network import PRESETS
from popmodel.signatures.outline import Timing, own_times, retimed
from popmodel.simulator import replay

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from popmodel.signatures.outline import OutlinePoint
    from popmodel.simulator import Program
    from popmodel.structure.structure import Structure

_NS = 1e9
PARTS = (2, 3, 5, 9, 17, 33, 65)  # numbers of quantiles that are tried, the fewest first
_KEPT = 0.02  # of the expected excess of the slowest process that quantiles may lose
_STEADY = 0.003  # coefficient of variation that no quantiles are asked to keep
_SLIGHT = 1e-4  # share of the time of a program times coefficient of variation: not written below
_MANY = 2  # times all values: executions of which those that are no whole time hardly count
_GOAL = 0.005  # by how much runtime (relative) and efficiencies of the written times may be off
_SEEDS = (1, 2)


@dataclass(frozen=True)
class Description:
    """The times of a thing."""

    mean: float  # Mean of all times that there are, s
    # 90 % interval of the mean, from how executions differ; None where there is one execution.
    low: float | None
    high: float | None
    executions: int  # Of the process with the most of them
    # Mean time of each process over that of all; empty where they hardly differ.
    by_rank: tuple[float, ...] = ()
    # Relative times of the executions of a process; empty where they hardly differ.
    quantiles: tuple[float, ...] = ()
    # Coefficients of variation of both.
    persistent_cv: float = 0.0
    transient_cv: float = 0.0


def describe(times: NDArray[np.float64], share: float = 1.0, turns: int = 0) -> Description:
    """Describe times of processes and executions, to be executed so many times."""
    there = np.isfinite(times)
    count = there.sum(axis=1)
    total = np.where(there, times, 0.0).sum(axis=1)
    # A process that never executes it takes no time for it: the mean is over all of them.
    turns = turns or int(count.max(initial=0))
    each = total / max(turns, 1)
    mean = float(each.mean()) if len(each) else 0.0
    if not mean > 0:
        return Description(0.0, None, None, turns)
    relative, weight = _own(times, there)
    cv = math.sqrt(float(weight @ (relative - 1) ** 2)) if relative.size else 0.0
    persistent = math.sqrt(max(float((each / mean).var()) - cv**2 / max(turns, 1), 0.0))
    low, high = _interval(times, there, mean, turns)
    return Description(
        mean,
        low,
        high,
        turns,
        tuple((each / mean).tolist()) if share * float((each / mean).std()) > _SLIGHT else (),
        quantiles(relative, weight, len(times), turns, share * cv) if share * cv > _SLIGHT else (),
        persistent,
        cv,
    )


def _own(
    times: NDArray[np.float64], there: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times beside those of the others and of the own process on average, by what they weigh.

    What all processes share, such as executions that are slow on all of them, makes nobody wait:
    drawn for each process on its own, the same times would. Long executions weigh most.
    """
    known = np.where(there, times, 0.0)
    of_turn = known.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    weight = np.where(there, of_turn, 0.0)
    level = np.divide(known, of_turn, out=np.zeros_like(known), where=weight > 0)
    whole = weight.sum(axis=1, keepdims=True)
    of_rank = np.divide(known.sum(axis=1, keepdims=True), whole, out=np.ones_like(whole),
                        where=whole > 0)  # fmt: skip
    relative = np.divide(level, of_rank, out=np.ones_like(level), where=of_rank > 0)
    counts = weight > 0
    return relative[counts], weight[counts] / (weight[counts].sum() or 1.0)


def _interval(
    times: NDArray[np.float64], there: NDArray[np.bool_], mean: float, turns: int
) -> tuple[float | None, float | None]:
    """90 % of the mean over executions: those of all processes at once may be slow together."""
    columns = times.shape[1]
    if columns < 2:
        return None, None
    of_turn = np.where(there, times, 0.0).sum(axis=0) / len(times) * (columns / turns)
    half = student(columns - 1) * float(of_turn.std(ddof=1)) / math.sqrt(columns)
    return max(mean - half, 0.0), mean + half


def quantiles(
    relative: NDArray[np.float64],
    weight: NDArray[np.float64],
    processes: int,
    turns: int,
    varying: float = 1.0,
) -> tuple[float, ...]:
    """Return the fewest values that keep how slow the slowest of some processes is.

    A process takes each of them once before it takes one again: where their number divides its
    executions, it computes as long in all of them together as it did. Each step of ten in what
    varies, their share of all time times their variation, is worth twice as many.
    """
    order = np.argsort(relative)
    ordered, weight = relative[order], weight[order]
    goal = _slowest(ordered, weight, processes)
    worth = min(max(round(2 * math.log10(varying / _SLIGHT)), 0), len(PARTS) - 1)
    most = min(PARTS[worth], turns, len(ordered))
    numbers = [parts for parts in range(2, most + 1) if turns % parts == 0]
    if turns > _MANY * PARTS[-1]:
        numbers = [parts for parts in PARTS if parts <= most]
    for parts in numbers or [parts for parts in PARTS if parts < most]:
        found = _parts(ordered, weight, parts)
        equal = np.full(parts, 1 / parts)
        if abs(_slowest(found, equal, processes) - goal) <= _KEPT * max(goal - 1, _STEADY):
            return tuple(found.tolist())
    return tuple(_parts(ordered, weight, max(numbers, default=most)).tolist())


def _parts(
    ordered: NDArray[np.float64], weight: NDArray[np.float64], parts: int
) -> NDArray[np.float64]:
    """Means of equal parts of sorted values; a value between two parts belongs to both."""
    passed = np.concatenate([[0.0], np.cumsum(weight)])
    sums = np.concatenate([[0.0], np.cumsum(ordered * weight)])
    edges = np.interp(np.linspace(0, passed[-1], parts + 1), passed, sums)
    return np.asarray(np.diff(edges) * parts / passed[-1], dtype=np.float64)


def _slowest(ordered: NDArray[np.float64], weight: NDArray[np.float64], processes: int) -> float:
    """Expected largest of so many independent draws from sorted values."""
    passed = np.concatenate([[0.0], np.cumsum(weight)])
    below = (passed / passed[-1]) ** max(processes, 2)
    return float(ordered @ np.diff(below))


def drawn(
    description: Description, there: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return times as the description has them: a draw, float64[P, n]; nan where there is none."""
    processes, turns = there.shape
    count = there.sum(axis=1)
    of_rank = np.array(description.by_rank or np.ones(processes))
    own = description.mean * of_rank * description.executions / np.maximum(count, 1)
    found = np.repeat(own[:, None], turns, axis=1)
    if description.quantiles:
        values = np.array(description.quantiles)
        for number in np.unique(count[count > 1]).tolist():
            # every value as often as its share, so that the sum stays what it is
            pool = values[np.arange(number) * len(values) // number]
            mine = there & (count == number)[:, None]
            pools = np.tile(pool / pool.mean(), (int((count == number).sum()), 1))
            found[mine] *= rng.permuted(pools, axis=1).ravel()
    return np.where(there, found, np.nan)


# Which times of a run its signature has to keep, so that its replay takes as long.
#
# Means by process keep the work of everybody, quantiles how often somebody is late. Neither keeps
# who is late together, and on what the runtime depends is found out by trying: the program with the
# times as they would be written is replayed on the ideal network, beside the program with those
# that were traced. As few points as will do, those that vary most first, keep their recorded times.


@dataclass(frozen=True)
class ReplayFigures:
    """Of a replay on the ideal network."""

    runtime: float  # Seconds
    # Mean over largest computing of a process, and that over the runtime; 1 for an empty run.
    load_balance: float
    communication: float

    @property
    def parallel(self) -> float:
        """Their product: the parallel efficiency."""
        return self.load_balance * self.communication

    def to_dict(self) -> dict[str, float]:
        """Return them by the names that metrics have."""
        return {
            "runtime": self.runtime,
            "parallel_efficiency": self.parallel,
            "load_balance": self.load_balance,
            "communication_efficiency": self.communication,
        }

    def off(self, other: ReplayFigures) -> float:
        """By how much they are off what another replay found, the most of all."""
        relative = abs(self.runtime / other.runtime - 1) if other.runtime else 0.0
        return max(
            relative,
            abs(self.load_balance - other.load_balance),
            abs(self.communication - other.communication),
            abs(self.parallel - other.parallel),
        )


def figures(program: Program) -> ReplayFigures:
    """Replay a program on the ideal network."""
    execution = replay(program, PRESETS["ideal"])
    compute, runtime = execution.compute, execution.runtime
    longest = float(compute.max(initial=0.0))
    if not longest or not runtime:
        return ReplayFigures(runtime, 1.0, 1.0)
    return ReplayFigures(runtime, float(compute.mean()) / longest, longest / runtime)


@dataclass(frozen=True)
class Fidelity:
    """What of the times is kept, and what that gives."""

    descriptions: tuple[Description, ...]  # Of each point
    recorded: frozenset[int]  # Points whose recorded times are kept
    # Of the program as traced, and as it is written.
    traced: ReplayFigures
    written: ReplayFigures


def kept(structure: Structure, points: Sequence[OutlinePoint]) -> Fidelity:
    """Choose what to keep of the times of a program."""
    total = sum(point.total for point in points) or 1.0
    descriptions = tuple(
        describe(point.seconds, point.total / total, point.turns) for point in points
    )
    goal = figures(own_times(structure))

    def written(recorded: Collection[int], seed: int) -> ReplayFigures:
        rng = np.random.default_rng(seed)
        events = len(structure.events)
        before, inside = np.zeros(events), np.zeros(events)
        after = np.zeros(structure.program.sequences)
        for number, (point, times) in enumerate(zip(points, descriptions, strict=True)):
            there = point.there
            seconds = point.seconds if number in recorded else drawn(times, there, rng)
            if point.place < 0:
                after += np.nan_to_num(seconds[:, 0]) * _NS
            else:
                column = inside if point.in_region else before
                column[point.event[there]] = seconds[there] * _NS
        return figures(retimed(structure, Timing(before, inside, after)))

    def off(recorded: Collection[int]) -> float:
        return max(written(recorded, seed).off(goal) for seed in _SEEDS)

    varying = _by_variation(points, descriptions)
    least, most = 0, len(varying)
    if off(()) > _GOAL:
        least = 1
        while least < most:  # the fewest that will do, if more are never worse
            middle = (least + most) // 2
            if off(varying[:middle]) <= _GOAL:
                most = middle
            else:
                least = middle + 1
    recorded = frozenset(varying[:least])
    return Fidelity(descriptions, recorded, goal, written(recorded, _SEEDS[0]))


def _by_variation(points: Sequence[OutlinePoint], descriptions: Sequence[Description]) -> list[int]:
    """Points whose times vary, by how many seconds they are beside the means of processes."""
    beside = np.zeros(len(points))
    for number, (point, times) in enumerate(zip(points, descriptions, strict=True)):
        if times.transient_cv > 0:
            own = np.nansum(point.seconds, axis=1) / np.maximum(point.there.sum(axis=1), 1)
            beside[number] = float(np.nansum(np.abs(point.seconds - own[:, None])))
    order = np.argsort(-beside, kind="stable")
    return [int(number) for number in order if beside[number] > 0]
