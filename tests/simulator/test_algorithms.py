"""Collectives as messages against their closed forms, against what collectives mean, and against
the same messages laid out in plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import algorithms as oracle
from oracle.algorithms import carry_out, exchanges

from popmodel.errors import ReplayError
from popmodel.network import collectives
from popmodel.network.network import PRESETS, Network
from popmodel.network.selection import NAMES, parse_selection
from popmodel.simulator import algorithms, engine, replay
from popmodel.simulator.build import ProgramBuilder
from popmodel.simulator.patterns import ALGORITHMS, Pattern
from popmodel.simulator.program import COLLECTIVES, Op, Program

ALPHA, BETA = 1e-6, 1e-9
# Every transfer keeps its sender busy: both ends of a rendezvous end with it.
NETWORK = PRESETS["alpha-beta"].with_(
    latency=ALPHA, bandwidth=1 / BETA, eager_threshold=0, collectives="algorithm"
)
PROCESSES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64)
SIZES = (8, 1000, 10**6)


def alone(kind: str, processes: int, sent: int, received: int, root: int = 0) -> Program:
    """A program of one collective that all enter at time 0."""
    program = ProgramBuilder(processes)
    c = program.collective(kind, sent, received, root=root)
    for p in range(processes):
        program.do(p, Op.COLLECTIVE, c)
    return program.build()


def rounds(p: int) -> int:
    return math.ceil(math.log2(p))


CLOSED_FORMS: dict[str, Callable[[int, int], float]] = {
    "barrier": lambda p, m: collectives.barrier_dissemination(
        p, collectives.Message(m, ALPHA, BETA, 0.0)
    ),
    "bcast": lambda p, m: collectives.bcast_binomial(p, collectives.Message(m, ALPHA, BETA, 0.0)),
    "reduce": lambda p, m: collectives.reduce_binomial(p, collectives.Message(m, ALPHA, BETA, 0.0)),
    "allreduce": lambda p, m: collectives.allreduce_recursive_doubling(
        p, collectives.Message(m, ALPHA, BETA, 0.0)
    ),
    "allgather": lambda p, m: (p - 1) * (ALPHA + BETA * m),
    "alltoall": lambda p, m: (p - 1) * (ALPHA + BETA * m),
    "scan": lambda p, m: rounds(p) * (ALPHA + BETA * m),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("processes", PROCESSES)
@pytest.mark.parametrize("kind", CLOSED_FORMS)
def test_replayed_messages_take_what_the_formula_says(kind: str, processes: int, size: int) -> None:
    runtime = replay(alone(kind, processes, size, size), NETWORK).runtime
    assert runtime == pytest.approx(CLOSED_FORMS[kind](processes, size), rel=1e-12, abs=1e-18)


@pytest.mark.parametrize("kind", ["gather", "scatter"])
@pytest.mark.parametrize("processes", [2, 4, 8, 16, 64])
def test_trees_of_powers_of_two_move_every_part_but_the_roots(kind: str, processes: int) -> None:
    runtime = replay(alone(kind, processes, 1000, 1000), NETWORK).runtime
    expected = rounds(processes) * ALPHA + (processes - 1) * BETA * 1000
    assert runtime == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("processes", [2, 3, 5, 8])
def test_reduce_scatter_exchanges_parts(processes: int) -> None:
    size = 840 * processes
    pairwise = NETWORK.with_(algorithms=(parse_selection("reduce_scatter=pairwise"),))
    runtime = replay(alone("reduce_scatter", processes, size, size // processes), pairwise).runtime
    assert runtime == pytest.approx((processes - 1) * (ALPHA + BETA * 840), rel=1e-12)


EVERY = [(kind, name) for kind, names in ALGORITHMS.items() for name in names]


def test_names_are_those_of_the_closed_forms_and_of_selections() -> None:
    for kind, names in ALGORITHMS.items():
        operation = "barrier" if kind == "init" else kind
        assert set(names) == set(NAMES[operation]) == set(oracle.ALGORITHMS[kind])
        assert next(iter(names)) == collectives.OPERATIONS[operation].default
        assert set(collectives.OPERATIONS[operation].algorithms) <= set(names)


@given(st.sampled_from(EVERY), st.integers(1, 40), st.integers(0, 39), st.integers(0, 400_000))
def test_every_rank_ends_with_what_the_operation_promises(
    which: tuple[str, str], members: int, root: int, size: int
) -> None:
    """Follows the data of every message, and who has contributed to it."""
    (kind, name), root = which, root % members
    steps = [exchanges(kind, members, root, r, name, size) for r in range(members)]
    items = {i for mine in steps for x in mine for i in x.content} or {0}
    held = [initially(kind, root, r, members, items) for r in range(members)]
    deliver(steps, held)
    everyone = set(range(members))
    match kind:
        case "bcast":
            assert all(held[r].keys() == items for r in everyone)
        case "reduce" | "gather":
            assert held[root] == {i: everyone if kind == "reduce" else {i} for i in held[root]}
            assert held[root].keys() >= items
        case "scatter":
            assert all(r in held[r] for r in everyone)
        case "allreduce" | "barrier" | "init":
            assert all(held[r] == dict.fromkeys(items, everyone) for r in everyone)
        case "allgather":
            assert all(held[r].keys() == everyone for r in everyone)
        case "alltoall":
            assert all((o, r) in held[r] for o in everyone for r in everyone)
        case "scan":
            assert all(held[r] == {0: set(range(r + 1))} for r in everyone)
        case "reduce_scatter":
            power = 1 << (members.bit_length() - 1)
            parts = power if name == "recursive_halving" else members
            assert all(held[r][r % parts] == everyone for r in everyone if members > 1)
        case _:
            raise AssertionError(kind)


def initially(kind: str, root: int, rank: int, members: int, items: set) -> dict:
    """Parts of vectors or blocks that a rank holds, and who has contributed to each."""
    if kind in ("gather", "allgather"):
        return {rank: {rank}}
    if kind == "alltoall":
        return {(rank, goal): {rank} for goal in range(members)}
    if kind == "bcast" and rank != root:
        return {}
    if kind == "scatter":
        return {i: {root} for i in range(members)} if rank == root else {}
    return {i: {rank} for i in items}


def deliver(steps: list[list[oracle.Exchange]], held: list[dict]) -> None:
    """Carry out all messages; one that nobody waits for, or no data for one, is an error."""
    at = [0] * len(steps)
    sent: dict[tuple[int, int], list[dict]] = {}
    offered = set()
    moved = True
    while moved:
        moved = False
        for r, mine in enumerate(steps):
            while at[r] < len(mine):
                x = mine[at[r]]
                if x.to >= 0 and (r, at[r]) not in offered:
                    offered.add((r, at[r]))
                    content = {i: set(held[r][i]) for i in x.content or held[r]}
                    sent.setdefault((r, x.to), []).append(content)
                if x.source >= 0:
                    if not sent.get((x.source, r)):
                        break
                    take(held[r], sent[x.source, r].pop(0), once=bool(x.content))
                at[r] += 1
                moved = True
    assert at == [len(mine) for mine in steps]
    assert not any(sent.values())


def take(held: dict, came: dict, *, once: bool) -> None:
    """What came is added to what is held, or replaces what it holds already; none counts twice."""
    for item, contributors in came.items():
        mine = held.get(item, set())
        assert not once or mine <= contributors or not mine & contributors
        held[item] = mine | contributors


@given(st.sampled_from(EVERY), st.integers(2, 40))
def test_messages_are_as_large_as_what_is_in_them(which: tuple[str, str], members: int) -> None:
    kind, name = which
    power = 1 << (members.bit_length() - 1)
    whole = {"allreduce": members if name == "ring" else power, "reduce": power}
    for r in range(members):
        for x in exchanges(kind, members, 0, r, name):
            if x.to < 0 or x.content in ((), (0,)):
                continue
            if name == "recursive_doubling" and members != power:
                continue  # which send the mean of one block and two
            if kind in ("allgather", "gather", "scatter", "alltoall"):
                assert x.share == len(x.content)
            elif kind in whole:
                assert x.share == pytest.approx(len(x.content) / whole[kind])
            elif kind == "bcast" and name == "scatter_allgather":
                assert x.share == pytest.approx(len(x.content) / members)


# -- closed forms --------------------------------------------------------------------------------

# Messages of all members arrive at once only for powers of two.
POWERS_ONLY = {("bcast", "scatter_allgather"), ("reduce", "rabenseifner"), ("alltoall", "bruck")}
WITHOUT = {"linear_posted", "chain"}  # of these there is none, or one of the best segments


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5, 8, 12, 16, 31])
@pytest.mark.parametrize(
    ("kind", "name"), [(k, n) for k, n in EVERY if k != "init" and n not in WITHOUT]
)
def test_a_selected_algorithm_takes_what_its_closed_form_says(
    kind: str, name: str, processes: int
) -> None:
    if (kind, name) in POWERS_ONLY and processes & (processes - 1):
        return
    whole = 5 * processes * 2**10
    program = alone(kind, processes, whole, whole)
    network = NETWORK.with_(algorithms=(parse_selection(f"{kind}={name}"),))
    size = 0 if kind == "barrier" else whole
    cost = collectives.OPERATIONS[kind].algorithms[name].cost
    expected = cost(processes, collectives.Message(size, ALPHA, BETA, 0.0))
    assert replay(program, network).runtime == pytest.approx(expected, rel=1e-12, abs=1e-18)


@pytest.mark.parametrize(("size", "segments"), [(8, 1), (65536, 1), (65537, 2), (10**6, 16)])
@pytest.mark.parametrize("processes", [2, 3, 9])
def test_a_chain_passes_segments_on(processes: int, size: int, segments: int) -> None:
    network = NETWORK.with_(algorithms=(parse_selection("bcast=chain"),))
    found = replay(alone("bcast", processes, size, size), network).runtime
    one = ALPHA + BETA * round(size / segments)
    assert found == pytest.approx((processes - 2 + segments) * one, rel=1e-12)


def test_a_root_that_posts_all_receives_takes_messages_at_once() -> None:
    network = NETWORK.with_(algorithms=(parse_selection("reduce=linear_posted"),))
    found = replay(alone("reduce", 9, 1000, 1000), network).runtime
    assert found == pytest.approx(ALPHA + BETA * 1000, rel=1e-12)


def test_the_size_decides_where_a_selection_says_so() -> None:
    network = NETWORK.with_(algorithms=(parse_selection("allreduce=ring:1000,reduce_bcast"),))
    for size, name in ((1000, "ring"), (1001, "reduce_bcast")):
        one = network.with_(algorithms=(parse_selection(f"allreduce={name}"),))
        program = alone("allreduce", 6, size, size)
        assert replay(program, network).runtime == replay(program, one).runtime


# -- the plain layout as the oracle ----------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), EVERY)
@pytest.mark.parametrize("processes", [*range(1, 18), 31, 32, 33])
def test_every_step_is_that_of_the_plain_layout(kind: str, name: str, processes: int) -> None:
    """Each hop in its turn: members that are late one after the other show who waits for whom."""
    size = 150_000 if name == "chain" else 1000
    for root in {0, 1 % processes, processes - 1}:
        program = ProgramBuilder(processes)
        c = program.collective(kind, size, 3 * size, root=root)
        for p in range(processes):
            program.compute(p, (p * 7919 % 101) * 1e-6)
            program.do(p, Op.COLLECTIVE, c)
        for network in (NETWORK, NETWORK.with_(eager_threshold=math.inf)):
            assert_same(program.build(), network, {kind: name})


def assert_same(
    program: Program, network: Network, algorithms: Mapping[str, str] = MappingProxyType({})
) -> None:
    selected = [f"{kind}={name}" for kind, name in algorithms.items() if kind != "init"]
    if "init" in algorithms and "barrier" not in algorithms:
        selected = [f"barrier={algorithms['init']}"]
    chosen = network.with_(algorithms=tuple(map(parse_selection, selected)))
    plain = replay(carry_out(program, algorithms), network)
    found = replay(program, chosen)
    assert found.end.tolist() == pytest.approx(plain.end.tolist(), rel=1e-13, abs=1e-18)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Collectives of several communicators, blocking or not, with messages between them."""
    processes = draw(st.integers(1, 9))
    program = ProgramBuilder(processes)
    everyone = range(processes)
    teams = [(0, list(everyone))]
    for _ in range(draw(st.integers(0, 2))):
        members = draw(st.permutations(everyone))[: draw(st.integers(1, processes))]
        teams.append((program.communicator(members), members))
    open_: list[tuple[int, int]] = []
    for _ in range(draw(st.integers(1, 6))):
        for p in everyone:
            program.compute(p, draw(st.integers(0, 5000)) * 1e-9)
        if processes > 1 and draw(st.booleans()):
            m = program.message(0, 1, draw(st.sampled_from([0, 5000])))
            program.do(0, Op.SEND, m)
            program.do(1, Op.RECEIVE, m)
        number, members = draw(st.sampled_from(teams))
        sizes = st.sampled_from([0, 8, 999, 5000])
        root = draw(st.sampled_from(members))
        kind = draw(st.sampled_from(COLLECTIVES))
        c = program.collective(kind, draw(sizes), draw(sizes), root, number)
        blocking = draw(st.booleans())
        for p in members:
            program.do(p, Op.COLLECTIVE if blocking else Op.ARRIVE, c)
            if not blocking:
                open_.append((p, c))
    for p, c in open_:
        program.compute(p, draw(st.integers(0, 50)) * 1e-9)
        program.do(p, Op.WAIT_COLLECTIVE, c)
    return program.build()


