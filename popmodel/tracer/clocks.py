"""One time for all hosts: the clock of each compared with that of rank 0's host.

A round trip shows the other clock's time somewhere between its sending and its return. Taken for
the middle, it is wrong by half the round trip at most, so the shortest one counts. Between the
comparisons at the begin and at the end of a run the difference is interpolated: quartz clocks drift
evenly enough. Before and after them it stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.base.values import dataclass
from popmodel.tracer.meta import Exchange, Meta
from popmodel.traces.tables import TraceWarning

_BY_DAY = (
    "hosts whose clock was not compared with that of rank 0: aligned by time of day, which can be "
    "off by milliseconds"
)
_NO_DRIFT = "hosts whose clock was compared only once: its drift is not corrected"
_BROKEN = "hosts whose clock drifts by more than 1 ms per second against that of rank 0"
_LARGEST_DRIFT = 1e-3


@dataclass(frozen=True)
class RankClock:
    """How to get from a host's time to that of the reference."""

    # Instants of the host's clock, ascending, and what is to be added there; ns.
    times: tuple[int, ...] = (0,)
    offsets: tuple[int, ...] = (0,)
    # By how much an offset may be wrong, ns; None where that cannot be said.
    residual: int | None = 0

    def __call__(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of the reference; their order stays."""
        if len(self.times) == 1:
            return time + self.offsets[0]
        first, last = self.times
        change = self.offsets[1] - self.offsets[0]
        passed = np.clip(time, first, last) - first
        # Exact at both ends: the rounding of the product is far below a nanosecond.
        drift = np.rint(passed * (change / (last - first))).astype(np.int64)
        moved: NDArray[np.int64] = time + self.offsets[0] + drift
        return moved

    def one(self, time: int) -> int:
        """The same for one time."""
        return int(self(np.array([time], np.int64))[0])


class _Comparison(NamedTuple):
    time: int
    offset: int
    residual: int


def align(metas: Sequence[Meta]) -> tuple[dict[str, RankClock], list[TraceWarning]]:
    """Clocks of all hosts, that of rank 0's host being the reference.

    All hosts were compared with that one, whether there are records of it or not.
    """
    reference = metas[0]
    clocks = {reference.boot: RankClock()}
    counts = dict.fromkeys((_BY_DAY, _NO_DRIFT, _BROKEN), 0)
    by_host: dict[str, list[Meta]] = {}
    for meta in metas:
        by_host.setdefault(meta.boot, []).append(meta)
    for host, members in by_host.items():
        exchanges = [each for meta in members for each in meta.exchanges]
        begin, end = (
            _best(each for each in exchanges if each.when == when) for when in ("init", "finalize")
        )
        known = [each for each in (begin, end) if each is not None]
        if not known:
            if host == reference.boot:
                continue
            mine = members[0]
            day = (mine.realtime - mine.begin) - (reference.realtime - reference.begin)
            day += clocks[reference.boot].one(reference.begin) - reference.begin
            clocks[host] = RankClock((0,), (day,), None)
            counts[_BY_DAY] += 1
            continue
        residual = max(each.residual for each in known)
        if len(known) == 2 and known[0].time < known[1].time:
            clocks[host] = RankClock(
                (known[0].time, known[1].time), (known[0].offset, known[1].offset), residual
            )
            counts[_BROKEN] += _drifts(known[0], known[1])
        else:
            clocks[host] = RankClock((0,), (known[0].offset,), residual)
            counts[_NO_DRIFT] += 1
    return clocks, [TraceWarning(text, count) for text, count in counts.items() if count]


def _drifts(begin: _Comparison, end: _Comparison) -> bool:
    """Whether two comparisons differ by more than their errors and any sane clock explain."""
    change = abs(end.offset - begin.offset) - begin.residual - end.residual
    return change > _LARGEST_DRIFT * (end.time - begin.time)


def _best(exchanges: Iterable[Exchange]) -> _Comparison | None:
    """The comparison of the shortest round trip; None where there is none."""
    trips = [trip for each in exchanges for trip in each.round_trips if trip[2] >= trip[0]]
    if not trips:
        return None
    sent, remote, received = min(trips, key=lambda trip: trip[2] - trip[0])
    middle = sent + (received - sent) // 2
    return _Comparison(middle, remote - middle, -(-(received - sent) // 2))


def residual(clocks: Mapping[str, RankClock]) -> int | None:
    """By how much times of different hosts may be wrong, ns; None where that cannot be said."""
    each = [clock.residual for clock in clocks.values()]
    known = [value for value in each if value is not None]
    return max(known) if len(known) == len(each) else None
