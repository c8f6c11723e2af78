"""Which threads share a lane."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from popmodel.timeline.lanes import LaneRows, rows_of


def rows(threads: list[int], most: int) -> LaneRows:
    trace: Any = SimpleNamespace(process_offsets=np.cumsum([0, *threads]), processes=len(threads))
    return rows_of(trace, most)


def test_a_lane_for_each_thread_where_there_is_room() -> None:
    found = rows([1, 2, 3], 6)
    assert found.labels == (
        "rank 0",
        "rank 1, thread 0",
        "rank 1, thread 1",
        "rank 2, thread 0",
        "rank 2, thread 1",
        "rank 2, thread 2",
    )
    assert found.first.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert found.shared == ""


def test_threads_of_a_rank_share_lanes_first() -> None:
    found = rows([4, 4, 1], 7)
    shared = [f"rank {rank}, threads {threads}" for rank in (0, 1) for threads in ("0-1", "2-3")]
    assert found.labels == (*shared, "rank 2")
    assert found.shared == "up to 2 threads of a rank to a row"


def test_a_lane_with_all_threads_of_a_rank_is_called_after_the_rank() -> None:
    assert rows([4, 4], 3).labels == ("rank 0", "rank 1")


def test_neighbouring_ranks_share_lanes_where_there_are_many() -> None:
    found = rows([1] * 1000, 512)
    assert len(found) == 500
    assert found.labels[:2] == ("ranks 0-1", "ranks 2-3")
    assert found.shared == "up to 2 neighbouring ranks to a row"
    assert rows([2] * 5, 2).labels == ("ranks 0-2", "ranks 3-4")
    assert rows([2] * 4, 3).first.tolist() == [0, 4, 8]


@given(threads=st.lists(st.integers(1, 9), min_size=1, max_size=40), most=st.integers(1, 60))
def test_every_thread_has_one_lane_and_lanes_are_few_enough(threads: list[int], most: int) -> None:
    found = rows(threads, most)
    assert len(found) <= most
    assert found.first[0] == 0
    assert found.first[-1] == sum(threads)
    assert (found.threads > 0).all()
    assert len(found.of_location) == sum(threads)
    assert len(found.labels) == len(found.first) - 1 == len(set(found.labels))
