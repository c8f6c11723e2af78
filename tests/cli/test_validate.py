"""``popmodel validate``; its screens are in ``tests/golden/validate.txt``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import popmodel as package
from popmodel.base.errors import PopmodelError

from .conftest import FEW_CALLS, LEFT_OUT, NOT_MODELLED, Call

HYBRID = str(Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz")
TRACE = "examples/traces/stencil3d.2x2.prv.gz"
SMALL = ("--set", "N=64")
HEAD = "processes,threads,runtime\n"
FIT = "1,1,19\n2,1,9.8\n4,1,5.1\n"
TESTS = "4,1,5.2\n3,1,6.7\n4,4,1.7\n8,2,1.9\n64,1,0.4\n"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two runs, for all tests alike."""
    path = tmp_path_factory.mktemp("table") / "runs.csv"
    path.write_text(f"{HEAD}16,4,1.60\n8,8,9.0\n")
    return str(path)


@pytest.fixture
def sizes(tmp_path: Path) -> str:
    path = tmp_path / "sizes.csv"
    path.write_text("N,host,processes,threads,runtime\n64,a,2,2,0.02\n128,b,2,2,0.17\n")
    return str(path)


def document(*sources: Any, application: Any = "stencil3d", **options: Any) -> dict[str, Any]:
    return package.validate(application, list(sources), **options).to_dict()


# -- what is compared


def test_the_document_is_that_of_the_contract(popmodel: Call) -> None:
    found = json.loads(popmodel("validate", "stencil3d", HYBRID, *SMALL, "--format", "json")[1])
    assert found["schema"] == "popmodel/validate/1"
    keys = {"family", "metric", "processes", "threads", "predicted", "low", "high", "measured"}
    assert all(set(row) >= keys | {"covered"} for row in found["rows"])
    assert set(found["summary"]) == {"runtime", "metrics"}
    (split,) = found["splits"]
    assert split["runtime"]["predicted"] == found["rows"][0]["predicted"]
    assert set(split["metrics"]) >= {"mpi", "hybrid-additive"}
    terms = found["terms"][0]["terms"]  # they add up to the runtime, predicted and measured
    for key, whole in (("mean", "mean"), ("predicted", "predicted")):
        assert sum(one[key] for one in terms) == pytest.approx(split["runtime"][whole])


def test_columns_set_parameters_run_by_run(popmodel: Call, sizes: str) -> None:
    found = document(sizes)
    assert [one["parameters"]["N"] for one in found["splits"]] == [64.0, 128.0]
    for one in found["splits"]:
        made = package.predict("stencil3d", procs=2, threads=2, settings=one["parameters"])
        assert one["runtime"]["predicted"] == made.runtime.value
    assert found["ignored"] == [{"file": sizes, "columns": ["host"]}]
    out = " ".join(popmodel("validate", "stencil3d", sizes, "--all")[1].split())
    assert f"{sizes}: 1 column ignored, not a parameter of stencil3d: host" in out
    # a setting holds where a cell is empty, and contradicts none
    status, out, err = popmodel("validate", "stencil3d", sizes, *SMALL)
    assert (status, out) == (2, "")
    assert err.startswith(
        f"popmodel: error: {sizes}:3: N is 128, but was set to 64\nhint: do not set N: each run"
    )
    Path(sizes).write_text("N,processes,threads,runtime\n64,2,2,9\n,2,2,900\n")
    for settings, n in (({"N": 128}, 128.0), ({}, 512.0)):
        found = document(sizes, settings=settings)
        assert [one["parameters"]["N"] for one in found["splits"]] == [64.0, n]
    assert "(not set: N=512, steps=100)" in " ".join(found["verdict"])


def test_runs_without_cores_of_their_own_are_left_out(popmodel: Call, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEAD}1,1,40\n1,2,39.9\n16,4,1.3\n1,32,2.5\n1,32,2.6\n")
    found = document(path)
    assert [one["measured"] for one in found["left_out"]] == [[2.5, 2.6], [39.9]]
    said = " ".join(found["verdict"])
    assert "left out: 2 runs of 1 x 32: more threads (32) than cores (16) on a node" in said
    assert "left out: 1 run of 1 x 2: 1.00 times as fast as 1 x 1, " in said
    assert found["summary"]["runtime"]["rows"] == len(found["rows"]) == 2
    status, _, err = popmodel("validate", "stencil3d", str(path), "--all-runs")
    assert status == 1
    assert "1 x 32 is not possible: a node has 16 cores" in err
    path.write_text(f"{HEAD}1,1,40\n1,2,39.9\n")
    every = document(path, all_runs=True)
    assert (len(every["splits"]), every["left_out"]) == (2, [])
    # where no run had cores, the machine is told; where none can be made, why
    path.write_text(f"{HEAD}1,32,2.5\n")
    assert f"{path}:2: 1 x 32 is not possible" in popmodel("validate", "stencil3d", str(path))[2]
    path.write_text(f"{HEAD}3,1,1\n")
    status, _, err = popmodel("validate", "cannon", str(path))
    assert status == 1
    assert f"{path}:2: cannon cannot run with 3 processes" in err


