"""Documents as CSV."""

import csv
import io
from pathlib import Path

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.documents import csv_text
from popmodel.reports.renderers.data import render_csv as render
from popmodel.reports.renderers.data import rows
from popmodel.reports.renderers.text import Style, clean
from popmodel.reports.views import Record, Views
from popmodel.runs.run_files import read_file

STAMP = {"popmodel": "1", "time": "T", "host": "H", "command": "C", "inputs": []}


def written(records: list[Record]) -> str:
    return render({"provenance": STAMP, "rows": records}, Views(lambda _: [], ("rows[]",)), Style())


def test_csv_has_the_columns_of_all_rows_and_where_they_come_from() -> None:
    assert written([{"a": 1, "b": 0.1}, {"a": None, "c": "x,y"}, {"a": True}]) == (
        'a,b,c,popmodel,popmodel_time,popmodel_host,popmodel_command\n1,0.1,,1,T,H,C\n,,"x,y",,,,\ntrue,,,,,,\n'
    )
    assert written([]) == "popmodel,popmodel_time,popmodel_host,popmodel_command\n"


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_csv_gives_back_what_was_written(rows: list[tuple[str, float]]) -> None:
    text = written([{"name": name, "value": value} for name, value in rows])
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [float(row["value"]) for row in read] == [value for _, value in rows]
    assert [csv_text(row["name"]) for row in read] == [
        clean(name.replace("\\\n", "").replace("\n", r"\n")) for name, _ in rows
    ]


def test_no_line_of_a_text_is_dropped() -> None:
    _, (name, command, *_) = csv.reader(
        io.StringIO(written([{"name": "a\nb.prv", "command": "X=1 \\\n./app"}]))
    )
    assert (name, command) == (r"a\nb.prv", "X=1 ./app")


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
    assert table[["popmodel", "popmodel_time", "popmodel_host", "popmodel_command"]].iloc[
        0
    ].tolist() == [1, "T", "H", "C"]
    assert table["popmodel_command"].iloc[1:].isna().all()


def test_the_reader_of_tables_of_runs_reads_it(tmp_path: Path) -> None:
    runs: list[Record] = [
        {"processes": p, "threads": 2, "runtime": 8 / p, "=N": 64.0, "name": "=x"} for p in (1, 2)
    ]
    (tmp_path / "runs.csv").write_text(written(runs))
    found = read_file(tmp_path / "runs.csv", ("=N",))
    assert [run.runtime for run in found.runs] == [8.0, 4.0]
    assert found.runs[1].parameters == {"=N": 64.0}


def test_rows_are_those_of_the_paths_of_tables() -> None:
    document = {
        "schema": "popmodel/x/1",
        "provenance": STAMP,
        "machine": {"name": "m", "cores": 4},
        "runs": [
            {
                "of": "a",
                "time": {"low": 1, "high": 2},
                "grid": [2, 1],
                "ranks": [{"end": 3}, {"end": 4}],
            },
            {
                "of": "b",
                "metrics": {"mpi": {"x": 0.5}},
                "absent": {"mpi": {"y": "why"}},
                "ranks": [],
            },
        ],
        "metrics": {"mpi": {"x": {"value": 0.5}}},
        "pairs": {"from": [0, 1], "to": [1, 0], "all": 2},
        "notes": [{"text": "one\ntwo", "line": 1}],
    }

    def made(*tables: str) -> list[Record]:
        return rows(document, Views(lambda _: [], tables, ("machine.name", "runs[].of")))

    assert made("runs[]", "runs[].ranks[RANK]")[0] == {
        **{"table": "runs", "rank": None, "end": None},
        **{"of": "a", "time_low": 1, "time_high": 2, "grid": "2 1"},
        **{"mpi.x": None, "mpi.y": None, "absent.mpi.y": None, "machine": "m"},
    }
    assert made("runs[]")[1]["absent.mpi.y"] == "why"
    assert made("runs[].ranks[RANK]") == [
        {"machine": "m", "of": "a", "rank": 0, "end": 3},
        {"machine": "m", "of": "a", "rank": 1, "end": 4},
    ]
    assert made("metrics.FAMILY.METRIC") == [
        {"machine": "m", "family": "mpi", "metric": "x", "value": 0.5}
    ]
    missing: Record = {"from": None, "to": None, "text": None, "line": None}
    assert made("pairs[]", "notes[]") == [
        {"table": "pairs", "machine": "m", **missing, "from": 0, "to": 1},
        {"table": "pairs", "machine": "m", **missing, "from": 1, "to": 0},
        {"table": "notes", "machine": "m", **missing, "text": "one\ntwo", "line": 1},
    ]
