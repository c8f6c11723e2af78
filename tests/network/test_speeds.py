"""CPU speeds of single ranks or nodes."""

from __future__ import annotations

import pytest

from popmodel.base.errors import UsageError
from popmodel.network.placement import parse_speeds


def test_speeds_of_ranks() -> None:
    speeds = parse_speeds("0=2, 2-3=0.5,3=4")
    assert speeds.of(5).tolist() == [2, 1, 0.5, 4, 1]
    assert speeds.name == "0=2,2-3=0.5,3=4"


@pytest.mark.parametrize("text", ["", "2", "0=", "0=x", "0=0", "0=-1", "0=inf", "0=nan", "a=1"])
def test_what_is_no_speed_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no speed of ranks or nodes"):
        parse_speeds(text)


def test_ranks_that_are_not_there_are_refused() -> None:
    with pytest.raises(UsageError, match="speed of rank 4: there are 4 ranks, from 0 to 3"):
        parse_speeds("2-4=2").of(4)
    with pytest.raises(UsageError, match="speed of node 1: there are 1 nodes"):
        parse_speeds("1=2").of(1, "node")
