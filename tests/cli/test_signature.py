"""``popmodel signature``: what is found is right. Its screens and errors are in tests/golden."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_files import DATA

from popmodel.cli import main
from popmodel.model import signatures

TRACE = str(DATA / "is.S.4.prv.gz")
RATE = 1.3e-9
"""What the runs were made with; the signature says 2e-9, 1e-9 to 4e-9."""
STATED = '{ value = 2e-9, low = 1e-9, high = 4e-9, unit = "s" }'
SIGNATURE = f"""schema = "popmodel/signature/1"
[app]
name = "demo"
[params]
N = 1e7
[constants]
rate = {STATED}  # of a cell
idle = {{ value = 3, low = 1, high = 5 }}
[[program]]
loop = {{ count = 50 }}
[[program.body]]
serial = {{ name = "work", trip = "N / P", seconds = "rate" }}
[[program.body]]
collective = {{ op = "allreduce", bytes = 8 }}
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


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.toml").write_text(SIGNATURE)
    Path("runs.csv").write_text(table(runs()))


def written(*arguments: str) -> str:
    """The signature that is found."""
    assert main(["signature", "from", *arguments, "-o", "new.toml", "--force"]) == 0
    return Path("new.toml").read_text()


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["signature", "from", *arguments, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["schema"] == "popmodel/signature-from/1"
    return found


# -- from traces


def test_what_is_found_can_be_checked_predicted_with_and_compared() -> None:
    assert written(TRACE).startswith("# Signature of is.S.4, found by popmodel in is.S.4.prv.gz")
    assert main(["signature", "check", "new.toml"]) == 0
    assert main(["predict", "new.toml", "--procs", "4"]) == 0
    against = ("signature", "check", "new.toml", "--against", TRACE)
    assert main([*against, "--fail-if", "error > 2%"]) == 0
    assert main([*against, "--fail-if", "error > 1e-6"]) == 3


def test_names_parameters_and_what_is_assumed_are_written() -> None:
    text = written(f"{TRACE}:N=65536", "--name", "is", "--set", "w=4", "--scaling", "weak")
    found = tomllib.loads(text)
    assert found["app"]["name"] == "is"
    assert found["params"] == {"N": 65536, "w": 4}
    assert "assumed: weak scaling" in text
    smpi = written(str(DATA / "smpi" / "jac2048.4.ti.txt.gz"), "--flop-rate", "1Gflop/s")
    assert tomllib.loads(smpi)["app"]["name"] == "jac2048.4"


def test_a_signature_is_of_the_iterations_that_are_asked_for() -> None:
    words = (str(DATA / "comd.4.prv.gz"), "--foa", "iterations=2:4")
    text = written(*words)
    assert "iterations 2 to 4 of 4" in " ".join(text.split("\n# "))
    program = tomllib.loads(text)["program"]
    assert [item["loop"]["count"] for item in program if "loop" in item] == [3]
    against = ["signature", "check", "new.toml", "--against", *words]
    assert main([*against, "--fail-if", "error > 2%"]) == 0


def test_a_window_without_calls_is_computing_alone() -> None:
    # messages are known that none of its calls sends
    found = tomllib.loads(written(str(DATA / "comd.4.prv.gz"), "--window", "1ms:20ms"))
    assert [set(item) for item in found["program"]] == [{"serial"}]


# -- fitted to runs


def test_a_constant_is_found_and_kept_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    text = written("app.toml", "runs.csv")
    rate = tomllib.loads(text)["constants"]["rate"]
    assert rate["low"] < RATE < rate["high"]
    assert rate["high"] / rate["low"] < 1.6  # 4 before
    assert rate["origin"] == "fit"
    assert re.fullmatch(r"fit to 6 runs of \d{4}-\d\d-\d\d", rate["source"])
    assert "# of a cell" in text
    assert signatures.load("new.toml").calibration is not None
    assert main(["predict", "new.toml", "--procs", "2"]) == 0
    capsys.readouterr()
    Path("more.csv").write_text(table(runs(seed=2)))
    found = document(capsys, "new.toml", "more.csv")
    assert any("new.toml is calibrated already" in line for line in found["caveats"])


def test_one_step_from_traces_and_a_table_is_the_same_as_two() -> None:
    Path("few.csv").write_text("processes,threads,runtime\n4,1,0.0035\n2,1,0.006\n")
    one = written(TRACE, "few.csv")
    written(TRACE)
    assert written("new.toml", "few.csv") == one


def test_a_poisoned_run_is_named_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = runs()
    rows[3] = (rows[3][0], rows[3][1], 2 * rows[3][2])
    Path("runs.csv").write_text(table(rows))
    found = document(capsys, "app.toml", "runs.csv")
    (suspect,) = found["calibration"]["suspect_runs"]
    assert (suspect["source"], suspect["line"]) == ("runs.csv", 5)
    assert suspect["factor"] == pytest.approx(2, rel=0.2)
    assert any(line.startswith("suspect: runs.csv:5 took") for line in found["notes"])


def test_the_next_run_is_named_with_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    fit = document(capsys, "app.toml", "runs.csv", "--cores", "4,64")["calibration"]
    splits = [(one["processes"], one["threads"]) for one in fit["targets"]]
    assert splits[:4] == [(4, 1), (2, 2), (1, 4), (64, 1)]
    assert fit["measure_next"]
    for run in fit["measure_next"]:
        assert 0 < run["narrows"] < 1
        cost = run["processes"] * run["threads"] * run["runtime"]
        assert run["core_seconds"] == pytest.approx(cost)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("formula", "truth"), [("rate", RATE), ("1/rate", 1 / RATE), ("rate*1e-9", RATE * 1e9)]
)
def test_an_unknown_constant_is_found(
    formula: str, truth: float, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SIGNATURE.replace(STATED, '"?"')
    Path("app.toml").write_text(text.replace('seconds = "rate"', f'seconds = "{formula}"'))
    (found,) = document(capsys, "app.toml", "runs.csv")["values"]
    assert found["value"] == pytest.approx(truth, rel=0.25)
    assert found["low"] < truth < found["high"]
    assert found["before"] == {"value": None, "low": None, "high": None}
    constants = tomllib.loads(written("app.toml", "runs.csv"))["constants"]
    assert constants["rate"]["origin"] == "fit"


def test_of_two_unknown_constants_of_one_product_none_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = SIGNATURE.replace(STATED, '"?"').replace("{ value = 3, low = 1, high = 5 }", '"?"')
    Path("app.toml").write_text(text.replace('seconds = "rate"', 'seconds = "rate*idle"'))
    found = document(capsys, "app.toml", "runs.csv")
    assert found["calibration"]["accuracy"]["median_error"] < 0.1
    assert "not told by these runs: rate, idle" in found["notes"]


def test_a_signature_that_predict_would_refuse_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "popmodel.fit.calibrate.text_of", lambda before, *_: before.replace("N / P", "M / P")
    )
    line = 1 + [text.startswith("serial") for text in SIGNATURE.splitlines()].index(True)
    assert main(["signature", "from", "app.toml", "runs.csv", "-o", "after.toml"]) == 1
    assert (
        f"{tmp_path}/after.toml:{line}: is not written, for popmodel could not read it: "
        "trip: unknown name 'M' in 'M / P'"
    ) in capsys.readouterr().err
    assert not Path("after.toml").exists()
