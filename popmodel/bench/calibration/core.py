"""What a core does: clock by busy cores, operations per cycle, cost of a loop and of its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from popmodel.bench.calibration import rows
from popmodel.bench.calibration.intervals import (
    Series,
    median,
    of_groups,
    of_results,
    p10,
    quantities,
)
from popmodel.bench.calibration.measured import MeasuredResults
from popmodel.bench.samples import SampleResult
from popmodel.machine.parameter import OPERATIONS


def calibrate(measured: MeasuredResults) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the section ``core`` of a profile, and why parts of it are absent."""
    series: dict[str, Series] = {}
    absent: dict[str, str] = {}
    for count in measured.values("clock", "threads"):
        series[f"freq.{count}"] = of_results(
            measured.results("clock", threads=count), _rate, "chain of one-cycle additions, p10"
        )
    if not series:
        return {}, {}
    frequencies = {name.removeprefix("freq."): q for name, q in quantities(series).items()}
    per_cycle = _per_cycle(measured)
    if not per_cycle.keys() & {"smt_factor"} and (reason := measured.reason("smt", shared=1)):
        absent["core.smt_factor"] = reason
    # all share the clock, so their spreads are not independent
    section = {"freq": frequencies, **quantities(per_cycle, alike=False)}
    return section | rows.calibrate(measured), absent


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
    turns, groups = rows.of_launches(measured)
    if groups and "work" in groups[0][1].facts:
        yield of_groups(
            groups,
            lambda *results: rows.instructions_per_cycle(turns, results),
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
