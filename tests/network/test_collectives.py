"""Collectives: every closed form against a message-by-message replay of its algorithm."""

from __future__ import annotations

import pytest
import sympy

from popmodel.network.collectives import ALGORITHMS, over_nodes

PROCESSES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64)
ALPHA, BETA, GAMMA = 2e-6, 1e-9, 3e-10


def message(size: float) -> float:
    return ALPHA + BETA * size


def replay_dissemination(processes: int) -> float:
    """In round j rank r tells rank r + 2**j and waits for rank r - 2**j."""
    clock = [0.0] * processes
    distance = 1
    while distance < processes:
        sent = [time + ALPHA for time in clock]
        clock = [max(sent[r], sent[(r - distance) % processes]) for r in range(processes)]
        distance *= 2
    return max(clock)


def replay_bcast(processes: int, size: float) -> float:
    """Ranks that have the data send it on, the farthest partner first."""
    clock = {0: 0.0}
    distance = 1
    while distance < processes:
        distance *= 2
    while distance > 1:
        distance //= 2
        for rank in [r for r in clock if r % (2 * distance) == 0]:
            if rank + distance < processes:
                clock[rank] += message(size)
                clock[rank + distance] = clock[rank]
    return max(clock.values())


def replay_allreduce(processes: int, size: float) -> float:
    """Fold the surplus onto the first ranks, exchange among a power of two, unfold."""
    step = message(size) + GAMMA * size
    power = 1
    while power * 2 <= processes:
        power *= 2
    surplus = processes - power
    clock = [step if rank < surplus else 0.0 for rank in range(power)]
    distance = 1
    while distance < power:
        clock = [max(clock[r], clock[r ^ distance]) + step for r in range(power)]
        distance *= 2
    return max(time + (message(size) if r < surplus else 0.0) for r, time in enumerate(clock))


@pytest.mark.parametrize("processes", PROCESSES)
@pytest.mark.parametrize("size", [8.0, 1e3, 1e6])
def test_closed_forms_equal_the_replay(processes: int, size: float) -> None:
    expected = {
        ("barrier", "dissemination"): replay_dissemination(processes),
        ("bcast", "binomial"): replay_bcast(processes, size),
        ("allreduce", "recursive_doubling"): replay_allreduce(processes, size),
    }
    for (operation, algorithm), time in expected.items():
        cost = ALGORITHMS[operation][algorithm]
        assert cost(processes, size, ALPHA, BETA, GAMMA) == pytest.approx(time, rel=1e-12)


def test_a_reduction_is_a_broadcast_backwards_with_the_operation() -> None:
    bcast, reduce = ALGORITHMS["bcast"]["binomial"], ALGORITHMS["reduce"]["binomial"]
    assert reduce(16, 100.0, ALPHA, BETA, 0.0) == bcast(16, 100.0, ALPHA, BETA, 0.0)
    assert reduce(16, 100.0, ALPHA, BETA, GAMMA) == pytest.approx(
        bcast(16, 100.0, ALPHA, BETA + GAMMA, 0.0)
    )


def test_one_process_has_nothing_to_do() -> None:
    for algorithms in ALGORITHMS.values():
        for cost in algorithms.values():
            assert cost(1, 1e6, ALPHA, BETA, GAMMA) == 0


def test_large_powers_of_two_are_exact() -> None:
    barrier = ALGORITHMS["barrier"]["dissemination"]
    for k in range(1, 50):
        assert barrier(2**k, 0.0, 1.0, 0.0, 0.0) == k
        assert barrier(2**k + 1, 0.0, 1.0, 0.0, 0.0) == k + 1


def test_symbols_give_the_same_formula() -> None:
    p, m, a, b, g = sympy.symbols("P m a b g", positive=True)
    for algorithms in ALGORITHMS.values():
        for cost in algorithms.values():
            symbolic = cost(p, m, a, b, g)
            for processes in (1, 2, 6, 8):
                values = {p: processes, m: 100, a: ALPHA, b: BETA, g: GAMMA}
                assert float(symbolic.subs(values)) == pytest.approx(
                    cost(processes, 100, ALPHA, BETA, GAMMA)
                )


@pytest.mark.parametrize("processes", PROCESSES)
def test_over_equal_tiers_nodes_do_not_matter(processes: int) -> None:
    for operation, algorithms in ALGORITHMS.items():
        for algorithm, cost in algorithms.items():
            size = 0.0 if operation == "barrier" else 100.0
            flat = cost(processes, size, ALPHA, BETA, GAMMA)
            time = message(size)
            split = over_nodes(operation, algorithm, processes, 4, time, time, GAMMA * size)
            assert split == pytest.approx(flat, rel=1e-12)


def test_over_nodes_counts_rounds_inside_and_between() -> None:
    # 16 ranks, 4 per node: distances 1 and 2 stay inside, 4 and 8 leave the node
    assert over_nodes("bcast", "binomial", 16, 4, 1.0, 10.0, 0.0) == 22.0
