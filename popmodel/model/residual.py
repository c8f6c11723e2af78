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
from popmodel.machine.quantity import Topology
from popmodel.model.calibration import RESIDUAL
from popmodel.model.run.placement import Placement
from popmodel.model.run.work import RunWork
from popmodel.model.uncertainty import Draws
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
            work = one.added(work, maximum(drawn.score(name), 0.0) * (unit * shape))
    return work
