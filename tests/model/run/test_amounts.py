"""Formulas whose value makes no sense at the point asked for: item, formula, value, advice."""

import copy

import numpy as np
import pytest
from model.demo import machine, program

from popmodel.base.errors import UsageError
from popmodel.base.expressions import parse
from popmodel.machines.profile import from_document
from popmodel.model.run.context import checked_value, formula_value
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import place
from popmodel.model.signature.keys import POSITIVE, SHARE
from popmodel.model.tree import Model, prepare

DEMO = """[params]
N = 64
k = 1
b = { value = 8, unit = "B" }
[decomp]
global = ["N", "N", "N"]
[[program]]
"""


def demo(item: str, processes: int = 16, threads: int = 4, **params: object) -> Model:
    profile = machine()
    document = copy.deepcopy(dict(profile.document))
    document["openmp"]["critical"] = document["openmp"]["barrier"]
    profile = from_document(document)
    signature = program(DEMO + item)
    parameters = Parameters(profile, lambda path: profile.get(path).value, are_drawn=True)
    values = {"N": 64.0, "k": 1.0, "b": 8.0, **params}
    return prepare(signature, place(processes, threads, profile.topology), parameters, values)


def test_nothing_to_do_is_no_mistake() -> None:
    body = "[{ serial = { trip = 'P - 16' } }]"
    work = demo(f"loop = {{ count = 'P - 16', body = {body} }}").work().total
    assert (work.serial, work.transfer) == (0.0, 0.0)


def test_memory_is_checked() -> None:
    profile = machine()
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    placement = place(2, 1, profile.topology)
    text = "[limits]\nmemory_per_rank = '{}'\n[[program]]\nserial = {{ trip = 1 }}"

    def memory(formula: str) -> object:
        return prepare(program(text.format(formula)), placement, parameters, {}).memory_per_rank()

    assert memory("8*P") == 16
    with pytest.raises(UsageError, match=r"memory_per_rank is '8\*\(1 - P\)' = -8 at P=2"):
        memory("8*(1 - P)")
    plain = program("[[program]]\nserial = { trip = 1 }")
    assert prepare(plain, placement, parameters, {}).memory_per_rank() is None


def test_draws_end_where_the_domain_does_and_a_remark_says_so() -> None:
    ends = demo("parallel = { trip = 'N - 40' }", N=np.array([64.0, 30.0, 80.0, 52.0]))
    inside = demo("parallel = { trip = 'N - 40' }", N=np.array([64.0, 40.024, 80.0, 52.0]))
    np.testing.assert_allclose(ends.work().total.parallel, inside.work().total.parallel)
    assert ends.point.parameters.remarks == {
        "trip of 'parallel' is above 0: its formula is not in 25 % of the draws, which end there"
    }
    assert not inside.point.parameters.remarks
    share = np.array([0.5, -0.25, 1.5, 1.0])
    kept = checked_value(
        share, SHARE, parse("s"), {"P": 1.0, "T": 1.0, "s": share}, "", lambda *_: None
    )
    assert np.array_equal(kept, [0.5, 0.0, 1.0, 1.0])


def test_a_long_formula_is_cut() -> None:
    formula = parse(" + ".join(["x"] * 40))
    values = {"P": 1.0, "T": 1.0, "x": -1.0}
    assert formula_value(formula, values, "a: b") == -40
    with pytest.raises(UsageError) as caught:
        checked_value(-40.0, POSITIVE, formula, values, "a: b")
    assert f"is '{formula.text[:57]}...' = -40 at P=1 T=1" in caught.value.message
