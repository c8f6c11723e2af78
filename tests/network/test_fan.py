"""Fan-in and fan-out of collectives as Dimemas' files configure them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import FileError
from popmodel.network.fan_costs import FACTORS, SIZES, Fan, collective_time, factor, read_fans

LATENCY, PER_BYTE = 1e-5, 1e-8
NUMBERS = {0: "barrier", 1: "bcast", 2: "gather", 4: "scatter", 6: "allgather", 8: "alltoall"}
NUMBERS |= {11: "allreduce", 12: "reduce_scatter", 14: "scan"}


def message(size: np.ndarray) -> np.ndarray:
    return LATENCY + PER_BYTE * size


def by_hand(word: str, size: str, members: int, sent: int, received: int) -> float:
    """One stage, as Dimemas' source says it."""
    bytes_ = {
        "MIN": min(sent, received),
        "MAX": max(sent, received),
        "MEAN": (sent + received) // 2,
        "2MAX": 2 * max(sent, received),
        "S+R": sent + received,
    }[size]
    times = {
        "0": 0,
        "CTE": 1 if members > 1 else 0,  # alone, a member pays nothing
        "LIN": members - 1,
        "LOG": math.ceil(math.log2(members)),
    }[word]
    return times * (LATENCY + PER_BYTE * bytes_)


words = st.sampled_from(list(FACTORS))
sizes = st.sampled_from(SIZES)


@given(
    st.sampled_from(list(NUMBERS)),
    st.tuples(words, sizes, words, sizes),
    st.integers(1, 40),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
)
def test_stages_are_those_of_the_file(
    number: int, fan: tuple[str, str, str, str], members: int, sent: int, received: int
) -> None:
    fans = read_fans("x", f"{number} {' '.join(fan)} 1\n")
    kind = NUMBERS[number]
    found = collective_time(kind, [members], [sent], [received], message, fans)
    received = 0 if kind == "bcast" else received
    expected = sum(by_hand(*stage, members, sent, received) for stage in (fan[:2], fan[2:]))
    assert found[0] == pytest.approx(expected, rel=1e-12)


def test_operations_that_are_not_named_cost_what_they_do_without_a_file() -> None:
    fans = read_fans("x", "11 0 MAX 0 MAX 1")
    for kind, size in (("bcast", 100), ("reduce", 100), ("alltoall", 100), ("allreduce", 0)):
        found = collective_time(kind, [4], [100], [100], message, fans)
        usual = collective_time(kind, [4], [100], [100], message, "constant")
        assert found[0] == (usual[0] if size else 0)


def test_reduce_does_not_follow_the_file() -> None:
    fans = read_fans("x", "10 LIN 2MAX LIN 2MAX 1")
    assert collective_time("reduce", [4], [9], [9], message, fans) == message(np.array([9.0]))


def test_what_else_is_in_the_file_is_left_out() -> None:
    text = """Machine policy: 0 FIFO
Flight time: 0 0.0

Machine globalop: 0 11 LOG MAX CTE MIN
Machine globalop: 1 8 LOG MAX CTE MIN
External globalop: 8 LOG MAX CTE MIN
9 LIN MAX LIN MAX 1
"""
    fans = read_fans("x", text)
    assert fans.fans == (Fan("allreduce", "logarithmic", "MAX", "constant", "MIN"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("11 LOG MAX LOG\n", "x:1: '11 LOG MAX LOG' is no collective operation"),
        ("\n11 LOG MAX LGO MAX 1", "x:2: '11 LOG MAX LGO MAX 1' is no collective operation"),
        ("11 LOG BIG LOG MAX 1", "is no collective operation"),
        ("99 LOG MAX LOG MAX 1", "is no collective operation"),
        ("Machine policy: 0 FIFO", "x: describes no collective operation"),
    ],
)
def test_what_is_no_file_of_collectives_is_refused(text: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        read_fans("x", text)
    assert message in caught.value.message


def test_one_member_pays_nothing() -> None:
    for model in ("constant", "linear", "logarithmic"):
        assert factor(model, [1, 2]).tolist() == [0, 1]
