"""Runtimes of whole programs from a few runs: coverage and error over families of truths."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from popmodel.fit.samples import Sample
from popmodel.fit.whole_run import whole_run

TRUTH = Path(os.environ.get("POPMODEL_SHARED", "/nowhere")) / "scaling" / "truth.json"


@pytest.mark.skipif(not TRUTH.is_file(), reason="the traces of reference are not here")
def test_runtimes_of_simulated_programs_are_carried_to_eight_times_the_processes() -> None:
    off, held = [], 0
    for runtimes in json.loads(TRUTH.read_text())["runtime"].values():
        for learnt, wanted in (((2, 4, 8), (32, 64)), ((4, 8, 16), (64,))):
            runs = whole_run([Sample(p, 1, runtimes[str(p)]) for p in learnt])
            for processes in wanted:
                there, truth = runs.at(processes, 1), runtimes[str(processes)]
                off.append(abs(there.value / truth - 1))
                held += there.low <= truth <= there.high
    assert len(off) == 12
    assert np.median(off) <= 0.085
    assert held >= 11


def test_one_run_leaves_all_laws_open() -> None:
    there = whole_run([Sample(4, 1, 2.0)]).at(16, 1)
    assert there.low < 0.5 < there.high
    assert there.high / there.low > 1.3


def test_threads_and_parameters_are_variables_like_processes() -> None:
    samples = [
        Sample(p, t, n**3 / (p * t) + 1e4, {"N": n})
        for p, t, n in [(1, 1, 64.0), (2, 1, 64.0), (4, 1, 64.0), (1, 2, 64.0), (1, 1, 128.0)]
    ]
    runs = whole_run(samples, ["N**3/(P*T)"])
    there = runs.at(8, 2, {"N": 128.0})
    assert there.low <= 128**3 / 16 + 1e4 <= there.high
    assert math.isclose(sum(runs.forms.values()), 1, abs_tol=0.5)
    with pytest.raises(ValueError, match="runtimes depend on N: give a value"):
        runs.at(8, 2)


def test_a_parameter_that_was_not_varied_is_no_variable() -> None:
    runs = whole_run([Sample(p, 1, 8 / p, {"N": 64.0}) for p in (1, 2, 4)])
    with pytest.raises(ValueError, match="known at N = 64 only"):
        runs.at(8, 1, {"N": 128.0})


def test_a_runtime_is_above_0() -> None:
    with pytest.raises(ValueError, match="a runtime must be above 0"):
        whole_run([Sample(1, 1, 0.0)])
