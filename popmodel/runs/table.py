"""Rows of a table of runs, whatever its format: what columns mean and what cells may hold."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, TypeAlias

from popmodel.base.documents import Real, shown
from popmodel.base.errors import PopmodelError, UsageError, did_you_mean
from popmodel.base.units import TIME_UNITS, plural
from popmodel.efficiency.evidence import WAITED
from popmodel.efficiency.family import AGGREGATES, IdentityError
from popmodel.efficiency.hierarchy import load_families
from popmodel.runs.column_names import (
    NEEDED,
    is_missing,
    is_result,
    is_whole,
    meaning_of,
    seconds_of,
    sized,
    unit_of,
)
from popmodel.runs.measurement import AGGREGATE, COLUMNS, MAIN_FAMILY, MeasuredRow, computed
from popmodel.runs.text_tables import REMARK, Place, Row, as_number, is_number

INFORMATION = (
    *("run", "repeat", "job", "job_id", "date", "time", "host", "comment", "note", "source"),
    *("timestamp", "epoch", "start", "end", "user", "version", "commit", "seed", "jobid", "rep"),
    *("repetition", "trial", "try", "sample", "index", "id", "label", "name"),
    *("popmodel", "command", "popmodel_time", "popmodel_host", "popmodel_command"),
)
"""Columns that say something about a run without setting anything, whatever is in them."""

_VALUES = re.compile(r":(?=[^\W\d][^=:/,]*=[^/]*$)")
_LIKE = 0.8  # a name that is as near to a known one is a misspelling of it, not another column
_MOST, _LEAST = 1.005, -0.005
"""What an efficiency between 0 and 1 may be: as people round."""
_PLAUSIBLE = 20.0
"""What a metric without a bound may be; 85 is 85 %."""
_ROUNDED = 0.05
"""By how much a metric may differ from what its parts give: a few of them in whole per cent."""
_TIME_HINT = "write a number, with its unit above the column (runtime [ms]), or 1:02:03"
_HEADER = f"the first line names the columns: {','.join(COLUMNS)}"

What: TypeAlias = Literal[
    "size", "runtime", "parameter", "metric", "aggregate", "nodes", "binding", "waited", "nothing"
]


class RunTimes(NamedTuple):
    """A table of runs."""

    path: str  # The file
    # One per row; rows of the same size and parameters are repeats of a run.
    runs: tuple[MeasuredRow, ...]
    parameters: tuple[str, ...]  # Columns that set parameters of the application
    ignored: tuple[str, ...]  # Columns that have no meaning here
    notes: tuple[str, ...] = ()  # What had to be assumed or was left out, one line each


class Column(NamedTuple):
    """What a column of a table means."""

    head: str  # What stands above it
    what: What
    name: str  # Of the parameter, the metric or the quantity, without unit and family
    family: str = ""  # Of a metric
    # Given behind the name: of times one of `popmodel.base.units.TIME_UNITS`, of shares ``%``.
    unit: str | None = None


def column(head: str, parameters: Iterable[str], place: Place) -> Column:
    """Read what stands above a column."""
    if head in COLUMNS[:2]:
        return Column(head, "size", head)
    if head in parameters:
        return Column(head, "parameter", head)
    if head.casefold() in INFORMATION or head.startswith(REMARK) or not head:
        return Column(head, "nothing", head)
    name, unit = unit_of(head)

    def meant(what: What, own: str, units: Iterable[str], family: str = "") -> Column:
        if unit is not None and unit not in units:
            known = ", ".join(dict.fromkeys(unit.replace("μ", "µ") for unit in units))
            problem = f"column {name!r} has the unit {unit!r}"
            raise place.error(problem, f"units of it are {known}")
        return Column(head, what, own, family, None if unit == "1" else unit)

    if name == "runtime":
        by_clock = unit is not None and ":" in unit  # sized() has seen that it is a time
        return meant("runtime", name, (unit, *TIME_UNITS) if by_clock and unit else TIME_UNITS)
    if name == "waited":
        return meant("waited", name, ("%", "1"))
    if head == "nodes" or head == "binding":
        return Column(head, "nodes" if head == "nodes" else "binding", head)
    family, _, own = name.rpartition(".")
    quantities = {each: one for each, one in AGGREGATES.items() if each not in COLUMNS}
    members = {AGGREGATE: quantities, **{id: one.metrics for id, one in load_families().items()}}
    known = members.get(family or MAIN_FAMILY, {})
    if own in known and family == AGGREGATE:
        seconds = AGGREGATES[own].unit == "s"
        return meant("aggregate", own, TIME_UNITS if seconds else (AGGREGATES[own].unit,))
    if own in known:
        return meant("metric", own, ("%", "1"), family or MAIN_FAMILY)
    if family in members:
        hint = did_you_mean(own, known, "popmodel docs --all lists them")
        raise place.error(f"column {head!r}: {family} has no {own!r}", hint)
    return Column(head, "nothing", head)


def number_of(column: Column, cell: Any, place: Place) -> float:
    """The number in a cell: whole, in seconds, or a fraction of 1, as its column has it."""
    name, what = column.name, column.what
    if what in ("size", "nodes"):
        if is_whole(cell):
            return float(cell)
        hint = None if cell else "every line needs it: fill in merged cells"
        raise place.error(f"{name} must be a whole number, at least 1, not {shown(cell)}", hint)
    if what == "runtime":
        seconds = seconds_of(cell, column.unit)
        if 0 < seconds < math.inf:
            return seconds
        unit = "seconds" if column.unit in (None, "s") else column.unit
        must = f"a time such as {unit}" if ":" in unit else f"a number of {unit} above 0"
        raise place.error(
            f"{name} must be {must}, not {shown(cell)}", None if is_number(cell) else _TIME_HINT
        )
    number = cell.strip() if isinstance(cell, str) else cell
    must, shape, hint = f"{name} must be a number above 0", Real(above=0), None
    if what == "aggregate" and name != "ideal_runtime":  # metrics divide by it
        must, shape = f"{name} must be a number, at least 0", Real(least=0)
    elif what in ("metric", "waited"):
        must, shape = f"{name} must be a fraction or per cent", Real()
    in_percent = column.unit == "%"
    if what in ("metric", "waited") and isinstance(number, str) and number.endswith("%"):
        in_percent, number = True, number.removesuffix("%").strip()
    try:
        value = float(shape.read(as_number(number) if isinstance(number, str) else number))
    except ValueError:  # no number, or none that a run can have
        value = math.nan
    if math.isnan(value):
        raise place.error(f"{must}, not {shown(cell)}", hint)
    if what in ("metric", "waited"):
        value = value / 100 if in_percent else value
        _check_share(column, value, cell, place)
        return value
    return value * TIME_UNITS.get(column.unit or "s", 1.0)  # aggregates


def _check_share(column: Column, value: float, cell: Any, place: Place) -> None:
    least, most = _LEAST, _MOST
    if column.what == "metric":
        metric = load_families()[column.family].metrics[column.name]
        most = _PLAUSIBLE if metric.at_most is None else metric.at_most * _MOST
        least = -_PLAUSIBLE if metric.at_least is None else _LEAST
    if not least <= value <= most:
        text = shown(cell).strip("'\"")
        hint = f"if it is per cent, write {text}% or {column.head} [%]"
        problem = f"{column.name} cannot be {value:g}"
        raise place.error(problem, hint if 1 < value <= 100 else None)


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
    """Read runs from rows.

    Without `parameters` of an application every other column of numbers is one. `said` holds
    what a user says of the file: what columns mean, and values for all rows. `own` are columns that
    the format tells to be parameters, `others` those that may be anything.
    """
    heads, rows = _as_said(heads, rows, said or {}, top)
    known = tuple(parameters or ())
    heads, rows, results, notes = sized(heads, rows, known, top)
    columns = [column(head, known, top) for head in heads]
    _check_names(columns, (*COLUMNS, *known), top, others)
    if not rows:
        raise Place(top.path).error("has no runs", "write one line per run below the header")
    rows = _timed(columns, rows, notes)
    not_known = f"not a parameter of the application ({', '.join(known) or 'none'})"
    unused: list[str] = []
    for number, head in enumerate(heads):
        if columns[number].what != "nothing" or head in others:
            continue
        cells = [row.values.get(head, "") for row in rows]
        filled = [cell for cell in cells if cell not in (None, "")]
        numeric = bool(filled) and all(map(is_number, filled))
        if numeric and head not in own and (head in results or is_result(head)):
            unused += [head] if is_result(head) else []
            continue
        sets = (
            numeric and head and head.casefold() not in INFORMATION and not head.startswith(REMARK)
        )
        if parameters is None and (head in own or sets):
            columns[number] = columns[number]._replace(what="parameter")
        elif head in own:
            texts = (f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in cells)
            values = list(dict.fromkeys(texts))
            if len(values) > 1:
                raise Place(top.path).error(
                    f"{head} differs between its runs ({', '.join(values[:2])}), and is "
                    f"{not_known}",
                    f"say what it means, as {top.path}:{head}=NAME, or give runs of one problem "
                    "size",
                )
        elif sets:
            raise top.error(
                f"column {head!r} is {not_known}",
                f"name it after the parameter that it sets, or {REMARK}{head} if it sets none",
            )
    runs = tuple(_measurement(columns, row) for row in rows)
    notes = [*_several_kinds(columns, rows, runs, top), *notes]
    if unused and parameters is None:
        notes.append(f"not used, as results of runs: {', '.join(unused)}")
    return RunTimes(
        top.path,
        runs,
        tuple(column.name for column in columns if column.what == "parameter"),
        tuple(column.head for column in columns if column.what == "nothing" and column.head),
        tuple(notes),
    )


def _several_kinds(
    columns: Sequence[Column], rows: Sequence[Row], runs: Sequence[MeasuredRow], top: Place
) -> Iterator[str]:
    """Say that repeats of all runs differ in a word, such as a compiler: they are no repeats."""
    for column in columns:
        if column.what != "nothing" or column.head.casefold() in INFORMATION:
            continue
        kinds: dict[object, set[str]] = defaultdict(set)
        for row, run in zip(rows, runs, strict=True):
            kinds[run.configuration].add(str(row.values.get(column.head, "")))
        first, *others = kinds.values()
        if len(first) > 1 and others and all(words == first for words in others):
            words = sorted(first)
            yield (
                f"runs of one size differ in {column.head} ({', '.join(words[:3])}), and are taken "
                f"for repeats: {top.path}:{column.head}={words[0]} takes those of one"
            )


def _timed(columns: Sequence[Column], rows: Sequence[Row], notes: list[str]) -> list[Row]:
    """Rows that have a runtime; says which have none."""
    head = next(column.head for column in columns if column.what == "runtime")
    without = [row for row in rows if head in row.values and is_missing(row.values[head])]
    if without:
        word = str(without[0].values[head] or "").strip()
        told = f"{plural(len(without), 'run')} left out, first {without[0].place.text}: no runtime"
        word = f" ({shown(word)})" if word else ""
        notes.append(f"{told}{word}")
        if len(without) == len(rows):
            raise without[0].place.error(f"has no runtime{word}, as all rows", _TIME_HINT)
    return [row for row in rows if row not in without]


def _as_said(
    heads: Sequence[str], rows: Sequence[Row], said: Mapping[str, str], top: Place
) -> tuple[list[str], list[Row]]:
    """The table with the names and the values that a user gives."""
    values = {name: text for name, text in said.items() if is_number(text)}
    names = {name: text for name, text in said.items() if name not in values}
    bare = {unit_of(head)[0]: head for head in heads}
    for name, meant in list(names.items()):
        alike = [row for row in rows if row.values.get(name) == meant]
        if alike:  # runs with that word
            rows = alike
            del names[name]
            continue
        head = name if name in heads else bare.get(name, name)
        if head in heads:
            meaning = meaning_of(head)
            unit = unit_of(head)[1] if meaning is None else meaning.unit
            keeps = meant == "runtime" and unit  # Wall=runtime of Wall [ms]
            names[head] = f"{names.pop(name)} [{unit}]" if keeps else names.pop(name)
        else:
            raise Place(top.path).error(
                f"has no column {name!r} that could mean {meant}",
                f"its columns are {', '.join(head for head in heads if head)}",
            )
    for name in [name for name in values if name in heads]:  # runs of that value
        wanted = float(values.pop(name))
        others = [as_number(str(row.values.get(name))) for row in rows]
        rows = [row for row, value in zip(rows, others, strict=True) if value == wanted]
        if not rows:
            listed = ", ".join(f"{value:.12g}" for value in dict.fromkeys(others[:8]))
            raise Place(top.path).error(f"has no run with {name} = {wanted:.12g}", f"has {listed}")
    return [*(names.get(head, head) for head in heads), *values], [
        Row(
            row.place,
            {names.get(head, head): cell for head, cell in row.values.items()} | values,
            row.facts,
        )
        for row in rows
    ]


def _check_names(
    columns: Sequence[Column], known: Sequence[str], top: Place, others: Collection[str]
) -> None:
    def near(name: str, among: Iterable[str]) -> list[str]:
        folded = {other.casefold(): other for other in among}
        return [folded[match] for match in get_close_matches(name.casefold(), folded, 1, _LIKE)]

    needed = {column.name for column in columns if column.what in ("size", "runtime")}
    for name in COLUMNS:
        if name not in needed:
            heads = [column.head for column in columns if column.head]
            wrong = near(name, heads)
            otherwise = NEEDED if top.line is None else _HEADER
            others = [head for head in heads if not is_number(head) and head not in COLUMNS]
            if others and not wrong:
                listed = ", ".join(others[:4]) + (", ..." if len(others) > 4 else "")
                otherwise = f"say which of {listed} it is: {top.path}:NAME={name}"
            hint = f"rename the column {wrong[0]!r}" if wrong else otherwise
            raise top.error(f"has no column {name!r}", hint)
    same: dict[tuple[str, str], list[str]] = defaultdict(list)
    for column in columns:
        if column.head:
            same[column.family or column.what, column.name].append(column.head)
    for column in columns:
        heads = same[column.family or column.what, column.name]
        if len(heads) > 1:
            different = f": {', '.join(heads)}" if len(set(heads)) > 1 else ""
            raise top.error(
                f"has {len(heads)} columns {column.name!r}{different}",
                "remove or rename all but one",
            )
        unknown = column.what == "nothing" and column.head and column.head not in others
        if unknown and (meant := near(column.head, known)):
            raise top.error(
                f"has an unknown column {column.head!r}",
                f"did you mean {meant[0]!r}? Rename the column, or remove it",
            )


def _measurement(columns: Sequence[Column], row: Row) -> MeasuredRow:
    numbers: dict[str, dict[str, float]] = defaultdict(dict)
    metrics: dict[str, dict[str, float]] = {}
    binding = ""
    for column in columns:
        needed = column.what in ("size", "runtime")
        if needed and column.head not in row.values:
            raise row.place.error(f"has no {column.name}", NEEDED)
        cell = row.values.get(column.head, "")
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            cell = ""
        if column.what == "nothing" or (cell == "" and not needed):
            continue
        if column.what == "binding":
            binding = str(cell)
            continue
        of = metrics.setdefault(column.family, {}) if column.family else numbers[column.what]
        of[column.name] = number_of(column, cell, row.place)
    _check_parts(metrics, row.place)
    processes, threads = (int(numbers["size"][name]) for name in COLUMNS[:2])
    runtime, amounts = numbers["runtime"]["runtime"], numbers["aggregate"]
    aggregates = {
        "processes": float(processes),
        "threads": float(processes * threads),
        "runtime": runtime,
        **amounts,
    }
    if amounts:  # metrics that are given, and those that follow from quantities that are
        try:
            follow = computed(aggregates)
        except (PopmodelError, IdentityError) as reason:
            raise row.place.error(f"its quantities contradict each other: {reason}") from None
        every = {name: values | metrics.get(name, {}) for name, values in follow.items()}
        metrics = {name: values for name, values in every.items() if values}
    nodes, waited = numbers["nodes"].get("nodes"), numbers["waited"].get("waited")
    run = MeasuredRow(
        row.place.path,
        processes,
        threads,
        runtime,
        metrics,
        disturbed=waited is not None and waited > WAITED,
        parameters=numbers["parameter"],
        line=row.place.line,
        aggregates=aggregates,
        entry=row.place.entry,
        nodes=None if nodes is None else int(nodes),
        binding=binding,
        waited=waited,
    )
    return replace(run, **(row.facts or {}))


def _check_parts(metrics: Mapping[str, Mapping[str, float]], place: Place) -> None:
    """Refuse metrics that are no product, or sum of losses, of their parts: of another family."""
    families = load_families() if metrics else {}
    hint = "check of which family the metrics are: popmodel docs FAMILY"
    for name, values in metrics.items():
        known = families[name].metrics
        for each in families[name].decompositions:
            if each.parent not in values:
                continue
            given, shown_as = values[each.parent], f"{name}: {each.parent} is"
            for part in each.parts:
                others = [known.get(other) for other in each.parts if other != part]
                limited = all(one and one.at_most == 1 and not one.at_most_plus for one in others)
                if limited and given > values.get(part, math.inf) + _ROUNDED:
                    problem = f"{shown_as} {given:g}, and its part {part} only {values[part]:g}"
                    raise place.error(problem, hint)
            if set(each.parts) <= values.keys():
                product = each.combine(values)
                if abs(given - product) > _ROUNDED:
                    parts = f"its parts give {product:.3g} ({', '.join(each.parts)})"
                    raise place.error(f"{shown_as} {given:g}, and {parts}", hint)


def split(text: str) -> tuple[str, dict[str, str]]:
    """Split the name of a file and what is said of its runs: ``run.prv.gz:N=128,steps=10``."""
    # a name of a file may hold colons: values begin behind the last one before a NAME=
    path, *given = _VALUES.split(text, maxsplit=1)
    said: dict[str, str] = {}
    for part in given[0].split(",") if given else ():
        name, sign, value = (each.strip() for each in part.partition("="))
        if not sign or not name or not value:
            raise UsageError(f"{text} {part}: value missing", "write NAME=VALUE, such as N=4096")
        if name in said:
            raise UsageError(f"{text} {part}: {name} is set twice", "leave one of them out")
        said[name] = value
    return path, said


def numbers_of(text: str, said: Mapping[str, str]) -> dict[str, float]:
    """What is said of the runs of a file, as numbers."""
    numbers = {name: as_number(value) for name, value in said.items()}
    for name, number in numbers.items():
        if math.isnan(number):
            problem = f"{text} {name}={said[name]}: must be a number, not '{said[name]}'"
            raise UsageError(problem, "try N=4096")
    return numbers
