"""Times that a program may have and its signature does not name, in forms that physics suggests.

A collective that nobody wrote down takes time in every step and grows with the logarithm of the
number of processes; a root that talks to all grows with that number. None of these terms is part of
a prediction unless measured runs ask for it (`popmodel.fit.calibrate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from popmodel.expressions.elementary import Value, maximum
from popmodel.machine.quantity import END, Topology
from popmodel.model.calibration import RESIDUAL
from popmodel.model.run.placement import Placement
from popmodel.model.run.work import RunWork
from popmodel.model.uncertainty import REACH, Draws
from popmodel.values import dataclass


@dataclass(frozen=True)
class Residual:
    """A form of time that a signature may lack."""

    name: str  # Of its score among the inputs
    meaning: str  # For people
    unit: str  # Of its amplitude: ``s`` or ``1``, a part of the time in loops
    # Placement -> the number that the amplitude is multiplied by; 0 with one process, or thread.
    shape: Callable[[Placement], float]
    added: Callable[[RunWork, Value], RunWork]  # (work, amplitude times shape) -> the work with it
    # (shape, factor) -> the shape with a factor more processes, or threads of each.
    grown: Callable[[float, float], float]
    is_fixed: bool  # Whether it takes as long where more processes, or threads, share the work
    # Topology -> whether it has a shape in some run on the machine.
    is_possible: Callable[[Topology], bool]


def _of_messages(work: RunWork, each: Value) -> RunWork:
    return replace(work, transfer=work.transfer + work.steps * each)


def _of_loops(work: RunWork, part: Value) -> RunWork:
    return replace(
        work,
        share=work.share * (1.0 + part),
        stretched=work.stretched * (1.0 + part),
        region_cycles=work.region_cycles * (1.0 + part),
    )


def _of_one_thread(work: RunWork, part: Value) -> RunWork:
    """A part of the loops that one thread does while the others wait."""
    return replace(work, stretched=work.stretched + work.single_thread * part)


def _has_cores(machine: Topology) -> bool:
    return machine.nodes * machine.cores_per_node > 1


HIDDEN = 12.0
"""Largest score of a term that runs do not show: 7.5 % of the time of the largest run, about as
much as the law of loops may be off there, and all of the time of one four times as large."""
_HIDING = f"{RESIDUAL}processes"

RESIDUALS: Mapping[str, Residual] = {
    one.name: one
    for one in (
        Residual(
            f"{RESIDUAL}log_processes",
            "time of a step that grows with log2 P",
            "s",
            lambda at: math.log2(at.processes),
            _of_messages,
            lambda shape, factor: shape + math.log2(factor),
            is_fixed=True,
            is_possible=_has_cores,
        ),
        Residual(
            f"{RESIDUAL}processes",
            "time of a step that grows with P",
            "s",
            lambda at: at.processes - 1.0,
            _of_messages,
            lambda shape, factor: (shape + 1) * factor - 1,
            is_fixed=True,
            is_possible=_has_cores,
        ),
        Residual(
            f"{RESIDUAL}nodes",
            "time of a step for every node beyond the first",
            "s",
            lambda at: at.nodes - 1.0,
            _of_messages,
            lambda shape, factor: (shape + 1) * factor - 1,
            is_fixed=True,
            is_possible=lambda machine: machine.nodes > 1,
        ),
        Residual(
            f"{RESIDUAL}domains",
            "slower loops for every memory domain of a process beyond the first",
            "1",
            lambda at: at.domains_spanned - 1.0,
            _of_loops,
            lambda shape, _: max(shape, 1.0),
            is_fixed=False,
            is_possible=lambda machine: machine.domains > 1,
        ),
        Residual(
            f"{RESIDUAL}serial",
            "part of the loops that one thread does alone",
            "1",
            lambda at: 1.0 - 1.0 / at.threads,
            _of_one_thread,
            lambda shape, factor: 1.0 - (1.0 - shape) / factor,
            is_fixed=True,
            is_possible=lambda machine: machine.cores_per_node > 1,
        ),
    )
}
"""All terms by name."""


def applied(
    work: RunWork, placement: Placement, drawn: Draws, units: Mapping[str, float]
) -> RunWork:
    """Return the work of a process with residual terms."""
    for name, unit in units.items():
        one = RESIDUALS[name]
        if shape := one.shape(placement):
            work = one.added(work, _amplitude(name, drawn) * (unit * shape))
    return work


def _amplitude(name: str, drawn: Draws) -> Value:
    """The size of a term, in units of its score; never below 0.

    A term that grows with the processes may be far larger than is likely, and still be hidden in
    the errors of small runs: in its largest draws (one of twenty) it is, up to `HIDDEN`. That
    hardly moves an interval, but says what many processes may cost where splits are compared.
    """
    score, known = drawn.score(name), drawn.calibration
    amplitude = maximum(score, 0.0)
    if name == _HIDING and drawn.count and known is not None:
        row = known.index[name]
        mean, deviation = float(known.means[row]), float(known.deviations[row])
        if mean < deviation:  # else the runs have shown how large it is
            beyond = maximum((score - mean) / deviation - END, 0.0)
            amplitude = amplitude + HIDDEN * beyond / (REACH - END)
    return amplitude
