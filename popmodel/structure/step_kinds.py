"""The iterations of a run where loops are not all: steps of several kinds, and those at the ends.

A loop that was found from exact repetition is not always the loop of the program. Steps that take
turns (every other one exchanges more) make a loop around two of them; a last step with one call
more stands outside. Here the iterations of the largest loop are cut anew where they consist of
steps that are alike, and what stands beside the loop and is like an iteration joins it. Calls that
only some steps have are places that the others pass without.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.arrays import among, spread
from popmodel.kernel import _kernel
from popmodel.structure.nest_items import Slot, Source, StructureItem, items_of, rewritten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from popmodel.structure.common_nest import Common
    from popmodel.structure.nest_items import Number
    from popmodel.structure.program_events import ProgramEvents

_HEAVY = 0.5
"""Share of the time of the longest burst of its kind from which on one begins a step, too."""
_LIGHT = 0.1
"""Share of the time of a step below which extras are no work of a loop around."""
_FEW = 0.2
"""Extra calls, or places of them, by those of a step, up to which they are none either."""
_LIKE = 0.75
"""Share of the time of steps in what they have in common."""
_SHARED = 0.5
"""Share of the items of the longer of two steps that both have."""
_RATIO = 2.5
"""How much longer one step may be than another."""
_FORMS = 64
"""Kinds of steps, beyond which they are not steps of one loop."""
_WORTH = np.array([1.0, 0.5])
"""What speaks for two items being one: that they are alike, or kin."""


class Steps(NamedTuple):
    """A nest, and the loop of it whose iterations are the steps of the run."""

    common: Common
    loop: int | None  # Its index in the nest
    kinds: NDArray[np.int64]  # int64[n]: Kind of each iteration, the most frequent first
    alike: float = 1.0  # How alike they are in what takes their time, 0 to 1


def steps_of(events: ProgramEvents, common: Common) -> Steps:
    """Find the steps of a run."""
    items = items_of(events, common)
    loops = [at for at, each in enumerate(items) if each.is_loop]
    if not loops:
        return Steps(common, None, np.empty(0, np.int64))
    held = _elapsed([items[at] for at in loops], events, common)
    at = max(zip(held, (len(items[at].places) for at in loops), loops, strict=True))[-1]
    behind = items[at + 1] if at + 1 < len(items) else None
    steps = _cut(items[at], behind) or _as_they_are(items[at])
    return _put_together(common, _with_the_ends(items[:at], steps, items[at + 1 :]))


def _elapsed(loops: Sequence[StructureItem], events: ProgramEvents, common: Common) -> list[float]:
    """Time from the first event to the last of each loop at the top, mean of all sequences, ns.

    Not computing alone: a warm-up may compute more than iterations that wait for each other.
    """
    loop_at = np.full(common.places, -1)
    for number, loop in enumerate(loops):
        loop_at[loop.places] = number
    loop_of_event = loop_at[common.place]
    inside = np.flatnonzero(loop_of_event >= 0)
    shape = len(loops), len(events.offsets) - 1
    cells = loop_of_event[inside], events.sequence[inside]
    since = np.full(shape, np.iinfo(np.int64).max)
    until = np.full(shape, np.iinfo(np.int64).min)
    np.minimum.at(since, cells, events.begin[inside])
    np.maximum.at(until, cells, events.end[inside])
    elapsed: list[float] = np.where(until < since, 0, until - since).mean(axis=1).tolist()
    return elapsed


class _StepRun(NamedTuple):
    """Executions of items, one after the other."""

    items: dict[int, StructureItem]  # By their numbers; others are None
    # int64[n]: Number of each item, and its execution.
    item: NDArray[np.int64]
    turn: NDArray[np.int64]

    @classmethod
    def once(cls, item: StructureItem) -> _StepRun:
        """The first execution of an item."""
        return cls({item.number: item}, np.array([item.number]), np.zeros(1, np.int64))

    @classmethod
    def chained(cls, parts: Sequence[_StepRun]) -> _StepRun:
        """Some runs, one after the other."""
        items = {number: item for part in parts for number, item in part.items.items()}
        columns = (np.concatenate([part[column] for part in parts]) for column in (1, 2))
        return cls(items, *columns)

    def rows(self, some: slice) -> _StepRun:
        """Some of its executions."""
        return _StepRun(self.items, self.item[some], self.turn[some])

    def labels(self) -> NDArray[np.int64]:
        """What each item is like, and whose kin: int64[n, 2]."""
        labels = np.zeros((max(self.items, default=0) + 1, 2), np.int64)
        for number, item in self.items.items():
            labels[number] = item.likeness, item.kin
        return labels[self.item]

    def time(self) -> NDArray[np.float64]:
        """Computing in each item, ns."""
        return self.of_each(lambda item: item.time)

    def of_each(self, values: Callable[[StructureItem], NDArray[Number]]) -> NDArray[Number]:
        """What items have at these executions."""
        found = np.zeros(len(self.item), values(next(iter(self.items.values()))).dtype)
        order = np.argsort(self.item, kind="stable")
        numbers, first = np.unique(self.item[order], return_index=True)
        for number, rows in zip(numbers.tolist(), np.split(order, first[1:]), strict=False):
            found[rows] = values(self.items[number])[self.turn[rows]]
        return found


class _CutRun(NamedTuple):
    """A run of items, in it steps: step k is rows ``starts[k] .. starts[k + 1]``."""

    run: _StepRun
    starts: NDArray[np.int64]


def _as_they_are(loop: StructureItem) -> _CutRun:
    """The iterations of a loop as steps."""
    count = int(loop.counts.sum())
    numbers = np.array([each.number for each in loop.body], np.int64)
    run = _StepRun(
        {each.number: each for each in loop.body},
        np.tile(numbers, count),
        np.repeat(np.arange(count), len(numbers)),
    )
    return _present(_CutRun(run, np.arange(count + 1) * len(numbers)))


def _present(steps: _CutRun) -> _CutRun:
    """Steps without those executions of places that no sequence has an event at."""
    run, starts = steps
    there = run.of_each(lambda item: item.events) > 0
    passed = np.concatenate([[0], np.cumsum(there)])
    return _CutRun(_StepRun(run.items, run.item[there], run.turn[there]), passed[starts])


def _with_inner(loop: StructureItem, inner: StructureItem) -> _StepRun:
    """The iterations of a loop, and in them those of a loop inside."""
    around, body = _as_they_are(loop).run, np.array([item.number for item in inner.body])
    is_inner = around.item == inner.number
    passes = np.concatenate([[0], np.cumsum(inner.counts)])
    lengths = np.where(is_inner, np.diff(passes)[around.turn] * len(body), 1)
    of, place = spread(np.zeros_like(lengths), lengths)
    item = np.where(is_inner[of], body[place % len(body)], around.item[of])
    turn = np.where(is_inner[of], passes[around.turn[of]] + place // len(body), around.turn[of])
    run = _StepRun(around.items | {each.number: each for each in inner.body}, item, turn)
    return _present(_CutRun(run, np.zeros(1, np.int64))).run


def _cut(loop: StructureItem, behind: StructureItem | None) -> _CutRun | None:
    """Cut a loop anew into steps that are alike; None where its iterations are all there is.

    Where what begins its body comes fewer times behind it, the run ends in a cycle of such steps.
    """
    for inner in loop.body:
        ends_in_it = (
            behind is not None
            and inner is loop.body[0]
            and inner.likeness == behind.likeness
            and behind.counts.sum() < inner.counts[-1:].sum()
        )
        if ends_in_it or _is_a_step(loop, inner):
            found = _alike(_with_inner(loop, inner), len(inner.counts), extras=ends_in_it)
            if found is not None:
                return found
    return _alike(_as_they_are(loop).run, int(loop.counts.sum()))


def _is_a_step(loop: StructureItem, inner: StructureItem) -> bool:
    """Whether the iterations of a loop inside may be the steps, and what is around them extras.

    A solver in a time step is repeated as often as it takes. What comes every so many steps is seen
    by counts that differ at the ends of the run only, or by next to no time and few calls.
    """
    counts, whole, own = inner.counts, float(loop.time.sum()), float(inner.time.sum())
    if own < _HEAVY * whole or not inner.is_loop:
        return False
    light = (whole - own) / len(counts) <= _LIGHT * own / int(counts.sum())
    if len(counts) < 2 or np.ptp(counts) == 0:
        calls, extra = int(inner.events.sum()), int(loop.events.sum() - inner.events.sum())
        few = extra / len(counts) <= _FEW * calls / int(counts.sum())
        few = few or len(loop.places) - len(inner.places) <= _FEW * len(inner.places)
        return light and few
    return light or (len(counts) > 2 and np.ptp(counts[1:-1]) == 0)


def _alike(run: _StepRun, fewest: int, extras: bool = False) -> _CutRun | None:
    """Cut a run of items where its heaviest bursts are; None if the steps are not alike.

    With extras all are that have what usual ones have, however long they take.
    """
    like, time = run.labels()[:, 0], run.time()
    if not time.any():
        return None
    heaviest = int(np.argmax(np.bincount(like, time)))
    mine = np.flatnonzero(like == heaviest)
    mean = np.bincount(run.item[mine], time[mine]) / np.maximum(np.bincount(run.item[mine]), 1)
    heavy = np.flatnonzero(mean >= _HEAVY * mean.max())
    starts = np.flatnonzero(among(run.item, heavy.tolist()))
    if len(starts) <= fewest:
        return None
    starts = _from_the_first(like, starts)
    steps = _CutRun(run, np.append(starts, len(run.item)))
    forms = _forms(steps, like)
    if len(forms.of) > _FORMS:
        return None
    usual = np.array(forms.of[forms.usual]), _typical(steps, forms, forms.usual, time)
    for form in range(len(forms.of)):
        last_only = form == forms.step[-1] and np.count_nonzero(forms.step == form) == 1
        its_own = np.array(forms.of[form]), _typical(steps, forms, form, time)
        has_all = extras and len(_pairs(usual[0], its_own[0])[0]) == len(usual[0])
        if not (last_only or has_all or _are_like(*usual, *its_own)):
            return None
    return steps


def _typical(
    steps: _CutRun, forms: _Forms, form: int, time: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Median time of each item in the steps of a form, ns."""
    begins = steps.starts[:-1][forms.step == form]
    median: NDArray[np.float64] = np.median(
        time[begins[:, None] + np.arange(len(forms.of[form]))], axis=0
    )
    return median


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


