"""Did a program become slower, and which factor of its runtime moved?

The runtime of a run is the product of what it is made of (POP Standard Metrics, multiplicative)::

    runtime = useful time / (threads x parallel efficiency)
    useful time = instructions / (IPC x frequency)
    parallel efficiency = load balance x communication efficiency x thread efficiency
    communication efficiency = serialisation x transfer

so the logarithms of the changes of the factors add up to that of the runtime, exactly, also for
geometric means over repeats. Whether a value changed is decided by the rank test of Mann and
Whitney (Ann. Math. Statist. 18, 1947) in its exact form: it assumes no distribution of the noise
and knows no threshold. That of `scipy.stats` is exact without ties only, and slow to import.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from popmodel.base.errors import PopmodelError
from popmodel.base.units import count, format_time, plural, team
from popmodel.base.values import dataclass, plain
from popmodel.runs.run_history import HistoryLine

LAST = 10
"""Runs that new ones are compared with."""
FEWEST = 3
"""Runs on each side without which nothing is decided: of 3 and 3 the least p is .05."""
LEVEL = 0.05
"""Chance that unchanged code is called slower."""

FACTORS: Mapping[str, tuple[str, int]] = {
    "useful_time": ("Useful time", 1),
    "instructions": ("Instructions", 1),
    "ipc": ("IPC", -1),
    "frequency": ("Frequency", -1),
    "parallel_efficiency": ("Parallel efficiency", -1),
    "load_balance": ("Load balance", -1),
    "communication": ("Communication efficiency", -1),
    "serialisation": ("Serialisation", -1),
    "transfer": ("Transfer", -1),
    "thread_efficiency": ("Thread efficiency", -1),
}
"""Names of factors, and the power with which each stands in the runtime."""
_PARTS: Mapping[str, tuple[str, ...]] = {
    "useful_time": ("instructions", "ipc", "frequency"),
    "parallel_efficiency": ("load_balance", "communication", "thread_efficiency"),
    "communication": ("serialisation", "transfer"),
}
_OF_CALLS = ("communication", "serialisation", "transfer")
_SAME_PLACE = 0.8  # of the largest growth, from which on the place with least time is meant


def runtime_factors(aggregates: Mapping[str, float], *, has_mpi: bool) -> dict[str, float]:
    """Return the factors of a runtime, those that are known.

    Parameters
    ----------
    aggregates : mapping
        As `Observables.aggregates` gives them: times in s, counts.
    has_mpi : bool
        Whether the program calls MPI; without, its parallel efficiency is not divided.

    Returns
    -------
    dict
        By the names of `FACTORS`: s, instructions, instructions per cycle, Hz and fractions. A
        factor that is 0 or unknown is left out; what it is a part of stands for it.
    """
    runtime, outside = aggregates["runtime"], aggregates.get("outside_mpi_max", 0.0)
    quotients = {
        "useful_time": (aggregates["useful_sum"], 1.0),
        "parallel_efficiency": (aggregates["useful_mean"], runtime),
    }
    if has_mpi:
        ideal = aggregates.get("ideal_runtime", 0.0)
        between = aggregates.get("outside_mpi_mean", 0.0)
        quotients |= {
            "load_balance": (between, outside),
            "communication": (outside, runtime),
            "serialisation": (outside, ideal),
            "transfer": (ideal, runtime),
            "thread_efficiency": (aggregates["useful_mean"], between),
        }
    if "instructions_sum" in aggregates and "cycles_sum" in aggregates:
        instructions, cycles = aggregates["instructions_sum"], aggregates["cycles_sum"]
        quotients |= {
            "instructions": (instructions, 1.0),
            "ipc": (instructions, cycles),
            "frequency": (cycles, aggregates["useful_sum"]),
        }
    return {
        name: above / below for name, (above, below) in quotients.items() if above > 0 and below > 0
    }


def rank_test(old: Sequence[float], new: Sequence[float]) -> float:
    """Return the exact p value of the test of Mann and Whitney that new values are not larger.

    Parameters
    ----------
    old, new : sequence of float
        Two samples, shapes (n,) and (m,); ties have their mean rank.

    Returns
    -------
    float
        The chance that a random division of all values into n and m gives the m ranks that sum up
        to at least as much as those of `new` do.
    """
    values = np.concatenate([old, new])
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    twice = (2 * np.cumsum(times) - times + 1)[place]  # twice the mean rank, a whole number
    few, sign = (twice[len(old) :], 1) if len(new) <= len(old) else (twice[: len(old)], -1)
    ways = _rank_sums(twice, len(few))
    sums = np.arange(len(ways))
    return float(ways[sign * sums >= sign * int(few.sum())].sum() / ways.sum())


def _rank_sums(ranks: Any, size: int) -> Any:
    """In how many ways so many of some ranks have each sum, by sum."""
    ways = np.zeros((size + 1, int(np.sort(ranks)[::-1][:size].sum()) + 1))
    ways[0, 0] = 1
    for rank in ranks.tolist():
        for chosen in range(size, 0, -1):
            ways[chosen, rank:] += ways[chosen - 1, : ways.shape[1] - rank]
    return ways[size]


def change_interval(old: Sequence[float], new: Sequence[float]) -> tuple[float, float] | None:
    """Return the 90 % interval of a ratio that is exact for the rank test; None of too few values.

    Of all quotients new/old, in order, the one up to which (and from which on) the test decides at
    5 % (Hodges and Lehmann, Ann. Math. Statist. 34, 1963). Values are positive.
    """
    ways = _rank_sums(np.arange(1, len(old) + len(new) + 1), len(new))
    below = np.cumsum(ways)[len(new) * (len(new) + 1) // 2 :] / ways.sum()
    outside = int(np.searchsorted(below, LEVEL * (1 + 1e-12), side="right"))
    if outside == 0:
        return None
    quotients = np.sort(np.divide.outer(new, old).ravel())
    return float(quotients[outside - 1]), float(quotients[-outside])


class ValueChange(NamedTuple):
    """A value in the last runs and in the new ones; means are geometric."""

    id: str
    before: float
    now: float
    ratio: float  # of now to before
    # Chance of as large a change in this direction if nothing changed; None of too few runs.
    p: float | None

    @property
    def is_shown(self) -> bool:
        """Whether there are enough runs, and the change is more than noise."""
        return self.p is not None and self.p <= LEVEL


def value_change(id: str, old: Sequence[float], new: Sequence[float]) -> ValueChange:
    """Compare positive values of some runs."""
    before, now = (math.exp(float(np.mean(np.log(values)))) for values in (old, new))
    grows = now >= before
    few = min(len(old), len(new)) < FEWEST
    p = None if few else rank_test(old, new) if grows else rank_test(new, old)
    return ValueChange(id, before, now, now / before, p)


@dataclass(frozen=True)
class HistoryComparison:
    """The runs of one label beside the last ones before them, of one configuration."""

    new: tuple[HistoryLine, ...]
    last: tuple[HistoryLine, ...]  # At most `LAST`, the oldest first
    series: tuple[HistoryLine, ...]  # All of the configuration, the oldest first

    @property
    def name(self) -> str:
        """The configuration in words."""
        threads = self.new[0].threads
        teams = [threads] * self.new[0].processes if isinstance(threads, int) else threads
        return team(teams) + (f" ({self.new[0].part})" if self.new[0].part else "")

    @property
    def is_decided(self) -> bool:
        """Whether both sides have enough runs."""
        return min(len(self.new), len(self.last)) >= FEWEST

    def change(self, id: str) -> ValueChange | None:
        """The change of the runtime or a metric; None where a run lacks it or it is not above 0."""
        old, new = ([line.value(id) for line in side] for side in (self.last, self.new))
        values = [value for value in (*old, *new) if value is not None and value > 0]
        if not old or len(values) < len(old) + len(new):
            return None
        return value_change(id, values[: len(old)], values[len(old) :])

    def factors(self) -> list[ValueChange]:
        """The changes of the factors; none where there is nothing to compare with."""
        if not self.last:
            return []
        return [
            value_change(name, *([line.factors[name] for line in side] for side in self._sides))
            for name in self.split
        ]

    @property
    def split(self) -> tuple[str, ...]:
        """The factors of the runtime, as fine as all runs have them."""
        return tuple(finest_factors([line.factors for line in (*self.last, *self.new)]))

    @property
    def _sides(self) -> tuple[tuple[HistoryLine, ...], tuple[HistoryLine, ...]]:
        return self.last, self.new

    def causes(self) -> list[ValueChange]:
        """Factors that explain a change of the runtime: the largest, and others beyond doubt.

        Of a runtime whose change is not shown, those that make it longer beyond doubt. Among many
        factors some move by chance: one after the first is named if its own change would be rare
        among all of them (Bonferroni).
        """
        runtime = self.change("runtime")
        if runtime is None or not self.is_decided:
            return []
        sign = math.copysign(1, math.log(runtime.ratio)) if runtime.is_shown else 1.0
        factors = self.factors()
        parts = [(sign * effect(factor), factor) for factor in factors]
        ranked = sorted(
            (one for one in parts if one[0] > 0), key=lambda one: (not one[1].is_shown, -one[0])
        )
        return [
            factor
            for at, (_, factor) in enumerate(ranked)
            if (at == 0 and runtime.is_shown)
            or (factor.p is not None and factor.p <= LEVEL / len(factors))
        ]

    def place(self) -> tuple[str, float] | None:
        """The region, or call of MPI, whose time moved most with the runtime, and by how many s.

        Regions lie in each other: of several with nearly the same growth the one with least time.
        """
        causes = self.causes()
        runtime = self.change("runtime")
        if not causes or runtime is None or not runtime.is_shown:
            return None
        kinds = ("call_sites", "regions") if causes[0].id in _OF_CALLS else ("regions",)
        kinds = kinds if self.new[0].regions or causes[0].id in _OF_CALLS else ("call_sites",)
        sign = math.copysign(1, math.log(runtime.ratio))
        for kind in kinds:
            grown = sorted(self._grown(kind, sign), reverse=True)
            if grown:
                alike = [one for one in grown if one[0] >= _SAME_PLACE * grown[0][0]]
                growth, _, name = min(alike, key=lambda one: one[1])
                return name, sign * growth
        return None

    def _grown(self, kind: str, sign: float) -> Iterator[tuple[float, float, str]]:
        """Growth, time and name of each place whose time moved beyond noise."""
        for name in getattr(self.new[0], kind):
            places = ([getattr(line, kind) for line in side] for side in (self.last, self.new))
            old, new = ([times.get(name, 0.0) for times in side] for side in places)
            growth = sign * float(np.mean(new) - np.mean(old))
            p = rank_test(old, new) if sign > 0 else rank_test(new, old)
            if growth > 0 and p <= LEVEL:
                yield growth, float(np.mean(new)), name

    def sentence(self) -> str:
        """The answer: slower or not, by which factors, where."""
        if not self.last:
            return f"{self.name}: no earlier runs on this machine to compare with"
        runtime = self.change("runtime")
        assert runtime is not None  # runtimes are above 0
        beside = "the last run" if len(self.last) == 1 else f"the last {len(self.last)} runs"
        if not self.is_decided:
            sides = f"{plural(len(self.new), 'run')} now, {count(len(self.last))} before"
            return (
                f"{self.name}: nothing is decided with {sides}: {FEWEST} on each side are needed "
                f"({signed(runtime.ratio)} against {beside})"
            )
        tail = f"{_interval_text(self.interval())}{p_text(runtime.p)}"
        named = ", ".join(
            f"{FACTORS[factor.id][0] if at == 0 else _within(FACTORS[factor.id][0])} "
            f"{signed(factor.ratio)}"
            for at, factor in enumerate(self.causes())
        )
        if not runtime.is_shown:
            said = f"no change shown against {beside}: {signed(runtime.ratio)} ({tail})"
            return f"{self.name}: {said}" + (f"; but {_within(named)}" if named else "")
        size, way = abs(100 * (runtime.ratio - 1)), "slower" if runtime.ratio > 1 else "faster"
        text = f"{self.name}: {size:.1f} % {way} than {beside} ({tail})"
        if place := self.place():
            sign = "+" if place[1] > 0 else "-"
            named += f"; most in {place[0]} ({sign}{format_time(abs(place[1]))})"
        return f"{text}: {named}" if named else text

    def interval(self) -> tuple[float, float] | None:
        """The 90 % interval of the ratio of runtimes; None where nothing is decided."""
        if not self.is_decided:
            return None
        old, new = ([line.runtime for line in side] for side in self._sides)
        return change_interval(old, new)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data; times in s, changes as ratios."""
        runtime, place, interval = self.change("runtime"), self.place(), self.interval()
        first = self.new[0]
        found: dict[str, Any] = plain(
            {
                "label": first.label,
                "machine": first.machine,
                "processes": first.processes,
                "threads": first.threads,
                "part": first.part,
                "sentence": self.sentence(),
                "decided": self.is_decided,
                "runs": len(self.new),
                "last": len(self.last),
                "runtime": None if runtime is None else _as_data(runtime),
                "interval": None if interval is None else list(interval),
                "split": self.split,
                "factors": [
                    {**_as_data(factor), "effect": math.exp(effect(factor))}
                    for factor in self.factors()
                ],
                "causes": [factor.id for factor in self.causes()],
                "place": None if place is None else {"name": place[0], "growth": place[1]},
                "series": [
                    {
                        "label": line.label,
                        "time": line.time,
                        "run": line.run,
                        "runtime": line.runtime,
                        "factors": line.factors,
                        "caveats": line.caveats,
                    }
                    for line in self.series
                ],
            }
        )
        return found


