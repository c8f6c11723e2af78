"""Documents as CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.documents import csv_text
from popmodel.reports.renderers.data import render_csv as render
from popmodel.reports.renderers.text import clean
from popmodel.reports.renderers.text_tables import Style
from popmodel.reports.views import Record, Views
from popmodel.runs.run_files import read_file

STAMP = {"popmodel": "1", "time": "T", "host": "H", "command": "C", "inputs": []}


def written(records: list[Record]) -> str:
    return render({"provenance": STAMP}, Views(lambda _: [], lambda _: records), Style())


def test_csv_has_the_columns_of_all_records_and_where_they_come_from() -> None:
    assert written([{"a": 1, "b": 0.1}, {"a": None, "c": "x,y"}, {"a": True}]) == (
        'a,b,c,popmodel,time,host,command\n1,0.1,,1,T,H,C\n,,"x,y",,,,\ntrue,,,,,,\n'
    )
    assert written([]) == "popmodel,time,host,command\n"


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_csv_gives_back_what_was_written(rows: list[tuple[str, float]]) -> None:
    text = written([{"name": name, "value": value} for name, value in rows])
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [float(row["value"]) for row in read] == [value for _, value in rows]
    assert [csv_text(row["name"]) for row in read] == [clean(name) for name, _ in rows]


@pytest.mark.parametrize(
    "name", ["=1+1", "+cmd|'/C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", " =1", "'=1", "\uff1d1", "-"]
)
def test_names_are_no_formulas(name: str) -> None:
    """Names come from traces of others; spreadsheets compute cells that begin like these."""
    head, row, *_ = csv.reader(io.StringIO(written([{name: name}])))
    assert head[0] == row[0] == f"'{clean(name)}"


@pytest.mark.parametrize("number", [-1, -0.5, 1e-300, "-1.5e-3", "+3", "-inf"])
def test_numbers_stay_numbers(number: object) -> None:
    _, row, *_ = csv.reader(io.StringIO(written([{"value": number}])))
    assert row[0] == str(number)


def test_pandas_reads_it_without_a_word() -> None:
    records: list[Record] = [{"name": f"=f{n}", "count": n, "value": -0.1 * n} for n in range(3)]
    table = pandas.read_csv(io.StringIO(written(records)))
    assert table["count"].tolist() == [0, 1, 2]
    assert table["value"].tolist() == [record["value"] for record in records]
    assert table[["popmodel", "time", "host", "command"]].iloc[0].tolist() == [1, "T", "H", "C"]
    assert table["command"].iloc[1:].isna().all()


def test_the_reader_of_tables_of_runs_reads_it(tmp_path: Path) -> None:
    runs: list[Record] = [
        {"processes": p, "threads": 2, "runtime": 8 / p, "=N": 64.0, "name": "=x"} for p in (1, 2)
    ]
    (tmp_path / "runs.csv").write_text(written(runs))
    found = read_file(tmp_path / "runs.csv", ("=N",))
    assert [run.runtime for run in found.runs] == [8.0, 4.0]
    assert found.runs[1].parameters == {"=N": 64.0}
