"""Memory of another domain: bandwidth against that of one's own, and latency.

Threads that are bound to one memory domain use data that was touched first from another, and from
their own in the same launch: what slows the whole launch cancels from the ratio.
"""

from __future__ import annotations

from typing import Any

from popmodel.bench.calibration.intervals import Series, of_groups, of_results, p10, quantities
from popmodel.bench.calibration.measured import MeasuredResults
from popmodel.bench.samples import SampleResult


def calibrate(measured: MeasuredResults, absent: dict[str, str]) -> dict[str, Any]:
    """Return ``memory.remote``: by pair, domain of the threads first, then that of the data."""
    section: dict[str, Any] = {}
    tried = {
        (one.params["on"], one.params["data"]): one.absent
        for one in [*measured.all_of("remote_triad"), *measured.all_of("remote_chase")]
    }
    for on, data in sorted(pair for pair in tried if pair[0] != pair[1]):
        name = f"{on}-{data}"
        if series := _series(measured, on, data):
            section[name] = quantities(series)
        elif (reason := tried[on, data]) is not None:
            absent[f"memory.remote.{name}"] = reason
    return section


def _series(measured: MeasuredResults, on: int, data: int) -> dict[str, Series]:
    series: dict[str, Series] = {}
    counts = measured.values("remote_triad", "threads", on=on, data=data)
    names = {1: "bandwidth", **({max(counts): "saturated"} if max(counts, default=1) > 1 else {})}
    for count, name in names.items():
        pairs = measured.together(
            ("remote_triad", {"threads": count, "on": on, "data": data}),
            ("remote_triad", {"threads": count, "on": on, "data": on}),
        )
        if pairs:
            cores = f"{count} core{'s' if count > 1 else ''}"
            series[name] = of_groups(
                pairs, _rate_ratio, f"triad of {cores}, remote over local data, p10"
            )
    if chases := measured.results("remote_chase", on=on, data=data):
        series["latency"] = of_results(
            chases, lambda result: p10(result.seconds), "dependent loads of remote data, p10"
        )
    return series


def _rate_ratio(remote: SampleResult, local: SampleResult) -> float:
    return p10(local.seconds) / p10(remote.seconds)
