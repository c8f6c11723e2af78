"""Numbers in the cells of a table of runs: text of a CSV file, or numbers of a document."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.runs.sources import as_number
from popmodel.shapes import Real, shown
from popmodel.units import TIME_UNITS

if TYPE_CHECKING:
    from popmodel.runs.columns import Column
    from popmodel.runs.place import Place

_TIME = re.compile(r"(?P<number>.*?)\s*(?P<unit>[A-Za-zµμ]+)")
_MOST = 1.005
"""What an efficiency of at most 1 may be: as people round."""
_PLAUSIBLE = 20.0
"""What a metric without a bound may be; 85 is 85 %."""
_LEAST = -0.005


def is_number(cell: Any) -> bool:
    """Whether a cell is a number, NaN and infinity included."""
    if isinstance(cell, str):
        try:
            float(cell)
        except ValueError:
            return False
        return True
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def count(cell: Any, name: str, place: Place) -> int:
    """A number of something."""
    text = cell if isinstance(cell, str) else repr(cell)
    if re.fullmatch(r"0*[1-9]\d{0,8}(\.0*)?", text, re.ASCII):  # a spreadsheet's 4.0 is 4
        return int(float(text))
    raise place.error(f"{name} must be a whole number, at least 1, not {shown(cell)}")


def positive(cell: Any, name: str, place: Place) -> float:
    """A number above 0, such as a parameter."""
    return _number(cell, cell, f"{name} must be a number above 0", Real(above=0), place)


def seconds(cell: Any, column: Column, place: Place) -> float:
    """A runtime."""
    number, factor = _time(cell, column, place)
    must = f"{column.name} must be a number of {column.unit or 'seconds'} above 0"
    return factor * _number(number, cell, must, Real(above=0), place)


def amount(cell: Any, column: Column, place: Place) -> float:
    """A quantity that metrics are computed from, in seconds if it is a time."""
    number, factor = _time(cell, column, place) if column.is_time else (cell, 1.0)
    if column.name == "ideal_runtime":  # metrics divide by it
        must, shape = f"{column.name} must be a number above 0", Real(above=0)
    else:
        must, shape = f"{column.name} must be a number, at least 0", Real(least=0)
    return factor * _number(number, cell, must, shape, place)


def fraction(cell: Any, column: Column, place: Place) -> float:
    """A metric, as a fraction of 1; in the table also per cent."""
    text = cell.strip() if isinstance(cell, str) else cell
    per_cent = isinstance(text, str) and text.endswith("%")
    number = text.removesuffix("%").strip() if per_cent else text
    value = _number(number, cell, f"{column.name} must be a fraction or per cent", Real(), place)
    if per_cent or column.unit == "%":
        value /= 100
    metric = load_families()[column.family].metrics[column.name]
    most = _PLAUSIBLE if metric.at_most is None else metric.at_most * _MOST
    least = -_PLAUSIBLE if metric.at_least is None else _LEAST
    if not least <= value <= most:
        hint = f"if it is per cent, write {shown(cell).strip(_QUOTES)}% or {column.head} [%]"
        problem = f"{column.name} cannot be {value:g}"
        raise place.error(problem, hint if 1 < value <= 100 else None)
    return value


def one_unit(column: Column, cells: Sequence[tuple[Place, Any]]) -> None:
    """Refuse a column of times of which some have a unit and some none: the others may mean any."""
    with_unit = [unit for _, cell in cells if (unit := _unit_of(cell)) is not None]
    if column.unit is None and with_unit:
        for place, cell in cells:
            if _unit_of(cell) is None and cell not in (None, ""):
                raise place.error(
                    f"{column.name} {shown(cell)} has no unit, others are in {with_unit[0]}",
                    f"give all of them one, or write the unit above them: {column.name} [ms]",
                )


_QUOTES = "'\""


def _unit_of(cell: Any) -> str | None:
    match = _TIME.fullmatch(cell.strip()) if isinstance(cell, str) else None
    return match["unit"] if match is not None and match["unit"] in TIME_UNITS else None


def _time(cell: Any, column: Column, place: Place) -> tuple[Any, float]:
    """The number of a time, and by what it becomes seconds."""
    unit = _unit_of(cell)
    if unit is None:
        return cell, TIME_UNITS[column.unit or "s"]
    if column.unit is not None and TIME_UNITS[unit] != TIME_UNITS[column.unit]:
        raise place.error(
            f"{column.name} {shown(cell)} contradicts the unit of its column, {column.unit}",
            "give it in that unit, or leave the unit out above the column",
        )
    return cell.strip().removesuffix(unit).strip(), TIME_UNITS[unit]


def _number(cell: Any, written: Any, must: str, shape: Real, place: Place) -> float:
    value = as_number(cell) if isinstance(cell, str) else cell
    try:
        value = shape.read(value)
    except ValueError:  # no number, or none that a run can have
        value = math.nan
    if math.isnan(value):
        raise place.error(f"{must}, not {shown(written)}")
    return float(value)
