"""Fit a signature to measured runs: which runs are usable, what they cannot tell, what is asked.

`fit_signature` is the whole way from a signature and runs to `popmodel.fit.calibrate`'s result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from popmodel.base.errors import FileError, UsageError
from popmodel.base.units import plural
from popmodel.fit.calibrate import Calibrated, calibrate
from popmodel.fit.cross_validation import NextRun, next_runs
from popmodel.fit.initial_values import initial_values
from popmodel.machines.profile import Profile
from popmodel.model.run.process_placement import Allocation
from popmodel.model.signature.application import Signature
from popmodel.runs.measurement import MeasuredRow, oversubscribed

_FEW = 4
_FARTHER = 4
"""Times the cores of the largest run: what is asked for where nothing is said."""


class FittedSignature(NamedTuple):
    """A signature that runs have calibrated, and what is asked of it."""

    calibrated: Calibrated
    settings: Mapping[str, float]  # Parameters of the application of what is asked for
    targets: tuple[tuple[int, int], ...]  # P and T of the runs that are asked for
    measure_next: tuple[NextRun, ...]  # Runs that narrow the answer for these, the best first
    warnings: tuple[str, ...]  # What is doubtful about the runs


def fit_signature(
    signature: Signature,
    profile: Profile,
    runs: Sequence[MeasuredRow],
    settings: Mapping[str, float],
    *,
    allocation: Allocation,
    cores: Sequence[int] = (),
    warnings: Sequence[str] = (),
) -> FittedSignature:
    """Fit the uncertain numbers of a signature, of laws and of the machine to measured runs.

    `settings` are parameters where a run does not say otherwise, and constants that are not to be
    fitted; `cores` those whose splits the next measurement should narrow, by default four times
    those of the largest run, as far as the machine has them.
    """
    constants = {name: value for name, value in settings.items() if name in signature.constants}
    changes = {name: value for name, value in settings.items() if name not in constants}
    set_ = signature.with_settings(constants)
    defaults = {name: one.value for name, one in set_.with_settings(changes).params.items()}
    filled = [replace(run, parameters={**defaults, **run.parameters}) for run in runs]
    able, left_out = _able(filled, profile, allocation)
    doubts = [*warnings, *left_out]
    _check(able, signature, doubts)
    set_ = initial_values(set_, profile, able, defaults, allocation)
    found = replace(calibrate(set_, profile, able, defaults, allocation), before=signature)
    targets = _targets(cores, able, profile, allocation)
    largest = max(able, key=lambda run: run.processes * run.threads)
    question = {**largest.parameters, **changes}
    return FittedSignature(
        found, question, targets, next_runs(found.fit, targets, question), tuple(doubts)
    )


def _able(
    runs: Sequence[MeasuredRow], profile: Profile, allocation: Allocation
) -> tuple[list[MeasuredRow], list[str]]:
    """Runs whose threads had cores, and which others are left out and why."""
    topology = profile.topology
    nodes = min(allocation.nodes or topology.nodes, topology.nodes)
    cores = min(allocation.cores_per_node or topology.cores_per_node, topology.cores_per_node)
    reasons: dict[str, list[MeasuredRow]] = {}
    able = []
    for run in runs:
        why = oversubscribed(run, nodes, cores)
        if why is None:
            able.append(run)
        else:
            reasons.setdefault(why, []).append(run)
    return able, [
        f"{plural(len(some), 'run')} left out, first {some[0].place}: {why}"
        for why, some in reasons.items()
    ]


def _check(
    runs: Sequence[MeasuredRow],
    signature: Signature,
    warnings: list[str],
) -> None:
    """Refuse runs that teach nothing, and say what they cannot teach."""
    used = {} if signature.calibration is None else signature.calibration.runs
    for run in runs:
        if run.digest in used:
            raise FileError(
                run.source,
                f"has a run that calibrated {signature.path} already ({used[run.digest]})",
                line=run.line,
                hint="give the original signature with all runs: counted twice they seem surer",
            )
    if len(runs) < 2:
        raise UsageError(
            f"{plural(len(runs), 'run')} to calibrate by: nothing tells a disturbed run from a "
            "wrong constant",
            "measure at least two, best of several numbers of processes, threads and sizes"
            + "".join(f"; {doubt}" for doubt in warnings),
        )
    configurations = {run.configuration for run in runs}
    if 1 < len(configurations) < _FEW:
        warnings.append(
            f"{len(configurations)} configurations are too few to tell what processes, threads and "
            "nodes do: intervals stay wide; measure six"
        )
    if len(configurations) == 1:
        one = runs[0]
        warnings.append(
            f"all runs are {one.processes} x {one.threads} of one size: they tell nothing about "
            "other processes, threads and sizes"
        )
    if signature.calibration is not None:
        warnings.append(
            f"{signature.path} is calibrated already: its constants are taken as they are now, "
            "what it knew of the machine and of the laws is learnt anew"
        )


def _targets(
    cores: Sequence[int],
    runs: Sequence[MeasuredRow],
    profile: Profile,
    allocation: Allocation,
) -> tuple[tuple[int, int], ...]:
    """The splits that are asked for."""
    if cores:
        return tuple(split for number in cores for split in splits_of(number, number))
    topology = profile.topology
    nodes = min(allocation.nodes or topology.nodes, topology.nodes)
    per_node = min(allocation.cores_per_node or topology.cores_per_node, topology.cores_per_node)
    largest = max(run.processes * run.threads for run in runs)
    return splits_of(min(_FARTHER * largest, nodes * per_node), per_node)


def splits_of(cores: int, most: int) -> tuple[tuple[int, int], ...]:
    """Every split of a number of cores with at most so many threads to a process."""
    return tuple(
        (cores // threads, threads)
        for threads in range(1, min(cores, most) + 1)
        if cores % threads == 0
    )
