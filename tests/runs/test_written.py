"""Measured runs written as tables, and read again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

import popmodel
from popmodel.base.errors import UsageError
from popmodel.cli.measured_runs import read_runs
from popmodel.runs.measurement import MeasuredRow, runs_frame
from popmodel.runs.run_files import FORMATS, form_of, read_file

HYBRID = Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz"
RUN = MeasuredRow("a.csv", 4, 2, 1.5, {}, parameters={"N": 64.0})


def known(run: MeasuredRow) -> dict[str, Any]:
    """What every format keeps of a run."""
    return {
        "size": (run.processes, run.threads),
        "runtime": run.runtime,
        "parameters": dict(run.parameters),
        "metrics": {name: dict(values) for name, values in run.metrics.items() if values},
        "digest": run.digest,
        "aggregates": {
            name: value
            for name, value in run.aggregates.items()
            if name not in ("processes", "threads", "runtime")
        },
    }


def again(folder: Path, runs: Sequence[MeasuredRow], suffix: str) -> list[MeasuredRow]:
    path = folder / f"runs{suffix}"
    form = form_of(path)
    assert form is not None
    path.write_text(form.write(runs, {"command": "none"}))
    return list(read_file(path).runs)


def in_order(runs: Sequence[MeasuredRow]) -> list[dict[str, Any]]:
    """Runs as they are kept, those of a point together, as Extra-P holds them."""
    points: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for run in runs:
        key = (run.processes, run.threads, *sorted(run.parameters.items()))
        points.setdefault(key, []).append(known(run))
    return [one for same in points.values() for one in same]


RUNS = st.lists(
    st.builds(
        lambda p, t, seconds, n, efficiency: MeasuredRow(
            "x",
            p,
            t,
            seconds,
            {"hybrid-additive": {"parallel_efficiency": efficiency}, "mpi": {"load_balance": 0.5}},
            parameters={"N": n, "steps": 10.0},
        ),
        st.integers(1, 10**6),
        st.integers(1, 999),
        st.floats(1e-6, 1e6),
        st.floats(1e-3, 1e9),
        st.floats(0, 1),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("suffix", FORMATS)
@given(runs=RUNS)
def test_runs_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, runs: list[MeasuredRow]
) -> None:
    found = again(tmp_path_factory.mktemp("t"), runs, suffix)
    assert in_order(found) == in_order(runs)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_traced_run_keeps_what_its_metrics_are_computed_from(tmp_path: Path, suffix: str) -> None:
    [run] = read_runs(f"{HYBRID}:N=64").runs
    assert [known(one) for one in again(tmp_path, [run], suffix)] == [known(run)]


def test_a_document_keeps_caveats_and_the_part_that_was_measured(tmp_path: Path) -> None:
    [run] = read_runs(HYBRID).runs
    assert run.window is not None
    disturbed = replace(run, disturbed=True)
    [found] = again(tmp_path, [disturbed], ".json")
    assert found.window == replace(run.window, caveats=())
    assert (found.caveats, found.disturbed) == (run.caveats, True)
    document = json.loads((tmp_path / "runs.json").read_text())
    assert document["schema"] == "popmodel/runs/1"
    assert document["provenance"] == {"command": "none"}
    assert document["runs"][0]["source"] == str(HYBRID)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_what_is_not_known_of_a_run_stays_open(tmp_path: Path, suffix: str) -> None:
    runs = [RUN, replace(RUN, parameters={}, metrics={"mpi": {"load_balance": 0.5}})]
    found = again(tmp_path, runs, suffix)
    assert [known(run) for run in found] == [known(run) for run in runs]


def test_points_of_extra_p_have_all_parameters(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        again(tmp_path, [RUN, replace(RUN, source="b.prv", parameters={})], ".jsonl")
    problem = "b.prv: N is not known, and points of Extra-P have all parameters"
    assert caught.value.message == problem
    assert caught.value.hint == "say it, as b.prv:N=VALUE, or write .csv or .json"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.CSV", "CSV"),
        ("a.json", "popmodel/runs/1"),
        ("a.jsonl", "Extra-P JSON lines"),
        ("a.txt", None),
        ("a.ti.txt", None),
        ("a.prv", None),
    ],
)
def test_the_name_of_a_file_tells_the_format(name: str, form: str | None) -> None:
    found = form_of(name)
    assert (None if found is None else found.name) == form


FACTS = st.builds(
    lambda run, nodes, binding, waited, parameters: replace(
        run,
        nodes=nodes,
        binding=binding,
        waited=waited,
        disturbed=waited is not None and waited > 0.1,
        parameters=parameters,
        metrics={},
    ),
    st.builds(
        MeasuredRow, st.just("x"), st.integers(1, 99), st.just(2), st.floats(0.1, 9), st.just({})
    ),
    st.none() | st.integers(1, 99),
    st.sampled_from(("", "close", "spread", "none", "=SUM(A1)", "by, core")),
    st.none() | st.floats(0, 1),
    st.dictionaries(st.sampled_from(("N", "steps", "grid size", "@x")), st.floats(1e-3, 1e9)),
)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
@given(runs=st.lists(FACTS, min_size=1, max_size=6))
def test_the_table_of_runs_is_the_same_when_it_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, runs: list[MeasuredRow]
) -> None:
    read = again(tmp_path_factory.mktemp("t"), runs, suffix)
    table, found = (runs_frame(each).drop(columns="place") for each in (runs, read))
    assert_frame_equal(found, table, check_dtype=False, check_like=True)


def test_traces_become_rows_with_how_they_were_run_and_which_are_repeats(tmp_path: Path) -> None:
    output = tmp_path / "runs.csv"
    written = popmodel.convert([f"{HYBRID}:N=64"], output)

    table = runs_frame(read_runs(output).runs)
    frames = (each.drop(columns="place") for each in (written.to_dataframe(), table))
    assert_frame_equal(*frames, check_like=True)
    assert [table[name][0] for name in ["processes", "threads", "nodes", "N", "repeat"]] == [
        2,
        2,
        1,
        64,
        0,
    ]
    assert table["place"][0] == f"{output}:2"
    assert not table["disturbed"][0]
