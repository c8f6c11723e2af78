"""The iterations of a run where loops are not all: steps of several kinds, and those at the ends.

A loop that was found from exact repetition is not always the loop of the program. Steps that take
turns (every other one exchanges more) make a loop around two of them; a last step with one call
more stands outside. Here the iterations of the largest loop are cut anew where they consist of
steps that are alike, and what stands beside the loop and is like an iteration joins it. Calls that
only some steps have are places that the others pass without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.arrays import among
from popmodel.kernel import _kernel
from popmodel.structure.items import Item, items_of, ranges
from popmodel.structure.rewrite import Around, Slot, Source, rewritten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.structure.common import Common
    from popmodel.structure.events import Events

__all__ = ["Steps", "steps_of"]

_HEAVY = 0.5
"""Share of the time of the longest burst of its kind from which on one begins a step, too."""
_LIKE = 0.75
"""Share of the time of steps in what they have in common."""
_SHARED = 0.5
"""Share of the items of the longer of two steps that both have."""
_RATIO = 2.5
"""How much longer one step may be than another."""
_FORMS = 64
"""Kinds of steps, beyond which they are not steps of one loop."""
_ONE = np.ones(1)


class Steps(NamedTuple):
    """A nest, and the loop of it whose iterations are the steps of the run.

    Attributes
    ----------
    common : Common
    loop : int or None
        Its index in the nest.
    kinds : int64[n]
        Kind of each iteration, the most frequent first.
    """

    common: Common
    loop: int | None
    kinds: NDArray[np.int64]


def steps_of(events: Events, common: Common) -> Steps:
    """Find the steps of a run."""
    items = items_of(events, common)
    loops = [at for at, each in enumerate(items) if each.is_loop]
    if not loops:
        return Steps(common, None, np.empty(0, np.int64))
    at = max(loops, key=lambda at: (float(items[at].time.sum()), items[at].size))
    steps = _cut(items[at]) or _as_they_are(items[at])
    return _put_together(common, _with_the_ends(_between(items[:at], steps, items[at + 1 :])))


class _Run(NamedTuple):
    """Executions of items, one after the other.

    Attributes
    ----------
    items : list of Item
        By their numbers; others are None.
    item, turn : int64[n]
        Number of each item, and its execution.
    """

    items: dict[int, Item]
    item: NDArray[np.int64]
    turn: NDArray[np.int64]

    def likeness(self) -> NDArray[np.int64]:
        """What each item is like."""
        like = np.zeros(max(self.items, default=0) + 1, np.int64)
        for number, each in self.items.items():
            like[number] = each.likeness
        return like[self.item]

    def time(self) -> NDArray[np.float64]:
        """Computing in each item, ns."""
        found = np.zeros(len(self.item))
        for number, each in self.items.items():
            mine = self.item == number
            found[mine] = each.time[self.turn[mine]]
        return found

    def part(self, begin: int, end: int) -> _Run:
        """Some of them."""
        return _Run(self.items, self.item[begin:end], self.turn[begin:end])


class _Steps(NamedTuple):
    """A run of items, in it steps: step k is rows ``starts[k] .. starts[k + 1]``."""

    run: _Run
    starts: NDArray[np.int64]


def _as_they_are(loop: Item) -> _Steps:
    """The iterations of a loop as steps."""
    count = int(loop.counts.sum())
    numbers = np.array([each.number for each in loop.body], np.int64)
    run = _Run(
        {each.number: each for each in loop.body},
        np.tile(numbers, count),
        np.repeat(np.arange(count), len(numbers)),
    )
    return _Steps(run, np.arange(count + 1) * len(numbers))


def _unrolled(loop: Item, inner: Item) -> _Run:
    """The iterations of a loop, and in them those of a loop inside."""
    count = int(loop.counts.sum())
    at = loop.body.index(inner)
    ahead, body, behind = loop.body[:at], inner.body, loop.body[at + 1 :]
    lengths = len(ahead) + inner.counts * len(body) + len(behind)
    place = ranges(lengths)
    of = np.repeat(np.arange(count), lengths)
    numbers = np.array([each.number for each in (*ahead, *body, *behind)], np.int64)
    within = place - len(ahead)
    in_body = (within >= 0) & (within < (inner.counts * len(body))[of])
    first = np.cumsum(inner.counts) - inner.counts
    late = within - (inner.counts * len(body))[of] + len(ahead) + len(body)
    column = np.where(within < 0, place, np.where(in_body, len(ahead) + within % len(body), late))
    turn = np.where(in_body, first[of] + within // len(body), of)
    return _Run({each.number: each for each in (*ahead, *body, *behind)}, numbers[column], turn)


def _cut(loop: Item) -> _Steps | None:
    """Cut a loop anew into steps that are alike; None where its iterations are all there is."""
    whole = float(loop.time.sum())
    for inner in loop.body:
        varies = inner.is_loop and len(inner.counts) > 1 and np.ptp(inner.counts) > 0
        if varies and float(inner.time.sum()) >= _HEAVY * whole:
            found = _alike(_unrolled(loop, inner), len(inner.counts))
            if found is not None:
                return found
    return _alike(_as_they_are(loop).run, int(loop.counts.sum()))


def _alike(run: _Run, fewest: int) -> _Steps | None:
    """Cut a run of items where its heaviest bursts are; None if the steps are not alike."""
    like, time = run.likeness(), run.time()
    heaviest = int(np.argmax(np.bincount(like, time)))
    mine = np.flatnonzero(like == heaviest)
    mean = np.bincount(run.item[mine], time[mine]) / np.maximum(np.bincount(run.item[mine]), 1)
    heavy = np.flatnonzero(mean >= _HEAVY * mean.max())
    starts = np.flatnonzero(among(run.item, heavy.tolist()))
    if len(starts) <= fewest or not mean.max():
        return None
    starts = _from_the_first(like, starts)
    steps = _Steps(run, np.append(starts, len(run.item)))
    forms = _forms(steps, like)
    if len(forms.of) > _FORMS:
        return None
    times = np.diff(np.concatenate([[0.0], np.cumsum(time)])[steps.starts])
    usual = forms.usual
    typical = np.median(times[forms.step == usual])
    for form in range(len(forms.of)):
        last_only = form == forms.step[-1] and np.count_nonzero(forms.step == form) == 1
        if form == usual or last_only:
            continue
        k = int(np.argmax(forms.step == form))
        reference = int(np.argmax(forms.step == usual))
        if not _is_like(steps, reference, k, like, time):
            return None
        mean_time = float(np.median(times[forms.step == form]))
        if not typical / _RATIO <= mean_time <= typical * _RATIO:
            return None
    return steps


def _from_the_first(like: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Begin steps with what begins the run, if that comes once in each of them."""
    for candidate in dict.fromkeys(like[: starts[0] + 1].tolist()):
        places = np.flatnonzero(like == candidate)
        once = len(places) == len(starts) and np.all(places <= starts)
        if once and np.all(places[1:] > starts[:-1]):
            return places
    return starts


