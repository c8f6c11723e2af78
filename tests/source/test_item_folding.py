"""Small loops of a long program as one item."""

from types import SimpleNamespace
from typing import Any

import sympy

from popmodel.source.item_folding import WorkAmounts, joined_item


def test_what_is_written_is_moved_even_where_there_is_no_guess_of_all_that_is() -> None:
    draft: Any = SimpleNamespace(
        amounts={}, unique=str, quantity=lambda value: value, named_set=lambda _, value: value
    )
    symbols = sympy.symbols("n:40", integer=True)
    long = sympy.Add(*(number * symbol**2 for number, symbol in enumerate(symbols, start=2)))
    moved = long - 10**12  # below 0 by guess: none
    work = WorkAmounts("f", "", sympy.Integer(1), (long, long, long, moved, sympy.Integer(64)))
    item = joined_item(draft, [work, work])
    assert item.entries["bytes"] == item.entries["written"]
