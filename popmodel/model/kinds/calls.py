"""The calls of a list, as they are written: what each does, on which ranks, with whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import did_you_mean
from popmodel.base.expressions import Expression, parse
from popmodel.base.values import dataclass
from popmodel.model.kinds.item import Further, ItemTable
from popmodel.model.kinds.spread import ItemSpread
from popmodel.model.run.call_list import CALLS, CallRow, RowRepeat, Rows
from popmodel.model.run.context import ModelPoint
from popmodel.model.signature.keys import GrammarKey
from popmodel.model.signature.reading import EXTRA_FUNCTIONS, GrammarReading, Path, line_of
from popmodel.simulator.program import LARGEST_COUNT, TOO_LARGE

Given: TypeAlias = "Expression | tuple[float, ...]"
"""A formula of rank, or a value for each rank."""

_UNEVEN = ("by_rank", "quantiles", "recorded")
_NEEDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "send": (("to", "bytes"), ("tag",)),
    "isend": (("to", "bytes"), ("tag",)),
    "recv": (("from",), ("bytes", "tag")),
    "irecv": (("from",), ("bytes", "tag")),
    "sendrecv": (("to", "from", "bytes"), ("tag",)),
    "wait": ((), ("request",)),
    "waitall": ((), ()),
    "compute": (("seconds",), ("instructions", *_UNEVEN)),
}
"""Keys that each call has to have, and may have, beside ``do`` and ``on``."""
_OF_RANKS = ("on", "to", "from", "bytes", "tag", "request", "seconds")
_FORMULAS = (*_OF_RANKS, "instructions", "repeat")
_ALL, _NOBODY, _NONE = parse("1"), parse("-1"), parse("0")


@dataclass(frozen=True)
class ListedCall(ItemTable):
    """A call of MPI or a computation on some ranks, or calls that are repeated."""

    kind: ClassVar[str] = "calls"
    further: ClassVar[Further] = {
        **{name: {"of_ranks": True} for name in _OF_RANKS},
        **{name: ItemSpread.further[name] for name in _UNEVEN},
    }

    do: str  # One of `CALLS`; ``repeat`` for calls that are repeated
    given: Mapping[str, Given]  # What is given of the keys with values
    spread: ItemSpread = ItemSpread()  # How a computation differs
    inside: tuple[ListedCall, ...] = ()  # What is repeated
    line: int | None = None  # Where it stands

    def formulas(self) -> list[Expression]:
        found = [one for one in self.given.values() if isinstance(one, Expression)]
        return found + [formula for call in self.inside for formula in call.formulas()]

    def leaves(self) -> Iterator[ListedCall]:
        if self.do != "repeat":
            yield self
        for call in self.inside:
            yield from call.leaves()

    @property
    def title(self) -> str:
        """Name it for messages: ``isend in line 12``."""
        return self.do if self.line is None else f"{self.do} in line {self.line}"

    def shown(self) -> Iterator[tuple[GrammarKey, Any]]:
        known = {key.name: key for key in self.own}
        if self.do != "repeat":
            yield known["do"], self.do
        for name, value in self.given.items():
            yield known[name], value
        for name in _UNEVEN:
            if (values := getattr(self.spread, name)) is not None:
                yield known[name], values
        if self.inside:
            yield known["calls"], self.inside


def read_calls(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> CallList:
    return CallList(_calls(reading, table["calls"], where))


def _calls(reading: GrammarReading, value: object, where: Path) -> tuple[ListedCall, ...]:
    if not isinstance(value, list) or not value:
        raise reading.error(where, "calls must be a list with at least one call")
    return tuple(_call(reading, entry, (*where, index)) for index, entry in enumerate(value))


def _call(reading: GrammarReading, entry: object, where: Path) -> ListedCall:
    if not isinstance(entry, Mapping):
        raise reading.error(where, "a call must be a table with do, such as { do = 'waitall' }")
    reading.check_keys(ListedCall.own, entry, where)
    line = line_of(reading.lines, where)
    if "repeat" in entry:
        if set(entry) != {"repeat", "calls"}:
            raise reading.error(where, "repeat needs calls, and nothing else")
        times = reading.formula(ListedCall.key("repeat"), entry, (*where, "repeat"))
        inside = _calls(reading, entry["calls"], (*where, "calls"))
        return ListedCall("repeat", {"repeat": times}, inside=inside, line=line)
    do = entry.get("do")
    if do not in CALLS:
        hint = did_you_mean(str(do), CALLS, f"known: {', '.join(CALLS)}")
        raise reading.error((*where, "do"), f"do must be a call, not {do!r}", hint)
    needs, may = _NEEDS[do]
    for name in needs:
        if name not in entry:
            raise reading.error(where, f"{do} needs {name}")
    for name in entry:
        if name not in ("do", "on", *needs, *may):
            raise reading.error((*where, name), f"{do} has no {name}")
    values = {
        name: _value(reading, name, entry, (*where, name)) for name in _FORMULAS if name in entry
    }
    spread = {
        key.name: reading.value(key, entry, where) for key in ItemSpread.own if key.name in _UNEVEN
    }
    if spread["by_rank"] is not None and _uses_rank(values["seconds"]):
        raise reading.error(
            (*where, "by_rank"), "seconds depends on rank, and by_rank is given", "leave one out"
        )
    return ListedCall(str(do), values, ItemSpread(**spread), line=line)


def _value(reading: GrammarReading, name: str, entry: Mapping[str, Any], where: Path) -> Given:
    value, key = entry[name], ListedCall.key(name)
    if isinstance(value, list) and key.of_ranks:
        if not value or not all(type(one) in (int, float) for one in value):
            raise reading.error(where, f"{name} must be a formula or a list of numbers")
        if key.domain is not None and not all(key.domain.holds(one) for one in value):
            raise reading.error(where, f"{name} must be {key.domain.text}")
        return tuple(map(float, value))
    formula = reading.formula(key, entry, where)
    if "rank" in formula.names and formula.calls & EXTRA_FUNCTIONS.keys():
        listed = ", ".join(formula.calls & EXTRA_FUNCTIONS.keys())
        problem = f"{name}: {listed} has one value for all ranks"
        raise reading.error(where, problem, "leave rank out of the formula")
    return formula


def _uses_rank(value: Given) -> bool:
    return not isinstance(value, Expression) or "rank" in value.names


@dataclass(frozen=True)
class CallList:
    """A list of calls."""

    calls: tuple[ListedCall, ...]  # As written
    # What was worked out for a number of processes and values of names; filled by use.
    known: dict[Any, Any] = field(default_factory=dict, repr=False)

    def leaves(self) -> list[ListedCall]:
        return [leaf for call in self.calls for leaf in call.leaves()]

    def formulas(self) -> list[Expression]:
        return [formula for call in self.calls for formula in call.formulas()]

    def on(self, call: ListedCall, point: ModelPoint, of: str) -> NDArray[np.bool_]:
        return _Values(point, of).on(call)

    def rows(self, point: ModelPoint, of: str, *, computing: bool = False) -> Rows:
        """Return the calls with their values for every rank at a point, best estimates."""
        return _rows(self.calls, _Values(point, of), count(), computing=computing)


@dataclass(frozen=True)
class _Values:
    """Values of formulas for every rank; each formula is evaluated once."""

    point: ModelPoint
    of: str
    known: dict[tuple[str, str], NDArray[np.float64]] = field(default_factory=dict)

    def get(self, call: ListedCall, name: str, instead: Expression) -> NDArray[np.float64]:
        """Values of a key of a call, shape (P,)."""
        given = call.given.get(name, instead)
        what = f"{name} of {call.title} of {self.of!r}"
        if not isinstance(given, Expression):
            return self.point.listed(given, what)
        if (name, given.text) not in self.known:
            self.known[name, given.text] = self.point.by_rank(given, ListedCall.key(name), what)
        return self.known[name, given.text]

    def whole(self, call: ListedCall, name: str, instead: Expression) -> NDArray[np.int64]:
        """Values that stand for numbers of ranks, tags or bytes."""
        values = self.get(call, name, instead)
        if np.abs(values).max() > LARGEST_COUNT:
            raise self.point.refuse(
                f"{name} of {call.title} of {self.of!r}", f" is {values.max():g}", TOO_LARGE
            )
        found: NDArray[np.int64] = np.rint(values).astype(np.int64)
        return found

    def on(self, call: ListedCall) -> NDArray[np.bool_]:
        given = call.given.get("on", _ALL)
        if isinstance(given, Expression):
            holds: NDArray[np.bool_] = self.get(call, "on", _ALL) != 0
            return holds
        found = np.zeros(self.point.placement.processes, dtype=bool)
        ranks = np.array(given, dtype=np.int64)
        found[ranks[(ranks >= 0) & (ranks < found.size)]] = True
        return found


def _rows(
    calls: Sequence[ListedCall], values: _Values, numbers: Iterator[int], *, computing: bool
) -> Rows:
    found: list[CallRow | RowRepeat] = []
    for call in calls:
        if call.do == "repeat":
            times = values.get(call, "repeat", _ALL)[0]
            if times != round(times):
                raise values.point.refuse(
                    f"repeat of {call.title} of {values.of!r}", f" is {times:g}", "no whole number"
                )
            inside = _rows(call.inside, values, numbers, computing=computing)
            found.append(RowRepeat(round(times), inside))
            continue
        number = next(numbers)
        if call.do == "compute":
            on = np.ones(values.point.placement.processes, dtype=bool)
            found.append(idle(number, call.do, on if computing else values.on(call)))
        elif not computing:
            size = values.whole(call, "bytes", _NONE)
            is_checked = "bytes" in call.given and call.do != "sendrecv"
            found.append(
                CallRow(
                    number,
                    call.do,
                    values.on(call),
                    values.whole(call, "to", _NOBODY),
                    values.whole(call, "from", _NOBODY),
                    size,
                    size if is_checked else np.full(size.size, -1),
                    values.whole(call, "tag", _NONE),
                    values.whole(call, "request", _NONE),
                )
            )
    return tuple(found)


def idle(number: int, do: str, on: NDArray[np.bool_]) -> CallRow:
    nothing = np.zeros(on.size, np.int64)
    return CallRow(number, do, on, nothing, nothing, nothing, nothing, nothing, nothing)
