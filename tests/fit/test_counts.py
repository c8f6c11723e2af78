"""Formulas that give counts exactly."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.expressions import parse
from popmodel.fit.counts import exact_law
from popmodel.fit.samples import Sample


def counts(count: Callable[[int], float], processes: tuple[int, ...]) -> list[Sample]:
    return [Sample(p, 1, count(p)) for p in processes]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (lambda _: 25, "25"),
        (lambda p: p, "P"),
        (lambda p: p - 1, "P - 1"),
        (lambda p: 2 * (p - 1), "2*(P - 1)"),
        (lambda p: math.log2(p), "ceiling(log2(P))"),
        (lambda p: 3 * math.log2(p), "3*ceiling(log2(P))"),
        (lambda p: p / 2, "P/2"),
        (lambda p: p * (p - 1), "P*(P - 1)"),
        (lambda p: 2 * p + 3, "2*P + 3"),
        (lambda p: 100 - p, "100 - P"),
        (lambda p: 2 * math.log2(p) + 1, "2*ceiling(log2(P)) + 1"),
    ],
)
def test_counts_are_found(count: Callable[[int], float], text: str) -> None:
    found = exact_law(counts(count, (2, 4, 8, 16)))
    assert found is not None
    assert (found.text, found.origin) == (text, "fit")
    for processes in (2, 4, 8, 16, 1024):
        value = parse(found.text).evaluate({"P": processes})
        assert value == pytest.approx(count(processes))


@given(
    st.integers(1, 50), st.integers(-20, 20), st.lists(st.integers(2, 500), min_size=3, unique=True)
)
def test_every_line_through_three_points_is_exact(
    slope: int, start: int, processes: list[int]
) -> None:
    values = {p: slope * p + start for p in processes if slope * p + start >= 0}
    if len(values) < 3:
        return
    found = exact_law([Sample(p, 1, value) for p, value in values.items()])
    assert found is not None
    for p, value in values.items():
        assert parse(found.text).evaluate({"P": p}) == pytest.approx(value)


def test_dimensions_of_a_grid_and_parameters_take_part() -> None:
    samples = [
        Sample(a * b, 1, 3 * (a - 1), {"P0": float(a), "P1": float(b), "N": n})
        for a, b, n in [(2, 3, 64.0), (4, 4, 64.0), (3, 5, 128.0), (8, 2, 256.0)]
    ]
    found = exact_law(samples)
    assert found is not None and found.text == "3*(P0 - 1)"
    steps = exact_law([Sample(2, 1, 10 * n, {"N": n}) for n in (4.0, 8.0, 16.0)])
    assert steps is not None and steps.text == "10*N"
    assert steps.notes == ("known at P = 2 only",)
    assert steps.origin == "fit"


def test_formulas_with_the_same_counts_are_told_with_what_would_tell() -> None:
    found = exact_law(counts(lambda p: p, (2,)) + counts(lambda p: p, (4,)))
    assert found is not None and found.text == "P"
    assert "2*ceiling(log2(P))" in found.others
    assert any(note.endswith("would tell") for note in found.notes)


def test_a_multiple_of_a_likely_formula_comes_first_and_alone() -> None:
    samples = [
        Sample(a * b, 1, 4096 / b, {"P0": float(a), "P1": float(b)})
        for a, b in ((2, 2), (2, 4), (4, 4))
    ]
    found = exact_law(samples, likely=["1/P1", "1/P"])
    assert found is not None and found.is_likely
    assert (found.text, found.origin, found.others, found.notes) == ("4096/P1", "fit", (), ())


def test_two_points_alike_in_what_a_formula_names_count_once() -> None:
    samples = [
        Sample(a * b, 1, v, {"P0": float(a), "P1": float(b)})
        for a, b, v in ((2, 2, 1324), (2, 3, 883), (3, 3, 883))
    ]
    found = exact_law(samples, likely=["1/P1"])
    assert found is not None and not found.is_likely
    assert (found.checks, found.origin) == (0, "assumed")


def test_rounded_multiples_are_found_as_the_roundest_number() -> None:
    samples = [Sample(p, 1, round(2648 / p)) for p in (2, 3)]
    found = exact_law(samples, likely=["1/P"], rounded=True)
    assert found is not None
    assert (found.text, found.origin) == ("2648/P", "fit")


def test_a_single_count_is_assumed_to_stay() -> None:
    found = exact_law(counts(lambda _: 7, (4,)))
    assert found is not None
    assert (found.text, found.origin, found.notes) == ("7", "assumed", ("known at P = 4 only",))


def test_counts_that_follow_no_formula_have_none() -> None:
    assert exact_law([Sample(p, 1, v) for p, v in ((2, 3), (4, 11), (8, 13), (16, 40))]) is None
