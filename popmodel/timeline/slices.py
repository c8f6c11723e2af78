"""What a thread does, as slices that nest: regions, in them calls of MPI and states."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.arrays import distinct, numbered
from popmodel.timeline.named import Regions, regions_of
from popmodel.trace.pieces import spread
from popmodel.trace.states import IDLE, NOT_CREATED, STATES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.timeline.clock import Clock
    from popmodel.trace import Trace
    from popmodel.trace.calls import Calls
    from popmodel.trace.tables import States


class Name(NamedTuple):
    """What a slice is called, and what kind of thing that is."""

    name: str
    category: str


class Slices(NamedTuple):
    """Slices of a thread in order: what contains others comes before them."""

    # int64[n]: Nanoseconds.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    what: NDArray[np.int64]  # int64[n]: Index into names


class Threads:
    """Slices of the threads of a run, one thread at a time.

    Attributes
    ----------
    names : list of Name
        What slices can be; grows with the states that threads are found in.
    first_call : int
        Number of the first name of a call.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._regions: Regions = regions_of(trace)
        self._first = np.searchsorted(self._regions.location, np.arange(trace.locations + 1))
        self._calls: Calls = trace.calls()
        whole = trace.whole or trace
        one = trace.pieces is None or len(trace.pieces) == 1
        # One window keeps its times: of each thread its own states are cut, never all of them.
        self._states: States = whole.states if one else trace.states
        self._state_names: dict[int, int] = {}
        kinds = ["region"] * self._regions.marked
        kinds += ["parallel region"] * (len(self._regions.names) - len(kinds))
        groups = [group.value for group in self._calls.group]
        self.first_call = len(kinds)
        self.names = [
            *map(Name, self._regions.names, kinds),
            *map(Name, self._calls.names, groups),
        ]

    def of(self, location: int) -> Slices:
        """Slices of a thread."""
        found, calls = self._regions, self._calls
        mine = slice(int(self._first[location]), int(self._first[location + 1]))
        rows = slice(int(calls.offsets[location]), int(calls.offsets[location + 1]))
        regions = Slices(found.begin[mine], found.end[mine], found.label[mine])
        called = calls.name[rows].astype(np.int64) + self.first_call
        inside = Slices(calls.entry[rows], calls.exit[rows], called)
        beside = self._beside(location, regions, inside)
        begin, end, what = (
            np.concatenate(each) for each in zip(regions, inside, beside, strict=True)
        )
        # Of things that begin at once the longer one is outside; of equal ones the region is.
        rank = np.repeat(np.arange(3), [len(each.begin) for each in (regions, inside, beside)])
        order = np.lexsort((rank, -end, begin))
        return Slices(begin[order], end[order], what[order])

    def _beside(self, location: int, regions: Slices, calls: Slices) -> Slices:
        """States where no call says what the thread does, cut where regions begin and end."""
        states, trace = self._states, self._trace
        rows = slice(int(states.offsets[location]), int(states.offsets[location + 1]))
        state = states.state[rows]
        begin = np.maximum(states.begin[rows], trace.begin)
        end = np.minimum(states.end[rows], trace.end)
        some = (end > begin) & (state != IDLE) & (state != NOT_CREATED)
        begin, end, what = begin[some], end[some], self._numbers(state[some])
        edges = distinct(np.concatenate([*regions[:2], *calls[:2], [_NEVER]]))
        first = np.searchsorted(edges, begin, side="right")
        last = np.searchsorted(edges, end, side="left")
        row, edge = spread(first, np.maximum(last - first, 0) + 1)
        since = np.where(edge == first[row], begin[row], edges[edge - 1])
        until = np.minimum(end[row], edges[edge])
        over = np.append(np.maximum.accumulate(calls.end), 0)
        call = np.searchsorted(calls.begin, since, side="right") - 1
        free = (call < 0) | (over[call] <= since)
        return Slices(since[free], until[free], what[row[free]])

    def _numbers(self, state: NDArray[np.int32]) -> NDArray[np.int64]:
        """Numbers of the names of states."""
        there, which = numbered(state.astype(np.int64))
        for each in there.tolist():
            if each not in self._state_names:
                self._state_names[each] = len(self.names)
                self.names.append(Name(STATES.get(each, f"state {each}"), "state"))
        return np.array([self._state_names[each] for each in there.tolist()], np.int64)[which]


_NEVER = np.iinfo(np.int64).max


def replayed_slices(
    clock: Clock, process: int, called: NDArray[np.int64], computing: int
) -> Slices:
    """What a process does in a replay: calls that take time there, and computing between them."""
    told = clock.calls
    mine = slice(int(told.offsets[process]), int(told.offsets[process + 1]))
    begin, end = clock.shown(told.begin[mine]), clock.shown(told.end[mine])
    last = clock.shown(clock.last[process : process + 1])
    since = np.concatenate([begin, [clock.begin], end])
    until = np.concatenate([end, begin, last])
    what = np.concatenate([called[mine], np.full(len(begin) + 1, computing)])
    order = np.argsort(since, kind="stable")
    order = order[until[order] > since[order]]
    return Slices(since[order], until[order], what[order])