@settings(max_examples=300, deadline=None)
@given(
    programs(),
    st.sampled_from(["alpha-beta", "dimemas"]),
    st.sampled_from([0, 1000, math.inf]),
    st.sampled_from([0.0, 1e-6]),
    st.booleans(),
    st.fixed_dictionaries({k: st.sampled_from(list(v)) for k, v in ALGORITHMS.items()}),
)
def test_the_engine_carries_out_the_messages_of_the_plain_layout(
    program: Program,
    rules: str,
    eager: float,
    latency: float,
    listed: bool,
    algorithms: dict[str, str],
) -> None:
    network = NETWORK.with_(rules=rules, eager_threshold=eager, latency=latency)
    if not listed:  # as in traces without a list of communicators
        program = replace(program, communicators={})
    algorithms["barrier"] = algorithms.pop("init")
    assert_same(program, network, algorithms | {"init": algorithms["barrier"]})


def test_charges_do_not_grow_with_the_square_of_the_members() -> None:
    program = ProgramBuilder(2000)
    for _ in range(3):
        c = program.collective("alltoall", 8, 8)
        for p in range(2000):
            program.do(p, Op.COLLECTIVE, c)
    carried, messages = algorithms.carry_out(program.build())
    assert messages.size.tolist() == [8]
    assert carried.algorithm.tolist() == [0, 0, 0]
    assert carried.part_charge.tolist() == [0]
    assert len(carried.group_process) == 2000


