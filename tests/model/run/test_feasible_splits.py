"""What a refusal offers instead: every choice that a hint names is tried."""

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from model.demo import machine, program

from popmodel.machines import profile
from popmodel.machines.profile import Profile, from_document
from popmodel.model import signatures as signature
from popmodel.model.predictor import Study
from popmodel.model.run import feasible_splits
from popmodel.model.run.process_placement import Allocation, ImpossibleSplit, place
from popmodel.model.signature.application import Signature
from popmodel.prediction.prediction import predict

CANNON = signature.load("cannon")
STENCIL = signature.load("stencil3d")
PRESET = profile.load(profile.DEFAULT_PRESET)
SERIAL = "[[program]]\nserial = { trip = 5 }\n"
FIXED = program(SERIAL, decomp="grid = [2, 3]")
EVEN = program(SERIAL, limits="require = ['T % 2 == 0', 'P < 40']")


def offered(hint: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Read splits and numbers of nodes from a hint."""
    splits = [(int(p), int(t)) for p, t in re.findall(r"(\d+) x (\d+)", hint)]
    return splits, [int(count) for count in re.findall(r"--nodes (\d+)", hint)]


def sized(nodes: int, cores: int, domains: int, memory: int) -> Profile:
    document = dict(machine().document)
    document["topology"] = dict(document["topology"]) | {
        "nodes": nodes,
        "cores_per_node": cores,
        "domains": domains,
        "memory_per_node": memory,
    }
    return from_document(document)


@pytest.mark.long
@given(
    st.sampled_from([CANNON, STENCIL, FIXED, EVEN]),
    st.integers(1, 3000),
    st.integers(1, 70),
    st.integers(1, 40),
    st.integers(1, 64),
    st.integers(1, 4),
    st.sampled_from([2**24, 2**28, 2**36]),
    st.none() | st.integers(1, 60),
    st.none() | st.integers(1, 64),
)
def test_what_a_hint_offers_works(
    application: Signature,
    processes: int,
    threads: int,
    nodes: int,
    cores: int,
    domains: int,
    memory: int,
    wanted: int | None,
    usable: int | None,
) -> None:
    assume(usable is None or usable <= cores)
    small = {"N": 240.0} if "N" in application.params else {}
    allocation = Allocation(wanted, usable)
    on = sized(nodes, cores, min(domains, cores), memory)
    study = Study(application, on, small, 0, 0, allocation=allocation)
    try:
        study.admit_or_advise(processes, threads)
    except ImpossibleSplit as error:
        splits, counts = offered(error.hint or "")
        for split in splits:
            assert split != (processes, threads)
            study.admit(*split)
        for count in counts:
            study.admit(processes, threads, Allocation(count, usable))


@pytest.mark.parametrize(
    ("application", "processes", "threads", "allocation", "message", "hint"),
    [
        (
            CANNON,
            5,
            1,
            Allocation(),
            "cannon cannot run with 5 processes: it requires is_square(P)",
            "possible: 4 x 1 or 9 x 1 (processes x threads)",
        ),
        (
            STENCIL,
            2,
            32,
            Allocation(),
            "2 x 32 is not possible: a node has 16 cores, fewer than 32 threads",
            "possible: 2 x 16 (processes x threads)",
        ),
        (
            STENCIL,
            100,
            16,
            Allocation(),
            "100 x 16 is not possible: it needs 100 nodes, the profile has 64",
            "possible: 64 x 16 (processes x threads), or --nodes 100 if the machine has as many",
        ),
        (
            STENCIL,
            2000,
            32,
            Allocation(),
            "2000 x 32 is not possible: a node has 16 cores, fewer than 32 threads",
            "possible: 64 x 16 (processes x threads)",
        ),
        (
            STENCIL,
            9,
            4,
            Allocation(nodes=4),
            "9 x 4 is not possible: 3 per node fill only 3 of 4 nodes",
            "possible: 8 x 4 or 10 x 4 (processes x threads), or --nodes 5",
        ),
        (
            FIXED,
            900,
            1,
            Allocation(),
            "demo: its grid is 2 x 3 = 6 processes, not 900",
            "possible: 6 x 1 (processes x threads)",
        ),
        (
            EVEN,
            4,
            3,
            Allocation(),
            "demo cannot run with 4 processes of 3 threads: it requires T % 2 == 0",
            "possible: 4 x 2 or 4 x 4 (processes x threads)",
        ),
    ],
)
def test_hints(
    application: Signature,
    processes: int,
    threads: int,
    allocation: Allocation,
    message: str,
    hint: str,
) -> None:
    with pytest.raises(ImpossibleSplit) as caught:
        predict(application, PRESET, processes, threads, allocation=allocation, draws=0)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_too_much_memory_offers_more_processes_or_more_nodes() -> None:
    with pytest.raises(ImpossibleSplit) as caught:
        predict(CANNON, PRESET, 16, 4, {"N": 8e4}, draws=0)
    assert caught.value.message == (
        "cannon needs 59.6 GiB on a node (4 processes), a node has 32 GiB"
    )
    assert caught.value.hint == "possible: 36 x 4 (processes x threads), or --nodes 8"


def test_nothing_possible_offers_nothing() -> None:
    never = program(SERIAL, limits="require = ['P < 0']")
    with pytest.raises(ImpossibleSplit) as caught:
        predict(never, PRESET, 4, 1, draws=0)
    assert caught.value.hint is None


@pytest.mark.parametrize("processes", [10**6, 10**9, 10**18])
def test_the_search_ends_soon(processes: int) -> None:
    never = program(SERIAL, limits="require = ['P < 0']")
    study = Study(never, PRESET, {}, 0, 0, allocation=Allocation(nodes=2**20))
    start = time.process_time()
    with pytest.raises(ImpossibleSplit):
        study.admit_or_advise(processes, 1)
    assert time.process_time() - start < 60  # a search through all would take years


def test_more_nodes_leave_more_room() -> None:
    topology = PRESET.topology
    counts = list(feasible_splits.more_nodes(16, 4, topology, Allocation()))
    assert counts == [4, 6, 8, 16]
    shares = [place(16, 4, topology, Allocation(nodes=count)).per_node for count in counts]
    assert shares == [4, 3, 2, 1]
    assert list(feasible_splits.more_nodes(16, 4, topology, Allocation(nodes=8))) == [16]
    assert list(feasible_splits.more_nodes(16, 32, topology, Allocation())) == []