def _forms(steps: _CutRun, like: NDArray[np.int64]) -> _Forms:
    known: dict[bytes, int] = {}
    bounds = pairwise(steps.starts.tolist())
    form = [known.setdefault(like[begin:end].tobytes(), len(known)) for begin, end in bounds]
    forms = [tuple(np.frombuffer(key, np.int64).tolist()) for key in known]
    return _Forms(forms, np.array(form), int(np.argmax(np.bincount(form))))


def _pairs(
    one: Sequence[int] | NDArray[np.int64], other: Sequence[int] | NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    left, right = (np.asarray(each, np.int64) for each in (one, other))
    if left.ndim == 1:
        left, right = left[:, None], right[:, None]
    return _kernel.align(left, right, _WORTH[: left.shape[1]])


def _are_like(
    one: NDArray[np.int64],
    one_time: NDArray[np.float64],
    other: NDArray[np.int64],
    other_time: NDArray[np.float64],
) -> bool:
    """Whether two steps have most of their time and of their items in common."""
    first, second = _pairs(one, other)
    whole, others = float(one_time.sum()), float(other_time.sum())
    return (
        whole / _RATIO <= others <= whole * _RATIO
        and len(first) >= _SHARED * max(len(one), len(other))
        and float(one_time[first].sum()) >= _LIKE * whole
        and float(other_time[second].sum()) >= _LIKE * others
    )


class _Body(NamedTuple):
    """The body of all steps."""

    labels: NDArray[np.int64]  # int64[n, 2]: What its items are like, and whose kin
    # float64[n]: How long each is in a usual step, the median, ns; 0 where that has none.
    time: NDArray[np.float64]
    usual: NDArray[np.bool_]  # bool[n]: Whether a usual step has it

    @classmethod
    def of(cls, steps: _CutRun) -> _Body:
        """The body of some steps."""
        labels, time = steps.run.labels(), steps.run.time()
        forms = _forms(steps, labels[:, 0])
        columns = _columns(forms)
        size = 1 + max(map(max, columns))
        body = cls(np.empty((size, 2), np.int64), np.zeros(size), np.zeros(size, bool))
        for form, places in enumerate(columns):
            first = steps.starts[np.argmax(forms.step == form)]
            body.labels[places] = labels[first : first + len(places)]
        places = columns[forms.usual]
        body.usual[places] = True
        body.time[places] = _typical(steps, forms, forms.usual, time)
        return body

    def backwards(self) -> _Body:
        """The same from its end."""
        return _Body(self.labels[::-1], self.time[::-1], self.usual[::-1])

    def steps(
        self, labels: NDArray[np.int64], time: NDArray[np.float64], *, anyhow: bool = False
    ) -> list[NDArray[np.int64]]:
        """The steps that some items begin with: which of them each has, and as which of the body.

        int64[2, n] each. A step lasts about as long as a usual one, or as that beside it, but
        where it may last `anyhow`.
        """
        found: list[NDArray[np.int64]] = []
        most = int((1 + _SHARED) * len(self.labels))
        at, beside, whole = 0, self.time.sum(), self.time.sum()
        while at < len(labels):
            first, second = _pairs(self.labels, labels[at : at + most])
            if not len(second) or second[0] > 0:
                break
            end = at + int(second[-1]) + 1
            usual, own = self.usual[first], time[at:end].sum()
            alike = (
                (anyhow or min(whole, beside) / _RATIO <= own <= max(whole, beside) * _RATIO)
                and usual.sum() >= _LIKE * self.usual.sum()
                and self.time[first].sum() >= _LIKE * whole
                and time[at + second].sum() >= _LIKE * own
            )
            if not alike:
                break
            found.append(np.stack([at + second, first]))
            at, beside = end, own
        return found


def _with_the_ends(
    ahead: Sequence[StructureItem], steps: _CutRun, behind: Sequence[StructureItem]
) -> _CutRun:
    """Let steps join that are beside the others; leave out a last one that is none."""
    (run, starts), body = steps, _Body.of(steps)
    last = run.labels()[starts[-2] : starts[-1]]
    if len(starts) > 2 and (
        body.usual[_pairs(body.labels[:, 0], last[:, 0])[0]].sum() < _LIKE * body.usual.sum()
    ):
        starts = starts[:-1]
    inside = run.rows(slice(starts[0], starts[-1]))
    before, sizes_before = _joined(run.rows(slice(starts[0])), ahead[::-1], body, -1)
    after, sizes_after = _joined(run.rows(slice(starts[-1], None)), behind, body, 1)
    sizes = [*sizes_before[::-1], *np.diff(starts).tolist(), *sizes_after]
    first = len(before.item) - sum(sizes_before)
    return _CutRun(
        _StepRun.chained([before, inside, after]), first + np.cumsum([0, *sizes], dtype=np.int64)
    )


def _joined(
    rest: _StepRun, items: Sequence[StructureItem], body: _Body, way: int
) -> tuple[_StepRun, list[int]]:
    """What stands beside steps, behind (`way` 1) or ahead of them (-1), and the steps in it.

    That is the rest of what they were cut from, and what is executed once, nearest first. Loops of
    steps are unrolled as far as these join. The number of items of each that does, nearest first.
    """
    unrolled = [_unrolled(item, body) for item in items]
    body = body if way > 0 else body.backwards()
    run = _StepRun.chained([part.rows(slice(None, None, way)) for part in (rest, *unrolled)])
    labels, time = run.labels(), run.time()
    sizes: list[int] = []
    for rows, places in body.steps(labels, time):
        sizes.append(int(rows[-1]) + 1 - sum(sizes))
        for number, like in zip(run.item[rows].tolist(), body.labels[places, 0], strict=True):
            run.items[number] = replace(run.items[number], likeness=int(like))
    at = sum(sizes)
    parts, passed = [rest], len(rest.item)
    for item, part in zip(items, unrolled, strict=True):
        parts.append(part if passed < at else _StepRun.once(item))
        passed += len(part.item)
    whole = _StepRun.chained(parts if way > 0 else parts[::-1])
    return whole._replace(items=whole.items | run.items), sizes


def _unrolled(item: StructureItem, body: _Body) -> _StepRun:
    """The iterations of a loop if they are steps, wherever these begin; else the item itself."""
    if item.is_loop:
        run, starts = _as_they_are(item)
        labels, time = run.labels()[: starts[1]], run.time()[: starts[1]]
        first = -int(np.argmax(labels[:, 1] == body.labels[0, 1]))
        labels, time = np.roll(labels, first, axis=0), np.roll(time, first)
        steps = body.steps(labels, time, anyhow=True)
        if steps and steps[-1][0, -1] + 1 == starts[1]:
            return run
    return _StepRun.once(item)


def _put_together(common: Common, steps: _CutRun) -> Steps:
    """The nest in which the steps are the iterations of a loop."""
    run, starts = steps
    forms = _forms(steps, run.labels()[:, 0])
    columns = _columns(forms)
    rows: list[list[NDArray[np.int64]]] = [[] for _ in range(1 + max(map(max, columns)))]
    for form, places in enumerate(columns):
        mine = np.flatnonzero(forms.step == form)
        for offset, slot in enumerate(places):
            rows[slot].append(np.stack([starts[mine] + offset, mine]))
    body = [_slot(run, *np.concatenate(each, axis=1)) for each in rows]
    ahead, behind = (
        [_slot(run, np.array([row]), np.zeros(1, np.int64)) for row in some]
        for some in (range(starts[0]), range(starts[-1], len(run.item)))
    )
    made, loop = rewritten(common, ahead, len(starts) - 1, body, behind)
    often = np.bincount(forms.step, minlength=len(columns))
    kinds: dict[frozenset[int], int] = {}
    for form in np.argsort(-often, kind="stable").tolist():
        kinds.setdefault(frozenset(columns[form]), len(kinds))
    kind = np.array([kinds[frozenset(each)] for each in columns], np.int64)
    return Steps(made, loop, kind[forms.step])


def _slot(run: _StepRun, rows: NDArray[np.int64], new: NDArray[np.int64]) -> Slot:
    """What some rows of a run are together, at these executions."""
    item, old = run.item[rows], run.turn[rows]
    return [
        Source(run.items[n], old[item == n], new[item == n]) for n in dict.fromkeys(item.tolist())
    ]


def _columns(forms: _Forms) -> list[list[int]]:
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
