"""Metrics of a window from the data of a timeline: what the page does in its own language."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Window:
    """What lies between two edges.

    Parameters
    ----------
    told : mapping
        What the page is given of windows: `popmodel.reports.html.page_timeline`.
    arrays : mapping
        Arrays by the names that it has for them.
    begin, step, end : int
        Of the run and its columns, ns.
    first, last : int
        The edges.
    """

    def __init__(
        self,
        told: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        run: tuple[int, int, int],
        first: int,
        last: int,
    ) -> None:
        begin, step, end = run
        self.told, self._arrays, self._run = told, arrays, run
        time = [begin + edge * step for edge in told["edges"][:-1]] + [end]
        self.begin, self.end = time[first], time[last]
        bounds = arrays[told["first"]].tolist()
        self.masters, self.nodes = np.array(bounds[:-1]), arrays[told["node"]]
        self.threads = np.diff(bounds)
        rows = {"thread": bounds[-1], "process": len(self.masters), "run": 1}
        steps = np.diff(time)
        increments: dict[str, Vector] = {}
        for name, how in told["sums"].items():
            flat = np.zeros(rows[how["by"]] * len(steps))
            if how["packed"] is not None:
                flat = arrays[how["packed"]].astype(np.float64)
            increments[name] = flat.reshape(-1, len(steps))
        self.sums = {}
        for name, how in told["sums"].items():
            each = increments[name]
            if how["less"]:
                each = steps - each - sum(increments[other] for other in how["less"])
            self.sums[name] = each[:, first:last].sum(axis=1)
        clock = None if told["clock"] is None else arrays[told["clock"]]
        self.clock = None if clock is None else float(clock[last] - clock[first])

    def at(self, first: int, last: int) -> Window:
        """Another window of the same run."""
        return Window(self.told, self._arrays, self._run, first, last)

    def metrics(self, family: str) -> dict[str, float]:
        """Metrics of a family that have a value here."""
        (told,) = [one for one in self.told["families"] if one["id"] == family]
        formulas = {each["id"]: each["formula"] for each in told["metrics"]}
        aggregates = self.told["aggregates"]
        known: dict[str, Any] = {name: self._value(tree) for name, tree in aggregates.items()}
        found: dict[str, float] = {}
        for id in told["order"]:
            known[id] = _scalar(formulas[id], known)
            if known[id] is not None:
                found[id] = known[id]
        return found

    def _value(self, tree: Any) -> Any:
        operation, *operands = tree
        match operation:
            case "sums":
                return self.sums[operands[0]]
            case "clock":
                return self.clock
            case "count":
                return {"threads": self.threads.sum(), "processes": len(self.threads)}[operands[0]]
        values = [self._value(each) for each in operands]
        match operation:
            case "masters":
                return values[0][self.masters]
            case "over_threads":
                return np.add.reduceat(values[0], self.masters) / self.threads
            case "sum" | "max" | "min" | "mean":
                return float(getattr(np, operation)(values[0]))
            case "weighted":
                return float(self.threads @ values[0]) / int(self.threads.sum())
            case "nodes_min":
                weight, least = self.threads, []
                for node in set(self.nodes.tolist()):
                    mine = self.nodes == node
                    least.append(float(weight[mine] @ values[0][mine]) / weight[mine].sum())
                return min(least)
            case "+":
                return values[0] + values[1]
            case "-":
                return values[0] - values[1]
            case "/":
                return values[0] / values[1]
            case "larger":
                return None if values[0] is None else max(values)
        raise AssertionError(f"no such operation: {operation}")


def _scalar(tree: Any, known: Mapping[str, float | None]) -> float | None:
    if isinstance(tree, str):
        return known[tree]
    if not isinstance(tree, list):
        return float(tree)
    operation, *operands = tree
    left, right = (_scalar(each, known) for each in operands)
    if left is None or right is None or (operation == "/" and right == 0):
        return None
    value = {
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "/": left / right if right else 0.0,
    }[operation]
    return value if math.isfinite(value) else None
