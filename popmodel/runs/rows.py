"""From the rows of a table, whatever its format, to measured runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from typing import Any

from popmodel.efficiency.hierarchy import IdentityError, load_families
from popmodel.errors import PopmodelError
from popmodel.runs import cells
from popmodel.runs.columns import COLUMNS, INFORMATION, REMARK, Column, column
from popmodel.runs.measurement import Measurement, require_plausible
from popmodel.runs.place import Place
from popmodel.values import dataclass

_LIKE = 0.8  # a name that is as near to a known one is a misspelling of it, not another column
_ROUNDED = 0.05
"""By how much a metric may differ from what its parts give: a few of them in whole per cent."""
_HEADER = f"the first line names the columns: {','.join(COLUMNS)}"
_NEEDED = f"every run needs {', '.join(COLUMNS[:2])} and {COLUMNS[2]}"


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    place: Place  # Where it stands
    # Its cells by what stands above them: text, or numbers. An empty text or None is nothing.
    values: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)  # Other fields of the `Measurement`


@dataclass(frozen=True)
class _Said:
    """What a user says of a file: ``runs.txt:p=processes,threads=4``."""

    meant: Mapping[str, str]  # By the name of a column what it means
    set_: Mapping[str, str]  # Values that hold for all rows, by name

    @classmethod
    def of(cls, said: Mapping[str, str]) -> _Said:
        """Tell names from numbers."""
        numbers = {name: text for name, text in said.items() if cells.is_number(text)}
        return cls({name: text for name, text in said.items() if name not in numbers}, numbers)


@dataclass(frozen=True)
class RunTimes:
    """A table of runs."""

    path: str  # The file
    # One per row; rows of the same size and parameters are repeats of a run.
    runs: tuple[Measurement, ...]
    parameters: tuple[str, ...]  # Columns that set parameters of the application
    ignored: tuple[str, ...]  # Columns that have no meaning here
    notes: tuple[str, ...] = ()  # What had to be assumed, one line each


def read_rows(
    heads: Sequence[str],
    rows: Sequence[Row],
    parameters: Iterable[str] | None,
    top: Place,
    said: Mapping[str, str] | None = None,
    *,
    own: Collection[str] = (),
    others: Collection[str] = (),
) -> RunTimes:
    """Read runs from rows."""
    told = _Said.of(said or {})
    heads, rows = _as_told(heads, rows, told, top)
    known = [*COLUMNS, *(parameters or ())]
    columns = [column(head, known[len(COLUMNS) :], top) for head in heads]
    _check_names(columns, known, top, others)
    if not rows:
        raise Place(top.path).error("has no runs", "write one line per run below the header")
    if parameters is None:
        columns = [one if one.head in others else _as_parameter(one, rows, own) for one in columns]
    for one in columns:
        if one.is_time:
            cells.one_unit(one, [(row.place, row.values.get(one.head)) for row in rows])
        if one.what == "nothing" and one.head in own:
            _check_size(one, rows, known, top)
        elif one.what == "nothing" and one.head not in others:
            _check_information(one, rows, known, top)
    return RunTimes(
        top.path,
        tuple(_measurement(columns, row) for row in rows),
        tuple(one.name for one in columns if one.what == "parameter"),
        tuple(one.head for one in columns if one.what == "nothing" and one.head),
    )


def _as_told(
    heads: Sequence[str], rows: Sequence[Row], told: _Said, top: Place
) -> tuple[list[str], list[Row]]:
    """The table with the names and the values that a user gives."""
    for name in told.meant:
        if name not in heads:
            columns = ", ".join(head for head in heads if head)
            raise Place(top.path).error(
                f"has no column {name!r} that could mean {told.meant[name]}",
                f"its columns are {columns}",
            )
    for name in told.set_:
        if name in heads:
            raise Place(top.path).error(
                f"has a column {name!r}, and {name}={told.set_[name]} is set for all of its runs",
                "leave out one of them",
            )
    renamed = [told.meant.get(head, head) for head in heads]
    return [*renamed, *told.set_], [
        Row(
            row.place,
            {told.meant.get(head, head): cell for head, cell in row.values.items()}
            | dict(told.set_),
            row.facts,
        )
        for row in rows
    ]


def _check_names(
    columns: Sequence[Column], known: Sequence[str], top: Place, others: Collection[str]
) -> None:
    def near(name: str, among: Iterable[str]) -> list[str]:
        folded = {each.casefold(): each for each in among}
        return [folded[each] for each in get_close_matches(name.casefold(), folded, 1, _LIKE)]

    heads = [one.head for one in columns]
    for name in COLUMNS:
        if name not in [one.name for one in columns if one.what in ("size", "runtime")]:
            wrong = near(name, heads)
            otherwise = _NEEDED if top.line is None else _HEADER
            hint = f"rename the column {wrong[0]!r}" if wrong else otherwise
            raise top.error(f"has no column {name!r}", hint)
    for one in columns:
        same = [other.head for other in columns if one.head and other.key == one.key]
        if len(same) > 1:
            different = f": {', '.join(same)}" if len(set(same)) > 1 else ""
            raise top.error(
                f"has {len(same)} columns {one.name!r}{different}", "remove or rename all but one"
            )
        unknown = one.what == "nothing" and one.head and one.head not in others
        if unknown and (meant := near(one.head, known)):
            raise top.error(
                f"has an unknown column {one.head!r}",
                f"did you mean {meant[0]!r}? Rename the column, or remove it",
            )


def _has_numbers(one: Column, rows: Sequence[Row]) -> bool:
    """Whether a column has numbers, and nothing else."""
    found = [value for row in rows if (value := row.values.get(one.head)) not in (None, "")]
    return bool(found) and all(cells.is_number(cell) for cell in found)


def _as_parameter(one: Column, rows: Sequence[Row], own: Collection[str]) -> Column:
    """A column of numbers whose name means nothing else, as a parameter of the application."""
    free = one.head not in INFORMATION and not one.head.startswith(REMARK)
    if one.what == "nothing" and (one.head in own or (free and _has_numbers(one, rows))):
        return Column(one.head, "parameter", one.head)
    return one


def _check_size(one: Column, rows: Sequence[Row], known: Sequence[str], top: Place) -> None:
    """Refuse runs of several problem sizes that the application knows nothing of."""
    found = [row.values.get(one.head, "") for row in rows]
    texts = (f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in found)
    values = list(dict.fromkeys(texts))
    if len(values) > 1:
        parameters = ", ".join(known[len(COLUMNS) :]) or "none"
        raise Place(top.path).error(
            f"{one.head} differs between its runs ({', '.join(values[:2])}), and is not a "
            f"parameter of the application ({parameters})",
            f"say what it means, as {top.path}:{one.head}=NAME, or give runs of one problem size",
        )


def _check_information(one: Column, rows: Sequence[Row], known: Sequence[str], top: Place) -> None:
    """Refuse a column of numbers that sets nothing and is not known to be information."""
    if one.head in INFORMATION or one.head.startswith(REMARK):
        return
    if _has_numbers(one, rows):
        parameters = ", ".join(known[len(COLUMNS) :]) or "none"
        raise top.error(
            f"column {one.head!r} is not a parameter of the application ({parameters})",
            f"name it after the parameter that it sets, or {REMARK}{one.head} if it sets none",
        )


def _measurement(columns: Sequence[Column], row: Row) -> Measurement:
    sizes: dict[str, int] = {}
    runtime = 0.0
    parameters: dict[str, float] = {}
    metrics: dict[str, dict[str, float]] = {}
    amounts: dict[str, float] = {}
    for one in columns:
        if one.what in ("size", "runtime") and one.head not in row.values:
            raise row.place.error(f"has no {one.name}", _NEEDED)
        cell = row.values.get(one.head, "")
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            if one.what not in ("size", "runtime"):
                continue  # not known of this run
            cell = ""
        if one.what == "size":
            sizes[one.name] = cells.count(cell, one.name, row.place)
        elif one.what == "runtime":
            runtime = cells.seconds(cell, one, row.place)
        elif one.what == "parameter":
            parameters[one.name] = cells.positive(cell, one.name, row.place)
        elif one.what == "metric":
            value = cells.fraction(cell, one, row.place)
            metrics.setdefault(one.family, {})[one.name] = value
        elif one.what == "aggregate":
            amounts[one.name] = cells.amount(cell, one, row.place)
    _check_parts(metrics, row.place)
    aggregates = {
        "processes": float(sizes["processes"]),
        "threads": float(sizes["processes"] * sizes["threads"]),
        "runtime": runtime,
        **amounts,
    }
    found = Measurement(
        row.place.path,
        sizes["processes"],
        sizes["threads"],
        runtime,
        _with_computed(metrics, aggregates, row.place) if amounts else metrics,
        parameters=parameters,
        line=row.place.line,
        aggregates=aggregates,
        entry=row.place.entry,
    )
    return replace(found, **row.facts)


def _check_parts(metrics: Mapping[str, Mapping[str, float]], place: Place) -> None:
    """Refuse metrics that are no product, or sum of losses, of their parts: of another family."""
    families = load_families() if metrics else {}
    for name, values in metrics.items():
        known = families[name].metrics
        for each in families[name].decompositions:
            for part in each.parts if each.parent in values else ():
                others = [known.get(other) for other in each.parts if other != part]
                limited = all(one and one.at_most == 1 and not one.at_most_plus for one in others)
                if limited and values[each.parent] > values.get(part, math.inf) + _ROUNDED:
                    raise place.error(
                        f"{name}: {each.parent} is {values[each.parent]:g}, and its part {part} "
                        f"only {values[part]:g}",
                        "check of which family the metrics are: popmodel explain FAMILY",
                    )
            if not {each.parent, *each.parts} <= values.keys():
                continue
            given, found = values[each.parent], each.combine(values)
            if abs(given - found) > _ROUNDED:
                raise place.error(
                    f"{name}: {each.parent} is {given:g}, and its parts give {found:.3g} "
                    f"({', '.join(each.parts)})",
                    "check of which family the metrics are: popmodel explain FAMILY",
                )


def computed(aggregates: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Metrics of all families that follow from quantities, as far as these are known."""
    families = load_families().items()
    found = {name: dict(family.evaluate(aggregates).values) for name, family in families}
    require_plausible(found)
    return found


def _with_computed(
    given: Mapping[str, Mapping[str, float]], aggregates: Mapping[str, float], place: Place
) -> dict[str, dict[str, float]]:
    """Metrics that are given, and those that follow from quantities that are."""
    try:
        found = computed(aggregates)
    except (PopmodelError, IdentityError) as reason:
        raise place.error(f"its quantities contradict each other: {reason}") from None
    every = {name: values | dict(given.get(name, {})) for name, values in found.items()}
    return {name: values for name, values in every.items() if values}
