"""``popmodel validate``: tests apart from runs of the fit, terms, choices, plain extrapolations."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
HYBRID = str(Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz")
SVG = "{http://www.w3.org/2000/svg}"
FIT = "1,1,19\n2,1,9.8\n4,1,5.1\n"
TESTS = "4,1,5.2\n3,1,6.7\n4,4,1.7\n8,2,1.9\n64,1,0.4\n"
HEAD = "processes,threads,runtime\n"


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("fit") / "fit.csv"
    path.write_text(HEAD + FIT)
    return str(path)


@pytest.fixture(scope="module")
def words(fit: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """All runs in a file of another name; those of the fit are known by their numbers."""
    path = tmp_path_factory.mktemp("all") / "all.csv"
    path.write_text(HEAD + FIT + TESTS)
    return ("validate", "stencil3d", str(path), "--set", "N=256", "--trained-on", fit)


@pytest.mark.long
def test_runs_of_the_fit_are_shown_and_not_counted(shown: Call, words: tuple[str, ...]) -> None:
    status, out, _ = shown(*words)
    assert status == 0
    lines = out.splitlines()
    assert max(len(line) for line in lines if "/" not in line) <= 80
    assert lines[0].startswith("0 of 4 runs inside the 90 % interval")
    assert "3 runs used in the fit: no tests" in lines
    assert "1 run at a configuration of the fit: no test" in lines
    places = {line[:6].strip(): line.split()[-1] for line in lines if " x " in line[:6]}
    assert places["1 x 1"] == "used"
    assert places["4 x 1"] == "repeat"
    assert (places["3 x 1"], places["4 x 4"]) == ("within", "T")
    assert any(line.startswith("64 x 1") and line.endswith("  P nodes") for line in lines)
    assert any(line.startswith("used in the fit ") for line in lines)
    assert any(line.startswith(" across a node boundary ") for line in lines)
    document = json.loads(shown(*words, "--format", "json")[1])
    assert document["training"]["runs"] == 3
    assert document["training"]["hull"]["P"] == {"low": 1, "high": 4}
    assert document["summary"]["runtime"]["rows"] == 4
    regions = {(one["region"], one["beyond"]): one["runtime"] for one in document["regions"]}
    assert {key: one["splits"] for key, one in regions.items()} == {
        ("calibration", None): 3,
        ("repetition", None): 1,
        ("interpolation", None): 1,
        ("extrapolation", None): 3,
        ("extrapolation", "T"): 2,
        ("extrapolation", "P"): 2,
        ("extrapolation", "node boundary"): 1,
    }
    rows = list(csv.DictReader(io.StringIO(shown(*words, "--format", "csv")[1])))
    assert [row["region"] for row in rows[:4]] == [*["calibration"] * 3, "repetition"]
    assert rows[-1]["beyond"] == "P x16, node boundary x4"


def test_what_is_doubtful_about_runs_of_the_fit_is_said_once(shown: Call, tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    path.write_text(HEAD + FIT + "1,1,60\n")
    both = ("validate", "stencil3d", str(path), "--set", "N=256", "--trained-on", str(path))
    document = json.loads(shown(*both, "--format", "json")[1])
    assert len([line for line in document["warnings"] if "another problem size" in line]) == 1


@pytest.mark.long
def test_plain_extrapolations_see_the_runs_of_the_fit(shown: Call, words: tuple[str, ...]) -> None:
    out = shown(*words)[1]
    assert "extrapolated, %: from the runs of the fit\n" in out
    assert "plain extrapolations with smaller errors at these 4 tests: ideal" in out
    without = shown(*words[:-2])[1]
    assert "extrapolated, %: each test from all others\n" in without
    found = json.loads(shown(*words, "--format", "json")[1])["baselines"]
    assert found["declared"]
    assert [one["processes"] for one in found["tests"]] == [3, 4, 8, 64]
    nearest = {one["processes"]: one["predicted"]["nearest"] for one in found["tests"]}
    assert nearest[64] == 5.1


@pytest.mark.long
def test_the_choice_among_measured_splits(shown: Call, words: tuple[str, ...]) -> None:
    out = shown(*words)[1]
    (row,) = [line for line in out.splitlines() if line.startswith("16 ")]
    document = json.loads(shown(*words, "--format", "json")[1])
    (found,) = document["decisions"]
    assert [(one["processes"], one["threads"]) for one in found["options"]] == [(8, 2), (4, 4)]
    assert found["best"] == [4, 4]
    assert found["regret"] == pytest.approx(1.9 / 1.7 - 1 if found["take"] == [8, 2] else 0.0)
    assert row.split()[1:7] == [*"{} x {}".format(*found["take"]).split(), "4", "x", "4"]
    one = ("validate", "stencil3d", words[-1], "--set", "N=256")
    assert json.loads(shown(*one, "--format", "json")[1])["decisions"] == []


def test_where_all_runs_were_used_nothing_is_tested(shown: Call, fit: str) -> None:
    words = ("validate", "stencil3d", fit, "--set", "N=256", "--trained-on", fit)
    status, out, _ = shown(*words)
    assert status == 0
    assert out.startswith(
        "3 runs used in the fit: no tests\n"
        "nothing tests the predictions: measure a configuration that no fit has seen\n"
    )
    summary = json.loads(shown(*words, "--format", "json")[1])["summary"]
    assert (summary["runtime"]["rows"], summary["runtime"]["median_error"]) == (0, None)
    status, out, err = shown(*words, "--fail-over", "error=20%")
    assert status == 1
    assert out
    assert "the limits cannot be checked: no run is a test, all are of configurations" in err


@pytest.mark.long
def test_a_calibrated_file_knows_its_runs(popmodel: Call, tmp_path: Path) -> None:
    rows = ["1,1,3.9", "2,1,2.15", "4,1,1.15", "2,2,1.2", "8,1,0.82"]
    few, every = tmp_path / "few.csv", tmp_path / "every.csv"
    few.write_text(HEAD + "\n".join(rows[:4]) + "\n")
    every.write_text(HEAD + "\n".join(reversed(rows)) + "\n")
    made = str(tmp_path / "calibrated.toml")
    assert popmodel("calibrate", "stencil3d", str(few), "--set", "N=256", "-o", made)[0] == 0
    words = ("validate", made, str(every), "--set", "N=256", "--format", "json")
    document = json.loads(popmodel(*words)[1])
    assert document["training"]["runs"] == 4
    assert document["training"]["noise"] > 0
    regions = {(one["processes"], one["threads"]): one["region"] for one in document["rows"]}
    assert regions.pop((8, 1)) == "extrapolation"
    assert set(regions.values()) == {"calibration"}
    assert document["summary"]["runtime"]["rows"] == 1
    saved, one = str(tmp_path / "p.json"), tmp_path / "one.csv"
    one.write_text(HEAD + rows[2] + "\n")
    popmodel("predict", made, "--procs", "4", "--set", "N=256", "-o", saved)
    out = " ".join(popmodel("validate", saved, str(one))[1].split())
    assert "the prediction was calibrated by 4 runs that its file does not name" in out
    told = popmodel("validate", saved, str(one), "--trained-on", str(few))[1]
    assert "does not name" not in told
    assert "1 run used in the fit: no test\n" in told


def test_limits_are_of_tests(shown: Call, words: tuple[str, ...]) -> None:
    err = shown(*words, "--fail-over", "error=1%")[2]
    assert "the runtime of 3 x 1 is off by " in err
    assert "1 x 1" not in err


def test_terms_of_a_trace(shown: Call) -> None:
    words = ("validate", "stencil3d", HYBRID, "--set", "N=64")
    out = shown(*words)[1]
    lines = [line for line in out.splitlines() if line.startswith(("useful (", "transfer "))]
    assert len(lines) == 2
    assert "time    its error is a part of the measured runtime, %\n" in out
    (found,) = json.loads(shown(*words, "--format", "json")[1])["terms"]
    measured = sum(one["mean"] for one in found["terms"])
    document = json.loads(shown(*words, "--format", "json")[1])
    assert measured == pytest.approx(document["splits"][0]["runtime"]["mean"])
    predicted = sum(one["predicted"] for one in found["terms"])
    assert predicted == pytest.approx(document["splits"][0]["runtime"]["predicted"])


def test_of_several_splits_a_screen_has_the_errors_of_terms(shown: Call, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEAD.strip()},parallel_efficiency\n16,4,0.3,0.5\n8,4,0.5,0.6\n")
    words = ("validate", "stencil3d", str(path), "--set", "N=256")
    out = shown(*words)[1]
    assert "time                        splits  median  largest" in out
    assert out.count("useful (computing, memory)") == 1
    page = shown(*words, "--format", "markdown")[1]
    assert page.count("useful (computing, memory)") == 2
    document = json.loads(shown(*words, "--format", "json")[1])
    (useful,) = document["by_term"]
    errors = [one["terms"][0]["error"] for one in document["terms"]]
    assert useful["bias"] == pytest.approx(sum(errors) / 2)
    assert document["terms"][1]["terms"][0]["mean"] == pytest.approx(0.15)


def test_a_saved_prediction_has_terms(shown: Call, tmp_path: Path) -> None:
    saved = str(tmp_path / "p.json")
    shown("predict", "--procs", "2", "--threads", "2", "--set", "N=64", "-o", saved)
    old, new = (
        json.loads(shown("validate", *words, "--format", "json")[1])["terms"]
        for words in ((saved, HYBRID), ("stencil3d", HYBRID, "--set", "N=64"))
    )
    assert old == new


def test_files_have_every_family_and_screens_the_main_one(shown: Call) -> None:
    words = ("validate", "stencil3d", HYBRID, "--set", "N=64")
    assert "MPI + OpenMP (TALP)" not in shown(*words)[1]
    page = shown(*words, "--format", "markdown")[1]
    assert "| MPI + OpenMP (TALP) |" in page
    only = shown(*words, "--family", "talp", "--format", "markdown")[1]
    assert "| MPI + OpenMP (TALP) |" in only
    assert "| MPI + OpenMP (additive) |" not in only


def test_a_drawing_tells_regions_by_marks(shown: Call, words: tuple[str, ...]) -> None:
    root = ET.fromstring(shown(*words, "--format", "svg")[1])
    texts = [one.text or "" for one in root.iter(f"{SVG}text")]
    assert "used in the fit: no test" in texts
    assert "test beyond the range of the fit" in texts
    assert "test" not in texts
    kinds = [one.get("class") for one in root.iter() if one.get("class")]
    # in the legend, over the diagonal, and among the ratios
    assert [kinds.count(kind) for kind in ("square", "triangle")] == [7, 7]
    assert kinds.count("exact") == 2
    titles = [one.text or "" for one in root.iter(f"{SVG}title")]
    assert any(text.startswith("64 x 1 (1 run): predicted ") for text in titles)


def test_a_drawing_of_a_trace_has_its_efficiencies(shown: Call) -> None:
    out = shown("validate", "stencil3d", HYBRID, "--set", "N=64", "--format", "svg")[1]
    assert "Efficiencies, MPI + OpenMP (additive)" in out
    assert "2 x 2, Serial region efficiency: predicted " in out
