"""Times of threads between equal steps, and how the efficiencies of any window follow from them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from popmodel.base.arrays import spread
from popmodel.base.values import dataclass
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import useful_times
from popmodel.efficiency.region_efficiencies import waiting_in
from popmodel.timeline.lanes import LaneClock, TimeAxis
from popmodel.traces.codes import NOT_CREATED, TRACING_DISABLED
from popmodel.traces.intervals import Intervals, alone
from popmodel.traces.runtime import state_ends
from popmodel.traces.tables import offsets_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.efficiency.family import Family, Metric
    from popmodel.traces import Trace


# What the threads of a run do, as intervals by kind: those that efficiencies are measured by.


@dataclass(frozen=True, eq=False)
class Activity:
    """When threads do what."""

    running: Intervals  # In user code
    # The part of it outside of parallel regions: of a master outside its constructs, of a worker
    # outside its outlined functions.
    serial: Intervals
    on_master: Intervals  # Parallel constructs on masters
    regions: Intervals  # The same on every thread of their process
    in_calls: Intervals  # In MPI
    # In a parallel region of the process, but neither in user code nor in MPI.
    in_runtime: Intervals
    # In calls of the runtime of a device, outside of parallel regions and MPI.
    in_device: Intervals
    # What nothing is known of: tracing disabled, threads not created, before the first state and
    # after the last, but for calls of MPI there.
    unrecorded: Intervals


def activity(trace: Trace) -> Activity:
    """Find what the threads of a run do."""
    times = useful_times(trace)
    in_calls = trace.calls().intervals()
    constructs = times.regions.on_master
    running = Intervals(times.running.offsets, times.running.begin, times.running.end)
    if not len(constructs) and not len(times.regions.in_function):
        none = Intervals.none(trace.locations)
        in_device = alone([trace.devices.calls], [in_calls])
        unrecorded = _unrecorded(trace, in_calls)
        return Activity(running, running, none, none, in_calls, none, in_device, unrecorded)
    on_master = Intervals(constructs.offsets, constructs.begin, constructs.end)
    own = _own(trace, on_master, times.regions.in_function)
    regions = _of_teams(trace, on_master)
    return Activity(
        running,
        alone([running], [own]),
        on_master,
        regions,
        in_calls,
        alone([regions], [running, in_calls]),
        alone([trace.devices.calls], [in_calls, regions]),
        _unrecorded(trace, in_calls),
    )


def _own(trace: Trace, on_master: Intervals, in_function: Intervals) -> Intervals:
    """Constructs of masters and outlined functions of workers: where their useful time is OpenMP's.

    So it is for the efficiencies (`popmodel.efficiency.measure`).
    """
    is_master = np.zeros(trace.locations, bool)
    is_master[np.asarray(trace.process_offsets[:-1])] = True
    of_workers = in_function.at(np.flatnonzero(~is_master))
    location = np.concatenate([on_master.location, of_workers.location])
    order = np.argsort(location, kind="stable")
    return Intervals(
        on_master.offsets + of_workers.offsets,
        np.concatenate([on_master.begin, of_workers.begin])[order],
        np.concatenate([on_master.end, of_workers.end])[order],
    )


def _of_teams(trace: Trace, on_master: Intervals) -> Intervals:
    """Constructs on every thread of the process."""
    master = np.asarray(trace.process_offsets, np.int64)[trace.process_of_location()]
    count = np.diff(on_master.offsets)[master]
    _, row = spread(on_master.offsets[master], count)
    return Intervals(offsets_of(count), on_master.begin[row], on_master.end[row])


def _unrecorded(trace: Trace, in_calls: Intervals) -> Intervals:
    first, last = state_ends(trace)
    none = last <= first  # a thread without any state
    first, last = np.where(none, trace.end, first), np.where(none, trace.end, last)
    return alone(
        [
            trace.records.in_state(TRACING_DISABLED),
            trace.records.in_state(NOT_CREATED),
            _each(np.full(trace.locations, trace.begin), first),
            _each(last, np.full(trace.locations, trace.end)),
        ],
        [in_calls],
    )


def _each(begin: NDArray[np.int64], end: NDArray[np.int64]) -> Intervals:
    """One interval for each location."""
    return Intervals(np.arange(len(begin) + 1), begin.astype(np.int64), np.maximum(begin, end))


# Times of threads between equal steps, whose differences give the efficiencies of any window.
#
# Everything that is summed here grows with the window alone: what lies in a window is the
# difference of two running sums, exact to the nanosecond, and equals what
# `popmodel.efficiency.measure` finds in that part of the trace.


BY: Mapping[str, str] = {
    "useful": "thread",
    "omp_useful": "thread",
    "in_mpi": "thread",
    "traced": "thread",
    "in_openmp": "process",
    "openmp_synchronisation": "run",
    "openmp_scheduling": "run",
    "openmp_mpi": "run",
}
"""What is summed, by what: times of threads as `popmodel.efficiency.observables` names them;
``traced`` is the time in states other than those with tracing disabled."""

_IN_REGIONS = tuple(name for name, by in BY.items() if by == "run")


@dataclass(frozen=True, eq=False)
class Sums:
    """Times between edges."""

    # int64[W + 1]: Ascending columns of the timeline's axis; the last stands for the end of the
    # window.
    edges: NDArray[np.int64]
    time: NDArray[np.int64]  # int64[W + 1]: When they are in the trace, ns
    # mapping of str to int64[n, W]: Names of `BY` to the time between neighbouring edges, ns: of
    # each thread or process, or of all threads together.
    between: Mapping[str, NDArray[np.int64]]
    # float64[W + 1] or None: What an ideal replay shows, ns from 0, when the last process has
    # passed what it did at each edge; None without a replay.
    clock: NDArray[np.float64] | None


def sums_between(
    trace: Trace, doing: Activity, axis: TimeAxis, clock: LaneClock | None, most: int
) -> Sums:
    """Sum up what threads do between edges that lie on columns of an axis."""
    columns = -(-trace.duration // axis.step)
    stride = -(-columns // most)
    edges = np.append(np.arange(0, columns, stride), columns)
    time = np.minimum(trace.begin + edges * axis.step, trace.end)
    coarse = TimeAxis(trace.begin, stride * axis.step, len(edges) - 1, trace.end)
    thread = np.arange(trace.locations)
    process = trace.process_of_location().astype(np.int64)
    useful = coarse.covered(doing.running, thread)
    return Sums(
        edges,
        time,
        {
            "useful": useful,
            "omp_useful": useful - coarse.covered(doing.serial, thread),
            "in_mpi": coarse.covered(doing.in_calls, thread),
            "traced": _traced(trace, coarse),
            "in_openmp": coarse.covered(doing.on_master, process),
            **_in_regions(trace, doing, coarse),
        },
        None if clock is None else _shown(clock, time),
    )


def _traced(trace: Trace, coarse: TimeAxis) -> NDArray[np.int64]:
    # One window keeps its times, so that states need not be cut to it: they are many.
    whole = trace.whole or trace
    one = trace.pieces is None or len(trace.pieces) == 1
    states = whole.states if one else trace.states
    spans = Intervals(states.offsets, states.begin, states.end)
    return coarse.covered(spans, np.arange(trace.locations), states.state != TRACING_DISABLED)


def _in_regions(trace: Trace, doing: Activity, coarse: TimeAxis) -> dict[str, NDArray[np.int64]]:
    """What all threads lose in parallel regions (`popmodel.efficiency.region_efficiencies`)."""
    if not len(doing.regions):
        nothing = np.zeros((1, coarse.columns), np.int64)
        return dict.fromkeys(_IN_REGIONS, nothing)
    run = np.zeros(trace.locations, np.int64)

    def inside(spans: Intervals) -> NDArray[np.int64]:
        outside = alone([spans], [doing.regions])
        return coarse.covered(spans, run) - coarse.covered(outside, run)

    lost = coarse.covered(doing.in_runtime, run)
    waiting = inside(waiting_in(trace, doing.running, doing.in_calls))
    in_mpi = inside(alone([doing.in_calls], [doing.running]))
    return dict(zip(_IN_REGIONS, (waiting, lost - waiting, in_mpi), strict=True))


def _shown(clock: LaneClock, time: NDArray[np.int64]) -> NDArray[np.float64]:
    processes = np.arange(len(clock.last))
    every = clock.at(np.tile(processes, len(time)), np.repeat(time, len(processes)))
    latest: NDArray[np.float64] = every.reshape(len(time), -1).max(axis=1)
    return latest


# How the efficiencies of a window follow from the sums between its edges: as data, to be evaluated
# anywhere.
#
# A formula is a number, a name, or a list that begins with an operation. Those of the metrics are
# what the families say; those of the aggregates mirror `Observables.aggregates`, which a test holds
# them to.


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
"""What formulas of metrics name, in ns: over the sums (`BY`) of a window."""

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
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
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
