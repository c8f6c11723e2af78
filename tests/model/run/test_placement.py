"""Placement, grids and requirements: figures, and the words of every refusal."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import UsageError
from popmodel.machines.quantity import Cache, Topology
from popmodel.model import signatures as signature
from popmodel.model.run.feasible_splits import best_grid, divisors
from popmodel.model.run.process_placement import Allocation, ImpossibleSplit, place, remarks
from popmodel.model.signature.application import check_requirements, names

NODES = Topology(4, 16, 2, 2, (Cache("L3", 2**24, 8),))
HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'
BODY = "[[program]]\nserial = { trip = 5 }\n"


@pytest.mark.parametrize(
    ("processes", "threads", "per_node", "nodes"),
    [(16, 4, 4, 4), (64, 1, 16, 4), (4, 16, 1, 4), (1, 1, 1, 1), (9, 5, 3, 3), (3, 4, 3, 1)],
)
def test_place(processes: int, threads: int, per_node: int, nodes: int) -> None:
    placement = place(processes, threads, NODES)
    assert (placement.per_node, placement.nodes) == (per_node, nodes)
    assert placement.cores == processes * threads


@pytest.mark.parametrize(
    ("processes", "threads", "words", "hint"),
    [
        (0, 1, "processes: must be at least 1, not 0", "at least 1"),
        (1, 0, "threads: must be at least 1, not 0", "at least 1"),
        (2, 32, "2 x 32 is not possible: a node has 16 cores", "at most 16 threads"),
        (9, 16, "needs 9 nodes, the profile has 4", "at most 4 processes of 16 threads"),
    ],
)
def test_refusals(processes: int, threads: int, words: str, hint: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        place(processes, threads, NODES)
    assert caught.value.exit_status == 2
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("processes", "threads", "allocation", "words", "hint"),
    [
        (8, 1, Allocation(nodes=0), "nodes: must be at least 1, not 0", "ask for at least 1"),
        (
            8,
            1,
            Allocation(cores_per_node=17),
            "17 cores per node are not possible: a node has 16",
            "ask for 1 to 16 cores per node",
        ),
        (
            2,
            8,
            Allocation(cores_per_node=4),
            "2 x 8 is not possible: 4 cores of a node may be used, fewer than 8 threads",
            "at most 4 threads per process",
        ),
        (
            9,
            1,
            Allocation(nodes=4),
            "9 x 1 is not possible: 3 per node fill only 3 of 4 nodes",
            None,
        ),
        (3, 1, Allocation(nodes=4), "3 x 1 is not possible: 4 nodes for 3 proc", None),
        (
            40,
            4,
            Allocation(nodes=5),
            "40 x 4 is not possible: a node has room for 4 processes of 4 threads, 5 nodes would",
            "at most 20 processes of 4 threads",
        ),
        (
            2**20 + 1,
            1,
            Allocation(nodes=2**19),
            "no more than 1048576 processes are modelled",
            "at most 1048576 processes",
        ),
    ],
)
def test_allocations_are_refused(
    processes: int, threads: int, allocation: Allocation, words: str, hint: str | None
) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        place(processes, threads, NODES, allocation)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("processes", "threads", "owned", "active", "serial", "sockets"),
    [
        (4, 4, 4, 8, 2, 1),  # full
        (2, 4, 8, 4, 1, 1),  # one process on each socket
        (1, 4, 4, 4, 1, 1),  # threads stay together
        (3, 4, 4, 8, 2, 1),  # five cores each would be one across the sockets
        (3, 5, 5, 8, 2, 2),  # 15 of 16 cores in use: cannot be avoided
        (1, 12, 16, 6, 1, 2),  # six on each socket
        (1, 9, 16, 5, 1, 2),
        (1, 16, 16, 8, 1, 2),
        (4, 1, 4, 2, 2, 1),
    ],
)
def test_cores_of_a_process(
    processes: int, threads: int, owned: int, active: int, serial: int, sockets: int
) -> None:
    placement = place(processes, threads, NODES, Allocation(nodes=1))
    assert placement.cores_per_process == owned
    assert (placement.active, placement.active_serial) == (active, serial)
    assert placement.sockets_spanned == sockets


def spread_out(cores: range, threads: int, sockets: int) -> list[int]:
    """Cores of threads that are dealt out to sockets in turns, and apart from each other there."""
    size = len(cores) // sockets
    found = []
    for socket in range(sockets):
        share = (socket + 1) * threads // sockets - socket * threads // sockets
        found += [cores[socket * size + turn * size // share] for turn in range(share)]
    return found


@given(
    st.integers(1, 300),
    st.integers(1, 64),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 16),
    st.none() | st.integers(1, 40),
)
def test_a_placement_is_possible_on_the_machine(
    processes: int, threads: int, sockets: int, split: int, size: int, nodes: int | None
) -> None:
    """Against every core of a node written out."""
    topology = Topology(1000, sockets * split * size, sockets, sockets * split, ())
    try:
        placement = place(processes, threads, topology, Allocation(nodes=nodes))
    except ImpossibleSplit:
        return
    assert placement.nodes == (nodes or placement.nodes)
    assert (placement.nodes - 1) * placement.per_node < processes
    assert processes <= placement.nodes * placement.per_node
    first = [rank * placement.cores_per_process for rank in range(placement.per_node)]
    if placement.per_socket is not None:
        assert placement.per_socket * sockets == placement.per_node
        assert placement.per_socket * placement.cores_per_process <= split * size
        first = [
            socket * split * size + rank * placement.cores_per_process
            for socket in range(sockets)
            for rank in range(placement.per_socket)
        ]
    owned = [range(core, core + placement.cores_per_process) for core in first]
    assert max(cores[-1] for cores in owned) < topology.cores_per_node
    used = [cores[:threads] for cores in owned]
    if placement.places == "sockets":
        assert placement.cores_per_process % (split * size) == 0
        turns = range(placement.cores_per_process // (split * size))
        used = [spread_out(cores, threads, len(turns)) for cores in owned]
    busy = [core for cores in used for core in cores]
    assert len(set(busy)) == placement.per_node * threads
    domains = [core // size for core in busy]
    assert placement.active == max(domains.count(domain) for domain in domains)
    masters = [cores[0] // size for cores in owned]
    assert placement.active_serial == max(masters.count(domain) for domain in masters)
    assert placement.sockets_spanned == max(
        len({core // (size * split) for core in cores}) for cores in used
    )
    fits = topology.cores_per_socket // threads * sockets >= placement.per_node
    if placement.per_node % sockets == 0 and fits:
        assert placement.sockets_spanned == 1
    if placement.per_node % topology.domains == 0:  # processes are scattered as the formula says
        assert placement.active == math.ceil(len(busy) / topology.domains)


def test_threads_that_are_apart_are_noted() -> None:
    assert remarks(place(4, 4, NODES), NODES) == []
    assert remarks(place(1, 12, NODES), NODES) == [
        "the threads of a process span 2 sockets: each has 8 cores"
    ]
    assert remarks(place(5, 3, NODES), NODES) == [
        "the threads of a process span 2 sockets: 5 processes of 3 threads on a node do not fit "
        "otherwise"
    ]
    fine = Topology(1, 16, 1, 4, ())
    assert remarks(place(1, 8, fine), fine) == [
        "the threads of a process span 2 memory domains: each has 4 cores"
    ]


def test_what_binding_does_is_noted() -> None:
    spread = Allocation(bind="spread")
    assert remarks(place(1, 4, NODES, spread), NODES) == [
        "the threads of a process span 2 sockets: they are bound to be apart (spread)"
    ]
    assert remarks(place(2, 4, NODES, spread), NODES) == []
    loose = place(1, 4, NODES, Allocation(bind="none"))
    assert remarks(loose, NODES) == [
        "nothing binds threads to cores: taken to be shared out evenly over 2 memory domains; what "
        "moving between cores costs is not modelled"
    ]
    one = Topology(1, 16, 1, 1, ())
    assert "evenly; what" in remarks(place(1, 4, one, Allocation(bind="none")), one)[0]


def test_threads_that_nothing_binds_are_shared_out_evenly() -> None:
    loose = Allocation(nodes=1, bind="none")
    found = place(3, 3, NODES, loose)
    assert (found.active, found.active_serial) == (5, 2)  # 9 threads, 3 masters on 2 domains
    assert (found.sockets_spanned, found.domains_spanned) == (2, 2)
    assert found.cache_threads == (5,)  # 9 threads on 2 caches
    assert sum(seat.processes for seat in found.seats) == found.per_node
    assert all(sum(seat.threads) == pytest.approx(3) for seat in found.seats)
    single = place(16, 1, NODES, loose)
    assert (single.active, single.active_serial, single.domains_spanned) == (8, 8, 1)


@pytest.mark.parametrize(
    ("processes", "threads", "bind", "busy"),
    [
        (1, 1, "close", (1, 1, 1)),
        (2, 1, "close", (1, 1, 1)),  # on two sockets
        (4, 4, "close", (1, 2, 8)),
        (16, 1, "close", (1, 2, 8)),
        (1, 16, "close", (1, 2, 8)),
        (3, 4, "close", (1, 2, 8)),  # two of them on one socket
        (1, 12, "close", (1, 2, 6)),  # six threads on each socket
        (1, 4, "spread", (1, 1, 2)),
        (1, 2, "none", (1, 1, 1)),
        (3, 3, "none", (1, 2, 5)),
    ],
)
def test_threads_that_share_the_fullest_cache(
    processes: int, threads: int, bind: str, busy: tuple[int, ...]
) -> None:
    caches = (Cache("L1", 2**15, 1), Cache("L2", 2**20, 2), Cache("L3", 2**24, 8))
    node = Topology(1, 16, 2, 2, caches)
    assert place(processes, threads, node, Allocation(bind=bind)).cache_threads == busy


def test_seats_count_the_threads_of_processes_by_domain() -> None:
    found = place(3, 5, NODES, Allocation(nodes=1))
    assert [(seat.master, seat.threads, seat.processes) for seat in found.seats] == [
        (0, (5, 0), 1),
        (0, (3, 2), 1),
        (1, (0, 5), 1),
    ]
    assert [seat.processes for seat in place(16, 1, NODES).seats] == [8, 8]


@pytest.mark.parametrize(("processes", "active"), [(2, 1), (6, 3), (10, 5), (12, 6), (14, 7)])
def test_sockets_of_a_node_that_is_not_full_have_as_many_processes(
    processes: int, active: int
) -> None:
    placement = place(processes, 1, NODES)
    assert placement.active == active
    balanced = placement.per_socket == active or placement.cores_per_process * active >= 8
    assert balanced


def test_processes_that_would_straddle_sockets_are_shared_out_by_socket() -> None:
    """4 cores times 4 leave two of 18: the fifth process begins on the next socket."""
    wide = Topology(4, 36, 2, 2, ())
    placement = place(8, 4, wide)
    assert (placement.per_socket, placement.sockets_spanned, placement.active) == (4, 1, 16)
    uneven = place(5, 4, wide)  # six cores each, three of them on the first socket
    assert (uneven.per_socket, uneven.cores_per_process, uneven.sockets_spanned) == (None, 6, 1)


@given(st.integers(1, 2000), st.integers(1, 3), st.booleans())
def test_best_grid_has_the_least_surface(processes: int, dimensions: int, wraps: bool) -> None:
    """Against all grids, one by one."""
    cells = (40.0, 70.0, 100.0)[:dimensions]
    grids = [
        grid
        for grid in itertools.product(divisors(processes), repeat=dimensions)
        if math.prod(grid) == processes
        and all(count <= size for count, size in zip(grid, cells, strict=True))
    ]
    if not grids:
        with pytest.raises(ImpossibleSplit, match="each process needs at least one"):
            best_grid(processes, cells, (wraps,) * dimensions)
        return

    def surface(grid: tuple[int, ...]) -> float:
        block = [size / count for size, count in zip(cells, grid, strict=True)]
        faces = [math.prod(block) / side for side in block]
        sides = [0 if n == 1 else 2 if wraps or n > 2 else 1 for n in grid]
        return sum(n * face for n, face in zip(sides, faces, strict=True))

    found = best_grid(processes, cells, (wraps,) * dimensions)
    assert found in grids
    assert surface(found) == pytest.approx(min(map(surface, grids)))


@given(st.integers(1, 5000))
def test_divisors(number: int) -> None:
    assert divisors(number) == [d for d in range(1, number + 1) if number % d == 0]


def test_requirements_of_processes_and_threads() -> None:
    cannon = signature.load("cannon")
    check_requirements(cannon, 9, 1, {"N": 100.0, "w": 8.0})
    with pytest.raises(ImpossibleSplit, match=r"with 12 processes: it requires is_square"):
        check_requirements(cannon, 12, 1, {"N": 100.0, "w": 8.0})
    even = signature.from_text(HEAD + "[limits]\nrequire = ['T % 2 == 0']\n" + BODY)
    with pytest.raises(ImpossibleSplit, match=r"with 1 process of 3 threads: it requires T % 2"):
        check_requirements(even, 1, 3, {})


def test_a_grid_must_have_all_processes() -> None:
    demo = signature.from_text(HEAD + "[decomp]\ngrid = [2, 3]\n" + BODY)
    with pytest.raises(ImpossibleSplit, match="its grid is 2 x 3 = 6 processes, not 8") as caught:
        names(demo, 8, 1, {})
    assert caught.value.processes == 6
    odd = signature.from_text(HEAD + "[decomp]\ngrid = ['P/2', 2]\n" + BODY)
    with pytest.raises(
        ImpossibleSplit, match=r"a grid extent is 'P/2' = 2\.5, which is not a number"
    ):
        names(odd, 5, 1, {})


def test_every_process_needs_a_cell() -> None:
    small = signature.from_text(HEAD + "[decomp]\nglobal = [4, 5]\n" + BODY)
    assert names(small, 20, 1, {})[1] == (4, 5)
    with pytest.raises(ImpossibleSplit, match="no grid of 7 processes fits 4 x 5 cells: each"):
        names(small, 7, 1, {})
    given_grid = "[decomp]\nglobal = [4, 5]\ngrid = ['P', 1]\n"
    with pytest.raises(ImpossibleSplit, match="5 x 1 processes has more processes than cells"):
        names(signature.from_text(HEAD + given_grid + BODY), 5, 1, {})
