"""Plain extrapolations, against their closed forms."""

from __future__ import annotations

import pytest

from popmodel.fit.baselines import BASELINES, baselines
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