@pytest.mark.long
def test_a_wrong_problem_size_is_recognised(sizes: str) -> None:
    Path(sizes).write_text(f"{HEAD}2,2,0.02\n4,1,0.019\n")
    said = document(sizes)["verdict"]
    assert said[0].startswith("0 of 2 runs inside the 90 % interval, fewer than expected; error +")
    assert "times too slow everywhere: check the parameters of the application" in said[1]
    assert "(not set: N=512, steps=100), the unit of the runtimes and the machine" in said[1]
    assert "(not set: steps=100)" in document(sizes, settings={"N": 256})["verdict"][1]


def test_a_saved_prediction_is_compared_as_its_application(popmodel: Call, tmp_path: Path) -> None:
    saved = tmp_path / "prediction.json"
    sizes = ("--procs", "2", "--threads", "2", *SMALL)
    assert popmodel("predict", *sizes, "-o", str(saved))[0] == 0
    old, new = document(HYBRID, application=saved), document(HYBRID, settings={"N": 64})
    for key in ("rows", "terms"):
        assert old[key] == new[key]
    machine = "examples/profiles/two-core-vm.json"
    assert (
        popmodel("predict", *sizes[:2], "--machine", machine, "-o", str(saved), "--force")[0] == 0
    )
    one = tmp_path / "one.csv"
    one.write_text(f"{HEAD}2,1,3.1\n")
    assert document(one, application=saved)["noisy"] == ["memory"]


def test_a_projection_of_measured_runs_is_compared_as_its_file(tmp_path: Path) -> None:
    table, saved = "tests/data/epoch.csv", tmp_path / "projected.json"
    measured = tmp_path / "one.csv"
    measured.write_text(f"{HEAD}16,1,2\n")
    made = package.predict(table, procs=16)
    saved.write_text(json.dumps(made.to_dict()))
    found = [package.validate(one, measured, trained_on=table).to_dict() for one in (made, saved)]
    assert found[0] == found[1]
    assert found[0]["splits"][0]["runtime"]["predicted"] == made["runtime"]
    assert found[0]["splits"][0]["beyond"] == {"P": 4.0}
    with pytest.raises(package.PopmodelError, match="only the prediction of a run"):
        package.validate(package.predict("stencil3d", cores=16), measured)


def test_the_program_is_compared_and_what_is_left_out_said_first(
    started: str, popmodel: Call
) -> None:
    words = ("validate", "stencil3d", started, *SMALL)
    out = popmodel(*words)[1]
    assert " ".join(out.split()).startswith(f"{NOT_MODELLED} {LEFT_OUT}")
    assert LEFT_OUT in popmodel(*words, "--format", "markdown")[1].splitlines()
    found = document(started, settings={"N": 64})
    (measured,) = found["measured"]
    assert (measured["source"], measured["caveats"]) == (
        started,
        [NOT_MODELLED, LEFT_OUT, FEW_CALLS],
    )
    assert measured["window"]["left_out"] == {"before": 0.04, "between": 0.0, "after": 0.01}
    assert found["rows"][0]["measured"] == 0.05
    whole = document(started, settings={"N": 64}, from_start=True)
    assert whole["rows"][0]["measured"] == 0.1


def test_all_sources_of_the_same_runs_give_the_same(tmp_path: Path) -> None:
    def rows(source: Any) -> list[dict[str, Any]]:
        return [{**row, "source": ""} for row in document(source)["rows"]]

    table = tmp_path / "runs.csv"
    table.write_text("processes,threads,runtime,N\n1,2,1.60,64\n1,2,1.7,64\n2,1,9.0,64\n")
    for suffix in (".json", ".jsonl"):
        package.convert(str(table), tmp_path / f"same{suffix}")
        assert rows(tmp_path / f"same{suffix}") == rows(table)
    made = tmp_path / "metrics.json"
    made.write_text(json.dumps(package.metrics(TRACE).to_dict()))
    assert rows(f"{made}:N=200") == rows(f"{TRACE}:N=200")


