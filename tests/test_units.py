"""Quantities with units: what is read, what is written, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import UsageError
from popmodel.base.units import (
    format_bandwidth,
    format_size,
    format_time,
    parse_bandwidth,
    parse_size,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5us", 5e-6),
        ("5 us", 5e-6),
        ("7µs", 7e-6),
        ("7μs", 7e-6),
        (" 1.5ms ", 1.5e-3),
        ("20ns", 2e-8),
        ("2s", 2.0),
        ("0", 0.0),
        ("0.0", 0.0),
        ("1e-6s", 1e-6),
        ("1e3ns", 1e-6),
        (".5s", 0.5),
        ("2min", 120.0),
        ("1h", 3600.0),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("32KiB", 32768),
        ("32768", 32768),
        ("1MB", 1_000_000),
        ("1 kB", 1000),
        ("1KB", 1000),
        ("1.5KiB", 1536),
        ("2GiB", 2 * 2**30),
        ("0", 0),
        ("0.5", 0.5),
    ],
)
def test_sizes(text: str, size: float) -> None:
    assert parse_size(text) == size
    assert isinstance(parse_size(text), int) == (size == int(size))


@pytest.mark.parametrize(
    ("text", "bandwidth"),
    [
        ("1GB/s", 1e9),
        ("1GiB/s", 2.0**30),
        ("10Gbit/s", 1.25e9),
        ("250 MB/s", 2.5e8),
        ("1e9B/s", 1e9),
    ],
)
def test_bandwidths(text: str, bandwidth: float) -> None:
    assert parse_bandwidth(text) == bandwidth


def test_bandwidth_and_size_may_be_infinite() -> None:
    assert parse_bandwidth("inf") == math.inf
    assert parse_size(" INF ") == math.inf


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a time"),
        ("fast", "'fast' is not a time"),
        ("inf", "'inf' is not a time"),
        ("nan", "'nan' is not a time"),
        ("1,5us", "'1,5us': ',5us' is not a unit of time"),
        ("5 parsec", "'5 parsec': 'parsec' is not a unit of time"),
        ("5US", "'5US': 'US' is not a unit of time"),
        ("-5us", "'-5us': a time cannot be negative"),
        ("1e999s", "'1e999s': this time is too large"),
        ("5us 6", "'5us 6': 'us 6' is not a unit of time"),
    ],
)
def test_what_is_no_time(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_time(text)
    assert caught.value.message == message
    assert caught.value.hint == "give a number with ns, us, ms, s, min or h, for example 5us"


@pytest.mark.parametrize(
    ("parse", "text", "message", "meant"),
    [
        (parse_time, "5", "'5': a time needs a unit", "5us"),
        (parse_time, "5e-6", "'5e-6': a time needs a unit", "5e-6s"),
        (parse_bandwidth, "5", "'5': a bandwidth needs a unit", "5GB/s"),
        (parse_bandwidth, "1e9", "'1e9': a bandwidth needs a unit", "1e9B/s"),
    ],
)
def test_a_number_needs_its_unit(
    parse: Callable[[str], float], text: str, message: str, meant: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.message == message
    assert str(caught.value.hint).startswith(f"did you mean {meant}? give a number with ")
    assert parse(meant) > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("big", "'big' is not a size"),
        ("32kb", "'32kb': 'kb' is not a unit of size"),
        ("32k", "'32k': 'k' is not a unit of size"),
        ("-1", "'-1': a size cannot be negative"),
        ("1e400", "'1e400': this size is too large"),
    ],
)
def test_what_is_no_size(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(text)
    assert caught.value.message == message
    assert "32KiB" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "'0': a bandwidth must be above 0"),
        ("1Gb/s", "'1Gb/s': 'Gb/s' is not a unit of bandwidth"),
        ("1GB", "'1GB': 'GB' is not a unit of bandwidth"),
        ("-1GB/s", "'-1GB/s': a bandwidth cannot be negative"),
        ("-inf", "'-inf' is not a bandwidth"),
    ],
)
def test_what_is_no_bandwidth(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_bandwidth(text)
    assert caught.value.message == message
    assert "1GB/s" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (5e-6, "5.000 us"),
        (1.18512, "1.185 s"),
        (12.3456, "12.35 s"),
        (123.456, "123.5 s"),
        (12345.6, "12346 s"),
        (9.9996e-3, "10.00 ms"),
        (999.96e-6, "1.000 ms"),
        (0.9999e-9, "0.9999 ns"),
        (-0.0342, "-34.20 ms"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (1e300, "1.000e+300 s"),
    ],
)
def test_written_times(seconds: float, text: str) -> None:
    assert format_time(seconds) == text


def test_parameters_are_written_without_idle_zeros() -> None:
    assert format_time(5e-6, trim=True) == "5 us"
    assert format_size(32768) == "32 KiB"
    assert format_size(1000) == "1000 B"
    assert format_size(1536) == "1.5 KiB"
    assert format_size(0) == "0 B"
    assert format_size(0.25) == "0.25 B"
    assert format_bandwidth(1e9) == "1 GB/s"
    assert format_bandwidth(math.inf) == "inf"
    assert format_bandwidth(2.0**30) == "1.074 GB/s"


magnitudes = st.floats(min_value=1e-9, max_value=1e13)


@given(magnitudes)
def test_a_time_survives_being_written(seconds: float) -> None:
    assert parse_time(format_time(seconds)) == pytest.approx(seconds, rel=5.01e-4)


@given(st.floats(min_value=1, max_value=1e18))
def test_size_and_bandwidth_survive_being_written(value: float) -> None:
    assert parse_size(format_size(value)) == pytest.approx(value, rel=5.01e-4)
    assert parse_bandwidth(format_bandwidth(value)) == pytest.approx(value, rel=5.01e-4)


@given(st.integers(min_value=0, max_value=2**63))
def test_whole_bytes_stay_exact(size: int) -> None:
    assert parse_size(str(size)) == size
    assert parse_size(f"{size}KiB") == size * 1024


@given(magnitudes)
def test_written_times_keep_their_width(seconds: float) -> None:
    number, unit = format_time(min(seconds, 9999.0)).split()
    assert len(number) <= 6
    assert unit in {"ns", "us", "ms", "s"}


@pytest.mark.long
@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    for parse in (parse_time, parse_size, parse_bandwidth):
        try:
            value = parse(text)
        except UsageError:
            continue
        assert value >= 0
