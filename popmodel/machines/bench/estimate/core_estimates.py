"""What a core does: clock by busy cores, operations per cycle, loops and their ends, overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import quantiles
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.machines.bench.estimate.launch_intervals import (
    LEVEL,
    Series,
    measured_as,
    median,
    of_groups,
    of_results,
    p10,
    quantities,
)
from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.machines.bench.sample_files import SampleResult
from popmodel.machines.register import OPERATIONS

Array = NDArray[np.float64]

LEAST_OVERLAP = -2.0
"""Of `core.overlap_with`: a core whose arithmetic keeps it from asking ahead for data, so that the
transfers of a loop take longer than alone, by twice the arithmetic at most."""


def calibrate(measured: MeasuredResults, absent: dict[str, str]) -> dict[str, Any]:
    """Return the section ``core`` of a profile; notes why parts of it are absent."""
    series: dict[str, Series] = {}
    for count in measured.values("clock", "threads"):
        series[f"freq.{count}"] = of_results(
            measured.results("clock", threads=count), _rate, "chain of one-cycle additions, p10"
        )
    if not series:
        return {}
    frequencies = {name.removeprefix("freq."): q for name, q in quantities(series).items()}
    per_cycle = _per_cycle(measured)
    if "smt_factor" not in per_cycle and (reason := measured.reason("smt", shared=1)):
        absent["core.smt_factor"] = reason
    section = {"freq": frequencies, **quantities(per_cycle)}
    return section | _ends_of_loops(measured)


def _per_cycle(measured: MeasuredResults) -> dict[str, Series]:
    """Rates over the clock of the same launch, in which what slows the whole launch cancels."""
    series: dict[str, Series] = {}
    clock = ("clock", {"threads": measured.values("clock", "threads")[0]})
    threads = min(measured.values("fma", "threads"), default=1)
    for key, job, wanted, share, what in (
        ("flop_per_cycle", "fma", {"threads": threads}, threads, "vector multiply-adds"),
        ("load_per_cycle", "loads", {}, 1, "8-byte loads from the L1 cache"),
        ("store_per_cycle", "stores", {}, 1, "8-byte stores to the L1 cache"),
    ):
        if pairs := measured.together((job, wanted), clock):
            series[key] = of_groups(
                pairs, partial(_rate_ratio, share), f"{what} per cycle of the measured clock, p10"
            )
    if pairs := measured.together(("loop", {}), clock):
        series["loop_cycles"] = of_groups(
            pairs,
            lambda loop, clock: p10(loop.seconds) * _rate(clock),
            "one iteration of an empty loop, p10",
        )
    # Loops of as many instructions differ by how a core fetches them: the slower one is no luck.
    if plain := [*_plain_loop(measured, clock), *_rows(measured)]:
        series["instructions_per_cycle"] = min(plain, key=lambda one: float(np.mean(one.values)))
    for operation in OPERATIONS:
        if pairs := measured.together(("dependent", {"operation": operation}), clock):
            series[f"{operation}_cycles"] = of_groups(
                pairs,
                lambda chain, clock: _rate(clock) / _rate(chain),
                "chain of operations, each of which waits for the one before, p10",
            )
    if results := measured.results("in_flight"):
        series["window"] = of_results(
            results,
            _under_way,
            "time of chains of operations one after the other over that of independent ones, "
            "median, times the instructions of one",
        )
    if pairs := measured.together(("smt", {"shared": 1}), ("smt", {"shared": 0})):
        series["smt_factor"] = of_groups(
            pairs,
            partial(_rate_ratio, 0.5),
            "multiply-adds of two threads on one core relative to one thread, p10",
        )
    return series


def _plain_loop(
    measured: MeasuredResults, clock: tuple[str, Mapping[str, Any]]
) -> Iterator[Series]:
    """Instructions of a loop over fixed words per cycle.

    Those that share the core with others of its hardware threads have what these leave.
    """
    if pairs := measured.together(("instructions", {}), clock):
        yield of_groups(
            pairs,
            lambda some, clock: some.facts["work"] / median(some.seconds) / _rate(clock),
            "instructions of a plain loop per cycle of the measured clock, median",
        )


def _rows(measured: MeasuredResults) -> Iterator[Series]:
    """Instructions of rows of additions per cycle, where they have been counted."""
    turns, groups = _rows_by_launch(measured)
    if groups and "work" in groups[0][1].facts:
        yield of_groups(
            groups,
            lambda *results: _row_instructions(turns, results),
            "instructions of rows of additions per cycle of the measured clock, median",
        )


def _rate_ratio(share: float, first: SampleResult, second: SampleResult) -> float:
    """Rate of the first over that of the second, per so many threads."""
    return _rate(first) / share / _rate(second)


def _under_way(result: SampleResult) -> float:
    """Instructions that a core works on at a time (Little's law: their latency over their pace)."""
    assert result.reference is not None
    return float(result.facts["work"]) * median(result.reference) / median(result.seconds)


def _rate(result: SampleResult) -> float:
    """Operations per second of all threads."""
    return float(result.facts["work"]) / p10(result.seconds)


# What the end of a loop costs a core, and up to how many turns it foresees it.
#
# Rows of a few turns, one after the other, take their turns and what is between rows. A core that
# has seen a loop end after a few turns foresees its end; from some number of turns on it does not,
# and what it had begun beyond the end is lost.


_LENGTHS = 5
"""Lengths of rows that tell a pace, what is between rows, and a loss from some length on."""
_SEEN = 3.0
"""Cycles that have to be lost before it shows from which length on they are."""


def _ends_of_loops(measured: MeasuredResults) -> dict[str, Any]:
    """Return ``branch_miss`` and ``predicted_trip`` of the section ``core``, if they are told."""
    turns, groups = _rows_by_launch(measured)
    if not groups:
        return {}
    each = np.array([_cycles(results) for results in groups])
    losses = np.array([loss(turns, one)[0] for one in each])
    _, last = loss(turns, np.median(each, axis=0))
    batches = sum(result.seconds.size for results in groups for result in results[1:])
    # programs differ in it as launches and builds do, by where their loops lie: all of them count
    low, high = quantiles(losses, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    section: dict[str, Any] = {
        "branch_miss": measured_as(
            (round(one, 2) for one in (float(np.median(losses)), low, high)),
            batches,
            "rows of more turns over the line through rows of fewer, p10; the interval holds the "
            "launches",
        )
    }
    if section["branch_miss"]["value"] >= _SEEN:
        lasts = [last, *(loss(turns, one)[1] for one in each)]
        section["predicted_trip"] = measured_as(
            (
                round(math.sqrt(turns[last] * turns[last + 1]), 1),
                float(turns[min(lasts)]),
                float(turns[max(lasts) + 1]),
            ),
            batches,
            "number of turns between which rows begin to lose cycles",
        )
    return section


def _rows_by_launch(measured: MeasuredResults) -> tuple[list[int], list[tuple[SampleResult, ...]]]:
    """Return the lengths of rows, and the clock and the rows of these lengths of every launch.

    No launch where too few lengths were measured.
    """
    turns = measured.values("row", "turns")
    threads = measured.values("clock", "threads")
    if len(turns) < _LENGTHS or not threads:
        return turns, []
    jobs = [("clock", {"threads": threads[0]}), *(("row", {"turns": count}) for count in turns)]
    return turns, measured.together(*jobs)


def _row_instructions(turns: Sequence[int], results: Sequence[SampleResult]) -> float:
    """Return the instructions of rows per cycle between their ends."""
    clock, *rows = results
    counted = float(rows[0].facts["work"])
    rate = _rate(clock)
    return counted / _fitted(turns, np.array([median(row.seconds) * rate for row in rows]))[0]


def _cycles(results: Sequence[SampleResult]) -> Array:
    """Cycles of a row, by the clock of the same launch: the first of the results."""
    clock, *rows = results
    rate = _rate(clock)
    return np.array([p10(row.seconds) * rate for row in rows])


def loss(turns: Sequence[int], cycles: Array) -> tuple[float, int]:
    """Return the cycles that longer rows lose, and the index of the longest that does not.

    Least squares of ``cycles = pace turns + between + lost [turns > n]`` over all n, where the
    error of a time grows as its root; none is lost where each would be less than nothing.
    """
    _, lost, last = _fitted(turns, cycles)
    return max(lost, 0.0), last


def _fitted(turns: Sequence[int], cycles: Array) -> tuple[float, float, int]:
    """Cycles of a turn, those that longer rows lose, and the longest that does not; see `loss`."""
    lengths = np.asarray(turns, np.float64)
    weights = 1 / np.sqrt(cycles)

    def fitted(last: int) -> tuple[float, tuple[float, float, int]]:
        longer = (lengths > turns[last]).astype(np.float64)
        terms = np.stack([lengths, np.ones_like(lengths), longer], axis=1) * weights[:, None]
        law, *_ = np.linalg.lstsq(terms, cycles * weights, rcond=None)
        misses = terms @ law - cycles * weights
        return float(misses @ misses), (float(law[0]), float(law[2]), last)

    # two lengths at least on either side: one alone would be met exactly
    tried = [fitted(last) for last in range(1, len(turns) - 2)]
    _, best = min([one for one in tried if one[1][1] >= 0] or tried)
    return best


# How far transfers hide behind arithmetic: a factor for each level, fitted to loops of both.
#
# A loop is measured three times: with its arithmetic and its transfers (``t``), with its transfers
# alone (``m``) and with its arithmetic alone, in the first-level cache (``a``). The factor is what
# the model makes of them: ``t = (1 - omega) (a + m) + omega max(a, m)``, 0 where one comes after
# the other, 1 where the longer one hides the shorter (the roofline). It shows best where both are
# of the same length; where one is much shorter, their sum and the longer one hardly differ. It is
# below 0 where arithmetic between its loads keeps a core from asking ahead, so that the transfers
# of the loop take longer than alone.
#
# Of a cache a small and a large set are measured: a core knows the addresses of the pages of a
# small one, those of a large one it has to look up, which hides less. The small one is what a core
# has of a cache that all of them use, so the value is of it; the interval holds both.


_TOLD = 0.25
"""Shorter over longer part, from which on a loop tells the factor."""
_TOLD_BY_ISSUE = 0.1
"""The same where the arithmetic cannot be chosen, and what is read from near caches is short."""
_FEWEST = 5
"""Batches of a loop in a launch, fewer of which are chance."""
_NOTHING_TOLD = "no measured loop had enough batches, and arithmetic and transfers of like length"
_ROUGH = 0.1
"""Part of a loop's time that the form misses in the median, from which on it is remarked."""
_SLOW = 0.5
"""Part of the peak below which the arithmetic is not what it is meant to be."""
_LONG = 16
"""Multiply-adds of an element from which on a loop should run near the peak."""


@dataclass(frozen=True)
class LoopEstimate:
    """A loop that was measured in several launches."""

    level: str  # What its data comes from: a cache, such as ``L2``, or ``MEM``
    threads: int  # Cores that ran it at the same time
    each: int  # Bytes that one of them went over
    # Time of an operation as it is, and of its parts alone, s.
    seconds: Array
    transfer: Array
    arithmetic: Array
    samples: int  # Batches of the loop as it is, of all launches

    @property
    def shares(self) -> Array:
        """The factor in every launch, at most 1: what is beyond is the error of the times."""
        together = self.transfer + self.arithmetic
        shorter = np.minimum(self.transfer, self.arithmetic)
        shares: Array = np.clip((together - self.seconds) / shorter, LEAST_OVERLAP, 1.0)
        return shares

    def misfit(self, share: float) -> float:
        """Time by the form with a factor over the measured one, less 1; median of the launches."""
        longer = np.maximum(self.transfer, self.arithmetic)
        form = (1 - share) * (self.transfer + self.arithmetic) + share * longer
        return float(np.median(form / self.seconds - 1))


def overlap(
    measured: MeasuredResults,
    topology: Mapping[str, Any],
    core: Mapping[str, Any],
    absent: dict[str, str],
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return the overlap of the section ``core``, how well its form fits, and remarks on both."""
    results = [one for one in measured.results("mixed") if _is_telling(one, _TOLD)]
    loops = list(_loops(results, topology))
    issued = [one for one in measured.results("issue") if _is_telling(one, _TOLD_BY_ISSUE)]
    section: dict[str, Any] = {}
    if issued:
        section["overlap_issue"] = _by_level(list(_loops(issued, topology)))
    if not loops:
        if tried := measured.all_of("mixed"):
            reasons = (one.absent for one in tried if one.absent is not None)
            absent["core.overlap"] = next(reasons, _NOTHING_TOLD)
        return section, {}, []
    section |= {"overlap": _quantity(loops, 0.0), "overlap_with": _by_level(loops)}
    values = {level: entry["value"] for level, entry in section["overlap_with"].items()}
    misfits = [loop.misfit(values[loop.level]) for loop in loops]
    residual, worst = float(np.median(np.abs(misfits))), float(np.max(np.abs(misfits)))
    fit = {
        "residual": _rounded(residual),
        "worst": _rounded(worst),
        "loops": [
            {
                "level": loop.level,
                "threads": loop.threads,
                "arithmetic": _rounded(float(np.median(loop.arithmetic / loop.transfer))),
                "overlap": _rounded(float(np.mean(loop.shares))),
                "misfit": _rounded(misfit),
            }
            for loop, misfit in zip(loops, misfits, strict=True)
        ],
    }
    return section, fit, [*_rough(residual, worst), *_slow(results, core)]


def _by_level(loops: list[LoopEstimate]) -> dict[str, Any]:
    found = {}
    for level in dict.fromkeys(loop.level for loop in loops):
        alike = [one for one in loops if one.level == level]
        smallest = min(one.each for one in alike)
        found[level] = _quantity(
            alike, LEAST_OVERLAP, [one for one in alike if one.each == smallest]
        )
    return found


def _quantity(
    loops: list[LoopEstimate], least: float, typical: list[LoopEstimate] | None = None
) -> dict[str, Any]:
    """The factor that stands for some loops, and at least ``least``: that of the typical ones."""
    typical = typical or loops
    value = max(float(np.median([np.mean(loop.shares) for loop in typical])), least)
    every = np.maximum(np.concatenate([loop.shares for loop in loops]), least)
    low, high = quantiles(every, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    levels = dict.fromkeys(loop.level for loop in loops)
    return measured_as(
        map(_rounded, (value, min(low, value), max(high, value))),
        sum(loop.samples for loop in loops),
        f"median of {plural(len(typical), 'loop')} with arithmetic and transfers "
        f"({', '.join(levels)}); the interval holds {plural(len(loops), 'loop')}",
    )


def _is_telling(result: SampleResult, told: float) -> bool:
    """Whether neither part of a loop is much the shorter, and each was taken often enough."""
    transfer, arithmetic = _transfer(result), _arithmetic(result)
    assert result.arithmetic is not None
    batches = min(result.seconds.size, result.arithmetic.size)
    return batches >= _FEWEST and told <= arithmetic / transfer <= 1 / told


def _transfer(result: SampleResult) -> float:
    assert result.reference is not None  # `samples` has checked it
    return p10(result.reference)


def _arithmetic(result: SampleResult) -> float:
    assert result.arithmetic is not None
    return p10(result.arithmetic)


def _loops(results: list[SampleResult], topology: Mapping[str, Any]) -> Iterator[LoopEstimate]:
    """The loops by level, cores and arithmetic, each with the launches that measured it."""
    alike: dict[tuple[int, int, int], list[SampleResult]] = {}
    for result in results:
        params = result.params
        key = params.get("threads", 1), params["bytes"], params.get("arithmetic", 100)
        alike.setdefault(key, []).append(result)
    for (threads, size, _), found in sorted(alike.items()):
        yield LoopEstimate(
            level=level_of(size, threads, topology),
            threads=threads,
            each=size // threads,
            seconds=np.array([p10(result.seconds) for result in found]),
            transfer=np.array([_transfer(result) for result in found]),
            arithmetic=np.array([_arithmetic(result) for result in found]),
            samples=sum(result.seconds.size for result in found),
        )


def level_of(size: int, threads: int, topology: Mapping[str, Any]) -> str:
    """Name the innermost cache of which a working set fills half at most, or ``MEM``."""
    for cache in topology.get("caches", ()):
        if size / threads <= cache["bytes"] / 2 / min(threads, cache["shared_by"]):
            return str(cache["level"])
    return "MEM"


def _rough(residual: float, worst: float) -> Iterator[str]:
    if residual > _ROUGH:
        yield (
            f"core.overlap_with: one factor a level meets the times of the measured loops to "
            f"{100 * residual:.0f} % only (median; {100 * worst:.0f} % at worst)"
        )


def _slow(results: list[SampleResult], core: Mapping[str, Any]) -> Iterator[str]:
    """Doubt arithmetic that is far from the peak: then it is something else that was measured."""
    if "flop_per_cycle" not in core or "freq" not in core:
        return
    clocks = {int(count): entry["value"] for count, entry in core["freq"].items()}
    shares = []
    for result in results:
        threads = result.params["threads"]
        clock = clocks[min(clocks, key=lambda count: abs(count - threads))]
        peak = core["flop_per_cycle"]["value"] * clock * threads
        if result.facts["work"] / result.facts["moved"] * 24 >= 2 * _LONG:
            shares.append(result.facts["work"] / _arithmetic(result) / peak)
    if shares and (share := float(np.median(shares))) < _SLOW:
        yield (
            f"core.overlap: the arithmetic of the measured loops ran at {100 * share:.0f} % of the "
            "peak of the cores"
        )


def _rounded(number: float) -> float:
    return round(number, 4)
