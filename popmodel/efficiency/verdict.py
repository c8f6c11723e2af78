"""The verdict on a result, made once: facts become sentences here, for every place that shows them.

Doubt comes before advice: where a run is doubtful nothing judges it, and no remedy rests on what
the doubt is about. A network bounds a run only if it costs a tenth of the runtime (`NetworkCosts`).

The run with the lowest global efficiency leads. Its losses are ranked by the core time that they
cost (`costs`), those of one family of a run only, so that families do not repeat each other.
Nothing is advised where parallel efficiency and computation scaling reach `GOOD` in all runs, or
where too little was measured. POP takes efficiencies below `POP` for worth attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from popmodel.base.units import format_bandwidth, format_time, plural
from popmodel.base.values import NamedTuple
from popmodel.efficiency.device_times import device_copies, device_imbalance, launch_gaps
from popmodel.efficiency.evaluation import AdviceCost, costs, efficiency
from popmodel.efficiency.loss_causes import (
    NetworkCosts,
    Remark,
    RemarkLoss,
    communication,
    computation,
    doubts,
    frequency,
    imbalance,
    instructions,
    ipc,
    network_remedy,
    outside_regions,
    percent,
    regions,
    serial_code,
    team_imbalance,
    transfer,
    waiting,
)
from popmodel.efficiency.region_efficiencies import apart
from popmodel.efficiency.scaling import SCALING
from popmodel.traces.caveats import ENOUGH, FEW, MEASURABLE, is_too_little

if TYPE_CHECKING:
    from popmodel.efficiency.family import FamilyEvaluation
    from popmodel.efficiency.measure import MeasuredRun
    from popmodel.efficiency.observables import Observables
    from popmodel.efficiency.scaling import Scaling


GOOD = 0.95
"""Efficiency from which on nothing is advised."""
POP = 0.8
"""Efficiency below which POP takes a metric for worth attention."""
_EVENTS = "MPI calls and parallel regions"
_WORTH = 0.05  # share of the core time from which on a second cause is named
_MOST = 3
SMALL = 5e-4
"""Share of the runtime that is printed as 0.1 % at least; less counts as nothing."""
_LARGE = 0.05  # share of the time from which on a region that does not pay is named
_HIDES = 0.2  # a region hides if less than this part of what is taken away is gained
_NAMED = 2  # runs that are named
_FELL = 0.01  # by which efficiency has to fall for the fall to be named

_OF_MPI = ("mpi", "mpi-additive")
_OF_DEVICES = {
    "gpu-bsc": ("the device time", " (devices x runtime)"),
    "gpu-talp": ("the device time", " (devices x runtime)"),
    "gpu-classic": ("the time of threads and devices", " (their number x runtime)"),
}
"""Families of devices, the one to advise by first, and what costs are shares of there."""
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
    "device imbalance": device_imbalance,
    "device copies": device_copies,
    "launch gaps": launch_gaps,
}


def advise(
    runs: Sequence[MeasuredRun],
    evaluations: Sequence[Mapping[str, FamilyEvaluation]],
    scaling: Scaling,
    names: Sequence[str],
) -> dict[str, Any]:
    """Decide what to work on: key ``advice`` of a document; `names` are what to call the runs."""
    families = _leading(runs, evaluations, compared=len(runs) > 1)
    if not families or (len(runs) == 1 and not _tells_losses(runs[0].observables)):
        return _advised(_no_family(runs, evaluations[0]))
    of_devices = not _OF_DEVICES.keys().isdisjoint(families)
    compared = len(runs) > 1 and not (scaling.doubts or scaling.strangers or of_devices)
    pairs = [
        (each[family], scaling.evaluations[index] if compared else None)
        for index, (each, family) in enumerate(zip(evaluations, families, strict=True))
    ]
    divided = [costs(*pair) for pair in pairs]
    totals = [efficiency(*pair) for pair in pairs]
    useful = [index for index, advice in enumerate(divided) if advice]
    if not useful:
        return _advised("No advice: no efficiency could be computed.")
    long = [index for index in useful if _too_short(runs[index]) is None]
    if not long:
        return _advised(f"No advice: {_too_short(runs[useful[0]])}.")
    worst = min(long, key=lambda index: totals[index])
    doubtful = doubts(runs[worst])
    good = _all_good(families, evaluations, scaling, long, compared=compared)
    if good is not None and not doubtful:
        return _advised(f"No advice: {good}.")
    fall = _steepest(runs, divided, totals, long) if compared else None
    chosen = [] if good is not None else _chosen(divided[worst], 2 if doubtful else _MOST)
    if fall is not None and fall["after"] == worst:
        falls = [cost for cost in divided[worst] if cost.metric == fall["metric"]]
        chosen += [cost for cost in falls if cost not in chosen]
    reference = None if worst == scaling.reference else runs[scaling.reference]
    causes = [
        _cause(RemarkLoss(runs[worst], cost, reference, names[scaling.reference]), names[worst])
        for cost in chosen
    ]
    if doubtful:  # no remedy rests on doubtful times
        causes = [{**cause, "remedy": "", "network": None} for cause in causes]
    if fall is not None:
        fall |= {side: names[fall[side]] for side in ("before", "after")}
    name = names[worst] if len(runs) > 1 else None
    what = "Global efficiency" if compared else "Parallel efficiency"
    if families[worst] in _OF_DEVICES:
        top = evaluations[worst][families[worst]].family
        what = top.metrics[top.top].name
    verdict = _verdict(totals[worst], name, what, judged=not doubtful)
    if short := [names[index] for index in useful if index not in long]:
        named = short if len(short) <= _NAMED else [*short[: _NAMED - 1], f"{len(short) - 1} more"]
        verdict += f" Too short to advise on: {', '.join(named)}."
    return _advised(verdict, doubtful, causes, fall)


def _advised(
    verdict: str,
    doubts: Sequence[str] = (),
    causes: Sequence[Mapping[str, Any]] = (),
    fall: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "good": GOOD,
        "verdict": verdict,
        "doubts": list(doubts),
        "causes": list(causes),
        "steepest_fall": fall,
    }


def families_of(runs: Sequence[Observables], *, of_host: bool = False) -> list[str]:
    """The family that suits each run: of devices if it has any, of MPI alone, or of all threads.

    A run with neither MPI nor threads has that of the runs beside it. `of_host` looks past devices.
    """
    if not of_host and any(run.has_kernels for run in runs):
        host = families_of([run for run in runs if not run.has_kernels])
        return [next(iter(_OF_DEVICES)) if run.has_kernels else host.pop(0) for run in runs]
    own = [_OF_ALL[0] if run.has_openmp or apart(run) else _OF_MPI[0] for run in runs]
    telling = {family for run, family in zip(runs, own, strict=True) if _tells_losses(run)}
    if telling == {_OF_ALL[0]}:
        return [_OF_ALL[0]] * len(runs)
    return own


def _tells_losses(run: Observables) -> bool:
    """Whether anything is recorded that threads or processes lose time to."""
    return run.has_mpi or run.has_openmp or run.has_kernels or apart(run)


def _leading(
    runs: Sequence[MeasuredRun],
    evaluations: Sequence[Mapping[str, FamilyEvaluation]],
    *,
    compared: bool,
) -> list[str]:
    """The family to advise each run by; ``scaling`` for all if a run has no other, else none."""
    # To families of MPI what masters lose to their teams is communication, and so is all loss
    # where there is no MPI: they would mislead.
    with_mpi = any(run.observables.has_mpi for run in runs)
    found = []
    own = families_of([run.observables for run in runs], of_host=True)
    for family, evaluation in zip(own, evaluations, strict=True):
        order = (*_OF_MPI, *_OF_ALL) if with_mpi and family in _OF_MPI else _OF_ALL
        devices = [id for id in _OF_DEVICES if id in evaluation and evaluation[id].values]
        found += [*devices, *(id for id in order if id in evaluation)][:1]
    if len(found) == len(runs):
        return found
    return [SCALING] * len(runs) if compared and SCALING in evaluations[0] else []


def _no_family(runs: Sequence[MeasuredRun], evaluations: Mapping[str, FamilyEvaluation]) -> str:
    """Why no family leads."""
    if not any(run.observables.has_mpi or run.observables.has_openmp for run in runs):
        return "No advice: neither MPI calls nor parallel regions were recorded."
    if evaluations.keys() & set(_OF_MPI):
        return (
            "No advice: these families see only the MPI calls of master threads; hybrid-additive "
            "sees all threads."
        )
    if evaluations.keys() - {SCALING}:
        return "No advice: none of these families says how parallel the run is."
    return "No advice: a single run has no scaling."


def _too_short(run: MeasuredRun) -> str | None:
    """Why a run is too short to advise on, or has nothing useful in it."""
    runtime = run.observables.runtime
    if not run.observables.useful.any() and run.observables.devices is None:
        return "no thread is running by its states"
    if runtime < MEASURABLE:
        least = format_time(MEASURABLE, trim=True)
        return f"only {format_time(runtime, digits=3)} analysed, less than {least}"
    events = run.evidence.calls + sum(region.count for region in run.observables.regions)
    what = ("MPI call or parallel region", _EVENTS)
    if (devices := run.observables.devices) is not None:
        events += int(devices.activities.sum())
        what = ("MPI call, kernel or copy", "MPI calls, kernels and copies")
    if events < FEW and runtime < ENOUGH:
        return (
            f"only {plural(events, *what)} analysed"
            if events
            else f"no {what[1].replace(' and ', ' or ')} analysed"
        )
    return None


def _all_good(
    families: Sequence[str],
    evaluations: Sequence[Mapping[str, FamilyEvaluation]],
    scaling: Scaling,
    long: Sequence[int],
    *,
    compared: bool,
) -> str | None:
    """What is at least `GOOD` in all runs, in words; None if anything is lower."""
    parts = []
    if SCALING not in families:
        own = [evaluations[index][families[index]] for index in long]
        parts.append(("parallel efficiency", own))
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


def _cause(loss: RemarkLoss, name: str) -> dict[str, Any]:
    """One loss that is worth work, of a run of that name."""
    cost = loss.cost
    family = cost.evaluation.family
    metric = family.metrics[cost.metric]
    reasons = dict.fromkeys(
        cost.evaluation.absent[part]
        for part in family.parts(cost.metric)
        if part in cost.evaluation.absent
    )
    if metric.cause is not None:
        remark = _EXPLAIN[metric.cause](loss)
    elif reasons:
        remark = Remark(f"Its parts are unknown: {'; '.join(reasons)}.", "")
    else:
        remark = Remark("", metric.advice)
    return {
        "run": name,
        "family": family.id,
        "metric": metric.id,
        "name": metric.name,
        "value": cost.value,
        "cost": cost.cost,  # share of the core time (threads times runtime)
        "why": remark.why,  # what the run says about the cause; empty where it says nothing
        "remedy": remark.remedy,
        "network": None if remark.network is None else remark.network._asdict(),
        "trace": loss.run.trace,
    }


def _steepest(
    runs: Sequence[MeasuredRun],
    divided: Sequence[Sequence[AdviceCost]],
    totals: Sequence[float],
    indices: Sequence[int],
) -> dict[str, Any] | None:
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
    return {
        "before": before,
        "after": after,
        "high": totals[before],
        "low": totals[after],
        "family": family.id,
        "metric": most.metric,
        "name": family.metrics[most.metric].name,
        "values": [earlier[most.metric].value, most.value],
    }


def _verdict(total: float, name: str | None, what: str, *, judged: bool) -> str:
    where = f"is lowest in {name}: {100 * total:.1f} %" if name else f"is {100 * total:.1f} %"
    if not judged:
        return f"{what} {where}."
    side = f"{'below' if total < POP else 'above'} the {percent(POP)} that POP considers good"
    return f"{what} {where}, {side}."


# From the facts of documents to the sentences that are shown.


class Verdict(NamedTuple):
    """What a reader in a hurry has to know: sentences, in the order in which they are shown."""

    doubts: tuple[str, ...] = ()  # First: what they are about is neither judged nor advised on
    statements: tuple[str, ...] = ()  # How the runs did, what bounds them
    causes: tuple[str, ...] = ()  # The losses, numbered, with what to do about them
    steps: tuple[str, ...] = ()  # What else would help


def verdict(
    metrics: Sequence[Mapping[str, Any]], sensitivities: Sequence[Mapping[str, Any]] = ()
) -> Verdict:
    """The verdict on runs: from documents with efficiencies, and with what runtimes depend on.

    What is known of the network of a run decides all sentences on it. Raises nothing: a document
    that says nothing adds nothing.
    """
    costs = {one["trace"]: network_costs(one) for one in sensitivities if one["runtime"]}
    doubts, statements, causes, steps = [list[str]() for _ in Verdict._fields]
    doubtful: set[str] = set()
    for document in metrics:
        advice = document["advice"]
        if advice["doubts"]:
            doubts += advice["doubts"]
            doubtful |= {run["trace"] for run in document["runs"]}
        statements.append(advice["verdict"])
        if advice["steepest_fall"]:
            statements.append(fall_sentence(advice["steepest_fall"]))
        causes += _causes(advice["causes"], costs)
    for one in sensitivities:
        if one.get("doubts"):
            doubtful.add(one["trace"])
            doubts += [text for text in one["doubts"] if text not in doubts]
    for one in sensitivities:
        if one["trace"] not in doubtful and one["trace"] in costs:
            of = f"{PurePath(one['trace']).name}: " if len(sensitivities) > 1 else ""
            statements.append(of + _sentence(network_sentence(one)))
            if len(one["regions"]) > 1 and not any(map(is_too_little, one.get("caveats", ()))):
                steps.append(of + _sentence(region_sentence(one)))
    return Verdict(tuple(doubts), tuple(statements), tuple(causes), tuple(steps))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _causes(
    causes: Sequence[Mapping[str, Any]], costs: Mapping[str, NetworkCosts]
) -> Iterator[str]:
    """The losses, numbered; the first explains what their costs are shares of."""
    for number, cause in enumerate(causes, start=1):
        unit, explained = "the core time", " (threads x runtime)"
        if cause["family"] in _OF_DEVICES:
            unit, explained = _OF_DEVICES[cause["family"]]
        remedy = cause["remedy"]
        if cause.get("network"):
            known = costs.get(cause["trace"]) or NetworkCosts(**cause["network"])
            remedy = network_remedy(known)
        head = (
            f"{number}. {cause['name']} {_size(cause['family'], cause['value'])} costs "
            f"{100 * cause['cost']:.1f} % of {unit}{explained if number == 1 else ''}."
        )
        yield " ".join(part for part in (head, cause["why"], remedy) if part)


def fall_sentence(fall: Mapping[str, Any]) -> str:
    """The steepest fall and the efficiency that falls with it."""
    high, low = (_size(fall["family"], value) for value in fall["values"])
    return (
        f"Global efficiency falls most from {fall['before']} to {fall['after']}: "
        f"{100 * fall['high']:.1f} to {100 * fall['low']:.1f} %, mostly {fall['name'].lower()} "
        f"({high} to {low})."
    )


def _size(family: str, value: float) -> str:
    return f"{value:.3f}" if family == SCALING else f"{100 * value:.1f} %"


def network_costs(sensitivity: Mapping[str, Any]) -> NetworkCosts:
    """What the network of a sensitivity costs the run."""
    runtime, parts = sensitivity["runtime"], sensitivity["shares"]
    latency, bandwidth = (parts[name] / runtime for name in ("latency", "bandwidth"))
    network = sensitivity["network"]
    most = network["bandwidth"]
    known = format_bandwidth(math.inf if most is None else most)
    name = f"{network['name']} ({format_time(network['latency'], trim=True)}, {known})"
    return NetworkCosts(name, latency, bandwidth)


def network_sentence(sensitivity: Mapping[str, Any]) -> str:
    """What of the network bounds a run, or that nothing does."""
    if not sensitivity["operations"]:
        return "nothing to gain from a network: the run does not communicate"
    costs = network_costs(sensitivity)
    parts = {"latency": costs.latency, "bandwidth": costs.bandwidth}
    large, small = sorted(parts, key=parts.__getitem__, reverse=True)
    told = f"{_share(parts[large])} of the runtime is {large}, {_share(parts[small])} {small}"
    if costs.bound:
        return f"bound by {costs.bound}: {told}"
    if not parts[large]:
        return "neither latency nor bandwidth costs anything"
    return f"not bound by the network: {told}"


def region_sentence(sensitivity: Mapping[str, Any]) -> str:
    """Which region pays, and which one does not though it takes long."""
    runtime, regions = sensitivity["runtime"], sensitivity["regions"]
    if not regions:
        return "nothing is computed, so that no faster region can help"
    best = max(regions, key=lambda region: region_gain(region, runtime))
    gain = region_gain(best, runtime)
    if gain < SMALL:
        text = "no region pays: 10 % less time in any of them saves less than 0.1 % of the runtime"
    else:
        what = "computing" if best["kind"] == "phase" else "in"
        text = f"10 % less time {what} {best['name']} saves {100 * gain:.1f} % of the runtime"
    return "; ".join(filter(None, [text, hidden_region_sentence(sensitivity)]))


def hidden_region_sentence(sensitivity: Mapping[str, Any]) -> str:
    """Which region does not pay though it takes long; empty for none."""
    runtime, regions = sensitivity["runtime"], sensitivity["regions"]
    best = max(regions, key=lambda region: region_gain(region, runtime), default=None)
    hidden = [region for region in regions if region is not best and hides(region, runtime)]
    if not hidden:
        return ""
    region = max(hidden, key=lambda region: float(region["share"]))
    saved = region_gain(region, runtime)
    pays = "nothing" if saved < SMALL else f"only {100 * saved:.1f} %"
    computing = "computing " if region["kind"] == "phase" else ""
    return (
        f"{computing}{region['name']} has {100 * region['share']:.1f} % of the time and pays "
        f"{pays}: it hides behind waiting"
    )


def region_gain(region: Mapping[str, Any], runtime: float, faster: float = 0.1) -> float:
    """What is gained of the runtime if a region takes less time on all ranks."""
    after = next(one["runtime"] for one in region["gain"] if one["faster"] == faster)
    return 1 - float(after) / runtime


def hides(region: Mapping[str, Any], runtime: float) -> bool:
    """Whether a region has much time, little of which a faster one would gain."""
    share = float(region["share"])
    return share >= _LARGE and region_gain(region, runtime) < _HIDES * 0.1 * share


def _share(fraction: float) -> str:
    value = 100 * fraction
    return f"{value:.1f} %" if value >= 0.05 or value == 0 else "below 0.1 %"
