"""How much the work of the processes differs in one item, in place of ``[imbalance]``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from popmodel.base import arrays
from popmodel.base.expressions import Expression
from popmodel.base.expressions.elementary import Value
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.model.kinds.item import Amount, Entry, Further, Item, ItemTable, listed, symbol
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.work import UnevenWork, relative
from popmodel.model.signature.reading import GrammarReading, Path
from popmodel.model.symbols import SPREADS
from popmodel.model.uncertainty import nominal


def _values(
    reading: GrammarReading, table: Mapping[str, Any], where: Path
) -> tuple[float, ...] | None:
    """Read relative values: numbers of at least 0, not all of them 0."""
    name = str(where[-1])
    if name not in table:
        return None
    values = table[name]
    are_numbers = isinstance(values, list) and all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in values
    )
    if not (are_numbers and values and min(values) >= 0 and 0 < sum(values) < math.inf):
        problem = f"{name} must be a list of numbers of at least 0, not all of them 0"
        raise reading.error(where, problem)
    return tuple(map(float, values))


def _by_rank(
    reading: GrammarReading, table: Mapping[str, Any], where: Path
) -> tuple[float, ...] | Expression | None:
    """Read relative work: a value for each process, or a formula of rank."""
    if not isinstance(table.get(str(where[-1])), str):
        return _values(reading, table, where)
    formula = reading.expression(table[str(where[-1])], where, ("rank",))
    if "rank" not in formula.names:
        problem = "by_rank must be a list of numbers or a formula of rank"
        raise reading.error(where, problem, "only the first process works: 'max(1 - rank, 0)'")
    return formula


@dataclass(frozen=True)
class Recorded:
    """Times that were recorded."""

    name: str  # Their entry in the table ``recorded``
    # float64[P, n]: Of each process in each execution, relative to their mean.
    values: NDArray[np.float64]

    def uneven(self, share: float, persistent: float, transient: float) -> UnevenWork:
        """Return them as the factors of a replay, their differences times two factors."""
        mean = self.values.mean(axis=1)
        turns = np.ones_like(self.values)
        np.divide(self.values, mean[:, None], out=turns, where=mean[:, None] > 0)
        sequence = np.maximum(1 + transient * (turns - 1), 0.0)
        ranks = relative(tuple(mean.tolist()), persistent)
        return UnevenWork(share, ranks, np.sort(sequence[mean > 0].ravel()), sequence)


def _recorded(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> Recorded | None:
    """Read the name of an entry of the table ``recorded``."""
    if where[-1] not in table:
        return None
    name = table[str(where[-1])]
    if not isinstance(name, str) or name not in reading.recorded:
        known = ", ".join(reading.recorded) or "none"
        problem = f"recorded must name an entry of the table recorded, not {name!r}"
        raise reading.error(where, problem, f"its entries: {known}")
    return Recorded(name, reading.recorded[name])


@dataclass(frozen=True)
class ItemSpread(ItemTable, among="serial"):
    """How the work of the processes differs; None where what the program says holds."""

    further: ClassVar[Further] = {
        "by_rank": {"of_ranks": True, "read": _by_rank},
        "quantiles": {"read": _values},
        "recorded": {"read": _recorded},
    }

    # Coefficients of variation.
    persistent_cv: Amount | None = None
    transient_cv: Amount | None = None
    # Relative work of each process, for as many processes as there are values; or a formula.
    by_rank: tuple[float, ...] | Expression | NDArray[np.float64] | None = None
    # Relative values of the factor that is drawn anew in every step.
    quantiles: tuple[float, ...] | None = None
    # Relative work of each process in each execution, for as many processes as there are.
    recorded: Recorded | None = None

    def at(self, point: ModelPoint, of: str, inside: str = "") -> Self:
        """Return the spreads at the point's number of processes."""
        numbers = super().at(point, of, inside)
        grown: dict[str, Any] = {
            name: cv * point.growth.get(name, 1.0) for name, cv in numbers.known().items()
        }
        return replace(numbers, **grown)

    def stated(self) -> set[str]:
        names = set(self.known())
        names |= {"persistent_cv"} if self.by_rank is not None else set()
        names |= {"transient_cv"} if self.quantiles is not None else set()
        return names | ({"persistent_cv", "transient_cv"} if self.recorded is not None else set())

    def uneven(self, point: ModelPoint, share: float = 1.0) -> UnevenWork | None:
        ranks = turns = None
        factor = {name: nominal(point.changed.get(name, 1.0)) for name in SPREADS.values()}
        given = self.by_rank
        if isinstance(given, Expression):  # in a list of calls, which is not evaluated as a whole
            given = point.by_rank(given, self.key("by_rank"), "by_rank")
        work = np.asarray(() if given is None else given)
        if len(work) == point.placement.processes and work.any():
            ranks = relative(work, factor["persistent_cv"])
        if self.quantiles is not None:
            turns = relative(self.quantiles, factor["transient_cv"])
        if self.recorded is not None and len(self.recorded.values) == point.placement.processes:
            return self.recorded.uneven(share, factor["persistent_cv"], factor["transient_cv"])
        if ranks is None and turns is None:
            return None
        return UnevenWork(share, ranks, turns)

    def known(self) -> dict[str, Value]:
        both = {name: getattr(self, name) for name in SPREADS.values()}
        return {name: cv for name, cv in both.items() if cv is not None}

    @staticmethod
    def sentence(entry: Entry) -> str:
        said = [
            f"{symbol(entry[name])} {how}"
            for name, how in (("persistent_cv", "in all steps"), ("transient_cv", "in each anew"))
            if entry[name] is not None
        ]
        text = f"; its work varies between processes by {listed(said)} (cv)" if said else ""
        if isinstance(entry["by_rank"], dict):
            text += f"; its work differs between processes as {symbol(entry['by_rank'])}"
        elif entry["by_rank"] is not None:
            least, most = (f(entry["by_rank"]) for f in (min, max))
            text += (
                f"; its work is known for each of {len(entry['by_rank'])} processes, "
                f"{_times(least, entry['by_rank'])} to {_times(most, entry['by_rank'])} of the mean"
            )
        if entry["quantiles"] is not None:
            least, most = (f(entry["quantiles"]) for f in (min, max))
            text += (
                f"; in each step it is {_times(least, entry['quantiles'])} to "
                f"{_times(most, entry['quantiles'])} of its mean, one of "
                f"{plural(len(entry['quantiles']), 'value')} at random"
            )
        if entry["recorded"] is not None:
            text += f"; its recorded times are kept ({entry['recorded']})"
        return text