def test_what_is_doubtful_comes_first(popmodel: Call, tmp_path: Path) -> None:
    table, short = tmp_path / "s.csv", tmp_path / "ms.csv"
    table.write_text("processes,threads,runtime,N\n1,2,1.60,64\n1,2,1.7,64\n2,1,9.0,64\n")
    short.write_text("processes,threads,runtime,N\n2,1,9000,64\n")
    words = ("validate", "stencil3d", str(table), str(table), str(short))
    out = " ".join(popmodel(*words)[1].split())
    assert out.startswith(f"! 1 file is named again, first {table}: read once")
    assert "check the units" in " ".join(popmodel(*words, "--all")[1].split())


# -- what is no test


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All runs in a file of another name; those of the fit are known by their numbers."""
    folder = tmp_path_factory.mktemp("fit")
    fit, every = folder / "fit.csv", folder / "all.csv"
    fit.write_text(HEAD + FIT)
    every.write_text(HEAD + FIT + TESTS)
    return document(every, settings={"N": 256}, trained_on=fit)


def test_runs_of_the_fit_are_shown_and_not_counted(fitted: dict[str, Any]) -> None:
    assert fitted["verdict"][0].startswith("0 of 4 runs inside the 90 % interval")
    assert "3 runs used in the fit: no tests" in fitted["verdict"]
    assert "1 run at a configuration of the fit: no test" in fitted["verdict"]
    assert fitted["training"]["runs"] == 3
    assert fitted["training"]["hull"]["P"] == {"low": 1, "high": 4}
    assert fitted["summary"]["runtime"]["rows"] == 4
    regions = {(one["region"], one["beyond"]): one["runtime"] for one in fitted["regions"]}
    assert {key: one["splits"] for key, one in regions.items()} == {
        ("calibration", None): 3,
        ("repetition", None): 1,
        ("interpolation", None): 1,
        ("extrapolation", None): 3,
        ("extrapolation", "T"): 2,
        ("extrapolation", "P"): 2,
        ("extrapolation", "node boundary"): 1,
    }


def test_plain_extrapolations_see_the_runs_of_the_fit(fitted: dict[str, Any]) -> None:
    assert "plain extrapolations with smaller errors at these 4 tests" in str(fitted["verdict"])
    found = fitted["baselines"]
    assert found["declared"]
    assert [one["processes"] for one in found["tests"]] == [3, 4, 8, 64]
    nearest = {one["processes"]: one["predicted"]["nearest"] for one in found["tests"]}
    assert nearest[64] == 5.1


def test_the_choice_among_measured_splits(fitted: dict[str, Any]) -> None:
    (found,) = fitted["decisions"]
    assert [(one["processes"], one["threads"]) for one in found["options"]] == [(8, 2), (4, 4)]
    assert found["best"] == [4, 4]
    assert found["regret"] == pytest.approx(1.9 / 1.7 - 1 if found["take"] == [8, 2] else 0.0)


def test_what_is_doubtful_about_runs_of_the_fit_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    path.write_text(HEAD + FIT + "1,1,60\n")
    found = document(path, settings={"N": 256}, trained_on=path)
    assert len([line for line in found["warnings"] if "another problem size" in line]) == 1


@pytest.mark.long
def test_a_calibrated_file_knows_its_runs(popmodel: Call, tmp_path: Path) -> None:
    rows = ["1,1,3.9", "2,1,2.15", "4,1,1.15", "2,2,1.2", "8,1,0.82"]
    few, every = tmp_path / "few.csv", tmp_path / "every.csv"
    few.write_text(HEAD + "\n".join(rows[:4]) + "\n")
    every.write_text(HEAD + "\n".join(reversed(rows)) + "\n")
    made = str(tmp_path / "calibrated.toml")
    assert (
        popmodel("signature", "from", "stencil3d", str(few), "--set", "N=256", "-o", made)[0] == 0
    )
    found = document(every, application=made, settings={"N": 256})
    assert found["training"]["runs"] == 4
    assert found["training"]["noise"] > 0
    regions = {(one["processes"], one["threads"]): one["region"] for one in found["rows"]}
    assert regions.pop((8, 1)) == "extrapolation"
    assert set(regions.values()) == {"calibration"}
    assert found["summary"]["runtime"]["rows"] == 1
    saved, one = str(tmp_path / "p.json"), tmp_path / "one.csv"
    one.write_text(HEAD + rows[2] + "\n")
    popmodel("predict", made, "--procs", "4", "--set", "N=256", "-o", saved)
    warnings = document(one, application=saved)["warnings"]
    assert warnings[0].startswith("the prediction rests on 4 runs that its file does not")
    told = document(one, application=saved, trained_on=few)
    assert told["warnings"] == []
    assert told["verdict"][0] == "1 run used in the fit: no test"


# -- conditions


def test_errors_and_coverage_have_limits(popmodel: Call, runs: str) -> None:
    unknown = "--fail-if cannot be checked: no value for mpi.load_balance (no run has it measured"
    first = "error of 8 x 8 is 0.8007, more than 0.01; error of 16 x 4 is "
    for conditions, status, message in (
        (["error > 90%"], 0, ""),
        (["coverage < 50%"], 0, ""),
        (["coverage < 0.8"], 3, "coverage is 0.5, less than 0.8\n"),
        (["load_balance > 3%"], 1, unknown),
        (["load_balance > 3%", "error > 1%"], 3, first),  # what is missed comes first
        (["eror > 1%"], 2, "--fail-if 'eror > 0.01': unknown value 'eror'\nhint: did you mean er"),
    ):
        options = [word for text in conditions for word in ("--fail-if", text)]
        found, out, err = popmodel("validate", "stencil3d", runs, *options)
        assert found == status, err
        assert bool(out) == (status != 2)  # the comparison is shown even where it misses a limit
        assert err.startswith(f"popmodel: error: {message}" if message else "")


def test_errors_of_efficiencies_have_limits() -> None:
    found = package.validate("stencil3d", HYBRID, settings={"N": 64})
    (split,) = found.to_dict()["splits"]
    for family in ("hybrid-additive", "talp"):
        error = split["metrics"][family]["parallel_efficiency"]["error"]
        assert found[f"{family}.parallel_efficiency"] == abs(error) > 0.01
    assert found["parallel_efficiency"] == found["hybrid-additive.parallel_efficiency"]
    talp = package.validate("stencil3d", HYBRID, settings={"N": 64}, family="talp")
    assert talp["parallel_efficiency"] == found["talp.parallel_efficiency"]


def test_without_intervals_coverage_cannot_be_checked(popmodel: Call, tmp_path: Path) -> None:
    saved = tmp_path / "p.json"
    popmodel("predict", "--procs", "16", "--threads", "4", "-o", str(saved))
    content = json.loads(saved.read_text())
    content["runtime"] |= {"low": None, "high": None}
    saved.write_text(json.dumps(content))
    one = tmp_path / "one.csv"
    one.write_text(f"{HEAD}16,4,1.1\n")
    status, out, err = popmodel("validate", str(saved), str(one), "--fail-if", "coverage < 1%")
    assert status == 1
    assert out.startswith("the predictions have no intervals; error +")
    assert "no value for coverage (the predictions have no intervals)" in err


# -- wrong input


def test_what_does_not_go_with_a_saved_prediction_is_told(
    popmodel: Call, runs: str, tmp_path: Path
) -> None:
    saved = tmp_path / "p.json"
    popmodel("predict", "--procs", "2", "--threads", "2", *SMALL, "-o", str(saved))
    status, _, err = popmodel("validate", str(saved), runs)
    assert status == 2
    assert f"{runs}:2 is a run of 16 x 4, the prediction is for 2 x 2" in err
    status, _, err = popmodel("validate", str(saved), HYBRID, *SMALL)
    assert status == 2
    assert "hint: name the application instead, to predict anew" in err


# -- from measured runs


def test_runs_are_carried_to_the_sizes_of_others_as_predict_does(tmp_path: Path) -> None:
    fit, tests = tmp_path / "fit.csv", tmp_path / "tests.csv"
    fit.write_text(f"{HEAD}{FIT}")
    tests.write_text(f"{HEAD}8,1,2.9\n16,1,1.7\n")
    found = document(str(tests), application=str(fit))
    for split in found["splits"]:
        carried = package.predict(str(fit), procs=split["processes"], threads=split["threads"])
        assert split["runtime"]["predicted"] == carried["runtime"]
        assert split["region"] != "fit"
    assert found["application"] == "projection of measured runs"
    assert found["training"]["runs"] == 3


def test_a_trace_is_what_to_predict_from() -> None:
    found = document(TRACE, application=TRACE)
    (split,) = found["splits"]  # the run that it is carried from: no test
    assert abs(split["runtime"]["error"]) < 0.01
    assert found["summary"]["runtime"]["rows"] == 0


def test_runs_of_another_problem_are_not_what_runs_tell_of(tmp_path: Path) -> None:
    paths = []
    for number in (64, 128):
        paths.append(tmp_path / f"{number}.csv")
        paths[-1].write_text(f"N,processes,threads,runtime\n{number},2,2,0.{number}\n")
    with pytest.raises(PopmodelError, match="N is 128, and the runs to predict from have another"):
        document(str(paths[1]), application=str(paths[0]))
