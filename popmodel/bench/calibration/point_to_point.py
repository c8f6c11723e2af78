"""Messages: latency and bandwidth by size class, overheads, gaps, the switch of the protocol.

Sources: R. Hockney, Parallel Computing 20 (1994) 389 (``alpha + beta m`` per class); A. Alexandrov
et al., LogGP, SPAA 1995; T. Kielmann et al., IPDPS workshops 2000 (what each exchange tells).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.bench.calibration.fits import aligned
from popmodel.bench.calibration.intervals import CLIPPED, quantities
from popmodel.bench.calibration.measured import Measured, Placement
from popmodel.bench.calibration.series import Series, median, of_groups, of_results, p10
from popmodel.bench.calibration.size_classes import Switch, cut_into_classes
from popmodel.bench.samples import Result
from popmodel.network.point_to_point import SizeClass, by_size

Array = NDArray[np.float64]

# what the programs call a distance -> the tier of the profile
TIERS = {"near": "socket", "node": "intra", "network": "inter"}
_LEAST_SIZES = 3  # of messages, for a line and its error
_MISFIT = 0.25  # of a measured time
_CROWDED = 0.9  # of the bandwidth that so many pairs would have alone


def calibrate(measured: Measured) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the section ``net`` of a profile, and why parts of it are absent."""
    section: dict[str, Any] = {}
    absent: dict[str, str] = {}
    for distance, tier in TIERS.items():
        if entry := _tier(measured, distance, tier, absent):
            section[tier] = entry
        elif reason := measured.reason("ping_pong", tier=distance):
            absent[f"net.{tier}"] = reason
    _crowding(measured, section, absent)
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


def misfits(section: Mapping[str, Any]) -> list[str]:
    """Say where the lines of the size classes miss what was measured by more than a quarter."""
    found = []
    for tier in TIERS.values():
        if tier not in section:
            continue
        classes = [
            SizeClass(one["upto"], one["alpha"]["value"], one["beta"]["value"])
            for one in section[tier]["classes"]
        ]
        errors = {
            row["bytes"]: float(by_size(row["bytes"], classes)) / row["seconds"]["value"] - 1
            for row in section[tier]["table"]
        }
        size = max(errors, key=lambda size: abs(errors[size]))
        if abs(errors[size]) > _MISFIT:
            found.append(
                f"the fit of net.{tier}.classes differs by {100 * errors[size]:+.0f} % from the "
                "measured "
                f"time of a message of {size} B"
            )
    return found


def nothing_left(section: Mapping[str, Any]) -> list[str]:
    """Say of which calls nothing was left when the cost of the clock was taken off."""
    names = [
        f"net.{tier}.{key}"
        for tier in TIERS.values()
        for key in ("os", "or", "g")
        if section.get(tier, {}).get(key, {}).get("value") == 0
    ]
    return [f"{CLIPPED}: {', '.join(names)}"] if names else []


# -- a tier


def _tier(
    measured: Measured, distance: str, tier: str, absent: dict[str, str]
) -> dict[str, Any] | None:
    usual = _placed_alike(measured, distance)
    sizes = list(usual)
    if len(sizes) < _LEAST_SIZES:
        return None
    table = {
        size: of_results(
            usual[size],
            lambda result: p10(result.seconds),
            "half ping-pong, p10",
        )
        for size in usual
    }
    points = aligned([table[size] for size in sizes], _LEAST_SIZES)
    if points is None:
        absent[f"net.{tier}"] = f"no launch measured {_LEAST_SIZES} message sizes"
        return None
    entry: dict[str, Any] = {}
    switch = _switch(measured, distance)
    if isinstance(switch, str):
        absent[f"net.{tier}.eager_threshold"] = switch
        switch = None
    entry["classes"], switch = cut_into_classes([sizes[i] for i in points.kept], points, switch)
    if switch is not None:
        late = measured.results("late_receiver", tier=distance)
        entry["eager_threshold"] = _threshold(switch, sum(one.seconds.size for one in late))
    times = quantities({str(size): series for size, series in table.items()})
    entry["table"] = [{"bytes": size, "seconds": times[str(size)]} for size in sizes]
    entry |= _overheads(measured, distance)
    entry |= _windows(measured, distance)
    return entry


def _placed_alike(measured: Measured, distance: str) -> dict[int, list[Result]]:
    """Ping-pongs by size, of the launches whose ranks are placed alike and measured most sizes.

    Others have a few sizes for the price of full thread support. That costs something itself: its
    launches count only if there are no others.
    """
    for multiple in (False, True):
        tables: dict[Placement, dict[int, list[Result]]] = {}
        for size in measured.values("ping_pong", "bytes", tier=distance):
            found = measured.by_placement("ping_pong", multiple=multiple, tier=distance, bytes=size)
            for placement, results in found.items():
                tables.setdefault(placement, {})[size] = results
        if tables:
            return max(tables.values(), key=len)
    return {}


