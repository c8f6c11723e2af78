"""Results for other programs."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.report.export import csv_text, json_text, markdown_table
from popmodel.report.renderers.text import clean


def test_json_keeps_full_precision_and_takes_arrays() -> None:
    document = {"third": 1 / 3, "times": np.array([0.1, 0.2]), "count": np.int64(7), 1: ("a", None)}
    read = json.loads(json_text(document))
    assert read == {"third": 1 / 3, "times": [0.1, 0.2], "count": 7, "1": ["a", None]}
    assert json_text({}).endswith("\n")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_json_never_holds_what_json_does_not_know(value: float) -> None:
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        json_text({"value": value})


def test_names_that_are_no_utf_8_are_written_as_escapes() -> None:
    read = json.loads(json_text({"trace": "tr\udcff-größe.prv"}))
    assert read == {"trace": "tr\\udcff-größe.prv"}


def test_json_refuses_what_it_cannot_write() -> None:
    with pytest.raises(TypeError, match="object has no form in JSON"):
        json_text({"value": object()})


def test_csv_has_the_columns_of_all_records_and_the_stamp() -> None:
    records = [{"a": 1, "b": 0.1}, {"a": None, "c": "x,y"}, {"a": True}]
    assert csv_text(records, {"time": "T"}) == ('a,b,c,time\n1,0.1,,T\n,,"x,y",T\ntrue,,,T\n')
    assert csv_text([], {"time": "T"}) == "time\n"


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_csv_gives_back_what_was_written(rows: list[tuple[str, float]]) -> None:
    text = csv_text([{"name": name, "value": value} for name, value in rows], {})
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [float(row["value"]) for row in read] == [value for _, value in rows]
    assert [row["name"] for row in read] == [clean(name) for name, _ in rows]


def test_markdown_escapes_what_would_break_the_table() -> None:
    assert markdown_table(["a|b", "n"], [["  x\ny", "1"], ["<tag>", "2"]]) == [
        "| a\\|b | n |",
        "|:--|--:|",
        "| &nbsp;&nbsp;x y | 1 |",
        "| \\<tag> | 2 |",
    ]
