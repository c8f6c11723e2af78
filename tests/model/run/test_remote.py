"""Memory of other domains: figures by hand on two sockets and on four domains."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.two_sockets import machine, ratios

from popmodel.machines import profile
from popmodel.model.run.memory_domains import FIRST_TOUCH, UNBOUND, UNBOUND_LAW
from popmodel.model.run.memory_domains import demand as asked_of_memory
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import Allocation, ImpossibleSplit, place


def parameters(known: profile.Profile) -> Parameters:
    values = {**known.assumed, **known.quantities, UNBOUND_LAW: UNBOUND}
    return Parameters(known, lambda path: values[path].value)


TWO = machine(2, 2, {"0-1": ratios(0.5, 0.25), "1-0": ratios(0.5, 0.25)})
FOUR = machine(2, 4, {"0-1": ratios(0.8, 0.5), "0-2": ratios(0.4, 0.2)})


def demand(
    known: profile.Profile,
    split: tuple[int, int],
    touch: str,
    bind: str = "close",
    *,
    masters_only: bool = False,
) -> tuple[float, float, float]:
    where = place(*split, known.topology, Allocation(nodes=1, bind=bind))
    found = asked_of_memory(where, parameters(known), touch, masters_only=masters_only)
    return found.served, float(found.slowdown), float(found.connections)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("touch", "served", "slowdown", "cores_across"),
    [
        ("threads", 8, 1, 0),
        ("master", 16, 2, 8),  # 8 of 16 cores are on the other socket, at half the bandwidth
        ("interleaved", 8, 0.5 + 0.5 * 2, 4),  # half of what 8 cores need crosses each way
    ],
)
def test_a_team_on_two_sockets(
    touch: str, served: float, slowdown: float, cores_across: float
) -> None:
    across = pytest.approx(cores_across / (0.25 * 4e10), rel=1e-6)
    assert demand(TWO, (1, 16), touch) == (served, pytest.approx(slowdown), across)


def test_a_master_alone_uses_what_its_threads_touched() -> None:
    across = pytest.approx(0.5 / (0.25 * 4e10), rel=1e-6)
    for touch in ("threads", "interleaved"):
        found = demand(TWO, (1, 16), touch, masters_only=True)
        assert found == (0.5, pytest.approx(1.5), across)
    assert demand(TWO, (1, 16), "master", masters_only=True) == (1, 1, 0)


def test_a_team_on_four_domains() -> None:
    """Of the pairs that are not known, 0-1 stands for those on a socket, 0-2 for the others."""
    served, slowdown, across = demand(FOUR, (1, 16), "interleaved")
    assert served == 4
    assert slowdown == pytest.approx(1 / 4 + 1 / 4 / 0.8 + 2 / 4 / 0.4)
    assert across == pytest.approx(4 / 4 / (0.2 * 4e10), rel=1e-5)
    assert demand(FOUR, (1, 16), "master") == (
        16,
        pytest.approx(1 / 0.4),
        pytest.approx(4 / (0.2 * 4e10), rel=1e-5),
    )
    # 8 threads on domains 0 and 1
    assert demand(FOUR, (2, 8), "master")[:2] == (8, pytest.approx(1 / 0.8))


def test_threads_that_nothing_binds_find_their_data_anywhere() -> None:
    served, slowdown, across = demand(TWO, (16, 1), "threads", "none")
    assert (served, slowdown) == (8, pytest.approx(1.5))
    assert across == pytest.approx(4 / (0.25 * 4e10), rel=1e-6)
    assert demand(TWO, (16, 1), "threads", "none", masters_only=True)[1] == pytest.approx(1.5)
    assert demand(FOUR, (4, 4), "threads", "none")[1] == pytest.approx(
        1 / 4 + 1 / 4 / 0.8 + 2 / 4 / 0.4
    )
    assert demand(TWO, (3, 3), "threads", "none")[0] == 5


def test_what_the_profile_does_not_know_is_assumed_and_said() -> None:
    known = machine(2, 2)
    where = place(1, 16, known.topology)
    about = parameters(known)
    found = asked_of_memory(where, about, "master", masters_only=False)
    assert found.slowdown == pytest.approx(1 / 0.6)
    assert any("does not know the memory of other domains" in one for one in about.remarks)
    assert known.assumed["memory.remote.any.bandwidth"].origin == "assumed"
    assert "memory.remote.any.bandwidth" not in TWO.assumed
    assert "memory.remote.any.bandwidth" not in machine(1, 1).assumed


def test_paths_of_pairs_that_are_not_known() -> None:
    assert FOUR.remote(0, 1, "bandwidth") == "memory.remote.0-1.bandwidth"
    assert FOUR.remote(1, 0, "bandwidth") == "memory.remote.0-1.bandwidth"
    assert FOUR.remote(2, 3, "bandwidth") == "memory.remote.0-1.bandwidth"
    assert FOUR.remote(1, 3, "bandwidth") == "memory.remote.0-2.bandwidth"
    only = machine(2, 4, {"0-1": ratios(0.8, 0.5)})
    assert only.remote(0, 2, "saturated") == "memory.remote.0-1.saturated"


@given(
    st.integers(1, 16),
    st.integers(1, 16),
    st.sampled_from(["close", "spread", "none"]),
    st.booleans(),
    st.sampled_from([(1, 1), (2, 2), (2, 4), (1, 2)]),
)
def test_shares_add_up_and_remote_is_never_faster(
    processes: int, threads: int, bind: str, masters_only: bool, node: tuple[int, int]
) -> None:
    known = machine(*node)
    try:
        where = place(processes, threads, known.topology, Allocation(nodes=1, bind=bind))
    except ImpossibleSplit:
        return
    found = {
        touch: asked_of_memory(where, parameters(known), touch, masters_only=masters_only)
        for touch in FIRST_TOUCH
    }
    busy = processes if masters_only else processes * threads
    for one in found.values():
        assert one.served >= busy / node[1] - 1e-9  # no domain serves less than its part
        assert one.served <= busy + 1e-9
        assert one.slowdown >= 1 and one.connections >= 0
        if node[1] == 1:
            assert (one.slowdown, one.connections) == (1, 0)
    if not masters_only:
        assert found["interleaved"].served <= found["master"].served + 1e-9
        assert found["interleaved"].slowdown <= found["master"].slowdown + 1e-9 or bind == "none"
        if bind != "none":
            assert found["threads"].slowdown == 1
