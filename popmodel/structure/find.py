"""Finding the structure of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator import from_trace
from popmodel.structure.common import common_nest
from popmodel.structure.events import events_of
from popmodel.structure.nest import Leaf, Loop, leaves
from popmodel.structure.structure import Focus, Part, Structure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.common import Common
    from popmodel.structure.events import Events
    from popmodel.trace import Trace

__all__ = ["find"]

_NS = 1e9


def find(trace: Trace, program: Program | None = None) -> Structure:
    """Structure of a run; found once for each trace.

    Parameters
    ----------
    trace : Trace
        The run or a part of it.
    program : Program, optional
        That `popmodel.simulator.from_trace` makes of it, where the caller has it.
    """
    return trace.derived("structure", lambda trace: _find(trace, program or from_trace(trace)))


def _find(trace: Trace, program: Program) -> Structure:
    events = events_of(program, trace)
    common = common_nest(program, events)
    loop = _iterative(events, common)
    if loop is None:
        iterations = np.empty((1, program.sequences), np.int64)
        iterations[:] = trace.end
        parts: tuple[Part, ...] = (Part("initialisation", trace.begin, trace.end),)
        focus = Focus(trace.begin, trace.end, 0, -1, "nothing repeats: the whole run")
        notes = ("nothing repeats that makes up most of the time: no iterations",)
        nothing = np.empty(0, np.int64)
        return Structure(
            program, events, common.nest, common.places, common.place, common.execution,
            parts, None, iterations, nothing, None, 0.0, focus, notes,
        )  # fmt: skip
    iterations = _iterations(trace, events, common, loop)
    begin, end = int(iterations[0].min()), int(iterations[-1].max())
    count = len(iterations) - 1
    parts = (
        Part("initialisation", trace.begin, begin),
        Part("iterations", begin, end, count),
        Part("finalisation", end, trace.end),
    )
    lasting = np.diff(iterations, axis=0).mean(axis=1)
    period = float(np.median(lasting)) / _NS
    share = (end - begin) / max(trace.end - trace.begin, 1)
    first = int(np.argmin(np.abs(lasting - np.median(lasting))))
    focus = Focus(
        int(iterations[first].max()),
        int(max(iterations[first + 1].min(), iterations[first].max())),
        first,
        first,
        "the iteration nearest to the median",
    )
    return Structure(
        program, events, common.nest, common.places, common.place, common.execution,
        parts, loop, iterations, np.zeros(count, np.int64), period, min(share, 1.0), focus, (),
    )  # fmt: skip


def _places(loop: Loop) -> NDArray[np.int64]:
    return np.array([place for leaf in leaves(loop.body) for place in leaf.places], np.int64)


def _iterative(events: Events, common: Common) -> Loop | None:
    """The outermost loop with the largest share of time."""
    spent = np.zeros(len(common.places))
    lasting = events.before + np.where(events.is_region, events.end - events.begin, 0)
    np.add.at(spent, common.place, lasting)
    outer = [each for each in common.nest if isinstance(each, Loop)]
    return max(outer, key=lambda loop: float(spent[_places(loop)].sum()), default=None)


def _iterations(trace: Trace, events: Events, common: Common, loop: Loop) -> NDArray[np.int64]:
    """When each iteration begins on each sequence, and the last ends."""
    sequences = len(events.offsets) - 1
    count = sum(loop.counts)
    outer = _outer_iteration(common, loop)
    inside = np.flatnonzero(outer >= 0)
    sequence = events.sequence
    previous = np.append(trace.begin, events.end[:-1])
    starts = events.offsets[:-1][np.diff(events.offsets) > 0]
    previous[starts] = trace.begin
    begin = np.full((count, sequences), np.iinfo(np.int64).max)
    np.minimum.at(begin, (outer[inside], sequence[inside]), previous[inside])
    last = np.full(sequences, trace.begin, np.int64)
    np.maximum.at(last, sequence[inside], events.end[inside])
    found = np.concatenate([begin, last[None, :]])
    # Without an event in an iteration a sequence passes it in no time.
    filled: NDArray[np.int64] = np.minimum.accumulate(found[::-1], axis=0)[::-1]
    return filled


def _outer_iteration(common: Common, loop: Loop) -> NDArray[np.int64]:
    """Iteration of a loop that each event is in, or -1."""
    of_place = [np.empty(0, np.int64)] * len(common.places)

    def descend(body: tuple[Loop | Leaf, ...], turn: NDArray[np.int64]) -> None:
        for each in body:
            if isinstance(each, Leaf):
                for place in each.places:
                    of_place[place] = turn
            else:
                descend(each.body, np.repeat(turn, each.counts))

    descend(loop.body, np.arange(sum(loop.counts)))
    length = np.array([len(each) for each in of_place])
    begin = np.cumsum(length) - length
    turns = np.concatenate([*of_place, np.array([-1])])
    inside = length[common.place] > 0
    at = np.where(inside, begin[common.place] + common.execution, len(turns) - 1)
    return turns[at]
