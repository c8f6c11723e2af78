"""Which send and which receive are the same message."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.tracer import message_ends as messages
from popmodel.tracer.message_ends import POSTED, RECEIVED, SENT, Matcher
from popmodel.tracer.temporary import Spool


@contextmanager
def matcher(expected: int = 100) -> Iterator[tuple[Matcher, Spool]]:
    spool = Spool(Path(tempfile.gettempdir()))
    try:
        yield Matcher(spool, expected), spool
    finally:
        spool.close()


def end(rank: int, tag: int) -> int:
    return rank << 32 | tag


def sent(*rows: tuple[int, int, int, int], row: int = 0, communicator: int = 1) -> np.ndarray:
    """(time, to, tag, size)."""
    return np.array(
        [(t, end(to, tag), communicator, t, t + 1, size, row) for t, to, tag, size in rows], SENT
    )


def posted(*rows: tuple[int, int]) -> np.ndarray:
    """(number, time)."""
    return np.array(list(rows), POSTED)


def received(
    *rows: tuple[int, int, int, int, int], row: int = 1, communicator: int = 1
) -> np.ndarray:
    """(number, from, tag, time, size)."""
    return np.array(
        [(n, end(source, tag), communicator, -1, t, size, row) for n, source, tag, t, size in rows],
        RECEIVED,
    )


def joined(made: Matcher, spool: Spool) -> list[tuple[int, int, int, int, int]]:
    """(sent, posted, received, size, tag), by the time of the send."""
    found = [spool.read(key) for key in made.join()]
    rows = [row for part in found for row in part.tolist()]
    return sorted((r[1], r[2], r[3], r[4], r[5]) for r in rows)


def test_receives_from_anybody_belong_to_whom_they_came_from() -> None:
    with matcher() as (made, spool):
        for rank in (0, 2):
            made.sent(rank, sent((10 + rank, 1, 7, rank), row=rank))
            made.end_process(rank)
        made.received(posted((1, 5), (2, 6)), received((1, 2, 7, 50, 2), (2, 0, 7, 51, 0)))
        made.end_process(1)
        assert joined(made, spool) == [(10, 6, 51, 0, 7), (12, 5, 50, 2, 7)]


def test_threads_that_send_to_one_partner_take_turns_by_time() -> None:
    with matcher() as (made, spool):
        made.sent(0, sent((10, 1, 7, 1), (30, 1, 7, 3)))
        made.sent(5, sent((20, 1, 7, 2), row=5))
        made.end_process(0)
        rows = [(n, 0, 7, 50 + n, n) for n in (1, 2, 3)]
        made.received(posted((1, 1), (2, 2), (3, 3)), received(*rows))
        made.end_process(1)
        assert joined(made, spool) == [(10, 1, 51, 1, 7), (20, 2, 52, 2, 7), (30, 3, 53, 3, 7)]


def test_what_a_matched_probe_took_keeps_its_turn() -> None:
    with matcher() as (made, spool):
        made.sent(0, sent((10, 1, 7, 1), (20, 1, 7, 2)))
        made.end_process(0)
        # The probe takes number 1 at 5, a receive is posted at 6, and MPI_Imrecv goes on at 8.
        made.received(posted((1, 5), (2, 6), (1, 8)), received((2, 0, 7, 50, 2), (1, 0, 7, 60, 1)))
        made.end_process(1)
        assert joined(made, spool) == [(10, 8, 60, 1, 7), (20, 6, 50, 2, 7)]


def test_what_has_no_partner_is_counted() -> None:
    with matcher() as (made, spool):
        made.sent(0, sent((10, 1, 7, 1), (20, 1, 7, 2), (30, -1, 7, 3)))
        made.end_process(0)
        made.received(posted((1, 5), (2, 6)), received((1, 0, 7, 50, 1), (2, 0, 9, 60, 1)))
        made.end_process(1)
        assert joined(made, spool) == [(10, 5, 50, 1, 7)]
        assert +made.counts == {
            messages.UNRECEIVED: 1,
            messages.UNSENT: 1,
            messages.OUTSIDE: 1,
        }


@pytest.mark.parametrize("which", ["send", "post", "receive"])
def test_messages_with_an_untraced_end_keep_the_turns_of_the_others(which: str) -> None:
    with matcher() as (made, spool):
        sends = sent((10, 1, 7, 1), (20, 1, 7, 2))
        posts = posted((1, 5), (2, 6))
        receives = received((1, 0, 7, 50, 1), (2, 0, 7, 60, 2))
        if which == "send":
            sends["logical"][0] = -1
        elif which == "post":
            posts["time"][0] = -1
        else:
            receives["physical"][0] = -1
        made.sent(0, sends)
        made.end_process(0)
        made.received(posts, receives)
        made.end_process(1)
        assert joined(made, spool) == [(20, 6, 60, 2, 7)]
        assert +made.counts == {messages.UNTRACED: 1}


def test_sizes_and_times_that_contradict_each_other_are_counted() -> None:
    with matcher() as (made, spool):
        made.sent(0, sent((10, 1, 7, 1), (20, 1, 7, 2)))
        made.end_process(0)
        made.received(posted((1, 5), (2, 6)), received((1, 0, 7, 9, 1), (2, 0, 7, 60, 3)))
        made.end_process(1)
        assert len(joined(made, spool)) == 2
        assert +made.counts == {messages.EARLY: 1, messages.UNEQUAL: 1}


@given(
    kinds=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=60),
    order=st.randoms(use_true_random=False),
    held=st.integers(1, 20),
    together=st.integers(0, 2),
)
def test_random_orders_and_buckets(kinds, order, held: int, together: int) -> None:
    """One receiver; each message is posted in the order of the sends of its kind."""
    with (
        mock.patch.object(messages, "HELD", held),
        mock.patch.object(messages, "_BLOCK", held),
        mock.patch.object(messages, "_TOGETHER", together),
        matcher(2 * len(kinds)) as (made, spool),
    ):
        expected = []
        numbers: dict[tuple[int, int], list[int]] = {}
        posting = list(range(len(kinds)))
        order.shuffle(posting)
        for number in range(len(kinds)):
            numbers.setdefault(kinds[posting[number]], []).append(number)
        turns = {kind: iter(each) for kind, each in numbers.items()}
        receives = []
        for i, (source, tag) in enumerate(kinds):
            number = next(turns[source, tag])
            receives.append((number + 1, source, tag, 10_000 + i, i))
            expected.append((100 + i, number, 10_000 + i, i, tag))
        for source in range(3):
            rows = [(100 + i, 3, tag, i) for i, (s, tag) in enumerate(kinds) if s == source]
            made.sent(source, sent(*rows, row=source))
            made.end_process(source)
        order.shuffle(receives)
        for receive in receives:
            made.received(posted(), received(receive, row=3))
        made.received(posted(*((n + 1, n) for n in range(len(kinds)))), received())
        made.end_process(3)
        assert joined(made, spool) == sorted(expected)
        assert not +made.counts
