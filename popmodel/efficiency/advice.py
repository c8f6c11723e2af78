"""Decides which losses to name: of which run, in which order, or none.

The run with the lowest global efficiency leads. Its losses are ranked by the core time that they
cost (`costs`), those of one family only, so that families do not repeat each other. Nothing is
advised where parallel efficiency and computation scaling reach `GOOD` in all runs, or where too
little was measured. POP takes efficiencies below `POP` for worth attention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from popmodel.base.units import format_time, plural
from popmodel.base.values import dataclass
from popmodel.efficiency.evaluation import AdviceCost, costs, efficiency
from popmodel.efficiency.loss_causes import (
    Remark,
    RemarkLoss,
    communication,
    computation,
    doubts,
    frequency,
    imbalance,
    instructions,
    ipc,
    outside_regions,
    percent,
    regions,
    serial_code,
    team_imbalance,
    transfer,
    waiting,
)
from popmodel.efficiency.regions import apart
from popmodel.efficiency.scaling import SCALING
from popmodel.traces.caveats import ENOUGH, FEW, MEASURABLE

if TYPE_CHECKING:
    from popmodel.efficiency.family import FamilyEvaluation
    from popmodel.efficiency.measure import MeasuredRun
    from popmodel.efficiency.scaling import Scaling


GOOD = 0.95
"""Efficiency from which on nothing is advised."""
POP = 0.8
"""Efficiency below which POP takes a metric for worth attention."""
_EVENTS = "MPI calls and parallel regions"
_WORTH = 0.05  # share of the core time from which on a second cause is named
_MOST = 3
_FELL = 0.01  # by which efficiency has to fall for the fall to be named

_OF_MPI = ("mpi", "mpi-additive")
_OF_ALL = ("hybrid-additive", "hybrid-multiplicative", "talp")

_EXPLAIN: Mapping[str, Callable[[RemarkLoss], Remark]] = {
    "imbalance": imbalance,
    "waiting": waiting,
    "transfer": transfer,
    "communication": communication,
    "regions": regions,
    "serial": serial_code,
    "team": team_imbalance,
    "outside regions": outside_regions,
    "computation": computation,
    "instructions": instructions,
    "ipc": ipc,
    "frequency": frequency,
}


@dataclass(frozen=True)
class Advice:
    """One loss that is worth work."""

    run: int  # Index of the run
    # Which efficiency.
    family: str
    metric: str
    name: str
    value: float  # The efficiency
    cost: float  # Share of the core time (threads times runtime) of the run that is lost to it
    why: str  # What the run says about the cause; empty where it says nothing
    remedy: str  # What to do; empty where a doubt has to be settled first


@dataclass(frozen=True)
class Fall:
    """The steepest fall of global efficiency between runs on neighbouring numbers of cores."""

    # Indices of the runs.
    before: int
    after: int
    # Their global efficiencies.
    high: float
    low: float
    # The efficiency whose cost grows most between them.
    family: str
    metric: str
    name: str
    values: tuple[float, float]  # Its values


@dataclass(frozen=True)
class Advised:
    """What to work on."""

    verdict: str  # How efficient the runs are, or why nothing is advised
    doubts: tuple[str, ...] = ()  # What makes the efficiencies of the leading run doubtful
    advice: tuple[Advice, ...] = ()  # The costliest loss first; none where nothing is advised
    # None where fewer than two numbers of cores were measured, or nothing falls.
    fall: Fall | None = None


def advise(
    runs: Sequence[MeasuredRun],
    evaluations: Sequence[Mapping[str, FamilyEvaluation]],
    scaling: Scaling,
    names: Sequence[str],
) -> Advised:
    """Decide what to work on."""
    family = _leading(runs, evaluations, compared=len(runs) > 1)
    if family is None:
        return Advised(_no_family(runs, evaluations[0]))
    compared = len(runs) > 1 and not scaling.doubts and not scaling.strangers
    pairs = [
        (each[family], scaling.evaluations[index] if compared else None)
        for index, each in enumerate(evaluations)
    ]
    divided = [costs(*pair) for pair in pairs]
    totals = [efficiency(*pair) for pair in pairs]
    useful = [index for index, advice in enumerate(divided) if advice]
    if not useful:
        return Advised("No advice: no efficiency could be computed.")
    long = [index for index in useful if _too_short(runs[index]) is None]
    if not long:
        return Advised(f"No advice: {_too_short(runs[useful[0]])}.")
    worst = min(long, key=lambda index: totals[index])
    doubtful = doubts(runs[worst])
    good = _all_good(family, evaluations, scaling, long, compared=compared)
    if good is not None and not doubtful:
        return Advised(f"No advice: {good}.")
    fall = _steepest(runs, divided, totals, long) if compared else None
    chosen = [] if good is not None else _chosen(divided[worst], 2 if doubtful else _MOST)
    if fall is not None and fall.after == worst:
        chosen += [one for one in divided[worst] if one.metric == fall.metric and one not in chosen]
    reference = None if worst == scaling.reference else runs[scaling.reference]
    advice = tuple(
        _advice(worst, RemarkLoss(runs[worst], cost, reference, names[scaling.reference]))
        for cost in chosen
    )
    if doubtful:  # no remedy rests on doubtful times
        advice = tuple(replace(each, remedy="") for each in advice)
    name = names[worst] if len(runs) > 1 else None
    verdict = _verdict(totals[worst], name, compared, judged=not doubtful)
    if short := [names[index] for index in useful if index not in long]:
        verdict += f" Too short to advise on: {', '.join(short)}."
    return Advised(verdict, tuple(doubtful), advice, fall)


def _leading(
    runs: Sequence[MeasuredRun],
    evaluations: Sequence[Mapping[str, FamilyEvaluation]],
    *,
    compared: bool,
) -> str | None:
    """The family to advise by: one that fits all runs; ``scaling`` if there is no other."""
    threaded = any(run.observables.has_openmp or apart(run.observables) for run in runs)
    # To families of MPI what masters lose to their teams is communication, and so is all loss
    # where there is no MPI: they would mislead.
    only_mpi = any(run.observables.has_mpi for run in runs) and not threaded
    order: tuple[str, ...] = (*_OF_MPI, *_OF_ALL) if only_mpi else _OF_ALL
    for id in order:
        if id in evaluations[0]:
            return id
    return SCALING if compared and SCALING in evaluations[0] else None


def _no_family(runs: Sequence[MeasuredRun], evaluations: Mapping[str, FamilyEvaluation]) -> str:
    """Why no family leads."""
    if not any(run.observables.has_mpi or run.observables.has_openmp for run in runs):
        return "No advice: neither MPI calls nor parallel regions were recorded."
    if evaluations.keys() - {SCALING}:
        return (
            "No advice: these families see only the MPI calls of master threads; hybrid-additive "
            "sees all threads."
        )
    return "No advice: a single run has no scaling."


def _too_short(run: MeasuredRun) -> str | None:
    """Why a run is too short to advise on."""
    runtime = run.observables.runtime
    if runtime < MEASURABLE:
        least = format_time(MEASURABLE, trim=True)
        return f"only {format_time(runtime, digits=3)} analysed, less than {least}"
    events = run.evidence.calls + sum(region.count for region in run.observables.regions)
    if events < FEW and runtime < ENOUGH:
        return f"only {plural(events, 'MPI call or parallel region', _EVENTS)} analysed"
    return None


def _all_good(
    family: str,
    evaluations: Sequence[Mapping[str, FamilyEvaluation]],
    scaling: Scaling,
    long: Sequence[int],
    *,
    compared: bool,
) -> str | None:
    """What is at least `GOOD` in all runs, in words; None if anything is lower."""
    parts = []
    if family != SCALING:
        parts.append(("parallel efficiency", [evaluations[index][family] for index in long]))
    if compared:
        parts.append(("computation scaling", [scaling.evaluations[index] for index in long]))
    for _, evaluated in parts:
        if any(run.values.get(name, 0) < GOOD for run in evaluated for name in run.family.search):
            return None
    where = " in all runs" if len(evaluations) > 1 else ""
    verb = "are" if len(parts) > 1 else "is"
    return f"{' and '.join(name for name, _ in parts)} {verb} at least {percent(GOOD)}{where}"


def _chosen(losses: Sequence[AdviceCost], most: int) -> list[AdviceCost]:
    """The losses to name: the costliest, and others that cost enough."""
    return [*losses[:1], *(cost for cost in losses[1:most] if cost.cost >= _WORTH)]


def _advice(run: int, loss: RemarkLoss) -> Advice:
    cost = loss.cost
    family = cost.evaluation.family
    metric = family.metrics[cost.metric]
    reasons = dict.fromkeys(
        cost.evaluation.absent[part]
        for part in family.parts(cost.metric)
        if part in cost.evaluation.absent
    )
    if metric.cause is not None:
        why, remedy = _EXPLAIN[metric.cause](loss)
    elif reasons:
        why, remedy = f"Its parts are unknown: {'; '.join(reasons)}.", ""
    else:
        why, remedy = "", metric.advice
    return Advice(run, family.id, metric.id, metric.name, cost.value, cost.cost, why, remedy)


def _steepest(
    runs: Sequence[MeasuredRun],
    divided: Sequence[Sequence[AdviceCost]],
    totals: Sequence[float],
    indices: Sequence[int],
) -> Fall | None:
    """The largest fall between neighbours, if every number of cores was run once."""
    cores = {int(runs[index].observables.threads.sum()): index for index in indices}
    if len(cores) < len(indices) or len(indices) < 2:
        return None
    order = [cores[number] for number in sorted(cores)]
    before, after = max(pairwise(order), key=lambda pair: totals[pair[0]] - totals[pair[1]])
    if totals[before] - totals[after] < _FELL:
        return None
    earlier = {cost.metric: cost for cost in divided[before]}
    both = [cost for cost in divided[after] if cost.metric in earlier]
    if not both:
        return None
    most = max(both, key=lambda cost: cost.cost - earlier[cost.metric].cost)
    family = most.evaluation.family
    return Fall(
        before,
        after,
        totals[before],
        totals[after],
        family.id,
        most.metric,
        family.metrics[most.metric].name,
        (earlier[most.metric].value, most.value),
    )


def _verdict(total: float, name: str | None, compared: bool, *, judged: bool) -> str:
    what = "Global efficiency" if compared else "Parallel efficiency"
    where = f"is lowest in {name}: {100 * total:.1f} %" if name else f"is {100 * total:.1f} %"
    if not judged:
        return f"{what} {where}."
    side = "below" if total < POP else "above"
    return f"{what} {where}, {side} the {percent(POP)} that POP considers good."


def advice_data(advised: Advised, runs: Sequence[str]) -> dict[str, Any]:
    """The advice for JSON; `runs` are what to call the runs."""
    fall = advised.fall
    return {
        "good": GOOD,
        "verdict": advised.verdict,
        "doubts": list(advised.doubts),
        "causes": [{**vars(each), "run": runs[each.run]} for each in advised.advice],
        "steepest_fall": None
        if fall is None
        else {
            **vars(fall),
            "before": runs[fall.before],
            "after": runs[fall.after],
            "values": list(fall.values),
        },
    }
