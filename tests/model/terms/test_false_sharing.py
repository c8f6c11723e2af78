"""Lines that threads share, against counting them."""

from __future__ import annotations

import pytest

from popmodel.model.terms.openmp import false_sharing_time


def shared_writes(elements: int, threads: int, chunk: int, line: int) -> float:
    """Share of the writes that go to a line which more than one thread writes."""
    owner = [(i // chunk) % threads for i in range(elements)]
    shared = 0
    for start in range(0, elements, line):
        owners = owner[start : start + line]
        shared += len(owners) if len(set(owners)) > 1 else 0
    return shared / elements


@pytest.mark.parametrize("chunk", [1, 2, 4])
def test_small_chunks_share_every_line(chunk: int) -> None:
    assert shared_writes(8192, 4, chunk, 8) == 1.0
    time = false_sharing_time(8192, 4, chunk, 8, 1e-7, 1.0)
    sharers = min(4, 6 // chunk + 2)
    assert time == pytest.approx(2048 * (1 - 1 / sharers) * 1e-7)


def test_blocks_share_next_to_nothing() -> None:
    whole = false_sharing_time(8192, 4, 2048, 8, 1e-7, 1.0)
    assert whole < 0.004 * false_sharing_time(8192, 4, 1, 8, 1e-7, 1.0)


def test_padded_threads_lose_nothing() -> None:
    assert false_sharing_time(1000, 4, 1, 8, 1e-7, 0.0) == 0
