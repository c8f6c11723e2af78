"""From the samples of several launches to the document of a profile, and how far to trust it."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.machines import profile_schema
from popmodel.machines.bench.estimate import (
    core_estimates,
    exchange_estimates,
    memory_estimates,
    message_estimates,
    openmp_estimates,
)
from popmodel.machines.bench.estimate.launch_intervals import CalibrationError, p10
from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.machines.bench.sample_files import Launch, SampleResult
from popmodel.machines.host import hardware
from popmodel.machines.host.hardware import AFFINITY, parse_cpu_list


def calibrate(launches: Sequence[Launch], name: str | None = None) -> dict[str, Any]:
    """Make the document of a machine profile, schema ``popmodel/machine/1``.

    What was not measured is not in it. What was tried and cannot be told is in ``absent``, with the
    reason.
    """
    measured = MeasuredResults(launches)
    if not any(result.absent is None for result in measured):
        raise CalibrationError(
            "these samples contain no results", "measure again: popmodel machine measure"
        )
    described = [launch for launch in launches if launch.header.get("files")]
    if not described:
        raise CalibrationError(
            "these samples do not describe the hardware: none is from popmodel-node",
            "measure a part of the node as well, for example popmodel machine measure --only core",
        )
    files = described[-1].header["files"]
    machine = hardware.read(files)
    nodes = len({host for launch in launches for host in launch.hosts})
    topology = machine.topology(nodes)
    document: dict[str, Any] = {
        "schema": profile_schema.KIND.schema,
        "name": name or str(described[-1].header.get("host", "machine")),
        "host": machine.host() | _software(launches),
        "topology": topology,
    }
    absent: dict[str, str] = dict(machine.absent)
    remarks: dict[str, list[str]] = {}
    core = core_estimates.calibrate(measured, absent)
    overlap, fit, remarks["core"] = core_estimates.overlap(measured, topology, core, absent)
    document["core"] = core | overlap
    document["memory"], remarks["memory"] = memory_estimates.calibrate(measured, topology, absent)
    document["openmp"], remarks["openmp"] = openmp_estimates.calibrate(measured, topology, absent)
    net = message_estimates.calibrate(measured, absent)
    remarks["net"] = message_estimates.misfits(net) + message_estimates.nothing_left(net)
    document["net"] = net | exchange_estimates.threads(measured, absent)
    document["coll"] = exchange_estimates.collectives(measured, net, absent)
    remarks["coll"] = exchange_estimates.nothing_left(document["coll"])
    document["noise"] = noise(measured)
    document["absent"] = absent
    document["quality"] = quality(measured, remarks)
    if fit:
        document["quality"]["core"]["overlap"] = fit
    if line := machine.line:
        document["memory"] |= {"line": line} if document["memory"] else {}
    return {key: value for key, value in document.items() if value not in ({}, None)}


def _software(launches: Sequence[Launch]) -> dict[str, Any]:
    """What ran, when, under which load: informative."""
    first = min(launches, key=lambda launch: float(launch.header.get("started", 0.0)))
    mpi = next((launch.header["mpi"] for launch in launches if "mpi" in launch.header), None)
    openmp = next(
        (launch.header["openmp"] for launch in launches if "openmp" in launch.header), None
    )
    facts: dict[str, Any] = {
        "nodes": sorted({host for launch in launches for host in launch.hosts}),
        "kernel": first.header.get("kernel"),
        "compiler": first.header.get("compiler"),
        "mpi": None if mpi is None else mpi.get("library"),
        "openmp": None
        if openmp is None
        else f"{openmp.get('runtime', 'unknown runtime')} (OpenMP {openmp.get('version', '?')})",
        "measured": moment_of(first.header["started"]) if "started" in first.header else None,
        "load": max(float(launch.header.get("load") or 0.0) for launch in launches),
    }
    return {key: value for key, value in facts.items() if value is not None}


def moment_of(seconds: float) -> str:
    """A time since 1970 as profiles write it."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


# How quiet the machine was, and how far each section is to be trusted.


