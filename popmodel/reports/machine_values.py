"""Quantities of a machine profile as text: value and interval in one unit."""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.machines import register
from popmodel.machines.quantity import Quantity

_SCALES: Mapping[str, tuple[tuple[str, float], ...]] = {
    "s": (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)),
    "B": (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30)),
    "B/s": (("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12)),
    "s/B": (("ps/B", 1e-12), ("ns/B", 1e-9), ("us/B", 1e-6)),
    "Hz": (("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)),
}
_LEAST_FIGURE = 0.00995  # what is smaller has one digit beside figures that are not
_WRITTEN = {"1/cycle": "per cycle", "cycle": "cycles", "1": ""}


def value_text(quantity: Quantity, unit: str, digits: int = 3) -> str:
    """Value with three digits, or some, and the prefix that suits it: ``0.52 us``."""
    name, factor = _scale(_magnitude(quantity), unit)
    number = quantity.value / factor
    # a large number is written whole: 1020 B
    text = f"{number:.0f}" if abs(number) >= 10 ** (digits - 1) else f"{number:.{digits}g}"
    return f"{text} {name}".rstrip()


def interval_text(quantity: Quantity, unit: str) -> str:
    """Interval in the unit of the value, ``0.48 .. 0.60``; ``-`` where none is known."""
    if quantity.low is None or quantity.high is None:
        return "-"
    _, factor = _scale(_magnitude(quantity), unit)
    low, high = quantity.low / factor, quantity.high / factor
    if max(abs(low), abs(high)) < _LEAST_FIGURE:  # of a unit without prefixes
        return f"{low:.3g} .. {high:.3g}"
    return f"{figure(low)} .. {figure(high)}"


def percent_text(share: float) -> str:
    """A share as ``1.2 %``; what is nearer to 0 than a hundredth of a percent as that."""
    if 0 < abs(share) < 1e-4:
        return "below 0.01 %"
    return f"{figure(100 * share + 0.0)} %"  # -0.0 + 0.0 is 0.0


def inverse(quantity: Quantity) -> Quantity | None:
    """A time per byte as a bandwidth; None if it is 0, a bandwidth without bound."""
    if quantity.value == 0:
        return None
    if quantity.low is None or quantity.high is None or quantity.low == 0:
        return Quantity(1 / quantity.value)
    return Quantity(1 / quantity.value, 1 / quantity.high, 1 / quantity.low)


def figure(number: float) -> str:
    """A number with three digits, none behind the point from 100 on, fewer below a hundredth."""
    if abs(number) >= 99.95:
        return f"{number:.0f}"
    return f"{number:.3g}" if abs(number) >= _LEAST_FIGURE or not number else f"{number:.1g}"


def host_text(value: str | int | float) -> str:
    """What a profile says of its host, such as the MPI library."""
    # Open MPI adds who packaged it, when and where
    return str(value).partition(", package:")[0]


def unit_of(path: str) -> str:
    """Unit of a quantity by its path, such as ``s`` for ``net.intra.classes[0].alpha``."""
    parameter = register.find(path)
    if parameter is None or parameter.plain:
        raise KeyError(path)
    return parameter.unit


def _magnitude(quantity: Quantity) -> float:
    """What the prefix of a unit is chosen by: the value, or its upper bound if it is 0."""
    return quantity.value or quantity.high or 0.0


def _scale(value: float, unit: str) -> tuple[str, float]:
    scales = _SCALES.get(unit)
    if scales is None:
        return _WRITTEN.get(unit, unit), 1.0
    # 999.6 us is written as 1 ms: the limit is that of the rounded figure.
    fitting = [scale for scale in scales if abs(value) >= 0.9995 * scale[1]]
    return fitting[-1] if fitting else scales[-1 if value == 0 and unit == "s" else 0]
