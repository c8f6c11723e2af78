"""What other programs rely on: verbs, documents, exit statuses, and the same verbs in Python."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.cli import main
from popmodel.cli.app import GROUPS, RENAMED, VERBS

ROOT = Path(__file__).resolve().parents[1]
TRACE = str(ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz")
SERIES = [str(ROOT / "tests" / "data" / f"{name}.prv.gz") for name in ("cg.S.2", "is.S.4")]
RUNS = str(ROOT / "examples" / "stencil3d" / "two-core-vm.csv")
PROFILE = str(ROOT / "examples" / "profiles" / "two-core-vm.json")
VALUE = {"value", "low", "high"}


def called(*arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    return status, out.getvalue(), err.getvalue()


def document(*arguments: str) -> dict[str, Any]:
    status, out, err = called(*arguments, "--format", "json")
    assert status == 0, err
    found: dict[str, Any] = json.loads(out)
    assert found["provenance"]
    return found


def keys(found: Any, *names: str) -> None:
    assert set(names) <= set(found), set(names) - set(found)


def test_there_are_these_verbs() -> None:
    assert (
        *("check", "trace", "metrics", "inspect", "whatif", "report"),
        *("machine", "signature", "predict", "validate", "study"),
        *("convert", "docs"),
    ) == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_a_function_in_python_and_explains_itself_with_examples(verb: str) -> None:
    assert callable(getattr(popmodel, verb))
    status, out, _ = called(verb, "--help")
    assert status == 0
    assert "Examples:" in out


@pytest.mark.parametrize("verb", VERBS)
def test_the_list_of_verbs_says_what_their_help_begins_with(verb: str) -> None:
    (listed,) = [verbs[verb] for verbs in GROUPS.values() if verb in verbs]
    words = " ".join(called(verb, "--help")[1].split())
    assert listed.removesuffix(".") in words


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_an_old_verb_is_answered_by_the_new_one(old: str) -> None:
    status, out, err = called(old, "x")
    assert (status, out) == (2, "")
    assert err.count("\n") == 2
    assert re.search(rf"popmodel ({'|'.join(VERBS)})\b", err)


def test_old_verbs_are_known() -> None:
    old = "info structure phases communication replay sensitivity bench doctor calibrate sweep"
    assert set(RENAMED) == {*old.split(), "project", "explain"}


def test_inspect() -> None:
    found = document("inspect", TRACE)
    assert found["schema"] == "popmodel/inspect/1"
    keys(found, "info", "structure", "phases", "communication")
    keys(found["info"], "trace", "processes", "threads", "nodes", "runtime", "records", "calls")
    keys(found["info"], "counters", "warnings")
    keys(found["structure"], "parts", "period", "confidence", "foa")
    keys(found["structure"]["parts"][0], "kind", "begin", "end", "iterations")


@pytest.mark.parametrize("part", ["info", "structure", "phases", "communication"])
def test_inspect_shows_one_part(part: str) -> None:
    found = document("inspect", TRACE, "--show", part)
    assert set(found) & {"info", "structure", "phases", "communication"} == {part}


def test_metrics() -> None:
    found = document("metrics", *SERIES)
    assert found["schema"] == "popmodel/metrics/1"
    for run in found["runs"]:
        keys(run, "trace", "processes", "threads", "runtime", "ideal_runtime", "observables")
        keys(run["metrics"]["hybrid-additive"], "parallel_efficiency", "thread_efficiency")
        assert run["absent"]
    keys(found["scaling"], "mode", "reference", "why")


def test_whatif_without_scenarios_tells_what_the_runtime_depends_on() -> None:
    found = document("whatif", TRACE)
    assert found["schema"] == "popmodel/whatif/1"
    told = found["sensitivity"]
    keys(told, "runtime", "shares", "derivatives", "latency", "inverse_bandwidth", "tolerance")
    keys(told, "planes", "regions", "critical_path")
    keys(told["latency"], "breakpoints", "runtimes", "slopes")


def test_whatif_with_scenarios_replays_them() -> None:
    found = document("whatif", TRACE, "--network", "ideal")
    (run,) = found["runs"]
    keys(run, "network", "runtime", "operations", "ranks")
    keys(run["ranks"][0], "compute", "end")
    assert not found.get("sensitivity")


def test_predict_of_a_run() -> None:
    found = document("predict", "--procs", "16", "--threads", "4")
    assert found["schema"] == "popmodel/predict/1"
    keys(found, "processes", "threads", "time", "launch")
    keys(found["runtime"], *VALUE)
    keys(found["metrics"]["hybrid-additive"]["parallel_efficiency"], *VALUE)
    keys(found["trust"], "ok", "why")


@pytest.mark.parametrize("inputs", [(), SERIES])
def test_predict_of_splits(inputs: tuple[str, ...]) -> None:
    found = document("predict", *inputs, "--cores", "8")
    assert found["schema"] == "popmodel/splits/1"
    for split in found["candidates"]:
        keys(split, "processes", "threads", "runtime", "parallel_efficiency", "probability_best")
    assert all(len(split) == 2 for split in found["best"])
    keys(found["trust"], "ok", "why")


def test_predict_takes_measured_runs_alone() -> None:
    found = document("predict", *SERIES, "--procs", "8", "--threads", "1")
    assert found["schema"] == "popmodel/predict/1"
    assert (found["processes"], found["threads"]) == (8, 1)
    keys(found["runtime"], *VALUE)
    assert found["runtime"]["low"] is not None or found["runtime"]["why"]


def test_validate() -> None:
    found = document("validate", "stencil3d", RUNS, "--machine", PROFILE, "--set", "N=256")
    assert found["schema"] == "popmodel/validate/1"
    keys(found["rows"][0], "family", "metric", "processes", "threads", "predicted", "low", "high")
    keys(found["rows"][0], "measured", "covered")
    assert found["summary"]


def test_signature_from(tmp_path: Path) -> None:
    found = document("signature", "from", TRACE, "-o", str(tmp_path / "app.toml"))
    keys(found["fidelity"][0], "run", "measured", "replayed")
    assert called("predict", str(tmp_path / "app.toml"), "--procs", "2", "--threads", "2")[0] == 0


def test_a_report_gives_its_documents_back(tmp_path: Path) -> None:
    page = str(tmp_path / "report.html")
    assert called("report", TRACE, "-o", page)[0] == 0
    assert called("report", TRACE, "-o", page)[0] == 2  # refused without --force
    assert document("report", page)["documents"]


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("parallel_efficiency < 0.99", 3),
        ("hybrid-additive.parallel_efficiency < 99%", 3),
        ("runtime > 1000", 0),
        ("paralel_efficiency < 0.5", 2),
        ("parallel_efficiency", 2),
        ("ipc_scaling < 0.5", 1),
    ],
)
def test_conditions(condition: str, status: int) -> None:
    assert called("metrics", TRACE, "--fail-if", condition)[0] == status


def test_results_print_short_and_index_by_id() -> None:
    run = popmodel.metrics(TRACE)
    assert len(repr(run).splitlines()) <= 3
    efficiency: Any = run["parallel_efficiency"]
    assert 0 < efficiency < 1
    assert "<" in run._repr_html_()
    table = run.to_dataframe()
    assert len(table) == 1  # wide: a line for each run
    assert efficiency in table.filter(like="parallel_efficiency").iloc[0].tolist()
    assert 0 < popmodel.predict("stencil3d", procs=16, threads=4)["parallel_efficiency"] < 1  # type: ignore[operator]
