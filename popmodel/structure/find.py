"""Finding the structure of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.arrays import alike
from popmodel.simulator import from_trace
from popmodel.structure.common import common_nest
from popmodel.structure.events import events_of
from popmodel.structure.iterations import focus_of, iterations_of
from popmodel.structure.nest import FoundLoop, Leaf, leaves
from popmodel.structure.repetition import repeated
from popmodel.structure.steps import steps_of
from popmodel.structure.structure import Structure, StructureFocus, StructurePart
from popmodel.structure.time_steps import by_site, time_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.events import ProgramEvents
    from popmodel.structure.iterations import Iterations
    from popmodel.structure.steps import Steps
    from popmodel.trace import Trace

_NS = 1e9
_MATTERS = 0.01
"""Share of the time, or of the events, from which on a loop is the iterative part of a run."""
_ALONE = 0.5
"""Share of the events of a sequence at places that no other passes, beyond which it is said."""
_CLEARLY = 1.25
"""How much more time steps have to explain than what repeats exactly, which tells the order."""
_NEARLY_ALL = 0.9
"""Share of the time of iterations in a loop inside, from which on that may be meant."""
_EITHER = 0.75
"""What the confidence is multiplied by then."""
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
    done = end if trace is None else int(trace.ends().max(initial=start))
    best = _best(program, events, (begin, start, done))
    steps, found = best.steps, best.iterations
    if found is None:
        return _without(program, events, steps, (begin, end), best.why)
    since, until = int(found.begin[0].min()), int(found.begin[-1].max())
    count = len(steps.kinds)
    notes = _uneven(events, found) + _alone(events, steps)
    parts = (
        StructurePart("initialisation", begin, since),
        StructurePart("iterations", since, until, count),
        StructurePart("finalisation", until, end),
    )
    return Structure(
        program=program,
        events=events,
        nest=steps.common.nest,
        places=steps.common.places,
        place=steps.common.place,
        execution=steps.common.execution,
        parts=tuple(part for part in parts if part.end > part.begin),
        loop=best.loop,
        iterations=found.begin,
        kinds=steps.kinds,
        period=float(np.median(found.lasting)) / _NS,
        confidence=best.confidence,
        focus=focus_of(found, steps.kinds),
        notes=tuple(notes),
    )


class _Rated(NamedTuple):
    """A nest, the iterations of its steps if they matter, and how sure they are."""

    steps: Steps
    loop: FoundLoop | None
    iterations: Iterations | None
    share: float  # of the time that they hold
    confidence: float
    why: str  # why there are none


def _best(program: Program, events: ProgramEvents, times: tuple[int, int, int]) -> _Rated:
    """The nest by what repeats exactly, unless time steps explain clearly more of the run.

    That is seen where sites are known: calls of one name from anywhere look alike.
    """
    common, exact = common_nest(program, events, repeated(events)), None
    if common is not None:
        exact = _rated(events, steps_of(events, common), *times)
        has_sites = len(events.insides) > 1 or bool(events.is_region.any())
        if exact.iterations is not None and (not has_sites or exact.share * _CLEARLY >= 1):
            return exact
    by_time = _rated(events, by_site(events, time_steps(events)), *times)
    if exact is None or (by_time.iterations is not None and by_time.share > exact.share * _CLEARLY):
        return by_time
    return exact


def _rated(events: ProgramEvents, steps: Steps, begin: int, start: int, done: int) -> _Rated:
    """Iterations of a nest, and how much of the run they explain."""
    loop = None if steps.loop is None else steps.common.nest[steps.loop]
    if loop is None or isinstance(loop, Leaf):
        return _Rated(steps, None, None, 0.0, 0.0, "nothing repeats")
    found = iterations_of(events, steps.common, loop, begin)
    share = min(float(found.lasting.sum()) / max(done - start, 1), 1.0)
    if share < _MATTERS and np.mean(found.of >= 0) < _MATTERS:
        return _Rated(steps, None, None, 0.0, 0.0, "what repeats is less than 1 % of the run")
    confidence = share * min(_regularity(found, steps.kinds), steps.alike)
    if _holds_steps(events, steps, loop, found):
        confidence *= _EITHER
    return _Rated(steps, loop, found, share, confidence, "")


def _holds_steps(events: ProgramEvents, steps: Steps, loop: FoundLoop, found: Iterations) -> bool:
    """Whether a loop inside takes nearly all the time: either may be what is meant."""
    time = events.before + np.where(events.is_region, events.end - events.begin, 0)
    of_place = np.bincount(steps.common.place, time * (found.of >= 0), len(steps.common.places))
    inner = [
        sum(float(of_place[list(leaf.places)].sum()) for leaf in leaves(each.body))
        for each in loop.body
        if isinstance(each, FoundLoop) and each.count >= 2
    ]
    return max(inner, default=0.0) > _NEARLY_ALL * float(of_place.sum())


def _started(events: ProgramEvents, begin: int) -> int:
    """When MPI is initialised on all sequences, ns: what comes before is no work of the program."""
    named = [number for number, name in enumerate(events.names) if name.startswith("MPI_Init")]
    ends = events.end[np.isin(events.name, named)]
    return int(ends.max()) if len(ends) else begin


def _without(
    program: Program, events: ProgramEvents, steps: Steps, times: tuple[int, int], why: str
) -> Structure:
    """Structure of a run without iterations."""
    begin, end = times
    notes = [f"no iterations: {why}", *_alone(events, steps)]
    return Structure(
        program=program,
        events=events,
        nest=steps.common.nest,
        places=steps.common.places,
        place=steps.common.place,
        execution=steps.common.execution,
        parts=(StructurePart("initialisation", begin, end),),
        loop=None,
        iterations=np.full((1, program.sequences), end, np.int64),
        kinds=np.empty(0, np.int64),
        period=None,
        confidence=0.0,
        focus=StructureFocus(begin, end, 0, -1, f"the whole run, as {why}"),
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


def _uneven(events: ProgramEvents, found: Iterations) -> list[str]:
    """Say which sequences take no part in the iterations."""
    sequences = len(events.offsets) - 1
    inside = np.bincount(events.sequence[found.of >= 0], minlength=sequences)
    none = int(np.count_nonzero(inside == 0))
    if not none:
        return []
    return [f"{none} of {sequences} processes and threads have no call in the iterations"]


def _alone(events: ProgramEvents, steps: Steps) -> list[str]:
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
