"""Which algorithm an operation takes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import UsageError
from popmodel.network.collectives import NAMES, Selection, parse_selection
from popmodel.network.network import Network


def test_one_algorithm_for_all_sizes() -> None:
    found = parse_selection("allreduce=ring")
    assert found == Selection("allreduce", ((math.inf, "ring"),))
    assert found.at(0) == found.at(1e12) == "ring"


def test_sizes_up_to_which_an_algorithm_is_taken() -> None:
    found = parse_selection("allreduce = recursive_doubling:8KiB, ring")
    assert [found.at(size) for size in (0, 8192, 8193)] == [
        "recursive_doubling",
        "recursive_doubling",
        "ring",
    ]
    assert str(found) == "allreduce=recursive_doubling:8KiB,ring"


@given(
    st.sampled_from([(o, n) for o, names in NAMES.items() for n in names]),
    st.sets(st.integers(0, 10**9), max_size=3),
)
def test_what_is_written_is_read_again(which: tuple[str, str], sizes: set[int]) -> None:
    steps = tuple((size, which[1]) for size in [*sorted(sizes), math.inf])
    selection = Selection(which[0], steps)
    assert parse_selection(str(selection)) == selection


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("ring", "must be OPERATION=ALGORITHM, not 'ring'", "write allreduce=ring"),
        ("allreduce=", "must be OPERATION=ALGORITHM", "write allreduce=ring"),
        ("alreduce=ring", "unknown collective operation 'alreduce'", "allreduce"),
        ("allreduce=rign", "unknown algorithm 'rign' of allreduce", "ring"),
        ("bcast=ring", "unknown algorithm 'ring' of bcast", "binomial, scatter_allgather"),
        ("allreduce=ring:8KiB", "the last algorithm must have none", "for a ring above"),
        ("allreduce=ring:9,ring:8,ring", "sizes must ascend", "for a ring above"),
        ("allreduce=ring:8parsec,ring", "8parsec", ""),
    ],
)
def test_what_is_no_selection_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_selection(text)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_only_collectives_that_are_messages_take_algorithms() -> None:
    ring = (parse_selection("allreduce=ring"),)
    with pytest.raises(UsageError, match="are not carried out as messages"):
        Network(algorithms=ring)
    network = Network(collectives="algorithm", algorithms=ring)
    assert network.to_dict()["algorithms"] == "allreduce=ring"
    assert "algorithms" not in Network(collectives="algorithm").to_dict()
