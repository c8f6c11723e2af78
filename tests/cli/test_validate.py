"""``popmodel validate``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import FEW_CALLS, LEFT_OUT, NOT_MODELLED

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
HYBRID = str(Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz")
SMALL = ("--set", "N=64")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two runs, for all tests alike."""
    path = tmp_path_factory.mktemp("table") / "runs.csv"
    path.write_text("processes,threads,runtime\n16,4,1.60\n8,8,9.0\n")
    return str(path)


def test_a_table_of_run_times(shown: Call, runs: str) -> None:
    status, out, err = shown("validate", "stencil3d", runs)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("1 of 2 runs inside the 90 % interval; error -")
    assert "application  stencil3d N=512 steps=100" in lines
    assert "machine      sandybridge-fdr (preset, not measured)" in lines
    assert "P x T   runs  measured, s  predicted, s        90 %    error  inside" in lines
    first, second = [line.split() for line in lines if line[:5] in ("16 x ", "8 x 8")]
    assert first[3:5] == ["1", "9.000"]
    assert first[-3:] == ["0", "of", "1"]
    assert second[3:5] == ["1", "1.600"]
    assert second[-3:] == ["1", "of", "1"]


def test_noisy_sections_of_the_profile_are_named_beside_the_machine(
    popmodel: Call, tmp_path: Path
) -> None:
    document = json.loads(Path("examples/profiles/two-core-vm.json").read_text())
    for section, quality in document["quality"].items():
        quality["noisy"] = section == "memory"
    noisy = tmp_path / "noisy.json"
    noisy.write_text(json.dumps(document))
    table = "examples/stencil3d/two-core-vm.csv"
    out = popmodel("validate", "stencil3d", table, "--machine", str(noisy))[1]
    assert "\nmachine      vm (noisy: memory)\n" in out
    saved = str(tmp_path / "one.json")
    sizes = ("--procs", "1", "--set", "N=256", "--machine", str(noisy), "-o", saved)
    assert popmodel("predict", "stencil3d", *sizes)[0] == 0
    one = tmp_path / "one.csv"
    one.write_text("processes,threads,runtime\n1,1,3.1\n")
    again = json.loads(popmodel("validate", saved, str(one), "--format", "json")[1])
    assert again["noisy"] == ["memory"]


def test_repeats_are_one_row(popmodel: Call, runs: str, tmp_path: Path) -> None:
    repeated = tmp_path / "repeated.csv"
    repeated.write_text(f"{Path(runs).read_text()}16,4,1.6\n16,4,9.9\n")
    out = popmodel("validate", "stencil3d", str(repeated))[1]
    (row,) = [line for line in out.splitlines() if line.startswith("16 x 4")]
    assert " 3  4.367 +- 4.8 " in row
    assert row.endswith(" 2 of 3")
    assert "+-      standard deviation of the runs\n" in out
    assert "runs of 16 x 4 took 1.6 to 9.9 s: check that they ran the same" in " ".join(out.split())


@pytest.fixture
def sizes(tmp_path: Path) -> str:
    path = tmp_path / "sizes.csv"
    path.write_text("N,host,processes,threads,runtime\n64,a,2,2,0.02\n128,b,2,2,0.17\n")
    return str(path)


@pytest.mark.long
def test_columns_set_parameters_run_by_run(shown: Call, sizes: str) -> None:
    def predicted(n: int) -> str:
        options = ("--procs", "2", "--threads", "2", "--set", f"N={n}", "--format", "json")
        return f"{json.loads(shown('predict', *options)[1])['runtime']['value']:.4g}"

    out = shown("validate", "stencil3d", sizes)[1]
    lines = out.splitlines()
    assert any(line.startswith("P x T    N  runs  measured, s  predicted, s ") for line in lines)
    for n in (64, 128):
        (row,) = [line for line in lines if line.startswith("2 x 2") and f" {n} " in line]
        assert predicted(n) in row
    assert "application  stencil3d steps=100" in lines
    assert f"{sizes}: 1 column ignored, not a parameter of stencil3d: host" in " ".join(out.split())
    document = json.loads(shown("validate", "stencil3d", sizes, "--format", "json")[1])
    assert document["ignored"] == [{"file": sizes, "columns": ["host"]}]
    assert [one["parameters"]["N"] for one in document["splits"]] == [64.0, 128.0]
    assert [one["parameters"] for one in document["rows"]] == [
        {"N": 64.0, "steps": 100.0},
        {"N": 128.0, "steps": 100.0},
    ]
    csv_rows = csv.DictReader(
        io.StringIO(shown("validate", "stencil3d", sizes, "--format", "csv")[1])
    )
    assert [row["parameter_N"] for row in csv_rows] == ["64.0", "128.0"]


