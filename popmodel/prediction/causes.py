"""What of a program each loss comes from: its items one by one, and the imbalance of processes."""

from __future__ import annotations

from popmodel.expressions.elementary import Value
from popmodel.model.evaluation import Evaluation
from popmodel.model.run.course import computation, delays
from popmodel.model.run.placement import Placement
from popmodel.model.run.work import Work
from popmodel.model.study import Study
from popmodel.model.uncertainty import nominal

UNEQUAL = "unequal work"
WAITING = "waiting for others"
MESSAGES = "messages"
"""Names of causes that are no item of a program."""
_ROUNDING = 1e-9  # of the runtime: less is left over where nothing is lost


def causes(study: Study, placement: Placement, run: Evaluation) -> dict[str, dict[str, float]]:
    """Say for every leaf of the additive family what its loss comes from."""
    lost: dict[str, dict[str, float]] = {}
    closed = study.run(placement, study.sources(draws=0))
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


def _lost(work: Work, threads: int) -> dict[str, Value]:
    """Return what some work adds to the losses of the additive family, s, by metric."""
    return {
        "process_transfer_efficiency": work.transfer,
        "process_serialisation_efficiency": work.waiting,
        "openmp_region_efficiency": work.parallel - work.share,
        "serial_region_efficiency": work.serial * (threads - 1) / threads,
    }
