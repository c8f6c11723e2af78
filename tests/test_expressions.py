"""Expressions: what is allowed, what is refused with which words, numbers against symbols."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from symbolic import symbolic

from popmodel.base.errors import PopmodelError
from popmodel.base.expressions import MAX_LENGTH, ExpressionError, Takes, parse


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("3*w/nb", {"w": 8, "nb": 6}, 4.0),
        ("2**-1 + -a", {"a": 1}, -0.5),
        ("7 // 2 + 7 % 4", {}, 6.0),
        ("min(a, 2, 3) + max(a, 2)", {"a": 5}, 7.0),
        ("sqrt(P)*log2(P)", {"P": 16}, 16.0),
        ("log(8, 2) + log(exp(1)) + abs(-2)", {}, 6.0),
        ("ceiling(N/3) - floor(N/3)", {"N": 10}, 1.0),
        ("a if N > 3 else b", {"a": 1, "b": 2, "N": 3}, 2.0),
        ("(P > 1)*5 + (P > 2)", {"P": 4}, 6.0),
        ("1 <= a < 3 and not a == 2", {"a": 1}, True),
        ("a > 3 or a != 2", {"a": 2}, False),
        ("is_square(P)", {"P": 16}, True),
        ("is_square(P)", {"P": 8}, False),
        ("  a +\n\tb ", {"a": 1, "b": 2}, 3.0),
        ("1e3", {}, 1000.0),
    ],
)
def test_value(text: str, values: dict[str, float], expected: float) -> None:
    expression = parse(text)
    assert expression.evaluate(values) == pytest.approx(expected)
    exact = symbolic(expression, {name: sympy.Integer(value) for name, value in values.items()})
    if isinstance(expected, bool):
        assert bool(exact) is expected
    else:
        assert float(exact) == pytest.approx(expected)


def test_names_and_calls_are_reported() -> None:
    expression = parse("sqrt(N)*max(P, T)")
    assert expression.names == {"N", "P", "T"}
    assert expression.calls == {"sqrt", "max"}


def test_arrays_are_elementwise() -> None:
    expression = parse("max(a, b)/2 if a > 1 else 0")
    result = expression.evaluate({"a": np.array([1.0, 2.0, 5.0]), "b": 4.0})
    np.testing.assert_allclose(result, [0.0, 2.0, 2.5])


def test_scalar_values_come_back_as_python_numbers() -> None:
    assert type(parse("a/2").evaluate({"a": 3})) is float
    assert type(parse("a > 2").evaluate({"a": 3})) is bool


def test_names_that_sympy_knows_stay_symbols() -> None:
    names = ("N", "S", "E", "I", "O", "Q", "beta", "gamma", "zeta", "pi", "re", "im")
    expression = parse(" + ".join(names))
    assert expression.evaluate(dict.fromkeys(names, 1.0)) == len(names)


def test_extra_functions_get_their_meaning_from_the_caller() -> None:
    expression = parse("if_fits(ws, 1, 2)", functions={"if_fits": Takes(3)})
    fits = {"if_fits": lambda ws, hit, miss: hit if ws < 10 else miss}
    assert expression.evaluate({"ws": 5}, functions=fits) == 1
    assert expression.evaluate({"ws": 50}, functions=fits) == 2
    with pytest.raises(ExpressionError, match="function 'if_fits' is not defined"):
        expression.evaluate({"ws": 5})


def test_a_function_may_take_a_word_behind_its_numbers() -> None:
    functions = {"if_fits": Takes(3, ("L1", "L2"))}
    given = {"if_fits": lambda ws, hit, miss, level="none": {"none": hit, "L2": miss}[level] + ws}
    assert parse("if_fits(a, 10, 20)", functions).evaluate({"a": 1}, given) == 11
    assert parse("if_fits(a, 10, 20, 'L2')", functions).evaluate({"a": 1}, given) == 21
    for text in ("if_fits(a, 1, 2, 'L9')", "if_fits(a, 1, 2, 3)", "if_fits(a, 1, 2, L2)"):
        with pytest.raises(ExpressionError, match="of if_fits is one of 'L1', 'L2', in quotes"):
            parse(text, functions)
    with pytest.raises(ExpressionError, match="'L1' is not a number"):
        parse("if_fits('L1', 1, 2, 'L2')", functions)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("__import__('os').system('ls')", 1, "only functions can be called, by name"),
        ("__import__('os')", 1, "unknown function '__import__'"),
        ("1 + a.b", 5, r"attributes \(a.b\) are not allowed"),
        ("a[0]", 1, "indexing"),
        ("(lambda: 1)()", 1, "only functions can be called"),
        ("2*(lambda: 1)", 4, "lambda is not allowed"),
        ("[x for x in (1,)]", 1, "comprehensions"),
        ("(x := 1)", 2, "assignment"),
        ("f'{a}'", 1, "text is not allowed"),
        ("1 + 'a'", 5, "'a' is not a number"),
        ("True", 1, "True is not a number"),
        ("1 + None", 5, "None is not a number"),
        ("2j", 1, "2j is not a number"),
        ("9**9**9", 1, "exponent is larger"),
        ("9**64**2", 1, "exponent is larger"),
        ("((9**64)**64)", 2, "a power is too large"),
        ("9**ceiling(99999999)", 1, "exponent is larger"),
        ("0**-1", 1, "a power is too large"),
        ("(-2)**0.5", 1, "a power is not a real number"),
        ("((-2)**0.5 < 1)**2", 2, "a power is not a real number"),
        ("((-2)**0.5 // 1)**2", 1, "a power is not a real number"),
        ("x**sqrt(-1)", 1, "a power is not a real number"),
        ("1 + 1e999", 5, "too large"),
        ("9" * 400, 1, "too large"),
        ("1 + sin(2)", 5, "unknown function 'sin'"),
        ("max()", 1, "max takes 1 or more arguments, not 0"),
        ("sqrt(1, 2)", 1, "sqrt takes 1 arguments, not 2"),
        ("log(1, 2, 3)", 1, "log takes 1 to 2 arguments, not 3"),
        ("log(x, base=2)", 1, "no keyword arguments"),
        ("max(*a)", 5, "unpacking"),
        ("a ^ 2", 1, "operator is not allowed"),
        ("~a", 1, "UnaryOp is not allowed"),
        ("a in b", 1, "'in' and 'is'"),
        ("1 + sqrt", 5, "'sqrt' is a function"),
        ("(1, 2)", 1, "tuples"),
        ("1 +", 4, "syntax error"),
        ("  (1 + 2", 3, "syntax error"),
        ("a; b", 2, "syntax error"),
        ("import os", 1, "syntax error"),
        ("1if a else 2", 1, r"syntax error \(invalid decimal literal\)"),
        ("1 + é", 5, "unexpected character 'é'"),
        ("1\x00", 2, "unexpected character"),
        ("-" * 1500 + "1", None, "nested"),
        ("+".join(["1"] * 300), None, "nested more than"),
        ("(" * 300 + "1" + ")" * 300, None, "nested|parse"),
    ],
)
def test_refused(text: str, column: int | None, words: str) -> None:
    with pytest.raises(ExpressionError, match=words) as caught:
        parse(text)
    assert isinstance(caught.value, PopmodelError)
    assert "\n" not in caught.value.message
    if column is not None:
        assert caught.value.column == column
        assert f"column {column}" in caught.value.message


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_empty_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="is empty"):
        parse(text)


def test_too_long_is_refused() -> None:
    with pytest.raises(ExpressionError, match=f"more than the {MAX_LENGTH} allowed"):
        parse("1" * (MAX_LENGTH + 1))


def test_hints_name_what_was_probably_meant() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("ceil(3)")
    assert caught.value.hint == "did you mean ceiling?"
    with pytest.raises(ExpressionError) as caught:
        parse("a ^ 2")
    assert caught.value.hint == "write ** for a power"
    with pytest.raises(ExpressionError, match="unknown name 'nbb'") as caught:
        parse("nbb*2").evaluate({"nb": 1.0, "w": 8.0})
    assert caught.value.hint == "did you mean nb?"


@pytest.mark.parametrize("text", ["1/a", "log(a)", "sqrt(a - 1)", "exp(1000 + a)"])
def test_no_finite_value_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError, match="has no finite value for a = 0"):
        parse(text).evaluate({"a": 0})
    with pytest.raises(ExpressionError, match="a = an array of 2"):
        parse(text).evaluate({"a": np.array([2.0, 0.0]) if text != "exp(1000 + a)" else np.ones(2)})


def test_infinite_input_is_allowed_to_give_zero() -> None:
    assert parse("8/b").evaluate({"b": float("inf")}) == 0.0


def test_a_branch_that_is_not_taken_may_be_undefined() -> None:
    values = np.array([0.0, 4.0])
    result = parse("1/a if a > 0 else 7").evaluate({"a": values})
    np.testing.assert_allclose(result, [7.0, 0.25])


names = st.sampled_from(["a", "b", "c"])
leaves = st.one_of(names, st.integers(1, 9).map(str), st.just("0.5"))
texts = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "*", "/"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
        inner.map(lambda t: f"sqrt({t})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} > {t[2]} else 1)"),
    ),
    max_leaves=6,
)
positive = st.floats(0.1, 100.0)


@given(texts, positive, positive, positive)
def test_numbers_and_symbols_agree(text: str, a: float, b: float, c: float) -> None:
    expression = parse(text)
    values = {"a": a, "b": b, "c": c}
    number = expression.evaluate(values)
    symbols = {name: sympy.Float(value, 17) for name, value in values.items()}
    # a comparison of two values that differ by rounding only may go either way: compare those
    # texts elsewhere (test_value), not here
    if " if " not in text:
        assert float(symbolic(expression, symbols)) == pytest.approx(number, rel=1e-9)
    arrays = {name: np.full(3, value) for name, value in values.items()}
    np.testing.assert_allclose(expression.evaluate(arrays), number, rtol=1e-12)


def test_importing_the_module_imports_neither_sympy_nor_numpy() -> None:
    code = (
        "import sys, popmodel.base.expressions as e; e.parse('9*2 + N'); "
        "print(sorted({'sympy', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("text", ["2 ms", "2ms", "1.5e3 B", "10 GB/s"])
def test_a_number_with_a_unit_is_told_to_stand_alone(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.hint == "write the number without its unit"


def test_names_with_dots_are_names_below_their_root_only() -> None:
    found = parse("2*m.a.b + m.c", root="m")
    assert found.names == {"m.a.b", "m.c"}
    assert found.evaluate({"m.a.b": 3.0, "m.c": 1.0}) == 7.0
    assert found.evaluate({"m.a.b": np.array([3.0, 4.0]), "m.c": 1.0}).tolist() == [7.0, 9.0]
    with pytest.raises(ExpressionError, match=r"unknown name 'm.c'"):
        found.evaluate({"m.a.b": 3.0})


@pytest.mark.parametrize(
    "text", ["n.a", "mm.a", "sqrt(m).a", "m.a()", "(m.a + 1).b", "m[0].a", "1 .real", "m.a.b.c(1)"]
)
def test_nothing_else_with_a_dot_is_a_name(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"attributes|called by name|functions can be called"):
        parse(text, root="m")


def test_an_attribute_is_never_looked_up() -> None:
    text = "m.__class__.__mro__"
    assert parse(text, root="m").evaluate({text: 2.0}) == 2.0


def test_an_expression_that_was_evaluated_can_be_sent_to_another_process() -> None:
    expression = parse("max(a, 2)*b")
    expression.evaluate({"a": 3.0, "b": 4.0})
    again = pickle.loads(pickle.dumps(expression))
    assert again == expression
    assert again.evaluate({"a": 3.0, "b": 4.0}) == 12.0


@st.composite
def formulas(draw: st.DrawFn, depth: int = 3) -> str:
    """A formula of a, b and c, with every operator and function of the grammar."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(["a", "b", "c", "2", "0.5", "3"]))
    inner = formulas(depth=depth - 1)
    form = draw(
        st.sampled_from(
            [
                *(f"({{}}){op}({{}})" for op in ("+", "-", "*", "/", "//", "%", "**")),
                *(f"(({{}}) {op} ({{}}))" for op in ("<", "<=", "==", "!=", "and", "or")),
                *("min({}, {})", "max({}, {}, 1)", "(-({}))", "(not {})", "sqrt({})", "log2({})"),
                *("log({})", "exp({})", "abs({})", "floor({})", "ceiling({})", "is_square({})"),
                "({} if {} > 1 else {})",
            ]
        )
    )
    return form.format(*(draw(inner) for _ in range(form.count("{}"))))


@given(
    formulas(),
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 1.0, 2.0, 3.0, 7.5, -1.5])] * 3), min_size=1),
)
def test_numbers_one_by_one_are_the_elements_of_arrays(
    text: str, rows: list[tuple[float, float, float]]
) -> None:
    try:
        expression = parse(text)
    except ExpressionError:  # a constant power that is not a real number
        return

    def value(values: dict[str, object]) -> object:
        try:
            return expression.evaluate(values)
        except ExpressionError as error:
            assert error.problem.startswith("has no finite value")
            return None

    for row in rows:
        given = dict(zip("abc", row, strict=True))
        number = value(given)
        element = value({name: np.array([each]) for name, each in given.items()})
        if number is None or element is None:
            assert number is element
        else:
            assert np.allclose(np.asarray(number, float), np.asarray(element, float), rtol=1e-13)