def _times(value: float, values: Sequence[float]) -> str:
    return f"{value * len(values) / sum(values):.3g}"


# Items whose work differs between processes in a way of its own.


class Varied(Item):
    """An item with a spread: a field of its kind, behind those that the kind needs."""

    if TYPE_CHECKING:

        @property
        def spread(self) -> ItemSpread:
            """How its work differs."""

    @property
    def own_spread(self) -> Mapping[str, Value]:
        return self.spread.known()

    @property
    def stated_spreads(self) -> Set[str]:
        return self.spread.stated()

    def uneven(self, point: ModelPoint) -> tuple[UnevenWork, ...]:
        known = self.spread.uneven(point)
        return () if known is None else (known,)


# How long something took each time on each process, as a compressed text in a signature.
#
# Where the runtime depends on who was slow when, no law of chance gives it back, and the file keeps
# what was traced: relative times on a logarithmic scale of 128 steps to the octave, 0.27 % at most
# beside the value, packed by zlib and written in the letters of base 85 (RFC 1924), which need no
# escapes in TOML. `"4x150:..."` is of 4 processes and 150 executions.


STEPS = 128
"""Steps to an octave."""
_MIDDLE = 1 << 15  # the code of 1; 0 stands for nothing
_SHAPE = re.compile(r"([1-9][0-9]{0,6})x([1-9][0-9]{0,8}):")


def encode(relative: NDArray[np.float64]) -> str:
    """Return the text of relative times."""
    if relative.ndim != 2 or not relative.size:
        raise ValueError("relative times need a process and an execution")
    if not (np.isfinite(relative).all() and (relative >= 0).all()):
        raise ValueError("relative times must be numbers, at least 0")
    codes = np.zeros(relative.shape, dtype=np.uint16)
    some = relative > 0
    scaled = np.round(np.log2(relative[some]) * STEPS) + _MIDDLE
    codes[some] = np.clip(scaled, 1, 2 * _MIDDLE - 1).astype(np.uint16)
    return f"{len(relative)}x{relative.shape[1]}:{arrays.packed(codes.astype('<u2'))}"


def decode(text: str) -> NDArray[np.float64]:
    shape = _SHAPE.match(text)
    if shape is None:
        raise ValueError('recorded times begin with processes and executions, such as "4x150:"')
    processes, executions = int(shape[1]), int(shape[2])
    try:
        found = arrays.unpacked(text[shape.end() :], "<u2", processes * executions)
    except ValueError:
        raise ValueError("recorded times are damaged: they cannot be unpacked") from None
    if found is None:
        raise ValueError(f"recorded times are damaged: not {processes} x {executions} values")
    codes = found.reshape(processes, executions)
    relative = np.exp2((codes.astype(np.float64) - _MIDDLE) / STEPS)
    return np.where(codes > 0, relative, 0.0)
