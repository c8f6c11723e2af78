"""Matrices of messages: ranks taken together, shades, characters."""

from collections.abc import Iterable, Mapping
from typing import Any

from popmodel.reports.message_tables import (
    LEGEND,
    binned,
    matrix_lines,
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
