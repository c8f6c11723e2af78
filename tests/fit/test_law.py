"""Laws from a few points: recovered, contradicted, or not known."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.expressions import parse
from popmodel.fit.law import Law, law
from popmodel.fit.mixture import ASSUMED_DRIFT
from popmodel.fit.samples import Sample

Truth = Callable[[float, float], float]


def measured(
    truth: Truth,
    processes: Sequence[int],
    threads: Sequence[int] = (1,),
    noise: float = 0.0,
    error: float | None = 0.001,
    seed: int = 0,
) -> list[Sample]:
    rng = np.random.default_rng(seed)
    return [
        Sample(p, t, truth(p, t) * math.exp(noise * rng.normal()), {}, error)
        for p in processes
        for t in threads
    ]


def evaluated(found: Law, **configuration: float) -> float:
    values = {f"x_{name}": one.value for name, one in found.constants.items()}
    return float(parse(found.text("x_")).evaluate(values | configuration))


@pytest.mark.parametrize(
    ("truth", "processes", "form"),
    [
        (lambda *_: 2.0, (1, 2, 4), "1"),
        (lambda p, _: 3 / p, (1, 2, 4), "1/P"),
        (lambda p, _: 3 / p + 0.1, (1, 2, 4, 8), "1/P + 1"),
        (lambda p, _: 5 * p ** (-2 / 3), (2, 4, 8), "1/P**(2/3)"),
        (lambda p, _: 5 * p**-0.5, (2, 4, 8), "1/sqrt(P)"),
        (lambda p, _: 1e-6 * math.log2(p), (2, 4, 8), "log2(P)"),
        (lambda p, _: 1e-6 * p, (2, 4, 8), "P"),
        (lambda p, _: 1e-6 * math.sqrt(p), (4, 16, 64), "sqrt(P)"),
        (lambda p, _: 3 / p + 0.02 * math.log2(p), (2, 4, 8, 16), "1/P + log2(P)"),
        (lambda p, _: 0.7 + 0.2 * math.log2(p), (2, 4, 8, 16), "1 + log2(P)"),
    ],
)
def test_laws_without_noise_are_found_exactly(
    truth: Truth, processes: tuple[int, ...], form: str
) -> None:
    found = law(measured(truth, processes))
    assert found.form == form
    assert found.origin == "fit"
    assert found.error is not None and found.error < 1e-3
    assert evaluated(found, P=256, T=1) == pytest.approx(truth(256, 1), rel=0.02)
    there = found.at(256, 1)
    assert there.low <= truth(256, 1) <= there.high
    assert there.low <= there.value <= there.high


@pytest.mark.parametrize(
    ("truth", "form"),
    [
        (lambda p, t: 4 / (p * t), "1/(P*T)"),
        (lambda p, t: 4 / (p * t) + 0.05 / p, "1/(P*T) + 1/P"),
        (lambda p, t: 4 / (p * t) + 0.05 / t, "1/(P*T) + 1/T"),
        (lambda _, t: 2e-6 * (1 + 0.3 * math.log2(t)), "1 + log2(T)"),
    ],
)
def test_laws_of_processes_and_threads_are_found(truth: Truth, form: str) -> None:
    found = law(measured(truth, (1, 2, 4, 8), (1, 2, 4)))
    assert set(found.form.split(" + ")) == set(form.split(" + "))
    assert evaluated(found, P=64, T=8) == pytest.approx(truth(64, 8), rel=1e-4)


def test_varying_one_at_a_time_is_enough_for_a_product() -> None:
    samples = [
        Sample(p, t, 1e-9 * n**3 / (p * t), {"N": n}, 0.01)
        for p, t, n in [(1, 1, 64.0), (2, 1, 64.0), (4, 1, 64.0), (1, 2, 64.0), (1, 1, 128.0)]
    ]
    found = law(samples)
    assert found.form == "N**3/(P*T)"
    assert found.at(16, 2, {"N": 256.0}).value == pytest.approx(1e-9 * 256**3 / 32)


def test_an_interaction_is_found_when_points_off_the_axes_ask_for_it() -> None:
    truth = lambda p, t: 4 / (p * t) + 0.02 * p * math.log2(2 * t)  # noqa: E731
    found = law(measured(truth, (1, 2, 4, 8), (1, 2, 4)))
    first, second = found.form.split(" + ")
    assert first == "1/(P*T)"
    assert "P" in second


def test_local_extents_of_a_grid_are_terms_like_any_other() -> None:
    grids = {4: (2, 2), 8: (4, 2), 16: (4, 4)}
    samples = [
        Sample(
            p, 1, 3e-9 * (96 / a) * (96 / b) + 2e-7 * (96 / a), {"n0": 96 / a, "n1": 96 / b}, 0.001
        )
        for p, (a, b) in grids.items()
    ]
    found = law(samples, forms=["n0*n1 + n0", "n0*n1"])
    assert (found.form, found.origin) == ("n0*n1 + n0", "fit")
    at = found.at(64, 1, {"n0": 12.0, "n1": 12.0}).value
    assert at == pytest.approx(3e-9 * 144 + 2e-7 * 12, rel=1e-3)
    with pytest.raises(ValueError, match="the law depends on n0, n1: give a value"):
        found.at(64, 1)


@given(st.floats(1e-6, 1e6), st.integers(0, 1000))
def test_a_law_does_not_depend_on_the_unit(factor: float, seed: int) -> None:
    samples = measured(lambda p, _: 3 / p + 0.1, (1, 2, 4, 8), noise=0.03, error=None, seed=seed)
    scaled = [Sample(one.processes, one.threads, factor * one.value) for one in samples]
    one, other = law(samples), law(scaled)
    assert one.form == other.form
    for at in (4, 64):
        mine, theirs = one.at(at, 1), other.at(at, 1)
        for name in ("value", "low", "high"):
            assert factor * getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-4)


# -- few points


def test_one_point_gives_the_hinted_form_and_says_that_it_is_assumed() -> None:
    found = law([Sample(4, 1, 2.0, {}, 0.05)], hints=["1/P"])
    assert (found.form, found.origin, found.error) == ("1/P", "assumed", None)
    assert found.at(16, 1).value == pytest.approx(0.5)
    assert found.at(16, 1).high / 0.5 > 4**ASSUMED_DRIFT
    assert found.constants["a"].origin == "trace"
    assert found.constants["p"].origin == "assumed"
    assert found.constants["p"].low == pytest.approx(1 - ASSUMED_DRIFT)
    assert found.notes == ("known at P = 4 only: 1/P is assumed",)
    assert found.at(4, 1).low == pytest.approx(2 * math.exp(-2.13 * 0.05), rel=0.01)


def test_one_point_without_a_hint_stays_as_it_is() -> None:
    found = law([Sample(4, 1, 2.0)])
    assert (found.form, found.origin) == ("1", "assumed")
    assert found.notes == ("known at P = 4 only: no dependence on P is assumed",)


def test_one_point_does_not_tell_the_shares_of_two_terms() -> None:
    found = law([Sample(4, 1, 2.0)], hints=["1/P + 1"])
    assert found.at(8, 1).value == pytest.approx(1.5)
    assert found.at(8, 1).low < 1.0 and found.at(8, 1).high > 2.0
    assert "the shares of 1/P + 1 are not known from one point: halves assumed" in found.notes


def test_two_points_that_agree_with_the_hint_keep_it() -> None:
    found = law([Sample(4, 1, 1.0, {}, 0.02), Sample(16, 1, 0.26, {}, 0.02)], hints=["1/P"])
    assert (found.form, found.origin) == ("1/P", "fit")
    assert found.constants["p"].high > 1.0


def test_two_points_that_contradict_the_hint_give_it_a_second_term_that_is_assumed() -> None:
    found = law([Sample(4, 1, 1.0, {}, 0.01), Sample(16, 1, 0.4, {}, 0.01)], hints=["1/P"])
    assert found.form.startswith("1/P + ")
    assert (found.origin, found.error) == ("assumed", None)
    assert found.at(4, 1).value == pytest.approx(1.0, rel=0.02)
    assert found.at(16, 1).value == pytest.approx(0.4, rel=0.02)
    far = found.at(64, 1)
    assert far.low < 0.25 / 4 + 0.2 < far.high  # 1/P + 1
    assert far.low < 0.4 * 4 ** (-2 / 3) < far.high
    assert any("would tell" in note for note in found.notes)


def test_no_draw_of_a_share_makes_a_formula_negative() -> None:
    found = law([Sample(4, 1, 1.0, {}, 0.1), Sample(8, 1, 0.6, {}, 0.1)], hints=["1/P"])
    assert found.constants["b"].high > 0.7
    values = {f"x_{name}": one.value for name, one in found.constants.items()} | {"x_b": 1.2}
    assert float(parse(found.text("x_")).evaluate({**values, "P": 1, "T": 1})) > 0


# -- what does not fit


def test_points_that_no_form_fits_are_said() -> None:
    values = {2: 1.0, 4: 3.0, 8: 0.7, 16: 4.0}
    found = law([Sample(p, 1, value, {}, 0.01) for p, value in values.items()])
    assert any(note.startswith("no form fits: ") for note in found.notes)
    there = found.at(8, 1)
    assert there.low < 1.5 < there.high


def test_residuals_that_refute_the_stated_errors_stand_alone() -> None:
    samples = measured(lambda p, _: 1 / p, (2, 4, 8, 16), noise=0.1, error=0.0, seed=3)
    there = law(samples, forms=["1/P"]).at(8, 1)
    assert there.low < 1 / 8 < there.high
    assert 0.05 < there.high / there.value - 1 < 0.5


def test_contradicting_repeats_are_said() -> None:
    samples = [
        Sample(2, 1, 1.0, {}, 0.01),
        Sample(2, 1, 1.5, {}, 0.01),
        Sample(4, 1, 0.6, {}, 0.01),
    ]
    assert law(samples).notes[0] == "P = 2, T = 1: values contradict each other: 1 and 1.5"


def test_what_no_form_has_is_said_and_the_nearest_form_carries_it_in_its_interval() -> None:
    truth: Truth = lambda p, _: 1e-3 * p**1.5 * math.log2(p)  # noqa: E731
    found = law(measured(truth, (2, 4, 8, 16, 32)))
    assert found.notes[0].startswith("no form fits: ")
    there = found.at(64, 1)
    assert there.low < truth(64, 1) < there.high


def test_zeros_ask_for_a_form_that_is_0_there() -> None:
    found = law([Sample(1, 1, 0.0), Sample(2, 1, 1.0), Sample(4, 1, 2.0), Sample(8, 1, 3.0)])
    assert found.form == "log2(P)"
    assert found.at(64, 1).value == pytest.approx(6.0)


def test_zeros_where_no_form_is_0_are_left_out_and_said() -> None:
    found = law([Sample(2, 1, 1.0), Sample(4, 1, 0.0), Sample(8, 1, 1.0)])
    assert found.notes[0] == "0 at P = 4, T = 1, left out: no form is 0 there and nowhere else"


def test_zeros_beside_one_point_do_not_replace_its_hint() -> None:
    found = law([Sample(1, 1, 0.0), Sample(4, 1, 2.0)], hints=["1/P"])
    assert (found.form, found.origin) == ("1/P", "assumed")
    assert found.notes[0].startswith("0 at P = 1, T = 1, left out")


def test_a_quantity_that_is_always_0_stays_0() -> None:
    found = law([Sample(2, 1, 0.0), Sample(4, 1, 0.0)])
    assert (found.form, found.text("x_"), found.constants) == ("0", "0", {})
    assert found.at(64, 1).high == 0.0


# -- intervals


@given(
    st.sampled_from([(2, 4), (2, 4, 8), (2, 4, 8, 16), (4, 16, 64)]),
    st.sampled_from(["1/P", "1", "log2(P)", "1/P**(2/3)"]),
    st.integers(0, 1000),
)
def test_intervals_hold_the_value_and_grow_with_the_distance(
    processes: tuple[int, ...], form: str, seed: int
) -> None:
    term = parse(form)
    truth: Truth = lambda p, _: float(term.evaluate({"P": p}))  # noqa: E731
    found = law(measured(truth, processes, noise=0.02, error=None, seed=seed), hints=[form])
    widths = []
    for factor in (1, 2, 4, 16):
        there = found.at(processes[-1] * factor, 1)
        assert there.low <= there.value <= there.high
        widths.append(math.log(there.high / there.low))
    assert widths == sorted(widths)


@given(st.sampled_from([(4,), (2, 4), (2, 4, 8), (2, 4, 8, 16)]), st.integers(0, 1000))
def test_the_constants_alone_give_the_value_and_the_ends_they_allow(
    processes: tuple[int, ...], seed: int
) -> None:
    samples = measured(lambda p, _: 1 / p + 0.03, processes, noise=0.02, error=0.02, seed=seed)
    found = law(samples, hints=["1/P"])
    for at in (processes[0], 4 * processes[-1]):
        assert evaluated(found, P=at, T=1) == pytest.approx(found.at(at, 1).value)
    for one in found.constants.values():
        assert 0 <= one.low <= one.value <= one.high


def test_a_likely_form_that_all_points_agree_with_goes_before_unlikely_ones() -> None:
    """A form that goes in steps cannot foretell each of three points from the others."""
    rows = "1/P + 1/2**floor(log2(P)/2)"
    truth = measured(
        lambda p, _: 3 / p + 1 / 2 ** ((int(p).bit_length() - 1) // 2), (2, 4, 8), error=0.02
    )
    assert law(truth, hints=("1/P",)).form != rows
    found = law(truth, hints=("1/P", rows))
    assert found.form == "1/P + 1 / 2 ** floor(log2(P) / 2)"
    shared = measured(lambda p, _: 3 / p, (2, 4, 8), noise=0.01, error=0.02)
    assert law(shared, hints=("1/P", rows)).form == "1/P"
