"""Lists of calls whose messages have both ends, and such as lack some."""

import pytest

from popmodel.signature.scaling_lists import all_meet, at_once

RING = [
    {"do": "irecv", "from": "(rank - 1) % P", "bytes": "8*2/P0"},
    {"do": "isend", "to": "(rank + 1) % P", "bytes": "8*2/P0"},
    {"do": "waitall"},
]


def test_a_ring_meets_on_any_grid():
    assert all_meet(RING, (2,))
    assert all_meet(RING, (7,))
    assert all_meet([{"repeat": 5, "calls": RING}], (4,))


@pytest.mark.parametrize(
    "change",
    [
        {0: {"do": "irecv", "from": "(rank + 1) % P", "bytes": "8*2/P0"}},  # from the other side
        {0: {"do": "irecv", "from": "(rank - 1) % P", "bytes": 16}},  # of another size
        {0: {"do": "irecv", "from": "(rank - 1) % P", "bytes": "8*2/P0", "tag": 1}},
        {1: {"on": "rank > 0", "do": "isend", "to": "(rank + 1) % P", "bytes": "8*2/P0"}},
        {2: {"do": "wait"}},  # one of two requests
        {2: {"on": "rank > 0", "do": "waitall"}},
    ],
)
def test_what_lacks_an_end_does_not(change):
    assert not all_meet([change.get(i, row) for i, row in enumerate(RING)], (5,))


def test_the_order_of_sizes_counts():
    sizes = [{**row, "bytes": size} for size in (8, 16) for row in RING[:2]]
    assert all_meet([*sizes, RING[2]], (3,))
    other = [sizes[0], sizes[2], sizes[3], sizes[1], RING[2]]  # 16 is sent before 8
    assert not all_meet(other, (3,))


def test_ranks_and_partners_may_be_listed():
    rows = [
        {"on": [0], "do": "send", "to": [2, 0, 0], "bytes": 8},
        {"on": [2], "do": "recv", "from": "0"},
    ]
    assert all_meet(rows, (3,))


def test_a_wait_for_the_only_request_is_one_for_all():
    rows = [RING[0], {"do": "wait"}]
    assert at_once(rows, 3) == [RING[0], {"do": "waitall"}]
    assert at_once([{"repeat": 2, "calls": rows}], 3) == [
        {"repeat": 2, "calls": [RING[0], {"do": "waitall"}]}
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [*RING[:2], {"do": "wait"}, {"do": "wait"}],  # which of two
        [RING[0], {"do": "wait", "request": 1}],
        [RING[0]],  # left open
        [RING[0], {"repeat": 2, "calls": [{"do": "compute"}]}, {"do": "wait"}],
    ],
)
def test_other_waits_stay_as_they_are(rows):
    assert at_once(rows, 3) is None
