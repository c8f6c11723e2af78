"""Runtimes of whole programs: plain extrapolations, and the average of all laws."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from popmodel.fit.baselines import BASELINES, baselines, whole_run
from popmodel.fit.samples import Sample

RUNS = [Sample(1, 1, 10.0), Sample(4, 1, 3.25), Sample(4, 2, 2.125)]  # Amdahl with f = 0.1


def test_amdahl_recovers_its_serial_share() -> None:
    assert baselines(RUNS, 8, 8)["amdahl"] == pytest.approx(10 * (0.1 + 0.9 / 64), rel=1e-6)


def test_the_nearest_run_is_by_ratios_and_the_larger_of_two() -> None:
    assert baselines(RUNS, 16, 2)["nearest"] == 2.125
    assert baselines(RUNS, 2, 1)["nearest"] == 3.25


def test_ideal_scaling_starts_from_the_nearest_run() -> None:
    assert baselines(RUNS, 16, 2)["linear"] == pytest.approx(2.125 * 8 / 32)


def test_pipelines_recover_their_share() -> None:
    def runtime(cores: int, f: float = 0.8) -> float:
        return 6 / (cores * cores / ((1 - f) + f * (2 * cores - 1)))

    runs = [Sample(p, 1, runtime(p), {}, 0.001) for p in (1, 2, 4, 8)]
    assert baselines(runs, 64, 1)["pipe"] == pytest.approx(runtime(64), rel=1e-3)


def test_the_normal_form_finds_a_power_of_the_cores() -> None:
    runs = [Sample(p, 1, 0.5 + 4 * p**-0.75, {}, 0.001) for p in (1, 2, 4, 8, 16)]
    found = baselines(runs, 64, 1)["normal-form"]
    assert found == pytest.approx(0.5 + 4 * 64**-0.75, rel=0.02)


def test_one_run_is_the_nearest_or_scales_ideally() -> None:
    found = baselines([Sample(4, 1, 2.0)], 16, 1)
    assert found == {"nearest": 2, "linear": 0.5, "amdahl": 0.5, "pipe": 0.5, "normal-form": 2}


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_return_what_was_measured_where_it_was_exact(name: str) -> None:
    runs = [Sample(p, 1, 8 / p, {}, 0.001) for p in (1, 2, 4, 8)]
    assert baselines(runs, 4, 1)[name] == pytest.approx(2.0, rel=1e-6)


def test_baselines_need_runs_of_one_problem() -> None:
    with pytest.raises(ValueError, match="extrapolate runs of the same problem"):
        baselines([Sample(1, 1, 1.0, {"N": 1.0}), Sample(2, 1, 1.0, {"N": 2.0})], 4, 1)
    with pytest.raises(ValueError, match="a baseline needs a measured run"):
        baselines([], 4, 1)


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
    with pytest.raises(ValueError, match="runtimes depend on N: give a value"):
        runs.at(8, 2)


def test_a_parameter_that_was_not_varied_is_no_variable() -> None:
    runs = whole_run([Sample(p, 1, 8 / p, {"N": 64.0}) for p in (1, 2, 4)])
    with pytest.raises(ValueError, match="known at N = 64 only"):
        runs.at(8, 1, {"N": 128.0})


def test_a_runtime_is_above_0() -> None:
    with pytest.raises(ValueError, match="a runtime must be above 0"):
        whole_run([Sample(1, 1, 0.0)])
