"""Laws of one factor: closed forms, choice by what is left out, intervals."""

from typing import Any

import numpy as np
import pytest
from fit.series import largest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit

from popmodel.fit.efficiency_factors import FACTORS
from popmodel.fit.efficiency_laws import DRAWS, FittedFactor, fit_factor

PLACES = [4, 8, 16, 32]
FAR = np.array([64.0, 256.0])


def amdahl(x: Any, x0: float, f: float) -> Any:
    return x0 / (f + (1 - f) * x)


def pipe(x: Any, x0: float, f: float) -> Any:
    return x0 * x / ((1 - f) + f * (2 * x - 1))


def linear(x: Any, x0: float, f: float) -> Any:
    return x0 + f * x


@pytest.mark.long(after=1)
@pytest.mark.parametrize("law", [amdahl, pipe])
@given(x0=st.floats(0.5, 1.0), f=st.floats(0.55, 0.999))
@settings(max_examples=15)
def test_exact_values_give_their_law_back(law: object, x0: float, f: float) -> None:
    assert callable(law)
    values = law(np.array(PLACES, dtype=float), x0, f).tolist()
    found = fit_factor(FACTORS["transfer"], PLACES, values, "processes", "strong", law.__name__)
    assert found.values(FAR) == pytest.approx(law(FAR, x0, f), rel=2e-3)
    assert found.constants["x0"] == pytest.approx(x0, rel=2e-3)
    assert found.constants["f"] == pytest.approx(f, abs=2e-3)


def test_a_straight_line_is_that_of_weighted_least_squares() -> None:
    values = [0.98, 0.955, 0.91, 0.82]
    found = fit_factor(FACTORS["computation"], PLACES, values, "processes", "strong", "linear")
    expected, _ = curve_fit(linear, PLACES, values, sigma=values)
    assert found.constants == pytest.approx(dict(zip(("x0", "f"), expected, strict=True)))
    assert found.values(np.array([64.0]))[0] == pytest.approx(linear(64, *expected))


@pytest.mark.parametrize(("law", "f"), [(amdahl, 0.97), (pipe, 0.6)])
def test_fits_are_those_of_least_squares(law: object, f: float) -> None:
    assert callable(law)
    wrong = np.array([1.004, 0.997, 1.003, 0.998])
    values = law(np.array(PLACES, dtype=float), 0.95, f) * wrong
    found = fit_factor(
        FACTORS["computation"], PLACES, values.tolist(), "processes", "strong", law.__name__
    )

    def logarithm(x: Any, x0: float, f: float) -> Any:
        return np.log(law(x, x0, f))

    expected, _ = curve_fit(logarithm, np.array(PLACES, dtype=float), np.log(values), (0.9, 0.9))
    assert found.values(FAR) == pytest.approx(law(FAR, *expected), rel=2e-3)


def test_what_pipelines_lose_is_taken_for_it() -> None:
    places = [2, 4, 8, 16, 32]
    values = pipe(np.array(places, dtype=float), 0.9, 0.9).tolist()
    found = fit_factor(FACTORS["transfer"], places, values, "processes", "strong")
    assert (found.law, found.origin) == ("pipe", "fit")
    errors = {one.law: one.error for one in found.tried}
    assert list(errors) == ["pipe", *sorted(list(errors)[1:], key=lambda law: errors[law] or 0)]
    own, *others = errors.values()
    assert own is not None and own < 0.02
    assert all(error is not None and error > 1.2 * own for error in others)


def test_amdahl_is_a_structural_law_where_one_process_has_more_work() -> None:
    places = [2, 4, 8, 16, 32]
    values = amdahl(np.array(places, dtype=float), 1.0, 0.98).tolist()
    found = fit_factor(FACTORS["load_balance"], places, values, "processes", "strong")
    assert found.law == "structural"
    assert found.values(np.array([128.0]))[0] == pytest.approx(amdahl(128, 1.0, 0.98), abs=0.02)


@pytest.mark.parametrize("exponent", [0.0, 0.5])
def test_imbalance_is_recovered(exponent: float) -> None:
    places = [4, 8, 16, 32]

    def balance(processes: float) -> float:
        return 1 / (1 + 0.03 * largest(int(processes)) * (processes / 8) ** exponent)

    values = [balance(each) for each in places]
    found = fit_factor(FACTORS["load_balance"], places, values, "processes", "strong")
    assert found.law == "structural"
    assert found.values(np.array([128.0]))[0] == pytest.approx(balance(128), abs=0.025)


