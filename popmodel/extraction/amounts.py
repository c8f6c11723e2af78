"""Amounts of a signature: a formula, the constants in it, and where they come from."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from popmodel.extraction.written import Noted, number
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

Key = tuple[Any, ...]
"""What an amount is of: what it is, and where it stands in the outline."""


@dataclass(frozen=True)
class Constant:
    """A number that was found."""

    name: str  # In formulas
    value: float  # Best estimate, in the unit
    # Ends of its 90 % interval; None where nothing is known of it.
    low: float | None = None
    high: float | None = None
    unit: str = "s"  # ``s``, ``B``, ``1`` or what is counted
    origin: str = "trace"  # ``trace``, ``fit`` or ``assumed``
    source: str = ""  # What it rests on, in words

    def to_dict(self) -> dict[str, Any]:
        """Return what is known as JSON types."""
        return dict(vars(self))

    def entry(self) -> dict[str, Any]:
        """Return its table in a signature."""
        known: dict[str, Any] = {"value": number(self.value)}
        if self.low is not None and self.high is not None:
            # rounding must not put the value outside
            known["low"] = min(number(self.low), known["value"])
            known["high"] = max(number(self.high), known["value"])
        if self.unit:
            known["unit"] = self.unit
        return {**known, "origin": self.origin, "source": self.source}


@dataclass(frozen=True)
class Amount:
    """What a key of a signature says."""

    formula: str | int | float  # Its value
    constants: tuple[Constant, ...] = field(default=())  # Those that it needs
    note: str = ""  # Comment behind it: its origin

    @property
    def noted(self) -> Any:
        """The value, with a comment if there is one."""
        return Noted(self.formula, self.note) if self.note else self.formula


def table_of(amounts: Iterable[Amount]) -> dict[str, dict[str, Any]]:
    """The table ``[constants]`` of some amounts."""
    return {one.name: one.entry() for amount in amounts for one in amount.constants}
