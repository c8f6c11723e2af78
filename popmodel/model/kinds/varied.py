"""Items whose work differs between processes in a way of its own."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from popmodel.expressions.elementary import Value
from popmodel.model.kinds.item import Item
from popmodel.model.run.uneven import UnevenWork

if TYPE_CHECKING:
    from popmodel.model.kinds.spread import ItemSpread
    from popmodel.model.run.point import ModelPoint


class Varied(Item):
    """An item with a spread: a field of its kind, behind those that the kind needs."""

    if TYPE_CHECKING:

        @property
        def spread(self) -> ItemSpread:
            """How its work differs."""

    @property
    def own_spread(self) -> Mapping[str, Value]:
        """Those of its spreads that are given."""
        return self.spread.known()

    @property
    def stated_spreads(self) -> Set[str]:
        """The kinds of spread that it states in some form."""
        return self.spread.stated()

    def uneven(self, point: ModelPoint) -> tuple[UnevenWork, ...]:
        """Return how its work differs, where that is known value by value."""
        known = self.spread.uneven(point)
        return () if known is None else (known,)
