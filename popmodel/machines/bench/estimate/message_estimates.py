"""Messages: latency and bandwidth by size class, overheads, gaps, the switch of the protocol."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.values import NamedTuple
from popmodel.machines.bench.estimate.launch_intervals import (
    CLIPPED,
    LEVEL,
    EstimatePoints,
    Series,
    aligned,
    criterion,
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
from popmodel.machines.bench.estimate.measured_results import MeasuredResults, Placement
from popmodel.machines.bench.sample_files import SampleResult
from popmodel.machines.profile_schema import may_follow
from popmodel.network.point_to_point import SizeClass, by_size

# Classes of message sizes with a line each, and the size at which the protocol changes.
#
# A late receiver tells between which two sizes the change is: the larger message waits for its
# receiver, the smaller does not. Where in between, the times of ping-pongs tell, if they jump
# there.


Array = NDArray[np.float64]

_MOST_CLASSES = 4
_MARGIN = 0.999  # for numbers that are rounded in the profile
_KNOWN_TO = 0.01  # no size is known better, relatively, than this
_PLAUSIBLE = 6.0  # by how much the criterion may be worse: 20 times less likely


class Switch(NamedTuple):
    """Where messages cease to be sent eagerly."""

    eager: int  # Largest message known to be sent without waiting, bytes
    waiting: int  # Smallest known to wait for its receiver

    def interval(self) -> tuple[int, int]:
        """Ends of the 90 % interval of the largest eager message.

        Thresholds are round numbers as a rule, and so are the sizes that are measured: the lower
        end belongs to it. Otherwise any size in between is as likely on a logarithmic scale.
        """
        reach = self.eager * (self.waiting / self.eager) ** LEVEL if self.eager else 0.0
        return self.eager, max(self.eager, min(int(reach), self.waiting - 1))


class _Line(NamedTuple):
    """A line over consecutive sizes; ``first`` and ``last`` are their indices."""

    first: int
    last: int
    alpha: float
    beta: float
    error: float  # sum of squared relative errors

    def at(self, size: float) -> float:
        return self.alpha + self.beta * size


class _Cut(NamedTuple):
    """Classes as first and last indices of sizes, and how good they are (less is better)."""

    parts: tuple[tuple[int, int], ...]
    score: float


def cut_into_classes(
    sizes: Sequence[int], points: EstimatePoints, switch: Switch | None = None
) -> tuple[list[dict[str, Any]], Switch | None]:
    """Cut the sizes into classes with a line each, by the corrected Akaike criterion.

    Lines meet as a profile demands (`may_follow`). They are fitted to the mean of the launches;
    lines fitted to every launch tell how uncertain they are. Latencies are at least the shortest
    time.
    """
    bytes_ = np.array(sizes, dtype=np.float64)
    typical = np.exp(np.log(points.values).mean(axis=0))
    lines = _lines(bytes_, typical)
    if switch is None:
        cut = _segmentation(bytes_, lines, None)
    else:
        cut, switch = _at_the_jump(bytes_, lines, switch)
    series: dict[str, Series] = {}
    for index, (first, last) in enumerate(cut.parts):
        part = slice(first, last + 1)
        fits, errors = fitted(points, partial(_parameters, bytes_, part))
        best = lines[first, last].alpha, lines[first, last].beta
        source = f"fit to half ping-pongs of {sizes[first]} to {sizes[last]} B, p10"
        for column, name in enumerate(("alpha", "beta")):
            series[f"{index}.{name}"] = _around(
                best[column], fits[:, column], float(errors[column]), points, source
            )
    # a time per byte may be nothing, a latency not
    zero = frozenset(name for name, one in series.items() if one.scale and name.endswith("beta"))
    found = quantities(series, zero=zero)
    classes = []
    for index, (_, last) in enumerate(cut.parts):
        upto = sizes[last] if index + 1 < len(cut.parts) else None
        if upto is not None and switch is not None and upto <= switch.eager < sizes[last + 1]:
            upto = switch.eager
        classes.append(
            {"upto": upto, "alpha": found[f"{index}.alpha"], "beta": found[f"{index}.beta"]}
        )
    return classes, switch


def _parameters(sizes: Array, part: slice, times: Array) -> Array:
    """Latency and time per byte of a class, for the times of all sizes."""
    mine = times[part]
    return np.array(_line(sizes[part], mine, mine.min())[:2])


def _around(best: float, fits: Array, error: float, points: EstimatePoints, source: str) -> Series:
    """Return the series with the spread of the fits to the launches, and the best value as mean.

    Where there is one launch, `error` is what is known of the fit to it.
    """
    if best > 0 and fits.min() > 0:
        fits = fits * best / math.exp(float(np.log(fits).mean()))
        return of_fit(fits, error, points, source)
    fits = fits - fits.mean() + best
    scale = max(float(np.abs(fits).max()), error) or 1e-15
    return Series(
        tuple(fits.tolist()), source, points.batches, scale, error / scale, points.launches
    )


def _at_the_jump(
    sizes: Array, lines: Mapping[tuple[int, int], _Line], switch: Switch
) -> tuple[_Cut, Switch]:
    """Try every measured size that the late receivers leave possible as the end of eager messages.

    The interval spans all that are nearly as good as the best; without a jump that is all there is.
    """
    inside = [int(size) for size in sizes if switch.eager < size < switch.waiting]
    tried = {at: _segmentation(sizes, lines, at) for at in (switch.eager, *inside)}
    best = min(tried, key=lambda at: tried[at].score)
    plausible = [at for at, cut in tried.items() if cut.score < tried[best].score + _PLAUSIBLE]
    if len(plausible) == len(tried):
        return tried[switch.eager], switch
    beyond = min((size for size in inside if size > plausible[-1]), default=switch.waiting)
    # the bound of the class is the best size; the sizes between it and the first plausible one
    # cannot be told from it, and a threshold is stated by where it may begin
    return tried[plausible[0]], Switch(plausible[0], beyond)


def _lines(sizes: Array, times: Array) -> dict[tuple[int, int], _Line]:
    """Fit a line to every run of two sizes or more."""
    least = float(times.min())
    count = len(sizes)
    return {
        (i, j): _Line(i, j, *_line(sizes[i : j + 1], times[i : j + 1], least))
        for i, j in itertools.combinations(range(count), 2)
    }


def _segmentation(sizes: Array, lines: Mapping[tuple[int, int], _Line], switch: int | None) -> _Cut:
    """Choose the number of classes and their bounds; the one at the switch is given."""
    count = len(sizes)
    bytes_ = sizes.tolist()  # thousands of comparisons: plain numbers are faster
    best = _Cut(((0, count - 1),), _score(count, lines[0, count - 1].error, 2))
    for classes in range(2, _MOST_CLASSES + 1):
        for ends in itertools.combinations(range(1, count - 2), classes - 1):
            bounds = (-1, *ends, count - 1)
            runs = tuple((a + 1, b) for a, b in itertools.pairwise(bounds))
            if not all(run in lines for run in runs):
                continue
            parts = [lines[run] for run in runs]
            free = 3 * classes - 1 - _at_switch(parts, bytes_, switch)
            if free >= count - 1:
                continue
            score = _score(count, sum(part.error for part in parts), free)
            if score < best.score - 1e-9 and _all_meet(parts, bytes_, switch):
                best = _Cut(runs, score)
    return best


def _score(count: int, error: float, free: int) -> float:
    return criterion(count, error / count + _KNOWN_TO**2, free)


def _is_at(lower: _Line, upper: _Line, sizes: Sequence[float], switch: int | None) -> bool:
    return switch is not None and sizes[lower.last] <= switch < sizes[upper.first]


def _at_switch(parts: Sequence[_Line], sizes: Sequence[float], switch: int | None) -> bool:
    return any(_is_at(a, b, sizes, switch) for a, b in itertools.pairwise(parts))


def _all_meet(parts: Sequence[_Line], sizes: Sequence[float], switch: int | None) -> bool:
    for lower, upper in itertools.pairwise(parts):
        at_switch = _is_at(lower, upper, sizes, switch)
        bound = switch if at_switch and switch is not None else sizes[lower.last]
        if not may_follow(lower.at(bound), upper.at(bound) * _MARGIN, at_switch=at_switch):
            return False
    return True


def _line(sizes: Array, times: Array, least: float) -> tuple[float, float, float]:
    """Fit ``alpha + beta m`` by least squares of relative errors; alpha >= least, beta >= 0.

    Fitted a second time with errors relative to the line: relative to the times, those that came
    out short would count more.
    """
    alpha, beta, _ = _weighted_line(sizes, times, least, times)
    return _weighted_line(sizes, times, least, alpha + beta * sizes)


def _weighted_line(
    sizes: Array, times: Array, least: float, unit: Array
) -> tuple[float, float, float]:
    a, b, one = 1 / unit, sizes / unit, times / unit  # minimise sum (alpha a + beta b - one)**2
    aa, ab, bb = float(a @ a), float(a @ b), float(b @ b)
    sa, sb = float(a @ one), float(b @ one)
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
    return alpha, beta, float(((alpha * a + beta * b - one) ** 2).sum())


# Messages: latency and bandwidth by size class, overheads, gaps, the switch of the protocol.
#
# Sources: R. Hockney, Parallel Computing 20 (1994) 389 (``alpha + beta m`` per class); A.
# Alexandrov et al., LogGP, SPAA 1995; T. Kielmann et al., IPDPS workshops 2000 (what each exchange
# tells).


# what the programs call a distance -> the tier of the profile
TIERS = {"near": "socket", "node": "intra", "network": "inter"}
_LEAST_SIZES = 3  # of messages, for a line and its error
_MISFIT = 0.25  # of a measured time
_CROWDED = 0.9  # of the bandwidth that so many pairs would have alone


def calibrate(measured: MeasuredResults, absent: dict[str, str]) -> dict[str, Any]:
    """Return what the section ``net`` of a profile says of messages; notes why parts are absent."""
    section: dict[str, Any] = {}
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
        section["reduce_gamma"] = one_quantity(series)
    return section


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
    measured: MeasuredResults, distance: str, tier: str, absent: dict[str, str]
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


def _placed_alike(measured: MeasuredResults, distance: str) -> dict[int, list[SampleResult]]:
    """Ping-pongs by size, of the launches whose ranks are placed alike and measured most sizes.

    Others have a few sizes for the price of full thread support. That costs something itself: its
    launches count only if there are no others.
    """
    for multiple in (False, True):
        tables: dict[Placement, dict[int, list[SampleResult]]] = {}
        for size in measured.values("ping_pong", "bytes", tier=distance):
            found = measured.by_placement("ping_pong", multiple=multiple, tier=distance, bytes=size)
            for placement, results in found.items():
                tables.setdefault(placement, {})[size] = results
        if tables:
            return max(tables.values(), key=len)
    return {}


def _switch(measured: MeasuredResults, distance: str) -> Switch | str | None:
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
    return measured_as(
        (low, low, high),
        batches,
        f"messages of {switch.eager} B do not wait for a late receiver, those of "
        f"{switch.waiting} B do, or their times show the jump of the protocol change",
    )


def _overheads(measured: MeasuredResults, distance: str) -> dict[str, Any]:
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


def _gap(measured: MeasuredResults, distance: str, size: int) -> Series | None:
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


def _rate(result: SampleResult) -> float:
    return float(result.facts["moved"]) / p10(result.seconds)


def _windows(measured: MeasuredResults, distance: str) -> dict[str, Any]:
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


def _crowded_rate(result: SampleResult) -> float:
    return float(result.facts["moved"]) / median(result.seconds)


def _crowding(measured: MeasuredResults, section: dict[str, Any], absent: dict[str, str]) -> None:
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
            # pairs whose bandwidth alone adds up to that of the crowd, or the gap of all of them
            (lambda crowd, alone: _crowded_rate(crowd) / _crowded_rate(alone))
            if key == "shm_k"
            else (lambda crowd, _: 1 / _crowded_rate(crowd)),
            f"aggregate bandwidth of up to {most} pairs, messages of {size} B",
        )
        section[key] = one_quantity(series)
