"""What a core does: clock by busy cores, operations per cycle, the cost of a loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from popmodel.machine.calibration.measured import Measured
from popmodel.machine.calibration.statistics import Series, of_results, p10, quantities
from popmodel.machine.samples import Result


def calibrate(measured: Measured) -> tuple[dict[str, Any], dict[str, str]]:
    """Give the section ``core`` of a profile, and why parts of it are absent."""
    series: dict[str, Series] = {}
    absent: dict[str, str] = {}
    for count in measured.values("clock", "threads"):
        series[f"freq.{count}"] = of_results(
            measured.results("clock", threads=count), _rate, "chain of one-cycle additions, p10"
        )
    if not series:
        return {}, {}
    hertz = float(np.exp(np.mean(np.log(series[min(series, key=_count)].values))))
    single = min(measured.values("fma", "threads"), default=None)
    if single is not None:
        series["flop_per_cycle"] = of_results(
            measured.results("fma", threads=single),
            lambda result: _rate(result) / single / hertz,
            "vector multiply-adds per cycle of the measured clock, p10",
        )
    for key, job, what in (
        ("load_per_cycle", "loads", "8-byte loads from the first cache per cycle, p10"),
        ("store_per_cycle", "stores", "8-byte stores to the first cache per cycle, p10"),
    ):
        if results := measured.results(job):
            series[key] = of_results(results, lambda result: _rate(result) / hertz, what)
    if results := measured.results("loop"):
        series["loop_cycles"] = of_results(
            results, lambda result: p10(result.seconds) * hertz, "iteration of an empty loop, p10"
        )
    together, apart = measured.results("smt", shared=1), measured.results("smt", shared=0)
    if together and apart:
        alone = float(np.median([_rate(result) for result in apart]))
        series["smt_factor"] = of_results(
            together,
            lambda result: 2 * _rate(result) / alone,
            "multiply-adds of two threads on one core over one thread, p10",
        )
    elif reason := measured.reason("smt", shared=1):
        absent["core.smt_factor"] = reason
    found = quantities(series)
    frequencies = {name[5:]: found.pop(name) for name in list(found) if name.startswith("freq.")}
    return {"freq": frequencies, **found}, absent


def _count(name: str) -> int:
    return int(name.removeprefix("freq."))


def _rate(result: Result) -> float:
    """Operations per second of all threads."""
    return float(result.facts["work"]) / p10(result.seconds)
