"""Finding the structure of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import alike
from popmodel.simulator import from_trace
from popmodel.structure.common import common_nest
from popmodel.structure.events import events_of
from popmodel.structure.focus import focus_of
from popmodel.structure.iterations import iterations_of
from popmodel.structure.nest import Leaf
from popmodel.structure.rhythm import rhythm_of
from popmodel.structure.steps import steps_of
from popmodel.structure.structure import Focus, Part, Structure
from popmodel.units import format_time

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.events import Events
    from popmodel.structure.iterations import Iterations
    from popmodel.structure.rhythm import Rhythm
    from popmodel.structure.steps import Steps
    from popmodel.trace import Trace

_NS = 1e9
_MATTERS = 0.01
"""Share of the time, or of the events, from which on a loop is the iterative part of a run."""
_REGULAR = 0.3
"""Confidence below which a second opinion is asked for."""
_ALONE = 0.5
"""Share of the events of a sequence at places that no other passes, beyond which it is said."""
_NORMAL = 1.349
"""Quartiles of a normal distribution lie so many standard deviations apart."""


def find(trace: Trace, program: Program | None = None) -> Structure:
    """Structure of a run; found once for each trace."""
    return trace.derived(
        "structure", lambda trace: structure_of(program or from_trace(trace), trace)
    )


def structure_of(program: Program, trace: Trace | None = None) -> Structure:
    """Structure of a program."""
    events = events_of(program, trace)
    begin = 0 if trace is None else trace.begin
    end = round(float(program.compute().max(initial=0))) if trace is None else trace.end
    start = _started(events, begin)
    steps = steps_of(events, common_nest(program, events))
    loop = None if steps.loop is None else steps.common.nest[steps.loop]
    if loop is None or isinstance(loop, Leaf):
        return _without(program, events, steps, (begin, start, end), "nothing repeats")
    found = iterations_of(events, steps.common, loop, begin)
    since, until = int(found.begin[0].min()), int(found.begin[-1].max())
    done = end if trace is None else int(trace.ends().max(initial=start))
    share = min(float(found.lasting.sum()) / max(done - start, 1), 1.0)
    if share < _MATTERS and np.mean(found.of >= 0) < _MATTERS:
        what = "what repeats is less than 1 % of the run"
        return _without(program, events, steps, (begin, start, end), what)
    count = len(steps.kinds)
    confidence = share * _regularity(found, steps.kinds)
    notes: list[str] = []
    if confidence < _REGULAR and count >= 3:
        notes += _second_opinion(found, rhythm_of(events, since, until))
    notes += _uneven(events, found)
    notes += _alone(events, steps)
    parts = (
        Part("initialisation", begin, since),
        Part("iterations", since, until, count),
        Part("finalisation", until, end),
    )
    return Structure(
        program=program,
        events=events,
        nest=steps.common.nest,
        places=steps.common.places,
        place=steps.common.place,
        execution=steps.common.execution,
        parts=tuple(part for part in parts if part.end > part.begin),
        loop=loop,
        iterations=found.begin,
        kinds=steps.kinds,
        period=float(np.median(found.lasting)) / _NS,
        confidence=confidence,
        focus=focus_of(found, steps.kinds),
        notes=tuple(notes),
    )


def _started(events: Events, begin: int) -> int:
    """When MPI is initialised on all sequences, ns: what comes before is no work of the program."""
    named = [number for number, name in enumerate(events.names) if name.startswith("MPI_Init")]
    ends = events.end[np.isin(events.name, named)]
    return int(ends.max()) if len(ends) else begin


def _without(
    program: Program, events: Events, steps: Steps, times: tuple[int, int, int], why: str
) -> Structure:
    """Structure of a run without iterations."""
    begin, start, end = times
    rhythm = rhythm_of(events, start, end)
    notes = [f"no iterations: {why}", *_alone(events, steps)]
    if rhythm is not None:
        notes.append(
            "the number of processes in MPI repeats every "
            f"{format_time(rhythm.period / _NS)} (autocorrelation {rhythm.strength:.2f}), "
            "though their calls do not"
        )
    return Structure(
        program=program,
        events=events,
        nest=steps.common.nest,
        places=steps.common.places,
        place=steps.common.place,
        execution=steps.common.execution,
        parts=(Part("initialisation", begin, end),),
        loop=None,
        iterations=np.full((1, program.sequences), end, np.int64),
        kinds=np.empty(0, np.int64),
        period=None if rhythm is None else rhythm.period / _NS,
        confidence=0.0,
        focus=Focus(begin, end, 0, -1, f"the whole run, as {why}"),
        notes=tuple(notes),
    )


def _regularity(found: Iterations, kinds: NDArray[np.int64]) -> float:
    """How regular iterations are: 1 / (1 + coefficient of variation), robust, within each kind."""
    lasting = found.lasting
    relative = np.ones(len(lasting))
    for kind in range(int(kinds.max(initial=0)) + 1):
        mine = kinds == kind
        usual = float(np.median(lasting[mine]))
        relative[mine] = lasting[mine] / usual if usual > 0 else 1.0
    low, high = np.quantile(relative, [0.25, 0.75])
    return 1.0 / (1.0 + float(high - low) / _NORMAL)


def _second_opinion(found: Iterations, rhythm: Rhythm | None) -> list[str]:
    """What the signal of processes in MPI says of iterations that are not sure."""
    usual = float(np.median(found.lasting))
    if rhythm is None or usual <= 0:
        return []
    times = rhythm.period / usual
    said = f"the number of processes in MPI repeats every {format_time(rhythm.period / _NS)}"
    said += f" (autocorrelation {rhythm.strength:.2f})"
    if abs(times - max(round(times), 1)) <= 0.1 * max(round(times), 1):
        number = max(round(times), 1)
        return [f"{said}: as one iteration" if number == 1 else f"{said}: as {number} iterations"]
    return [f"{said}, which is no whole number of iterations ({times:.2g})"]


def _uneven(events: Events, found: Iterations) -> list[str]:
    """Say which sequences take no part in the iterations."""
    sequences = len(events.offsets) - 1
    inside = np.bincount(events.sequence[found.of >= 0], minlength=sequences)
    none = int(np.count_nonzero(inside == 0))
    if not none:
        return []
    return [f"{none} of {sequences} processes and threads have no call in the iterations"]


def _alone(events: Events, steps: Steps) -> list[str]:
    """Say if most sequences do what no other one does: a root, or a pair of two, may well do so."""
    sequences = len(events.offsets) - 1
    if sequences < 3 or not len(events):
        return []
    place, sequence = steps.common.place.astype(np.int64), events.sequence
    pairs = alike(place, sequence)[0]
    shared = np.bincount(pairs[:, 0], minlength=len(steps.common.places)) > 1
    of = np.bincount(sequence, minlength=sequences)
    alone = np.flatnonzero(np.bincount(sequence, ~shared[place], sequences) > _ALONE * of)
    if len(alone) < 3 or 2 * len(alone) <= sequences:
        return []
    return [
        f"{len(alone)} of {sequences} processes and threads do mostly what no other does: "
        "their calls could not be put beside those of others"
    ]
