"""Bandwidth by busy cores and by level, latencies, lines that travel between cores, other domains.

Bandwidth of main memory is that of the STREAM triad with the write-allocate traffic that STREAM
does not count: a store to a line that is not in the cache reads it first, so 4 arrays move where 3
are counted (J. D. McCalpin, IEEE TCCA Newsletter 1995; G. Hager, G. Wellein, Introduction to High
Performance Computing, 2010, section 1.3).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import quantiles
from popmodel.base.units import format_size
from popmodel.base.values import NamedTuple
from popmodel.machines.bench.estimate.launch_intervals import (
    Series,
    aligned,
    fitted,
    measured_as,
    median,
    of_fit,
    of_groups,
    of_results,
    one_quantity,
    p10,
    quantities,
)
from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.machines.bench.jobs import BEYOND_CACHE, MIB
from popmodel.machines.bench.sample_files import SampleResult
from popmodel.machines.quantity import last_level_bytes
from popmodel.machines.register import DISTANCES

Array = NDArray[np.float64]

_ALLOCATE = 4 / 3  # bytes that move over bytes that STREAM counts
_COUNTS = 4  # busy cores for which bandwidth has to be known before a law is fitted
_SATURATED = 0.8  # of the bandwidth that as many single cores would have
_LEVEL = 1.1
"""Time per byte over that of a much smaller set, up to which sweeps have become no slower."""
_SWEEPS: Mapping[str, Mapping[str, int]] = {"load": {"threads": 1}, "narrow_update": {}}
"""Jobs that go over a working set, with their further parameters."""
_LAUNCHES = 5  # that have to be there before their spread is known

_USABLE_SHARE = {
    "value": 0.75,
    "low": 0.15,  # other guests of a virtual machine's processor use its cache as well
    "high": 1.0,
    "origin": "preset",
    "source": "half of a cache as the safe working set (H. Stengel et al., ICS 2015, layer "
    "conditions), two thirds of that of which half stays; the interval is assumed: others may use "
    "a shared cache. Not measured: the working sets used do not show where the last-level cache "
    "ends",
}
_LARGE = 4.0  # times the level below: few accesses of such a working set still find it there
_CACHED = 2.0  # working sets of fewer last-level caches than this may be served by it


def calibrate(
    measured: MeasuredResults, topology: Mapping[str, Any], absent: dict[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the section ``memory`` and remarks on its quality; notes why parts are absent."""
    section: dict[str, Any] = {}
    remarks: list[str] = []
    by_cores = {
        count: of_results(
            measured.results("triad", threads=count),
            partial(_rate, moved=_ALLOCATE),
            "STREAM triad x 4/3, p10",
        )
        for count in measured.values("triad", "threads")
    }
    law: dict[str, Series] = {}
    single = {f"by_cores.{count}": series for count, series in by_cores.items()}
    if 1 in by_cores:
        law = _saturation(by_cores, absent) or {"b1": by_cores[1]}
        remarks += _too_small(measured.values("triad", "bytes")[0], topology)
    if results := measured.results("copy", threads=1):
        single["copy_bw"] = of_results(
            results, partial(_rate, moved=0.5), "copy of an array, bytes copied, p10"
        )
    levels = _levels(measured, topology, absent)
    back = _write_back(measured, topology)
    found = quantities(single | levels | law | back, zero=frozenset(back))
    for name, entry in found.items():
        table, _, key = name.partition(".")
        if key:
            section.setdefault(table, {})[key] = entry
        else:
            section[name] = entry
    section |= _sharing(measured, absent)
    if pairs := _remote(measured, absent):
        section["remote"] = pairs
    if measured.values("load", "bytes"):
        section["kappa"] = _usable_share(measured, topology) or _USABLE_SHARE
        if inner := _inner_shares(measured, topology):
            section["inner_kappa"] = inner
    return section, remarks


def _too_small(array: int, topology: Mapping[str, Any]) -> list[str]:
    """Doubt arrays of the triad that do not keep STREAM's rule."""
    last = max(topology.get("caches", ()), key=lambda cache: int(cache["bytes"]), default=None)
    if last is None:
        return []
    domains = topology.get("domains", topology.get("sockets", 1))
    cores = math.ceil(topology["cores_per_node"] / domains)
    caches = last_level_bytes(last["bytes"], last["shared_by"], cores)
    if array >= BEYOND_CACHE * caches:
        return []
    return [
        f"the triad used arrays of {array / MIB:.4g} MiB, less than {BEYOND_CACHE} times the "
        "last-level "
        f"caches of a memory domain ({caches / MIB:.4g} MiB): part of the traffic may be cached"
    ]


