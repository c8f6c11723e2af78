"""What a core does with rows: their ends, and transfers beside their instructions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from microbench.node_program import Line, check_result, median
from patience import measuring

MIB = 1024 * 1024


@pytest.mark.long
@measuring()
def test_longer_rows_take_longer(measure: Callable[..., list[Line]]) -> None:
    short, long = measure("row turns=16", "row turns=256")
    for line in (short, long):
        check_result(line)
        assert line.get("work", 8) == 8
    # 16 times as many turns, and one end
    assert 4 < median(long) / median(short) < 32


@pytest.mark.long
@measuring()
def test_a_turn_takes_as_many_instructions_as_a_core_can(
    measure: Callable[..., list[Line]],
) -> None:
    some, row = measure("instructions", "row turns=512")
    of_one = median(some) / some["work"]
    # 8 of each turn or so, by the compiler; vectors of a small core may take twice as long
    assert 4 * of_one < median(row) / 512 < 24 * of_one


@pytest.mark.long
@measuring()
def test_rows_beside_a_matrix(measure: Callable[..., list[Line]]) -> None:
    (line,) = measure(f"issue bytes={16 * MIB}")
    check_result(line)
    assert line["moved"] == 8192
    rows, read = min(line["arithmetic"]), min(line["reference"])
    assert min(rows, read) > 0
    assert max(rows, read) / 1.5 < min(line["seconds"]) < 2 * (rows + read)
