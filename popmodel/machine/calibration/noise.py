"""How quiet the machine was, and how far each section is to be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.machine.calibration.measured import Measured
from popmodel.machine.calibration.statistics import p10
from popmodel.machine.samples import Launch, Result

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "core": ("clock", "fma", "loads", "stores", "loop", "smt"),
    "memory": ("triad", "load", "copy", "chase", "line_transfer", "false_sharing"),
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
_STEAL = 0.02  # of the time: a hypervisor gives the processor to another machine
_SPREAD = 0.15  # between launches, median over what was measured
_INTERRUPTED = 200.0  # involuntary switches per second


def calibrate(measured: Measured) -> dict[str, Any]:
    """Give the section ``noise`` of a profile: plain numbers.

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


def quality(measured: Measured, remarks: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Give the section ``quality``: by section, how it was measured and what makes it doubtful.

    Parameters
    ----------
    measured : Measured
        Results.
    remarks : mapping of str to sequence of str
        What else is to be said, by section.
    """
    found: dict[str, Any] = {}
    for section, jobs in SECTIONS.items():
        results = [result for job in jobs for result in measured.results(job)]
        if not results:
            continue
        why = list(_disturbances(results))
        if odd := measured.left_out(jobs):
            why.append(_named(odd))
        entry: dict[str, Any] = {
            "launches": _launches(measured.launches, jobs),
            "jobs": len({result.key for result in results}),
            "converged": round(float(np.mean([result.converged for result in results])), 3),
            "noisy": bool(why),
        }
        if entry["launches"] < 2:
            why.append("one launch: the spread between launches is unknown")
        why.extend(remarks.get(section, ()))
        if why:
            entry["why"] = why
        found[section] = entry
    return found


def _named(odd: Sequence[Result]) -> str:
    """What was left out, by the jobs with most of it."""
    counts = Counter(
        " ".join([result.job, *(f"{key}={value}" for key, value in sorted(result.params.items()))])
        for result in odd
    )
    shown = [name for name, _ in counts.most_common(_SHOWN)]
    more = f" and {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else ""
    readings = "reading is" if len(odd) == 1 else "readings are"
    return (
        f"{len(odd)} {readings} out of proportion to those of the other launches and not used: "
        + ", ".join(shown)
        + more
    )


def _launches(launches: Sequence[Launch], jobs: tuple[str, ...]) -> int:
    """Most launches behind any of the jobs: those that failed tell nothing."""
    return sum(
        any(result.job in jobs and result.absent is None for result in launch.results)
        for launch in launches
    )


def _disturbances(results: Sequence[Result]) -> Iterable[str]:
    wall = sum(float(result.facts.get("wall", 0.0)) for result in results)
    foreign = [
        (float(result.facts["foreign"]), float(result.facts.get("wall", 0.0)))
        for result in results
        if result.facts.get("foreign") is not None
    ]
    weight = sum(seconds for _, seconds in foreign)
    if weight > 0:
        share = sum(value * seconds for value, seconds in foreign) / weight
        if share > _FOREIGN:
            yield f"other programs used {100 * share:.0f} % of the processors meanwhile"
    if wall > 0:
        steal = sum(float(result.facts.get("steal", 0.0)) for result in results) / wall
        if steal > _STEAL:
            yield f"the hypervisor took the processor away for {100 * steal:.0f} % of the time"
        switches = sum(float(result.facts.get("involuntary", 0)) for result in results) / wall
        if switches > _INTERRUPTED:
            yield f"interrupted {switches:.0f} times per second by other processes"
    spreads = _spreads(results)
    if spreads.size >= 3 and float(np.median(spreads)) > _SPREAD:
        yield f"launches differ by {100 * float(np.median(spreads)):.0f} % (median)"


def _spreads(results: Sequence[Result]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Relative spread between the launches of every job that was measured more than once."""
    by_key: dict[Any, list[float]] = {}
    for result in results:
        by_key.setdefault(result.key, []).append(p10(result.seconds))
    several = [np.array(values) for values in by_key.values() if len(values) > 1]
    return np.array([values.std(ddof=1) / values.mean() for values in several])
