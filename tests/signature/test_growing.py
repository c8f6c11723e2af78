"""Imbalance of several runs: its growth is found again; that of one run is assumed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model.demo import machine
from synthetic import programs, run, spread

from popmodel.fit.samples import Sample
from popmodel.model.signatures import from_text
from popmodel.model.study import Study
from popmodel.signature import signature_from
from popmodel.signature.imbalance import work_shares
from popmodel.structure.iterations import find
from popmodel.structure.structure import Structure
from popmodel.trace import Trace

STEPS = 10


def traced(folder: Path, dims: Sequence[int], cv: float, transient: float = 0.02) -> Trace:
    processes = int(np.prod(dims))
    factors = spread(processes, cv, seed=5)
    program = programs.jacobi(dims, STEPS, cells=(2048, 2048), factors=factors)
    name = f"{'x'.join(map(str, dims))}.prv"
    return run(program, transient=transient, seed=9).read(folder, name)


def variation(structure: Structure) -> Sample | None:
    shares = work_shares(structure, 1, {})
    return None if shares is None else shares.variation()


def document(runs: Sequence[Trace]) -> Mapping[str, Any]:
    return tomllib.loads(signature_from(runs).text)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("exponent", [0.1, 0.45])
def test_the_growth_of_imbalance_is_within_its_interval(exponent: float, tmp_path: Path) -> None:
    runs = [
        traced(tmp_path, dims, 0.04 * (np.prod(dims) / 4) ** exponent)
        for dims in ((2, 2), (4, 4), (8, 8))
    ]
    grows = document(runs)["imbalance"]["growth_exponent"]
    assert grows["origin"] == "fit"
    assert grows["low"] <= exponent <= grows["high"]
    assert grows["high"] - grows["low"] < 0.5


def test_imbalance_at_other_processes_is_predicted_by_its_law(tmp_path: Path) -> None:
    runs = [
        traced(tmp_path, dims, 0.04 * np.sqrt(np.prod(dims) / 4))
        for dims in ((2, 2), (4, 4), (8, 8))
    ]
    found = signature_from(runs)
    study = Study(from_text(found.text), machine(), {}, 0, 0)
    done = study.run(study.admit(64, 1), study.sources())
    balance = float(np.ravel(done.modelled.aggregates["useful_mean"])[0]) / float(
        np.ravel(done.modelled.aggregates["useful_max"])[0]
    )
    truth = 1 / (1 + 0.04 * 4 * 2.4)  # the largest of 64 lies 2.4 deviations above the mean
    assert balance == pytest.approx(truth, abs=0.06)


def test_one_run_assumes_the_growth_and_says_so(tmp_path: Path) -> None:
    table = document([traced(tmp_path, (2, 2), 0.05)])["imbalance"]
    assert table["reference_processes"] == 4
    grows = table["growth_exponent"]
    assert (grows["low"], grows["high"], grows["origin"]) == (0, 0.5, "assumed")


def test_processes_that_do_not_differ_have_no_table(tmp_path: Path) -> None:
    assert "imbalance" not in document([traced(tmp_path, (2, 2), 0.0, transient=0.0)])


def test_what_differs_by_chance_only_is_no_imbalance(tmp_path: Path) -> None:
    lasting = variation(find(traced(tmp_path, (4, 4), 0.06, transient=0.1)))
    assert lasting is not None
    assert lasting.value == pytest.approx(0.06, rel=0.35)
    chance = variation(find(traced(tmp_path, (4, 4), 0.0, transient=0.1)))
    assert chance is not None
    assert chance.value < lasting.value / 2


def test_one_process_has_no_imbalance(tmp_path: Path) -> None:
    assert variation(find(traced(tmp_path, (1, 1), 0.0))) is None


def test_processes_that_do_different_things_have_no_law(tmp_path: Path) -> None:
    done = run(programs.master_worker(4, 12, rounds=4), seed=1).read(tmp_path)
    assert variation(find(done)) is None
