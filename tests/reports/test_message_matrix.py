"""Matrices of messages: ranks taken together, shades, characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from popmodel.reports.message_tables import (
    LEGEND,
    SHADES,
    binned,
    matrix_lines,
    scale,
)


def document(
    processes: int, pairs: Iterable[tuple[int, int, int, int]], together: int = 1
) -> dict[str, Any]:
    """The document of a run with such messages: from, to, how many, bytes."""
    columns = list(zip(*pairs, strict=True)) or [[], [], [], []]
    made: Mapping[str, Any] = dict(
        zip(("from", "to", "messages", "bytes"), map(list, columns), strict=True)
    )
    return {
        "processes": processes,
        "messages": sum(made["messages"]),
        "bytes": sum(made["bytes"]),
        "ranks_together": together,
        "pairs": {**made, "within_node": [True] * len(made["from"])},
        "grids": [],
        "grid_note": "no process sends messages to another",
    }


def ring(processes: int, size: int = 8) -> dict[str, Any]:
    return document(processes, [(rank, (rank + 1) % processes, 1, size) for rank in range(100)])


def test_of_many_processes_rows_are_shared() -> None:
    drawn = matrix_lines(ring(100))
    assert len(drawn) == 26
    assert drawn[0].split() == ["0", "32", "64", "96"]
    assert drawn[1] == "  0-3 #+"
    assert drawn[-1].startswith("96-99 +")
    assert LEGEND.startswith("#")


def test_messages_are_shown_where_all_are_empty() -> None:
    assert matrix_lines(document(2, [(0, 1, 3, 0)])) == ["    0  1", "0      #", "1"]


def test_cells_are_never_smaller_than_the_ranks_together() -> None:
    made = document(10, [(0, 4, 2, 16), (4, 8, 1, 8)], together=4)
    found = binned(made, 100)
    assert (found.each, found.rows) == (4, 3)
    assert found.cells == {(0, 1): (2, 16), (1, 2): (1, 8)}


def test_sums_are_kept_whatever_the_cells() -> None:
    for most in (1, 7, 32, 100):
        found = binned(ring(100, 24), most)
        assert sum(messages for messages, _ in found.cells.values()) == 100
        assert sum(size for _, size in found.cells.values()) == 2400
        assert found.rows <= most


def test_one_value_has_the_darkest_shade() -> None:
    made = scale([1000])
    assert (made.shade(1000), made.shade(0)) == (SHADES, 0)
    assert made.ends() == [(SHADES, 512)]


def test_no_values_have_no_shades() -> None:
    assert scale([0, 0]).ends() == []


def test_two_classes_differ_as_much_as_shades_can() -> None:
    assert scale([64, 100, 128]).ends() == [(1, 64), (SHADES, 128)]


@given(st.lists(st.integers(1, 2**53), min_size=1))
def test_shades_rise_with_values_and_ends_are_those_of_the_classes(values: list[int]) -> None:
    made = scale(values)
    ends = made.ends()
    assert len(ends) <= SHADES
    assert [shade for shade, _ in ends] == sorted({shade for shade, _ in ends})
    shades = [made.shade(value) for value in sorted(values)]
    assert shades == sorted(shades)
    assert shades[-1] == SHADES
    assert len(ends) == 1 or shades[0] == 1
    for value in values:
        assert made.shade(value) == max(shade for shade, low in ends if low <= value)
