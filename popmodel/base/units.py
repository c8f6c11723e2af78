"""Quantities with units and numbers of things, as people write and read them.

Inside popmodel times are seconds, sizes bytes and bandwidths bytes per second. Only the edges, the
command line and the reports, know other units. Decimal prefixes are powers of 1000 (1 GB = 1e9 B),
binary ones powers of 1024 (1 GiB = 2**30 B).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

from popmodel.base.errors import UsageError

TIME_UNITS = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,  # the Greek letter; the line above is the micro sign
    "ns": 1e-9,
    "min": 60.0,
    "h": 3600.0,
}
SIZE_UNITS = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
BANDWIDTH_UNITS = {f"{unit}/s": float(size) for unit, size in SIZE_UNITS.items()} | {
    # Vendors quote links in bits. "Gb/s" is refused: too many people write it for bytes.
    "kbit/s": 1e3 / 8,
    "Mbit/s": 1e6 / 8,
    "Gbit/s": 1e9 / 8,
}

FLOP_RATE_UNITS = {
    f"{prefix}{unit}": factor
    for unit in ("flop/s", "f")  # the second as in platform files of SimGrid
    for prefix, factor in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))
}

_QUANTITY = r"(?s)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s.+-].*)?"

_ACCEPTED_TIME = "give a number with ns, us, ms, s, min or h, for example 5us"
_ACCEPTED_SIZE = "give a number with B, kB, MB, GB, KiB, MiB or GiB, for example 32KiB, or inf"
_ACCEPTED_BANDWIDTH = (
    "give a number with kB/s, MB/s, GB/s, MiB/s, GiB/s or Gbit/s, for example 1GB/s, or inf"
)
_ACCEPTED_FLOP_RATE = "give a number with flop/s, Mflop/s, Gflop/s or Gf, for example 1Gflop/s"


def parse_time(text: str) -> float:
    """Read a time such as ``5us``; only zero needs no unit."""
    _refuse_bare(text, "time", lambda number: "us" if number >= 0.01 else "s", _ACCEPTED_TIME)
    return float(_parse(text, "time", TIME_UNITS, _ACCEPTED_TIME))


def parse_size(text: str) -> float:
    """Read a size such as ``32KiB`` or ``inf``; a bare number is in bytes."""
    if text.strip().lower() == "inf":
        return math.inf
    size = _parse(text, "size", SIZE_UNITS, _ACCEPTED_SIZE)
    return int(size) if size == int(size) else size


def parse_flop_rate(text: str) -> float:
    """Read a rate such as ``1Gflop/s`` or ``1Gf``; a bare number is in flop per second."""
    rate = float(_parse(text, "flop rate", FLOP_RATE_UNITS, _ACCEPTED_FLOP_RATE))
    if rate == 0:
        raise UsageError(f"'{text}': a flop rate must be above 0", _ACCEPTED_FLOP_RATE)
    return rate


def parse_bandwidth(text: str) -> float:
    """Read a bandwidth such as ``1GB/s``, ``10Gbit/s`` or ``inf``; it needs a unit."""
    if text.strip().lower() == "inf":
        return math.inf
    _refuse_bare(
        text, "bandwidth", lambda number: "GB/s" if number < 1000 else "B/s", _ACCEPTED_BANDWIDTH
    )
    bandwidth = float(_parse(text, "bandwidth", BANDWIDTH_UNITS, _ACCEPTED_BANDWIDTH))
    if bandwidth == 0:
        raise UsageError(f"'{text}': a bandwidth must be above 0", _ACCEPTED_BANDWIDTH)
    return bandwidth


def format_time(seconds: float, *, digits: int = 4, trim: bool = False) -> str:
    """Write a time with `digits` significant digits in the unit that suits it."""
    return _format(seconds, (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)), digits, trim)


def format_size(size: float, *, digits: int = 4, trim: bool = True) -> str:
    """Write a size in bytes with binary prefixes: ``32 KiB``."""
    scale = (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30), ("TiB", 2.0**40))
    return _format(size, scale, digits, trim)


def format_bandwidth(bandwidth: float, *, digits: int = 4, trim: bool = True) -> str:
    """Write a bandwidth in bytes per second with decimal prefixes: ``1.5 GB/s``."""
    scale = (("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12))
    return _format(bandwidth, scale, digits, trim)


def _refuse_bare(text: str, what: str, guess: Callable[[float], str], accepted: str) -> None:
    """Refuse a number without unit: 5 is likelier meant as 5 us than as 5 s."""
    match = re.fullmatch(_QUANTITY, text)
    if match is None or match[2] or float(match[1]) <= 0:
        return
    meant = f"{match[1]}{guess(float(match[1]))}"
    raise UsageError(f"'{text}': a {what} needs a unit", f"did you mean {meant}? {accepted}")


def _parse(text: str, what: str, units: dict[str, float] | dict[str, int], accepted: str) -> float:
    match = re.fullmatch(_QUANTITY, text)
    if match is None:
        raise UsageError(f"'{text}' is not a {what}", accepted)
    number, unit = match[1], (match[2] or "").rstrip()
    if unit and unit not in units:
        raise UsageError(f"'{text}': '{unit}' is not a unit of {what}", accepted)
    factor: float = units[unit] if unit else 1
    # Integers are multiplied as integers: 32KiB is 32768 and 7us not 6.999999999999999e-06.
    if factor < 1 and (inverse := round(1 / factor)) > 0:
        value = float(number) / inverse
    elif re.fullmatch(r"[+-]?\d+", number) and len(number) < 20:
        value = int(number) * factor
    else:
        value = float(number) * factor
    if value < 0:
        raise UsageError(f"'{text}': a {what} cannot be negative", accepted)
    if math.isinf(value):
        raise UsageError(f"'{text}': this {what} is too large", accepted)
    return value


def _format(value: float, scale: tuple[tuple[str, float], ...], digits: int, trim: bool) -> str:
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf" if value < 0 else "nan"
    magnitude = abs(value)
    if magnitude == 0:
        unit = "s" if scale[0][0] == "ns" else scale[0][0]
        return f"0 {unit}"
    index = 0
    text = _significant(magnitude / scale[0][1], digits)
    # 999.96 us has four digits as 1.000 ms, so the limit is applied to the rounded text.
    while index < len(scale) - 1 and float(text) >= round(scale[index + 1][1] / scale[index][1]):
        index += 1
        text = _significant(magnitude / scale[index][1], digits)
    unit = scale[index][0]
    if trim and "." in text:
        text = text.rstrip("0").rstrip(".")
    if unit == "B" and magnitude == int(magnitude):
        text = str(int(magnitude))
    return f"{'-' if value < 0 else ''}{text} {unit}"


def _significant(number: float, digits: int) -> str:
    """Fixed-point text with `digits` significant digits, never an exponent for what is usual."""
    if number >= 10 ** (digits + 3):
        return f"{number:.{digits - 1}e}"
    exponent = math.floor(math.log10(number))
    text = f"{number:.{max(digits - 1 - exponent, 0)}f}"
    if len(text.replace(".", "").lstrip("0")) > digits and "." in text:
        text = f"{number:.{max(digits - 2 - exponent, 0)}f}"  # 9.9996 became 10.000
    return text


def count(number: int) -> str:
    """A whole number with its thousands apart: ``1,024,000``."""
    return f"{number:,}"


def plural(number: int, noun: str, plural_noun: str | None = None) -> str:
    """``1 process``, ``4 processes``."""
    return f"{count(number)} {noun if number == 1 else plural_noun or noun + 's'}"


def team(threads: Iterable[int]) -> str:
    """Processes and threads of each: ``4 x 2``, or ``4 x 1..2`` where processes differ."""
    numbers = [int(number) for number in threads]
    least, most = min(numbers, default=0), max(numbers, default=0)
    return f"{count(len(numbers))} x {least if least == most else f'{least}..{most}'}"


# Ranges of values on the command line and in Python: ``0.1us:100us:log13``.


MOST_VALUES = 10_000
"""Values of one range at most."""

_ACCEPTED_RANGE = (
    "write FIRST:LAST:log13 for 13 values with equal ratios, FIRST:LAST:lin5 for equal steps"
)


def parse_values(text: str, read: Callable[[str], float]) -> list[float]:
    """Read one value, or a range of them."""
    if ":" not in text:
        return [read(text)]
    match = re.fullmatch(r"([^:]+):([^:]+):\s*(log|lin|)(\d+)\s*", text)
    if match is None:
        raise UsageError(f"'{text}' is no range of values", _ACCEPTED_RANGE)
    first, last = read(match[1].strip()), read(match[2].strip())
    by_ratio, number = match[3] == "log", int(match[4])
    if not 2 <= number <= MOST_VALUES:
        raise UsageError(
            f"'{text}': a range has 2 to {MOST_VALUES} values, not {number}", _ACCEPTED_RANGE
        )
    if max(first, last) == float("inf"):
        raise UsageError(f"'{text}': both ends of a range must be finite", _ACCEPTED_RANGE)
    if by_ratio and min(first, last) <= 0:
        raise UsageError(
            f"'{text}': a range of equal ratios cannot begin or end at 0", _ACCEPTED_RANGE
        )
    if first == last:
        raise UsageError(f"'{text}': both ends of the range are the same", _ACCEPTED_RANGE)
    parts = [i / (number - 1) for i in range(1, number - 1)]
    if by_ratio:
        inner = [first * (last / first) ** part for part in parts]
    else:
        inner = [first + (last - first) * part for part in parts]
    return [first, *(float(f"{value:.12g}") for value in inner), last]


def time_if_any(seconds: float | None) -> str:
    """A time in three digits; a dash for none."""
    return "-" if seconds is None else format_time(seconds, digits=3)


def percent_if_any(fraction: float | None) -> str:
    """A fraction in per cent without the sign; a dash for none."""
    return "-" if fraction is None else f"{100 * fraction:.1f}"