def _rate(result: SampleResult, moved: float = 1.0) -> float:
    """Bytes per second, of which ``moved`` times as many move as are counted."""
    return float(result.facts["moved"]) * moved / p10(result.seconds)


# -- saturation


def _saturation(by_cores: Mapping[int, Series], absent: dict[str, str]) -> dict[str, Series]:
    """Fit ``b(A)`` in every launch, if the measured counts show a saturation."""
    counts = sorted(by_cores)
    most = counts[-1]
    means = {count: float(np.mean(by_cores[count].values)) for count in counts}
    reason = None
    if len(counts) < _COUNTS:
        reason = (
            f"saturation cannot be fitted from {most} core{'s' if most > 1 else ''} of a memory "
            "domain"
        )
    elif means[most] > _SATURATED * most * means[1]:
        reason = (
            f"{most} cores do not saturate the memory: they reach {means[most] / means[1]:.1f} "
            "times "
            "the bandwidth of one core"
        )
    points = aligned([by_cores[count] for count in counts], _COUNTS)
    if reason is None and points is None:
        reason = f"no launch measured the bandwidth at {_COUNTS} core counts"
    if reason is not None or points is None:
        absent |= {"memory.bsat": str(reason), "memory.q": str(reason)}
        return {}
    counts = [counts[i] for i in points.kept]
    fits, errors = fitted(points, partial(fit_saturation, counts))
    source = f"fit of the saturation law to the triad on {counts[0]} to {counts[-1]} cores"
    return {
        name: of_fit(fits[:, column], float(errors[column]), points, source)
        for column, name in enumerate(("b1", "bsat", "q"))
    }


def fit_saturation(counts: Sequence[int], bandwidth: Sequence[float] | Array) -> Array:
    """Fit ``b(A) = (A**-q (b1**-q - bsat**-q) + bsat**-q)**(-1/q)`` by least squares of
    logarithms.
    """
    from scipy.optimize import least_squares

    cores, rates = np.asarray(counts, dtype=np.float64), np.asarray(bandwidth)

    def law(x: Array) -> Array:
        ratio, q = np.exp(x[1]), 1 + np.exp(x[2])  # bsat/b1 - 1 and q - 1 are positive
        share = (1 + ratio) ** -q
        result: Array = x[0] - np.log(cores**-q * (1 - share) + share) / q
        # b1 (A**-q (1 - s**-q) + s**-q)**(-1/q), s = bsat/b1
        return result

    least, most = [-50, -7, -7], [80, 9, 4]
    start = [np.log(rates[0]), np.log(max(rates.max() / rates[0] - 1, 0.1)), np.log(2.0)]
    inside = np.clip(start, np.add(least, 0.1), np.subtract(most, 0.1))
    fit = least_squares(lambda x: law(x) - np.log(rates), inside, bounds=(least, most))
    b1 = float(np.exp(fit.x[0]))
    return np.array([b1, b1 * (1 + np.exp(fit.x[1])), 1 + np.exp(fit.x[2])])


# -- levels of the hierarchy


def _levels(
    measured: MeasuredResults, topology: Mapping[str, Any], absent: dict[str, str]
) -> dict[str, Series]:
    """Bandwidth and latency of the level that serves each working set."""
    series: dict[str, Series] = {}
    caches = topology.get("caches", ())
    sizes = set(measured.values("load", "bytes", threads=1)) | set(
        measured.values("chase", "bytes")
    )
    for level, inside in _served(sorted(sizes), caches).items():
        load = measured.results("load", threads=1, bytes=inside)
        chase = measured.results("chase", bytes=inside)
        if load and level != "MEM":
            series[f"cache_bw.{level}"] = of_results(
                load, _rate, f"reads from a working set of {inside} B, p10"
            )
        if chase:
            series[f"latency.{level}"] = of_results(
                chase,
                lambda result: p10(result.seconds),
                f"dependent loads from a working set of {inside} B, p10",
            )
    if sizes and "latency.MEM" not in series:
        absent["memory.latency.MEM"] = (
            "no working set was much larger than the last-level cache; the largest was "
            f"{format_size(max(sizes), digits=3)}"
        )
    return series


def _write_back(measured: MeasuredResults, topology: Mapping[str, Any]) -> dict[str, Series]:
    """Time of writing a line back to a cache over that of reading one from it, by level.

    A sweep that updates its lines reads each and writes each back: what it takes longer than one
    that only reads.
    """
    series: dict[str, Series] = {}
    caches = topology.get("caches", ())
    reads = measured.values("load", "bytes", threads=1)
    for level, inside in _served(reads, caches).items():
        job = {"threads": 1, "bytes": inside}
        groups = measured.together(("update", job), ("load", job))
        if groups and level != "MEM" and level != caches[0]["level"]:
            series[f"write_back.{level}"] = of_groups(
                groups,
                lambda update, read: max(p10(update.seconds) / p10(read.seconds) - 1, 0.0),
                f"update of a working set of {inside} B over reading it, less 1, p10",
                scale=1.0,
            )
    return series


