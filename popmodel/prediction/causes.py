"""Why a run takes its time: items behind each loss, elasticities, and what would help."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.expressions.elementary import Value, numbers
from popmodel.base.values import dataclass, fields_of
from popmodel.model.kinds.item import Item
from popmodel.model.predictor import ModelEvaluation, Study, as_replayed, expand
from popmodel.model.replayed_run import ReplayAgreement
from popmodel.model.run.process_placement import Placement
from popmodel.model.run.work import ModelledObservables, RunWork, computation, delays
from popmodel.model.signature.application import Signature, items, mapped
from popmodel.model.symbols import GROUPS, REMEDIES
from popmodel.model.symbols import factors as scale_factors
from popmodel.model.uncertainty import Draws, nominal

# What of a program each loss comes from: its items one by one, and the imbalance of processes.


UNEQUAL = "unequal work"
WAITING = "waiting for others"
MESSAGES = "messages"
"""Names of causes that are no item of a program."""
_ROUNDING = 1e-9  # of the runtime: less is left over where nothing is lost


def causes(study: Study, placement: Placement, run: ModelEvaluation) -> dict[str, dict[str, float]]:
    """Say for every leaf of the additive family what its loss comes from."""
    lost: dict[str, dict[str, float]] = {}
    closed = study.best(placement)
    before, after = (nominal(computation(one.work)) for one in (closed, run))
    factor = after / before if before else 1.0  # a replay may have found another, for all items
    for item, work in closed.tree.leaves():
        for metric, seconds in _lost(work.computed(factor), placement.threads).items():
            by_item = lost.setdefault(metric, {})
            by_item[item.name] = by_item.get(item.name, 0.0) + nominal(seconds)
    delayed, replayed = delays(closed.work, closed.course), delays(run.work, run.course)
    lost["process_load_balance"] = {UNEQUAL: nominal(replayed.unequal)}
    for metric, once, now, rest in (
        ("process_serialisation_efficiency", delayed.waiting, replayed.waiting, WAITING),
        ("process_transfer_efficiency", delayed.transfer, replayed.transfer, MESSAGES),
    ):
        lost[metric] = _shared_out(lost[metric], nominal(once), nominal(now), rest)
    least = _ROUNDING * nominal(run.modelled.runtime)
    return {
        metric: dict(sorted(counted.items(), key=lambda item: -item[1]))
        for metric, seconds in lost.items()
        if (counted := {name: value for name, value in seconds.items() if value > least})
    }


def _shared_out(
    by_item: dict[str, float], closed: float, whole: float, rest: str
) -> dict[str, float]:
    """Share out a delay as the closed form does; what is left is no item's.

    A replay may have found another delay than the closed form, for all items together.
    """
    factor = whole / closed if closed > 0 else 0.0
    shared = {name: seconds * factor for name, seconds in by_item.items()}
    return shared | {rest: whole - sum(shared.values())}


def _lost(work: RunWork, threads: int) -> dict[str, Value]:
    """What some work adds to the losses of the additive family, s, by metric."""
    return {
        "process_transfer_efficiency": work.transfer,
        "process_serialisation_efficiency": work.waiting,
        "openmp_region_efficiency": work.parallel - work.share,
        "serial_region_efficiency": work.serial * (threads - 1) / threads,
    }


# Elasticities: ``d ln(result) / d ln(input)``, by central differences. All inputs are changed in
# one evaluation: column 0 of every array is the best estimate, and each input has two columns of
# its own. Where the model has a kink or a step (a maximum of two times, whole shares of a loop, a
# cache that a working set just fits) both sides are told, since no single number is right there.


STEP = 0.005
"""Relative change of an input to either side."""
_SMOOTH = 0.02  # relative difference of the two sides that curvature may explain

_Inputs = dict[str, tuple[str, dict[str, int]]]
"""By name, what grows, and by path the power of its factor on each quantity."""


@dataclass(frozen=True)
class Elasticity:
    """By how many per cent a result changes if an input grows by one."""

    name: str  # Group of `popmodel.model.symbols.GROUPS`, or ``params.NAME``
    label: str  # What grows
    value: float  # ``d ln(result) / d ln(input)``
    # The same from the side below and from the side above.
    falling: float
    rising: float

    @property
    def largest(self) -> float:
        """The larger size of the two sides."""
        return max(abs(self.falling), abs(self.rising))

    @property
    def is_smooth(self) -> bool:
        """Whether the two sides agree; they do not at a maximum, a threshold or a rounding."""
        return abs(self.rising - self.falling) <= _SMOOTH * max(1.0, self.largest)

    def to_dict(self) -> dict[str, Any]:
        return {**fields_of(self), "smooth": self.is_smooth}


def elasticities(
    study: Study,
    placement: Placement,
    result: Callable[[ModelledObservables], Value] = lambda modelled: modelled.runtime,
    agreement: ReplayAgreement | None = None,
) -> tuple[Elasticity, ...]:
    """Return the elasticities of a result with respect to all that enters and that a factor suits.

    A parameter that cannot change a little, such as a number of blocks that is 1, has none.
    """

    def changed(inputs: _Inputs) -> tuple[NDArray[np.float64], Draws]:
        factors = {}
        for index, (_, paths) in enumerate(inputs.values()):
            for path, power in paths.items():
                column = np.ones(1 + 2 * len(inputs))
                column[1 + 2 * index : 3 + 2 * index] = (1 - STEP) ** power, (1 + STEP) ** power
                factors[path] = column
        drawn = study.sources(factors, draws=0)
        modelled = study.run(placement, drawn, agreement=agreement).modelled
        return np.broadcast_to(numbers(result(modelled)), 1 + 2 * len(inputs)), drawn

    def is_possible(name: str) -> bool:
        try:
            changed({name: inputs[name]})
        except UsageError:
            return False
        return True

    inputs: _Inputs = {}
    for name, group in GROUPS.items():
        paths = {
            path: power
            for beginning, power in group.powers.items()
            for path in expand({beginning: 1.0}, study.quantities)
        }
        if paths:
            inputs[name] = (group.label, paths)
    for name in study.params:
        inputs[f"params.{name}"] = (name, {f"params.{name}": 1})
    try:
        values, drawn = changed(inputs)
    except UsageError:  # a parameter is at the edge of what makes sense
        inputs = {name: inputs[name] for name in inputs if is_possible(name)}
        values, drawn = changed(inputs)
    if not np.all(values > 0):
        raise ValueError(f"a result of {values.min():g} has no elasticity")
    logs, less, more = np.log(values / values[0]), math.log1p(-STEP), math.log1p(STEP)
    found = []
    for index, (name, (label, paths)) in enumerate(inputs.items()):
        if not paths.keys().isdisjoint(drawn.used):
            below, above = float(logs[1 + 2 * index]), float(logs[2 + 2 * index])
            middle = (above - below) / (more - less)
            found.append(Elasticity(name, label, middle, below / less, above / more))
    return tuple(sorted(found, key=lambda one: -one.largest))


# Remedies: changes of the machine, and of what the program's parts lose. A serial part can be
# shared by the threads, a halo that the master packs can be packed in parallel, a critical section
# can go. Each is modelled by the same terms as the run itself; replayed delays are scaled alike.


NEGLIGIBLE = 0.0005
"""Part of the runtime: a remedy that brings less is not worth a line."""


def remedies(
    study: Study,
    placement: Placement,
    causes: Mapping[str, Mapping[str, float]],
    agreement: ReplayAgreement | None = None,
) -> dict[str, float]:
    """Return the relative change of the runtime under each remedy that helps, the best first."""
    now = study.best(placement)
    if agreement is not None:
        now = as_replayed(placement, now, agreement.correction)
    before = nominal(now.modelled.runtime)
    found = {
        label: runtime / before - 1
        for label, runtime in _on_other_machines(study, placement, now, agreement).items()
    }
    losing = {name for by_item in causes.values() for name in by_item}
    for label, signature in _programs(study.signature, losing, placement.threads):
        try:
            changed = study.with_signature(signature)
            drawn, known = changed.sources(draws=0), study.known(placement)
            run = changed.run(placement, drawn, agreement=agreement, known=known)
        except PopmodelError:
            continue
        if run.machine.lacking <= now.machine.lacking:  # what is assumed costs nobody knows what
            found[label] = nominal(run.modelled.runtime) / before - 1
    helpful = {label: change for label, change in found.items() if change < -NEGLIGIBLE}
    return dict(sorted(helpful.items(), key=lambda item: item[1]))


def _on_other_machines(
    study: Study, placement: Placement, now: ModelEvaluation, agreement: ReplayAgreement | None
) -> dict[str, float]:
    """Return the runtime with each remedy of the machine, all evaluated at once.

    One by one where the slowest process follows from what is known of single processes at the best
    estimate.
    """
    factors_of = [
        expand(scale_factors(groups, factor), study.quantities)
        for factor, groups in REMEDIES.values()
    ]

    def runtimes(factors: Sequence[Mapping[str, float]]) -> list[float]:
        paths = dict.fromkeys(path for one in factors for path in one)
        columns = {path: np.array([one.get(path, 1.0) for one in factors]) for path in paths}
        run = study.run(placement, study.sources(columns, draws=0), agreement=agreement)
        every: list[float] = np.broadcast_to(numbers(run.modelled.runtime), len(factors)).tolist()
        return every

    if now.tree.is_uneven or "imbalance.largest" in study.quantities:
        return dict(zip(REMEDIES, (runtimes([one])[0] for one in factors_of), strict=True))
    return dict(zip(REMEDIES, runtimes([{}, *factors_of])[1:], strict=True))


def _programs(
    signature: Signature, losing: set[str], threads: int
) -> Iterator[tuple[str, Signature]]:
    """The program with one change each; parts of one name change together."""

    def faster(item: Item) -> dict[str, Item]:
        """The item by what makes it faster; nothing if it loses nothing."""
        found = item.faster(threads) if item.name in losing else ()
        return {item.remedies[remedy][0].format(item.name): one for remedy, one in found}

    def changed(label: str, item: Item) -> Item:
        return faster(item).get(label, item)

    labels = dict.fromkeys(label for item in items(signature.program) for label in faster(item))
    for label in labels:
        program = mapped(signature.program, partial(changed, label))
        yield label, replace(signature, program=program)