def test_two_runs_do_not_tell_laws_apart() -> None:
    found = fit_factor(FACTORS["transfer"], [4, 16], [0.97, 0.92], "processes", "strong")
    assert (found.law, found.origin, found.points) == ("structural", "assumed", 2)
    assert all(one.error is None for one in found.tried)


def test_two_runs_are_met_by_a_law_of_two_constants() -> None:
    found = fit_factor(FACTORS["transfer"], [4, 16], [0.97, 0.92], "processes", "strong", "amdahl")
    assert found.values(np.array([4.0, 16.0])) == pytest.approx([0.97, 0.92], rel=1e-4)


def test_one_run_leaves_a_law_that_is_1_at_one_process() -> None:
    found = fit_factor(FACTORS["transfer"], [4], [0.97], "processes", "strong", "amdahl")
    assert not found.constants
    at = found.values(np.array([1.0, 4.0, 16.0]))
    assert at == pytest.approx([1, 0.97, 1 / (1 + (1 / 0.97 - 1) / 3 * 15)], rel=3e-3)


def test_repeats_count_as_one_size() -> None:
    found = fit_factor(
        FACTORS["transfer"], [4, 4, 16, 16], [0.97, 0.96, 0.92, 0.93], "processes", "strong"
    )
    assert found.points == 2
    assert found.origin == "assumed"


def test_a_process_alone_loses_nothing() -> None:
    found = fit_factor(FACTORS["transfer"], [1, 4, 8], [1.0, 0.97, 0.95], "processes", "strong")
    assert found.values(np.ones(1))[0] == pytest.approx(1)


def test_intervals_grow_with_the_distance() -> None:
    found = fit_factor(
        FACTORS["load_balance"], [4, 8, 16], [0.98, 0.97, 0.95], "processes", "strong"
    )
    draws = found.draws(np.array([16.0, 32.0, 64.0]), np.random.default_rng(1))
    assert draws.shape == (DRAWS, 3)
    assert (draws <= 1).all()
    widths = np.ptp(np.percentile(draws, [5, 95], axis=0), axis=0)
    assert (np.diff(widths) > 0).all()


def test_more_runs_narrow_intervals() -> None:
    def width(places: list[int]) -> float:
        values = [1 / (1 + 0.02 * place**0.5) for place in places]
        found = fit_factor(FACTORS["transfer"], places, values, "processes", "strong")
        draws = found.draws(np.array([64.0]), np.random.default_rng(1))
        return float(np.ptp(np.percentile(draws, [5, 95])))

    assert width([2, 4, 8, 16, 32]) < width([4, 16]) < width([8])


def test_a_line_that_falls_to_zero_has_no_value_there() -> None:
    found = fit_factor(
        FACTORS["transfer"], [4, 8, 16], [0.9, 0.8, 0.6], "processes", "strong", "linear"
    )
    assert np.isnan(found.values(np.array([64.0]))[0])


@pytest.mark.parametrize("values", [[1.0, 0.6, 0.6], [1.0, 0.42, 0.42]])
def test_computation_settles_once_nodes_are_full(values: list[float]) -> None:
    found = fit_factor(FACTORS["computation"], [2, 16, 32], values, "processes", "strong")
    assert found.law == "structural"
    assert found.form.startswith("constant from P = 16, another at 2")
    assert found.values(np.array([128.0]))[0] == pytest.approx(values[-1], rel=0.1)


def runtime_law(times: dict[int, float]) -> FittedFactor:
    first = min(times)
    values = [times[first] * first / (time * place) for place, time in times.items()]
    return fit_factor(FACTORS["runtime"], [*times], values, "processes", "strong")


def test_what_caches_gain_ends_where_all_data_fit() -> None:
    gained = {p: 100 / p * (1 - 0.3 / (1 + (6 / p) ** 4)) for p in (1, 2, 4, 8, 16)}
    value = runtime_law(gained).values(np.array([128.0]))[0]
    assert value == pytest.approx(1 / 0.7, rel=0.15)


def test_an_interval_has_room_for_caches_and_memories_that_no_run_has_met() -> None:
    law = runtime_law({p: 100 / p for p in (1, 2, 4, 8)})
    low, high = np.percentile(law.draws(np.array([64.0]), np.random.default_rng(1)), (5, 95))
    assert low < 0.7
    assert high > 1.1
