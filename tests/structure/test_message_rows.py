"""Lists of calls: what they say is what was done, on every rank, in the same order."""

import numpy as np
import pytest
from hypothesis import given
from structure.expand import carried_out
from structure.scripts import Repeat, Step, structure
from structure.strategies import programs

from popmodel.simulator.program import Op
from popmodel.structure.message_rows import PlaceTable
from popmodel.structure.structure import leaves


def listed(made, places, compute=()):
    found = PlaceTable(made).rows(places, compute)
    assert not found.why
    return found.calls


def halo(ranks, columns, size=100):
    """Nonblocking exchange with four neighbours of a grid, and a wait for all."""

    def neighbours(rank):
        row, column = divmod(rank, columns)
        there = (column > 0, column < columns - 1, row > 0, rank + columns < ranks)
        around = (rank - 1, rank + 1, rank - columns, rank + columns)
        return [other for other, known in zip(around, there, strict=True) if known]

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
    assert listed(structure(16, halo(16, 4)), range(9)) == [
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
    made = structure(4, halo(4, 2))
    *_, computing, waiting = listed(made, range(9), range(9))
    assert computing == {"do": "compute", "seconds": pytest.approx([1e-3, 2e-3, 3e-3, 4e-3])}
    assert waiting == {"do": "waitall"}
    assert len(listed(made, range(9), [3])) == 9


def test_calls_are_those_of_most_executions_and_times_their_means():
    step = Step(
        lambda rank, execution: (
            [("send", 1, 8 + (execution == 2), 0)] if rank == 0 else [("recv", 0, 0)]
        ),
        seconds=lambda _, execution: execution * 1.0,
    )
    table = PlaceTable(structure(2, [Repeat(4, [step])]))
    found = table.rows([0], [0])
    assert found.executions.tolist() == [0, 1, 3]
    assert found.calls[0] == {"do": "compute", "seconds": pytest.approx([4 / 3, 4 / 3])}
    assert {row["bytes"] for row in found.calls[1:]} == {8}
    last = table.rows([0], among=np.array([2]))
    assert last.executions.tolist() == [2]
    assert {row["bytes"] for row in last.calls} == {9}


def test_what_a_list_cannot_say_is_told():
    steps = [
        Step(lambda rank, _: [("irecv", 1 - rank, 0), ("isend", 1 - rank, 8, 0)]),
        Step(lambda *_: [("waitall",)], "MPI_Waitall"),
    ]
    table = PlaceTable(structure(2, steps))
    for place, why in (
        (0, "rank 0 leaves requests open behind the last place"),
        (1, "MPI_Waitall of rank 0 completes a request of before the first place"),
    ):
        found = table.rows([place])
        assert (found.calls, found.why) == ([], why)


def test_a_wait_names_the_request_that_is_not_the_oldest():
    steps = [
        Step(lambda rank, _: [("irecv", 1 - rank, 0), ("isend", 1 - rank, 8, 0)]),
        Step(lambda *_: [("wait", 1)], "MPI_Wait"),
        Step(lambda *_: [("wait", 0)], "MPI_Wait"),
    ]
    made = structure(2, steps)
    calls = listed(made, range(3))
    assert calls[2:] == [{"do": "wait", "request": 1}, {"do": "wait"}]
    assert carried_out(calls, 2) == done(made, range(3))


def test_partners_without_a_formula_are_listed_by_rank():
    goal = np.random.default_rng(5).permutation(16)
    steps = [
        Step(lambda rank, _: [("isend", int(goal[rank]), 8 * (rank % 2 + 1), 0)]),
        Step(lambda rank, _: [("recv", int(np.argsort(goal)[rank]), 0)]),
        Step(lambda *_: [("waitall",)], "MPI_Waitall"),
    ]
    made = structure(16, steps)
    calls = listed(made, range(3))
    assert calls == [
        {"do": "isend", "to": goal.tolist(), "bytes": [8, 16] * 8},
        {
            "do": "recv",
            "from": np.argsort(goal).tolist(),
            "bytes": [8 * (rank % 2 + 1) for rank in np.argsort(goal)],
        },
        {"do": "waitall"},
    ]
    assert carried_out(calls, 16) == done(made, range(3))


def test_tags_are_kept_where_messages_overtake_each_other():
    steps = [
        Step(lambda rank, _: [("isend", 1, 8, 7), ("isend", 1, 16, 9)] if rank == 0 else []),
        Step(lambda rank, _: [("recv", 0, 9), ("recv", 0, 7)] if rank == 1 else []),
        Step(lambda rank, _: [("waitall",)] if rank == 0 else [], "MPI_Waitall"),
    ]
    calls = listed(structure(2, steps), range(3))
    assert [call.get("tag") for call in calls] == [7, 9, 9, 7, None]


def test_the_order_in_which_messages_come_makes_no_other_execution():
    # Calls that post, send and wait at once, as exchanges between neighbours do.
    def does(rank, execution):
        others = [(rank + 1) % 4, (rank - 1) % 4]
        begun = [("irecv", p, 0) for p in others] + [("isend", p, 8, 0) for p in others]
        waits = [0, 0, 0, 0] if (rank + execution) % 2 else [1, 0, 0, 0]
        return begun + [("wait", k) for k in waits]

    found = PlaceTable(structure(4, [Repeat(6, [Step(does)])])).rows([0])
    assert found.executions.tolist() == [*range(6)]


@given(programs())
def test_a_list_does_what_was_done(made):
    table = PlaceTable(made)
    for leaf in leaves(made.nest):
        found = table.rows(leaf.places)
        assert not found.why
        first = int(found.executions[0])
        wanted = done(made, leaf.places, first)
        assert carried_out(found.calls, made.program.processes) == wanted


def done(made, places, execution=0):
    """Operations of each rank at an execution of places, in the words of `carried_out`."""
    program, events = made.program, made.events
    wanted = np.isin(made.place, list(places)) & (made.execution == execution)
    found = []
    for rank in range(program.processes):
        mine = []
        for event in np.flatnonzero(wanted & (events.sequence == rank)).tolist():
            rows = range(events.first[event], events.first[event + 1])
            ops = [(Op(program.kind[row]), int(program.target[row])) for row in rows]
            together = events.names[events.name[event]] == "MPI_Waitall"
            mine += operations(program, ops, together)
        found.append(mine)
    return found


def operations(program, ops, together):
    """The same of one event; waits that are one call complete a set."""
    sender, receiver, size = (
        column.tolist()
        for column in (program.messages.sender, program.messages.receiver, program.messages.size)
    )
    found = []
    while ops:
        kind, row = ops.pop(0)
        if kind in (Op.WAIT_RECEIVE, Op.WAIT_SEND):
            waits = [(kind, row)]
            while together and ops:
                waits.append(ops.pop(0))
            found.append(
                (
                    "wait",
                    sorted(
                        ("sent", receiver[r], 0)
                        if k == Op.WAIT_SEND
                        else ("received", sender[r], 0)
                        for k, r in waits
                    ),
                )
            )
        elif kind == Op.POST and ops[1:2] == [(Op.WAIT_RECEIVE, row)] and ops[0][0] == Op.SEND:
            to = ops[0][1]
            found.append(("sendrecv", receiver[to], sender[row], size[to], 0))
            del ops[:2]
        elif kind in (Op.SEND, Op.ISEND):
            name = "send" if kind == Op.SEND else "isend"
            found.append((name, receiver[row], size[row], 0))
        else:
            found.append(("recv" if kind == Op.RECEIVE else "irecv", sender[row], 0))
    return found
