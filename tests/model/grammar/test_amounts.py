"""Formulas whose value makes no sense at the point asked for: item, formula, value, advice."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from model.demo import machine, program

from popmodel.errors import UsageError
from popmodel.expressions import parse
from popmodel.machine.profile import from_document
from popmodel.model.grammar.keys import POSITIVE, SHARE
from popmodel.model.run.context import checked_value, formula_value
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.placement import place
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


ADVICE = "choose another split or other parameters, or correct the formula"


@pytest.mark.parametrize(
    ("item", "words", "hint"),
    [
        (
            "parallel = { name = 'sweep', trip = 'n0 - 600' }",
            "demo: trip of 'sweep' is 'n0 - 600' = -568 at P=16 T=4; must be above 0",
            f"n0 = 32: {ADVICE}",
        ),
        (
            "parallel = { trip = 5, inner = 'P - 16' }",
            "demo: inner of 'parallel' is 'P - 16' = 0 at P=16 T=4; must be above 0",
            ADVICE,
        ),
        (
            "parallel = { trip = 5, chunk = 'k/2' }",
            "demo: chunk of 'parallel' is 'k/2' = 0.5 at P=16 T=4; must be at least 1",
            f"k = 1: {ADVICE}",
        ),
        (
            "parallel = { trip = 5, constructs = { barrier = '-k' } }",
            "demo: constructs.barrier of 'parallel' is '-k' = -1 at P=16 T=4; must be at least 0",
            f"k = 1: {ADVICE}",
        ),
        (
            "parallel = { trip = 5, critical = { entries = 1, seconds = '-k' } }",
            "demo: critical.seconds of 'parallel' is '-k' = -1 at P=16 T=4; must be at least 0",
            f"k = 1: {ADVICE}",
        ),
        (
            "parallel = { trip = 5, shared_writes = { count = 1, bytes = 8, chunk = 'k/8' } }",
            "demo: shared_writes.chunk of 'parallel' is 'k/8' = 0.125 at P=16 T=4; must be at "
            "least 1",
            f"k = 1: {ADVICE}",
        ),
        (
            "serial = { trip = 5, bytes.MEM = 'if_fits(k, -k, 1)' }",
            "demo: bytes.MEM of 'serial' is 'if_fits(k, -k, 1)' = -1 at P=16 T=4; must be at "
            "least 0",
            f"k = 1: {ADVICE}",
        ),
        (
            "loop = { count = 'k - 2', body = [{ serial = { trip = 1 } }] }",
            "demo: count of 'loop' is 'k - 2' = -1 at P=16 T=4; must be at least 0",
            f"k = 1: {ADVICE}",
        ),
        (
            "loop = { count = 1, body = [{ serial = { trip = 1, every = 'k - 1' } }] }",
            "demo: every of 'serial' is 'k - 1' = 0 at P=16 T=4; must be above 0",
            f"k = 1: {ADVICE}",
        ),
        (
            "pipeline = { dims = [0], blocks = 'k/2', seconds = 1, bytes = 1 }",
            "demo: blocks of 'pipeline' is 'k/2' = 0.5 at P=16 T=4; must be at least 1",
            f"k = 1: {ADVICE}",
        ),
        (
            "halo = { width = 1, bytes_per_cell = 8, overlap = '1 + k' }",
            "demo: overlap of 'halo' is '1 + k' = 2 at P=16 T=4; must be between 0 and 1",
            f"k = 1: {ADVICE}",
        ),
        (
            "halo = { width = 1, bytes_per_cell = 8, comm_threads = '2*T' }",
            "demo: comm_threads of 'halo' is '2*T' = 8 at P=16 T=4, more than the threads of a "
            "process",
            "at most T threads of a process can send: write min(T, ...), or ask for more",
        ),
        (
            "shift = { dim = 0, by = 1, bytes = 8, comm_threads = 'T/3' }",
            "demo: comm_threads of 'shift' is 'T/3', which must give a whole number at P=16 T=4, "
            "not 1.33333",
            None,
        ),
        (
            "collective = { op = 'bcast', bytes = 8, root = 'P' }",
            "demo: root of 'collective' is 'P' = 16 at P=16 T=4: the smallest communicator has the "
            "ranks 0 to 15",
            "a root is a rank in the communicator, not in the whole program",
        ),
        (
            "collective = { op = 'bcast', bytes = 8, root = '4', comm = 'dim2' }",
            "demo: root of 'collective' is '4' = 4 at P=16 T=4: the smallest communicator has the "
            "ranks 0 to 3",
            "a root is a rank in the communicator, not in the whole program",
        ),
        (
            "serial = { trip = '1/(P - 16)' }",
            "demo: trip of 'serial' is '1/(P - 16)', which has no finite value for P = 16 "
            "(P=16 T=4)",
            "check for a division by zero, a root or logarithm of a negative number, or a "
            "power that is too large",
        ),
        (
            "serial = { trip = '1e300 * N**10' }",
            "demo: trip of 'serial' is '1e300 * N**10', which has no finite value for N = 64 "
            "(P=16 T=4)",
            "check for a division by zero, a root or logarithm of a negative number, or a "
            "power that is too large",
        ),
        (
            "parallel = { trip = 1e200, inner = 1e200, flops = 1 }",
            "demo: the time of 'parallel' at P=16 T=4 is too large to represent",
            "use smaller parameters, or check its counts and sizes",
        ),
        (
            "p2p = { to = 'rank/(P - 16)', bytes = 1 }",
            "demo: to of 'p2p' is 'rank/(P - 16)', which has no finite value for P = 16, rank = an "
            "array of 16 (P=16 T=4)",
            "check for a division by zero, a root or logarithm of a negative number, or a "
            "power that is too large",
        ),
    ],
)
def test_the_item_the_formula_and_the_value_are_named(
    item: str, words: str, hint: str | None
) -> None:
    with pytest.raises(UsageError) as caught:
        demo(item).work()
    assert caught.value.message == words
    assert caught.value.hint == hint
    assert caught.value.exit_status == 2


def test_nothing_to_do_is_no_mistake() -> None:
    body = "[{ serial = { trip = 'P - 16' } }]"
    work = demo(f"loop = {{ count = 'P - 16', body = {body} }}").work().total
    assert (work.serial, work.transfer) == (0.0, 0.0)


def test_names_without_a_value_are_named_too() -> None:
    profile = machine()
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    for sections, words in (
        ("[let]\na = '1/(P - 2)'\n", "demo: 'a' of let is '1/.P - 2.', which has no finite value"),
        ("[decomp]\nglobal = ['P - 2']\n", "demo: an extent of global is 'P - 2' = 0 at P=2 T=1;"),
        ("[decomp]\ngrid = ['1/(P-2)']\n", "demo: an extent of grid is '1/.P-2.', which has no"),
    ):
        signature = program(sections + "[[program]]\nserial = { trip = 1 }")
        with pytest.raises(UsageError, match=words):
            prepare(signature, place(2, 1, profile.topology), parameters, {})


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


def test_the_best_estimate_is_in_the_domain() -> None:
    with pytest.raises(UsageError, match="trip of 'parallel' is 'N - 40' = -10 at P=16 T=4; must"):
        demo("parallel = { trip = 'N - 40' }", N=np.array([30.0, 64.0])).work()


def test_ranks_are_no_draws() -> None:
    calls = "messages = { calls = [{ do = 'send', to = 'rank + 1', bytes = 'b*(9 - rank)' }] }"
    with pytest.raises(UsageError, match="= -8 at P=16 T=4, on some ranks; must be at least"):
        demo(calls).work()


def test_a_long_formula_is_cut() -> None:
    formula = parse(" + ".join(["x"] * 40))
    values = {"P": 1.0, "T": 1.0, "x": -1.0}
    assert formula_value(formula, values, "a: b") == -40
    with pytest.raises(UsageError) as caught:
        checked_value(-40.0, POSITIVE, formula, values, "a: b")
    assert f"is '{formula.text[:57]}...' = -40 at P=1 T=1" in caught.value.message
