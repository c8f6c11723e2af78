"""Measured runs carried to other numbers of processes or threads."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from popmodel.base.errors import UsageError
from popmodel.base.units import format_time, plural
from popmodel.base.values import dataclass
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING, Mode, against, of_masters
from popmodel.fit.baselines import baselines
from popmodel.fit.efficiency_factors import FACTORS, chosen, completed, measured, rebuilt
from popmodel.fit.efficiency_laws import TESTED, Axis, FittedFactor, fit_factor
from popmodel.fit.samples import Array, Interval, Sample
from popmodel.runs.measurement import MeasuredRow

RUNTIME = ("", "runtime")
"""Family and id of the runtime, s, which is in no family."""
FAMILIES: Mapping[bool, tuple[str, ...]] = {
    False: ("mpi", "mpi-additive"),
    True: ("hybrid-multiplicative", "hybrid-additive"),
}
"""By whether there are threads: the families that are projected, the one that is shown first."""
TIME = "time"
"""Stands for a family in rows that are parts of the runtime, s."""
DERIVED = "derived"
"""Law of a metric that is computed from projected ones."""
_LEAST_REACH, _MOST_REACH = 4.0, 16.0
_TAILS = (5.0, 95.0)
_SEED = 7
_SEARCHED = 512  # at most, where the largest of some efficiency is wanted
_WRONG = 2.0  # times: what is off by more at runs that are left out tells nothing of others
_UNEVEN = 1.1  # times: what laws are off by where no run is looked for that stands out
_BETTER = 3.0  # times less, as a logarithm, they are off without it
_APART, _FAR_APART = 1.5, 4.0  # times what the others say, between their sizes and beyond
_MOST_TRIED = 16  # places
_UNITS = {1e3: "ms", 1e6: "us", 1 / 60: "min", 1 / 3600: "h"}
"""By how many times a number is too large that was written in a unit in place of seconds."""
_ENOUGH = 0.5  # of the draws have to have a value
_MOST_FACTOR = 1e50  # and at least its inverse: products of all factors are numbers


@dataclass(frozen=True)
class ProjectedRow:
    """A projected metric."""

    # P, and T of every process.
    processes: int
    threads: int
    # Ids; the family of the runtime, s, is empty.
    family: str
    metric: str
    value: float | None  # The projection; None where the law has none
    # Ends of its 90 % interval; None where there is none.
    low: float | None
    high: float | None
    law: str  # The law of its factor, or `DERIVED`
    why: str  # Why there is no interval; empty where there is one


class OutlyingRun(NamedTuple):
    """A run without which the others have a law, and that is far from it."""

    run: int  # Its number, from 0
    expected: Interval  # Runtime, s, by the law of the others
    repeats: int = 0  # Of the same size, that are as far from it

    def text(self, runs: Sequence[MeasuredRow]) -> str:
        """Say which run it is, and what it would have to be."""
        run, factor = runs[self.run], runs[self.run].runtime / self.expected.value
        unit = next((name for by, name in _UNITS.items() if abs(math.log(factor / by)) < 0.2), "")
        value, low, high = (format_time(seconds, digits=3) for seconds in self.expected)
        far = max(factor, 1 / factor)
        times = f"{far:.0f}" if far > 99 else f"{far:.2g}"
        again = f", as {plural(self.repeats, 'repeat')}" if self.repeats else ""
        return (
            f"{run.place.rpartition('/')[2]} ({run.processes} x {run.threads}"
            f"{again}) takes "
            f"{format_time(run.runtime, digits=3)}, {times if factor > 1 else f'1/{times}'} times "
            f"what the other runs say ({value}, 90 %: {low} .. {high}): "
            f"{f'is it in {unit}? correct' if unit else 'check'} it, or leave it out"
        )


class ProjectedLine(NamedTuple):
    """Runs that differ in their processes, or in their threads, only; and the laws along them."""

    axis: Axis  # What differs
    fixed: int  # T of all, or P
    runs: tuple[int, ...]  # Numbers of the runs, from 0
    places: tuple[int, ...]  # Different P, or T, ascending
    fitted: tuple[FittedFactor, ...]  # The law of each factor
    reach: tuple[float, float]  # Least and largest P, or T, for which intervals are given
    blind: str  # Why there are none at all; empty where there are
    lost: str  # Why nothing can be projected; empty where it can
    outliers: tuple[OutlyingRun, ...] = ()  # Runs that the law of the others does not have

    def configuration(self, place: int) -> tuple[int, int]:
        """P and T at a place along the line."""
        return (place, self.fixed) if self.axis == "processes" else (self.fixed, place)


@dataclass(frozen=True)
class Projection:
    """Projected metrics."""

    lines: tuple[ProjectedLine, ...]  # The laws, one line for each T or P that targets have
    rows: tuple[ProjectedRow, ...]  # Metrics of all targets
    # P, T and the runtimes of plain extrapolations of the measured runtimes, s.
    baselines: tuple[tuple[int, int, Mapping[str, float]], ...]
    draws: Mapping[tuple[int, int], Array] = field(repr=False)  # Runtimes, beyond intervals, too
    _home: Mapping[str, float] = field(repr=False)
    _mode: Mode = field(repr=False)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """P and T of all targets."""
        return list(dict.fromkeys((row.processes, row.threads) for row in self.rows))

    def efficiencies(self, line: ProjectedLine) -> dict[int, float]:
        """Parallel efficiencies along a line, as far as there are intervals, if they are known."""
        low, high = math.ceil(line.reach[0]), math.floor(line.reach[1])
        places = sorted({round(each) for each in np.geomspace(max(low, 1), high, _SEARCHED)})
        found = {}
        for place, (rows, _) in zip(
            places, _rows(line, places, self._home, self._mode), strict=True
        ):
            for row in rows:
                if row.metric == "parallel_efficiency" and row.value is not None and not row.why:
                    found[place] = row.value
        return found


def project(
    runs: Sequence[MeasuredRow],
    targets: Sequence[tuple[int, int]],
    mode: Mode,
    reference: int,
    law: str | None = None,
) -> Projection:
    """Carry measured runs to other numbers of processes, or of threads per process."""
    home = completed(runs[reference])
    factors = [measured(completed(run), home, run.processes, run.threads, mode) for run in runs]
    kept: dict[tuple[Axis, int], ProjectedLine] = {}
    wanted: dict[tuple[Axis, int], list[int]] = {}
    rows: dict[tuple[int, int], list[ProjectedRow]] = {}
    draws: dict[tuple[int, int], Array] = {}
    for target in dict.fromkeys(targets):
        axis, fixed = _along(runs, *target)
        if (axis, fixed) not in kept:
            kept[axis, fixed] = _line(runs, factors, axis, fixed, mode, law)
        wanted.setdefault((axis, fixed), []).append(target[axis == "threads"])
    for key, line in kept.items():
        places = wanted[key]
        for place, (found, drawn) in zip(places, _rows(line, places, home, mode), strict=True):
            rows[line.configuration(place)] = found
            if drawn is not None:
                draws[line.configuration(place)] = drawn
    plain = [
        (*target, _plain(runs, target, mode, home["threads"])) for target in dict.fromkeys(targets)
    ]
    return Projection(
        tuple(kept.values()),
        tuple(row for target in dict.fromkeys(targets) for row in rows[target]),
        tuple(plain),
        draws,
        home,
        mode,
    )


def _along(runs: Sequence[MeasuredRow], processes: int, threads: int) -> tuple[Axis, int]:
    """Along what a target is reached: the runs with its T, or those with its P."""
    by_processes = {run.processes for run in runs if run.threads == threads}
    by_threads = {run.threads for run in runs if run.processes == processes}
    if not by_processes and not by_threads:
        have = ", ".join(
            f"{p} x {t}" for p, t in sorted({(run.processes, run.threads) for run in runs})
        )
        raise UsageError(
            f"{processes} x {threads}: no run has {plural(threads, 'thread')} per process, and "
            f"none {plural(processes, 'process', 'processes')}: laws change one of them at a time",
            f"measured: {have}",
        )
    if len(by_processes) >= len(by_threads) or (len(by_processes) > 1 and len(by_threads) < 2):
        return "processes", threads
    return "threads", processes


def _line(
    runs: Sequence[MeasuredRow],
    factors: Sequence[Mapping[str, float]],
    axis: Axis,
    fixed: int,
    mode: Mode,
    law: str | None,
) -> ProjectedLine:
    mine = [
        number
        for number, run in enumerate(runs)
        if (run.threads if axis == "processes" else run.processes) == fixed
    ]
    at = {
        number: runs[number].processes if axis == "processes" else runs[number].threads
        for number in mine
    }
    fitted = []
    alone = axis == "threads" and fixed == 1  # is balanced with itself
    for factor in chosen([dict(factors[number]) for number in mine]):
        if alone and factor == "load_balance":
            continue
        having = [number for number in mine if factor in factors[number]]
        fitted.append(
            fit_factor(
                FACTORS[factor],
                [at[number] for number in having],
                [factors[number][factor] for number in having],
                axis,
                mode,
                law,
            )
        )
    uneven = max((factor.off or 1.0 for factor in fitted), default=1.0) > _UNEVEN
    outliers = _outlying(runs, [*at.items()], factors, axis, mode) if uneven else ()
    places = sorted(set(at.values()))
    reach = reach_of(places[-1] / places[0])
    blind = ""
    if places[-1] == 1:
        one = "process" if axis == "processes" else "thread"
        blind = f"runs of one {one} do not tell what several lose to each other"
    return ProjectedLine(
        axis,
        fixed,
        tuple(mine),
        tuple(places),
        tuple(fitted),
        (places[0] / reach, places[-1] * reach),
        blind,
        next((why for factor in fitted if (why := _lost(factor, outliers, runs))), ""),
        outliers,
    )


def _outlying(
    runs: Sequence[MeasuredRow],
    mine: Sequence[tuple[int, int]],
    factors: Sequence[Mapping[str, float]],
    axis: Axis,
    mode: Mode,
) -> tuple[OutlyingRun, ...]:
    """Runs at one or two places without which the others have a law that they had not with them.

    A runtime between those of the places beside it may be right, as where a memory is full. Beyond
    the other places programs do change: it takes more there to stand out.
    """
    places = sorted({place for _, place in mine})
    values = {number: factors[number]["runtime"] for number, _ in mine}

    def fitted(left_out: Sequence[int]) -> FittedFactor:
        kept = [(values[number], place) for number, place in mine if place not in left_out]
        at = [place for _, place in kept]
        return fit_factor(FACTORS["runtime"], at, [own for own, _ in kept], axis, mode)

    def error(left_out: Sequence[int]) -> float:
        kept = [values[number] for number, place in mine if place not in left_out]
        return fitted(left_out).off or max(kept) / min(kept)  # two places test no law

    off = math.log(fitted(()).off or 1.0)
    for count in (1, 2) if len(places) > TESTED + 2 else (1,):
        errors = {left: error(left) for left in combinations(places[:_MOST_TRIED], count)}
        left_out = min(errors, key=lambda left: errors[left])
        if math.log(errors[left_out]) > off / _BETTER:
            continue
        law, x = fitted(left_out), np.array(left_out, dtype=np.float64)
        likely = law.values(x)
        draws = law.draws(x, np.random.default_rng(_SEED))
        able = np.where(_is_usable(draws), draws, np.nan)
        if np.isnan(able).mean(axis=0).max() > 1 - _ENOUGH:
            continue
        low, high = np.nanpercentile(able, _TAILS, axis=0)
        found = []
        for number, place in mine:
            if place not in left_out or _is_between(runs, mine, number, left_out):
                continue
            column, own = left_out.index(place), values[number]
            inner = places[0] < place < places[-1]
            far = abs(math.log(own / likely[column])) > math.log(_APART if inner else _FAR_APART)
            if far and not low[column] <= own <= high[column]:
                seconds = runs[number].runtime * own
                by = (likely[column], high[column], low[column])
                found.append(OutlyingRun(number, Interval(*(float(seconds / one) for one in by))))
        first = {runs[one.run].configuration: one for one in reversed(found)}
        again = Counter(runs[one.run].configuration for one in found)
        return tuple(first[size]._replace(repeats=number - 1) for size, number in again.items())
    return ()


def _is_between(
    runs: Sequence[MeasuredRow],
    mine: Sequence[tuple[int, int]],
    number: int,
    left_out: Sequence[int],
) -> bool:
    """Whether a runtime is between those beside it, or at the end ideal, or nothing gained."""
    own = dict(mine)[number]
    others = [place for _, place in mine if place not in left_out]
    beside = {max((place for place in others if place < own), default=0)}
    beside = (beside | {min((place for place in others if place > own), default=0)}) - {0}
    times = [runs[other].runtime for other, place in mine if place in beside]
    if len(beside) == 1:
        ideal = beside.pop() / own
        times = [
            time * by
            for time in times
            for by in (ideal / _APART, ideal * _APART, 1 / _APART, _APART)
        ]
    return min(times) <= runs[number].runtime <= max(times)


def reach_of(measured: float) -> float:
    """How far intervals are given beyond measured sizes, by the ratio of largest and least."""
    return min(max(measured, _LEAST_REACH), _MOST_REACH)


def _lost(
    factor: FittedFactor, outliers: Sequence[OutlyingRun], runs: Sequence[MeasuredRow]
) -> str:
    """Say that no law holds for a factor, if none does."""
    if factor.off is None or factor.off <= _WRONG:
        return ""
    if outliers:
        named = " and ".join(runs[each.run].place.rpartition("/")[2] for each in outliers[:3])
        return f"no law holds with {named}"
    return (
        f"no law holds for the {factor.factor.name}: even the best is off by a factor of "
        f"{factor.off:.3g} at a run left out"
    )


def _rows(
    line: ProjectedLine, places: Sequence[int], home: Mapping[str, float], mode: Mode
) -> list[tuple[list[ProjectedRow], Array | None]]:
    """Rows of each place along a line, and its runtimes that were drawn."""
    x = np.array(places, dtype=np.float64)
    generator = np.random.default_rng(_SEED)
    values = {factor.factor.id: factor.values(x) for factor in line.fitted}
    draws = {factor.factor.id: factor.draws(x, generator) for factor in line.fitted}
    rows = []
    for column, place in enumerate(places):
        at = {name: float(own[column]) for name, own in values.items()}
        sampled = {name: own[:, column] for name, own in draws.items()}
        rows.append(_at(line, place, at, sampled, home, mode))
    return rows


def _at(
    line: ProjectedLine,
    place: int,
    values: Mapping[str, float],
    sampled: Mapping[str, Array],
    home: Mapping[str, float],
    mode: Mode,
) -> tuple[list[ProjectedRow], Array | None]:
    """Rows of one place, from the values of the factors there and from their draws."""
    processes, threads = line.configuration(place)
    laws = {factor.factor.id: factor.law for factor in line.fitted}
    why = _why(line, place)
    able = np.logical_and.reduce([_is_usable(own) for own in sampled.values()])
    if able.mean() < _ENOUGH:
        why = why or "the laws that are possible mostly have no value there"
    lost = next((name for name, value in values.items() if not _is_usable(value)), None)
    if lost is not None:
        why = f"the {laws[lost]} law of {FACTORS[lost].name} is not above 0 there"
        if values[lost] > 1:
            why = f"the {laws[lost]} law of {FACTORS[lost].name} has no finite value there"
    if line.lost:
        lost, why = "", line.lost
    given = {name: np.array([1.0 if lost is not None else own]) for name, own in values.items()}
    best = _with_parts(metrics_of(given, home, processes, threads, mode))
    spread: Mapping[tuple[str, str], Array] = {}
    is_blind = line.blind and place not in line.places
    if lost is None and not is_blind and able.mean() >= _ENOUGH:
        kept = {name: own[able] for name, own in sampled.items()}
        spread = _with_parts(metrics_of(kept, home, processes, threads, mode))
    named = {key: law for name, law in laws.items() for key in FACTORS[name].metrics}
    rows = []
    for key, samples in best.items():
        value, law = float(samples[0]), named.get(key, DERIVED)
        low, high = None, None
        if not why:
            low, high = (float(end) for end in np.percentile(spread[key], _TAILS))
            low, high = min(low, value), max(high, value)
        shown = value if lost is None else None
        rows.append(ProjectedRow(processes, threads, *key, shown, low, high, law, why))
    return rows, spread.get(RUNTIME)


def metrics_of(
    factors: Mapping[str, Array],
    reference: Mapping[str, float],
    processes: int,
    threads: int,
    mode: Mode,
) -> dict[tuple[str, str], Array]:
    """Return the metrics that factors make, by family and id; those of no value are left out."""
    aggregates = rebuilt(factors, reference, processes, threads, mode)
    cores, home = float(processes * threads), float(reference["threads"])
    ratio = cores / home if mode == "weak" else 1.0
    families = load_families()
    scaled = families[SCALING].evaluate_samples(against(aggregates, reference, ratio))
    threaded = "team" in factors
    others = of_masters(scaled.values, scaled.absent, threaded=threaded or threads > 1)
    metrics: dict[tuple[str, str], Array] = {RUNTIME: np.asarray(aggregates["runtime"])}
    evaluated = [
        families[name].evaluate_samples({**aggregates, **others[0]}, others[1])
        for name in FAMILIES[threaded]
    ]
    for family in (*evaluated, scaled):
        metrics |= {(family.family.id, metric): value for metric, value in family.values.items()}
    return metrics


def _with_parts(metrics: dict[tuple[str, str], Array]) -> dict[tuple[str, str], Array]:
    """Metrics with the parts of the runtime: computing, and what each leaf of the losses costs."""
    runtime = metrics[RUNTIME]
    for name in ("hybrid-additive", "mpi-additive"):  # their losses add up
        own = {metric: value for (family, metric), value in metrics.items() if family == name}
        if "parallel_efficiency" in own:
            family = load_families()[name]
            lost = {
                (TIME, family.metrics[leaf].name.lower().removesuffix(" efficiency")): runtime
                * (1 - own[leaf])
                for leaf in family.leaves(own)
            }
            return {**metrics, (TIME, "computation"): runtime * own["parallel_efficiency"], **lost}
    return metrics


def _is_usable(value: Any) -> Any:
    """Whether factors are above 0, and metrics computed from them stay finite; elementwise."""
    return (value > 1 / _MOST_FACTOR) & (value < _MOST_FACTOR)


def _why(line: ProjectedLine, place: int) -> str:
    """Why there are no intervals at a place; empty where there are."""
    if line.blind and place not in line.places:
        return line.blind
    low, high = line.reach
    if place > high:
        times = place / line.places[-1]
        return (
            f"{place} {line.axis} are {times:.3g} times the most that were measured; intervals "
            f"reach up to {high:g}"
        )
    if place < low:
        times = line.places[0] / place
        return (
            f"the least {line.axis} that were measured are {times:.3g} times as many; intervals "
            f"reach down to {low:.3g}"
        )
    return ""


def _plain(
    runs: Sequence[MeasuredRow], target: tuple[int, int], mode: Mode, cores: float
) -> dict[str, float]:
    """Plain extrapolations of the runtime; in weak scaling, of that for the work of one run."""

    def work(processes: int, threads: int) -> float:
        return processes * threads / cores if mode == "weak" else 1.0

    samples = [
        Sample(run.processes, run.threads, run.runtime / work(run.processes, run.threads))
        for run in runs
    ]
    return {name: value * work(*target) for name, value in baselines(samples, *target).items()}
