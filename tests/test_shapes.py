"""Shapes: what they give, and the words of what they refuse, with its place."""

from __future__ import annotations

import math
from typing import Any

import pytest

from popmodel.base.documents import (
    Flag,
    Items,
    NamedShape,
    OneOf,
    Optional,
    Plain,
    Real,
    RowShape,
    Shape,
    ShapeError,
    TableShape,
    Text,
    WholeShape,
    record,
)

RUN = record({"runtime": Real(above=0), "ranks": Items(record({"end": Real(least=0)}))})


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("shape", "value", "expected"),
    [
        (Real(above=0), 2, 2.0),
        (Real(least=0), 0, 0.0),
        (Real(), -1e-300, -1e-300),
        (WholeShape(1), 7, 7),
        (Text(), "", ""),
        (Flag(), False, False),
        (Optional(Text()), None, None),
        (Items(WholeShape()), [], []),
        (RowShape(WholeShape(), Text()), [1, "a"], (1, "a")),
        (NamedShape(WholeShape()), {"a": 1}, {"a": 1}),
        (OneOf("text or a list", Text(), Items(Text())), ["a"], ["a"]),
        (TableShape({"a": WholeShape()}), {}, {}),
        (TableShape({"a": WholeShape()}, others=Plain()), {"b": [None, 1.5]}, {"b": [None, 1.5]}),
        (RUN, {"runtime": 1, "ranks": [{"end": 1}]}, {"runtime": 1.0, "ranks": [{"end": 1.0}]}),
    ],
)
def test_what_fits_is_given_as_it_is_used(shape: Shape, value: Any, expected: Any) -> None:
    found = shape.read(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("shape", "value", "words"),
    [
        (Real(above=0), 0, "the document must be a number above 0, not 0"),
        (Real(least=0), -5, "must be a number, at least 0, not -5"),
        (Real(above=0), 1e-300, "must be at least 1e-30, not 1e-300"),
        (Real(), math.nan, "must be finite, not nan"),
        (Real(above=0), math.inf, "must be finite, not inf"),
        (Real(), 1e300, "must be at most 1e+30 in magnitude, not 1e+300"),
        (Real(), 10**400, "must be at most 1e+30 in magnitude, not 100000"),
        (Real(), True, "must be a number, not True"),
        (Real(), "1", "must be a number, not '1'"),
        (Real(most=1), 2, "must be at most 1, not 2"),
        (WholeShape(), 1.0, "must be a whole number, not 1.0"),
        (WholeShape(), 2**63, "must be at most 9223372036854775807, not 9223372036854775808"),
        (WholeShape(1), 0, "must be a whole number, at least 1, not 0"),
        (WholeShape(1), True, "must be a whole number, at least 1, not True"),
        (Text(), 3, "must be text, not 3"),
        (Text(("a", "b")), "c", "must be one of a, b, not 'c'"),
        (Text(), "a\ud800", "contains half of a surrogate pair: 'a\\ud800'"),
        (Flag(), 1, "must be true or false, not 1"),
        (Plain(), {"a": [0, math.nan]}, "a[1] must be finite, not nan"),
        (Plain(), deep(100), "[0] is nested too deeply"),
        (Items(Text()), "a", "must be a list, not 'a'"),
        (Items(Text(), 1), [], "must be a list with at least one entry"),
        (Items(Text()), ["a", 1], "[1] must be text, not 1"),
        (RowShape(WholeShape(), WholeShape()), [1], "must be a list of 2 entries, not [1]"),
        (RowShape(WholeShape(), WholeShape()), [1, "x"], "[1] must be a whole number, not 'x'"),
        (NamedShape(WholeShape()), [], "must be a table, not []"),
        (NamedShape(WholeShape()), {"x" * 99: ""}, f"{'x' * 37}... must be a whole number, not ''"),
        (OneOf("text or a list", Text(), Items(Text())), 1, "must be text or a list, not 1"),
        (OneOf("text or a list", Text(), Items(Text())), [1], "[0] must be text, not 1"),
        (RUN, [], "must be a table, not []"),
        (RUN, {"runtime": 1}, "ranks is missing"),
        (RUN, {"runtime": 1, "ranks": [{"end": 0}, {}]}, "ranks[1].end is missing"),
        (RUN, {"runtime": 1, "ranks": [{"end": -1}]}, "ranks[0].end must be a number, at"),
        (RUN, {"runtime": 1, "ranks": [], "x": 1}, "x is not a known key"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(shape: Shape, value: Any, words: str) -> None:
    with pytest.raises(ShapeError) as caught:
        shape.read(value)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_misspelt_key_gets_a_suggestion_with_its_place() -> None:
    with pytest.raises(ShapeError) as caught:
        record({"runs": NamedShape(TableShape({"runtime": Real()}))}).read(
            {"runs": {"a": {"rntime": 1}}}
        )
    assert str(caught.value) == "runs.a.rntime is not a known key"
    assert caught.value.hint == "did you mean runs.a.runtime?"