def test_a_setting_may_not_contradict_a_column(popmodel: Call, sizes: str) -> None:
    status, out, err = popmodel("validate", "stencil3d", sizes, "--set", "N=64")
    assert (status, out) == (2, "")
    assert err.startswith(
        f"popmodel: error: {sizes}:3: N is 128, but was set to 64\nhint: do not set N: each run"
    )
    Path(sizes).write_text("N,processes,threads,runtime\n64,2,2,0.02\n")
    assert popmodel("validate", "stencil3d", sizes, "--set", "N=64")[0] == 0


def test_a_setting_holds_where_a_cell_is_empty(popmodel: Call, sizes: str) -> None:
    Path(sizes).write_text("N,processes,threads,runtime\n64,2,2,0.02\n,2,2,0.17\n")
    words = ("validate", "stencil3d", sizes, "--format", "json")
    for more, n in ((("--set", "N=128"), 128.0), ((), 512.0)):
        document = json.loads(popmodel(*words, *more)[1])
        assert [one["parameters"]["N"] for one in document["splits"]] == [64.0, n]


def test_what_is_left_open_in_some_runs_is_not_set(popmodel: Call, sizes: str) -> None:
    Path(sizes).write_text("N,processes,threads,runtime\n64,2,2,9\n,2,2,900\n")
    out = " ".join(popmodel("validate", "stencil3d", sizes)[1].split())
    assert "of the application (not set: N=512, steps=100)" in out


