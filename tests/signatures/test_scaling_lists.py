"""Rows of neighbours in a grid hold for any number of processes, with both ends of messages."""

from itertools import product

import numpy as np
import pytest

from popmodel.base.expressions import parse
from popmodel.signatures.scaling_lists import (
    ScalingGrid,
    all_meet,
    at_once,
    general,
    ranks_on,
    tidy,
)

GRIDS = [(4,), (5,), (2, 3), (4, 4), (3, 2, 2), (1, 6), (2, 2)]


def neighbours(dims, periodic, move):
    """Partner of each rank by coordinates, -1 for none."""
    found = []
    for at in product(*map(range, dims)):
        to = [a + m for a, m in zip(at, move, strict=True)]
        to = [t % d if p else t for t, d, p in zip(to, dims, periodic, strict=True)]
        inside = all(0 <= t < d for t, d in zip(to, dims, strict=True))
        found.append(int(np.ravel_multi_index(to, dims)) if inside else -1)
    return found


def evaluated(formula, dims):
    """A formula of the rank on another grid."""
    processes = int(np.prod(dims))
    names = {f"P{axis}": float(size) for axis, size in enumerate(dims)}
    names |= {"rank": np.arange(processes, dtype=float), "P": float(processes)}
    found = np.broadcast_to(np.asarray(parse(str(formula)).evaluate(names), float), processes)
    return np.rint(found).astype(int)


@pytest.mark.parametrize("dims", GRIDS)
@pytest.mark.parametrize("is_periodic", [False, True])
def test_neighbours_are_found_again_on_other_grids(dims, is_periodic):
    periodic = (is_periodic,) * len(dims)
    for move in product((-1, 0, 1), repeat=len(dims)):
        partner = neighbours(dims, periodic, move)
        along = [d for d, m in zip(dims, move, strict=True) if m]
        if max(partner) < 0 or not along or (is_periodic and along == [2]):
            continue
        row = {"on": [r for r, p in enumerate(partner) if p >= 0], "do": "send", "to": partner}
        (only,), moves = general([{**row, "bytes": 8}], ScalingGrid(dims, periodic))
        assert only["bytes"] == 8
        for other in (dims, tuple(d + 1 for d in dims)):
            on = evaluated(only.get("on", "1"), other) != 0
            step = moves[0,]
            expected = neighbours(other, periodic, step)
            if other == dims:
                expected = partner
            got = np.where(on, evaluated(only["to"], other), -1)
            assert got.tolist() == expected


def test_partners_to_both_sides_are_guarded_at_the_edges():
    row = {"do": "sendrecv", "to": "rank + 1", "from": "rank - 1", "bytes": 8}
    (only,), _ = general([row], ScalingGrid((4,), (False,)))
    assert "on" not in only
    assert evaluated(only["to"], (6,)).tolist() == [1, 2, 3, 4, 5, -1]
    assert evaluated(only["from"], (6,)).tolist() == [-1, 0, 1, 2, 3, 4]


def test_waits_of_those_at_an_edge_are_general():
    row = {"on": "rank > 0", "do": "wait"}
    (only,), _ = general([row], ScalingGrid((4,), (False,)))
    assert (evaluated(only["on"], (6,)) != 0).tolist() == [False, *[True] * 5]


def test_what_is_no_neighbour_is_not_general():
    assert (
        general([{"do": "send", "to": [2, 3, 1, 0], "bytes": 8}], ScalingGrid((4,), (False,)))
        is None
    )
    assert general([{"on": [1, 2], "do": "wait"}], ScalingGrid((4,), (False,))) is None


def test_rows_inside_of_others_are_general_too():
    inner = {"do": "isend", "to": "(rank + 1) % P", "bytes": 8}
    found, moves = general([{"repeat": 2, "calls": [inner]}], ScalingGrid((4,), (True,)))
    assert found[0]["repeat"] == 2
    assert list(moves) == [(0, 0)]


def test_requests_are_opened_where_there_is_a_partner_only():
    rows = tidy([{"do": "irecv", "from": "rank - 1"}, {"do": "waitall"}], 4)
    assert ranks_on(rows[0], (4,)).tolist() == [False, True, True, True]