class _Forms(NamedTuple):
    """What steps consist of: each form as likenesses; the form of each step; the usual form."""

    of: list[tuple[int, ...]]
    step: NDArray[np.int64]
    usual: int


def _forms(steps: _Steps, like: NDArray[np.int64]) -> _Forms:
    known: dict[bytes, int] = {}
    forms: list[tuple[int, ...]] = []
    form = np.empty(len(steps.starts) - 1, np.int64)
    bounds = steps.starts.tolist()
    for step in range(len(form)):
        mine = like[bounds[step] : bounds[step + 1]]
        form[step] = known.setdefault(mine.tobytes(), len(known))
        if form[step] == len(forms):
            forms.append(tuple(mine.tolist()))
    return _Forms(forms, form, int(np.argmax(np.bincount(form))))


def _pairs(
    one: Sequence[int] | NDArray[np.int64], other: Sequence[int] | NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    left, right = (np.asarray(each, np.int64).reshape(-1, 1) for each in (one, other))
    return _kernel.align(left, right, _ONE)


def _is_like(
    steps: _Steps, one: int, other: int, like: NDArray[np.int64], time: NDArray[np.float64]
) -> bool:
    a, b = (slice(*steps.starts[step : step + 2].tolist()) for step in (one, other))
    return _are_like(like[a], time[a], like[b], time[b])


def _are_like(
    one: NDArray[np.int64],
    one_time: NDArray[np.float64],
    other: NDArray[np.int64],
    other_time: NDArray[np.float64],
) -> bool:
    """Whether two steps have most of their time and of their items in common."""
    first, second = _pairs(one, other)
    return (
        len(first) >= _SHARED * max(len(one), len(other))
        and one_time[first].sum() >= _LIKE * one_time.sum()
        and other_time[second].sum() >= _LIKE * other_time.sum()
    )


def _between(ahead: Sequence[Item], steps: _Steps, behind: Sequence[Item]) -> _Steps:
    """Put steps between what is executed once, ahead of them and behind."""
    items = steps.run.items | {each.number: each for each in (*ahead, *behind)}
    numbers = [np.array([each.number for each in some], np.int64) for some in (ahead, behind)]
    once = [np.zeros(len(some), np.int64) for some in (ahead, behind)]
    run = _Run(
        items,
        np.concatenate([numbers[0], steps.run.item, numbers[1]]),
        np.concatenate([once[0], steps.run.turn, once[1]]),
    )
    return _Steps(run, steps.starts + len(ahead))


def _with_the_ends(steps: _Steps) -> _Steps:
    """Let steps join that are beside the others; leave out a last one that is none."""
    like, time = steps.run.likeness(), steps.run.time()
    forms = _forms(steps, like)
    step = int(np.argmax(forms.step == forms.usual))
    usual = slice(*steps.starts[step : step + 2].tolist())
    starts = steps.starts.tolist()
    if len(starts) > 2 and not _is_like(steps, step, len(starts) - 2, like, time):
        starts.pop()
    model, lasting = like[usual], time[usual]
    while length := _next_step(model, lasting, like[starts[-1] :], time[starts[-1] :]):
        starts.append(starts[-1] + length)
    model, lasting, like, time = model[::-1], lasting[::-1], like[::-1], time[::-1]
    while length := _next_step(
        model, lasting, like[len(like) - starts[0] :], time[len(time) - starts[0] :]
    ):
        starts.insert(0, starts[0] - length)
    return _Steps(steps.run, np.array(starts))


def _next_step(
    model: NDArray[np.int64],
    model_time: NDArray[np.float64],
    like: NDArray[np.int64],
    time: NDArray[np.float64],
) -> int:
    """How many of the items that follow are one more step; 0 if there is none."""
    most = len(model) + int(_SHARED * len(model))
    first, second = _pairs(model, like[:most])
    if not len(second) or second[0] > 0:
        return 0
    end = int(second[-1]) + 1
    whole, found = float(model_time.sum()), float(time[:end].sum())
    if not whole / _RATIO <= found <= whole * _RATIO or len(first) < _LIKE * len(model):
        return 0
    return end if _are_like(model, model_time, like[:end], time[:end]) else 0


def _put_together(common: Common, steps: _Steps) -> Steps:
    """The nest in which the steps are the iterations of a loop."""
    run, starts = steps
    forms = _forms(steps, run.likeness())
    columns = _merged(forms)
    rows: list[list[NDArray[np.int64]]] = [[] for _ in range(1 + max(map(max, columns)))]
    for form, places in enumerate(columns):
        mine = np.flatnonzero(forms.step == form)
        for offset, slot in enumerate(places):
            rows[slot].append(np.stack([starts[mine] + offset, mine]))
    body = tuple(_slot(run, *np.concatenate(each, axis=1)) for each in rows)
    ahead, behind = (
        [_slot(run, np.array([row]), np.zeros(1, np.int64)) for row in some]
        for some in (range(starts[0]), range(starts[-1], len(run.item)))
    )
    made = rewritten(common, [*ahead, Around(len(starts) - 1, body), *behind])
    loops = [slot.sources[0].item.is_loop for slot in ahead]
    leaves = sum(not loop and (at == 0 or loops[at - 1]) for at, loop in enumerate(loops))
    often = np.bincount(forms.step, minlength=len(columns))
    kinds: dict[frozenset[int], int] = {}
    for form in np.argsort(-often, kind="stable").tolist():
        kinds.setdefault(frozenset(columns[form]), len(kinds))
    kind = np.array([kinds[frozenset(each)] for each in columns], np.int64)
    return Steps(made, sum(loops) + leaves, kind[forms.step])


def _slot(run: _Run, rows: NDArray[np.int64], new: NDArray[np.int64]) -> Slot:
    """What some rows of a run are together, at these executions."""
    item, old = run.item[rows], run.turn[rows]
    numbers = dict.fromkeys(item.tolist())
    sources = [Source(run.items[n], old[item == n], new[item == n]) for n in numbers]
    return Slot(tuple(sources))


def _merged(forms: _Forms) -> list[list[int]]:
    """Of each form where its items stand in the body that has them all."""
    known: list[int] = []  # likeness of each place of the body, as they were added
    order: list[int] = []  # the places in the order of the body
    columns: list[list[int]] = [[] for _ in forms.of]
    for form in sorted(range(len(forms.of)), key=lambda form: form != forms.usual):
        items = forms.of[form]
        pairs = _pairs([known[each] for each in order], items)
        place = dict(zip(pairs[1].tolist(), pairs[0].tolist(), strict=True))
        added, at = [], 0
        for index, likeness in enumerate(items):
            if index in place:
                added += order[at : place[index]]
                at = place[index]
                columns[form].append(order[at])
            else:
                columns[form].append(len(known))
                known.append(likeness)
            added.append(columns[form][-1])
            at += index in place
        order = added + order[at:]
    position = {place: index for index, place in enumerate(order)}
    return [[position[each] for each in places] for places in columns]
