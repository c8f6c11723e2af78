"""A predicted run compared with a predicted reference run, draw by draw.

Both runs see the same draws of the uncertain inputs, so what is common to them cancels in their
ratios. The formulas are those of the family ``scaling``, as for measured runs
(`popmodel.efficiency.scaling`); here are only which run is the reference, and how much work it
does.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Set
from dataclasses import field, replace

import numpy as np

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import against, of_masters
from popmodel.errors import PopmodelError, UsageError
from popmodel.expressions.elementary import Value
from popmodel.model.evaluation import ModelEvaluation
from popmodel.model.run import grid
from popmodel.model.run.observe import ModelledObservables
from popmodel.model.run.placement import Allocation, Placement
from popmodel.model.study import Study
from popmodel.model.uncertainty import estimate
from popmodel.prediction.prediction import DEFAULT_REFERENCE, Reference
from popmodel.values import dataclass


@dataclass(frozen=True)
class ReferenceRun:
    """A run that is asked for as the reference."""

    # P, and T per process.
    processes: int
    threads: int
    # Parameters of the application that differ from those of the run: weak scaling.
    settings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ScalingComparison:
    """A run together with its reference."""

    modelled: ModelledObservables  # The run, with what families need of the reference
    reference: Reference  # What a report says about the reference
    inputs: tuple[str, ...]  # Paths of the quantities that the reference rests on


def compare(
    study: Study, placement: Placement, run: ModelEvaluation, wanted: ReferenceRun | None = None
) -> ScalingComparison:
    """Evaluate the reference of a run and join it to the run."""
    if wanted is None:
        base, where, why = study, *_smallest(study, placement, run.machine.lacking)
    else:
        base, where = _asked(study, wanted, run.machine.lacking)
        why = "asked for"
    drawn = base.sources()
    other = run
    if base is not study or where != placement:
        other = base.outcome(where, drawn).run
    own = study.values
    changed = {name: value for name, value in base.values.items() if value != own[name]}
    ratio: Value = 1.0
    if changed:
        ratio, told = _work_ratio(run, placement, other, where)
        why = f"{why}; {told}"
    reference = Reference(
        where.processes,
        where.threads,
        changed,
        "weak" if changed else "strong",
        estimate(ratio),
        estimate(other.modelled.runtime),
        why,
    )
    threaded = max(placement.threads, where.threads) > 1
    modelled = _joined(run.modelled, other.modelled, ratio, threaded=threaded)
    return ScalingComparison(modelled, reference, tuple(drawn.used))


def _joined(
    run: ModelledObservables, reference: ModelledObservables, work_ratio: Value, *, threaded: bool
) -> ModelledObservables:
    """Return the run the aggregates that its scaling, and the efficiency of masters, need."""
    aggregates: dict[str, Value] = against(run.aggregates, reference.aggregates, work_ratio)
    absent = {name: why for name, why in run.absent.items() if name != "reference"}
    # the reference is a run of the same signature and lacks the same counters
    absent |= {f"reference_{name}": why for name, why in absent.items()}
    scaled = load_families()["scaling"].evaluate_samples(aggregates, absent)
    values: dict[str, Value] = dict(scaled.values)
    more, reasons = of_masters(values, scaled.absent, threaded=threaded)
    return replace(run, aggregates=aggregates | more, absent=absent | reasons)


def _require_known(study: Study, where: Placement, lacking: Set[str]) -> None:
    """Refuse a reference run for which more is lacking in the profile than for the run itself."""
    more = study.run(where, study.sources(draws=0)).machine.lacking - lacking
    if more:
        raise study.profile.missing(min(more))


def _asked(study: Study, wanted: ReferenceRun, lacking: Set[str]) -> tuple[Study, Placement]:
    try:
        base = study.with_settings(wanted.settings) if wanted.settings else study
        where = base.admit_or_advise(wanted.processes, wanted.threads, _anywhere(study))
        _require_known(base, where, lacking)
    except UsageError as error:
        raise UsageError(f"reference: {error.message}", error.hint) from error
    return base, where


def _smallest(study: Study, placement: Placement, lacking: Set[str]) -> tuple[Placement, str]:
    """Find the smallest part of a run that is possible, and say why it is this one."""
    refused: str | None = None
    for processes, threads in _parts(placement):
        try:
            where = study.admit(processes, threads, _anywhere(study))
            _require_known(study, where, lacking)
        except PopmodelError as error:  # not possible, or the machine is not known there
            refused = refused or error.message
            continue
        if refused is None:
            return where, DEFAULT_REFERENCE
        return where, f"smallest possible part of the run: {refused}"
    if refused is None:
        return placement, "the run itself"
    return placement, f"the run itself, no part of it is possible: {refused}"


def _parts(placement: Placement) -> Iterator[tuple[int, int]]:
    """Return P and T of the parts of a run, the fewest cores first, then the fewest threads.

    Parts have a divisor of its processes and of its threads: what a program requires of their
    number (a square, a multiple) holds rather for these than for the numbers between.
    """
    parts = itertools.product(grid.divisors(placement.processes), grid.divisors(placement.threads))
    yield from sorted(parts, key=lambda part: (part[0] * part[1], part[1]))[:-1]


def _anywhere(study: Study) -> Allocation:
    """As many nodes as a reference needs."""
    return replace(study.allocation, nodes=None)


def _work_ratio(
    run: ModelEvaluation, placement: Placement, other: ModelEvaluation, where: Placement
) -> tuple[Value, str]:
    """Return the work of a run over that of its reference, and how it was counted."""
    work, base = placement.processes * run.work.flops, where.processes * other.work.flops
    if np.all(work) and np.all(base):
        return work / base, "work in operations"
    return placement.cores / where.cores, (
        "work assumed proportional to the cores: the signature has no operation counts (flops)"
    )
