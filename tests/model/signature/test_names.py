"""Names of formulas: in which order they are computed, and what they are worth."""

import math

from hypothesis import given
from hypothesis import strategies as st
from model.demo import machine, program

from popmodel.model.signature.application import closure, derived, names
from popmodel.prediction.prediction import predict

BODY = "[[program]]\nserial = { trip = 5 }\n"
BLOCK = {
    "params": "N = 96\nw = 8",
    "let": "ws = 'w*(n0 + halo)*(n1 + halo)'\nhalo = 'h - 1'\nh = '3'\nrows = 'N/2'",
    "decomp": "global = ['N', 'rows']\ngrid = ['P/2', 2]",
}


def test_let_may_use_the_grid_which_may_use_let() -> None:
    block = program(BODY, **BLOCK)
    values, extent = names(block, 8, 2, {"N": 96.0, "w": 8.0})
    assert extent == (4, 2)
    assert (values["rows"], values["n0"], values["n1"]) == (48.0, 24.0, 24.0)
    assert values["ws"] == 8 * 26 * 26
    assert block.of_grid == {"ws"}
    assert closure(block, [dict(block.let)["ws"]]) >= {"n0", "P", "rows", "N", "halo", "h"}


def test_without_the_grid_what_needs_it_has_no_value() -> None:
    block = program(BODY, **BLOCK)
    given = {"P": 8.0, "T": 2.0, "N": 96.0, "w": 8.0}
    values = derived(block, given, lambda one, values, _: one.evaluate(values), extents=None)
    assert values.keys() - given.keys() == {"rows", "halo", "h"}


@given(st.permutations(["a = 'N + 1'", "b = '2*a'", "c = 'a*b - n0'", "d = 'c/b'"]))
def test_the_order_of_the_lines_does_not_matter(lines: list[str]) -> None:
    text = "\n".join(lines)
    one = program(BODY, params="N = 16", let=text, decomp="global = ['b']")
    values, _ = names(one, 2, 1, {"N": 16.0})
    assert [values[name] for name in "abcd"] == [17, 34, 561, 16.5]
    order = [name for name, _ in one.let]
    assert all(order.index(x) < order.index(y) for x, y in ("ab", "ac", "bc", "cd", "bd"))


def test_a_name_says_what_its_formula_would() -> None:
    loop = "[[program]]\nparallel = {{ trip = 'n0', inner = 'n1', flops = 2, bytes.MEM = '{}' }}\n"
    by_name = program(loop.format("if_fits(ws, w, 3*w)"), **BLOCK)
    in_full = program(loop.format("if_fits(w*(n0 + 2)*(n1 + 2), w, 3*w)"), **BLOCK)
    found = [predict(one, machine(), 8, 2, draws=0).runtime.value for one in (by_name, in_full)]
    assert found[0] == found[1] > 0
    assert math.isfinite(found[0])
