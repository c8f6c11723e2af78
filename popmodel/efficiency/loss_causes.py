"""Why a run loses time and what to do, by the cause that a metric names; signs of disturbance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.units import count, format_bandwidth, format_time, plural
from popmodel.base.values import NamedTuple, dataclass
from popmodel.efficiency.evidence import SLOW, USUAL
from popmodel.simulator.mpi_calls import collective_of
from popmodel.traces.caveats import is_contradiction

if TYPE_CHECKING:
    from popmodel.efficiency.evaluation import AdviceCost
    from popmodel.efficiency.evidence import CallSite, SerialCode
    from popmodel.efficiency.measure import MeasuredRun
    from popmodel.efficiency.observables import Observables, RegionObservables
    from popmodel.network.network import Network


# What can be said about one loss of one run, and how numbers are written in it.


BOUND = 0.1
"""Share of the runtime from which on it is called bound by something."""


class NetworkCosts(NamedTuple):
    """What a network would cost a run, as shares of its runtime."""

    network: str  # In words
    latency: float
    bandwidth: float

    @property
    def bound(self) -> str:
        """What bounds the run: ``latency``, ``bandwidth``, both in words, or empty for neither."""
        large, small = sorted((self.latency, self.bandwidth), reverse=True)
        if large < BOUND:
            return ""
        if large <= _CLEARLY * small:
            return "latency and bandwidth"
        return "latency" if self.latency > self.bandwidth else "bandwidth"


class Remark(NamedTuple):
    """Why time is lost, and what to do; whole sentences, empty where nothing is known."""

    why: str
    remedy: str
    network: NetworkCosts | None = None  # What the remedy rests on, where it is about a network


@dataclass(frozen=True)
class RemarkLoss:
    """One loss with all that may explain it."""

    run: MeasuredRun  # The run that loses
    cost: AdviceCost  # By which metric, and how much
    # The run that it is compared with; None where it is the reference itself.
    reference: MeasuredRun | None = None
    reference_name: str = ""  # Its short name

    @property
    def advice(self) -> str:
        """What the family says about the metric whatever the run."""
        return self.cost.evaluation.family.metrics[self.cost.metric].advice


def percent(share: float) -> str:
    """A share as people write it: ``61 %``; with a decimal below 10 %."""
    value = 100 * share
    return f"{value:.1f} %" if abs(value) < 9.95 else f"{value:.0f} %"


# Signs that a run was disturbed: losses that neither program nor network explain.


_BEYOND = 1.5
"""How many times longer than on a slow network a run has to take before it is not the network."""
_FORK = 5e-4
"""Seconds per instance of a region above what forking, joining and scheduling a team cost."""
_INSTANCES = 10  # fewer may hold the start of the threads


def doubts(run: MeasuredRun) -> list[str]:
    """Say what makes the efficiencies of a run doubtful, a sentence or two each."""
    wrong = [f"Doubtful: {text}." for text in run.caveats if is_contradiction(text)]
    # Records that are wrong and threads that share cores explain the other signs.
    return [*wrong, *crowd_doubt(run)] or [*network_doubt(run), *region_doubt(run)]


def crowd_doubt(run: MeasuredRun) -> list[str]:
    """Whether threads share cores with each other or with other programs; no sentence or one."""
    crowd = run.evidence.crowd
    if crowd is None and run.evidence.delayed:
        return [
            "Doubtful: threads waited for CPUs, which counts as loss or as useful time. "
            "Trace again on otherwise idle nodes."
        ]
    if crowd is None:
        return []
    threads, cores = plural(crowd.sharing, "thread"), plural(crowd.cpus, "core")
    if crowd.sharing <= crowd.threads:
        return [
            f"Doubtful: the {threads} of a process share {cores}. Bind processes wider (Open MPI: "
            f"--map-by slot:PE={crowd.threads} or --bind-to none) and trace again first."
        ]
    return [
        f"Doubtful: {threads} share {cores}. Use fewer processes or threads per node, or bind them "
        "wider where cores are idle (Open MPI: --bind-to none), and trace again first."
    ]


def network_doubt(run: MeasuredRun) -> list[str]:
    """Whether MPI took longer than a slow network explains; no sentence or one."""
    networks, observed = run.evidence.networks, run.observables
    if networks is None:
        return []
    beside = sum(site.time for site in run.call_sites if site.waiting is None)
    network = SLOW[len(set(observed.node.tolist())) <= 1]
    beside /= len(observed.threads)
    return slow_network_doubt(network, networks.slow, observed.runtime, beside)


def slow_network_doubt(
    network: Network, replayed: float, measured: float, beside: float = 0.0
) -> list[str]:
    """Whether a run took longer than a slow network explains, `beside` (s) left out."""
    if measured - beside <= _BEYOND * replayed:
        return []
    return [
        f"Doubtful: even on a slow network ({format_time(network.latency, trim=True)}, "
        f"{format_bandwidth(network.bandwidth)}) the replay takes only "
        f"{format_time(replayed, digits=3)} of the {format_time(measured, digits=3)}, "
        "so the network does not explain the time in MPI. Check that each process had its own "
        "core; if not, trace again."
    ]


def region_doubt(run: MeasuredRun) -> list[str]:
    """Whether parallel regions cost more than forking and joining can; no sentence or one."""
    for region in run.observables.regions[:1]:
        lost, instances = overhead(region), max(region.count, 1)
        threads = _thread_time(region) / region.wall if region.wall else 1.0
        each = lost / instances / threads
        if instances >= _INSTANCES and each > _FORK and lost > 0.5 * region.cost:
            return [
                f"Doubtful: in each instance of {region.name} even the busiest thread does nothing "
                f"useful for {format_time(each, digits=3)}, far more than fork and join cost. "
                "Check that each thread had its own core; if not, trace again."
            ]
    return []


def overhead(region: RegionObservables) -> float:
    """Thread-seconds of a region that neither imbalance nor locks, barriers or MPI explain."""
    explained = region.imbalance + region.locks + region.barriers + region.mpi
    return max(region.cost - explained, 0.0)


def _thread_time(region: RegionObservables) -> float:
    lost = 1 - region.parallel_efficiency
    return region.cost / lost if lost > 0 else region.wall


# Losses between processes: uneven work, waiting, and what the network takes.


_TABLE = "popmodel metrics --by process lists all ranks."
_HARDLY = 0.05
_WORTH = 0.9  # of the runtime: what a remedy has to come below
_CLEARLY = 2.0  # by which latency has to cost more than bandwidth, or less, to be the one to blame


def imbalance(loss: RemarkLoss) -> Remark:
    """Name the busiest and the idlest rank, and whether its work or its speed sets it apart."""
    run = loss.run.observables
    if len(run.threads) < 2:
        return Remark("", loss.advice)
    threaded = bool((run.threads > 1).any())
    times = run.outside_mpi if threaded else run.useful[run.masters]
    most, least = int(times.argmax()), int(times.argmin())
    above = float(times[most] / times.mean())
    what = "time outside MPI" if threaded else "useful time"
    why = (
        f"Rank {most} has the most {what}, {format_time(float(times[most]), digits=3)} "
        f"({percent(above - 1)} above the mean), rank {least} the least, "
        f"{format_time(float(times[least]), digits=3)}."
    )
    found = _instructions(run, most, above) or (_where(run, most) if threaded else None)
    if found is None:
        return Remark(why, f"{_UNKNOWN} {_TABLE}")
    return Remark(f"{why} {found.why}", f"{found.remedy} {_TABLE}")


_UNKNOWN = (
    "Is its work or its speed different? Balance uneven work; for uneven speed look at placement "
    "and memory. Hardware counters tell them apart."
)
_SLOW = "Look for memory contention, NUMA placement and slower nodes."


def _instructions(run: Observables, rank: int, above: float) -> Remark | None:
    """Tell uneven work from uneven speed by the instructions of the busiest rank."""
    if run.instructions is None or "instructions" in run.absent or above <= 1:
        return None
    counts = np.add.reduceat(run.instructions, run.masters)
    more = float(counts[rank] / counts.mean())
    if more > 0 and math.log(more) >= 0.5 * math.log(above):
        return Remark(
            f"It also executes {percent(more - 1)} more instructions than the mean: the work is "
            "uneven.",
            "Change the domain decomposition or balance the load dynamically.",
        )
    than = f"{percent(abs(more - 1))} {'more' if more > 1 else 'fewer'} instructions than the mean"
    return Remark(f"It executes {than}, so it runs more slowly.", _SLOW)


def _where(run: Observables, rank: int) -> Remark:
    """Say whether the busiest rank has more serial code, or longer parallel regions."""
    serial = float(run.serial_useful[rank] - run.serial_useful.mean())
    regions = float(run.in_openmp[rank] - run.in_openmp.mean())
    if regions > serial:
        return Remark(
            "The excess is in parallel regions.",
            "Check the placement of its threads first, then move work between processes.",
        )
    return Remark(
        "The excess is in serial code.",
        "Find what only this rank does and distribute it.",
    )


def waiting(loss: RemarkLoss) -> Remark:
    """Name the call in which ranks wait longest for each other."""
    sites = [site for site in loss.run.call_sites if site.waiting]
    if not sites:
        return Remark("", loss.advice)
    site = max(sites, key=_waited)
    why = f"{site.name} takes {percent(_in_mpi(loss, site))} of the time in MPI, {_waits(site)}."
    if collective_of(site.call) is not None:
        return Remark(
            why,
            "Ranks arrive there at different times: check the load balance step by step, merge "
            "collectives, or make them non-blocking.",
        )
    return Remark(
        why,
        "Its partners are late: find them in a timeline, send earlier, post receives early, "
        "overlap communication with computation.",
    )


def transfer(loss: RemarkLoss) -> Remark:
    """Name the call that takes longest without waiting, and what of the network it needs."""
    sites = [site for site in loss.run.call_sites if site.time > 0]
    if not sites:
        return Remark("", loss.advice)
    site = max(sites, key=lambda one: one.time - _waited(one))
    busy = site.time - _waited(site)
    why = (
        f"{site.name} takes {percent(_in_mpi(loss, site))} of the time in MPI, "
        + (f"{_waits(site)}; " if site.waiting is not None else "")
        + f"each of {count(site.count)} calls takes {format_time(busy / site.count, digits=3)}"
        + (" beyond waiting." if _waited(site) else ".")
    )
    if site.call.startswith("MPI_File_"):
        return Remark(why, "This is I/O: use collective calls, larger blocks and fewer writers.")
    if site.waiting is None:
        return Remark(why, "The replay does not model this call: waiting in it counts as transfer.")
    return _network(why, loss)


def _network(why: str, loss: RemarkLoss) -> Remark:
    """What to do about messages, by what they cost on a usual network."""
    if crowd_doubt(loss.run) or network_doubt(loss.run):
        return Remark(why, "")  # that comes first
    networks, observed = loss.run.evidence.networks, loss.run.observables
    if networks is None or observed.ideal_runtime is None:
        return Remark(why, loss.advice)
    if networks.at_once is not None and networks.at_once < _WORTH * networks.bandwidth:
        remedy = (
            "Send and receive at once (MPI_Sendrecv, or MPI_Isend): at "
            f"{format_bandwidth(USUAL.bandwidth)} the replay then takes "
            f"{format_time(networks.at_once, digits=3)} instead of "
            f"{format_time(networks.bandwidth, digits=3)}."
        )
        return Remark(why, remedy)
    latency, bandwidth = (
        max(runtime - observed.ideal_runtime, 0.0) / observed.runtime
        for runtime in (networks.latency, networks.bandwidth)
    )
    name = f"{format_time(USUAL.latency, trim=True)} and {format_bandwidth(USUAL.bandwidth)}"
    costs = NetworkCosts(f"a network of {name}", latency, bandwidth)
    return Remark(why, network_remedy(costs), costs)


def network_remedy(costs: NetworkCosts) -> str:
    """What to do about messages, or that they are not what to work on."""
    latency, bandwidth = percent(costs.latency), percent(costs.bandwidth)
    told = {
        "latency": f"Latency costs {latency} of the runtime on {costs.network}, volume "
        f"{bandwidth}: aggregate small messages, use fewer collectives, or fewer processes with "
        "more threads.",
        "bandwidth": f"Volume costs {bandwidth} of the runtime on {costs.network}, latency "
        f"{latency}: send less, overlap communication with computation, keep neighbours on one "
        "node.",
        "latency and bandwidth": f"Latency costs {latency} of the runtime on {costs.network}, "
        f"volume {bandwidth}: aggregate messages, overlap them with computation, keep neighbours "
        "on one node.",
    }
    return told.get(
        costs.bound,
        f"Neither bounds the run on {costs.network}: latency would cost {latency} of the runtime, "
        f"volume {bandwidth}. Check which network was used, and where the processes ran.",
    )


def communication(loss: RemarkLoss) -> Remark:
    """Name the costliest call where waiting and transfer cannot be, or are not, told apart."""
    run = loss.run
    if not run.observables.has_mpi:
        return Remark(
            "There is no MPI here: masters spend this time neither in useful code nor in parallel "
            "regions.",
            "Look for I/O and system calls outside parallel regions.",
        )
    lacking = run.observables.absent.get("ideal_runtime")
    unknown = f"Waiting and transfer cannot be told apart: {lacking}." if lacking else ""
    if not run.call_sites:
        return Remark(unknown, loss.advice)
    site = max(run.call_sites, key=lambda one: one.time)
    text = f"{site.name} takes {percent(_in_mpi(loss, site))} of the time in MPI"
    if site.waiting is None:
        return Remark(f"{text}. {unknown}".strip(), loss.advice)
    why = f"{text}, {_waits(site)}."
    if 2 * _waited(site) > site.time:
        return waiting(loss)._replace(why=why)
    return _network(why, loss)


def _waited(site: CallSite) -> float:
    """Time of a call site in which it waits; on the ideal network it can be longer than it was."""
    return min(site.waiting or 0.0, site.time)


def _waits(site: CallSite) -> str:
    share = _waited(site) / site.time
    if share < _HARDLY:
        return "hardly any of it waiting for other ranks"
    return f"{percent(share)} of it waiting for other ranks"


def _in_mpi(loss: RemarkLoss, site: CallSite) -> float:
    """What a call site takes of all time in MPI."""
    return site.time / sum(one.time for one in loss.run.call_sites)


# Losses between threads: serial code and parallel regions.


_SHORT = 1e-3  # s per instance of a region


# What of a parallel region costs time, and what to do.
_LOSSES = {
    "imbalance": (
        "imbalance between its threads",
        "Use a dynamic or guided schedule, smaller chunks or collapsed loops. If all iterations "
        "cost the same, check thread placement and first touch.",
    ),
    "locks": (
        "locks and critical sections",
        "Replace them by reductions or atomics, or do less inside them.",
    ),
    "barriers": (
        "barriers",
        "Remove barriers between independent loops (nowait) and balance the work between the "
        "others.",
    ),
    "mpi": (
        "calls of MPI inside it",
        "Let other threads work while one communicates (tasks), or communicate outside.",
    ),
}


def regions(loss: RemarkLoss) -> Remark:
    """Name the region that costs most, and what kind of loss it is."""
    regions = loss.run.observables.regions
    total = sum(region.cost for region in regions)
    if not total:
        return Remark("", loss.advice)
    region = max(regions, key=lambda region: region.cost)
    costs = {kind: getattr(region, kind) for kind in _LOSSES} | {"overhead": overhead(region)}
    kind = max(costs, key=costs.__getitem__)
    what, remedy = _overhead(loss, region) if kind == "overhead" else _LOSSES[kind]
    if kind == "imbalance":
        what += f" (load balance {percent(region.load_balance)})"
    why = (
        f"{region.name} causes {percent(region.cost / total)} of the loss in parallel regions, "
        f"{percent(min(costs[kind] / region.cost, 1.0))} of it by {what}."
    )
    return Remark(why, remedy)


def _overhead(loss: RemarkLoss, region: RegionObservables) -> tuple[str, str]:
    wall = region.wall / max(region.count, 1)
    what = f"scheduling, fork and join; an instance takes {format_time(wall, digits=3)}"
    if crowd_doubt(loss.run) or region_doubt(loss.run):
        return what, ""
    if wall < _SHORT:
        return what, "Such short regions do not pay off: merge them, or parallelise an outer loop."
    return what, "Use larger chunks with a dynamic schedule, and fewer constructs inside."


def serial_code(loss: RemarkLoss) -> Remark:
    """Say how much serial code there is, and between which regions most of it lies."""
    run, longest = loss.run.observables, loss.run.evidence.serial[:1]
    total = float(run.serial_useful.sum())
    if not total:
        return Remark("", loss.advice)
    share = float(run.threads @ run.serial_useful) / (float(run.threads.sum()) * run.runtime)
    why = f"Serial code takes {percent(share)} of the runtime"
    why += "".join(f", {percent(one.time / total)} of it {_between(one)}" for one in longest)
    fewer = ", or use more processes with fewer threads each" if run.has_mpi else ""
    return Remark(f"{why}; other threads idle meanwhile.", f"Parallelise this code{fewer}.")


def _between(one: SerialCode) -> str:
    if not one.after:
        return f"before the first region, {one.before}"
    if not one.before:
        return f"after the last region, {one.after}"
    if one.after == one.before:
        return f"between instances of {one.after}"
    return f"between {one.after} and {one.before}"


def team_imbalance(loss: RemarkLoss) -> Remark:
    """Blame serial code or regions for threads that do less than their masters."""
    run = loss.run.observables
    serial = float((run.threads - 1) @ run.serial_useful)
    return serial_code(loss) if serial > sum(one.cost for one in run.regions) else regions(loss)


def outside_regions(loss: RemarkLoss) -> Remark:
    """Blame serial code, or MPI by the master alone, for threads that idle outside regions."""
    run = loss.run.observables
    in_mpi = float(np.maximum(run.threads - 1, 0) @ run.serial_mpi)
    if in_mpi <= float((run.threads - 1) @ run.serial_useful):
        return serial_code(loss)
    said = communication(loss)
    why = f"Threads idle mostly while their master is in MPI. {said.why}".strip()
    return said._replace(why=why)


# Losses of the computation itself against the reference run.


def computation(loss: RemarkLoss) -> Remark:
    """Say how useful time grew where no counters tell why."""
    if loss.reference is None:
        return Remark("", loss.advice)
    useful, before = (float(run.observables.useful.sum()) for run in (loss.run, loss.reference))
    lacking = dict.fromkeys(
        reason
        for name, reason in loss.cost.evaluation.absent.items()
        if name in loss.cost.evaluation.family.parts(loss.cost.metric)
        for reason in reason.split("; ")
    )
    return Remark(
        f"The useful time of all threads is {format_time(useful)} against {format_time(before)} in "
        f"{loss.reference_name}" + (f" ({'; '.join(lacking)})." if lacking else "."),
        "Trace with counters (popmodel trace --counters; Extrae: PAPI_TOT_INS, PAPI_TOT_CYC): "
        "they show whether the run executes more instructions, at a lower IPC or at a lower clock.",
    )


def instructions(loss: RemarkLoss) -> Remark:
    """Say how many more instructions are executed."""
    return Remark(
        f"The run executes {percent(1 / loss.cost.value - 1)} more instructions than "
        f"{_reference(loss)} at equal work.",
        loss.advice,
    )


def ipc(loss: RemarkLoss) -> Remark:
    """Say what the instructions per cycle were and are."""
    return _compare(loss, "instructions", "cycles", 1.0, "IPC", "")


def frequency(loss: RemarkLoss) -> Remark:
    """Say what the clock was and is."""
    return _compare(loss, "cycles", "useful", 1e-9, "The clock", " GHz")


def _compare(
    loss: RemarkLoss, above: str, below: str, factor: float, what: str, unit: str
) -> Remark:
    if loss.reference is None:
        return Remark("", loss.advice)
    now, before = (
        factor * _sum(run, above) / _sum(run, below) for run in (loss.run, loss.reference)
    )
    return Remark(
        f"{what} is {now:.3g}{unit} against {before:.3g}{unit} in {_reference(loss)}.",
        loss.advice,
    )


def _sum(run: MeasuredRun, name: str) -> float:
    return float(getattr(run.observables, name).sum())


def _reference(loss: RemarkLoss) -> str:
    return loss.reference_name or "the reference run"
