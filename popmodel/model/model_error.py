"""Errors of the model itself: of its laws, times that a signature lacks, speeds that drift."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from math import exp, hypot, sqrt
from typing import TypeAlias

import numpy as np

from popmodel.base.expressions.elementary import Value, maximum, some
from popmodel.base.units import format_size, plural
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.profile import Profile
from popmodel.machines.quantity import END, Quantity, Topology, around
from popmodel.model.run.collective_times import MeasuredShape
from popmodel.model.run.parameters import ParameterUse
from popmodel.model.run.process_placement import Placement
from popmodel.model.run.work import RunWork
from popmodel.model.symbols import (
    LAWS,
    LOOPS,
    MESSAGES,
    OF_MODEL,
    OPENMP,
    SERIAL,
    SOURCE,
    WAITING,
    ModelLaw,
)
from popmodel.model.uncertainty import (
    REACH,
    RESIDUAL,
    TRUSTED,
    Array,
    Calibration,
    Draws,
    Drift,
    nominal,
    spread,
    widened,
)

MEASURED = "measured"
RUNS = "runs"
"""Section of a reach beyond the runs that a signature was calibrated by."""

LIMITS: Mapping[str, float] = {
    "threads": 16.0,
    "cores": 16.0,
    "pairs": 16.0,
    "processes": 16.0,
    "nodes": 16.0,
    "bytes": 256.0,
}
"""How many times the largest measured value of an argument a law is trusted with an interval.