def _as_data(change: ValueChange) -> dict[str, Any]:
    return {**change._asdict(), "shown": change.is_shown}


def effect(factor: ValueChange) -> float:
    """The logarithm of what a change of a factor makes of the runtime."""
    return FACTORS[factor.id][1] * math.log(factor.ratio)


def finest_factors(
    runs: Sequence[Mapping[str, float]],
    names: Sequence[str] = ("useful_time", "parallel_efficiency"),
) -> list[str]:
    """Return factors that make the runtime, each in parts where all runs have these."""
    found: list[str] = []
    for name in names:
        parts = _PARTS.get(name, ())
        has_all = parts and all(part in factors for factors in runs for part in parts)
        found += finest_factors(runs, parts) if has_all else [name]
    return found


def compare_history(
    lines: Sequence[HistoryLine], runs: Sequence[HistoryLine]
) -> tuple[HistoryComparison, ...]:
    """Compare new runs with the last ones of other labels, each configuration for itself.

    All lines with their label are the new side, also those of earlier commands; the last ones are
    before the last of these, so that repeats of two labels may alternate.
    """
    comparisons: list[HistoryComparison] = []
    for run in runs:
        if any(run.is_comparable(one.new[0]) for one in comparisons):
            continue
        series = [line for line in lines if line.is_comparable(run)]
        while series[-1].label != run.label:
            series.pop()
        new = tuple(line for line in series if line.label == run.label)
        last = tuple(line for line in series if line.label != run.label)[-LAST:]
        comparisons.append(HistoryComparison(new, last, tuple(series)))
    return tuple(comparisons)


