"""Collectives as measured, and the algorithm whose closed form comes nearest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from popmodel.bench.calibration.intervals import CLIPPED, median, of_results, quantities
from popmodel.bench.calibration.measured import MeasuredResults
from popmodel.network.collectives import OPERATIONS, Message
from popmodel.network.point_to_point import SizeClass, by_size


def calibrate(
    measured: MeasuredResults, net: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the section ``coll`` of a profile, and why parts of it are absent."""
    groups: dict[tuple[str, int, int, int], Any] = {}
    absent: dict[str, str] = {}
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
        return {}, absent
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
    return section, absent


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