def test_tidy_rows_stay_as_they_are():
    rows = [{"on": "rank > 0", "do": "isend", "to": "rank - 1", "bytes": 8}]
    assert tidy([{"repeat": 2, "calls": rows}], 4) == [{"repeat": 2, "calls": rows}]


def sent(rows, dims):
    """Messages of rows at other extents, sender to receiver: as sent, and as received."""
    found = {"isend": [], "irecv": []}
    for row in rows:
        on = evaluated(row.get("on", "1"), dims) != 0
        partner = evaluated(row["to" if row["do"] == "isend" else "from"], dims)
        for rank in np.flatnonzero(on):
            pair = (int(rank), int(partner[rank]))
            found[row["do"]].append(pair if row["do"] == "isend" else pair[::-1])
    return sorted(found["isend"]), sorted(found["irecv"])


def test_one_message_across_a_dimension_of_two_goes_to_both_neighbours_at_open_edges():
    flip = [1, 0]
    rows = [{"do": "irecv", "from": flip}, {"do": "isend", "to": flip}, {"do": "waitall"}]
    found, moves = general(rows, ScalingGrid((2,), (False,)))
    assert [row["do"] for row in found] == ["irecv", "irecv", "isend", "isend", "waitall"]
    assert set(moves) == {(0,), (1,), (2,), (3,)}
    sends, receives = sent(found[:4], (4,))
    assert sends == receives == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]


def test_two_messages_across_a_dimension_of_two_go_around_a_ring():
    flip = [1, 0]
    rows = [{"do": do, key: flip} for do, key in [("irecv", "from"), ("isend", "to")] * 2]
    found, _ = general(rows, ScalingGrid((2,), (True,)))
    sends, receives = sent(found, (3,))
    assert sends == receives == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


def test_requests_that_are_open_together_and_waited_for_one_by_one_are_not_added_to():
    flip = [1, 0]
    rows = [{"do": "irecv", "from": flip}, {"do": "isend", "to": flip}, *[{"do": "wait"}] * 2]
    assert len(general(rows, ScalingGrid((2,), (False,)))[0]) == 4


def test_the_only_open_request_becomes_one_for_each_neighbour():
    """The sends of each way are apart, so both neighbours are awaited."""
    flip = [1, 0]
    rows = [
        {"do": "irecv", "from": flip, "bytes": 8},
        {"on": "rank > 0", "do": "send", "to": "rank - 1", "bytes": 8},
        {"on": "rank < 1", "do": "send", "to": "rank + 1", "bytes": 8},
        {"do": "wait"},
    ]
    found, _ = general(rows, ScalingGrid((2,), (False,)))
    assert [row["do"] for row in found] == ["irecv", "irecv", "send", "send", "waitall"]
    assert all_meet(found, (2,))
    assert all_meet(found, (7,))


def test_of_two_readings_the_one_counts_whose_messages_meet_on_larger_grids():
    """Read one by one the second message would come from where none is sent."""
    flip = [1, 0]
    once = [
        {"do": "irecv", "from": flip, "bytes": 8},
        {"do": "send", "to": flip, "bytes": 8},
        {"do": "wait"},
    ]
    rows = [*once, *({**row, "bytes": 16} if "bytes" in row else row for row in once)]
    for periodic in (False, True):
        found, _ = general(rows, ScalingGrid((2,), (periodic,)))
        assert all_meet(found, (2,))
        assert all_meet(found, (5,))


def test_what_two_ranks_send_each_other_arrives_on_longer_rings_too():
    rows = [
        {"do": "irecv", "from": [1, 0], "bytes": 8},
        {"do": "isend", "to": [1, 0], "bytes": 8},
        {"do": "wait"},
        {"do": "wait"},
    ]
    for periodic in (False, True):
        (receive, send, *_), _ = general(rows, ScalingGrid((2,), (periodic,)))
        sources = evaluated(receive["from"], (6,)).tolist()
        targets = evaluated(send["to"], (6,)).tolist()
        assert [targets[source] for source in sources] == list(range(6))


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
