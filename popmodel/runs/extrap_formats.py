"""The formats of Extra-P: text, JSON (two kinds) and JSON lines, read into values at points.

As documented with Extra-P 4 (docs/file-formats.md of github.com/extra-p/extrap).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from popmodel.documents import read_shape
from popmodel.runs.place import Place, TableError
from popmodel.shapes import Items, Named, OneOf, Plain, Real, Table, Text, Whole, record
from popmodel.values import cut, dataclass

ROOT = "<root>"
"""What Extra-P calls the program as a whole where no call path is given."""
UNNAMED = "<default>"
"""And a metric without a name."""


@dataclass(frozen=True)
class Value:
    """What was measured at one point: a number, or several for repeats."""

    place: Place  # Where it stands
    point: Mapping[str, Any]  # Values of the parameters
    region: str  # The call path that it is of
    metric: str  # What was measured
    numbers: tuple[Any, ...]  # The values as they stand there


_LINE = Table(
    {
        "params": Named(OneOf("a number or text", Real(), Text())),
        "value": OneOf("a number, or a list of numbers", Items(Real(), 1), Real()),
        "callpath": Text(),
        "metric": Text(),
    },
    ("params", "value"),
    others=Plain(),
)


def from_lines(path: str, lines: Iterable[tuple[int, Any]]) -> list[Value]:
    """Values of JSON lines."""
    found: list[Value] = []
    for line, value in lines:
        place = Place(path, line)
        read = read_shape(value, _LINE, path, TableError, line=line, hint=_LINE_HINT)
        point, numbers = read["params"], read["value"]
        if found and point.keys() != found[0].point.keys():
            names = ", ".join(found[0].point)
            raise place.error(f"its parameters are {', '.join(point)}, not {names}")
        found.append(
            Value(
                place,
                point,
                read.get("callpath", ROOT),
                read.get("metric", UNNAMED),
                tuple(numbers) if isinstance(numbers, list) else (numbers,),
            )
        )
    return found


_LINE_HINT = 'a line is {"params": {"p": 4}, "metric": "runtime", "value": 1.5}'

_AT_POINT = Table({"point": Items(Real(), 1), "values": Items(Real(), 1)}, ("point", "values"))
_PARAMETERS = Items(Text(), 1)
_DOCUMENT = Table(
    {"parameters": _PARAMETERS, "measurements": Named(Named(Items(_AT_POINT)))},
    ("parameters", "measurements"),
    others=Plain(),
)
_NUMBERED = Items(Table({"id": Whole(), "name": Text()}, ("id", "name"), others=Plain()))
_BY_NUMBERS = Table(
    {
        "parameters": _NUMBERED,
        "metrics": _NUMBERED,
        "callpaths": _NUMBERED,
        "coordinates": Items(
            Table(
                {
                    "id": Whole(),
                    "parameter_value_pairs": Items(
                        record({"parameter_id": Whole(), "parameter_value": Real()})
                    ),
                },
                ("id", "parameter_value_pairs"),
                others=Plain(),
            )
        ),
        "measurements": Items(
            Table(
                {
                    **dict.fromkeys(("callpath_id", "coordinate_id", "metric_id"), Whole()),
                    "value": Real(),
                },
                ("callpath_id", "coordinate_id", "metric_id", "value"),
                others=Plain(),
            )
        ),
    },
    ("parameters", "metrics", "callpaths", "coordinates", "measurements"),
    others=Plain(),
)


def is_document(document: Any) -> bool:
    """Whether a JSON document looks like one of Extra-P."""
    return isinstance(document, dict) and {"parameters", "measurements"} <= document.keys()


def from_document(document: Mapping[str, Any], path: str) -> list[Value]:
    """Values of a JSON document, of the present kind or the older one with numbered parts."""
    if isinstance(document["measurements"], list):
        return _by_numbers(read_shape(document, _BY_NUMBERS, path, TableError), path)
    read = read_shape(document, _DOCUMENT, path, TableError)
    names = read["parameters"]
    found = []
    for region, metrics in read["measurements"].items():
        for metric, values in metrics.items():
            for number, one in enumerate(values):
                place = Place(path, entry=f"{region}, {metric}[{number}]")
                if len(one["point"]) != len(names):
                    raise place.error(
                        f"the point has {len(one['point'])} coordinates for "
                        f"{len(names)} parameters ({', '.join(names)})"
                    )
                point = dict(zip(names, one["point"], strict=True))
                found.append(Value(place, point, region, metric, tuple(one["values"])))
    return found


def _by_numbers(read: Mapping[str, Any], path: str) -> list[Value]:
    """Values of the older kind, whose repeats are measurements of their own."""
    names = {
        kind: {one["id"]: one["name"] for one in read[kind]}
        for kind in ("parameters", "metrics", "callpaths")
    }
    points: dict[int, dict[str, float]] = {}
    for number, one in enumerate(read["coordinates"]):
        place = Place(path, entry=f"coordinates[{number}]")
        points[one["id"]] = {
            _named(names["parameters"], pair["parameter_id"], "parameter", place): pair[
                "parameter_value"
            ]
            for pair in one["parameter_value_pairs"]
        }
    found: list[Value] = []
    for number, one in enumerate(read["measurements"]):
        place = Place(path, entry=f"measurements[{number}]")
        if one["coordinate_id"] not in points:
            raise place.error(f"there is no coordinate {one['coordinate_id']}")
        found.append(
            Value(
                place,
                points[one["coordinate_id"]],
                _named(names["callpaths"], one["callpath_id"], "callpath", place),
                _named(names["metrics"], one["metric_id"], "metric", place),
                (one["value"],),
            )
        )
    return found


def _named(names: Mapping[int, str], number: int, what: str, place: Place) -> str:
    if number not in names:
        raise place.error(f"there is no {what} {number}")
    return names[number]


_BRACKETS = re.compile(r"[()]")


def from_text(path: str, text: str) -> list[Value]:
    """Values of the text format."""
    names: list[str] = []
    points: list[dict[str, str]] = []
    found: list[Value] = []
    region, metric, at = ROOT, UNNAMED, 0
    place = Place(path)
    for line, content in enumerate(text.split("\n"), 1):
        if not content.strip() or content.lstrip().startswith("#"):
            continue
        place = Place(path, line)
        section, *others = content.split(maxsplit=1)
        rest = others[0].strip() if others else ""
        words = rest.split()
        if not words:
            raise place.error(f"section {cut(section, 80)} is empty", _TEXT_HINT)
        if section == "PARAMETER":
            if points:
                raise place.error("PARAMETER behind POINTS", _TEXT_HINT)
            names += words
        elif section == "POINTS":
            points += _points(rest, names, place)
        elif section in ("REGION", "METRIC"):
            _complete(at, points, place)
            region, metric = (rest, metric) if section == "REGION" else (region, rest)
            at = 0
        elif section == "DATA":
            if at == len(points):
                raise place.error(f"more DATA lines than the {len(points)} points", _TEXT_HINT)
            found.append(Value(place, points[at], region, metric, tuple(words)))
            at += 1
        else:
            raise place.error(
                f"{cut(section, 80)} is no section of a text file of Extra-P", _TEXT_HINT
            )
    _complete(at, points, place)
    return found


_TEXT_HINT = "its sections are PARAMETER, POINTS, REGION, METRIC and DATA, one line of DATA a point"


def _points(text: str, names: Sequence[str], place: Place) -> Iterator[dict[str, str]]:
    """Points: in brackets, or bare for one parameter."""
    numbers = _BRACKETS.sub(" ", text).split()
    if not names or len(numbers) % len(names):
        raise place.error(
            f"{len(numbers)} coordinates are no points of {len(names)} parameters", _TEXT_HINT
        )
    for first in range(0, len(numbers), len(names)):
        yield dict(zip(names, numbers[first : first + len(names)], strict=True))


def _complete(at: int, points: Sequence[object], place: Place) -> None:
    """Refuse data of fewer points than there are."""
    if 0 < at < len(points):
        raise place.error(f"only {at} DATA lines before it for {len(points)} points", _TEXT_HINT)
