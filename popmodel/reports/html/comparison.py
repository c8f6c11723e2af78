"""Two runs beside each other: what makes the one longer, and where its time goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

from popmodel.base.units import count, format_size, format_time
from popmodel.base.values import dataclass
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.reports.comparison import (
    ComparedAmount,
    ComparedFactor,
    ComparedKind,
    ComparedMeasurement,
    amounts,
    effects,
    factors,
    measured,
    reference,
)
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.section import Section
from popmodel.reports.trees import label

ID = "comparison"
_SHOWN = 12  # lines of a table of places
_CAUSES = 3  # that the sentence names
_SMALL = 0.005  # share of the runtime from which a cause is named
_SCALED = "computation_scaling"
_ALIKE = 5e-4  # share of the runtime that is printed as 0.1 % at least


@dataclass(frozen=True)
class Places:
    """Time in places of the program, of several runs."""

    # What they are, and what the times are.
    title: str
    caption: str
    names: tuple[str, ...]  # Of the places of all runs
    # By run and place, s; None where a run does not have it.
    times: tuple[tuple[float | None, ...], ...]
    in_full: bool  # Whether a run that does not have a place spends no time there; else it may


def section(contents: Contents) -> Section | None:
    """Any two of the runs, if there are two."""
    metrics = contents.of("metrics")
    runs = measured(metrics, contents.sensitivities, contents.inspected("communication"))
    if len(runs) < 2:
        return None
    base = reference(metrics, runs)
    other = len(runs) - 1 if base != len(runs) - 1 else 0
    pair = runs[base], runs[other]
    found = factors(pair)
    families = list(_families(runs, one_reference=len(metrics) == 1))
    divided = {one.name for one in found if one.kind is ComparedKind.EFFICIENCY}
    opened = next((one for one in families if one["labels"] >= divided), None)
    places = list(_places(runs))
    sums = amounts(runs)
    context = {
        "names": [one.name for one in runs],
        "base": base,
        "other": other,
        "sentence": sentence(*pair),
        "factors": list(_causes(*pair)),
        "amounts": list(_changes(sums, base, other)),
        "families": [
            {
                "title": one["title"],
                "rows": list(_points(one["rows"], base, other)),
                "open": one is opened,
            }
            for one in families
        ],
        "places": [
            {
                "title": one.title,
                "caption": one.caption,
                "in_full": one.in_full,
                "rows": list(_differences(one, base, other)),
            }
            for one in places
        ],
        "overview": _overview(runs, base) if len(runs) > 2 else None,
    }
    data = {
        "base": base,
        "other": other,
        **_for_pairs(runs),
        "families": [[row["values"] for row in one["rows"]] for one in families],
        "labels": [[(row["name"], row["depth"]) for row in one["rows"]] for one in families],
        "places": places,
        "amounts": sums,
    }
    return Section(ID, "Comparison", context, data)


def _for_pairs(runs: Sequence[ComparedMeasurement]) -> dict[str, Any]:
    """Factors of any two runs: kinds of divisions, which one a pair has, and values by run."""
    values: list[dict[str, float]] = [{} for _ in runs]
    divisions: dict[tuple[tuple[str, ComparedKind, int], ...], int] = {}
    pairs = [[0] * len(runs) for _ in runs]
    for base, other in combinations_with_replacement(range(len(runs)), 2):
        found = factors([runs[base], runs[other]])
        division = divisions.setdefault(
            tuple((one.name, one.kind, one.sign) for one in found), len(divisions)
        )
        pairs[base][other] = pairs[other][base] = division
        for one in found:
            values[base][one.name], values[other][one.name] = one.values
    return {
        "runs": [
            {"name": one.name, "runtime": one.runtime, "values": mine}
            for one, mine in zip(runs, values, strict=True)
        ],
        "divisions": list(divisions),
        "pairs": pairs,
    }


def sentence(base: ComparedMeasurement, other: ComparedMeasurement) -> str:
    """Say how the runtime changes, and what makes most of it."""
    before, after = base.runtime, other.runtime
    change = after - before
    times = f"{format_time(after)} against {format_time(before)}"
    if abs(change) < _ALIKE * before:
        said = f"{other.name} takes as long as {base.name}: {times}."
    else:
        size = f"{format_time(abs(change), digits=3)} ({_percent(abs(change) / before)})"
        more = "longer" if change > 0 else "less"
        said = f"{other.name} takes {size} {more} than {base.name}: {times}."
    causes = _ordered(base, other)[:_CAUSES]
    named = [
        f"{one.name}, {_written(one.kind, one.values[0])} to "
        f"{_written(one.kind, one.values[1])} ({_signed(effect)})"
        for one, effect in causes
        if abs(effect) >= _SMALL * before
    ]
    return f"{said} Largest causes: {'; '.join(named)}." if named else said


def _ordered(
    base: ComparedMeasurement, other: ComparedMeasurement
) -> list[tuple[ComparedFactor, float]]:
    """Factors of two runs and their effects, the largest first."""
    found = factors([base, other])
    made = effects(found, (base, other), 0, 1)
    return sorted(zip(found, made, strict=True), key=lambda pair: -abs(pair[1]))


def _causes(base: ComparedMeasurement, other: ComparedMeasurement) -> Iterator[dict[str, Any]]:
    """What factors make of the runtime, as a table shows it."""
    made = _ordered(base, other)
    largest = max((abs(effect) for _, effect in made), default=0.0) or 1.0
    for one, effect in made:
        yield {
            "name": one.name,
            "base": _written(one.kind, one.values[0]),
            "other": _written(one.kind, one.values[1]),
            "effect": _signed(effect),
            "share": _points_text(effect / base.runtime, " %"),
            "bar": abs(effect) / largest,
            "more": effect > 0,
        }


def _changes(sums: Sequence[ComparedAmount], base: int, other: int) -> Iterator[dict[str, str]]:
    """How much both runs do, and the change in per cent."""
    for one in sums:
        before, after = one.values[base], one.values[other]
        change = (after - before) / before if before and after is not None else None
        yield {
            "name": one.name,
            "base": _written(one.kind, before),
            "other": _written(one.kind, after),
            "change": "-" if change is None else _points_text(change, " %"),
        }


def _families(
    runs: Sequence[ComparedMeasurement], *, one_reference: bool
) -> Iterator[dict[str, Any]]:
    """Families of efficiencies that all runs have: labels, depths and values of each line."""
    for family in load_families().values():
        if family.id == SCALING or not all(family.id in one.run["metrics"] for one in runs):
            continue
        scaled = {one.parent for one in family.decompositions if _SCALED in one.parts}
        # What holds against a reference run cannot be compared where that is not the same.
        lines = [
            line
            for line in next(iter(family.tree())).rows
            if one_reference or line.metric not in scaled
        ]
        least = min(line.depth for line in lines)
        rows = [
            {
                "name": label(family, line),
                "depth": line.depth - least,
                "values": [one.run["metrics"][family.id].get(line.metric) for one in runs],
            }
            for line in lines
        ]
        labels = {metric.name for metric in family.metrics.values()}
        yield {"title": family.title, "rows": rows, "labels": labels}


def _points(rows: Sequence[Mapping[str, Any]], base: int, other: int) -> Iterator[dict[str, Any]]:
    for row in rows:
        before, after = row["values"][base], row["values"][other]
        known = before is not None and after is not None
        yield {
            "name": row["name"],
            "depth": row["depth"],
            "base": "-" if before is None else _percent(before),
            "other": "-" if after is None else _percent(after),
            "difference": _points_text(after - before) if known else "-",
        }


def _places(runs: Sequence[ComparedMeasurement]) -> Iterator[Places]:
    """Where computing and calls take their time, as far as two runs tell."""
    kinds = (
        (
            "Computing",
            "Mean time of a rank in parallel regions and between calls",
            [one.computing for one in runs],
            all(one.listed_in_full for one in runs),
        ),
        ("MPI calls", "Mean time of a thread in calls", [one.calls for one in runs], True),
    )
    for title, caption, times, in_full in kinds:
        if sum(one is not None for one in times) < 2:
            continue
        known = [one or {} for one in times]
        names = tuple(dict.fromkeys(name for one in known for name in one))
        if names:
            columns = tuple(tuple(_rounded(one.get(name)) for name in names) for one in known)
            yield Places(title, caption, names, columns, in_full)


def _rounded(seconds: float | None) -> float | None:
    """A time with as many digits as can matter: a page has it twice."""
    return None if seconds is None else float(f"{seconds:.6g}")


def _differences(places: Places, base: int, other: int) -> Iterator[dict[str, Any]]:
    """Places with the largest differences first; what is in neither run is left out."""
    rows = [
        (name, before, after, _difference(before, after, in_full=places.in_full))
        for name, before, after in zip(
            places.names, places.times[base], places.times[other], strict=True
        )
        if before is not None or after is not None
    ]
    # What is not listed of one run is placed by the time that it takes in the other one.
    rows.sort(key=lambda row: -abs(row[3]) if row[3] is not None else -(row[1] or row[2] or 0.0))
    for name, before, after, difference in rows[:_SHOWN]:
        yield {
            "name": name,
            "base": _time(before),
            "other": _time(after),
            "difference": "-" if difference is None else _signed(difference),
        }
    left = rows[_SHOWN:]
    if left:
        # Sums of both would compare different places where not all are listed.
        _, befores, afters, _ = zip(*left, strict=True)
        before, after = sum(filter(None, befores)), sum(filter(None, afters))
        yield {
            "name": f"{count(len(left))} more",
            "base": _time(before),
            "other": _time(after),
            "difference": _signed(after - before) if places.in_full else "-",
        }


def _difference(before: float | None, after: float | None, *, in_full: bool) -> float | None:
    if (before is None or after is None) and not in_full:
        return None
    return (after or 0.0) - (before or 0.0)


def _overview(runs: Sequence[ComparedMeasurement], base: int) -> dict[str, Any]:
    """All runs against one: the change of the runtime, and what each factor makes of it.

    The factors are those that all runs have.
    """
    found = factors(runs)
    others = [number for number in range(len(runs)) if number != base]
    made = [effects(found, runs, base, number) for number in others]
    changes = [runs[number].runtime - runs[base].runtime for number in others]
    runtime = runs[base].runtime
    return {
        "base": runs[base].name,
        "heads": [runs[number].name for number in others],
        "rows": [
            ("Runtime", [format_time(runs[number].runtime) for number in others]),
            ("Change", [_signed(change) for change in changes]),
            ("Change, % of the runtime", [_points_text(one / runtime, " %") for one in changes]),
            *(
                (one.name, [_signed(each[place]) for each in made])
                for place, one in enumerate(found)
            ),
        ],
    }


# --- Words: the script writes the same ------------------------------------------------------------


def _written(kind: ComparedKind, value: float | None) -> str:
    if value is None:
        return "-"
    return _WRITTEN[kind](value)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _points_text(difference: float, unit: str = "") -> str:
    text = f"{100 * difference:.1f}"
    if float(text) == 0:
        return f"0.0{unit}"
    return f"{'+' if difference > 0 else ''}{text}{unit}"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_time(seconds, digits=3)


def _signed(seconds: float) -> str:
    return f"{'+' if seconds > 0 else ''}{format_time(seconds, digits=3)}"


_WRITTEN: Mapping[ComparedKind, Callable[[float], str]] = {
    ComparedKind.TIME: format_time,
    ComparedKind.COUNT: "{:.3e}".format,
    ComparedKind.RATIO: "{:.3f}".format,
    ComparedKind.FREQUENCY: lambda value: f"{value / 1e9:.3f} GHz",
    ComparedKind.EFFICIENCY: _percent,
    ComparedKind.NUMBER: lambda value: count(int(value)),
    ComparedKind.SIZE: format_size,
}
