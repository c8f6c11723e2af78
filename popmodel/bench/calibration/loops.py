"""How far transfers hide behind arithmetic: a factor for each level, fitted to loops of both.

A loop is measured three times: with its arithmetic and its transfers (``t``), with its transfers
alone (``m``) and with its arithmetic alone, in the first-level cache (``a``). The factor is what
the model makes of them: ``t = (1 - omega) (a + m) + omega max(a, m)``, 0 where one comes after the
other, 1 where the longer one hides the shorter (the roofline). It shows best where both are of the
same length; where one is much shorter, their sum and the longer one hardly differ. It is
below 0 where arithmetic between its loads keeps a core from asking ahead, so that the transfers of
the loop take longer than alone.

Of a cache a small and a large set are measured: a core knows the addresses of the pages of a small
one, those of a large one it has to look up, which hides less. The small one is what a core has of a
cache that all of them use, so the value is of it; the interval holds both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.arrays import quantile
from popmodel.bench.calibration.intervals import LEVEL, p10
from popmodel.bench.calibration.measured import MeasuredResults
from popmodel.bench.samples import SampleResult
from popmodel.machine.parameters import LEAST_OVERLAP
from popmodel.units import plural
from popmodel.values import dataclass

Array = NDArray[np.float64]

_TOLD = 0.25
"""Shorter over longer part, from which on a loop tells the factor."""
_TOLD_BY_ISSUE = 0.1
"""The same where the arithmetic cannot be chosen, and what is read from near caches is short."""
_FEWEST = 5
"""Batches of a loop in a launch, fewer of which are chance."""
_NOTHING_TOLD = "no measured loop had enough batches, and arithmetic and transfers of like length"
_DIGITS = 4
_ROUGH = 0.1
"""Part of a loop's time that the form misses in the median, from which on it is remarked."""
_SLOW = 0.5
"""Part of the peak below which the arithmetic is not what it is meant to be."""
_LONG = 16
"""Multiply-adds of an element from which on a loop should run near the peak."""


@dataclass(frozen=True)
class LoopEstimate:
    """A loop that was measured in several launches."""

    level: str  # What its data comes from: a cache, such as ``L2``, or ``MEM``
    threads: int  # Cores that ran it at the same time
    each: int  # Bytes that one of them went over
    # Time of an operation as it is, and of its parts alone, s.
    seconds: Array
    transfer: Array
    arithmetic: Array
    samples: int  # Batches of the loop as it is, of all launches

    @property
    def shares(self) -> Array:
        """The factor in every launch, at most 1: what is beyond is the error of the times."""
        together = self.transfer + self.arithmetic
        shorter = np.minimum(self.transfer, self.arithmetic)
        shares: Array = np.clip((together - self.seconds) / shorter, LEAST_OVERLAP, 1.0)
        return shares

    def misfit(self, share: float) -> float:
        """Time by the form with a factor over the measured one, less 1; median of the launches."""
        longer = np.maximum(self.transfer, self.arithmetic)
        form = (1 - share) * (self.transfer + self.arithmetic) + share * longer
        return float(np.median(form / self.seconds - 1))


