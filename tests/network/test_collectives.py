"""Closed forms of collectives: `tests/simulator/test_patterns.py` holds them against messages."""

from __future__ import annotations

import pytest
import sympy

from popmodel.base.expressions.elementary import TracedExpression
from popmodel.network.collectives import OPERATIONS, Cost, Message, over_nodes

ALGORITHMS: dict[str, dict[str, Cost]] = {
    name: {how: algorithm.cost for how, algorithm in one.algorithms.items()}
    for name, one in OPERATIONS.items()
}

PROCESSES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64)
ALPHA, BETA, GAMMA = 2e-6, 1e-9, 3e-10


def test_a_chain_takes_about_as_many_segments_as_are_best() -> None:
    size = 10**6
    for processes in PROCESSES[1:]:
        formula = ALGORITHMS["bcast"]["chain"](processes, Message(size, ALPHA, BETA, GAMMA))
        least = min((processes - 2 + n) * (ALPHA + BETA * size / n) for n in range(1, 300))
        # but for rounding to a whole number of them
        assert least * (1 - 1e-12) <= formula <= least * 1.01


def test_one_process_has_nothing_to_do() -> None:
    for algorithms in ALGORITHMS.values():
        for cost in algorithms.values():
            assert cost(1, Message(1e6, ALPHA, BETA, GAMMA)) == 0


def test_large_powers_of_two_are_exact() -> None:
    barrier = ALGORITHMS["barrier"]["dissemination"]
    for k in range(1, 50):
        assert barrier(2**k, Message(0.0, 1.0, 0.0, 0.0)) == k
        assert barrier(2**k + 1, Message(0.0, 1.0, 0.0, 0.0)) == k + 1


@pytest.mark.parametrize("processes", [1, 2, 6, 8])
def test_traced_numbers_give_the_same_time_and_its_formula(processes: int) -> None:
    values = {"m": 100.0, "a": ALPHA, "b": BETA, "g": GAMMA}
    message = Message(
        *(TracedExpression(value, sympy.Symbol(name)) for name, value in values.items())
    )
    for algorithms in ALGORITHMS.values():
        for cost in algorithms.values():
            found = cost(processes, message)
            expected = cost(processes, Message(*values.values()))
            assert float(found) == pytest.approx(expected, rel=1e-12)
            assert float(found.formula.subs(values)) == pytest.approx(expected)


@pytest.mark.parametrize("processes", PROCESSES)
def test_over_equal_tiers_nodes_do_not_matter(processes: int) -> None:
    by_distance = [
        (name, how)
        for name, one in OPERATIONS.items()
        for how, algorithm in one.algorithms.items()
        if algorithm.by_distance
    ]
    assert len(by_distance) == 7
    for operation, algorithm in by_distance:
        size = 0.0 if operation == "barrier" else 100.0
        flat = ALGORITHMS[operation][algorithm](processes, Message(size, ALPHA, BETA, GAMMA))
        time = ALPHA + BETA * size
        split = over_nodes(operation, algorithm, processes, 4, time, time, GAMMA * size)
        assert split == pytest.approx(flat, rel=1e-12)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_only_operations_that_reduce_take_time_for_it(operation: str) -> None:
    for algorithm in OPERATIONS[operation].algorithms.values():
        costs = [algorithm.cost(8, Message(100.0, ALPHA, BETA, gamma)) for gamma in (0.0, GAMMA)]
        assert (costs[1] > costs[0]) == OPERATIONS[operation].reducing
