"""``popmodel signature from APP RUN...``: the file, the screen, the document, bad input."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_files import DATA

from popmodel.cli import main
from popmodel.model import signatures

from .computed import Known, computed_once

RATE = 1.3e-9
"""What the runs were made with; the signature says 2e-9, 1e-9 to 4e-9."""
SIGNATURE = """schema = "popmodel/signature/1"
[app]
name = "demo"
[params]
N = 1e7
[constants]
rate = { value = 2e-9, low = 1e-9, high = 4e-9, unit = "s" }  # of a cell
idle = { value = 3, low = 1, high = 5 }
[[program]]
loop = { count = 50 }
[[program.body]]
serial = { name = "work", trip = "N / P", seconds = "rate" }
[[program.body]]
collective = { op = "allreduce", bytes = 8 }
"""


def runs(noise: float = 0.01, seed: int = 1) -> list[tuple[int, float, float]]:
    """Runs of a program that does nothing but its work."""
    drawn = np.random.default_rng(seed).normal(size=8)
    sizes = [(1, 1e7), (2, 1e7), (4, 1e7), (1, 2e7), (4, 2e7), (8, 2e7)]
    return [
        (processes, size, float(50 * size / processes * RATE * np.exp(noise * draw)))
        for (processes, size), draw in zip(sizes, drawn, strict=False)
    ]


def table(rows: list[tuple[int, float, float]]) -> str:
    lines = [f"{processes},1,{size:g},{seconds:.7g}" for processes, size, seconds in rows]
    return "\n".join(["processes,threads,N,runtime", *lines]) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _computed: Known) -> Iterator[Path]:
    """A signature and runs; what comes of the same of both is computed once for all tests."""
    monkeypatch.chdir(tmp_path)
    Path("app.toml").write_text(SIGNATURE)
    Path("runs.csv").write_text(table(runs()))
    with computed_once("signature", _computed):
        yield tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["signature", "from", *arguments, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["schema"] == "popmodel/signature-from/1"
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 2) -> str:
    assert main(["signature", "from", *arguments]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.usefixtures("folder")
def test_a_constant_is_found_and_kept_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["signature", "from", "app.toml", "runs.csv", "-o", "new.toml"]) == 0
    rate = tomllib.loads(Path("new.toml").read_text())["constants"]["rate"]
    assert rate["low"] < RATE < rate["high"]
    assert rate["high"] / rate["low"] < 1.6  # 4 before
    assert rate["origin"] == "fit"
    assert re.fullmatch(r"fit to 6 runs of \d{4}-\d\d-\d\d", rate["source"])
    assert "# of a cell" in Path("new.toml").read_text()
    screen = capsys.readouterr().out
    assert "learnt: rate" in screen
    assert "popmodel predict new.toml --machine sandybridge-fdr" in screen
    assert signatures.load("new.toml").calibration is not None
    assert main(["predict", "new.toml", "--procs", "2"]) == 0


@pytest.mark.usefixtures("folder")
def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "app.toml", "runs.csv")
    (rate,) = found["values"]  # nothing depends on idle
    assert rate["low"] < RATE < rate["high"]
    assert rate["origin"] == "fit"
    assert rate["before"] == {"value": 2e-9, "low": 1e-9, "high": 4e-9}
    accuracy = found["calibration"]["accuracy"]
    assert accuracy["median_error"] < 0.05 < accuracy["median_error_before"]
    assert accuracy["covered"] >= 5
    assert len(found["calibration"]["left_out"]) == accuracy["configurations"] == 6
    assert found["calibration"]["suspect_runs"] == []
    assert rate["learnt"] > 0.5


@pytest.mark.usefixtures("folder")
def test_a_poisoned_run_is_named_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = runs()
    rows[3] = (rows[3][0], rows[3][1], 2 * rows[3][2])
    Path("runs.csv").write_text(table(rows))
    found = document(capsys, "app.toml", "runs.csv")
    (suspect,) = found["calibration"]["suspect_runs"]
    assert (suspect["source"], suspect["line"]) == ("runs.csv", 5)
    assert suspect["factor"] == pytest.approx(2, rel=0.2)
    assert any(line.startswith("suspect: runs.csv:5 took") for line in found["notes"])


@pytest.mark.usefixtures("folder")
def test_the_next_run_is_named_with_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "app.toml", "runs.csv", "--cores", "64")
    assert found["calibration"]["targets"][0] == {"processes": 64, "threads": 1}
    assert found["calibration"]["measure_next"]
    for one in found["calibration"]["measure_next"]:
        assert 0 < one["narrows"] < 1
        cost = one["processes"] * one["threads"] * one["runtime"]
        assert one["core_seconds"] == pytest.approx(cost)
    assert main(["signature", "from", "app.toml", "runs.csv", "--cores", "64"]) == 0
    assert "measure next, for the runtime of 64 x 1" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_all_splits_of_some_cores_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "app.toml", "runs.csv", "--cores", "4")
    splits = [(one["processes"], one["threads"]) for one in found["calibration"]["targets"]]
    assert splits == [(4, 1), (2, 2), (1, 4)]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["found.csv", "found.md", "found.json"])
def test_other_suffixes_write_what_was_found(name: str) -> None:
    assert main(["signature", "from", "app.toml", "runs.csv", "-o", name]) == 0
    text = Path(name).read_text()
    words = {"csv": "rate,program,s", "md": "learnt: rate"}
    assert words.get(name.partition(".")[2], "measure_next") in text


@pytest.mark.usefixtures("folder")
def test_a_constant_that_is_set_is_not_fitted(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "app.toml", "runs.csv", "--set", "rate=1.3e-9")
    assert found["values"] == []
    assert any("no constant with an interval" in line for line in found["notes"])


def test_one_step_from_traces_and_a_table_is_the_same_as_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trace = str(DATA / "is.S.4.prv.gz")
    Path("runs.csv").write_text("processes,threads,runtime\n4,1,0.0035\n2,1,0.006\n")
    assert main(["signature", "from", trace, "runs.csv", "-o", "one.toml"]) == 0
    assert main(["signature", "from", trace, "-o", "found.toml"]) == 0
    assert main(["signature", "from", "found.toml", "runs.csv", "-o", "two.toml"]) == 0
    assert Path("one.toml").read_text() == Path("two.toml").read_text()


# -- bad input


@pytest.mark.usefixtures("folder")
def test_one_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs.csv").write_text(table(runs()[:1]))
    error = refused(capsys, "app.toml", "runs.csv")
    assert "1 run to calibrate by: nothing tells a disturbed run from a wrong constant" in error
    assert "hint: measure at least two" in error


@pytest.mark.usefixtures("folder")
def test_why_only_one_run_is_left_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs.csv").write_text(table(runs()[:1]) + "1,1000,1e7,2.5\n")
    error = refused(capsys, "app.toml", "runs.csv")
    assert "1 run to calibrate by" in error
    assert "1 run left out, first runs.csv:3: more threads (1000) than cores (16)" in error


@pytest.mark.usefixtures("folder")
def test_runs_of_another_program_are_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    strange = [(p, n, s * k) for (p, n, s), k in zip(runs(), (1e3, 1, 1e-3) * 9, strict=False)]
    Path("runs.csv").write_text(table(strange))
    found = document(capsys, "app.toml", "runs.csv")
    asked = found["notes"][0]
    assert asked.startswith("not to be trusted yet: ")
    assert asked.endswith("are all of demo, with their parameters and units, and undisturbed?")


@pytest.mark.usefixtures("folder")
def test_runs_of_one_configuration_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    (processes, size, seconds), *_ = runs()
    Path("runs.csv").write_text(table([(processes, size, seconds * k) for k in (1, 1.01, 0.99)]))
    found = document(capsys, "app.toml", "runs.csv")
    assert found["caveats"] == [
        "all runs are 1 x 1 of one size: they tell nothing about other processes, threads and sizes"
    ]


@pytest.mark.usefixtures("folder")
def test_runs_that_were_used_already_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["signature", "from", "app.toml", "runs.csv", "-o", "new.toml"]) == 0
    capsys.readouterr()
    Path("copy.csv").write_text(table(runs()))
    error = refused(capsys, "new.toml", "copy.csv", status=1)
    assert "copy.csv:2: has a run that calibrated new.toml already (runs.csv:2)" in error


@pytest.mark.usefixtures("folder")
def test_new_runs_calibrate_what_is_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["signature", "from", "app.toml", "runs.csv", "-o", "new.toml"]) == 0
    capsys.readouterr()
    Path("more.csv").write_text(table(runs(seed=2)))
    found = document(capsys, "new.toml", "more.csv")
    assert any("new.toml is calibrated already" in line for line in found["caveats"])


@pytest.mark.usefixtures("folder")
def test_runs_without_cores_of_their_own_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs.csv").write_text(table([*runs(), (100000, 1e7, 1.0)]))
    found = document(capsys, "app.toml", "runs.csv")
    (warning,) = found["caveats"]
    assert warning.startswith("1 run left out, first runs.csv:8: more threads (")
    assert found["calibration"]["runs"] == 6


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("seconds", ["nan", "0", "-1"])
def test_times_that_are_none_are_refused(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs.csv").write_text(f"processes,threads,runtime\n1,1,3\n2,1,{seconds}\n")
    error = refused(capsys, "app.toml", "runs.csv", status=1)
    assert "runs.csv:3: runtime must be" in error


@pytest.mark.usefixtures("folder")
def test_a_parameter_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs.csv").write_text("processes,threads,M,runtime\n1,1,5,3\n2,1,5,2\n")
    error = refused(capsys, "app.toml", "runs.csv", status=1)
    assert "runs.csv:1: column 'M' is not a parameter" in error


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "new.toml", "--format", "json"], "-o new.toml means toml, --format says json"),
        (["--for", "4x1"], "hint: now --cores N: all splits of N cores"),
        (["-o", "app.toml"], "-o app.toml: the file exists"),
        (["--cores", "0"], "--cores: must be a whole number, at least 1"),
    ],
)
def test_options_that_contradict_each_other(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refused(capsys, "app.toml", "runs.csv", *arguments)


# -- constants of which nothing is known


@pytest.mark.long(after=1)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("formula", "truth"), [("rate", RATE), ("1/rate", 1 / RATE), ("rate*1e-9", RATE * 1e9)]
)
def test_an_unknown_constant_is_found(
    formula: str, truth: float, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SIGNATURE.replace('{ value = 2e-9, low = 1e-9, high = 4e-9, unit = "s" }', '"?"')
    Path("app.toml").write_text(text.replace('seconds = "rate"', f'seconds = "{formula}"'))
    (found,) = document(capsys, "app.toml", "runs.csv")["values"]
    assert found["value"] == pytest.approx(truth, rel=0.25)
    assert found["low"] < truth < found["high"]
    assert found["before"] == {"value": None, "low": None, "high": None}
    assert main(["signature", "from", "app.toml", "runs.csv", "-o", "new.toml"]) == 0
    assert "?" in capsys.readouterr().out
    assert tomllib.loads(Path("new.toml").read_text())["constants"]["rate"]["origin"] == "fit"


@pytest.mark.usefixtures("folder")
def test_of_two_unknown_constants_of_one_product_none_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = SIGNATURE.replace('{ value = 2e-9, low = 1e-9, high = 4e-9, unit = "s" }', '"?"')
    text = text.replace("idle = { value = 3, low = 1, high = 5 }", 'idle = "?"')
    Path("app.toml").write_text(text.replace('seconds = "rate"', 'seconds = "rate*idle"'))
    found = document(capsys, "app.toml", "runs.csv")
    assert found["calibration"]["accuracy"]["median_error"] < 0.1
    assert "not told by these runs: rate, idle" in found["notes"]


@pytest.mark.usefixtures("folder")
def test_an_unknown_constant_without_effect_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("app.toml").write_text(SIGNATURE.replace("{ value = 3, low = 1, high = 5 }", '"?"'))
    error = refused(capsys, "app.toml", "runs.csv")
    assert "demo: no run depends on the constant idle, which is unknown" in error


@pytest.mark.usefixtures("folder")
def test_an_unknown_formula_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("app.toml").write_text(SIGNATURE.replace('seconds = "rate"', 'seconds = "?"'))
    assert "demo has unknown values: serial.seconds" in refused(capsys, "app.toml", "runs.csv")


def test_a_signature_that_predict_would_refuse_is_not_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "popmodel.fit.calibrate.text_of", lambda before, *_: before.replace("N / P", "M / P")
    )
    line = 1 + [text.startswith("serial") for text in SIGNATURE.splitlines()].index(True)
    err = refused(capsys, "app.toml", "runs.csv", "--nodes", "1", "-o", "after.toml", status=1)
    assert (
        f"{folder}/after.toml:{line}: is not written, for popmodel could not read it: "
        "trip: unknown name 'M' in 'M / P'"
    ) in err
    assert not Path("after.toml").exists()
