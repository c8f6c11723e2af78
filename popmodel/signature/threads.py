"""What the threads of processes do in a parallel region."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.efficiency.measure import useful_times
from popmodel.efficiency.regions import waiting_in
from popmodel.fit.law import law
from popmodel.fit.physical_laws import overhead, saturation
from popmodel.fit.samples import Sample, student
from popmodel.signature.amounts import LawSet, SignatureAmount, SignatureConstant
from popmodel.signature.document import Noted
from popmodel.signature.outline import OutlineTeam
from popmodel.trace.caveats import delays
from popmodel.trace.intervals import Intervals, alone, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from popmodel.fit.law import Law
    from popmodel.signature.align_runs import AlignedRun
    from popmodel.signature.outline import Outline, OutlinePoint
    from popmodel.signature.recorded_times import Description
    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace


_NS = 1e9
_UNEVEN = ("1", "1 - 1/T", "log2(T)", "T - 1")  # forms of the imbalance; one thread has none
_FAR = 3.0  # factor by which a law is off the largest run, from which it says nothing of it
_LEAST = 3  # numbers of active cores that tell whether a memory saturates
_EVEN = 1e-6  # imbalance below which threads are even
ACTIVE, _CORES = "active_cores", "node_cores"


def team(trace: Trace, structure: Structure, region: OutlinePoint) -> OutlineTeam:
    """Return how the executions of a region spend their time, on average."""
    rows = np.flatnonzero(structure.events.is_region)
    every = trace.derived("times of regions", lambda trace: _times(trace, structure, rows))
    mine = np.searchsorted(rows, region.event[region.event >= 0])
    mean, busiest, wall, idle, waiting = (column[mine] for column in every)
    useful, unused = float(mean.sum()), float(idle.sum())
    # a process that does not execute it has no time in it: of all of them is the mean
    executions = len(region.event) * (region.turns or region.most)
    return OutlineTeam(
        useful / executions,
        float((busiest - mean).sum()) / useful if useful else 0.0,
        float(np.maximum(wall - busiest, 0.0).sum()) / executions,
        min(float(waiting.sum()) / unused, 1.0) if unused > 0 else 0.0,
    )


def _times(
    trace: Trace, structure: Structure, event: NDArray[np.int64]
) -> tuple[NDArray[np.float64], ...]:
    """Measure executions of regions as metrics are (`popmodel.efficiency.regions`), s.

    Useful time of the average and of the busiest thread; time of the master outside MPI; time of
    the average thread neither useful nor in MPI, and what of it is in barriers, critical sections
    and locks.
    """
    measured, calls = useful_times(trace), trace.calls()
    running = measured.running
    every_call = Intervals.of(calls.offsets, calls.entry, calls.exit)
    waits = waiting_in(trace, running, every_call)
    bounds = np.asarray(trace.process_offsets, dtype=np.int64)
    process = structure.events.sequence[event]
    threads = np.diff(bounds)[process]
    starts = np.cumsum(threads) - threads
    which, location = spread(bounds[process], threads)
    first, last = structure.events.begin[event], structure.events.end[event]
    begin, end = first[which], last[which]
    busy = running.inside(location, begin, end) - delays(trace).inside(location, begin, end)
    busy, delayed = np.maximum(busy, 0), structure.events.delayed[event]
    useful = np.maximum(busy - measured.apart.inside(location, begin, end), 0)
    in_calls = alone([every_call], [running]).inside(location, begin, end)
    waiting = waits.inside(location, begin, end) + running.waits.inside(location, begin, end)
    idle = np.maximum(end - begin - delayed[which] - busy - in_calls, 0)

    def average(times: NDArray[np.int64]) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = np.add.reduceat(times, starts) / (threads * _NS)
        return mean

    return (
        average(useful),
        np.maximum.reduceat(useful, starts) / _NS,
        (last - first - in_calls[starts] - delayed) / _NS,
        average(idle),
        average(waiting),
    )


# -- what runs with several numbers of threads tell

# What regions take beside their work, and how unequal their threads are, goes with T as one law for
# all regions of a program, which have a size of their own each: few runs of few threads tell no
# more. Work that moves much data does not take a T-th of the time once the memory is busy, which
# all active cores of a node share, whatever process they belong to.


def add_overheads(
    laws: LawSet, outline: Outline, descriptions: Sequence[Description], runs: Sequence[AlignedRun]
) -> None:
    """Add how overheads of regions, and the imbalance of their threads, go with T."""
    regions = [
        number
        for number, point in enumerate(outline.points)
        if point.team is not None and all(number in run.teams for run in runs)
    ]
    if not regions or len({run.threads for run in runs}) < 2:
        return
    teams = [[run.teams[number] for run in runs] for number in regions]
    turns = np.array([descriptions[number].executions for number in regions], dtype=np.float64)
    useful = np.array([of_runs[0].useful for of_runs in teams])
    names = [outline.points[number].name for number in regions]
    overheads = [[each.overhead for each in of_runs] for of_runs in teams]
    uneven = [
        [each.imbalance if each.imbalance > _EVEN else 0.0 for each in of_runs] for of_runs in teams
    ]
    for key, name, what, unit, values, weights, fit in (
        ("overhead", "overhead", "overheads of parallel regions", "s", overheads, turns, overhead),
        (
            "thread_imbalance", "uneven", "imbalance of threads", "1", uneven, useful * turns,
            _fit_imbalance,
        ),
    ):  # fmt: skip
        amounts = _shared(laws, name, what, unit, np.array(values), weights, names, runs, fit)
        for index, amount in amounts.items():
            laws.amounts[key, regions[index]] = amount


def _fit_imbalance(samples: Sequence[Sample]) -> Law:
    return law(samples, forms=_UNEVEN, hints=("1",))


def _shared(
    laws: LawSet,
    name: str,
    what: str,
    unit: str,
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    names: Sequence[str],
    runs: Sequence[AlignedRun],
    fit: Callable[[Sequence[Sample]], Law],
) -> dict[int, SignatureAmount]:
    """One law for some parts, by their weighted sum, and amounts by their numbers."""
    sums = weights @ values
    if not sums.any():
        return {}
    samples = [run.sample(float(value)) for run, value in zip(runs, sums, strict=True)]
    found = fit(samples)
    at = np.array([run.value_of(found) for run in runs])
    over = at[0] / (samples[0].value or 1.0)
    if samples[0].value and not 1 / _FAR < over < _FAR:
        off = 100 * (found.error or 0)
        laws.notes.append(f"{what}: runs contradict each other by {off:.0f} %: no law")
        return {}
    constants = laws.add_factor(name, found)
    laws.add_fit(what, unit, found)
    amounts: dict[int, SignatureAmount] = {}
    scale = found.constants["a"]
    factor, freedom = at / scale.value, len(runs) - 1
    for index, (each, label) in enumerate(zip(values, names, strict=True)):
        # the size where the factor is 1: what gives the values, the large ones first
        if not each @ factor > 0:
            continue
        size = float(each @ factor / (factor @ factor))
        off = float(np.sqrt(((each - size * factor) ** 2).sum() / freedom / (factor @ factor)))
        half = student(freedom) * off
        constant = SignatureConstant(
            f"{name}_{label}", size, max(size - half, 0.0), size + half, unit, found.origin,
            f"{label}, {scale.meaning}",
        )  # fmt: skip
        amounts[index] = SignatureAmount(f"{constant.name}*{name}", (constant, *constants))
    return amounts


class SaturatedFactor(NamedTuple):
    """The factor on times of regions whose memory saturates."""

    constants: tuple[SignatureConstant, ...]
    values: tuple[float, ...]  # In the runs


def add_saturation(
    laws: LawSet,
    name: str,
    what: str,
    values: Sequence[float],
    runs: Sequence[AlignedRun],
    scaling: str,
) -> SaturatedFactor | None:
    """Add the factor on the time of parallel regions, if it is that of a memory that saturates."""
    if any(run.parameters != runs[0].parameters for run in runs) or not min(values) > 0:
        return None
    if len({run.active for run in runs}) < _LEAST:
        return None
    parts = [run.threads * (run.processes if scaling == "strong" else 1) for run in runs]
    samples = [
        Sample(1, run.active, value * part / run.active)
        for run, value, part in zip(runs, values, parts, strict=True)
    ]
    found = saturation(samples)
    demand, q = found.demand, found.sharpness
    on_header, on_node = max(run.cores for run in runs), max(run.active for run in runs)
    if not found.is_tested:
        if found.notes and demand.high * max(on_header, on_node) > 1:
            laws.notes.append(f"{what}: {found.notes[0]}")
        return None
    cores = SignatureConstant(
        _CORES, max(on_header, on_node), unit="1",
        origin="trace" if on_header >= on_node else "assumed",
        source="cores of a node, which share its memory",
    )  # fmt: skip
    share = SignatureConstant(
        f"{name}_d", demand.value, demand.low, demand.high, "1", demand.origin, demand.meaning
    )
    split = f"{parts[0]}/(P*T)" if scaling == "strong" else f"{parts[0]}/T"
    slower = f"(1 - {share.name}**{q:g} + ({ACTIVE}*{share.name})**{q:g})**(1/{q:g})"
    laws.let[ACTIVE] = Noted(f"min(P*T, {_CORES})", "active cores of a node")
    laws.let[name] = Noted(f"{split}*{slower}", "fit: memory that saturates")
    laws.add_law(
        what,
        "memory that saturates",
        f"{{a}}*{split}*(1 - {{d}}**q + (active_cores*{{d}})**q)**(1/q), q = {q:g}",
        demand.origin,
        len(samples),
        "s",
        constants={"a": found.alone, "d": demand},
        error=found.error,
        rejected=[("a serial part", found.serial_error)],
        notes=found.notes,
    )
    factor = (
        parts[0] / part * found.at(run.active) * run.active / found.alone.value
        for run, part in zip(runs, parts, strict=True)
    )
    return SaturatedFactor((share, cores), tuple(factor))