def test_an_all_to_all_that_lacks_a_member_is_named() -> None:
    program = ProgramBuilder(6)
    c = program.collective("alltoall", 8, 8)
    for p in range(5):
        program.do(p, Op.COLLECTIVE, c)
    with pytest.raises(ReplayError) as caught:
        replay(program.build(), NETWORK)
    assert "5 of 6 ranks wait forever" in caught.value.message
    assert "alltoall of 6 members on all ranks" in caught.value.message


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("algorithm", 1, "collective 0 cannot be carried out as messages"),
        ("algorithm", -1, "collective 0 cannot be carried out as messages"),
        ("algorithm_offsets", 2, "offsets do not cover the rows"),
        ("part_pattern", len(Pattern), "collective 0 cannot be carried out as messages"),
        ("part_segments", 0, "collective 0 cannot be carried out as messages"),
        ("part_charge", 1, "collective 0 cannot be carried out as messages"),
        ("part_charge", -1, "collective 0 cannot be carried out as messages"),
        ("root_rank", 4, "collective 0 cannot be carried out as messages"),
        ("root_rank", -1, "collective 0 cannot be carried out as messages"),
        ("group", 1, "collective 0 cannot be carried out as messages"),
        ("group", -1, "collective 0 cannot be carried out as messages"),
        ("group_offsets", 3, "offsets do not cover the rows"),
        ("group_process", 5, "a process takes part in a collective of others"),
        ("group_rank", 4, "a rank is not in its group"),
        ("group_rank", -1, "a rank is not in its group"),
    ],
)
def test_the_core_refuses_what_it_cannot_carry_out(
    column: str, value: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(program: Program, _selections: tuple):
        carried, messages = algorithms.carry_out(program)
        getattr(carried, column)[-1] = value
        return carried, messages

    monkeypatch.setattr(engine, "carry_out", spoilt)
    with pytest.raises(ValueError, match=reason):
        replay(alone("bcast", 4, 8, 8), NETWORK)


@pytest.mark.parametrize(
    "column", ["root_rank", "group", "algorithm", "part_segments", "part_charge", "group_rank"]
)
def test_the_core_refuses_columns_of_different_lengths(
    column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(program: Program, _selections: tuple):
        carried, messages = algorithms.carry_out(program)
        return replace(carried, **{column: getattr(carried, column)[:-1]}), messages

    monkeypatch.setattr(engine, "carry_out", short)
    with pytest.raises(ValueError, match="columns of different lengths"):
        replay(alone("bcast", 4, 8, 8), NETWORK)


def test_ends_of_a_program_that_nobody_carries_out_are_refused() -> None:
    program = alone("bcast", 4, 8, 8)
    charges = engine.charge(program, NETWORK)
    with pytest.raises(ValueError, match="collective 0 cannot be carried out as messages"):
        engine.ends(program, charges)


# -- programs that are laid out --------------------------------------------------------------------


def test_bursts_of_collectives_of_one_member_move_on() -> None:
    program = ProgramBuilder(2)
    alone_ = program.communicator([0])
    c = program.collective("allreduce", 8, 8, communicator=alone_)
    program.compute(0, 1.0)
    program.do(0, Op.COLLECTIVE, c)
    program.compute(0, 2.0)
    m = program.message(0, 1, 8)
    program.do(0, Op.SEND, m)
    program.do(1, Op.RECEIVE, m)
    program.compute(0, 0.5)
    expanded = carry_out(program.build())
    assert expanded.operations == 2
    assert expanded.compute().tolist() == [3.5e9, 0.0]
    ideal = PRESETS["ideal"].with_(collectives="algorithm")
    assert replay(expanded, ideal).end.tolist() == [3.5, 3.0]
    assert replay(program.build(), ideal).end.tolist() == [3.5, 3.0]


def test_a_nonblocking_collective_exchanges_in_its_wait() -> None:
    program = ProgramBuilder(2)
    c = program.collective("allreduce", 8, 8)
    for p, (before, between) in enumerate([(1, 5), (4, 1)]):
        program.compute(p, before)
        program.do(p, Op.ARRIVE, c)
        program.compute(p, between)
        program.do(p, Op.WAIT_COLLECTIVE, c)
    ideal = PRESETS["ideal"].with_(collectives="algorithm", eager_threshold=0)
    assert replay(program.build(), ideal).end.tolist() == [6, 6]


def test_roots_are_ranks_of_their_communicator() -> None:
    program = ProgramBuilder(4)
    odd = program.communicator([3, 1])
    c = program.collective("bcast", 1000, 1000, root=1, communicator=odd)
    program.compute(1, 2.0)
    for p in (1, 3):
        program.do(p, Op.COLLECTIVE, c)
    expanded = carry_out(program.build())
    assert expanded.messages.sender.tolist() == [1]
    assert expanded.messages.receiver.tolist() == [3]


def test_members_of_an_unknown_communicator_are_those_that_take_part() -> None:
    program = ProgramBuilder(4)
    odd = program.communicator([1, 3])
    first, second = (
        program.collective("bcast", 1000, 1000, root=3, communicator=odd) for _ in range(2)
    )
    everyone = program.collective("barrier")
    for p in range(4):
        if p % 2:
            program.do(p, Op.COLLECTIVE, first)
            program.do(p, Op.ARRIVE, second)
            program.do(p, Op.WAIT_COLLECTIVE, second)
        program.do(p, Op.COLLECTIVE, everyone)
    known = program.build()
    expanded = carry_out(replace(known, communicators={}))
    assert expanded.messages.sender[:2].tolist() == [3, 3]
    assert expanded.messages.receiver[:2].tolist() == [1, 1]
    assert expanded.target.tolist() == carry_out(known).target.tolist()
