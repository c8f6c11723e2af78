"""Terms of forms: read, computed, and written relative to a reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.expressions import ExpressionError, parse
from popmodel.fit.candidates import (
    PARAMETERS,
    PROCESSES,
    THREADS,
    form_text,
    product_of,
    read_form,
)

HOME = {"P": 8.0, "T": 2.0, "N": 64.0, "n0": 4.0, "n1": 6.0}


@pytest.mark.parametrize(
    ("text", "form", "relative"),
    [
        ("1/P", "1/P", ["(8/P)"]),
        ("P**(-2/3) + 1", "1/P**(2/3) + 1", ["(8/P)**(2/3)", "1"]),
        ("N**3/(P*T)", "N**3/(P*T)", ["(N/64)**3*(8/P)*(2/T)"]),
        ("sqrt(P)", "sqrt(P)", ["sqrt(P/8)"]),
        ("log2(P)", "log2(P)", ["log2(P)/3"]),
        ("N*log2(N)/P", "N*log2(N)/P", ["N*log2(N)/P/48"]),
        ("n0*n1", "n0*n1", ["(n0/4)*(n1/6)"]),
        ("(n0 + 2)*n1", "(n0 + 2) * n1", ["((n0 + 2) * n1)/36"]),
    ],
)
def test_forms_are_read_and_written_relative_to_a_reference(
    text: str, form: str, relative: list[str]
) -> None:
    terms = read_form(text)
    assert form_text(terms) == form
    assert [term.relative_to(HOME) for term in terms] == relative
    for term in terms:
        at_home = float(parse(term.relative_to(HOME)).evaluate(HOME))
        assert at_home == pytest.approx(1.0)


@given(
    st.tuples(*(st.sampled_from(list(one)) for one in (PROCESSES, THREADS, PARAMETERS))),
    st.tuples(*[st.integers(2, 4096)] * 3),
)
def test_every_product_says_in_its_text_what_it_computes(
    factors: tuple[tuple[object, int], ...], at: tuple[int, ...]
) -> None:
    configuration = dict(zip("PTN", map(float, at), strict=True))
    term = product_of(dict(zip("PTN", factors, strict=True)))  # type: ignore[arg-type]
    expected = float(parse(term.text).evaluate(configuration))
    assert float(term.at(configuration)) == pytest.approx(expected)
    relative = float(parse(term.relative_to(HOME)).evaluate(configuration))
    assert relative == pytest.approx(expected / float(term.at(HOME)))
    assert read_form(term.text) == (term,)


def test_terms_are_computed_for_arrays() -> None:
    (term,) = read_form("1/(P*T)")
    columns = {"P": np.array([1.0, 2.0]), "T": np.array([1.0, 4.0])}
    assert term.at(columns).tolist() == [1.0, 0.125]


def test_forms_have_two_terms_at_most_and_follow_the_grammar_of_signatures() -> None:
    with pytest.raises(ValueError, match="1 \\+ P \\+ T: a form has at most two terms"):
        read_form("1 + P + T")
    with pytest.raises(ExpressionError, match="attributes"):
        read_form("P.real")
