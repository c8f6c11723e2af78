"""The structure of a run: its iterations, when they begin, and what of them is worth a look."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.arrays import alike
from popmodel.simulator.from_trace import from_trace
from popmodel.structure.common_nest import Common, common_nest
from popmodel.structure.focus import focus_of
from popmodel.structure.program_events import events_of
from popmodel.structure.repetition import repeated
from popmodel.structure.step_kinds import Steps, steps_of
from popmodel.structure.structure import (
    FoundLoop,
    Leaf,
    LoopPlace,
    Nest,
    Structure,
    StructureFocus,
    StructurePart,
    leaves,
)
from popmodel.structure.time_steps import by_site, time_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.program_events import ProgramEvents
    from popmodel.traces import Trace

_NS = 1e9
_MATTERS = 0.01
"""Share of the time, or of the events, from which on a loop is the iterative part of a run."""
_ALONE = 0.5
"""Share of the events of a sequence at places that no other passes, beyond which it is said."""
_CLEARLY = 1.25
"""How much more time steps have to explain than what repeats exactly, which tells the order."""
_HARDLY = 0.4
"""Share of the events below which it does so though calls are told apart by their names alone."""
_NEARLY_ALL = 0.9
"""Share of the time of iterations in a loop inside, from which on that may be meant."""
_EITHER = 0.75
"""What the confidence is multiplied by then."""
_FEW = 4
"""Iterations below which few places in them may be alike by chance."""
_BY_CHANCE = 12
"""Places that iterations behind the first have to repeat for that not to be."""
_NORMAL = 1.349
"""Quartiles of a normal distribution lie so many standard deviations apart."""
_LONG = 2.0
"""How many times the usual computing at its begin the first iteration may have; what is more
belongs to the initialisation."""


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
    steps, found, common = best.steps, best.iterations, best.steps.common
    notes = _alone(events, common)
    if found is None:
        parts = [StructurePart("initialisation", begin, end)]
        focus = StructureFocus(begin, end, 0, -1, f"the whole run, as {best.why}")
        notes = [f"no iterations: {best.why}", *notes]
    else:
        since, until = int(found.begin[0].min()), int(found.begin[-1].max())
        parts = [
            StructurePart("initialisation", begin, since),
            StructurePart("iterations", since, until, len(steps.kinds)),
            StructurePart("finalisation", until, end),
        ]
        focus = focus_of(found, steps.kinds)
        notes = [*_uneven(events, found), *notes]
    return Structure(
        program=program,
        events=events,
        nest=common.nest,
        places=_places(events, common),
        place=common.place,
        execution=common.execution,
        parts=tuple(part for part in parts if found is None or part.end > part.begin),
        loop=best.loop,
        iterations=np.full((1, program.sequences), end) if found is None else found.begin,
        kinds=np.empty(0, np.int64) if found is None else steps.kinds,
        period=None if found is None else float(np.median(found.lasting)) / _NS,
        confidence=best.confidence,
        focus=focus,
        notes=tuple(notes),
    )


def _places(events: ProgramEvents, common: Common) -> tuple[LoopPlace, ...]:
    """Places of a nest, described by their first events."""
    event = np.unique(common.place, return_index=True)[1]
    leaf_of = {p: number for number, leaf in enumerate(leaves(common.nest)) for p in leaf.places}
    columns = (events.name[event], events.is_region[event], events.inside[event])
    return tuple(
        LoopPlace(number, events.names[name], leaf_of[number], is_region, events.insides[inside])
        for number, (name, is_region, inside) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        )
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

    That is seen where sites are known: calls of one name from anywhere look alike. Elsewhere it
    counts where hardly anything repeats exactly.
    """
    common, exact = common_nest(program, events, repeated(events)), None
    if common is not None:
        exact = _rated(events, steps_of(events, common), *times)
        has_sites = len(events.insides) > 1 or bool(events.is_region.any())
        if exact.iterations is not None:
            most = exact.share if has_sites else float(np.mean(exact.iterations.of >= 0))
            if most >= (1 / _CLEARLY if has_sites else _HARDLY):
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
    turns, places = len(steps.kinds), sum(len(leaf.places) for leaf in leaves(loop.body))
    if turns < _FEW:
        confidence *= min(1.0, (turns - 1) * places / _BY_CHANCE)
    if _holds_steps(events, steps, loop, found):
        confidence *= _EITHER
    return _Rated(steps, loop, found, share, confidence, "")


def _holds_steps(events: ProgramEvents, steps: Steps, loop: FoundLoop, found: Iterations) -> bool:
    """Whether a loop inside takes nearly all the time: either may be what is meant."""
    time = events.computing * (found.of >= 0)
    of_place = np.bincount(steps.common.place, time, steps.common.places)
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


