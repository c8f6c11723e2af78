"""The iterations of a run where loops are not all: steps of several kinds, and those at the ends.

A loop that was found from exact repetition is not always the loop of the program. Steps that take
turns (every other one exchanges more) make a loop around two of them; a last step with one call
more stands outside. Here the iterations of the largest loop are cut anew where they consist of
steps that are alike, and what stands beside the loop and is like an iteration joins it. Calls that
only some steps have are places that the others pass without.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from popmodel.base.arrays import among, distinct
from popmodel.base.values import dataclass
from popmodel.kernel import _kernel
from popmodel.structure.common_nest import Common
from popmodel.structure.structure import FoundLoop, Leaf, Nest, events_at, grouped
from popmodel.traces.intervals import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from popmodel.structure.program_events import ProgramEvents

Number = TypeVar("Number", np.float64, np.int64)

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
_BESIDE = 2
"""How many items beside the steps may be loops of steps."""
_ONE = np.ones(1)


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
    steps = _cut(items[at]) or _as_they_are(items[at])
    body = _Body.of(steps)
    ahead = _unrolled_last(items[:at][::-1], body)
    behind = _unrolled_last(items[at + 1 :], body)
    whole = _between(ahead.backwards(), steps, behind)
    return _put_together(common, _with_the_ends(whole, body))


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

    def likeness(self) -> NDArray[np.int64]:
        """What each item is like."""
        like = np.zeros(max(self.items, default=0) + 1, np.int64)
        for number, each in self.items.items():
            like[number] = each.likeness
        return like[self.item]

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

    def backwards(self) -> _StepRun:
        """The same from its end."""
        return _StepRun(self.items, self.item[::-1], self.turn[::-1])


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


def _unrolled(loop: StructureItem, inner: StructureItem) -> _StepRun:
    """The iterations of a loop, and in them those of a loop inside."""
    at = loop.body.index(inner)
    ahead, body, behind = loop.body[:at], inner.body, loop.body[at + 1 :]
    lengths = len(ahead) + inner.counts * len(body) + len(behind)
    of, place = spread(np.zeros_like(lengths), lengths)
    numbers = np.array([each.number for each in (*ahead, *body, *behind)], np.int64)
    within = place - len(ahead)
    in_body = (within >= 0) & (within < (inner.counts * len(body))[of])
    first = np.cumsum(inner.counts) - inner.counts
    late = within - (inner.counts * len(body))[of] + len(ahead) + len(body)
    column = np.where(within < 0, place, np.where(in_body, len(ahead) + within % len(body), late))
    turn = np.where(in_body, first[of] + within // len(body), of)
    run = _StepRun({each.number: each for each in (*ahead, *body, *behind)}, numbers[column], turn)
    return _present(_CutRun(run, np.zeros(1, np.int64))).run


def _cut(loop: StructureItem) -> _CutRun | None:
    """Cut a loop anew into steps that are alike; None where its iterations are all there is."""
    for inner in loop.body:
        if _is_a_step(loop, inner):
            found = _alike(_unrolled(loop, inner), len(inner.counts))
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


def _alike(run: _StepRun, fewest: int) -> _CutRun | None:
    """Cut a run of items where its heaviest bursts are; None if the steps are not alike."""
    like, time = run.likeness(), run.time()
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
        if not last_only and not _are_like(*usual, *its_own):
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

    like: NDArray[np.int64]  # int64[n]: What its items are like
    # float64[n]: How long each is in a usual step, the median, ns; 0 where that has none.
    time: NDArray[np.float64]
    usual: NDArray[np.bool_]  # bool[n]: Whether a usual step has it

    @classmethod
    def of(cls, steps: _CutRun) -> _Body:
        """The body of some steps."""
        like, time = steps.run.likeness(), steps.run.time()
        forms = _forms(steps, like)
        columns = _columns(forms)
        size = 1 + max(map(max, columns))
        body = cls(np.empty(size, np.int64), np.zeros(size), np.zeros(size, bool))
        for form, places in enumerate(columns):
            body.like[places] = forms.of[form]
        places = columns[forms.usual]
        body.usual[places] = True
        body.time[places] = _typical(steps, forms, forms.usual, time)
        return body

    def backwards(self) -> _Body:
        """The same from its end."""
        return _Body(self.like[::-1], self.time[::-1], self.usual[::-1])

    def begins(self, like: NDArray[np.int64], time: NDArray[np.float64]) -> int:
        """How many of some items, from the first on, are one step; 0 if they begin with none."""
        most = int((1 + _SHARED) * len(self.like))
        first, second = _pairs(self.like, like[:most])
        if not len(second) or second[0] > 0:
            return 0
        end = int(second[-1]) + 1
        usual, whole, found = self.usual[first], self.time.sum(), time[:end].sum()
        alike = (
            whole / _RATIO <= found <= whole * _RATIO
            and usual.sum() >= _LIKE * self.usual.sum()
            and self.time[first].sum() >= _LIKE * whole
            and time[second].sum() >= _LIKE * found
        )
        return end if alike else 0


def _unrolled_last(items: Sequence[StructureItem], body: _Body) -> _StepRun:
    """What is executed once, beside the steps: the items from there on, loops of steps unrolled."""
    known = {each.number: each for each in items}
    numbers, turns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for at, each in enumerate(items):
        steps = _as_they_are(each) if each.is_loop and at < _BESIDE else None
        if steps is not None:
            run, count = steps.run, int(steps.starts[1])
            if body.begins(run.likeness()[:count], run.time()[:count]) == count:
                known |= run.items
                numbers.append(run.item)
                turns.append(run.turn)
                continue
        numbers.append(np.array([each.number]))
        turns.append(np.zeros(1, np.int64))
    return _StepRun(known, np.concatenate(numbers), np.concatenate(turns))


def _between(ahead: _StepRun, steps: _CutRun, behind: _StepRun) -> _CutRun:
    """Put steps between what is executed once, ahead of them and behind."""
    parts = (ahead, steps.run, behind)
    run = _StepRun(
        ahead.items | steps.run.items | behind.items,
        np.concatenate([each.item for each in parts]),
        np.concatenate([each.turn for each in parts]),
    )
    return _CutRun(run, steps.starts + len(ahead.item))


def _with_the_ends(steps: _CutRun, body: _Body) -> _CutRun:
    """Let steps join that are beside the others; leave out a last one that is none."""
    like, time = steps.run.likeness(), steps.run.time()
    starts = steps.starts.tolist()
    last = like[starts[-2] : starts[-1]]
    if len(starts) > 2 and body.usual[_pairs(body.like, last)[0]].sum() < _LIKE * body.usual.sum():
        starts.pop()
    while length := body.begins(like[starts[-1] :], time[starts[-1] :]):
        starts.append(starts[-1] + length)
    body, like, time = body.backwards(), like[::-1], time[::-1]
    while length := body.begins(like[len(like) - starts[0] :], time[len(time) - starts[0] :]):
        starts.insert(0, starts[0] - length)
    return _CutRun(steps.run, np.array(starts))


def _put_together(common: Common, steps: _CutRun) -> Steps:
    """The nest in which the steps are the iterations of a loop."""
    run, starts = steps
    forms = _forms(steps, run.likeness())
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
    made, loop = _rewritten(common, ahead, len(starts) - 1, body, behind)
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


# The items of a nest, each with what it is like and how long it takes at each execution.


@dataclass(frozen=True, eq=False)
class StructureItem:
    """A place or a loop of a nest."""

    number: int  # Among all items, depth first
    place: int  # Its number, or -1 of a loop
    # The same of items that do the same: calls of equal partners, tags and sizes, loops around
    # such.
    likeness: int
    # float64[n]: Computing in it at each of its executions, the mean of all sequences, ns.
    time: NDArray[np.float64]
    events: NDArray[np.int64]  # int64[n]: Events in it at each of them, of all sequences
    # int64[n]: How often a loop is repeated at each of them; empty of a place.
    counts: NDArray[np.int64]
    body: tuple[StructureItem, ...]

    @property
    def is_loop(self) -> bool:
        """Whether it has a body."""
        return self.place < 0

    @property
    def places(self) -> list[int]:
        """Numbers of the places in it."""
        return [place for item in self.body for place in item.places] or [self.place]


def items_of(events: ProgramEvents, common: Common) -> tuple[StructureItem, ...]:
    """Items of a nest, those at the top."""
    sequence = events.sequence
    time = events.computing / max(len(events.offsets) - 1, 1)
    rows_of = events_at(common.place, common.places)
    numbers = count()
    likenesses: dict[tuple[object, ...], int] = {}

    def likeness(*what: object) -> int:
        return likenesses.setdefault(what, len(likenesses))

    def of_nest(nest: Nest, executions: int) -> tuple[StructureItem, ...]:
        """Items of a body that is executed so often."""
        found = []
        for node in nest:
            if isinstance(node, Leaf):
                found += [of_place(place, executions) for place in node.places]
            else:
                found.append(of_loop(node))
        return tuple(found)

    def of_place(place: int, executions: int) -> StructureItem:
        rows = rows_of[place]
        turn = common.execution[rows]
        exact = distinct(events.exact[rows])
        # with partners, where each sequence has always the same
        steady = len(exact) <= len(distinct(sequence[rows]))
        like = tuple(exact.tolist()) if steady else ("varies", int(events.sized[rows].min()))
        return StructureItem(
            next(numbers),
            place,
            likeness("place", *like),
            np.bincount(turn, time[rows], executions).astype(np.float64),
            np.bincount(turn, minlength=executions),
            np.empty(0, np.int64),
            (),
        )

    def of_loop(loop: FoundLoop) -> StructureItem:
        number, counts = next(numbers), np.array(loop.counts, np.int64)
        body = of_nest(loop.body, int(counts.sum()))
        like = likeness("loop", *(item.likeness for item in body))
        return StructureItem(
            number,
            -1,
            like,
            _sums([item.time for item in body], counts),
            _sums([item.events for item in body], counts),
            counts,
            body,
        )

    return of_nest(common.nest, 1)


def _sums(columns: Sequence[NDArray[Number]], counts: NDArray[np.int64]) -> NDArray[Number]:
    """Sums of some columns, and of so many of their values after the other."""
    values = np.sum(columns, axis=0)
    passed = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values)])
    until = np.cumsum(counts)
    sums: NDArray[Number] = passed[until] - passed[until - counts]
    return sums


# A nest from the items of another one, put together anew.


class Source(NamedTuple):
    """Executions of an item, and which those of the place or loop are that it comes into."""

    item: StructureItem
    old: NDArray[np.int64]
    new: NDArray[np.int64]

    def inside(self, before: NDArray[np.int64]) -> list[Source]:
        """What is in the body of a loop, where its executions begin with these iterations."""
        counts = self.item.counts[self.old]
        old_first = (np.cumsum(self.item.counts) - self.item.counts)[self.old]
        which, old = spread(old_first, counts)
        new = (before[self.new] - old_first)[which] + old
        found = []
        for item in self.item.body:
            there = item.events[old] > 0
            found.append(Source(item, old[there], new[there]))
        return found


Slot = list[Source]
"""Items that are alike and come together: a place, or a loop like theirs."""


def _rewritten(
    common: Common, ahead: Sequence[Slot], steps: int, body: Sequence[Slot], behind: Sequence[Slot]
) -> tuple[Common, int]:
    """The nest of some slots, those of `body` in a new loop of so many steps, and where that is.

    Each execution of each place of the old nest is in one of them.
    """
    executions = np.zeros(common.places, np.int64)
    np.maximum.at(executions, common.place, common.execution.astype(np.int64) + 1)
    first = np.cumsum(executions) - executions
    place, execution = np.zeros((2, int(executions.sum())), np.int32)
    numbers = count()

    def nest_of(slots: Sequence[Slot], turns: int) -> Nest:
        nodes: list[int | FoundLoop] = []
        for slot in slots:
            if slot[0].item.is_loop:
                nodes.append(loop_of(slot, turns))
                continue
            nodes.append(number := next(numbers))
            for item, old, new in slot:
                known = old < executions[item.place]
                rows = first[item.place] + old[known]
                place[rows] = number
                execution[rows] = new[known]
        return grouped(nodes)

    def loop_of(slot: Slot, turns: int) -> FoundLoop:
        counts = np.zeros(turns, np.int64)
        for item, old, new in slot:
            counts[new] = item.counts[old]
        before = np.cumsum(counts) - counts
        inner = []
        for sources in zip(*(source.inside(before) for source in slot), strict=True):
            some = [source for source in sources if len(source.old)]
            if some:  # else no sequence has an event there
                inner.append(some)
        return FoundLoop(tuple(counts.tolist()), nest_of(inner, int(counts.sum())))

    begin = nest_of(ahead, 1)
    loop = FoundLoop((steps,), nest_of(body, steps))
    nest = (*begin, loop, *nest_of(behind, 1))
    row = first[common.place] + common.execution
    return Common(nest, place[row], execution[row]), len(begin)
