"""Constants of which nothing is known, guessed from a measured run, so that a fit can begin.

A signature writes them as ``"?"``. With every other one as if it cost nothing, each takes an equal
part of the time that the model lacks of the run in the middle; those that only cost something
together are moved together. A factor of 1000 to either side is left to the fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.fit.physical_laws import LARGEST_GROWTH
from popmodel.machines.profile import Profile
from popmodel.machines.quantity import Quantity
from popmodel.model.predictor import Study
from popmodel.model.run.process_placement import WHOLE, Allocation
from popmodel.model.signature.application import Signature
from popmodel.model.symbols import SPREADS
from popmodel.model.uncertainty import nominal
from popmodel.runs.measurement import MeasuredRow

FACTOR = 1000.0
"""How far from the guess a constant may be: the ends of its 90 % interval."""
_ENDS = (1e-15, 1e15)
_LEAST = 0.01  # of the measured runtime: what a constant is guessed to take at least
_HALVINGS = 60
_NEAR = 3.0  # by what factor the run may be missed
_TABLE = "constants."
_GROWTH = "0 where cells near each other cost alike, 1/2 where each costs something else"

Runtime: TypeAlias = Callable[[Mapping[str, float]], float]


def initial_values(
    signature: Signature,
    profile: Profile,
    runs: Sequence[MeasuredRow],
    settings: Mapping[str, float],
    allocation: Allocation = WHOLE,
) -> Signature:
    """Return a signature with a guess for every constant that it writes as unknown."""
    names = [one.label.removeprefix(_TABLE) for one in signature.unknown if _is_constant(one.label)]
    formulas = tuple(one for one in signature.unknown if not one.is_name)
    replace(signature, unknown=formulas).require_known()
    if not names:
        return signature
    run = sorted(runs, key=lambda one: one.runtime)[len(runs) // 2]

    def runtime(values: Mapping[str, float]) -> float:
        changes = {**settings, **run.parameters, **values}
        study = Study(signature, profile, changes, 0, 0, allocation=allocation)
        placement = study.admit(run.processes, run.threads)
        return nominal(study.run(placement, study.sources()).modelled.runtime)

    def finite(values: Mapping[str, float]) -> float:
        try:
            return runtime(values)
        except PopmodelError:  # more than any run takes
            return math.inf

    ones = dict.fromkeys(names, 1.0)
    runtime(ones)  # what is wrong with the run is told here
    free = {name: _free(name, finite, ones, signature.name) for name in names}
    base = finite(free)
    each = max((run.runtime - base) / len(names), _LEAST * run.runtime)
    constants = dict(signature.constants)
    values = {name: _solved([name], finite, free, base + each)[name] for name in names}
    if not 1 / _NEAR < finite(values) / run.runtime < _NEAR:
        values = _solved(names, finite, free, run.runtime)
    for name, value in values.items():
        constants[name] = Quantity(
            value,
            value / FACTOR,
            value * FACTOR,
            "assumed",
            source=f"a guess from {run.place}: the signature does not know it",
        )
    left = tuple(one for one in signature.unknown if not _is_constant(one.label))
    return replace(signature, constants=constants, unknown=left)


def with_growth(signature: Signature, runs: Sequence[MeasuredRow]) -> Signature:
    """Return a signature whose imbalance may grow with P, where it does not say how it does."""
    counts = [run.processes for run in runs if run.processes > 1]
    given = signature.imbalance
    if "growth_exponent" in given or not counts or not set(SPREADS.values()) & set(given):
        return signature
    middle = round(math.exp(sum(map(math.log, counts)) / len(counts)))
    ends = 0.0, LARGEST_GROWTH
    exponent = Quantity(
        *(LARGEST_GROWTH / 2, *ends, "assumed"), source=_GROWTH, least=ends[0], most=ends[1]
    )
    reference = Quantity(float(middle), origin="assumed", source="the middle of the runs")
    return replace(
        signature,
        imbalance={"reference_processes": reference, **given, "growth_exponent": exponent},
    )


def _is_constant(label: str) -> bool:
    return label.startswith(_TABLE)


def _free(name: str, runtime: Runtime, ones: Mapping[str, float], application: str) -> float:
    """Return the end at which a constant costs nothing: a time near 0, or a rate without limit."""
    small, large = (runtime({**ones, name: end}) for end in _ENDS)
    if math.isclose(small, large, rel_tol=1e-9):
        raise UsageError(
            f"{application}: no run depends on the constant {name}, which is unknown",
            f"write a value instead of the question mark, or --set {name}=VALUE",
        )
    return _ENDS[0] if small < large else _ENDS[1]


def _solved(
    names: Sequence[str], runtime: Runtime, free: Mapping[str, float], aim: float
) -> dict[str, float]:
    """Return values of some constants with which a run takes as long as is asked for.

    All are as far from the end at which they cost nothing.
    """
    cheap, dear = 1.0, -1.0  # parts of the way from the other end
    for _ in range(_HALVINGS):
        middle = (cheap + dear) / 2
        moved = {name: free[name] ** middle for name in names}
        if runtime({**free, **moved}) < aim:
            cheap = middle
        else:
            dear = middle
    return {name: free[name] ** ((cheap + dear) / 2) for name in names}