def _alone(events: ProgramEvents, common: Common) -> list[str]:
    """Say if most sequences do what no other one does: a root, or a pair of two, may well do so."""
    sequences = len(events.offsets) - 1
    if sequences < 3 or not len(events):
        return []
    place, sequence = common.place.astype(np.int64), events.sequence
    pairs = alike(place, sequence)[0]
    shared = np.bincount(pairs[:, 0], minlength=common.places) > 1
    of = np.bincount(sequence, minlength=sequences)
    alone = np.flatnonzero(np.bincount(sequence, ~shared[place], sequences) > _ALONE * of)
    if len(alone) < 3 or 2 * len(alone) <= sequences:
        return []
    return [
        f"{len(alone)} of {sequences} processes and threads do mostly what no other does: "
        "their calls could not be put beside those of others"
    ]


class Iterations(NamedTuple):
    """Iterations of a loop."""

    # int64[n + 1, S]: When each begins on each sequence, and the last ends, ns. An iteration begins
    # where the last event of the one before ends; a sequence without an event in one passes it in
    # no time.
    begin: NDArray[np.int64]
    of: NDArray[np.int64]  # int64[E]: Iteration that each event is in, or -1
    compute: NDArray[np.float64]  # float64[n, S]: Computing in each, regions included, ns

    @property
    def lasting(self) -> NDArray[np.float64]:
        """Duration of each, the mean of all sequences, ns: float64[n]."""
        mean: NDArray[np.float64] = np.diff(self.begin, axis=0).mean(axis=1)
        return mean


def iterations_of(events: ProgramEvents, common: Common, loop: FoundLoop, begin: int) -> Iterations:
    """Iterations of a loop at the top of a nest."""
    of = iteration_of_events(common, loop)
    sequences, count = len(events.offsets) - 1, sum(loop.counts)
    inside = np.flatnonzero(of >= 0)
    sequence, iteration = events.sequence[inside], of[inside]
    before = events.gaps(begin, np.full(sequences, begin))[1][: len(events)]
    late = np.iinfo(np.int64).max
    since = np.full((count, sequences), late)
    np.minimum.at(since, (iteration, sequence), np.minimum(before, events.begin)[inside])
    until = np.full(sequences, begin, np.int64)
    np.maximum.at(until, sequence, events.end[inside])
    compute = np.zeros((count, sequences))
    np.add.at(compute, (iteration, sequence), events.computing[inside])
    _cut_the_first(events, common, since, compute, inside, sequence, iteration)
    edges = np.concatenate([since, until[None, :]])
    filled = np.minimum.accumulate(edges[::-1], axis=0)[::-1]
    # A sequence without an event in the loop is in it for no time at all.
    none = ~np.isin(np.arange(sequences), sequence)
    filled[:, none] = filled[0, ~none].min(initial=late)
    return Iterations(filled, of, compute)


def _cut_the_first(
    events: ProgramEvents,
    common: Common,
    since: NDArray[np.int64],
    compute: NDArray[np.float64],
    inside: NDArray[np.int64],
    sequence: NDArray[np.int64],
    iteration: NDArray[np.int64],
) -> None:
    """Leave the computing of the initialisation out of the first iteration."""
    if len(since) < 3:
        return
    new = np.diff(sequence, prepend=-1) != 0
    new |= np.diff(iteration, prepend=-1) != 0
    firsts = np.flatnonzero(new)
    event, sequence, iteration = inside[firsts], sequence[firsts], iteration[firsts]
    head = np.full(since.shape[1], -1)  # what begins the first iteration of each sequence
    head[sequence[iteration == 0]] = event[iteration == 0]
    like = (iteration > 0) & (head[sequence] >= 0)
    like &= common.place[event] == common.place[head[sequence]]
    if not like.any():
        return
    event, sequence = event[like], sequence[like]
    before = events.before[event][np.lexsort((events.before[event], sequence))]
    count = np.bincount(sequence, minlength=since.shape[1])
    mine = np.flatnonzero(count)
    begin, count, head = (np.cumsum(count) - count)[mine], count[mine], head[mine]
    usual = (before[begin + (count - 1) // 2] + before[begin + count // 2]) / 2  # medians
    surplus = events.before[head] - usual
    late = surplus > (_LONG - 1.0) * np.maximum(usual, 1.0)
    since[0, mine[late]] = events.begin[head[late]] - np.rint(usual[late]).astype(np.int64)
    compute[0, mine[late]] -= surplus[late]


def iteration_of_events(common: Common, loop: FoundLoop) -> NDArray[np.int64]:
    """Iteration of a loop that each event is in, or -1: int64[E]."""
    turns = [np.empty(0, np.int64)] * common.places

    def descend(body: Nest, turn: NDArray[np.int64]) -> None:
        for each in body:
            if isinstance(each, Leaf):
                for place in each.places:
                    turns[place] = turn
            else:
                descend(each.body, np.repeat(turn, each.counts))

    descend(loop.body, np.arange(sum(loop.counts)))
    length = np.array([len(each) for each in turns], np.int64)
    begin = np.cumsum(length) - length
    flat = np.concatenate([*turns, np.array([-1])])
    inside = length[common.place] > 0
    found: NDArray[np.int64] = flat[
        np.where(inside, begin[common.place] + common.execution, len(flat) - 1)
    ]
    return found
