"""The time steps of a run whose calls never repeat exactly, and its program by sites.

Time steps are found by a site that comes once in each of them, so that what lies between two of
its calls is alike: the same sites, weighted by the time that each of them takes. Neighbour lists
that are built now and then, and messages that follow the data, leave that as it is. Of such loops
the one that explains most of the time is the run's; of those that explain nearly as much the
innermost.

Inside, calls stand by their sites: the k-th call of a site in a step is the same one in all steps
and on all sequences. The order of different sites is not told. So the nest has at most some hundred
places, however irregular a run is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.arrays import numbered
from popmodel.structure.common_nest import Common
from popmodel.structure.repetition import times_before
from popmodel.structure.step_kinds import Steps
from popmodel.structure.structure import FoundLoop, Leaf, events_at, grouped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from popmodel.structure.program_events import ProgramEvents

_HEAVY = 24
"""Sites that steps are compared by: those that take most of the time."""
_CANDIDATES = 96
"""Sites, at each level of detail, that are tried as the one that comes once in a step."""
_VISITS = 1 << 24
"""Events that are looked at for all of them, where that leaves more than a few."""
_PER_STEP = (1, 2, 3)
"""How often a site may come in a step."""
_FEWEST = 3
"""Steps that tell what they have in common."""
_CELLS = 1 << 22
"""Steps times heavy sites that are held at once."""
_ALIKE = 0.5
"""Likeness of steps, 0 to 1, below which they are none."""
_AS_MUCH = 0.85
"""A loop that explains this share of what another one does is as good."""
_BETTER = 0.4
"""What several calls of a site in a step leave of the difference of steps, if they are one."""
_ENOUGH = 8
"""Steps that tell whether several calls of a site in each take turns."""
_LONGER = 2.0
"""How much longer one of them is then than another."""
_MOSTLY = 0.8
"""Share of the steps in which it is the longest."""
_AS_SHORT = 1.5
"""Steps of sites that come now and then in a step, too, are so many times as many."""
_KINDS = 8
"""Kinds of steps that are told apart at most."""


class TimeSteps(NamedTuple):
    """Where the time steps of a run are."""

    step: NDArray[np.int64]  # int64[E]: Of each event; -1 ahead of them, `steps` behind them
    steps: int
    alike: float  # How alike they are in the sites that take the time, 0 to 1


class _Period(NamedTuple):
    """Steps that begin at each call of a site, or at every so many of them."""

    steps: int
    alike: float
    score: float  # `alike` times the share of the time that they hold
    whole: bool  # Whether the last is as long as others
    token: int
    per_step: int


def time_steps(events: ProgramEvents) -> TimeSteps | None:
    """Find the time steps; None where no site comes in steps that are alike."""
    busy = np.flatnonzero(np.diff(events.offsets) > 0)
    if not len(busy):
        return None
    weights = events.computing + 1.0
    sequence = int(busy[np.argmax(np.add.reduceat(weights, events.offsets[busy]))])
    mine = slice(*events.offsets[sequence : sequence + 2])
    compared = _Compared(events.coarse[mine], weights[mine], events.begin[mine], events.end[mine])
    for tokens in (events.coarse, events.exact):
        periods = [
            period
            for token in _candidates(events, tokens, weights, sequence)
            for period in _periods(compared, np.flatnonzero(tokens[mine] == token), token)
        ]
        most = max((period.score for period in periods), default=0.0)
        if most >= _ALIKE or (periods and tokens is events.exact):
            best = _finest([period for period in periods if period.score >= _AS_MUCH * most])
            step = _steps_of(events, tokens, best.token, best.per_step)
            return TimeSteps(step, best.steps, best.alike)
    return None


def _finest(good: list[_Period]) -> _Period:
    """Of steps that explain nearly as much the shortest; of about as short ones the most alike.

    What is alike as a whole is so in groups, too: time steps are what repeats in them.
    """
    good = [period for period in good if period.whole] or good
    most = max(period.steps for period in good)
    fine = [period for period in good if period.steps * _AS_SHORT >= most]
    return max(fine, key=lambda period: (period.score, -period.steps))


def _periods(compared: _Compared, at: NDArray[np.int64], token: int) -> Iterator[_Period]:
    """Steps at the calls of a site: of several in a step where those are alike, and single not."""
    possible = [n for n in _PER_STEP if len(at) % n == 0 and len(at) >= _FEWEST * n]
    turns = [n for n in possible if n > 1 and compared.takes_turns(at, n)]
    known = 1.0
    for per_step in turns or possible:
        alike, share, whole = compared.of(at[::per_step])
        if alike >= _ALIKE and 1.0 - alike < _BETTER * known:
            yield _Period(len(at) // per_step, alike, alike * share, whole, token, per_step)
        known = min(known, 1.0 - alike)


def _candidates(
    events: ProgramEvents, tokens: NDArray[np.int32], weights: NDArray[np.float64], sequence: int
) -> list[int]:
    """Sites of a sequence that come equally often on all that have them: on most sequences."""
    sequences = len(events.offsets) - 1
    kinds = int(tokens.max(initial=0)) + 1
    cells = tokens.astype(np.int64) + events.sequence * kinds
    pairs, which = numbered(cells)
    often = np.bincount(which, minlength=len(pairs))
    token = pairs % kinds
    low, high = np.full(kinds, len(cells) + 1), np.zeros(kinds, np.int64)
    np.minimum.at(low, token, often)
    np.maximum.at(high, token, often)
    on = np.bincount(token, minlength=kinds)
    here = np.zeros(kinds, bool)
    here[token[pairs // kinds == sequence]] = True
    good = np.flatnonzero((low == high) & (high > 1) & here & (2 * on > sequences))
    good = good[on[good] == on[good].max(initial=0)]
    weight = np.bincount(tokens, weights, kinds)[good]
    found: list[int] = []
    tried: dict[int, int] = {}
    for each in good[np.argsort(-weight, kind="stable")].tolist():
        count = int(high[each])
        tried[count] = tried.get(count, 0) + 1
        if tried[count] <= 4 and count * _HEAVY <= _CELLS:
            found.append(each)
    return found[: max(min(_CANDIDATES, _VISITS // max(len(tokens), 1)), 8)]


class _Compared:
    """The events of a sequence, and how alike they are between calls of a site."""

    def __init__(
        self,
        tokens: NDArray[np.int32],
        weights: NDArray[np.float64],
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
    ) -> None:
        names, self._token = numbered(tokens.astype(np.int64))
        self._begin, self._end, self._computed = begin, end, np.cumsum(weights)
        sums = np.bincount(self._token, weights, len(names))
        heavy = np.argsort(-sums, kind="stable")[:_HEAVY]
        self._column = np.full(len(names), -1)
        self._column[heavy] = np.arange(len(heavy))
        self._mean = sums[heavy] / np.bincount(self._token, minlength=len(names))[heavy]

    def of(self, starts: NDArray[np.int64]) -> tuple[float, float, bool]:
        """How alike steps are that begin there, their share of the time, if the last is whole."""
        stop = last_end(self._token, starts)
        inside = slice(int(starts[0]), stop)
        step = np.zeros(stop - int(starts[0]), np.int64)
        step[starts[1:] - starts[0]] = 1
        column = self._column[self._token[inside]]
        known = column >= 0
        cells = np.cumsum(step)[known] * len(self._mean) + column[known]
        shape = len(starts), len(self._mean)
        times = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape) * self._mean
        usual = np.median(times, axis=0)
        both = np.minimum(times, usual).sum(axis=1)
        larger = np.maximum(times.sum(axis=1), usual.sum())
        alike = float(both.sum() / max(float(larger.sum()), 1e-9))
        elapsed = int(self._end[-1]) - int(self._begin[0])
        held = int(self._end[stop - 1]) - int(self._begin[starts[0]])
        whole = usual.sum() / 2 <= times[-1].sum() <= 2 * usual.sum()
        return alike, held / elapsed if elapsed > 0 else 0.0, bool(whole)

    def takes_turns(self, at: NDArray[np.int64], often: int) -> bool:
        """Whether far more is computed before the same one of so many calls in most steps."""
        lasting = np.diff(self._computed[at])[: (len(at) - 1) // often * often].reshape(-1, often)
        usual = np.median(lasting, axis=0)
        longest = lasting.argmax(axis=1) == usual.argmax()
        return bool(
            len(lasting) >= _ENOUGH
            and usual.max() >= _LONGER * max(usual.min(), 1)
            and longest.mean() >= _MOSTLY
        )


def last_end(token: NDArray[np.int64], starts: NDArray[np.int64]) -> int:
    """Where the last step ends: at a site that no other has, or that no other has as often."""
    last, size = int(starts[-1]), int(token.max(initial=0)) + 1
    step = np.zeros(last - int(starts[0]), np.int64)
    step[starts[1:-1] - starts[0]] = 1
    cells = np.cumsum(step) * size + token[starts[0] : last]
    pairs, which = numbered(cells)
    most = np.zeros(size, np.int64)
    np.maximum.at(most, pairs % size, np.bincount(which, minlength=len(pairs)))
    tail = token[last:]
    beyond = np.flatnonzero(times_before(tail) >= most[tail])
    return last + max(int(beyond[0]) if len(beyond) else len(tail), 1)


def _steps_of(
    events: ProgramEvents, tokens: NDArray[np.int32], token: int, per_step: int
) -> NDArray[np.int64]:
    """Step of each event, on all sequences."""
    step = np.empty(len(events), np.int64)
    bounds = events.offsets.tolist()
    times: list[NDArray[np.int64]] = []
    without: list[slice] = []
    for first, stop in pairwise(bounds):
        mine = slice(first, stop)
        starts = np.flatnonzero(tokens[mine] == token)[::per_step]
        if not len(starts):
            without.append(mine)
            continue
        began = np.zeros(stop - first, np.int64)
        began[starts] = 1
        step[mine] = np.cumsum(began) - 1
        end = last_end(numbered(events.coarse[mine].astype(np.int64))[1], starts)
        step[first + end : stop] = len(starts)
        times.append(np.append(events.begin[mine][starts], events.end[first + end - 1]))
    usual = np.mean(times, axis=0)
    for mine in without:  # what does not make that call is in a step while others are
        step[mine] = np.searchsorted(usual, events.begin[mine], side="right") - 1
    return step


def by_site(events: ProgramEvents, steps: TimeSteps | None) -> Steps:
    """The nest of a run by its sites: inside of steps, ahead of them and behind."""
    count = 0 if steps is None else steps.steps
    step = np.full(len(events), -1) if steps is None else steps.step
    part = np.where(step < 0, 0, np.where(step < count, 1, 2))
    turn = np.where(part == 1, step, 0)
    segment = (events.sequence * 3 + part).astype(np.int64) * max(count, 1) + turn
    tokens = int(events.tagged.max(initial=0)) + 1
    sites, site = numbered((part * tokens + events.tagged).astype(np.int64))
    order = np.lexsort((_position(segment, site, len(sites)), sites // tokens))
    number = np.empty(len(sites), np.int64)
    number[order] = np.arange(len(sites))
    place, passed = number[site].astype(np.int32), times_before(site + segment * max(len(sites), 1))
    execution = np.empty(len(events), np.int32)
    parts: tuple[list[int | FoundLoop], ...] = ([], [], [])
    rows_of = zip(events_at(place, len(sites)), (sites[order] // tokens).tolist(), strict=True)
    for this, (rows, of_part) in enumerate(rows_of):
        counts = np.zeros(count if of_part == 1 else 1, np.int64)
        np.maximum.at(counts, turn[rows], passed[rows] + 1)
        if counts.max() == 1:
            execution[rows] = turn[rows]
            parts[of_part].append(this)
        else:
            execution[rows] = (np.cumsum(counts) - counts)[turn[rows]] + passed[rows]
            parts[of_part].append(FoundLoop(tuple(counts.tolist()), (Leaf((this,)),)))
    ahead, body, behind = map(grouped, parts)
    loop = (FoundLoop((count,), body),) if count else ()
    common = Common((*ahead, *loop, *behind), place, execution)
    kinds = _kinds(place[part == 1], turn[part == 1], count)
    alike = 0.0 if steps is None else steps.alike
    return Steps(common, len(ahead) if count else None, kinds, alike)


def _position(
    segment: NDArray[np.int64], site: NDArray[np.int64], sites: int
) -> NDArray[np.float64]:
    """Where sites are in their segments, on average, 0 to 1."""
    rank = times_before(segment)
    _, which = numbered(segment)
    length = np.bincount(which)[which]
    sums = np.bincount(site, (rank + 0.5) / length, sites)
    mean: NDArray[np.float64] = sums / np.maximum(np.bincount(site, minlength=sites), 1)
    return mean


def _kinds(place: NDArray[np.int32], turn: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Kinds of steps by the sites that they pass; one kind where there are too many."""
    if not count:
        return np.empty(0, np.int64)
    first = int(place.min(initial=0))
    passes = np.zeros((count, int(place.max(initial=0)) - first + 1), bool)
    passes[turn, place - first] = True
    _, kind, often = np.unique(passes, axis=0, return_inverse=True, return_counts=True)
    if len(often) > _KINDS or 2 * len(often) > count:
        return np.zeros(count, np.int64)
    rank = np.empty(len(often), np.int64)
    rank[np.argsort(-often, kind="stable")] = np.arange(len(often))
    return rank[kind.reshape(-1)]
