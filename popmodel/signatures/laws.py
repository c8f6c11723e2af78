"""Amounts of a signature from several runs: laws of P, T and the parameters of the problem.

Instructions repeat from run to run where times do not, so that their law tells what every process
does again from what is divided, and what processes execute for each other. How long an instruction
takes hardly changes with P; where it does, caches or a memory that is shared are behind it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.expressions import parse
from popmodel.base.units import plural
from popmodel.fit.common_law import pooled
from popmodel.fit.counts import exact_law
from popmodel.fit.law import FIT, TRACE, law
from popmodel.fit.physical_laws import overhead, saturation
from popmodel.fit.samples import END, UNKNOWN_ERROR, Sample, student
from popmodel.signatures.amounts import LawSet, SignatureAmount, SignatureConstant, constants_of
from popmodel.signatures.document import Noted, number
from popmodel.signatures.message_sizes import likely_forms, size_laws
from popmodel.signatures.outline import (
    TIME,
    OutlineCalls,
    OutlineMeeting,
    OutlineRepeat,
    OutlineWork,
    paths,
    points_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.fit.counts import Count
    from popmodel.fit.law import Law
    from popmodel.signatures.align_runs import AlignedRun, RunTable
    from popmodel.signatures.amounts import Key
    from popmodel.signatures.outline import Node, Outline, OutlinePoint
    from popmodel.signatures.recorded_times import Description

    Executions = Mapping[tuple[int, ...], NDArray[np.float64]]
    Size = tuple[float, float, float]

_UNEVEN = ("1", "1 - 1/T", "log2(T)", "T - 1")  # forms of the imbalance; one thread has none
_FAR = 3.0  # factor by which a law is off the largest run, from which it says nothing of it
_LEAST = 3  # numbers of active cores that tell whether a memory saturates
_EVEN = 1e-6  # imbalance below which threads are even
ACTIVE, _CORES = "active_cores", "node_cores"
_COUNTED = 0.003  # relative error of instructions: what they repeat to between runs
_FEW = 2  # counts of iterations that some formula of P gives by chance
_SAME = 1e-6  # relative difference of counts that are the same
_BY_DATA = 0.02  # relative error of counts that no formula gives, as of a solver that converges
_ROUNDED = 9  # digits of ratios of counts that are alike
_DIGITS = 6


def fitted_laws(
    table: RunTable,
    descriptions: Sequence[Description],
    assumed: Mapping[Key, SignatureAmount],
    scaling: str,
) -> LawSet:
    """Find the laws by which the amounts of a program grow."""
    outline, runs = table.outline, table.rows
    laws = LawSet(dict(assumed))
    counts, executions = loop_laws(outline, runs, assumed)
    sizes = size_laws(table)
    laws.amounts |= {**counts.amounts, **sizes.amounts}
    in_steps = any(
        key[0] == "count" and not amount.constants and "P" in parse(str(amount.formula)).names
        for key, amount in counts.amounts.items()
    )
    times = PointTimes(table, descriptions, executions)
    for in_teams in (False, True):
        points = [
            number_
            for number_, point in enumerate(outline.points)
            if descriptions[number_].mean > 0 and (point.team is not None) is in_teams
        ]
        if points:
            _add_computing(laws, points, times, scaling, in_steps)
    laws.add(counts)
    laws.add(sizes)
    add_overheads(laws, outline, descriptions, runs)
    laws.notes = list(dict.fromkeys(laws.notes))
    return laws


# -- what is computed


class PhaseGroup(NamedTuple):
    """Phases that grow alike."""

    factor: str  # By which they grow, in formulas
    constants: tuple[SignatureConstant, ...]  # In it
    meaning: str  # What the time of a phase is where the factor is 1
    # By part, that time and its 90 % interval, s; or instructions.
    sizes: Mapping[int, Size]
    label: str = ""  # What they are
    values: tuple[float, ...] = ()  # The factor in the runs
    note: str = ""  # Where the factor comes from


def _add_computing(
    laws: LawSet, points: Sequence[int], times: PointTimes, scaling: str, in_steps: bool
) -> None:
    """Add laws of phases, all serial or all parallel regions: one for those that grow alike.

    Where instructions were counted in all runs, those have laws as well, and times are these times
    seconds per instruction.
    """
    outline, runs = times.outline, times.runs
    in_teams = outline.points[points[0]].team is not None
    prefix = "share" if in_teams else "work"
    shared = ("1/(P*T)" if in_teams else "1/P") if scaling == "strong" else "1"
    # work that is shared out in steps whose number grows with P: a step has a P-th of a P-th
    likely = (*likely_forms(runs, shared), *(["1/P**2"] if in_steps else ()))
    labels = [outline.points[point].label for point in points]
    turns = [times.descriptions[point].executions for point in points]

    def whole(samples: Sequence[Sequence[Sample]]) -> list[list[Sample]]:
        return [
            [replace(sample, value=sample.value * count) for sample in of_point]
            for of_point, count in zip(samples, turns, strict=True)
        ]

    spent = whole([times.seconds(point) for point in points])
    shares = [outline.points[point].total / outline.total for point in points]
    by_time = LawSet()
    groups = _groups_by_time(by_time, prefix, labels, spent, runs, scaling, likely, shares)
    for point in points:
        laws.amounts["seconds", point] = SignatureAmount(0, note="0 in all runs")
    done = [each for each in map(times.instructions, points) if each is not None]
    if len(done) == len(points):
        counts = whole(done)
        executed = _groups_by_instructions(laws, prefix, labels, counts, likely)
        for group in executed:
            for part, (value, *_) in group.sizes.items():
                formula = f"{number(value / turns[part], _DIGITS):.12g}*{group.factor}"
                amount = SignatureAmount(formula, group.constants, group.note)
                laws.amounts["instructions", points[part]] = amount
        timed = {part for part, samples in enumerate(spent) if any(one.value for one in samples)}
        known = {part for group in executed for part in group.sizes}
        if timed and timed <= known and ACTIVE not in by_time.let:
            by_time, groups = LawSet(), []
            for order, group in enumerate(executed, start=1):
                if mine := {part: spent[part] for part in group.sizes if part in timed}:
                    name = prefix + (str(order) if order > 1 else "")
                    groups.append(_paced(by_time, name, group, mine, counts))
    laws.add(by_time)
    for group in groups:
        constants = group.constants
        for part, size in group.sizes.items():
            value, low, high = (end / turns[part] for end in size)
            origin = FIT if sum(sample.value > 0 for sample in spent[part]) > 1 else TRACE
            name = TIME + outline.points[points[part]].name
            source = f"{labels[part]}, {group.meaning}"
            constant = SignatureConstant(name, value, low, high, "s", origin, source)
            amount = SignatureAmount(f"{name}*{group.factor}", (constant, *constants))
            laws.amounts["seconds", points[part]] = amount
            constants = ()


def _alike(labels: Sequence[str]) -> str:
    """What a law is of."""
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} alike"


def _groups_by_time(
    laws: LawSet,
    prefix: str,
    labels: Sequence[str],
    parts: Sequence[Sequence[Sample]],
    runs: Sequence[AlignedRun],
    scaling: str,
    likely: Sequence[str],
    shares: Sequence[float],
) -> list[PhaseGroup]:
    """Groups of parts by their times."""
    groups = []
    for order, pool in enumerate(pooled(parts, hints=likely), start=1):
        name = prefix + (str(order) if order > 1 else "")
        what = _alike([labels[part] for part in pool.sizes])
        values = {part: [sample.value for sample in parts[part]] for part in pool.sizes}
        sums = np.array([*values.values()]).sum(axis=0).tolist()
        full = None
        if prefix == "share":
            full = add_saturation(laws, name, what, sums, runs, scaling)
        if full is not None:
            saturated, factor = full
            sizes = {part: size_of(each, factor) for part, each in values.items()}
            groups.append(PhaseGroup(name, saturated, "were the memory idle", sizes))
            continue
        constants = laws.add_factor(name, pool.law)
        laws.add_fit(what, "s", pool.law, sum(shares[part] for part in pool.sizes))
        meaning = pool.law.constants["a"].meaning
        sizes = {part: (size.value, size.low, size.high) for part, size in pool.sizes.items()}
        groups.append(PhaseGroup(name, constants, meaning, sizes))
    return groups


def _groups_by_instructions(
    laws: LawSet,
    prefix: str,
    labels: Sequence[str],
    parts: Sequence[Sequence[Sample]],
    likely: Sequence[str],
) -> list[PhaseGroup]:
    """Groups of parts by their instructions."""
    groups = []
    for order, pool in enumerate(pooled(parts, hints=likely, between=_COUNTED), start=1):
        name = f"{prefix}_instructions" + (str(order) if order > 1 else "")
        label = _alike([labels[part] for part in pool.sizes])
        constants = laws.add_factor(name, pool.law)
        laws.add_fit(f"instructions {label}", "1", pool.law)
        scale = pool.law.constants["a"]
        samples = parts[next(iter(pool.sizes))]
        values = tuple(_at(pool.law, sample) / scale.value for sample in samples)
        sizes = {part: (size.value, size.low, size.high) for part, size in pool.sizes.items()}
        note = f"{pool.law.origin}: {pool.law.form}"
        groups.append(PhaseGroup(name, constants, scale.meaning, sizes, label, values, note))
    return groups


def _paced(
    laws: LawSet,
    name: str,
    executed: PhaseGroup,
    times: Mapping[int, Sequence[Sample]],
    counts: Sequence[Sequence[Sample]],
) -> PhaseGroup:
    """Find the factor on times from that on instructions."""
    first = next(iter(times.values()))
    spent = np.array([[each.value for each in samples] for samples in times.values()]).sum(axis=0)
    done = np.array([[each.value for each in counts[part]] for part in times]).sum(axis=0)
    samples = [
        Sample(run.processes, run.threads, float(time / count), run.parameters)
        for run, time, count in zip(first, spent, done, strict=True)
        if time > 0 and count > 0
    ]
    found = law(samples, hints=("1", "1 + P"))
    constants = (*executed.constants, *laws.add_factor(f"{name}_pace", found))
    formula = f"{executed.factor}*{name}_pace"
    laws.let[name] = Noted(formula, "instructions times seconds per instruction")
    laws.add_fit(f"seconds per instruction {executed.label}", "s", found)
    home = found.constants["a"].value
    values = tuple(
        value * _at(found, run) / home for value, run in zip(executed.values, first, strict=True)
    )
    sizes = {
        part: size_of([each.value for each in of_part], values) for part, of_part in times.items()
    }
    return PhaseGroup(name, constants, executed.meaning, sizes)


def _at(found: Law, run: Sample) -> float:
    return found.at(run.processes, run.threads, run.parameters).value


def size_of(times: Sequence[float], factor: Sequence[float]) -> Size:
    """Return the time of a phase where the factor is 1, and its 90 % interval."""
    known = [math.log(time / value) for time, value in zip(times, factor, strict=True) if time > 0]
    mean = float(np.mean(known))
    scatter = float(np.std(known, ddof=1)) if len(known) > 1 else 0.0
    half = END * max(scatter, UNKNOWN_ERROR) / math.sqrt(len(known))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


class PointTimes:
    """Seconds and instructions of the points of an outline in all runs of a table.

    Of an execution of an average process, in regions of an average thread. Bursts that are known
    together in all runs grow alike, so that their sum is that of each run.
    """

    def __init__(
        self, table: RunTable, descriptions: Sequence[Description], executions: Executions
    ) -> None:
        self.table, self.descriptions = table, descriptions
        self.outline, self.runs = table.outline, table.rows
        self.processes = np.array([run.processes for run in self.runs], dtype=np.float64)
        # float64[points, runs]: How often each is executed, for each time in the first run.
        self.executions = np.ones((len(self.outline.points), len(self.runs)))
        for path, node in paths(self.outline.body):
            for point in points_of(node):
                self.executions[point] = executions[path[:-1]]

    def seconds(self, number_: int) -> list[Sample]:
        """Return the seconds in every run; 0 where a run does not execute it."""
        times = self.descriptions[number_]
        error = None  # relative, of the mean, from its interval
        if times.low is not None and times.high is not None and times.low > 0:
            error = max(math.log(times.high / times.low) / (2 * 1.645), 0.01)
        if self.outline.points[number_].team is None:
            spent = np.array([run.before for run in self.runs])
            values = times.mean * self._growth(number_, spent, lambda point: point.total)
        else:
            teams = [run.teams.get(number_) for run in self.runs]
            useful = [0.0 if each is None else each.useful for each in teams]
            values = np.array(useful) * self._turns(number_)
        return self._samples(values, error)

    def instructions(self, number_: int) -> list[Sample] | None:
        """Return the instructions in every run; None where nobody counted them in one of them."""
        point, times = self.outline.points[number_], self.descriptions[number_]
        counted = [run.instructions for run in self.runs if run.instructions is not None]
        if point.instructions is None or len(counted) < len(self.runs):
            return None
        executions = len(point.seconds) * max(times.executions, 1)
        mean = point.instructions / executions
        if point.team is None:
            before = np.array([before for before, _ in counted])
            values = mean * self._growth(number_, before, lambda point: point.instructions or 0.0)
        else:
            site = np.isin(self.table.site, self.table.site[point.places])
            inside = np.array([float(inside[site].sum()) for _, inside in counted])
            often = np.array([float(run.executions[point.places].sum()) for run in self.runs])
            threads = np.array([run.threads for run in self.runs])
            each = inside / (self.processes * np.maximum(often, 1.0) * threads)
            values = each * self._turns(number_)
            values *= mean / threads[0] / values[0] if values[0] else 0.0
        return self._samples(values, _COUNTED)

    def _samples(self, values: NDArray[np.float64], error: float | None) -> list[Sample]:
        return [
            run.sample(value, error) for run, value in zip(self.runs, values.tolist(), strict=True)
        ]

    def _growth(
        self, number_: int, done: NDArray[np.float64], of_point: Callable[[OutlinePoint], float]
    ) -> NDArray[np.float64]:
        """What an execution takes over what it takes in the first run, as all bursts around it."""
        burst = self.table.burst
        group = np.isin(burst, burst[self.outline.points[number_].places])
        alike = np.zeros(len(self.runs))
        for point, executions in zip(self.outline.points, self.executions, strict=True):
            if point.team is None and group[point.places].any():
                alike += of_point(point) * executions
        whole = done[:, group].sum(axis=1) / self.processes
        growth = np.zeros(len(whole))
        np.divide(whole, alike, out=growth, where=alike > 0)
        return growth / growth[0] if growth[0] else np.zeros(len(whole))

    def _turns(self, number_: int) -> NDArray[np.float64]:
        """Executions of a region in each run over those that the counts of loops give."""
        places = self.outline.points[number_].places
        often = np.array([run.executions[places].sum() for run in self.runs])
        given = self.executions[number_] * float(often[0])
        turns = np.zeros(len(often))
        np.divide(often, given, out=turns, where=given > 0)
        return turns


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
            partial(law, forms=_UNEVEN, hints=("1",)),
        ),
    ):  # fmt: skip
        amounts = _shared(laws, name, what, unit, np.array(values), weights, names, runs, fit)
        for index, amount in amounts.items():
            laws.amounts[key, regions[index]] = amount


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


def add_saturation(
    laws: LawSet,
    name: str,
    what: str,
    values: Sequence[float],
    runs: Sequence[AlignedRun],
    scaling: str,
) -> tuple[tuple[SignatureConstant, ...], tuple[float, ...]] | None:
    """Add the factor on the time of parallel regions, if it is that of a memory that saturates.

    Its constants, and what it is in the runs.
    """
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
    return (share, cores), tuple(factor)


# -- how often loops are executed


def loop_laws(
    outline: Outline, runs: Sequence[AlignedRun], assumed: Mapping[Key, SignatureAmount]
) -> tuple[LawSet, Executions]:
    """Find formulas that give the counts of the loops of all runs, or laws that come near.

    By path of each loop, and () for the program, also how often its body is executed in each run
    for each time that it is in the first one; of a run without it, how often the signature says.
    """
    laws = LawSet()
    measured: dict[tuple[int, ...], NDArray[np.float64]] = {(): np.ones(len(runs))}
    said: dict[tuple[int, ...], NDArray[np.float64]] = {}  # Turns, over those of the first run
    by_data: dict[tuple[float, ...], list[tuple[Key, int]]] = {}
    for path, node in paths(outline.body):
        if not isinstance(node, OutlineRepeat):
            continue
        around = measured[path[:-1]]
        inside, below = _places(outline, node.body), _places(outline, node.body, below=True)
        often = np.array(  # where a run lacks what is in the body itself, by its inner loops
            [run.turns(inside, runs[0]) or run.turns(below, runs[0]) for run in runs]
        )
        ratio = np.divide(often, around, out=np.ones(len(runs)), where=around > 0)
        measured[path] = ratio * around
        has = (often > 0) & (around > 0)
        said[path] = np.where(has, ratio, 1.0)
        if np.ptp(ratio[has]) <= _SAME * ratio[has].max(initial=0.0):
            in_all = "the same in all runs" + ("" if has.all() else " that have it")
            laws.amounts["count", path] = SignatureAmount(
                assumed["count", path].formula, note=in_all
            )
            continue
        ratios = tuple(np.where(has, ratio, 0.0).tolist())
        samples = _samples(runs, ratios, node.count, 0.0)
        exact = exact_law(samples, ("1", *runs[0].parameters))
        if exact is not None and exact.origin == FIT and _is_sure(exact, samples):
            note = f"{exact.origin}: exact in all runs"
            laws.amounts["count", path] = SignatureAmount(exact.text, note=note)
            laws.add_exact(f"iterations of {node.name}", "1", exact, len(samples))
            formula = parse(exact.text)
            said[path][~has] = [
                float(formula.evaluate(run.sample(0.0).configuration)) / node.count
                for run in compress(runs, ~has)
            ]
            continue
        alike = tuple(round(one, _ROUNDED) for one in ratios)
        by_data.setdefault(alike, []).append((("count", path), node.count))
    for order, (ratios, members) in enumerate(by_data.items(), start=1):
        named = max(count for _, count in members)
        found = law(_samples(runs, ratios, named, _BY_DATA), hints=("1",))
        what = f"iterations of {plural(len(members), 'loop')} whose number data may decide"
        constants = constants_of(found, f"n{order}", "1", what)
        text = found.text(f"n{order}_")
        for key, times in members:
            part = text if times == named else f"{times / named:.12g}*({text})"
            note = f"{found.origin}: near {found.form}"
            laws.amounts[key] = SignatureAmount(f"max(floor({part} + 1/2), 1)", constants, note)
            lacks = measured[key[1]] == 0
            said[key[1]][lacks] = [run.value_of(found) / named for run in compress(runs, lacks)]
        laws.add_fit(what, "1", found)
    executions: dict[tuple[int, ...], NDArray[np.float64]] = {(): np.ones(len(runs))}
    for path, ratio in said.items():
        executions[path] = ratio * executions[path[:-1]]
    return laws, executions


def _samples(
    runs: Sequence[AlignedRun], ratios: Sequence[float], count: float, error: float
) -> list[Sample]:
    """Counts in the runs that have a loop, by how they are over that of the first one."""
    return [
        run.sample(count * ratio, error) for run, ratio in zip(runs, ratios, strict=True) if ratio
    ]


def _is_sure(found: Count, samples: Sequence[Sample]) -> bool:
    """Whether a formula is no chance: some formula of P or T gives most pairs of counts."""
    return parse(found.text).names.isdisjoint(("P", "T")) or len(samples) > _FEW


def _places(outline: Outline, body: Sequence[Node], *, below: bool = False) -> list[int]:
    """Places directly in a body, in loops inside if there are none or they are asked for."""
    places: list[int] = []
    for node in body:
        match node:
            case OutlineWork():
                places += outline.points[node.point].places
            case OutlineCalls():
                places += node.places
            case OutlineMeeting():
                places.append(node.place)
    if below or not places:
        for node in body:
            if isinstance(node, OutlineRepeat):
                places += _places(outline, node.body, below=below)
    return [place for place in places if place >= 0]