def _switch(measured: Measured, distance: str) -> Switch | str | None:
    """Find the switch: a sender that returns before a late receiver comes has sent eagerly."""
    eager: list[int] = []
    waiting: list[int] = []
    for size in measured.values("late_receiver", "bytes", tier=distance):
        waits = [
            median(result.seconds) >= 0.5 * float(result.params["delay"])
            for result in measured.results("late_receiver", tier=distance, bytes=size)
        ]
        (waiting if np.mean(waits) > 0.5 else eager).append(size)
    if not eager and not waiting:
        return None
    if not waiting:
        return f"all messages, up to {eager[-1]} B, were sent eagerly"
    if not eager:
        return f"even messages of {waiting[0]} B wait for their receiver"
    if eager[-1] > waiting[0]:
        return (
            f"inconsistent: messages of {waiting[0]} B wait for a late receiver, those of "
            f"{eager[-1]} B "
            "do not"
        )
    return Switch(eager[-1], waiting[0])


def _threshold(switch: Switch, batches: int) -> dict[str, Any]:
    low, high = switch.interval()
    return {
        "value": low,
        "low": low,
        "high": high,
        "origin": "measured",
        "n": batches,
        "source": f"messages of {switch.eager} B do not wait for a late receiver, those of "
        f"{switch.waiting} B do, or their times show the jump of the protocol change",
    }


def _overheads(measured: Measured, distance: str) -> dict[str, Any]:
    series: dict[str, Series] = {}
    for key, job, what in (
        ("os", "send_overhead", "time in MPI_Isend"),
        ("or", "receive_overhead", "receive of a message that has already arrived"),
    ):
        sizes = measured.values(job, "bytes", tier=distance)
        if sizes:
            results = measured.results(job, tier=distance, bytes=sizes[0])
            source = f"{what}, {sizes[0]} B, p10"
            series[key] = of_results(results, lambda result: p10(result.seconds), source)
    # the cost of the clock is taken off a call: what is left of a short one may be nothing
    sizes = measured.values("train", "bytes", tier=distance)
    if sizes and (gap := _gap(measured, distance, sizes[0])) is not None:
        series["g"] = gap
    return quantities(series, zero=frozenset(name for name, one in series.items() if one.scale))


def _gap(measured: Measured, distance: str, size: int) -> Series | None:
    """Slope of the time of a train over its number of messages."""
    counts = measured.values("train", "count", tier=distance, bytes=size)
    if len(counts) < 2:
        return None
    wanted = {"tier": distance, "bytes": size}
    pairs = measured.together(
        ("train", {"count": counts[-1], **wanted}), ("train", {"count": counts[0], **wanted})
    )
    if not pairs:
        return None
    return of_groups(
        pairs,
        lambda long, short: (p10(long.seconds) - p10(short.seconds)) / (counts[-1] - counts[0]),
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
    under_way = round(float(one[0].facts["moved"]) / size)  # fewer of the largest messages
    series = {
        "G": of_results(
            one,
            lambda result: 1 / _rate(result),
            f"{under_way} message{'s' if under_way > 1 else ''} of {size} B in flight, p10",
        )
    }
    wanted = {"tier": distance, "pairs": 1, "bytes": size}
    ways = [("window", {"direction": direction, **wanted}) for direction in ("both", "one")]
    if groups := measured.together(*ways):
        series["bidirectional"] = of_groups(
            groups,
            lambda both, single: _rate(both) / _rate(single),
            f"bandwidth of both directions at once relative to one, {size} B, p10",
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


def _crowding(measured: Measured, section: dict[str, Any], absent: dict[str, str]) -> None:
    """Limits shared by the pairs of a node: its memory (``shm_k``) and its adapter (``nic_G``)."""
    for tier, key in (("intra", "shm_k"), ("inter", "nic_G")):
        rows = list(section.get(tier, {}).get("pairs", ()))
        if not rows:
            if tier in section:
                absent[f"net.{key}"] = "one pair of processes cannot show contention"
            continue
        size = max(row["bytes"] for row in rows)
        rates = {row["pairs"]: row["bandwidth"] for row in rows if row["bytes"] == size}
        most = max(rates)
        if 1 not in rates or rates[most]["value"] > _CROWDED * most * rates[1]["value"]:
            absent[f"net.{key}"] = (
                f"no contention: {most} pairs of processes do not slow down each other's "
                f"messages of {size} B"
            )
            continue
        top = max(rates, key=lambda count: float(rates[count]["value"]))
        distance = next(name for name, known in TIERS.items() if known == tier)
        wanted = {"tier": distance, "direction": "one", "bytes": size}
        ways = [("window", {"pairs": pairs, **wanted}) for pairs in (top, 1)]
        series = of_groups(
            measured.together(*ways),
            _capacity if key == "shm_k" else _gap_of_all,
            f"aggregate bandwidth of up to {most} pairs, messages of {size} B",
        )
        section[key] = quantities({key: series})[key]


def _capacity(crowd: Result, alone: Result) -> float:
    """Pairs whose bandwidth alone adds up to that of the crowd."""
    return _crowded_rate(crowd) / _crowded_rate(alone)


def _gap_of_all(crowd: Result, _: Result) -> float:
    return 1 / _crowded_rate(crowd)
