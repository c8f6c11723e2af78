"""How the efficiencies of a window follow from the sums between its edges: as data, to be evaluated
anywhere.

A formula is a number, a name, or a list that begins with an operation. Those of the metrics are
what the families say; those of the aggregates mirror `Observables.aggregates`, which a test holds
them to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from popmodel.efficiency.hierarchy import load_families

if TYPE_CHECKING:
    from popmodel.efficiency.family import Family, Metric

Formula: TypeAlias = "float | str | list[Any]"

FAMILIES = ("mpi", "mpi-additive", "hybrid-additive", "hybrid-multiplicative", "talp")

_USEFUL, _OMP_USEFUL = ["sums", "useful"], ["sums", "omp_useful"]
_SERIAL = ["-", ["masters", _USEFUL], ["masters", _OMP_USEFUL]]
_IN_OPENMP = ["sums", "in_openmp"]
_OUTSIDE_MPI = ["+", _SERIAL, _IN_OPENMP]
_MPI = ["over_threads", ["sums", "in_mpi"]]
_NOT_IN_MPI = ["-", ["masters", ["sums", "traced"]], ["masters", ["sums", "in_mpi"]]]
_THREADS = ["count", "threads"]

AGGREGATES: Mapping[str, Formula] = {
    "processes": ["count", "processes"],
    "threads": _THREADS,
    "runtime": ["max", ["sums", "traced"]],
    # No run is shorter than what its busiest process does outside MPI.
    "ideal_runtime": ["larger", ["clock"], ["max", _NOT_IN_MPI]],
    "useful_mean": ["mean", _USEFUL],
    "useful_max": ["max", _USEFUL],
    "useful_sum": ["sum", _USEFUL],
    "omp_useful_mean": ["mean", _OMP_USEFUL],
    "master_useful_mean": ["mean", ["masters", _USEFUL]],
    "master_useful_max": ["max", ["masters", _USEFUL]],
    "serial_useful_mean": ["weighted", _SERIAL],
    "in_openmp_mean": ["weighted", _IN_OPENMP],
    "serial_openmp_max": ["max", _OUTSIDE_MPI],
    "outside_mpi_mean": ["weighted", _OUTSIDE_MPI],
    "outside_mpi_max": ["max", _OUTSIDE_MPI],
    "mpi_mean": ["weighted", _MPI],
    "mpi_min": ["min", _MPI],
    "mpi_node_min": ["nodes_min", _MPI],
    **{
        name: ["/", ["sum", ["sums", name]], _THREADS]
        for name in ("openmp_synchronisation", "openmp_scheduling", "openmp_mpi")
    },
}
"""What formulas of metrics name, in ns: over the sums (`popmodel.timeline.sums.BY`) of a window."""

ESTIMATE = (
    "by how much the ideal replay of the whole run advances between the two edges: when its last "
    "process passes what it did at each, but no less than any process is outside MPI; a replay "
    "of the window alone differs, the more the shorter it is"
)
"""What ``ideal_runtime`` is for a window that is not replayed by itself."""

_ABSENT: Mapping[str, str] = {
    "computation_scaling": "compares with a reference run",
    "openmp_imbalance": "needs every parallel region of the window by itself",
    "idle_serial": "needs every parallel region of the window by itself",
    "idle_imbalance": "needs every parallel region of the window by itself",
    "idle_scheduling": "needs every parallel region of the window by itself",
    "ideal_runtime": "needs a replay",
}


_OPERATIONS: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}


def prefix(metric: Metric) -> Formula:
    """The formula of a metric, operations first."""
    return _prefix(ast.parse(metric.formula.text, mode="eval").body)


def _prefix(node: ast.expr) -> Formula:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant):
        return float(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return [_OPERATIONS[type(node.op)], _prefix(node.left), _prefix(node.right)]
    raise ValueError(f"a page cannot evaluate {ast.unparse(node)}")


def families_of(*, replayed: bool) -> list[dict[str, Any]]:
    """Families whose metrics a window can have, in the order in which they are shown."""
    loaded = load_families()
    return [_family(loaded[name], replayed) for name in FAMILIES]


def _family(family: Family, replayed: bool) -> dict[str, Any]:
    metrics, absent = [], []
    for depth, id, view in _lines(family):
        metric = family.metrics[id]
        row = {"id": id, "name": metric.name, "depth": depth}
        needs = family.needs(id)
        lacking = [name for name in needs if name not in AGGREGATES]
        if "ideal_runtime" in needs and not replayed:
            lacking.append("ideal_runtime")
        if lacking:
            absent.append({**row, "reason": "; ".join(dict.fromkeys(_ABSENT[n] for n in lacking))})
        else:
            estimate = "ideal_runtime" in needs
            metrics.append({**row, "formula": prefix(metric), "estimate": estimate, "view": view})
    there = {each["id"] for each in metrics}
    return {
        "id": family.id,
        "title": family.title,
        "top": family.top,
        "metrics": metrics,
        "order": [id for id in family.order if id in there],
        "absent": absent,
    }


def _lines(family: Family) -> Iterator[tuple[int, str, bool]]:
    """Every metric once, in display order."""
    seen: set[str] = set()
    for walk in family.tree():
        for line in walk.rows:
            if line.metric not in seen:
                seen.add(line.metric)
                yield line.depth, line.metric, line.view