def calibrate(
    measured: MeasuredResults,
    topology: Mapping[str, Any],
    core: Mapping[str, Any],
    absent: dict[str, str],
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return the overlap of the section ``core``, how well its form fits, and remarks on both."""
    results = [one for one in measured.results("mixed") if _is_telling(one, _TOLD)]
    loops = list(_loops(results, topology))
    issued = [one for one in measured.results("issue") if _is_telling(one, _TOLD_BY_ISSUE)]
    section: dict[str, Any] = {}
    if issued:
        section["overlap_issue"] = _by_level(list(_loops(issued, topology)))
    if not loops:
        if tried := measured.all_of("mixed"):
            reasons = (one.absent for one in tried if one.absent is not None)
            absent["core.overlap"] = next(reasons, _NOTHING_TOLD)
        return section, {}, []
    section |= {"overlap": _quantity(loops, 0.0), "overlap_with": _by_level(loops)}
    values = {level: entry["value"] for level, entry in section["overlap_with"].items()}
    misfits = [loop.misfit(values[loop.level]) for loop in loops]
    residual, worst = float(np.median(np.abs(misfits))), float(np.max(np.abs(misfits)))
    fit = {
        "residual": _rounded(residual),
        "worst": _rounded(worst),
        "loops": [
            {
                "level": loop.level,
                "threads": loop.threads,
                "arithmetic": _rounded(float(np.median(loop.arithmetic / loop.transfer))),
                "overlap": _rounded(float(np.mean(loop.shares))),
                "misfit": _rounded(misfit),
            }
            for loop, misfit in zip(loops, misfits, strict=True)
        ],
    }
    return section, fit, [*_rough(residual, worst), *_slow(results, core)]


def _levels(loops: list[LoopEstimate]) -> list[str]:
    return list(dict.fromkeys(loop.level for loop in loops))


def _by_level(loops: list[LoopEstimate]) -> dict[str, Any]:
    found = {}
    for level in _levels(loops):
        alike = [one for one in loops if one.level == level]
        smallest = min(one.each for one in alike)
        found[level] = _quantity(
            alike, LEAST_OVERLAP, [one for one in alike if one.each == smallest]
        )
    return found


def _quantity(
    loops: list[LoopEstimate], least: float, typical: list[LoopEstimate] | None = None
) -> dict[str, Any]:
    """The factor that stands for some loops, and at least ``least``: that of the typical ones."""
    typical = typical or loops
    value = max(float(np.median([np.mean(loop.shares) for loop in typical])), least)
    every = np.maximum(np.concatenate([loop.shares for loop in loops]), least)
    low, high = (quantile(every, share) for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return {
        "value": _rounded(value),
        "low": _rounded(min(low, value)),
        "high": _rounded(max(high, value)),
        "origin": "measured",
        "n": sum(loop.samples for loop in loops),
        "source": f"median of {plural(len(typical), 'loop')} with arithmetic and transfers "
        f"({', '.join(_levels(loops))}); the interval holds {plural(len(loops), 'loop')}",
    }


def _is_telling(result: SampleResult, told: float) -> bool:
    """Whether neither part of a loop is much the shorter, and each was taken often enough."""
    transfer, arithmetic = _transfer(result), _arithmetic(result)
    assert result.arithmetic is not None
    batches = min(result.seconds.size, result.arithmetic.size)
    return batches >= _FEWEST and told <= arithmetic / transfer <= 1 / told


def _transfer(result: SampleResult) -> float:
    assert result.reference is not None  # `samples` has checked it
    return p10(result.reference)


def _arithmetic(result: SampleResult) -> float:
    assert result.arithmetic is not None
    return p10(result.arithmetic)


def _loops(results: list[SampleResult], topology: Mapping[str, Any]) -> Iterator[LoopEstimate]:
    """The loops by level, cores and arithmetic, each with the launches that measured it."""
    alike: dict[tuple[int, int, int], list[SampleResult]] = {}
    for result in results:
        params = result.params
        key = params.get("threads", 1), params["bytes"], params.get("arithmetic", 100)
        alike.setdefault(key, []).append(result)
    for (threads, size, _), found in sorted(alike.items()):
        yield LoopEstimate(
            level=level_of(size, threads, topology),
            threads=threads,
            each=size // threads,
            seconds=np.array([p10(result.seconds) for result in found]),
            transfer=np.array([_transfer(result) for result in found]),
            arithmetic=np.array([_arithmetic(result) for result in found]),
            samples=sum(result.seconds.size for result in found),
        )


def level_of(size: int, threads: int, topology: Mapping[str, Any]) -> str:
    """Name the innermost cache of which a working set fills half at most, or ``MEM``."""
    for cache in topology.get("caches", ()):
        if size / threads <= cache["bytes"] / 2 / min(threads, cache["shared_by"]):
            return str(cache["level"])
    return "MEM"


def _rough(residual: float, worst: float) -> Iterator[str]:
    if residual > _ROUGH:
        yield (
            f"core.overlap_with: one factor a level meets the times of the measured loops to "
            f"{100 * residual:.0f} % only (median; {100 * worst:.0f} % at worst)"
        )


def _slow(results: list[SampleResult], core: Mapping[str, Any]) -> Iterator[str]:
    """Doubt arithmetic that is far from the peak: then it is something else that was measured."""
    if "flop_per_cycle" not in core or "freq" not in core:
        return
    clocks = {int(count): entry["value"] for count, entry in core["freq"].items()}
    shares = []
    for result in results:
        threads = result.params["threads"]
        clock = clocks[min(clocks, key=lambda count: abs(count - threads))]
        peak = core["flop_per_cycle"]["value"] * clock * threads
        if result.facts["work"] / result.facts["moved"] * 24 >= 2 * _LONG:
            shares.append(result.facts["work"] / _arithmetic(result) / peak)
    if shares and (share := float(np.median(shares))) < _SLOW:
        yield (
            f"core.overlap: the arithmetic of the measured loops ran at {100 * share:.0f} % of the "
            "peak of the cores"
        )


def _rounded(number: float) -> float:
    return round(number, _DIGITS)
