"""Measured runs in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base import provenance
from popmodel.cli.measured_runs import read_runs
from popmodel.runs.run_files import SCHEMA, read_json, read_json_lines
from popmodel.runs.table import RunTimes
from popmodel.runs.text_tables import TableError

HYBRID = Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz"
ROW: dict[str, Any] = {"processes": 4, "threads": 2, "runtime": 1.5}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.json"


def read(
    path: Path, document: object, parameters: Iterable[str] | None = ("N",), **said: str
) -> RunTimes:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return read_json(path, parameters, said)


@pytest.mark.parametrize("parameters", [{"parameters": {"N": 64}}, {"N": 64}, {"N": "64"}])
def test_a_list_of_rows_is_a_table(path: Path, parameters: dict[str, Any]) -> None:
    found = read(path, [ROW | parameters, {**ROW, "runtime": 1.6, "host": "node7"}])
    assert [(run.processes, run.threads, run.runtime) for run in found.runs] == [
        (4, 2, 1.5),
        (4, 2, 1.6),
    ]
    assert found.runs[0].parameters == {"N": 64.0}
    assert found.runs[1].place == f"{path} [1]"


def test_metrics_are_named_by_family_or_as_in_a_table(path: Path) -> None:
    metrics = {
        "parallel_efficiency": "80 %",
        "mpi.load_balance": 0.9,
        "talp": {"mpi_load_balance": 1},
    }
    [run] = read(path, [{**ROW, "metrics": metrics}]).runs
    assert run.metrics == {
        "hybrid-additive": {"parallel_efficiency": 0.8},
        "mpi": {"load_balance": 0.9},
        "talp": {"mpi_load_balance": 1.0},
    }


def test_a_document_of_runs_keeps_what_traces_told(path: Path) -> None:
    row = {
        **ROW,
        "source": "run.prv",
        "caveats": ["tracing was off"],
        "disturbed": True,
        "aggregates": {"runtime": 1.5, "threads": 8.0, "useful_mean": 1.2},
        "window": {
            "begin": 1.0,
            "end": 2.5,
            "left_out": {"before": 1.0, "between": 0.0, "after": 0.25},
            "region": None,
            "occurrences": 1,
            "why": "MPI_Init to MPI_Finalize",
        },
    }
    [run] = read(path, {"schema": SCHEMA, "runs": [row]}).runs
    assert (run.caveats, run.disturbed) == (("tracing was off",), True)
    assert run.window is not None
    assert (run.window.begin, run.window.end, run.window.after) == (
        10**9,
        2_500_000_000,
        25 * 10**7,
    )
    assert run.aggregates["useful_mean"] == 1.2
    assert run.metrics["hybrid-additive"]["parallel_efficiency"] == pytest.approx(0.8)


def test_a_document_of_metrics_is_the_traces_that_it_was_made_of(path: Path) -> None:
    found = read(path, popmodel.metrics(HYBRID).to_dict(), None, N="128")
    [run], [traced] = found.runs, read_runs(f"{HYBRID}:N=128").runs
    assert run.window is not None
    assert traced.window is not None
    window = replace(run.window, caveats=traced.window.caveats)  # the run's own have them, too
    assert replace(run, window=window) == traced
    assert run.digest == traced.digest


def test_json_lines_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n\n{json.dumps({**ROW, 'N': 32})}\n")
    found = read_json_lines(path, ["N"])
    assert [(run.line, dict(run.parameters)) for run in found.runs] == [(1, {}), (3, {"N": 32.0})]


def test_what_is_said_of_a_document_holds_for_its_rows(path: Path) -> None:
    [run] = read(path, [{"ranks": 4, "runtime": 2.0}], ranks="processes", threads="2", N="8").runs
    assert (run.processes, run.threads, dict(run.parameters)) == (4, 2, {"N": 8.0})


def test_a_parameter_that_the_application_has_not_is_left_out_where_it_is_always_the_same(
    path: Path,
) -> None:
    found = read(path, [ROW | {"parameters": {"M": 3}}, ROW | {"parameters": {"M": 3, "N": 2}}])
    assert (found.parameters, found.ignored) == (("N",), ("M",))
    assert read(path, [ROW | {"parameters": {"M": 3}}], None).runs[0].parameters == {"M": 3.0}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "json:1: is not JSON"),
        ("[]", "json: has no column 'processes'"),
        ({}, f"is not a table of runs: it has no schema such as {SCHEMA!r}"),
        ({"schema": "popmodel/machine/1"}, "is not a document of runs: its schema is"),
        ({"schema": SCHEMA, "runs": []}, "runs must be a list with at least one entry"),
        ({"schema": SCHEMA, "runs": [3]}, "runs[0]: a run must be an object"),
        ([ROW, {"processes": 4, "threads": 2}], "json: [1]: has no runtime"),
        ([{"processes": 4, "threads": 2}], "json: has no column 'runtime'"),
        ([{**ROW, "threads": 2.5}], "json: [0]: threads must be a whole number, at least 1"),
        ([{**ROW, "processes": True}], "[0]: processes must be a whole number"),
        ([{**ROW, "runtime": 0}], "[0]: runtime must be a number of seconds above 0, not 0"),
        (
            '[{"processes": 1, "threads": 1, "runtime": NaN}]',
            "json: [0]: runtime must be finite, not nan",
        ),
        ([{**ROW, "runtime": None}], "[0]: has no runtime, as all rows"),
        ([{**ROW, "runtime": [1, 2]}], "[0]: runtime must be a number or text"),
        ([{**ROW, "N": 1, "parameters": {"N": 2}}], "[0]: has N twice"),
        ([{**ROW, "cells": 2}], "column 'cells' is not a parameter of the application (N)"),
        (
            [{**ROW, "parameters": {"M": 1}}, {**ROW, "parameters": {"M": 2}}],
            "M differs between its runs (1, 2), and is not a parameter of the application (N)",
        ),
        ([{**ROW, "metrics": {"mpi": {"lod_balance": 1}}}], "mpi has no 'lod_balance'"),
        ([{**ROW, "metrics": {"parallel_eficiency": 1}}], "has no 'parallel_eficiency'"),
        ([{**ROW, "aggregates": {"useful_men": 1}}], "aggregates has no 'useful_men'"),
        ([{**ROW, "aggregates": {"useful_mean": -1}}], "useful_mean must be a number, at least 0"),
        ([{**ROW, "disturbed": "no"}], "json: [0]: disturbed must be true or false"),
        ([{**ROW, "runtime": "2 mm"}], "[0]: runtime must be a number of seconds above 0, not"),
    ],
)
def test_a_damaged_document_is_refused_with_its_place(
    path: Path, document: object, words: str
) -> None:
    with pytest.raises(TableError) as caught:
        read(path, document)
    assert words in caught.value.message


def metrics_document(**changes: Any) -> dict[str, Any]:
    document = popmodel.metrics(HYBRID).to_dict()
    document["runs"][0]["observables"] |= changes
    return document


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"runtime": 0}, "runs[0].observables.runtime must be a number above 0"),
        ({"threads": [2, 3]}, "runs[0]: useful has shape (4,), expected (5,)"),
        ({"useful": [1.0, -1.0, 1.0, 1.0]}, "runs[0].observables.useful[1] must be a number"),
        ({"threads": [1, 3]}, "its processes have 1 to 3 threads each"),
    ],
)
def test_a_damaged_document_of_metrics_is_refused(
    path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(TableError) as caught:
        read(path, metrics_document(**changes))
    assert words in caught.value.message


def test_what_is_said_of_a_document_of_metrics_must_be_a_parameter(path: Path) -> None:
    with pytest.raises(TableError, match="M is not a parameter of the application \\(N\\)"):
        read(path, metrics_document(), M="3")


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{{\n")
    with pytest.raises(TableError, match="jsonl:2: is not JSON"):
        read_json_lines(path)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "must be a number above 0, not 0"),
        (1e-300, "ideal_runtime"),
        (1e-20, "would be "),
    ],
)
@pytest.mark.parametrize("verb", ["metrics", "convert"])
def test_quantities_that_give_efficiencies_of_no_run_are_refused(
    verb: str, value: float, said: str, tmp_path: Path
) -> None:
    trace = str(Path(__file__).parent.parent / "data" / "is.S.4.prv.gz")
    path = tmp_path / "runs.json"
    if verb == "metrics":
        document = provenance.stamped(popmodel.metrics(trace).to_dict(), ["x"])
        document["runs"][0]["observables"]["ideal_runtime"] = value
    else:
        popmodel.convert(trace, path)
        document = json.loads(path.read_text())
        document["runs"][0]["aggregates"]["ideal_runtime"] = value
    path.write_text(json.dumps(document))
    with pytest.raises(TableError, match=r"runs\.json: runs\[0\]") as told:
        read_json(path, None)
    assert said in told.value.message