SECTIONS: Mapping[str, tuple[str, ...]] = {
    "core": (
        *("clock", "fma", "loads", "stores", "loop", "instructions", "dependent"),
        *("in_flight", "row", "smt"),
        *("mixed", "issue"),
    ),
    "memory": (
        *("triad", "load", "update", "narrow_update", "copy", "chase"),
        *("line_transfer", "line_takeover"),
        *("false_sharing", "remote_triad", "remote_chase"),
    ),
    "openmp": ("construct",),
    "net": (
        *("ping_pong", "send_overhead", "receive_overhead", "train", "window", "late_receiver"),
        *("overlap", "threaded", "reduce_local"),
    ),
    "coll": ("collective",),
    "noise": ("quantum",),
}
"""Jobs of each section of a profile."""

_SHOWN = 3  # jobs that are named
_FOREIGN = 0.05  # of the processors: more is somebody else's work
_STEAL = 0.02  # of the processors' time: a hypervisor gives it to another machine
_SHARED = 0.05  # of the batches
_SPREAD = 0.15  # between launches, median over what was measured
_FILLING = ("loads", "stores", "loop", "instructions")
"""Jobs that fill a core: they are slower while another hardware thread of it is busy."""
_INTERRUPTED = 200.0  # involuntary switches per second and processor


def noise(measured: MeasuredResults) -> dict[str, Any]:
    """Return the section ``noise`` of a profile: plain numbers.

    ``fwq`` is the share of time that a fixed work quantum loses to detours, ``run_cv`` the standard
    deviation between launches over the mean, and ``drift`` the change over the whole session,
    relative to its start.
    """
    results = sorted(measured.results("quantum"), key=lambda result: result.facts.get("at", 0.0))
    if not results:
        return {}
    every = np.concatenate([result.seconds for result in results])
    medians = np.array([np.median(result.seconds) for result in results])
    section: dict[str, Any] = {"fwq": float(f"{every.mean() / every.min() - 1:.4g}")}
    if len(results) > 1:
        section["run_cv"] = float(f"{medians.std(ddof=1) / medians.mean():.4g}")
        at = np.array([float(result.facts.get("at", 0.0)) for result in results])
        if np.ptp(at) > 0:
            slope = np.polyfit(at - at[0], medians, 1)[0]
            section["drift"] = round(float(slope * np.ptp(at) / medians[0]), 6)
    return section


