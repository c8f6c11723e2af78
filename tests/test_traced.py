"""Numbers that remember how they were computed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.expressions import parse
from popmodel.base.expressions.elementary import (
    TracedExpression,
    ceiling,
    choose,
    exact,
    floor,
    log,
    maximum,
    minimum,
    named,
    sqrt,
)


def symbol(name: str, value: float) -> TracedExpression:
    return TracedExpression(value, sympy.Symbol(name, positive=True))


A, B = symbol("a", 3.7), symbol("b", 2.0)


@pytest.mark.parametrize(
    ("traced", "value", "formula"),
    [
        (A + 1, 4.7, "a + 1"),
        (1 - A, -2.7, "1 - a"),
        (3 * A * np.float64(2), 22.2, "6*a"),
        (np.float64(2) / B, 1.0, "2/b"),
        (A / 5, 0.74, "a/5"),
        (A * 0.035, 3.7 * 0.035, "0.035*a"),
        (B**-2, 0.25, "b**(-2)"),
        (2**B, 4.0, "2**b"),
        (A // B, 1.0, "floor(a/b)"),
        (A % B, 1.7, "a - b*floor(a/b)"),
        (7 // B, 3.0, "floor(7/b)"),
        (7 % A, 3.3, "-a*floor(7/a) + 7"),
        (abs(-A), 3.7, "a"),
        (+A, 3.7, "a"),
        (ceiling(A), 4.0, "ceiling(a)"),
        (floor(A), 3.0, "floor(a)"),
        (sqrt(A), math.sqrt(3.7), "sqrt(a)"),
        (log(A), math.log(3.7), "log(a)"),
        (np.exp(B), math.exp(2), "exp(b)"),
        (math.prod([A, B]), 7.4, "a*b"),
        (sum([A, B]), 5.7, "a + b"),
        (named("f", lambda x, y: x + y, B, 1), 3.0, "f(b, 1)"),
    ],
)
def test_every_operation_is_done_twice(
    traced: TracedExpression, value: float, formula: str
) -> None:
    assert float(traced) == pytest.approx(value)
    assert str(traced.formula) == formula


def test_a_named_function_of_plain_numbers_is_a_plain_number() -> None:
    assert named("f", lambda x, y: x + y, 2.0, 1) == 3.0


def test_choices_are_made_by_the_value() -> None:
    assert maximum(A, 1.0, B) is A
    assert minimum(A, B) is B
    assert maximum(1.0, B) is B
    assert choose(A > 1, A, B) is A
    assert choose(A <= B, A, B) is B
    assert B == 2
    assert A != B
    assert A >= B
    assert A > 3.6
    assert not A < B
    assert hash(B) == hash(2.0)
    assert np.any(A)
    assert not symbol("z", 0.0)
    assert int(A) == 3
    assert np.asarray(A, dtype=np.float64) == 3.7
    assert repr(B) == "Traced(2.0, b)"


def test_a_branch_that_is_not_taken_may_divide_by_zero() -> None:
    nothing = symbol("z", 0.0)
    for wrong in (A / nothing, nothing**-1.0, log(symbol("m", -1.0))):
        assert not math.isfinite(float(wrong))
    assert not math.isfinite(float(ceiling(A / nothing)))
    assert choose(nothing > 0, A / nothing, B) is B


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(TypeError):
        A + "1"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("number", "text"), [(3.0, "3"), (0.2, "1/5"), (-1.5, "-3/2"), (0.1, "1/10"), (0.035, "0.035")]
)
def test_constants_are_shown_as_people_write_them(number: float, text: str) -> None:
    assert str(exact(number)).rstrip("0") == text.rstrip("0")
    assert float(exact(number)) == number
    assert float(exact(math.inf)) == math.inf


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("a/sqrt(b)", "a/sqrt(b)"),
        ("max(a, b, 1) + min(a, c)", "a + c"),
        ("log2(a)", "log(a)/log(2)"),
        ("log(a, b)", "log(a)/log(b)"),
        ("ceiling(a/2) + floor(a)", "ceiling(a/2) + floor(a)"),
        ("exp(a) + abs(-b)", "b + exp(a)"),
        ("a if b > 1 else c", "a"),
        ("(b > 1)*a", "a"),
        ("-a**2 + c", "c - a**2"),
    ],
)
def test_expressions_of_signatures_are_traced(text: str, formula: str) -> None:
    values = {"a": A, "b": B, "c": symbol("c", 1.0)}
    traced = parse(text).evaluate(values)
    assert sympy.simplify(traced.formula - sympy.sympify(formula, locals=_positive())) == 0
    numbers = {name: float(value) for name, value in values.items()}
    assert float(traced) == pytest.approx(parse(text).evaluate(numbers))


def _positive() -> dict[str, sympy.Symbol]:
    return {name: sympy.Symbol(name, positive=True) for name in "abc"}


def test_conditions_and_arrays_stay_what_they_are() -> None:
    assert parse("is_square(b*2)").evaluate({"b": B}) is True
    assert parse("a > b and b < 1").evaluate({"a": A, "b": B}) is False
    ranks = parse("(rank + 1) % b").evaluate({"rank": np.arange(4.0), "b": B})
    np.testing.assert_array_equal(ranks, [1, 0, 1, 0])
    assert parse("log2(8) + 1").evaluate({"a": A}) == 4.0


@given(st.floats(0.1, 100), st.floats(0.1, 100), st.floats(0.5, 3))
def test_the_formula_gives_the_value(a: float, b: float, c: float) -> None:
    x, y, z = symbol("x", a), symbol("y", b), symbol("z", c)
    traced = maximum(x * y, x + y) / z + sqrt(x) ** z - ceiling(y) * 0.3 + 1 / (x + y) ** 2
    numbers = {"x": a, "y": b, "z": c}
    again = float(
        traced.formula.subs({sympy.Symbol(n, positive=True): v for n, v in numbers.items()})
    )
    assert again == pytest.approx(float(traced), rel=1e-9, abs=1e-12)
