"""Messages: latency and bandwidth by size class, overheads, gaps, the switch of the protocol.

Sources: R. Hockney, Parallel Computing 20 (1994) 389 (``alpha + beta m`` per class); A. Alexandrov
et al., LogGP, SPAA 1995; T. Kielmann et al., IPDPS workshops 2000 (what each exchange tells).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.machine.calibration.measured import Measured
from popmodel.machine.calibration.statistics import (
    Series,
    median,
    of_results,
    p10,
    quantities,
)
from popmodel.machine.checks import CLASS_STEP
from popmodel.machine.samples import Result

Array = NDArray[np.float64]

# what the programs call a distance -> the tier of the profile
TIERS = {"near": "socket", "node": "intra", "network": "inter"}
_MOST_CLASSES = 4
_KNOWN_TO = 0.01  # no size is known better, relatively, than this
_CROWDED = 0.9  # of the bandwidth that so many pairs would have alone


def calibrate(measured: Measured) -> tuple[dict[str, Any], dict[str, str]]:
    """Give the section ``net`` of a profile, and why parts of it are absent."""
    section: dict[str, Any] = {}
    absent: dict[str, str] = {}
    for distance, tier in TIERS.items():
        if entry := _tier(measured, distance, tier, absent):
            section[tier] = entry
        elif reason := measured.reason("ping_pong", tier=distance):
            absent[f"net.{tier}"] = reason
    _crowding(section, absent)
    if results := measured.results("reduce_local"):
        size = max(result.params["bytes"] for result in results)
        largest = [result for result in results if result.params["bytes"] == size]
        series = of_results(
            largest,
            lambda result: p10(result.seconds) / size,
            f"MPI_Reduce_local of {size} B, sum of doubles, p10",
        )
        section["reduce_gamma"] = quantities({"x": series})["x"]
    return section, absent


# -- a tier


def _tier(
    measured: Measured, distance: str, tier: str, absent: dict[str, str]
) -> dict[str, Any] | None:
    sizes = measured.values("ping_pong", "bytes", tier=distance)
    if len(sizes) < 3:
        return None
    table = {
        size: of_results(
            measured.at_level(False, "ping_pong", tier=distance, bytes=size)
            or measured.results("ping_pong", tier=distance, bytes=size),
            lambda result: p10(result.seconds),
            "half of a ping-pong, p10",
        )
        for size in sizes
    }
    entry: dict[str, Any] = {}
    switch = _eager_threshold(measured, distance)
    if isinstance(switch, dict):
        entry["eager_threshold"] = switch
    elif switch is not None:
        absent[f"net.{tier}.eager_threshold"] = switch
    entry["classes"] = size_classes(
        table, int(switch["value"]) if isinstance(switch, dict) else None
    )
    points = quantities({str(size): series for size, series in table.items()})
    entry["table"] = [{"bytes": size, "seconds": points[str(size)]} for size in sizes]
    entry |= _overheads(measured, distance)
    entry |= _windows(measured, distance)
    return entry


@dataclass(frozen=True)
class _Line:
    """A line over consecutive sizes; ``first`` and ``last`` are their indices."""

    first: int
    last: int
    alpha: float
    beta: float
    error: float  # sum of squared relative errors

    def at(self, size: float) -> float:
        return self.alpha + self.beta * size


def size_classes(table: Mapping[int, Series], switch: int | None) -> list[dict[str, Any]]:
    """Cut the sizes into classes with a line each, by the corrected Akaike criterion.

    Lines meet within the step that a profile allows, except where the protocol changes: there the
    time may jump up. Latencies are at least that of the smallest message.

    Parameters
    ----------
    table : mapping of int to Series
        Time by message size, s; rising sizes.
    switch : int or None
        Largest message sent eagerly, if known.
    """
    sizes = np.array(sorted(table), dtype=np.float64)
    launches = min(len(series.values) for series in table.values())
    times = np.array([table[int(size)].values[:launches] for size in sizes]).T
    typical = np.exp(np.log(times).mean(axis=0))
    cuts = _segmentation(sizes, typical, switch)
    series: dict[str, Series] = {}
    batches = sum(one.batches for one in table.values())
    for index, (first, last) in enumerate(cuts):
        part = slice(first, last + 1)
        lines = np.array([_line(sizes[part], one[part], one.min())[:2] for one in times])
        source = f"fit to half ping-pongs of {int(sizes[first])} to {int(sizes[last])} B, p10"
        for column, name in enumerate(("alpha", "beta")):
            values = tuple(lines[:, column].tolist())
            scale = None if min(values) > 0 else max(float(np.mean(values)), 1e-15)
            series[f"{index}.{name}"] = Series(values, source, batches, scale)
    zero = frozenset(name for name, one in series.items() if one.scale)
    found = quantities(series, zero=zero, alike=False)
    classes = []
    for index, (_, last) in enumerate(cuts):
        upto = int(sizes[last]) if index + 1 < len(cuts) else None
        if upto is not None and switch is not None and sizes[last] <= switch < sizes[last + 1]:
            upto = switch
        classes.append(
            {"upto": upto, "alpha": found[f"{index}.alpha"], "beta": found[f"{index}.beta"]}
        )
    return classes


def _segmentation(sizes: Array, times: Array, switch: int | None) -> list[tuple[int, int]]:
    n = len(sizes)
    least = float(times.min())
    lines = {
        (i, j): _Line(i, j, *_line(sizes[i : j + 1], times[i : j + 1], least))
        for i in range(n)
        for j in range(i, n)
        # a line needs two sizes, unless it is all there is
        if j - i >= 1 or n == 1
    }
    best, chosen = math.inf, [(0, n - 1)]
    for count in range(1, _MOST_CLASSES + 1):
        for ends in itertools.combinations(range(1, n - 1), count - 1):
            bounds = [-1, *ends, n - 1]
            cut = [(a + 1, b) for a, b in itertools.pairwise(bounds)]
            if not all(part in lines for part in cut):
                continue
            parts = [lines[part] for part in cut]
            if not all(_meet(a, b, sizes, switch) for a, b in itertools.pairwise(parts)):
                continue
            free = 3 * count - 1
            if switch is not None and any(
                sizes[a.last] <= switch < sizes[b.first] for a, b in itertools.pairwise(parts)
            ):
                free -= 1  # this bound is known
            if free >= n - 1 and count > 1:
                continue
            error = sum(part.error for part in parts) / n + _KNOWN_TO**2
            score = n * math.log(error) + 2 * free
            if n - free - 1 > 0:
                score += 2 * free * (free + 1) / (n - free - 1)
            if score < best - 1e-9:
                best, chosen = score, cut
    return chosen


def _meet(lower: _Line, upper: _Line, sizes: Array, switch: int | None) -> bool:
    bound = sizes[lower.last]
    if switch is not None and bound <= switch < sizes[upper.first]:
        return upper.at(switch) >= lower.at(switch) * (1 - CLASS_STEP)
    # some room below what is allowed: the launches apart may differ more
    return abs(upper.at(bound) - lower.at(bound)) <= 0.8 * CLASS_STEP * lower.at(bound)


def _line(sizes: Array, times: Array, least: float) -> tuple[float, float, float]:
    """Fit ``alpha + beta m`` by least squares of relative errors; alpha >= least, beta >= 0."""
    a, b = 1 / times, sizes / times  # minimise sum (alpha a + beta b - 1)**2
    aa, ab, bb = float(a @ a), float(a @ b), float(b @ b)
    sa, sb = float(a.sum()), float(b.sum())
    determinant = aa * bb - ab * ab
    alpha, beta = least, 0.0
    if determinant > 1e-12 * aa * bb:
        alpha = (sa * bb - sb * ab) / determinant
        beta = (sb * aa - sa * ab) / determinant
    if beta < 0 or determinant <= 1e-12 * aa * bb:
        alpha, beta = sa / aa, 0.0
    if alpha < least:
        alpha = least
        beta = max((sb - least * ab) / bb, 0.0) if bb else 0.0
    return alpha, beta, float(((alpha * a + beta * b - 1) ** 2).sum())


def _eager_threshold(measured: Measured, distance: str) -> dict[str, Any] | str | None:
    """Find the switch: a sender that returns before a late receiver comes has sent eagerly."""
    eager: list[int] = []
    waiting: list[int] = []
    results = measured.results("late_receiver", tier=distance)
    for size in sorted({result.params["bytes"] for result in results}):
        at_size = [result for result in results if result.params["bytes"] == size]
        waits = [
            median(result.seconds) >= 0.5 * float(result.params["delay"]) for result in at_size
        ]
        (waiting if np.mean(waits) > 0.5 else eager).append(size)
    if not results:
        return None
    if not waiting:
        return f"messages of up to {eager[-1]} B were all sent eagerly"
    if not eager:
        return f"already messages of {waiting[0]} B wait for their receiver"
    low = max(size for size in eager if size < waiting[0]) if eager[0] < waiting[0] else eager[0]
    batches = sum(result.seconds.size for result in results)
    return {
        "value": low,
        "low": low,
        "high": max(low, waiting[0] - 1),
        "origin": "measured",
        "n": batches,
        "source": "largest message that does not wait for a late receiver; high: one byte below "
        "the smallest that does",
    }


def _overheads(measured: Measured, distance: str) -> dict[str, Any]:
    series: dict[str, Series] = {}
    for key, job, what in (
        ("os", "send_overhead", "time in MPI_Isend"),
        ("or", "receive_overhead", "receive of a message that has arrived"),
    ):
        sizes = measured.values(job, "bytes", tier=distance)
        if sizes:
            results = measured.results(job, tier=distance, bytes=sizes[0])
            source = f"{what}, {sizes[0]} B, p10"
            series[key] = of_results(results, lambda result: p10(result.seconds), source)
    sizes = measured.values("train", "bytes", tier=distance)
    if sizes and (gap := _gap(measured, distance, sizes[0])) is not None:
        series["g"] = gap
    return quantities(series)


def _gap(measured: Measured, distance: str, size: int) -> Series | None:
    """Slope of the time of a train over its number of messages."""
    counts = measured.values("train", "count", tier=distance, bytes=size)
    if len(counts) < 2:
        return None
    short, long = (
        measured.results("train", tier=distance, bytes=size, count=count)
        for count in (counts[0], counts[-1])
    )
    base = float(np.mean([p10(result.seconds) for result in short]))
    return of_results(
        long,
        lambda result: max((p10(result.seconds) - base) / (counts[-1] - counts[0]), 1e-12),
        f"trains of {counts[0]} and {counts[-1]} messages of {size} B, p10",
    )


def _rate(result: Result) -> float:
    return float(result.facts["moved"]) / p10(result.seconds)


def _windows(measured: Measured, distance: str) -> dict[str, Any]:
    """Gap per byte of many messages under way, and what both directions bring together."""
    sizes = measured.values("window", "bytes", tier=distance, pairs=1, direction="one")
    if not sizes:
        return {}
    size = sizes[-1]
    one = measured.results("window", tier=distance, pairs=1, direction="one", bytes=size)
    series = {
        "G": of_results(
            one,
            lambda result: 1 / _rate(result),
            f"64 messages of {size} B under way, p10",
        )
    }
    if both := measured.results("window", tier=distance, pairs=1, direction="both", bytes=size):
        alone = float(np.mean([_rate(result) for result in one]))
        series["bidirectional"] = of_results(
            both,
            lambda result: _rate(result) / alone,
            f"bandwidth of both directions over that of one, {size} B, p10",
        )
    entry: dict[str, Any] = dict(quantities(series))
    pairs = {
        (count, bytes_): of_results(
            measured.results("window", tier=distance, pairs=count, direction="one", bytes=bytes_),
            _crowded_rate,
            "windows of several pairs at once, median",
        )
        for bytes_ in sizes
        for count in measured.values(
            "window", "pairs", tier=distance, direction="one", bytes=bytes_
        )
    }
    if any(count > 1 for count, _ in pairs):
        found = quantities({f"{count}:{bytes_}": one for (count, bytes_), one in pairs.items()})
        entry["pairs"] = [
            {"pairs": count, "bytes": bytes_, "bandwidth": found[f"{count}:{bytes_}"]}
            for count, bytes_ in sorted(pairs)
        ]
    return entry


def _crowded_rate(result: Result) -> float:
    return float(result.facts["moved"]) / median(result.seconds)


def _crowding(section: dict[str, Any], absent: dict[str, str]) -> None:
    """Limits shared by the pairs of a node: its memory (``shm_k``) and its adapter (``nic_G``)."""
    for tier, key in (("intra", "shm_k"), ("inter", "nic_G")):
        rows = list(section.get(tier, {}).get("pairs", ()))
        if not rows:
            if tier in section:
                absent[f"net.{key}"] = "one pair of processes cannot crowd each other"
            continue
        size = max(row["bytes"] for row in rows)
        rates = {row["pairs"]: row["bandwidth"] for row in rows if row["bytes"] == size}
        most = max(rates)
        if 1 not in rates or rates[most]["value"] > _CROWDED * most * rates[1]["value"]:
            absent[f"net.{key}"] = (
                f"{most} pairs of processes do not crowd each other with messages of {size} B"
            )
            continue
        top = max(rates.values(), key=lambda entry: float(entry["value"]))
        one = rates[1]
        source = f"aggregate bandwidth of up to {most} pairs, messages of {size} B"
        if key == "shm_k":
            values = [
                top["value"] / one["value"],
                top["low"] / one["high"],
                top["high"] / one["low"],
            ]
        else:
            values = [1 / top["value"], 1 / top["high"], 1 / top["low"]]
        section[key] = {
            **dict(zip(("value", "low", "high"), values, strict=True)),
            "origin": "measured",
            "n": top["n"],
            "source": source,
        }
