"""The critical path on a screen."""

from __future__ import annotations

from typing import Any

import pytest

from popmodel.base.plain import document
from popmodel.reports import sensitivity_path
from popmodel.reports.renderers.tables import Style
from popmodel.reports.renderers.terminal import block_lines
from popmodel.sensitivity.critical_path import Entry, PathTable, PathTables, Spent, Stay

NONE = PathTable((), 0, 0.0)


def entry(name: str, computing: float = 0.0, latency: float = 0.0, size: float = 0.0) -> Entry:
    spent = Spent(computing, latency, size, 0.0)
    return Entry(name, spent, spent.time, latency / 2e-6, 1e10 * size, 3)


def found(**changes: Any) -> Any:
    tables = {
        "spent": Spent(0.8, 0.15, 0.05, 0.0),
        "steps": 1000,
        "changes": 12,
        "longest": Stay(3, 0.25, 0.5),
        "ranks": PathTable((entry("rank 0", 0.5, 0.1), entry("rank 3", 0.3, 0.05, 0.05)), 0, 0.0),
        "regions": PathTable((entry("solve", 0.8),), 0, 0.0),
        "calls": PathTable((entry("MPI_Recv", 0, 0.15, 0.05),), 2, 0.001),
        "pairs": PathTable((entry("0 -> 3", 0, 0.15, 0.05),), 0, 0.0),
        **changes,
    }
    return document(
        "popmodel/sensitivity/1", trace="run.prv", runtime=1.0, critical_path=PathTables(**tables)
    )


def lines(run: Any, width: int = 80) -> list[str]:
    return block_lines(sensitivity_path.path(run), Style(width))


def test_ranks_have_their_times_and_the_path_its_longest_stay() -> None:
    assert lines(found(), 200)[:4] == [
        "critical path by rank",
        "   %  computing  in MPI",
        "60.0       50.0    10.0  rank 0",
        "40.0       30.0    10.0  rank 3",
    ]
    assert lines(found(), 200)[4] == (
        " in % of the runtime; it changes rank 12 times, and stays longest on rank 3: 250.0 ms, "
        "from 250.0 ms of the replay"
    )


def test_a_path_on_one_rank_says_so() -> None:
    assert " in % of the runtime; it stays on rank 3" in lines(found(changes=0), 200)


def test_calls_and_pairs_have_latencies_and_bytes() -> None:
    shown = lines(found())
    begin = shown.index("critical path by MPI call")
    assert shown[begin + 1 : begin + 4] == [
        "   %  latencies      bytes",
        "20.0     75,000  476.8 MiB  MPI_Recv",
        " and 2 more: 0.1 %",
    ]


def test_entries_of_next_to_nothing_are_only_counted() -> None:
    calls = (entry("MPI_Recv", latency=0.2), entry("MPI_Bcast", latency=1e-4))
    shown = lines(found(calls=PathTable(calls, 0, 0.0)))
    assert " and 1 more: 0.0 %" in shown
    assert not any("MPI_Bcast" in line for line in shown)


def test_without_a_path_nothing_is_shown() -> None:
    assert lines(found(steps=0)) == []


@pytest.mark.parametrize("width", [40, 80])
def test_the_tables_fit_narrow_terminals(width) -> None:
    assert max(map(len, lines(found(), width))) <= width


def test_tables_of_next_to_nothing_are_left_out() -> None:
    for pairs in (NONE, PathTable((entry("0 -> 1", latency=1e-4),), 0, 0.0)):
        assert "critical path by pair of ranks" not in lines(found(pairs=pairs))


@pytest.mark.parametrize("table", ["rank", "region", "call", "pair"])
def test_records_have_every_table(table) -> None:
    rows = sensitivity_path.records(found())
    mine = [one for one in rows if one["part"] == f"critical path by {table}"]
    assert {one["quantity"] for one in mine} == {"time", "latencies", "bytes"}
    assert all(0 < one["value"] <= 1 for one in mine if one["quantity"] == "time")
