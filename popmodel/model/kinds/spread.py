"""How much the work of the processes differs in one item, in place of ``[imbalance]``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from popmodel.expressions.elementary import Value
from popmodel.model.changes import SPREADS
from popmodel.model.grammar.keys import NOT_NEGATIVE, Key
from popmodel.model.kinds import words
from popmodel.model.kinds.item import Amount, Table
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.model.run.point import Point

_AS_ALL = "as in imbalance"


@dataclass(frozen=True)
class Spread(Table):
    """Coefficients of variation of the work per process; None where those of the program hold."""

    own: ClassVar[tuple[Key, ...]] = (
        Key(
            "persistent_cv",
            "1",
            _AS_ALL,
            "coefficient of variation of the work per process in this item alone, the same in "
            "every step",
            NOT_NEGATIVE,
        ),
        Key(
            "transient_cv",
            "1",
            _AS_ALL,
            "coefficient of variation of the work per process in this item alone, drawn anew in "
            "every step",
            NOT_NEGATIVE,
        ),
    )

    persistent_cv: Amount | None = None
    transient_cv: Amount | None = None

    def at(self, point: Point, of: str, inside: str = "") -> Self:
        """Return the spreads at the point's number of processes."""
        numbers = super().at(point, of, inside)
        grown = {name: cv * point.growth.get(name, 1.0) for name, cv in numbers.known().items()}
        return replace(numbers, **grown)

    def known(self) -> dict[str, Value]:
        """Return those that are given."""
        both = {name: getattr(self, name) for name in SPREADS.values()}
        return {name: cv for name, cv in both.items() if cv is not None}

    @staticmethod
    def sentence(entry: words.Entry) -> str:
        """Say which spreads the item has of its own; empty for none."""
        said = [
            f"{words.symbol(entry[name])} {how}"
            for name, how in (("persistent_cv", "in all steps"), ("transient_cv", "in each anew"))
            if entry[name] is not None
        ]
        return f"; its work varies between processes by {words.listed(said)} (cv)" if said else ""
