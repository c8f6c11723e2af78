"""Rows of neighbours in a grid hold for any number of processes; others stay as they are."""

from itertools import product

import numpy as np
import pytest

from popmodel.expressions import parse
from popmodel.extraction.general import Grid, general, ranks_on, tidy

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


def _of_two(dims, move):
    """Whether both neighbours of a step along one dimension are the same."""
    along = [d for d, m in zip(dims, move, strict=True) if m]
    return along == [2]


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
        if not any(move) or max(partner) < 0 or (is_periodic and _of_two(dims, move)):
            continue
        row = {"on": [r for r, p in enumerate(partner) if p >= 0], "do": "send", "to": partner}
        found = general([{**row, "bytes": 8}], Grid(dims, periodic))
        (only,) = found.rows
        assert only["bytes"] == 8
        for other in (dims, tuple(d + 1 for d in dims)):
            on = evaluated(only.get("on", "1"), other) != 0
            step = found.moves[0,]
            expected = neighbours(other, periodic, step)
            if other == dims:
                expected = partner
            got = np.where(on, evaluated(only["to"], other), -1)
            assert got.tolist() == expected


def test_partners_to_both_sides_are_guarded_at_the_edges():
    row = {"do": "sendrecv", "to": "rank + 1", "from": "rank - 1", "bytes": 8}
    (only,) = general([row], Grid((4,), (False,))).rows
    assert "on" not in only
    assert evaluated(only["to"], (6,)).tolist() == [1, 2, 3, 4, 5, -1]
    assert evaluated(only["from"], (6,)).tolist() == [-1, 0, 1, 2, 3, 4]


def test_waits_of_those_at_an_edge_are_general():
    row = {"on": "rank > 0", "do": "wait"}
    (only,) = general([row], Grid((4,), (False,))).rows
    assert (evaluated(only["on"], (6,)) != 0).tolist() == [False, *[True] * 5]


def test_what_is_no_neighbour_is_not_general():
    assert general([{"do": "send", "to": [2, 3, 1, 0], "bytes": 8}], Grid((4,), (False,))) is None
    assert general([{"on": [1, 2], "do": "wait"}], Grid((4,), (False,))) is None


def test_rows_inside_of_others_are_general_too():
    inner = {"do": "isend", "to": "(rank + 1) % P", "bytes": 8}
    found = general([{"repeat": 2, "calls": [inner]}], Grid((4,), (True,)))
    assert found.rows[0]["repeat"] == 2
    assert list(found.moves) == [(0, 0)]


def test_requests_are_opened_where_there_is_a_partner_only():
    rows = tidy([{"do": "irecv", "from": "rank - 1"}, {"on": "0,2-3", "do": "waitall"}], 4)
    assert ranks_on(rows[0], 4).tolist() == [False, True, True, True]
    assert rows[1]["on"] == [0, 2, 3]


def test_tidy_rows_stay_as_they_are():
    rows = [{"on": "rank > 0", "do": "isend", "to": "rank - 1", "bytes": 8}]
    assert tidy([{"repeat": 2, "calls": rows}], 4) == [{"repeat": 2, "calls": rows}]


@pytest.mark.parametrize("do", ["send", "sendrecv"])
def test_two_processes_that_turn_to_each_other_stand_for_both_neighbours(do):
    other = [1, 0]
    row = {"do": do, "to": other, "bytes": 8} | ({"from": other} if do == "sendrecv" else {})
    found = general([row], Grid((2,), (False,)))
    sent = set()
    for one in found.rows:
        on = evaluated(one.get("on", "1"), (4,)) != 0
        to = np.where(on, evaluated(one["to"], (4,)), -1)
        sent |= {(rank, int(t)) for rank, t in enumerate(to) if t >= 0}
    assert sent == {(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)}


def test_two_messages_between_two_processes_are_those_of_a_ring():
    row = {"do": "send", "to": [1, 0], "bytes": 8}
    back = {"do": "recv", "from": [1, 0], "bytes": 8}
    found = general([row, row, back, back], Grid((2,), (True,)))
    partners = [evaluated(one.get("to", one.get("from")), (5,)).tolist() for one in found.rows]
    down, up = [4, 0, 1, 2, 3], [1, 2, 3, 4, 0]
    assert partners == [down, up, up, down]


def test_one_wait_for_each_of_two_requests_is_needed():
    rows = [{"do": "irecv", "from": [1, 0]}, {"do": "send", "to": [1, 0], "bytes": 8}]
    assert general([*rows, {"do": "wait"}], Grid((2,), (False,))) is None
    assert general([*rows, {"do": "waitall"}], Grid((2,), (False,))) is not None
