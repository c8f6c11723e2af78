"""Ranges of values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import UsageError
from popmodel.base.units import MOST_VALUES as MOST
from popmodel.base.units import parse_bandwidth, parse_time
from popmodel.base.units import parse_values as read_values


def test_one_value_is_no_range() -> None:
    assert read_values("5us", parse_time) == [5e-6]


@pytest.mark.parametrize("text", ["0:4us:5", "0us:4us:lin5", "0 : 4us : lin5 "])
def test_equal_steps(text: str) -> None:
    assert read_values(text, parse_time) == [0, 1e-6, 2e-6, 3e-6, 4e-6]


def test_equal_ratios() -> None:
    ends = [parse_time("0.1us"), parse_time("100us")]
    assert read_values("0.1us:100us:log4", parse_time) == [ends[0], 1e-6, 1e-5, ends[1]]
    assert read_values("100GB/s:1GB/s:log3", parse_bandwidth) == [1e11, 1e10, 1e9]


@given(st.floats(1e-9, 1), st.floats(1e-9, 1), st.integers(2, 50), st.sampled_from(["log", "lin"]))
def test_a_range_ascends_or_descends_between_its_ends(
    first: float, last: float, number: int, steps: str
) -> None:
    if abs(first / last - 1) < 1e-6:
        return
    found = read_values(f"{first!r}:{last!r}:{steps}{number}", float)
    assert (found[0], found[-1], len(found)) == (first, last, number)
    assert found == sorted(set(found), reverse=last < first)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1us:2us", "'1us:2us' is no range of values"),
        ("1us:2us:exp4", "is no range of values"),
        ("1us:2us:log", "is no range of values"),
        ("1us:2us:log1", "a range has 2 to 10000 values, not 1"),
        (f"1us:2us:{MOST + 1}", "a range has 2 to 10000 values, not 10001"),
        ("0:2us:log5", "a range of equal ratios cannot begin or end at 0"),
        ("2us:2us:log5", "both ends of the range are the same"),
        ("1:2us:log5", "'1': a time needs a unit"),
    ],
)
def test_what_is_no_range_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_values(text, parse_time)
    assert message in caught.value.message


def test_an_infinite_bandwidth_is_no_end_of_a_range() -> None:
    with pytest.raises(UsageError, match="both ends of a range must be finite"):
        read_values("1GB/s:inf:3", parse_bandwidth)
