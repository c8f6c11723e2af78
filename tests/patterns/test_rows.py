"""Lists of calls: what they say is what was done, on every rank, in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from patterns.expand import carried_out
from patterns.scripts import Repeat, Step, structure
from patterns.strategies import programs

from popmodel.patterns.rows import CallLists, rows
from popmodel.structure.nest import Leaf


def halo(ranks, columns, size=100):
    """Nonblocking exchange with four neighbours of a grid, and a wait for all."""

    def neighbours(rank):
        row, column = divmod(rank, columns)
        found = []
        if column > 0:
            found.append(rank - 1)
        if column < columns - 1:
            found.append(rank + 1)
        if row > 0:
            found.append(rank - columns)
        if rank + columns < ranks:
            found.append(rank + columns)
        return found

    def place(do, k):
        # a place for each direction: ranks without that neighbour have no call there
        offset = (-1, 1, -columns, columns)[k]
        return Step(
            lambda rank, _: [do(rank + offset)] if rank + offset in neighbours(rank) else [],
            "MPI_Irecv",
        )

    return [
        *(place(lambda p: ("irecv", p, 0), k) for k in range(4)),
        *(place(lambda p: ("isend", p, size, 0), k) for k in (1, 0, 3, 2)),
        Step(lambda *_: [("waitall",)], "MPI_Waitall", lambda rank, _: 1e-3 * (rank + 1)),
    ]


def test_rows_of_a_halo_are_formulas_of_the_rank():
    found = rows(structure(16, halo(16, 4)), range(9), compute=())
    assert found.exact
    assert found.calls == [
        {"on": "rank % 4 > 0", "do": "irecv", "from": "rank - 1", "bytes": 100},
        {"on": "rank % 4 < 3", "do": "irecv", "from": "rank + 1", "bytes": 100},
        {"on": "rank >= 4", "do": "irecv", "from": "rank - 4", "bytes": 100},
        {"on": "rank < P - 4", "do": "irecv", "from": "rank + 4", "bytes": 100},
        {"on": "rank % 4 < 3", "do": "isend", "to": "rank + 1", "bytes": 100},
        {"on": "rank % 4 > 0", "do": "isend", "to": "rank - 1", "bytes": 100},
        {"on": "rank < P - 4", "do": "isend", "to": "rank + 4", "bytes": 100},
        {"on": "rank >= 4", "do": "isend", "to": "rank - 4", "bytes": 100},
        {"do": "waitall"},
    ]


def test_computing_is_listed_before_the_place_it_stands_before():
    found = rows(structure(4, halo(4, 2)), range(9))
    *_, computing, waiting = found.calls
    assert computing == {"do": "compute", "seconds": pytest.approx([1e-3, 2e-3, 3e-3, 4e-3])}
    assert waiting == {"do": "waitall"}
    assert len(rows(structure(4, halo(4, 2)), range(9), compute=[3]).calls) == 9


def test_times_are_means_of_all_equal_executions():
    step = Step(
        lambda rank, _: [("send", 1, 8, 0)] if rank == 0 else [("recv", 0, 0)],
        "MPI_Send",
        lambda _, execution: execution * 1.0,
    )
    made = structure(2, [Repeat(5, [step])])
    inside = CallLists(made).of([Leaf((0,))], 5, frozenset([0]))
    assert inside.calls[0] == {"do": "compute", "seconds": [2.0, 2.0]}
    assert inside.total == 5
    outside = CallLists(made).rows([0])
    assert outside.calls == [{"repeat": 5, "calls": inside.calls}]
    assert outside.total == 1


def test_an_execution_that_differs_is_told():
    step = Step(
        lambda rank, execution: (
            [("send", 1, 8 + (execution == 2), 0)] if rank == 0 else [("recv", 0, 0)]
        )
    )
    made = structure(2, [Repeat(4, [step])])
    found = rows(made, [0], compute=())
    sizes = [{"repeat": 2}, {}, {}]
    assert [call.get("repeat") for call in found.calls] == [
        each.get("repeat") for each in sizes
    ] + [None] * (len(found.calls) - 3)
    inside = CallLists(made).of([Leaf((0,))], 4, frozenset())
    assert inside.executions.tolist() == [0, 1, 3]
    assert not inside.exact
    assert CallLists(made).of([Leaf((0,))], 4, frozenset(), 2).executions.tolist() == [2]
    last = CallLists(made).of([Leaf((0,))], 4, frozenset(), among=np.array([2]))
    assert last.executions.tolist() == [2]


def test_requests_that_cross_iterations_are_unrolled():
    def does(rank, execution):
        post = [("irecv", 1 - rank, 0), ("isend", 1 - rank, 8, 0)] if execution < 3 else []
        return [*([("wait", 0), ("wait", 0)] if execution else []), *post]

    made = structure(2, [Repeat(4, [Step(does, "MPI_Waitall")])])
    found = rows(made, [0], compute=())
    assert found.exact
    assert not any("repeat" in call for call in found.calls)
    assert carried_out(found.calls, 2) == done(made)


@pytest.mark.parametrize(
    ("steps", "places", "why"),
    [
        ([Step(lambda *_: [("barrier", 0, 0, -1)], "MPI_Barrier")], [0], "MPI_Barrier is about a"),
        ([Step(lambda *_: [], "solve", region=True)], [0], "solve is a parallel region"),
        (
            [
                Step(lambda rank, _: [("irecv", 1 - rank, 0), ("isend", 1 - rank, 8, 0)]),
                Step(lambda *_: [("waitall",)], "MPI_Waitall"),
            ],
            [0],
            "rank 0 leaves requests open behind the last place",
        ),
        (
            [
                Step(lambda rank, _: [("irecv", 1 - rank, 0), ("isend", 1 - rank, 8, 0)]),
                Step(lambda *_: [("waitall",)], "MPI_Waitall"),
            ],
            [1],
            "MPI_Waitall of rank 0 completes a request of before the first place",
        ),
    ],
)
def test_what_a_list_cannot_say_is_told(steps, places, why):
    found = rows(structure(2, steps), places)
    assert found.why.startswith(why)
    assert not found.calls
    assert not found.exact


def test_a_wait_names_the_request_that_is_not_the_oldest():
    steps = [
        Step(lambda rank, _: [("irecv", 1 - rank, 0), ("isend", 1 - rank, 8, 0)]),
        Step(lambda *_: [("wait", 1)], "MPI_Wait"),
        Step(lambda *_: [("wait", 0)], "MPI_Wait"),
    ]
    made = structure(2, steps)
    found = rows(made, [0, 1, 2], compute=())
    assert found.calls[2:] == [{"do": "wait", "request": 1}, {"do": "wait"}]
    assert carried_out(found.calls, 2) == done(made)


def test_partners_without_a_formula_are_listed_by_rank():
    goal = np.random.default_rng(5).permutation(16)
    steps = [
        Step(lambda rank, _: [("isend", int(goal[rank]), 8 * (rank % 2 + 1), 0)]),
        Step(lambda rank, _: [("recv", int(np.argsort(goal)[rank]), 0)]),
        Step(lambda *_: [("waitall",)], "MPI_Waitall"),
    ]
    made = structure(16, steps)
    found = rows(made, range(3), compute=())
    assert found.calls == [
        {"do": "isend", "to": goal.tolist(), "bytes": [8, 16] * 8},
        {
            "do": "recv",
            "from": np.argsort(goal).tolist(),
            "bytes": [8 * (rank % 2 + 1) for rank in np.argsort(goal)],
        },
        {"do": "waitall"},
    ]
    assert carried_out(found.calls, 16) == done(made)


def test_places_of_different_bodies_are_refused():
    step = Step(lambda rank, _: [("send", 1, 8, 0)] if rank == 0 else [("recv", 0, 0)])
    made = structure(2, [step, Repeat(3, [step, step])])
    with pytest.raises(ValueError, match="places are not those of one body"):
        rows(made, [0, 1])


def test_tags_are_kept_where_messages_overtake_each_other():
    steps = [
        Step(lambda rank, _: [("isend", 1, 8, 7), ("isend", 1, 16, 9)] if rank == 0 else []),
        Step(lambda rank, _: [("recv", 0, 9), ("recv", 0, 7)] if rank == 1 else []),
        Step(lambda rank, _: [("waitall",)] if rank == 0 else [], "MPI_Waitall"),
    ]
    found = rows(structure(2, steps), [0, 1, 2], compute=())
    assert [call.get("tag") for call in found.calls] == [7, 9, 9, 7, None]


def done(made):
    """Operations of each rank of a structure in the words of `expand.carried_out`."""
    program = made.program
    names = ("send", "isend", "recv", "irecv")
    found = []
    for rank in range(program.processes):
        mine, waits = [], []
        events = range(made.events.offsets[rank], made.events.offsets[rank + 1])
        for event in events:
            first, last = made.events.first[event], made.events.first[event + 1]
            ops = [(int(program.kind[i]), int(program.target[i])) for i in range(first, last)]
            while ops:
                kind, row = ops.pop(0)
                size, tag = int(program.messages.size[row]), 0
                partner = int(
                    program.messages.receiver[row]
                    if kind in (0, 1, 5)
                    else program.messages.sender[row]
                )
                if kind in (4, 5):
                    waits = [("sent" if kind == 5 else "received", partner, tag)]
                    while ops and ops[0][0] in (4, 5) and event_waits_all(made, event):
                        k, r = ops.pop(0)
                        other = (
                            program.messages.receiver[r] if k == 5 else program.messages.sender[r]
                        )
                        waits.append(("sent" if k == 5 else "received", int(other), tag))
                    mine.append(("wait", sorted(waits)))
                elif kind == 3 and [k for k, _ in ops[:2]] == [0, 4] and ops[1][1] == row:
                    to = ops[0][1]
                    mine.append(
                        (
                            "sendrecv",
                            int(program.messages.receiver[to]),
                            partner,
                            int(program.messages.size[to]),
                            tag,
                        )
                    )
                    del ops[:2]
                elif kind in (0, 1):
                    mine.append((names[kind], partner, size, tag))
                else:
                    mine.append((names[kind], partner, tag))
        found.append(mine)
    return found


def event_waits_all(made, event):
    return made.events.names[made.events.name[event]] == "MPI_Waitall"


@given(programs())
def test_a_list_does_what_was_done(made):
    found = rows(made, range(len(made.places)), compute=())
    assert found.exact
    assert carried_out(found.calls, made.program.processes) == done(made)


def test_the_order_in_which_messages_come_makes_no_other_execution():
    # Calls that post, send and wait at once, as exchanges between neighbours do.
    def does(rank, execution):
        others = [(rank + 1) % 4, (rank - 1) % 4]
        begun = [("irecv", p, 0) for p in others] + [("isend", p, 8, 0) for p in others]
        waits = [0, 0, 0, 0] if (rank + execution) % 2 else [1, 0, 0, 0]
        return begun + [("wait", k) for k in waits]

    found = CallLists(structure(4, [Repeat(6, [Step(does)])])).of([Leaf((0,))], 6, frozenset([0]))
    assert found.exact
