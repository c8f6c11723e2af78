"""What the threads of processes do in a parallel region."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.efficiency.measure import useful_times
from popmodel.efficiency.regions import waiting_in
from popmodel.fit.law import law
from popmodel.fit.physical_laws import overhead, saturation
from popmodel.fit.samples import Sample, student
from popmodel.signature.assumed_scaling import SignatureAmount, SignatureConstant
from popmodel.signature.law_notes import FittedLaws, LawFactor, factor_of, of_saturation, told
from popmodel.signature.outline import OutlineTeam
from popmodel.signature.toml import Noted
from popmodel.trace.caveats import delays
from popmodel.trace.intervals import Intervals, alone, spread
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from popmodel.efficiency.measure import UsefulTimes
    from popmodel.fit.law import Law
    from popmodel.signature.align_runs import AlignedRun
    from popmodel.signature.assumed_scaling import Key
    from popmodel.signature.computing import Computing
    from popmodel.signature.outline import Outline
    from popmodel.signature.recorded_times import Description
    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace


_NS = 1e9


def team(trace: Trace, structure: Structure, region: Computing) -> OutlineTeam:
    """Return how the executions of a region spend their time, on average."""
    rows = np.flatnonzero(structure.events.is_region)
    every = trace.derived("times of regions", lambda trace: _times(trace, structure, rows))
    mine = np.searchsorted(rows, region.event[region.event >= 0])
    times = _ThreadTimes(*(column[mine] for column in every))
    all_useful = float(times.mean.sum())
    idle = float(times.idle.sum())
    # a process that does not execute it has no time in it: of all of them is the mean
    executions = len(region.event) * (region.turns or region.most)
    return OutlineTeam(
        all_useful / executions,
        float((times.busiest - times.mean).sum()) / all_useful if all_useful else 0.0,
        float(np.maximum(times.wall - times.busiest, 0.0).sum()) / executions,
        min(float(times.waiting.sum()) / idle, 1.0) if idle > 0 else 0.0,
    )


class _ThreadTimes(NamedTuple):
    """Of executions of regions, s."""

    # float64[N]: Useful time of the average and of the busiest thread.
    mean: NDArray[np.float64]
    busiest: NDArray[np.float64]
    wall: NDArray[np.float64]  # float64[N]: Time of the master outside MPI
    # float64[N]: Time of the average thread neither useful nor in MPI, and what of it is in
    # barriers, critical sections and locks.
    idle: NDArray[np.float64]
    waiting: NDArray[np.float64]


@dataclass(frozen=True)
class _Threads:
    """What threads of a run do, whatever region they are in."""

    useful: UsefulTimes
    in_calls: Intervals
    waiting: Intervals

    @classmethod
    def of(cls, trace: Trace) -> _Threads:
        """Find it."""
        useful, calls = useful_times(trace), trace.calls()
        in_calls = Intervals.of(calls.offsets, calls.entry, calls.exit)
        waiting = waiting_in(trace, useful.running, in_calls)
        return cls(useful, alone([in_calls], [useful.running]), waiting)


def _times(trace: Trace, structure: Structure, event: NDArray[np.int64]) -> _ThreadTimes:
    """Measure executions of regions as metrics are (`popmodel.efficiency.regions`)."""
    found = trace.derived("threads in regions", _Threads.of)
    running = found.useful.running
    bounds = np.asarray(trace.process_offsets, dtype=np.int64)
    process = structure.events.sequence[event]
    threads = np.diff(bounds)[process]
    starts = np.cumsum(threads) - threads
    which, location = spread(bounds[process], threads)
    first, last = structure.events.begin[event], structure.events.end[event]
    begin, end = first[which], last[which]
    busy = running.inside(location, begin, end) - delays(trace).inside(location, begin, end)
    busy, delayed = np.maximum(busy, 0), structure.events.delayed[event]
    useful = np.maximum(busy - found.useful.apart.inside(location, begin, end), 0)
    in_calls = found.in_calls.inside(location, begin, end)
    waiting = found.waiting.inside(location, begin, end)
    waiting = waiting + running.waits.inside(location, begin, end)
    idle = np.maximum(end - begin - delayed[which] - busy - in_calls, 0)

    def average(times: NDArray[np.int64]) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = np.add.reduceat(times, starts) / (threads * _NS)
        return mean

    return _ThreadTimes(
        average(useful),
        np.maximum.reduceat(useful, starts) / _NS,
        (last - first - in_calls[starts] - delayed) / _NS,
        average(idle),
        average(waiting),
    )


# What runs with several numbers of threads tell of parallel regions.
#
# What regions take beside their work, and how unequal their threads are, goes with T as one law for
# all regions of a program, which have a size of their own each: few runs of few threads tell no
# more.
# Work that moves much data does not take a T-th of the time once the memory is busy, which all
# active
# cores of a node share, whatever process they belong to.


_UNEVEN = ("1", "1 - 1/T", "log2(T)", "T - 1")
"""Forms of the imbalance of threads; one thread has none."""
_FAR = 3.0
"""Factor by which a law is off the largest run, from which it says nothing of it."""
_LEAST = 3
"""Numbers of active cores that tell whether a memory saturates."""
_EVEN = 1e-6
"""Imbalance below which threads are even."""
ACTIVE, _CORES = "active_cores", "node_cores"


def beside_work(
    outline: Outline, descriptions: Sequence[Description], runs: Sequence[AlignedRun]
) -> FittedLaws:
    """Find how overheads of regions, and the imbalance of their threads, go with T."""
    regions = [
        point
        for point, one in enumerate(outline.teams)
        if one is not None and all(point in run.teams for run in runs)
    ]
    if not regions or len({run.threads for run in runs}) < 2:
        return FittedLaws({}, {}, (), ())
    turns = [descriptions[point].executions for point in regions]
    useful = [runs[0].teams[point].useful for point in regions]
    names = [outline.names[point] for point in regions]
    overheads = _shared(
        "overhead",
        "overheads of parallel regions",
        "s",
        [[run.sample(run.teams[point].overhead) for run in runs] for point in regions],
        [float(turn) for turn in turns],
        names,
        overhead,
    )
    imbalances = [[_even(run.teams[point].imbalance) for run in runs] for point in regions]
    uneven = _shared(
        "uneven",
        "imbalance of threads",
        "1",
        [[run.sample(one) for run, one in zip(runs, each, strict=True)] for each in imbalances],
        [one * turn for one, turn in zip(useful, turns, strict=True)],
        names,
        _unevenness,
    )
    amounts: dict[Key, SignatureAmount] = {}
    for key, found in (("overhead", overheads), ("thread_imbalance", uneven)):
        for index, amount in found.amounts.items():
            amounts[key, regions[index[0]]] = amount
    return FittedLaws(
        amounts,
        {**overheads.let, **uneven.let},
        (*overheads.laws, *uneven.laws),
        (*overheads.notes, *uneven.notes),
    )


def _shared(
    name: str,
    what: str,
    unit: str,
    parts: Sequence[Sequence[Sample]],
    weights: Sequence[float],
    names: Sequence[str],
    fit: Callable[[Sequence[Sample]], Law],
) -> FittedLaws:
    """One law for some parts, by their weighted sum, and amounts by their numbers."""
    values = np.array([[one.value for one in part] for part in parts])
    sums = np.array(weights) @ values
    if not sums.any():
        return FittedLaws({}, {}, (), ())
    samples = [
        Sample(one.processes, one.threads, float(value), one.parameters)
        for one, value in zip(parts[0], sums, strict=True)
    ]
    found = fit(samples)
    first = samples[0]
    over = found.at(first.processes, first.threads, first.parameters).value / (first.value or 1.0)
    if first.value and not 1 / _FAR < over < _FAR:
        note = f"{what}: runs contradict each other by {100 * (found.error or 0):.0f} %: no law"
        return FittedLaws({}, {}, (), (note,))
    let, constants = factor_of(name, found)
    at = np.array([found.at(one.processes, one.threads, one.parameters).value for one in samples])
    amounts: dict[Key, SignatureAmount] = {}
    for index, (each, called) in enumerate(zip(values, names, strict=True)):
        size = _size(f"{name}_{called}", called, each, at / found.constants["a"].value, unit, found)
        if size is not None:
            amounts[index,] = SignatureAmount(f"{size.name}*{name}", (size, *constants))
    return FittedLaws(
        amounts,
        let,
        (told(what, unit, found, None),),
        tuple(f"{what}: {note}" for note in found.notes),
    )


def _even(imbalance: float) -> float:
    return imbalance if imbalance > _EVEN else 0.0


def _unevenness(samples: Sequence[Sample]) -> Law:
    return law(samples, forms=_UNEVEN, hints=("1",))


def _size(
    name: str,
    called: str,
    values: np.typing.NDArray[np.float64],
    factor: np.typing.NDArray[np.float64],
    unit: str,
    found: Law,
) -> SignatureConstant | None:
    """The size of a part where the factor is 1: what gives its values, the large ones first."""
    if not (values @ factor) > 0:
        return None
    size = float(values @ factor / (factor @ factor))
    freedom = len(values) - 1
    off = float(np.sqrt(((values - size * factor) ** 2).sum() / freedom / (factor @ factor)))
    half = student(freedom) * off
    meaning = found.constants["a"].meaning
    return SignatureConstant(
        name, size, max(size - half, 0.0), size + half, unit, found.origin, f"{called}, {meaning}"
    )


def saturated(
    name: str, what: str, values: Sequence[float], runs: Sequence[AlignedRun], scaling: str
) -> LawFactor | str | None:
    """Find whether the time of parallel regions is that of a memory that saturates."""
    if any(run.parameters != runs[0].parameters for run in runs) or not min(values) > 0:
        return None
    if len({run.active for run in runs}) < _LEAST:
        return None

    def parts(run: AlignedRun) -> int:
        return run.threads * (run.processes if scaling == "strong" else 1)

    samples = [
        Sample(1, run.active, value * parts(run) / run.active)
        for run, value in zip(runs, values, strict=True)
    ]
    found = saturation(samples)
    demand, q, first = found.demand, found.sharpness, runs[0]
    most = max(run.cores for run in runs)
    on_node = max(run.active for run in runs)
    if not found.is_tested:
        matters = demand.high * max(most, on_node) > 1
        return f"{what}: {found.notes[0]}" if found.notes and matters else None
    cores = SignatureConstant(
        _CORES, max(most, on_node), unit="1",
        origin="trace" if most >= on_node else "assumed",
        source="cores of a node, which share its memory",
    )  # fmt: skip
    share = SignatureConstant(
        f"{name}_d", demand.value, demand.low, demand.high, "1", demand.origin, demand.meaning
    )
    split = f"{parts(first)}/(P*T)" if scaling == "strong" else f"{parts(first)}/T"
    slower = f"(1 - {share.name}**{q:g} + ({ACTIVE}*{share.name})**{q:g})**(1/{q:g})"
    factors = tuple(
        parts(first) / parts(run) * found.at(run.active) * run.active / found.alone.value
        for run in runs
    )
    return LawFactor(
        {
            ACTIVE: Noted(f"min(P*T, {_CORES})", "active cores of a node"),
            name: Noted(f"{split}*{slower}", "fit: memory that saturates"),
        },
        (share, cores),
        factors,
        "were the memory idle",
        (of_saturation(what, found, split, len(samples)),),
    )
