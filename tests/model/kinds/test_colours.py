"""Collectives of processes of equal colour, as MPI_Comm_split makes them."""

import pytest
from model.demo import machine, program, whole

from popmodel.base.errors import UsageError
from popmodel.model.signature.application import Signature
from popmodel.prediction.prediction import predict


def split(comm: str, op: str = "allreduce", more: str = "", size: str = "1000") -> Signature:
    return program(
        "[[program]]\nserial = { trip = 1, seconds = 1e-4 }\n[[program]]\n"
        f'collective = {{ name = "split", op = "{op}", bytes = {size}, comm = {comm}{more} }}\n'
    )


def teams(signature: Signature, processes: int) -> list[list[int]]:
    made = whole(signature, machine(), processes, 1).program
    return [made.communicators[number].tolist() for number in made.collectives.communicator]


def test_processes_of_equal_colour_take_part_together() -> None:
    assert teams(split('"rank // 4"'), 8) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert teams(split('"rank % 2"'), 4) == [[0, 2], [1, 3]]


def test_a_colour_below_0_takes_no_part() -> None:
    assert teams(split('"rank % 2 - 1"'), 6) == [[1, 3, 5]]


def test_colours_can_be_listed() -> None:
    assert teams(split("[1, 0, 0, 1]"), 4) == [[1, 2], [0, 3]]


def test_it_costs_what_the_named_communicator_of_the_same_processes_does() -> None:
    by_colour = predict(split('"rank // 4"'), machine(), 8, 2, draws=0)  # nodes of 4 processes
    named = predict(split('"node"'), machine(), 8, 2, draws=0)
    assert by_colour.runtime.value == pytest.approx(named.runtime.value)


def test_the_root_is_a_rank_of_each_communicator() -> None:
    made = whole(split('"rank // 4"', "bcast", ", root = 1"), machine(), 8, 1).program
    assert made.collectives.root.tolist() == [1, 5]


def test_the_largest_of_uneven_sizes_counts() -> None:
    uneven = predict(split('"world"', "alltoall", size='"10 * rank"'), machine(), 4, 1, draws=0)
    even = predict(split('"world"', "alltoall", size="30"), machine(), 4, 1, draws=0)
    assert uneven.runtime.value == pytest.approx(even.runtime.value)


def test_a_root_that_a_small_communicator_lacks_is_refused() -> None:
    with pytest.raises(UsageError, match="the smallest communicator has the ranks 0 to 0"):
        predict(split('"rank // 3"', "bcast", ", root = 1"), machine(), 4, 1, draws=0)


def test_where_nobody_takes_part_nothing_happens() -> None:
    nobody = split('"-1 - rank"')
    assert teams(nobody, 4) == []
    assert predict(nobody, machine(), 4, 1, draws=0).runtime.value == pytest.approx(1e-4)


def test_listed_colours_hold_for_as_many_processes() -> None:
    with pytest.raises(UsageError, match="comm of 'split' at P=8 T=1: a list of 4 values"):
        predict(split("[1, 0, 0, 1]"), machine(), 8, 1, draws=0)
