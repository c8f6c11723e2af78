"""Collectives, threads that communicate, and communication behind computation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.machines.bench.estimate.launch_intervals import (
    CLIPPED,
    Series,
    median,
    of_groups,
    of_results,
    one_quantity,
    p10,
    quantities,
)
from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.machines.bench.estimate.message_estimates import TIERS
from popmodel.machines.bench.sample_files import SampleResult
from popmodel.network.collectives import OPERATIONS, Message
from popmodel.network.point_to_point import SizeClass, by_size

# Collectives as measured, and the algorithm whose closed form comes nearest.


def collectives(
    measured: MeasuredResults, net: Mapping[str, Any], absent: dict[str, str]
) -> dict[str, Any]:
    """Return the section ``coll`` of a profile; notes why it is absent."""
    groups: dict[tuple[str, int, int, int], Any] = {}
    for op in measured.values("collective", "op"):
        for count in measured.values("collective", "ranks", op=op):
            for size in measured.values("collective", "bytes", op=op, ranks=count):
                results = measured.results("collective", op=op, ranks=count, bytes=size)
                for nodes in sorted({int(result.facts.get("nodes", 1)) for result in results}):
                    mine = [r for r in results if int(r.facts.get("nodes", 1)) == nodes]
                    groups[op, count, math.ceil(count / nodes), size] = of_results(
                        mine, lambda result: median(result.seconds), "slowest process, median"
                    )
    if not groups:
        if reason := measured.reason("collective"):
            absent["coll"] = reason
        return {}
    # the cost of the clock is taken off: of a call that costs next to nothing nothing may be left
    found = quantities(
        {str(key): series for key, series in groups.items()},
        zero=frozenset(str(key) for key, series in groups.items() if series.scale is not None),
    )
    section: dict[str, Any] = {}
    for (op, count, per_node, size), _ in sorted(groups.items()):
        seconds = found[str((op, count, per_node, size))]
        row = {"P": count, "ppn": per_node, "bytes": size, "seconds": seconds}
        algorithm = nearest(op, count, per_node, size, seconds["value"], net)
        if algorithm is not None:
            row["algorithm"] = algorithm
        section.setdefault(op, []).append(row)
    return section


def nothing_left(section: Mapping[str, Any]) -> list[str]:
    """Say of which collectives nothing was left when the cost of the clock was taken off."""
    names = [
        f"{op} of {row['bytes']} B on {row['P']} process{'es' if row['P'] > 1 else ''}"
        for op, rows in section.items()
        for row in rows
        if row["seconds"]["value"] == 0
    ]
    return [f"{CLIPPED}: {', '.join(names)}"] if names else []


def nearest(
    op: str, processes: int, per_node: int, size: int, seconds: float, net: Mapping[str, Any]
) -> str | None:
    """Name the algorithm whose cost on the measured network has the least error in the logarithm.

    None where the processes are of several tiers, or nothing is known of theirs.
    """
    tier = "intra" if per_node == processes else "inter" if per_node == 1 else None
    if tier is None or tier not in net or op not in OPERATIONS or seconds <= 0:
        return None
    classes = [
        SizeClass(entry["upto"], entry["alpha"]["value"], entry["beta"]["value"])
        for entry in net[tier]["classes"]
    ]
    latency = classes[0].alpha
    gamma = net.get("reduce_gamma", {}).get("value", 0.0)
    per_byte = (float(by_size(size, classes)) - latency) / size if size else 0.0
    message = Message(size, latency, max(per_byte, 0.0), gamma)
    errors = {
        name: abs(math.log(cost / seconds))
        for name, algorithm in OPERATIONS[op].algorithms.items()
        if (cost := float(algorithm.cost(processes, message))) > 0
    }
    return min(errors, key=lambda name: errors[name], default=None)


# Threads that communicate, and communication behind computation.


_OUTERMOST = tuple(reversed(TIERS))


def threads(measured: MeasuredResults, absent: dict[str, str]) -> dict[str, Any]:
    """Return what the section ``net`` says of threads and overlap; notes why parts are absent."""
    section: dict[str, Any] = {}
    for key, found in (
        ("multiple_overhead", _multiple(measured, absent)),
        ("thread_factor", _factor(measured)),
        ("overlap", _overlap(measured)),
    ):
        if found is not None:
            section[key] = one_quantity(found, zero=found.scale is not None)
            if key == "overlap":  # a share
                section[key] = {
                    name: min(value, 1.0) if name in ("value", "low", "high") else value
                    for name, value in section[key].items()
                }
    if "multiple_overhead" in section:  # another tier may have told it
        absent.pop("net.multiple_overhead", None)
    for key, job in (("thread_factor", "threaded"), ("overlap", "overlap")):
        if key not in section and (reason := measured.reason(job)):
            absent[f"net.{key}"] = reason
    return section


def _multiple(measured: MeasuredResults, absent: dict[str, str]) -> Series | None:
    """Latency with MPI_THREAD_MULTIPLE less that with a lower level, of ranks placed alike."""
    for distance in _OUTERMOST:
        sizes = measured.values("ping_pong", "bytes", tier=distance)
        for size in sizes:
            with_, without = (
                measured.by_placement("ping_pong", multiple=level, tier=distance, bytes=size)
                for level in (True, False)
            )
            for placement, results in with_.items():
                if placement in without:
                    return _difference(results, without[placement], size)
            if with_:
                absent["net.multiple_overhead"] = (
                    "no launch with a lower thread level had the same ranks, nodes and threads"
                )
    return None


def _difference(
    with_: Sequence[SampleResult], without: Sequence[SampleResult], size: int
) -> Series:
    """Latency of some launches less that of others, which are paired as they come.

    So the spread of the differences is that of both.
    """
    return of_groups(
        list(zip(with_, without, strict=False)),
        lambda full, less: p10(full.seconds) - p10(less.seconds),
        f"half ping-pong of {size} B with MPI_THREAD_MULTIPLE minus without, p10",
        scale=float(np.mean([p10(result.seconds) for result in without])),
    )


def _factor(measured: MeasuredResults) -> Series | None:
    """How the time of a message grows with every further communicating thread of a process."""
    for distance in _OUTERMOST:
        counts = measured.values("threaded", "threads", tier=distance, communicator="own")
        if len(counts) < 2 or counts[0] != 1:
            continue
        size = measured.values("threaded", "bytes", tier=distance)[0]
        wanted = {"tier": distance, "communicator": "own", "bytes": size}
        most = counts[-1]
        pairs = measured.together(
            ("threaded", {"threads": most, **wanted}), ("threaded", {"threads": 1, **wanted})
        )
        if not pairs:
            continue
        return of_groups(
            pairs,
            lambda several, alone, further=most - 1: (
                (median(several.seconds) / median(alone.seconds) - 1) / further
            ),
            f"messages of {size} B by {most} threads, each with its own communicator, median",
            scale=1.0,
        )
    return None


def _overlap(measured: MeasuredResults) -> Series | None:
    """Share of what could overlap that does, with messages left alone (progress = 0)."""
    for distance in _OUTERMOST:
        sizes = measured.values("overlap", "bytes", tier=distance, progress=0)
        if not sizes:
            continue
        return of_results(
            measured.results("overlap", tier=distance, progress=0, bytes=sizes[-1]),
            overlapped,
            f"messages of {sizes[-1]} B during a computation of equal length, no progress calls, "
            "median",
            scale=1.0,
        )
    return None


def overlapped(result: SampleResult) -> float:
    """Return the time that is saved over the most that can be, within 0 and 1.

    ``(communication + computation - both) / min(computation, communication)``: no more than the
    shorter of the two can hide behind the other.
    """
    assert result.reference is not None
    communication, both = median(result.reference), median(result.seconds)
    compute = float(result.facts["compute"])
    return min(max((communication + compute - both) / min(compute, communication), 0.0), 1.0)
