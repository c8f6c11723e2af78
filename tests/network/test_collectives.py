"""Collectives: every closed form against a message-by-message replay of its algorithm."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy
from oracle import collectives as oracle

from popmodel.expressions.traced import TracedExpression
from popmodel.network.collectives import OPERATIONS, ROOTED, Cost, Message, over_nodes

ALGORITHMS: dict[str, dict[str, Cost]] = {
    name: {how: algorithm.cost for how, algorithm in one.algorithms.items()}
    for name, one in OPERATIONS.items()
}

PROCESSES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64)
ALPHA, BETA, GAMMA = 2e-6, 1e-9, 3e-10


# operation, algorithm -> its messages; True where they take the formula's time for every P, else
# for powers of two
SCHEDULES: dict[tuple[str, str], tuple[Callable[[int, float], oracle.Schedule], bool]] = {
    ("barrier", "dissemination"): (oracle.dissemination, True),
    ("barrier", "recursive_doubling"): (oracle.doubling_barrier, True),
    ("barrier", "linear"): (oracle.linear_barrier, True),
    ("bcast", "binomial"): (oracle.binomial_bcast, True),
    ("bcast", "linear"): (oracle.linear_scatter, True),
    ("bcast", "scatter_allgather"): (oracle.scatter_allgather_bcast, False),
    ("reduce", "binomial"): (oracle.binomial_reduce, True),
    ("reduce", "rabenseifner"): (oracle.rabenseifner_reduce, False),
    ("reduce", "linear"): (oracle.linear_reduce, True),
    ("allreduce", "reduce_bcast"): (oracle.reduce_bcast, True),
    ("allreduce", "recursive_doubling"): (oracle.doubling_allreduce, True),
    ("allreduce", "rabenseifner"): (oracle.rabenseifner_allreduce, True),
    ("allreduce", "ring"): (oracle.ring_allreduce, True),
    ("reduce_scatter", "recursive_halving"): (oracle.halving_reduce_scatter, False),
    ("reduce_scatter", "pairwise"): (oracle.pairwise_reduce_scatter, True),
    ("allgather", "ring"): (oracle.ring_allgather, True),
    ("allgather", "bruck"): (oracle.bruck_allgather, True),
    ("allgather", "recursive_doubling"): (oracle.doubling_allgather, True),
    ("gather", "binomial"): (oracle.binomial_gather, True),
    ("gather", "linear"): (oracle.linear_gather, True),
    ("scatter", "binomial"): (oracle.binomial_scatter, True),
    ("scatter", "linear"): (oracle.linear_scatter, True),
    ("alltoall", "pairwise"): (oracle.pairwise_alltoall, True),
    ("alltoall", "bruck"): (oracle.bruck_alltoall, False),
    ("scan", "recursive_doubling"): (oracle.doubling_scan, True),
    ("scan", "linear"): (oracle.linear_scan, True),
}


def divisible(processes: int, size: int) -> int:
    """A size near the one given whose parts are whole bytes."""
    return size * processes * 2 ** (processes.bit_length() - 1)


@pytest.mark.long(after=20)
@pytest.mark.parametrize("size", [1, 125, 15625])
@pytest.mark.parametrize(("operation", "algorithm"), SCHEDULES)
def test_closed_forms_equal_the_messages(operation: str, algorithm: str, size: int) -> None:
    schedule, for_every_count = SCHEDULES[operation, algorithm]
    cost = ALGORITHMS[operation][algorithm]
    for processes in PROCESSES:
        if not for_every_count and processes & (processes - 1):
            continue
        whole = 0 if operation == "barrier" else divisible(processes, size)
        expected = oracle.run(schedule(processes, whole), ALPHA, BETA, GAMMA)
        assert cost(processes, Message(whole, ALPHA, BETA, GAMMA)) == pytest.approx(
            expected, rel=1e-12
        )


def test_every_algorithm_has_a_schedule_or_a_test_of_its_own() -> None:
    named = {(o, a) for o, algorithms in ALGORITHMS.items() for a in algorithms}
    assert named == set(SCHEDULES) | {("bcast", "chain")}


@pytest.mark.long(after=8)
@pytest.mark.parametrize("processes", [p for p in PROCESSES if p > 1])
def test_a_chain_takes_what_its_segments_take(processes: int) -> None:
    size = 10**6
    formula = ALGORITHMS["bcast"]["chain"](processes, Message(size, ALPHA, BETA, GAMMA))
    segments = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64, 80, 100, 125, 160, 200)
    times = {
        n: oracle.run(oracle.chain_bcast(n)(processes, size), ALPHA, BETA, 0) for n in segments
    }
    for n, time in times.items():
        assert time == pytest.approx((processes - 2 + n) * (ALPHA + BETA * size / n), rel=1e-12)
    # its number of segments is at least as good as any of these, but for rounding to a whole one
    assert formula <= min(times.values()) * 1.01


@pytest.mark.parametrize("processes", [p for p in PROCESSES if p & (p - 1)])
def test_bounds_where_the_count_is_no_power_of_two(processes: int) -> None:
    size = divisible(processes, 125)
    for (operation, algorithm), (schedule, for_every_count) in SCHEDULES.items():
        if not for_every_count and algorithm != "recursive_halving":
            replayed = oracle.run(schedule(processes, size), ALPHA, BETA, GAMMA)
            formula = ALGORITHMS[operation][algorithm](processes, Message(size, ALPHA, BETA, GAMMA))
            assert formula >= replayed * (1 - 1e-12), (operation, algorithm)


def test_allreduce_changes_its_best_algorithm_where_the_formulas_cross() -> None:
    """Two formulas of an equal number of processes 2**k cross at one size (model page, 3.6)."""
    doubling = ALGORITHMS["allreduce"]["recursive_doubling"]
    halving = ALGORITHMS["allreduce"]["rabenseifner"]
    for k in (2, 3, 4, 6):
        p = 2**k
        share = (p - 1) / p
        size = ALPHA * k / (BETA * (k - 2 * share) + GAMMA * (k - share))
        first, second = (f(p, Message(size, ALPHA, BETA, GAMMA)) for f in (doubling, halving))
        assert first == pytest.approx(second, rel=1e-12)
        assert doubling(p, Message(size / 2, ALPHA, BETA, GAMMA)) < halving(
            p, Message(size / 2, ALPHA, BETA, GAMMA)
        )


def test_a_reduction_is_a_broadcast_backwards_with_the_operation() -> None:
    bcast, reduce = ALGORITHMS["bcast"]["binomial"], ALGORITHMS["reduce"]["binomial"]
    assert reduce(16, Message(100.0, ALPHA, BETA, 0.0)) == bcast(
        16, Message(100.0, ALPHA, BETA, 0.0)
    )
    assert reduce(16, Message(100.0, ALPHA, BETA, GAMMA)) == pytest.approx(
        bcast(16, Message(100.0, ALPHA, BETA + GAMMA, 0.0))
    )


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


def test_over_nodes_counts_rounds_inside_and_between() -> None:
    # 16 ranks, 4 per node: distances 1 and 2 stay inside, 4 and 8 leave the node
    assert over_nodes("bcast", "binomial", 16, 4, 1.0, 10.0, 0.0) == 22.0


def test_what_the_operations_are() -> None:
    assert ROOTED == ("bcast", "reduce", "gather", "scatter")
    reducing = [name for name, one in OPERATIONS.items() if one.reducing]
    assert reducing == ["reduce", "allreduce", "reduce_scatter", "scan"]
    single = {
        how
        for one in OPERATIONS.values()
        for how, algorithm in one.algorithms.items()
        if algorithm.single_flow
    }
    assert single == {"chain", "ring", "linear"}
    assert OPERATIONS["allreduce"].default == "recursive_doubling"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_only_operations_that_reduce_take_time_for_it(operation: str) -> None:
    for algorithm in OPERATIONS[operation].algorithms.values():
        costs = [algorithm.cost(8, Message(100.0, ALPHA, BETA, gamma)) for gamma in (0.0, GAMMA)]
        assert (costs[1] > costs[0]) == OPERATIONS[operation].reducing
