"""Losses between processes: uneven work, waiting, and what the network takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from popmodel.efficiency.advice.doubts import crowd_doubt, network_doubt
from popmodel.efficiency.advice.remark import Remark, RemarkLoss, percent
from popmodel.efficiency.evidence import USUAL
from popmodel.simulator.mpi_calls import collective_of
from popmodel.units import count, format_bandwidth, format_time

if TYPE_CHECKING:
    from popmodel.efficiency.call_sites import CallSite
    from popmodel.efficiency.observables import Observables

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
    return Remark(why, _network(loss))


def _network(loss: RemarkLoss) -> str:
    """What to do about latency or bandwidth, whichever costs more on a usual network."""
    if crowd_doubt(loss.run) or network_doubt(loss.run):
        return ""  # that comes first
    networks, ideal = loss.run.evidence.networks, loss.run.observables.ideal_runtime
    if networks is None or ideal is None:
        return loss.advice
    if networks.at_once is not None and networks.at_once < _WORTH * networks.bandwidth:
        return (
            "Send and receive at once (MPI_Sendrecv, or MPI_Isend): at "
            f"{format_bandwidth(USUAL.bandwidth)} the replay then takes "
            f"{format_time(networks.at_once, digits=3)} instead of "
            f"{format_time(networks.bandwidth, digits=3)}."
        )
    latency, volume = networks.latency - ideal, networks.bandwidth - ideal
    if latency > _CLEARLY * volume:
        return (
            "Latency costs more than volume: aggregate small messages, use fewer collectives, or "
            "fewer processes with more threads."
        )
    if volume > _CLEARLY * latency:
        return (
            "Volume costs more than latency: send less, overlap communication with computation, "
            "keep neighbours on one node."
        )
    return (
        "Number and volume of messages cost about the same: aggregate messages, overlap them with "
        "computation, keep neighbours on one node."
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
    told = Remark(f"{text}, {_waits(site)}.", "")
    other = waiting(loss) if 2 * _waited(site) > site.time else None
    return told._replace(remedy=other.remedy if other else _network(loss))


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