def quality(measured: MeasuredResults, remarks: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the section ``quality``: by section, how it was measured and what makes it
    doubtful.
    """
    found: dict[str, Any] = {}
    for section, jobs in SECTIONS.items():
        results = [result for job in jobs for result in measured.results(job)]
        if not results:
            continue
        why = list(_disturbances(measured, results))
        if odd := measured.left_out(jobs):
            outliers = "outlier" if len(odd) == 1 else "outliers"
            why.append(
                f"{len(odd)} {outliers} compared with the other launches, not used: {_named(odd)}"
            )
        entry: dict[str, Any] = {
            "launches": _launches(measured, results),
            "jobs": len({result.key for result in results}),
            "converged": round(float(np.mean([result.converged for result in results])), 3),
            "noisy": bool(why),
        }
        if entry["launches"] < 2:
            why.append("only one launch: the spread between launches is unknown")
        # 0 where nobody looked
        alone = [one.alone for one in measured.beside(jobs) if one.alone is not None]
        if (share := 1 - float(np.mean(alone or 1.0))) > _SHARED:
            why.append(
                f"other work shared the cores in {100 * share:.0f} % of the batches, "
                "not used where there are others"
            )
        why.extend(remarks.get(section, ()))
        if why:
            entry["why"] = why
        found[section] = entry
    return found


def _named(odd: Sequence[SampleResult]) -> str:
    """Jobs of some results, those with most of them first."""
    counts = Counter(
        " ".join([result.job, *(f"{key}={value}" for key, value in sorted(result.params.items()))])
        for result in odd
    )
    shown = [name for name, _ in counts.most_common(_SHOWN)]
    more = f" and {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else ""
    return ", ".join(shown) + more


def _launches(measured: MeasuredResults, results: Sequence[SampleResult]) -> int:
    """Most launches behind any of the jobs.

    Short and long jobs have launches of their own, and so has every level of thread support.
    """
    behind: dict[Any, set[Any]] = {}
    for result in results:
        level = measured.headers[result.launch].get("mpi", {}).get("thread_level")
        behind.setdefault((result.key, level), set()).add(result.launch)
    return max(map(len, behind.values()))


def _disturbances(measured: MeasuredResults, results: Sequence[SampleResult]) -> Iterable[str]:
    share = _foreign(measured, results)
    if share > _FOREIGN:
        yield f"other programs used {100 * share:.0f} % of the CPU time"
    # these are sums over all processors that were watched
    watched = {launch: _watched(header) for launch, header in measured.headers.items()}
    time = [_wall(one) * watched[one.launch] for one in results]
    steal = _mean_rate(zip((_fact(one, "steal") for one in results), time, strict=True))
    if steal > _STEAL:
        yield f"the hypervisor took {100 * steal:.0f} % of the CPU time (steal)"
    switches = _mean_rate(zip((_fact(one, "involuntary") for one in results), time, strict=True))
    if switches > _INTERRUPTED:
        yield f"other processes interrupted each CPU {switches:.0f} times per second"
    if crowded := [result for result in results if result.alone == 0]:
        known = {result.key for result in results if result.alone is not None}
        count = len({result.key for result in crowded})
        yield (
            f"{count} of {len(known)} jobs never had their cores to themselves: {_named(crowded)}"
        )
    spreads = _spreads(results)
    if spreads.size >= 3 and float(np.median(spreads)) > _SPREAD:
        yield f"launches differ by {100 * float(np.median(spreads)):.0f} % (median)"
        return
    spreads = _spreads([one for one in results if one.job in _FILLING])
    if spreads.size and (typical := float(np.median(spreads))) > _SPREAD:
        yield (
            f"launches differ by {100 * typical:.0f} % (median) in what a core does per cycle, as "
            "where another hardware thread of it is busy at times"
        )


def _foreign(measured: MeasuredResults, results: Sequence[SampleResult]) -> float:
    """Share of the processors' time that others used, of whole launches if jobs are too short."""
    if all(math.isnan(_fact(one, "foreign")) for one in results):
        shares = [
            measured.foreign[launch]
            for launch in dict.fromkeys(one.launch for one in results)
            if launch in measured.foreign
        ]
        return float(np.mean(shares)) if shares else 0.0
    return _mean_rate((_fact(one, "foreign") * _wall(one), _wall(one)) for one in results)


def _fact(result: SampleResult, name: str) -> float:
    """Return what a line says of the machine; NaN where the system did not tell."""
    value = result.facts.get(name)
    return math.nan if value is None else float(value)


def _wall(result: SampleResult) -> float:
    return float(result.facts.get("wall") or 0.0)


def _mean_rate(each: Iterable[tuple[float, float]]) -> float:
    """Amount over time, of those whose amount is known; 0 if none is."""
    known = [(amount, time) for amount, time in each if not math.isnan(amount)]
    whole = sum(time for _, time in known)
    return sum(amount for amount, _ in known) / whole if whole > 0 else 0.0


def _watched(header: Mapping[str, Any]) -> int:
    """Count the processors over which a launch summed: those its processes on one node may use.

    Where the header does not tell, 1: a rate is then rather too high than unnoticed.
    """
    places = header.get("ranks_at") or []
    # the MPI program watches the node of its first rank
    lists = [place.get("cpus") for place in places if place.get("host") == places[0].get("host")]
    if not places:
        lists = [header.get("files", {}).get(AFFINITY)]
    return max(1, len({cpu for one in lists for cpu in parse_cpu_list(one or "")}))


def _spreads(results: Sequence[SampleResult]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Relative spread between the launches of every job that was measured more than once."""
    by_key: dict[Any, list[float]] = {}
    for result in results:
        by_key.setdefault(result.key, []).append(p10(result.seconds))
    several = [np.array(values) for values in by_key.values() if len(values) > 1]
    return np.array([values.std(ddof=1) / values.mean() for values in several])
