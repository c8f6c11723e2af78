"""The study of record: what it shows follows from its stored runs."""

from __future__ import annotations

import csv
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent.parent / "examples" / "validation"
MADE: dict[str, Callable[..., Any]] = runpy.run_path(str(FOLDER / "make.py"))
PROGRAMS = ("stencil3d", "cannon", "hpccg")


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _numbers(document: Any, path: str = "") -> dict[str, float]:
    if isinstance(document, dict):
        return {
            k: v
            for name, one in document.items()
            for k, v in _numbers(one, f"{path}.{name}").items()
        }
    return {path: document}


@pytest.mark.long
def test_the_stored_runs_give_the_stored_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)
    made = MADE["make"]("cannon", tmp_path)
    stored = FOLDER / "report" / "cannon"
    # libraries of linear algebra round differently: a hundredth of what is told
    assert _numbers(made) == pytest.approx(
        _numbers(json.loads((stored / "figures.json").read_text())), rel=0.01
    )
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in stored.iterdir()}
    for name in ("calibration.csv", "tests.csv"):
        assert (tmp_path / name).read_text() == (stored / name).read_text()


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_run_is_both_fitted_and_a_test(program: str) -> None:
    declared = MADE["study"]()[program]
    fit, tests = MADE["parted"](program, declared)
    assert len(fit) + len(tests) == len(_table(FOLDER / "runs" / f"{program}.csv"))
    sizes = {float(run[declared["parameter"]]) for run in fit}
    assert sizes == set(declared["calibration"])
    assert not sizes & {float(run[declared["parameter"]]) for run in tests}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_configuration_was_predicted_before_and_after(program: str) -> None:
    parameter = MADE["study"]()[program]["parameter"]

    def places(rows: list[dict[str, str]]) -> set[tuple[int, int, float]]:
        return {(int(r["processes"]), int(r["threads"]), float(r[parameter])) for r in rows}

    predictions = _table(FOLDER / "report" / program / "predictions.csv")
    measured = places(_table(FOLDER / "runs" / f"{program}.csv"))
    for when in ("before", "after"):
        assert places([row for row in predictions if row["when"] == when]) == measured


def test_baselines_of_a_cube() -> None:
    fit = [
        {"processes": "1", "threads": "2", "N": str(size), "runtime": str(size**3)}
        for size in (10, 20)
    ]
    told = {name: rule(fit, "N", (1, 2, 40.0)) for name, rule in MADE["BASELINES"].items()}
    assert told == pytest.approx(
        {"power law of the size": 64e3, "nearest run, times cells": 64e3, "nearest run": 8e3}
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_readme_tells_the_figures(program: str) -> None:
    readme = (FOLDER / "README.md").read_text()
    stored = json.loads((FOLDER / "report" / program / "figures.json").read_text())
    for region, values in stored.items():
        assert MADE["told"](program, region, values) in readme