Four doublings, since the laws are in the logarithm of their arguments; more for messages, whose
time per byte has settled where the largest ones were measured.
"""

Ranges: TypeAlias = Mapping[tuple[str, str], tuple[float, float]]
"""Smallest and largest measured value by table and argument."""

_MESSAGES_OF = "messages of "
_ROUNDING = 1e-9


class Reach(NamedTuple):
    """Where a prediction asked for something that has a measured range."""

    # The table, and what varies in it.
    subject: str
    argument: str
    factor: float  # By which the value is outside the range; 1 inside
    limit: str  # The end of the range on that side, in words

    @property
    def section(self) -> str:
        """The section of the profile that the table is in, ``net`` for what messages make up."""
        return "net" if self.subject.startswith(_MESSAGES_OF) else self.subject.partition(".")[0]

    @property
    def is_beyond(self) -> bool:
        """Whether the value is outside the range."""
        return self.factor > 1 + _ROUNDING

    @property
    def distance(self) -> float:
        """0 inside, 1 where `LIMITS` ends, in between on a logarithmic scale."""
        return math.log(max(self.factor, 1.0)) / math.log(self.trusted)

    @property
    def trusted(self) -> float:
        """The factor up to which predictions have an interval."""
        return TRUSTED if self.section == RUNS else LIMITS[self.argument]


def reaches(ranges: Ranges, used: Iterable[ParameterUse], nodes: int) -> Iterator[Reach]:
    """Compare what a prediction used with what was measured, where that is known."""
    for use in sorted({*used, ParameterUse("topology", "nodes", float(nodes))}):
        subject, found = use.subject, ranges.get((use.subject, use.argument))
        if found is None and use.subject.startswith("coll.") and use.argument == "processes":
            # made up of messages, which two processes exchange
            of_messages = any(table.startswith("net.") for table, _ in ranges)
            subject, found = f"{_MESSAGES_OF}{use.subject}", (1.0, 2.0) if of_messages else None
        if found is not None:
            yield Reach(subject, use.argument, *_beyond(use, *found))


def beyond_runs(
    hull: Mapping[str, tuple[float, float]], values: Mapping[str, float]
) -> Iterator[Reach]:
    """Compare a prediction with the runs that its signature was calibrated by."""
    for name, (low, high) in hull.items():
        value = values[name]
        if value > high:
            yield Reach(RUNS, name, value / high, f"above the largest calibrated ({high:g})")
        elif value < low:
            yield Reach(RUNS, name, low / value, f"below the smallest calibrated ({low:g})")
        else:
            yield Reach(RUNS, name, 1.0, "")


def measured_ranges(profile: Profile) -> Ranges:
    """Return the smallest and largest measured value of every argument."""
    document = profile.document
    values: dict[tuple[str, str], list[float]] = defaultdict(list)

    def add(subject: str, argument: str, value: float, path: str) -> None:
        if path in profile.quantities and profile.quantities[path].origin == MEASURED:
            values[subject, argument].append(float(value))

    for section, table in (("core", "freq"), ("memory", "by_cores")):
        for count in document.get(section, {}).get(table, {}):
            add(f"{section}.{table}", "cores", int(count), f"{section}.{table}.{count}")
    for construct in profile.constructs():
        subject = f"openmp.{construct}"
        for index, count in enumerate(profile.thread_counts(construct)):
            add(subject, "threads", count, f"{subject}.seconds[{index}]")
    for tier in profile.tiers():
        subject = f"net.{tier}"
        for index, row in enumerate(document["net"][tier].get("table", ())):
            add(subject, "bytes", row["bytes"], f"{subject}.table[{index}].seconds")
        for index, row in enumerate(document["net"][tier].get("pairs", ())):
            add(subject, "pairs", row["pairs"], f"{subject}.pairs[{index}].bandwidth")
    for op, rows in document.get("coll", {}).items():
        for index, row in enumerate(rows):
            path = f"coll.{op}[{index}].seconds"
            subject = MeasuredShape.of_row(row).subject(op)
            add(subject, "processes", row["P"], path)
            add(subject, "bytes", row["bytes"], path)
    found = {key: (min(numbers), max(numbers)) for key, numbers in values.items()}
    return found | {("topology", "nodes"): (1.0, float(profile.topology.nodes))}


def _beyond(use: ParameterUse, low: float, high: float) -> tuple[float, str]:
    """By which factor a value is outside a range, and which end of the range on that side."""
    if use.argument == "nodes":
        return use.value / high, f"above those of the profile ({high:g})"
    if use.value > high:
        factor = use.value / max(high, 1.0)
        return factor, f"above the largest measured ({_shown(use.argument, high)})"
    # a message shorter than the shortest one measured costs what that one costs
    if use.value < low and use.argument != "bytes":
        return low / use.value, f"below the smallest measured ({_shown(use.argument, low)})"
    return 1.0, ""


def _shown(argument: str, value: float) -> str:
    return format_size(value, digits=3) if argument == "bytes" else f"{value:g}"


# The form of the model as draws: factors of its laws on the work of a process, noise of a profile.
#
# Every law has a factor in every draw (`popmodel.model.symbols`). A part of its error is the same
# in all splits and cancels where they are compared; the rest is drawn anew for each split, by its
# name, so that a difference between splits is never surer than the laws are.


DISTURBED = 0.15
"""Standard deviation that noise adds to the logarithm of a measured value: launches that differ by
more than this are what the measurement calls noisy."""


BEYOND = "beyond the runs"
"""What stands in the name of the score of a law whose error grows with the distance from runs."""
_TINY = 1e-300  # s; keeps a ratio of times of nothing defined


@dataclass(frozen=True)
class ModelForm:
    """The factors of the laws in one split."""

    # Factor of every law that gives a part of this run, wider the farther it is extrapolated.
    quantities: Mapping[str, Quantity]
    # Standard normal scores of these; empty without draws.
    scores: Mapping[str, Array] = field(default_factory=dict)
    # The factors themselves; empty without draws, unless runs have calibrated them.
    factors: Mapping[str, Value] = field(default_factory=dict)
    # Their part that all splits have in common, with its own variance.
    common: Mapping[str, Value] = field(default_factory=dict)

    def factor(self, path: str) -> Value:
        """Return the factor of a law; 1 without draws, and where it gives nothing."""
        return self.factors.get(path, 1.0)

    @np.errstate(over="ignore", invalid="ignore")  # `observe` looks at what came of it
    def applied(self, work: RunWork) -> RunWork:
        """Return the work of a process with the factors of the laws of its parts."""
        if not self.factors:
            return work
        source, openmp = self.factor(SOURCE.path), self.factor(OPENMP.path)
        stated = work.stated * self.factor(LOOPS.path)
        loops = self.factor(LOOPS.path) * source
        # a stated time is carried from where it was measured to here, as that of a loop is
        master = (work.serial - work.stated) * self.factor(SERIAL.path) * source + stated
        return work._replace(
            serial=master,
            stated=stated,
            serial_cycles=work.serial_cycles * (master / maximum(work.serial, _TINY)),
            share=work.share * loops,
            stretched=work.stretched * loops,
            awaiting=work.awaiting * loops,
            region_cycles=work.region_cycles * loops,
            # one thread is another split: only the common part of the error is the same there
            single_thread=work.single_thread
            * self.common.get(LOOPS.path, 1.0)
            * self.common.get(SOURCE.path, 1.0),
            overhead=work.overhead * openmp,
            synchronising=work.synchronising * openmp,
            waiting=work.waiting * self.factor(WAITING.path),
            # what is carried far from a measured collective has a factor of its own
            transfer=work.measured + (work.transfer - work.measured) * self.factor(MESSAGES.path),
        )


def laws_of_split(
    split: str,
    work: RunWork,
    imbalance: Iterable[Value],
    reach: Iterable[Reach],
    drawn: Draws,
    *,
    from_source: bool = False,
) -> ModelForm:
    parts = {
        LOOPS: (work.stretched, work.stated),
        SOURCE: (work.stretched, work.serial - work.stated) if from_source else (),
        SERIAL: (work.serial - work.stated,),
        OPENMP: (work.overhead,),
        WAITING: (work.waiting, *imbalance),
        MESSAGES: (work.transfer - work.measured,),
    }
    reach = list(reach)
    found = {
        law.path: _factor(law, split, reach, drawn)
        for law, values in parts.items()
        if any(some(value) for value in values)
    }
    drawn_ones = {path: one for path, one in found.items() if one.scores is not None}
    return ModelForm(
        {path: one.quantity for path, one in found.items()},
        {path: one.scores for path, one in drawn_ones.items() if one.scores is not None},
        {path: one.factor for path, one in drawn_ones.items()},
        {path: one.common for path, one in drawn_ones.items()},
    )


class _Factor(NamedTuple):
    """The factor of a law in a split, and the part of it that all splits have in common."""

    quantity: Quantity
    scores: Array | None = None
    factor: Value = 1.0
    common: Value = 1.0


def _factor(law: ModelLaw, split: str, reach: Iterable[Reach], drawn: Draws) -> _Factor:
    known = drawn.calibration
    far = max((one.distance for one in reach if one.section in law.sections), default=0.0)
    if known is not None and law.path in known.index:
        away = max((one.distance for one in reach if one.section == RUNS), default=0.0)
        return _calibrated(law, split, far, away, known, drawn)
    quantity = law.at(far)
    if not drawn.count:
        return _Factor(quantity)
    common = sqrt(1 - law.own) * drawn.scores(law.path)
    scores = common + sqrt(law.own) * drawn.scores(f"{law.path} of {split}")
    return _Factor(quantity, scores, spread(quantity, scores), spread(quantity, common))


def _calibrated(
    law: ModelLaw, split: str, far: float, away: float, known: Calibration, drawn: Draws
) -> _Factor:
    """Return the factor of a law that runs have calibrated.

    What all splits have in common stays as it was learnt. What each has for itself is as large as
    the runs left it (`own_deviation`). What grows with the distance from them is the same for all
    splits that are as far: they leave the runs on the same way. Where the machine is extrapolated,
    the error that the law has there by itself is added to what each has for itself.
    """
    shared = law.spread * sqrt(1 - law.own)
    near = own_deviation(law, known.own)
    farther = near * sqrt((law.deviation(away) / law.spread) ** 2 - 1)
    own = sqrt(near**2 + law.deviation(far) ** 2 - law.spread**2)
    common = shared * drawn.scores(law.path)
    if farther:
        common = common + farther * drawn.scores(f"{law.path} {BEYOND}")
    whole = common + own * drawn.scores(f"{law.path} of {split}")
    middle, shared_middle = exp(float(whole[0])), exp(float(common[0]))
    left = shared * float(known.deviations[known.index[law.path]])
    source = f"{law.source}; calibrated by {plural(len(known.runs), 'run')}"
    ends = around(middle, hypot(left, own, farther))
    quantity = Quantity(middle, *ends, OF_MODEL, source=source)
    if not drawn.count:
        return _Factor(quantity, whole[:1], middle, shared_middle)
    return _Factor(quantity, whole, np.exp(whole), np.exp(common))


def own_deviation(law: ModelLaw, known: float) -> float:
    """Return the standard deviation of what a split has for itself of the error of a law."""
    return (known if law is LOOPS else 1.0) * law.spread * sqrt(law.own)


def split_label(
    placement: Placement, values: Mapping[str, float], hull: Mapping[str, tuple[float, float]]
) -> str:
    """Name a run for what it has for itself of the errors of laws: its split.

    And its parameters, as far as they differ between the runs that calibrated the laws.
    """
    varied = [
        f", {name}={values[name]:g}"
        for name, (low, high) in hull.items()
        if low < high and name in values
    ]
    return "".join([f"{placement.processes} x {placement.threads}", *varied])


def contrast(first: Mapping[str, Array], second: Mapping[str, Array]) -> dict[str, Array]:
    """Return the scores of laws by which one split differs from another."""
    nothing = np.zeros(1)
    return {
        path: second.get(path, nothing) - first.get(path, nothing)
        for path in LAWS
        if path in first or path in second
    }


def disturbed(quantities: Mapping[str, Quantity], sections: Iterable[str]) -> dict[str, Quantity]:
    """Return quantities, wider where their section of the profile was measured beside noise."""
    noisy = set(sections)
    return {
        path: replace(widened(one, DISTURBED), source=f"{one.source}; wider: measured beside noise")
        if path.partition(".")[0] in noisy and one.origin == MEASURED
        else one
        for path, one in quantities.items()
    }


# Times that a program may have and its signature does not name, in forms that physics suggests.
#
# A collective that nobody wrote down takes time in every step and grows with the logarithm of the
# number of processes; a root that talks to all grows with that number. None of these terms is part
# of a prediction unless measured runs ask for it (`popmodel.fit.calibrate`).


class Residual(NamedTuple):
    """A form of time that a signature may lack."""

    name: str  # Of its score among the inputs
    meaning: str  # For people
    unit: str  # Of its amplitude: ``s`` or ``1``, a part of the time in loops
    # Placement -> the number that the amplitude is multiplied by; 0 with one process, or thread.
    shape: Callable[[Placement], float]
    added: Callable[[RunWork, Value], RunWork]  # (work, amplitude times shape) -> the work with it
    # (shape, factor) -> the shape with a factor more processes, or threads of each.
    grown: Callable[[float, float], float]
    is_fixed: bool  # Whether it takes as long where more processes, or threads, share the work
    # Topology -> whether it has a shape in some run on the machine.
    is_possible: Callable[[Topology], bool]


def _of_messages(work: RunWork, each: Value) -> RunWork:
    return work._replace(transfer=work.transfer + work.steps * each)


def _of_loops(work: RunWork, part: Value) -> RunWork:
    return work._replace(
        share=work.share * (1.0 + part),
        stretched=work.stretched * (1.0 + part),
        region_cycles=work.region_cycles * (1.0 + part),
    )


def _has_cores(machine: Topology) -> bool:
    return machine.nodes * machine.cores_per_node > 1


HIDDEN = 12.0
"""Largest score of a term that runs do not show: 7.5 % of the time of the largest run, about as
much as the law of loops may be off there, and all of the time of one four times as large."""
_HIDING = f"{RESIDUAL}processes"
RESIDUALS: Mapping[str, Residual] = {
    one.name: one
    for one in (
        Residual(
            f"{RESIDUAL}log_processes",
            "time of a step that grows with log2 P",
            "s",
            lambda at: math.log2(at.processes),
            _of_messages,
            lambda shape, factor: shape + math.log2(factor),
            is_fixed=True,
            is_possible=_has_cores,
        ),
        Residual(
            f"{RESIDUAL}processes",
            "time of a step that grows with P",
            "s",
            lambda at: at.processes - 1.0,
            _of_messages,
            lambda shape, factor: (shape + 1) * factor - 1,
            is_fixed=True,
            is_possible=_has_cores,
        ),
        Residual(
            f"{RESIDUAL}nodes",
            "time of a step for every node beyond the first",
            "s",
            lambda at: at.nodes - 1.0,
            _of_messages,
            lambda shape, factor: (shape + 1) * factor - 1,
            is_fixed=True,
            is_possible=lambda machine: machine.nodes > 1,
        ),
        Residual(
            f"{RESIDUAL}domains",
            "slower loops for every memory domain of a process beyond the first",
            "1",
            lambda at: at.domains_spanned - 1.0,
            _of_loops,
            lambda shape, _: max(shape, 1.0),
            is_fixed=False,
            is_possible=lambda machine: machine.domains > 1,
        ),
        Residual(
            f"{RESIDUAL}serial",
            "part of the loops that one thread does alone",
            "1",
            lambda at: 1.0 - 1.0 / at.threads,
            lambda work, part: work._replace(stretched=work.stretched + work.single_thread * part),
            lambda shape, factor: 1.0 - (1.0 - shape) / factor,
            is_fixed=True,
            is_possible=lambda machine: machine.cores_per_node > 1,
        ),
    )
}
"""All terms by name."""


def with_residuals(
    work: RunWork, placement: Placement, drawn: Draws, units: Mapping[str, float]
) -> RunWork:
    """Return the work of a process with residual terms."""
    for name, unit in units.items():
        one = RESIDUALS[name]
        if shape := one.shape(placement):
            work = one.added(work, _amplitude(name, drawn) * (unit * shape))
    return work


def _amplitude(name: str, drawn: Draws) -> Value:
    """The size of a term, in units of its score; never below 0.

    A term that grows with the processes may be far larger than is likely, and still be hidden in
    the errors of small runs: in its largest draws (one of twenty) it is, up to `HIDDEN`. That
    hardly moves an interval, but says what many processes may cost where splits are compared.
    """
    score, known = drawn.score(name), drawn.calibration
    amplitude = maximum(score, 0.0)
    if name == _HIDING and drawn.count and known is not None and known.runs:
        row = known.index[name]
        mean, deviation = float(known.means[row]), float(known.deviations[row])
        if mean < deviation:  # else the runs have shown how large it is
            beyond = maximum((score - mean) / deviation - END, 0.0)
            amplitude = amplitude + HIDDEN * beyond / (REACH - END)
    return amplitude


# How the speed of computing drifts with what a signature may not know: a walk without a law.
#
# A working set that begins to fit a cache, a clock that falls as more cores are busy: loops become
# faster or slower by what no formula of the signature says. Over each doubling (of the work of a
# thread in a step; of the busy cores of a memory domain) the logarithm of their time may change by
# a normal amount, independent of the others. So runs tell of the doublings that they span, and
# beyond them the spread grows with the square root of the distance, as that of a random walk.


SIZE = "size"
"""Drift with the work of a thread in a step."""
ACTIVE = "active"
"""Drift with the busy cores of a memory domain."""
DRIFTS: Mapping[str, str] = {
    SIZE: "drift of computing with the work of a thread in a step",
    ACTIVE: "drift of computing with the busy cores of a memory domain",
}


def drift_places(work: RunWork, placement: Placement) -> dict[str, float]:
    """Return where a run is along each drift, in doublings."""
    step = (nominal(work.share) + nominal(work.serial)) / max(nominal(work.steps), 1.0)
    found = {ACTIVE: math.log2(placement.active)}
    return {SIZE: math.log2(step), **found} if step > 0 else found


def doublings(kind: str, drift: Drift, at: float) -> Iterator[tuple[str, float]]:
    """Return the doublings between the origin of a drift and a place along it."""
    way = at - drift.origin
    sign = "+" if way > 0 else "-"
    for number in range(math.ceil(abs(way))):
        yield f"{RESIDUAL}{kind}[{sign}{number + 1}]", min(abs(way) - number, 1.0)


def drifted(
    work: RunWork, placement: Placement, drawn: Draws, drifts: Mapping[str, Drift]
) -> RunWork:
    """Return the work of a process whose computing has drifted."""
    where = drift_places(work, placement)
    changes = [
        drawn.score(name) * (part * drift.deviation)
        for kind, drift in drifts.items()
        if kind in where and drift.deviation
        for name, part in doublings(kind, drift, where[kind])
    ]
    if not changes:
        return work
    factor: Value = np.exp(sum(changes))
    return work._replace(
        serial=work.serial * factor,
        stated=work.stated * factor,
        share=work.share * factor,
        stretched=work.stretched * factor,
        serial_cycles=work.serial_cycles * factor,
        region_cycles=work.region_cycles * factor,
    )