def _inner_shares(measured: MeasuredResults, topology: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usable share of every cache that is not the last, by level, where it shows."""
    caches = topology.get("caches", ())
    sizes = measured.values("load", "bytes", threads=1)
    inside = _served(sizes, caches)
    found: dict[str, Any] = {}
    for cache, beyond in pairwise(caches):
        level, outer = cache["level"], beyond["level"]
        if level not in inside or outer not in inside:
            continue
        between = [size for size in sizes if inside[level] <= size <= inside[outer]]
        end = _half_way(between, _sweeps(measured, "load", between))
        if end is not None:
            what = f"reads slow down half way from {level} to {outer}"
            found[str(level)] = _share(end, cache["bytes"], what)
    return found


def _served(sizes: Sequence[int], caches: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Give, by level, a working set that it holds and the level below does not."""
    served: dict[str, int] = {}
    below = 0
    for cache in caches:
        inside = [size for size in sizes if 1.4 * below < size <= cache["bytes"] // 2]
        if inside:
            # the smallest that is large against the level below: a virtual machine, or a node that
            # is shared, has less of a large cache than it says
            served[str(cache["level"])] = next(
                (size for size in inside if size >= _LARGE * below), inside[-1]
            )
        below = cache["bytes"]
    outside = [size for size in sizes if size >= _CACHED * below]
    if outside:
        served["MEM"] = outside[-1]
    return served


class _End(NamedTuple):
    """Working set at which sweeps are half way between two levels, with its bounds, B."""

    middle: float
    low: float
    high: float
    sizes: int


def _usable_share(measured: MeasuredResults, topology: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the working set of which half stays in the last cache, over it.

    That at which updates by vectors as narrow as programs have are half way: these feel a line that
    is lost more than wide ones, which work on more lines at a time, and less of what is written may
    stay. The interval reaches to where reads are half way. Where the end of updates does not show,
    reads alone tell.
    """
    *inner, last = sorted(cache["bytes"] for cache in topology.get("caches", ())) or [0]
    least = max(last / 32, 4 * max(inner, default=0))
    reads = _end_of_last(measured, "load", least, last)
    if reads is None:
        return None
    updates = _end_of_last(measured, "narrow_update", least, last)
    if updates is None:
        return _share(reads, last, "reads slow down half way from last-level cache to memory")
    both = _End(
        updates.middle,
        min(reads.low, updates.low),
        max(reads.high, updates.high),
        reads.sizes + updates.sizes,
    )
    what = "updates slow down half way from last-level cache to memory; the interval holds reads"
    return _share(both, last, what)


def _share(end: _End, cache: int, what: str) -> dict[str, Any]:
    """Return the end of a cache over its size, as a quantity of the profile."""
    shares = (round(one / cache, 3) for one in (end.middle, end.low, end.high))
    return measured_as(shares, end.sizes, f"working set at which {what}")


def _end_of_last(measured: MeasuredResults, job: str, least: float, last: int) -> _End | None:
    """Return where sweeps of one kind are half way from the last cache to memory, if it shows.

    Memory is what sets of twice the cache come from, or smaller ones whose time no longer grows: of
    a cache that others use as well.
    """
    sizes = [size for size in measured.values(job, "bytes", **_SWEEPS[job]) if size >= least]
    if not last or len(sizes) < 4:
        return None
    times = _sweeps(measured, job, sizes)
    before = [time for size, time in zip(sizes, times, strict=True) if 1.4 * size <= sizes[-1]]
    if sizes[-1] < 2 * last and (not before or times[-1] > _LEVEL * before[-1]):
        return None
    end = _half_way(sizes, times)
    launches = _ends_by_launch(measured, job, sizes)
    if end is None or len(launches) < _LAUNCHES:
        return end
    # the bounds hold those of most launches, where there are enough to tell
    low, high = quantiles(np.array(launches), (0.05, 0.95))
    return end._replace(low=min(end.low, low), high=max(end.high, high))


def _sweeps(measured: MeasuredResults, job: str, sizes: Sequence[int]) -> Array:
    """Time per byte of going over working sets, s/B; the median of the launches."""
    return np.array(
        [
            np.median([_pace(one) for one in measured.results(job, bytes=size, **_SWEEPS[job])])
            for size in sizes
        ]
    )


def _pace(result: SampleResult) -> float:
    """Time per byte of a sweep, s/B: the median of its batches, not those at their shortest.

    What others leave of a cache comes and goes, also within the time of a program, which has what
    they leave on average.
    """
    return median(result.seconds) / float(result.facts["moved"])


def _half_way(sizes: Sequence[int], times: Array) -> _End | None:
    """Return the working set at which sweeps are half way from the first to the last.

    Half way in the time per byte. Its bounds are the neighbouring working sets, between which
    nothing is known. None if the first and the last take about the same time.
    """
    if times[-1] < 1.3 * times[0]:
        return None
    half = (times[0] + times[-1]) / 2
    above = int(np.argmax(times >= half))
    below, beyond = sizes[above - 1], sizes[above]
    share = (half - times[above - 1]) / (times[above] - times[above - 1])
    middle = float(below * (beyond / below) ** share)
    return _End(middle, min(below, middle), max(beyond, middle), len(sizes))


def _ends_by_launch(measured: MeasuredResults, job: str, sizes: Sequence[int]) -> list[float]:
    """Return where the sweeps of each launch are half way, of those with at least half the sizes.

    Launches differ in the pages that they have and in what others leave them of the cache. Small
    sets are measured in other launches than large ones: what a launch lacks is the median of all.
    """
    curves: dict[Hashable, dict[int, float]] = {}
    for size in sizes:
        for one in measured.results(job, bytes=size, **_SWEEPS[job]):
            curves.setdefault(one.launch, {})[size] = _pace(one)
    common = dict(zip(sizes, _sweeps(measured, job, sizes), strict=True))
    ends = [
        _half_way(sizes, np.array(list((common | own).values())))
        for own in curves.values()
        if 2 * len(own) >= len(sizes)
    ]
    return [end.middle for end in ends if end is not None]


# -- lines between cores


def _sharing(measured: MeasuredResults, absent: dict[str, str]) -> dict[str, Any]:
    section: dict[str, Any] = {}
    transfers = {
        distance: of_results(
            measured.results("line_transfer", distance=distance),
            lambda result: p10(result.seconds),
            "one-way transfer of a cache line between two threads, p10",
        )
        for distance in measured.values("line_transfer", "distance")
    }
    if transfers:
        section["line_transfer"] = quantities(transfers)
    for distance in DISTANCES:
        if distance not in transfers and (
            reason := measured.reason("line_transfer", distance=distance)
        ):
            absent[f"memory.line_transfer.{distance}"] = reason
    taken_over = {
        distance: of_results(
            measured.results("line_takeover", distance=distance),
            lambda result: median(result.seconds) / float(result.facts["work"]),
            "write of a byte in each of many cache lines that another core has just written, "
            "median",
        )
        for distance in measured.values("line_takeover", "distance")
    }
    if taken_over:
        section["line_takeover"] = quantities(taken_over)
    counts = measured.values("false_sharing", "threads")
    if transfers and counts:
        distance = measured.values("line_transfer", "distance")[-1]  # near, where it is measured
        groups = measured.together(
            ("false_sharing", {"threads": counts[0], "padded": 0}),
            ("false_sharing", {"threads": counts[0], "padded": 1}),
            ("line_transfer", {"distance": distance}),
        )
        if groups:
            series = of_groups(
                groups,
                lambda packed, padded, move: (
                    (median(packed.seconds) - median(padded.seconds)) / p10(move.seconds)
                ),
                "update of a packed counter minus that of a padded one, relative to the "
                "transfer of "
                "a cache line, median",
                scale=1.0,
            )
            section["kappa_fs"] = one_quantity(series, zero=True)
    return section


# Memory of another domain: bandwidth against that of one's own, and latency.
#
# Threads that are bound to one memory domain use data that was touched first from another, and from
# their own in the same launch: what slows the whole launch cancels from the ratio.


def _remote(measured: MeasuredResults, absent: dict[str, str]) -> dict[str, Any]:
    """Return ``memory.remote``: by pair, domain of the threads first, then that of the data."""
    section: dict[str, Any] = {}
    tried = {
        (one.params["on"], one.params["data"]): one.absent
        for one in [*measured.all_of("remote_triad"), *measured.all_of("remote_chase")]
    }
    for on, data in sorted(pair for pair in tried if pair[0] != pair[1]):
        name = f"{on}-{data}"
        if series := _remote_series(measured, on, data):
            section[name] = quantities(series)
        elif (reason := tried[on, data]) is not None:
            absent[f"memory.remote.{name}"] = reason
    return section


def _remote_series(measured: MeasuredResults, on: int, data: int) -> dict[str, Series]:
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
                pairs,
                lambda remote, local: p10(local.seconds) / p10(remote.seconds),
                f"triad of {cores}, remote over local data, p10",
            )
    if chases := measured.results("remote_chase", on=on, data=data):
        series["latency"] = of_results(
            chases, lambda result: p10(result.seconds), "dependent loads of remote data, p10"
        )
    return series
