"""Documents as CSV."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from popmodel.report.renderers.csv import render
from popmodel.report.renderers.tables import Style
from popmodel.report.renderers.text import clean
from popmodel.report.views import Record, Views

STAMP = {"popmodel": "1", "time": "T", "host": "H", "command": "C", "inputs": []}


def written(records: list[Record]) -> str:
    return render({"provenance": STAMP}, Views(lambda _: [], lambda _: records), Style())


def test_csv_has_the_columns_of_all_records_and_where_they_come_from() -> None:
    assert written([{"a": 1, "b": 0.1}, {"a": None, "c": "x,y"}, {"a": True}]) == (
        'a,b,c,popmodel,time,host,command\n1,0.1,,1,T,H,C\n,,"x,y",1,T,H,C\ntrue,,,1,T,H,C\n'
    )
    assert written([]) == "popmodel,time,host,command\n"


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_csv_gives_back_what_was_written(rows: list[tuple[str, float]]) -> None:
    text = written([{"name": name, "value": value} for name, value in rows])
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [float(row["value"]) for row in read] == [value for _, value in rows]
    assert [row["name"] for row in read] == [clean(name) for name, _ in rows]
