"""``popmodel convert`` to tables of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import pytest

import popmodel as package

from .conftest import Call

DATA = Path(__file__).parent.parent / "data"
HYBRID = str(DATA / "bt-mz.S.2x2.prv.gz")
TABLE = "processes,threads,runtime,N\n4,2,1.5,64\n4,2,1.6,64\n8,2,1.0,64\n"


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "runs.csv"
    path.write_text(TABLE)
    return str(path)


def test_a_table_becomes_json_lines_of_extra_p(popmodel: Call, tmp_path: Path, table: str) -> None:
    goal = tmp_path / "runs.jsonl"
    assert popmodel("convert", table, "-o", str(goal))[0] == 0
    assert json.loads(goal.read_text().splitlines()[0]) == {
        "params": {"processes": 4, "threads": 2, "N": 64},
        "metric": "runtime",
        "value": 1.5,
    }


def test_traces_and_tables_become_one_table(popmodel: Call, tmp_path: Path, table: str) -> None:
    goal = tmp_path / "all.csv"
    status, out, _ = popmodel("convert", f"{HYBRID}:N=12", table, "-o", str(goal))
    assert (status, out.splitlines()[0]) == (0, f"{goal}: CSV, 4 runs")
    lines = goal.read_text().splitlines()
    assert lines[0].startswith("processes,threads,runtime,N,nodes,parallel_efficiency,")
    assert lines[1].startswith("2,2,0.078336557,12,")
    assert lines[4].rstrip(",") == "8,2,1.0,64"


def test_a_document_says_where_it_comes_from(popmodel: Call, tmp_path: Path) -> None:
    goal = tmp_path / "runs.json"
    assert popmodel("convert", HYBRID, "-o", str(goal))[0] == 0
    document = json.loads(goal.read_text())
    assert document["provenance"]["command"] == f"popmodel convert {HYBRID} -o {goal}"
    assert [one["path"] for one in document["provenance"]["inputs"]] == [HYBRID]


def test_what_is_doubtful_is_said(tmp_path: Path, table: str) -> None:
    goal = tmp_path / "runs.jsonl"
    written = package.convert([table, table], goal)
    assert written.notes == (f"1 file is named again, first {table}: read once",)
    assert len(written.to_dataframe()) == 3


def test_a_part_of_a_trace_is_a_run(popmodel: Call, tmp_path: Path) -> None:
    goal = tmp_path / "runs.csv"
    assert popmodel("convert", HYBRID, "-o", str(goal), "--window", "0:100ms")[0] == 0
    assert goal.read_text().splitlines()[1].startswith("2,2,0.1,")


def test_traces_become_a_table_of_sites(popmodel: Call, tmp_path: Path, table: str) -> None:
    goal = tmp_path / "run.sites.csv"
    untimed = tmp_path / "a.ti.txt"
    untimed.write_text("0 init\n0 compute 1e9\n0 finalize\n")
    status, out, _ = popmodel("convert", f"{HYBRID}:N=12", str(untimed), "-o", str(goal))
    assert (status, out.splitlines()[0]) == (0, f"{goal}: CSV of sites, 2 runs")
    sites = pandas.read_csv(goal)
    first = sites[sites["run"] == HYBRID]
    assert first.iloc[0][["run_processes", "run_threads", "N"]].tolist() == [2, 2, 12]
    assert first["computing"].sum() == pytest.approx(0.064081707)
    assert sites.loc[sites["run"] == str(untimed), "N"].isna().all()
    status, _, err = popmodel("convert", HYBRID, table, "-o", str(tmp_path / "b.sites.csv"))
    assert (status, "is a table of runs, which have no sites" in err) == (2, True)
