"""A body that is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from popmodel.model.grammar.keys import NOT_NEGATIVE, POSITIVE, GrammarKey
from popmodel.model.grammar.reading import GrammarReading
from popmodel.model.grammar.toml_lines import Path
from popmodel.model.kinds import words
from popmodel.model.kinds.item import Amount, Item
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.model.run.point import ModelPoint

LEAST_STEPS = 20
"""Iterations of a loop that say at least how long the others take."""


def _body(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> tuple[Item, ...]:
    # [[program.body]] stands beside loop, an inline body inside it
    beside = where if where in reading.lines else (*where[:-2], "body")
    return reading.body(table["body"], beside)


@dataclass(frozen=True)
class LoopItem(Item):
    """A body that is executed ``count`` times."""

    kind: ClassVar[str] = "loop"
    about: ClassVar[str] = "a body that is repeated"
    own: ClassVar[tuple[GrammarKey, ...]] = (
        GrammarKey("count", "1", None, "executions of the body", NOT_NEGATIVE, POSITIVE),
        GrammarKey("body", "", None, "list of items", read=_body),
    )

    count: Amount
    body: tuple[Item, ...]

    @property
    def inside(self) -> tuple[Item, ...]:
        """The items of its body."""
        return self.body

    def around(self, inside: tuple[Item, ...]) -> LoopItem:
        """Return the loop with another body."""
        return replace(self, body=inside)

    def lighter(self, part: float, point: ModelPoint) -> Self:  # noqa: ARG002
        """Return the loop with fewer iterations, but as many as tell how long the others take."""
        least = min(round(self.count), LEAST_STEPS)
        count = max(round(part * self.count), least, 1)
        return self if count == self.count else replace(self, count=count)

    @property
    def repeats(self) -> Amount:
        """How often they are executed."""
        return self.count

    @staticmethod
    def sentence(entry: words.Entry) -> str:
        """Say how often the body is executed."""
        if entry["count"]["formula"] == "1":
            return "once:"
        return f"repeat {words.symbol(entry['count'])} times:"