def test_runs_without_cores_of_their_own_are_named_and_left_out(
    shown: Call, tmp_path: Path
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("processes,threads,runtime\n1,1,40\n1,2,39.9\n16,4,1.3\n1,32,2.5\n1,32,2.6\n")
    words = ("validate", "stencil3d", str(path))
    out = " ".join(shown(*words)[1].split())
    assert "left out: 2 runs of 1 x 32: more threads (32) than cores (16) on a node" in out
    assert "left out: 1 run of 1 x 2: 1.00 times as fast as 1 x 1, " in out
    document = json.loads(shown(*words, "--format", "json")[1])
    assert [one["measured"] for one in document["left_out"]] == [[2.5, 2.6], [39.9]]
    assert [(one["processes"], one["threads"]) for one in document["splits"]] == [(1, 1), (16, 4)]
    assert document["summary"]["runtime"]["rows"] == len(document["rows"]) == 2
    status, _, err = shown(*words, "--all-runs")
    assert status == 1
    assert "1 x 32 is not possible: a node has 16 cores" in err
    path.write_text("processes,threads,runtime\n1,1,40\n1,2,39.9\n")
    every = json.loads(shown(*words, "--all-runs", "--format", "json")[1])
    assert (len(every["splits"]), every["left_out"]) == (2, [])


def test_where_no_run_had_cores_of_its_own_the_machine_is_told(
    popmodel: Call, tmp_path: Path
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("processes,threads,runtime\n1,32,2.5\n")
    status, out, err = popmodel("validate", "stencil3d", str(path))
    assert (status, out) == (1, "")
    assert f"{path}:2: 1 x 32 is not possible: a node has 16 cores" in err


def test_a_value_that_no_run_can_have_is_refused(popmodel: Call, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("processes,threads,runtime\n3,1,1\n")
    status, _, err = popmodel("validate", "cannon", str(path))
    assert status == 1
    assert f"{path}:2: cannon cannot run with 3 processes" in err


@pytest.mark.long
def test_a_wrong_problem_size_is_recognised(popmodel: Call, sizes: str) -> None:
    Path(sizes).write_text("processes,threads,runtime\n2,2,0.02\n4,1,0.019\n")
    out = " ".join(popmodel("validate", "stencil3d", sizes)[1].split())
    assert out.startswith("0 of 2 runs inside the 90 % interval, fewer than expected; error +")
    assert "times too slow everywhere: check the parameters of the application" in out
    assert "(not set: N=512, steps=100), the unit of the runtimes and the machine" in out
    set_ = " ".join(popmodel("validate", "stencil3d", sizes, "--set", "N=256")[1].split())
    assert "of the application (not set: steps=100)" in set_


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--fail-over", "error=90%"], 0, ""),
        (["--fail-over", "error=0.5"], 3, "the runtime of 8 x 8 is off by "),
        (["--fail-under", "coverage=50%"], 0, ""),
        (["--fail-under", "coverage=0.8"], 3, "50 % of the runs are inside their interval, less t"),
        (
            ["--fail-over", "load_balance=3%"],
            1,
            "--fail-over load_balance=3% cannot be checked: no run has this metric measured and "
            "predicted\nhint: leave it out, or give traces: tables have runtimes only\n",
        ),
        # what is missed comes before what cannot be checked
        (["--fail-over", "load_balance=3%", "--fail-over", "error=1%"], 3, "the runtime of "),
        (
            ["--fail-over", "error"],
            2,
            "--fail-over error: value missing\nhint: write NAME=VALUE, e.g. ",
        ),
        (
            ["--fail-over", "error=20"],
            2,
            "--fail-over error=20: must be at most 1, or a percentage\nhint: write error=20%\n",
        ),
        (["--fail-over", "error=200%"], 0, ""),
        (["--fail-over", "error=x"], 2, "--fail-over error=x: must be a number, not 'x'"),
        (
            ["--fail-over", "coverage=0.8"],
            2,
            "--fail-over coverage=0.8: coverage is bad when it is low\nhint: write --fail-under",
        ),
        (
            ["--fail-under", "error=0.8"],
            2,
            "--fail-under error=0.8: an error is bad when it is high\nhint: write --fail-over",
        ),
        (
            ["--fail-under", "load_balance=0.8"],
            2,
            "--fail-under load_balance=0.8: unknown name 'load_balance'\nhint: only coverage goes "
            "here; for the error of a metric write --fail-over load_balance=0.8\n",
        ),
        (
            ["--fail-over", "laod_balance=1%"],
            2,
            "--fail-over laod_balance=1%: unknown metric 'laod_balance'",
        ),
    ],
)
def test_errors_and_coverage_have_limits(
    options: list[str], status: int, message: str, shown: Call, runs: str
) -> None:
    found, out, err = shown("validate", "stencil3d", runs, *options)
    assert found == status
    assert bool(out) == (status != 2)  # the comparison is shown even where it misses a limit
    assert err.startswith(f"popmodel: error: {message}" if message else "")


def test_errors_of_efficiencies_have_limits(shown: Call) -> None:
    words = ("validate", "stencil3d", HYBRID, *SMALL, "--fail-over")
    status, _, err = shown(*words, "parallel_efficiency=1%")
    assert status == 3
    assert err.startswith(
        "popmodel: error: hybrid-additive.parallel_efficiency of 2 x 2 is off by "
    )
    assert err.endswith(" points, more than 1\n")
    assert shown(*words, "talp.parallel_efficiency=99%")[0] == 0


def test_without_intervals_coverage_cannot_be_checked(popmodel: Call, tmp_path: Path) -> None:
    saved = tmp_path / "p.json"
    popmodel("predict", "--procs", "16", "--threads", "4", "-o", str(saved))
    document = json.loads(saved.read_text())
    document["runtime"] |= {"low": None, "high": None}
    saved.write_text(json.dumps(document))
    one = tmp_path / "one.csv"
    one.write_text("processes,threads,runtime\n16,4,1.1\n")
    status, out, err = popmodel("validate", str(saved), str(one), "--fail-under", "coverage=1%")
    assert status == 1
    assert out.startswith("the predictions have no intervals; error +")
    assert "--fail-under coverage cannot be checked: the predictions have no intervals" in err


def test_a_trace(shown: Call) -> None:
    status, out, _ = shown("validate", "stencil3d", HYBRID, *SMALL)
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    assert any(line.startswith("  Serial region efficiency ") for line in out.splitlines())
    assert "MPI + OpenMP (additive): median error " in out
    others = shown("validate", "stencil3d", HYBRID, *SMALL, "--family", "talp")[1]
    assert "Serial region efficiency" not in others


def test_the_document_is_that_of_the_contract(shown: Call, runs: str) -> None:
    words = ("validate", "stencil3d", HYBRID, *SMALL, "--format", "json")
    document = json.loads(shown(*words)[1])
    assert document["schema"] == "popmodel/validate/1"
    keys = {"family", "metric", "processes", "threads", "predicted", "low", "high", "measured"}
    assert all(set(row) >= keys | {"covered"} for row in document["rows"])
    assert set(document["summary"]) == {"runtime", "metrics"}
    (split,) = document["splits"]
    assert set(split) == {
        *("processes", "threads", "parameters", "sources", "region", "beyond", "runs"),
        *("runtime", "metrics"),
    }
    assert split["runtime"]["predicted"] == document["rows"][0]["predicted"]
    assert split["runtime"]["deviation"] is None
    assert set(split["metrics"]) >= {"mpi", "hybrid-additive"}
    assert len(document["verdict"]) >= 1
    rows = list(csv.DictReader(io.StringIO(shown(*words[:-1], "csv")[1])))
    assert len(rows) == len(document["rows"])
    markdown = shown("validate", "stencil3d", runs, "--format", "markdown")[1]
    assert "| P x T | runs | measured, s | predicted, s | 90 % | error | inside |" in markdown


def test_a_prediction_that_was_saved(popmodel: Call, tmp_path: Path) -> None:
    saved = str(tmp_path / "prediction.json")
    assert popmodel("predict", "--procs", "2", "--threads", "2", *SMALL, "-o", saved)[0] == 0
    old, new = (
        json.loads(popmodel("validate", *words, "--format", "json")[1])["rows"]
        for words in ((saved, HYBRID), ("stencil3d", HYBRID, *SMALL))
    )
    assert old == new


def test_wrong_usage_is_told(popmodel: Call, runs: str, tmp_path: Path) -> None:
    saved = str(tmp_path / "p.json")
    popmodel("predict", "--procs", "2", "--threads", "2", *SMALL, "-o", saved)
    status, _, err = popmodel("validate", saved, runs)
    assert status == 2
    assert f"{runs}:2 is a run of 16 x 4, the prediction is for 2 x 2" in err
    status, _, err = popmodel("validate", saved, HYBRID, *SMALL)
    assert status == 2
    assert (
        "machine, parameters, nodes, cores and binding do not go with a saved prediction"
    ) in err
    assert "hint: name the application instead, to predict anew" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "is not a prediction"),
        ('{"schema": "popmodel/sweep/1"}', "is not a prediction"),
        ('{"schema": "popmodel/predict/1"}', "application is missing"),
        ("{", "is not JSON"),
    ],
)
def test_a_damaged_prediction_is_told(
    popmodel: Call, runs: str, tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    status, out, err = popmodel("validate", str(path), runs)
    assert (status, out) == (1, "")
    assert words in err


def test_the_program_is_compared_and_what_is_left_out_said_first(started: str, shown: Call) -> None:
    words = ("validate", "stencil3d", started, *SMALL)
    out = shown(*words)[1]
    assert " ".join(out.split()).startswith(f"{NOT_MODELLED} {LEFT_OUT}")
    assert LEFT_OUT in shown(*words, "--format", "markdown")[1].splitlines()
    document = json.loads(shown(*words, "--format", "json")[1])
    (measured,) = document["measured"]
    assert (measured["source"], measured["caveats"]) == (
        started,
        [NOT_MODELLED, LEFT_OUT, FEW_CALLS],
    )
    assert measured["window"]["left_out"] == {"before": 0.04, "between": 0.0, "after": 0.01}
    assert document["rows"][0]["measured"] == 0.05
    whole = json.loads(shown(*words, "--from-start", "--format", "json")[1])
    assert whole["rows"][0]["measured"] == 0.1


def test_run_times_of_a_table_have_no_window(popmodel: Call, runs: str) -> None:
    out = popmodel("validate", "stencil3d", runs, "--format", "json")[1]
    assert json.loads(out)["measured"] == []
