"""Grids and patterns of programs whose communication is known."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from structure.scripts import Repeat, Step, structure
from structure.strategies import programs

from popmodel.structure.patterns import find_communication


def coordinates(rank, dims):
    return np.unravel_index(rank, dims)


def neighbour(rank, dims, periodic, move):
    """Rank one step along a move; None where there is none."""
    where = []
    for at, step, extent, wraps in zip(coordinates(rank, dims), move, dims, periodic, strict=True):
        to = at + step
        if not 0 <= to < extent:
            if not wraps:
                return None
            to %= extent
        where.append(to)
    return int(np.ravel_multi_index(where, dims))


def faces(dimensions):
    for axis in range(dimensions):
        for step in (1, -1):
            yield tuple(step if other == axis else 0 for other in range(dimensions))


def everyone(dimensions):
    yield from (move for move in product((1, 0, -1), repeat=dimensions) if any(move))


def at_once(dims, periodic, size=lambda _, move: 64 * (1 + abs(move[0])), moves=faces):
    """Post all receives, send all, wait for all, as one place each."""
    every = list(moves(len(dims)))

    def posts(rank, _):
        found = []
        for number, move in enumerate(every):
            back = neighbour(rank, dims, periodic, [-step for step in move])
            if back is not None:
                found.append(("irecv", back, number))
        return found

    def sends(rank, _):
        found = []
        for number, move in enumerate(every):
            to = neighbour(rank, dims, periodic, move)
            if to is not None:
                found.append(("isend", to, size(rank, move), number))
        return found

    return [
        Step(posts, "MPI_Startall"),
        Step(sends, "MPI_Startall"),
        Step(lambda *_: [("waitall",)], "MPI_Waitall"),
    ]


GRIDS = [
    ((6,), (True,)),
    ((4, 4), (False, False)),
    ((3, 5), (False, True)),
    ((2, 3), (True, True)),
    ((2, 2), (False, False)),
    ((2, 2), (True, True)),
    ((2, 3, 4), (True, False, True)),
    ((2, 2, 2), (False, False, False)),
]


def test_a_halo_is_found_with_its_grid():
    for dims, periodic in GRIDS:
        made = structure(int(np.prod(dims)), [Repeat(3, at_once(dims, periodic))])
        found = find_communication(made)
        assert [(grid.dims, grid.periodic) for grid in found.grids] == [(dims, periodic)]
        assert found.grids[0].confidence == 1.0
        (pattern,) = found.patterns
        assert (pattern.kind, pattern.why) == ("halo", "")
        assert pattern.executions == 3
        moves = {way["move"] for way in pattern.facts["directions"]}
        assert moves == set(faces(len(dims)))


def test_edges_and_corners_are_told_from_faces():
    dims = (3, 3, 3)
    made = structure(
        int(np.prod(dims)),
        at_once(dims, [False] * len(dims), lambda _, m: 10 ** (4 - sum(map(abs, m))), everyone),
    )
    (pattern,) = find_communication(made).patterns
    assert pattern.kind == "halo"
    assert pattern.exact
    assert len(pattern.facts["directions"]) == 3 ** len(dims) - 1
    for way in pattern.facts["directions"]:
        assert way["bytes"] == 10 ** (4 - sum(map(abs, way["move"])))


def test_sizes_that_differ_between_ranks_are_told():
    made = structure(9, at_once((3, 3), (False, False), lambda rank, _: 100 + rank))
    found = find_communication(made)
    assert found.grids[0].dims == (3, 3)
    (pattern,) = found.patterns
    assert (pattern.kind, pattern.exact) == ("halo", False)
    assert pattern.why == "sizes differ between processes"


def wavefront(dims, signs):
    """Receive from the ranks before, compute, send to those behind, in blocks."""
    moves = [
        tuple(sign if other == axis else 0 for other in range(len(dims)))
        for axis, sign in enumerate(signs)
        if sign
    ]
    still = [False] * len(dims)

    def receive(move):
        def does(rank, _):
            source = neighbour(rank, dims, still, [-step for step in move])
            return [] if source is None else [("recv", source, 0)]

        return Step(does, "MPI_Recv")

    def send(move):
        def does(rank, _):
            to = neighbour(rank, dims, still, move)
            return [] if to is None else [("send", to, 40, 0)]

        return Step(does, "MPI_Send")

    return [*map(receive, moves), *map(send, moves)]


def test_a_wavefront_is_found_with_its_way_and_blocks():
    cases = [((4,), (-1,)), ((3, 4), (1, 1)), ((3, 4), (1, -1)), ((2, 2), (1, 1))]
    for dims, signs in [*cases, ((3, 2, 2), (1, 0, -1))]:
        steps = [Repeat(7, wavefront(dims, signs)), *at_once(dims, [False] * len(dims))]
        found = find_communication(structure(int(np.prod(dims)), steps))
        assert found.grids[0].dims == dims
        pipeline, halo = found.patterns
        assert (pipeline.kind, pipeline.exact, halo.kind) == ("pipeline", True, "halo")
        crossed = [axis for axis, sign in enumerate(signs) if sign]
        assert pipeline.facts["crosses"] == crossed
        ways = {1: "forward", -1: "backward"}
        assert pipeline.facts["direction"] == [ways[signs[axis]] for axis in crossed]
        assert pipeline.facts["blocks"] == 7


def pairs(goal, size=256):
    """Every rank exchanges with its partner; with itself not at all."""
    return [
        Step(lambda rank, _: [("irecv", int(goal(rank)), 0)] if goal(rank) != rank else []),
        Step(lambda rank, _: [("send", int(goal(rank)), size, 0)] if goal(rank) != rank else []),
        Step(lambda *_: [("waitall",)], "MPI_Wait"),
    ]


def test_a_root_that_all_send_to_is_found():
    root = 3
    gather = [
        Step(lambda rank, _: [("send", root, 8, 0)] if rank != root else []),
        Step(
            lambda rank, _: (
                [("recv", other, 0) for other in range(6) if other != root] if rank == root else []
            )
        ),
    ]
    found = find_communication(structure(6, gather))
    assert not found.grids
    (pattern,) = found.patterns
    assert pattern.kind == "root"
    assert pattern.facts == {"root": root, "way": "from all", "times": [1], "bytes": [8]}


def test_what_fits_nothing_stays_a_list_with_its_volume():
    rng = np.random.default_rng(3)
    goal = rng.permutation(12)
    made = structure(
        12,
        [
            Step(lambda rank, _: [("isend", int(goal[rank]), 10 + rank, 0)]),
            Step(lambda rank, _: [("recv", int(np.argsort(goal)[rank]), 0)]),
            Step(lambda *_: [("waitall",)], "MPI_Waitall"),
        ],
    )
    found = find_communication(made)
    assert not found.grids
    assert found.why == "no grid of the ranks explains who sends to whom"
    (pattern,) = found.patterns
    assert (pattern.kind, pattern.exact) == ("list", False)
    assert (pattern.messages, pattern.bytes) == (12, sum(range(10, 22)))
    assert pattern.facts["per_process"] == [1, 1]
    assert sum(each["messages"] for each in pattern.facts["by_offset"]) == 12


def test_of_two_ranks_every_reading_is_told():
    found = find_communication(structure(2, pairs(lambda rank: 1 - rank)))
    assert found.grids[0].dims == (2,)
    assert found.why == "two processes are neighbours in whatever grid"
    (pattern,) = found.patterns
    assert pattern.kind == "halo"
    assert {"butterfly", "pairwise"} <= set(pattern.facts["also"])


def test_no_messages_make_no_grid():
    made = structure(4, [Step(lambda *_: [("allreduce", 0, 8, -1)], "MPI_Allreduce")])
    found = find_communication(made)
    assert not found.grids
    assert found.why == "no process sends messages to another"
    (pattern,) = found.patterns
    assert (pattern.kind, pattern.facts["op"], pattern.facts["bytes_max"]) == (
        "collective",
        "allreduce",
        8,
    )
    assert pattern.facts["comm"] == "all"
    assert pattern.exact


def test_a_collective_that_is_called_at_two_places_is_one():
    """As in ``if (rank == 0) MPI_Reduce(MPI_IN_PLACE, ...) else MPI_Reduce(...)``."""
    made = structure(
        4,
        [
            Step(lambda rank, _: [("allreduce", 0, 8, -1)] if rank == 0 else [], "MPI_Reduce"),
            Step(lambda rank, _: [("allreduce", 0, 8, -1)] if rank else [], "MPI_Reduce"),
        ],
    )
    (pattern,) = find_communication(made).patterns
    assert (pattern.exact, pattern.executions) == (True, pattern.messages)
    assert pattern.places == (0, 1)


def test_collectives_of_rows_and_columns_have_a_formula_of_the_rank():
    rows = {10 + row: range(4 * row, 4 * row + 4) for row in range(3)}
    columns = {20 + column: range(column, 12, 4) for column in range(4)}
    made = structure(
        12,
        [
            Step(lambda rank, _: [("bcast", 10 + rank // 4, 100, rank // 4 * 4)], "MPI_Bcast"),
            Step(lambda rank, _: [("allreduce", 20 + rank % 4, 8, -1)], "MPI_Allreduce"),
        ],
        communicators=rows | columns,
    )
    first, second = find_communication(made).patterns
    assert (first.facts["comm"], first.facts["roots"]) == ("rank // 4", [0, 4, 8])
    assert second.facts["comm"] == "rank % 4"
    assert first.messages == 3
    assert second.messages == 4
    assert first.exact
    assert second.exact


def test_sizes_that_change_from_step_to_step_are_listed():
    def step(move):
        def does(rank, execution):
            to = neighbour(rank, (8,), (True,), (move,))
            source = neighbour(rank, (8,), (True,), (-move,))
            return [("sendrecv", to, source, 8 << execution % 3, 0)]

        return Step(does, "MPI_Sendrecv")

    (pattern,) = find_communication(structure(8, [Repeat(6, [step(1), step(-1)])])).patterns
    assert pattern.kind == "halo"
    assert [each["executions"] for each in pattern.facts["sizes"]] == [2, 2, 2]
    assert not pattern.exact
    assert pattern.why == "3 different sets of messages"


def test_a_program_that_arranges_its_ranks_anew_has_two_grids():
    steps = [
        Repeat(9, at_once((16,), (True,))),
        *at_once((4, 4), (False, False)),
    ]
    found = find_communication(structure(16, steps))
    assert [grid.dims for grid in found.grids] == [(16,), (4, 4)]
    assert sum(grid.confidence for grid in found.grids) == pytest.approx(1.0)
    assert [pattern.facts["dims"] for pattern in found.patterns] == [(16,), (4, 4)]


def test_an_exchange_that_is_repeated_in_an_execution_is_one_pattern():
    def does(rank, _):
        around = [other for other in (rank - 1, rank + 1) if 0 <= other < 4]
        return [
            *(("irecv", other, 0) for other in around for _ in range(3)),
            *(("isend", other, 8, 0) for other in around for _ in range(3)),
            ("waitall",),
        ]

    (pattern,) = find_communication(structure(4, [Step(does)])).patterns
    assert (pattern.kind, pattern.exact, pattern.messages) == ("halo", True, 18)
    assert pattern.facts["times"] == [3]


def test_patterns_that_take_turns_at_the_same_places_are_exact_each():
    def does(rank, execution):
        way = 1 if execution % 2 else -1
        found = [("recv", rank - way, 0)] if 0 <= rank - way < 4 else []
        return found + ([("send", rank + way, 8, 0)] if 0 <= rank + way < 4 else [])

    def seldom(rank, execution):
        return does(rank, 1) if execution % 2 else []

    turns = find_communication(structure(4, [Repeat(6, [Step(does)])])).patterns
    assert {(one.kind, one.executions, one.exact) for one in turns} == {("shift", 3, True)}
    assert len(turns) == 2
    (pattern,) = find_communication(structure(4, [Repeat(6, [Step(seldom)])])).patterns
    assert (pattern.exact, pattern.why) == (False, "at 3 of 6 executions only")


def test_of_requests_that_cross_iterations_the_messages_are_read():
    # the loop of a ring begins with the waits of the iteration before
    sizes = {0: 64, 1: 128}

    def post(rank, execution):
        return [
            ("irecv", (rank - 1) % 6, 0),
            ("isend", (rank + 1) % 6, sizes[execution % 2], 0),
        ]

    made = structure(
        6,
        [
            Step(post, "MPI_Isend"),
            Repeat(3, [Step(lambda *_: [("waitall",)], "MPI_Waitall"), Step(post, "MPI_Isend")]),
            Step(lambda *_: [("waitall",)], "MPI_Waitall"),
        ],
    )
    found = find_communication(made)
    assert found.grids[0].dims == (6,)
    assert {pattern.kind for pattern in found.patterns} == {"shift"}
    assert sum(pattern.messages for pattern in found.patterns) == 24


@given(programs())
def test_patterns_have_all_messages_once(made):
    found = find_communication(made)
    assert sum(pattern.messages for pattern in found.patterns) == len(made.program.messages)
    total = int(made.program.messages.size.sum())
    assert sum(pattern.bytes for pattern in found.patterns) == total
    assert all(pattern.exact == (not pattern.why) for pattern in found.patterns)
    assert found.why or found.grids