@dataclass(frozen=True)
class RunHistory:
    """A file of earlier runs, and how new ones compare with them."""

    file: str
    added: int  # How many of the new runs were new to it
    comparisons: tuple[HistoryComparison, ...]  # One for each configuration

    def changes(self, id: str) -> list[tuple[str, ValueChange]]:
        """Changes of the runtime or a metric, with the configuration, where there are earlier runs.

        Raises `PopmodelError` where a run lacks the value or it is not above 0.
        """
        found = []
        for comparison in self.comparisons:
            change = comparison.change(id)
            if change is not None:
                found.append((comparison.name, change))
            elif comparison.last:
                raise PopmodelError(
                    f"--fail-if {id}: cannot be checked: missing or not above 0 in some run of "
                    f"{comparison.name}",
                    "leave the condition out",
                )
        return found

    def to_dict(self) -> dict[str, Any]:
        """The comparisons as plain data."""
        compared = [comparison.to_dict() for comparison in self.comparisons]
        return {"file": self.file, "added": self.added, "comparisons": compared}


def signed(ratio: float) -> str:
    """A change in per cent, with its sign."""
    return f"{100 * (ratio - 1):+.1f} %"


def p_text(p: float | None) -> str:
    """A p value in words, ``p = .012``; nothing of too few runs."""
    if p is None:
        return ""
    digits = 3 if p < 0.1 else 2
    return "p < .001" if p < 0.001 else f"p = {f'{p:.{digits}f}'.removeprefix('0')}"


def _interval_text(interval: tuple[float, float] | None) -> str:
    """The interval of a change, to stand before other words."""
    if interval is None:
        return ""
    low, high = (100 * (ratio - 1) for ratio in interval)
    return f"90 %: {low:+.1f} .. {high:+.1f} %, "


def _within(name: str) -> str:
    return name if name.isupper() else name[0].lower() + name[1:]
