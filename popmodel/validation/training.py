"""Which runs a model has been fitted to, and where a run stands beside them.

A run that was used in a fit is no test of it. The others are at a configuration of the fit, between
such configurations, or beyond them: how far, and in what, is told before any error is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from popmodel.model.calibration import Calibration
from popmodel.runs.measurement import MeasuredRow
from popmodel.values import dataclass

CALIBRATION = "calibration"
REPETITION = "repetition"
INTERPOLATION = "interpolation"
EXTRAPOLATION = "extrapolation"
BOUNDARY = "node boundary"
"""What a run on several nodes is beyond where all runs of the fit were on one."""
CORES = "cores"
"""P T: P and T may each be within their range, and their product far beyond."""
_ROUNDING = 1e-9

NodesOf = Callable[[int, int], int | None]
"""From P and T to the nodes that they take; None where that is not known."""


@dataclass(frozen=True)
class Training:
    """The runs that a model has been fitted to."""

    digests: frozenset[str]  # `MeasuredRow.digest` of each
    # Smallest and largest value of ``P``, ``T``, ``nodes``, `CORES` and parameters, as far as they
    # are known.
    hull: Mapping[str, tuple[float, float]]
    runs: tuple[MeasuredRow, ...] = ()  # Those of them that are at hand

    def to_dict(self) -> dict[str, Any]:
        """Return how many runs there are, and their ranges."""
        hull = {name: {"low": low, "high": high} for name, (low, high) in self.hull.items()}
        return {"runs": len(self.digests), "hull": hull}

    def used(self, run: MeasuredRow) -> bool:
        """Whether a run was used in the fit."""
        return run.digest in self.digests


@dataclass(frozen=True)
class FitRegion:
    """Where a run stands."""

    # `CALIBRATION`, `REPETITION`, `INTERPOLATION` or `EXTRAPOLATION`; without runs of a fit how far
    # the prediction goes beyond what was measured of the machine, `Validity.status`.
    name: str
    # By what factor it is outside the hull, by what it is outside in.
    beyond: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_test(self) -> bool:
        """Whether it is a run of a configuration that no fit has seen."""
        return self.name not in (CALIBRATION, REPETITION)


def of_runs(runs: Sequence[MeasuredRow], nodes_of: NodesOf) -> Training:
    """Return what was fitted to some runs, whose parameters are all known."""
    values: dict[str, list[float]] = {}
    for run in runs:
        for name, value in _configuration(run, nodes_of(run.processes, run.threads)).items():
            values.setdefault(name, []).append(value)
    # what is not known of all is known of none
    hull = {name: (min(some), max(some)) for name, some in values.items() if len(some) == len(runs)}
    return Training(frozenset(run.digest for run in runs), hull, tuple(runs))


def of_calibration(
    calibration: Calibration, runs: Iterable[tuple[MeasuredRow, MeasuredRow]]
) -> Training:
    """Return what a calibrated signature was fitted to."""
    known = {
        whole.digest: whole
        for read, whole in runs
        if {read.digest, whole.digest} & set(calibration.runs)
    }
    hull = dict(calibration.hull)
    if known and len(known) == len(calibration.runs):  # what it does not keep of them
        cores = [run.processes * run.threads for run in known.values()]
        hull[CORES] = (float(min(cores)), float(max(cores)))
    return Training(frozenset({*calibration.runs, *known}), hull, tuple(known.values()))


def joined(some: Sequence[Training]) -> Training | None:
    """Return all runs of several fits together; None of none."""
    if not some:
        return None
    hull: dict[str, tuple[float, float]] = {}
    for name in some[0].hull:
        ends = [one.hull[name] for one in some if name in one.hull]
        if len(ends) == len(some):
            hull[name] = (min(low for low, _ in ends), max(high for _, high in ends))
    runs = {run.digest: run for one in some for run in one.runs}
    return Training(frozenset().union(*(one.digests for one in some)), hull, tuple(runs.values()))


def region_of(run: MeasuredRow, nodes: int | None, training: Training) -> FitRegion:
    """Say where a run stands, whose parameters are all known."""
    if training.used(run):
        return FitRegion(CALIBRATION)
    if any(_same_configuration(run, one) for one in training.runs):
        return FitRegion(REPETITION)
    beyond: dict[str, float] = {}
    for name, value in _configuration(run, nodes).items():
        if name not in training.hull:
            continue
        low, high = training.hull[name]
        factor = max(value / high, low / value)
        if factor > 1 + _ROUNDING:
            at_boundary = name == "nodes" and high == 1
            beyond[BOUNDARY if at_boundary else name] = factor
    if {"P", "T"} & set(beyond):
        beyond.pop(CORES, None)  # said already
    return FitRegion(EXTRAPOLATION if beyond else INTERPOLATION, beyond)


def _configuration(run: MeasuredRow, nodes: int | None) -> dict[str, float]:
    """P, T, their product, nodes and parameters; without a parameter that is no magnitude."""
    found = {"P": run.processes, "T": run.threads, CORES: run.processes * run.threads}
    if nodes is not None:
        found["nodes"] = nodes
    return {**found, **{name: value for name, value in run.parameters.items() if value > 0}}


def _same_configuration(one: MeasuredRow, other: MeasuredRow) -> bool:
    sizes = (one.processes, one.threads), (other.processes, other.threads)
    return sizes[0] == sizes[1] and one.parameters == other.parameters
