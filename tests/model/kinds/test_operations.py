"""Communication carried out by the replay takes the time that the closed form says."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import machine, program

from popmodel.machines.profile import from_document
from popmodel.model.replayed_run import simulate
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import place
from popmodel.model.run.work import RunCourse, closed_form
from popmodel.model.signature.application import Signature
from popmodel.model.tree import Model, prepare

PERIODIC = """
[params]
N = 64
[decomp]
global = ["N", "N", "N"]
periodic = true
"""
OPEN = PERIODIC.replace("periodic = true", "periodic = false")
EAGER, LARGE = 8, 2**17  # bytes of a cell: faces below and above both eager thresholds


def model_of(signature: Signature, processes: int, threads: int, **changes: float) -> Model:
    document = copy.deepcopy(dict(machine(**changes).document))
    document["topology"]["nodes"] = 32
    profile = from_document(document)
    placement = place(processes, threads, profile.topology)
    values = {name: quantity.value for name, quantity in signature.inputs.items()}
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    return prepare(signature, placement, parameters, values)


def both(signature: Signature, processes: int, threads: int = 1, **changes: float) -> Any:
    """Closed form and replay without imbalance."""
    model = model_of(signature, processes, threads, **changes)
    tree = model.work()
    closed = closed_form(tree.total, processes, {}, has_mpi=True)
    return closed, simulate(tree, {}, seed=0).course


def assert_same(closed: RunCourse, replayed: RunCourse) -> None:
    expected = pytest.approx(closed.runtime, rel=1e-9, abs=1e-15)
    assert replayed.runtime == expected
    assert replayed.ideal == pytest.approx(closed.ideal, rel=1e-9, abs=1e-15)
    assert replayed.computing == pytest.approx(closed.computing, rel=1e-9, abs=1e-15)


# one kind of message everywhere, where the closed form takes the slowest one
SAME = {
    "net__inter__classes__0__alpha": 5e-7,
    "net__inter__classes__0__beta": 1e-10,
    "net__inter__eager_threshold": 65536,
    "net__shm_k": 1000,
    "net__nic_G": 1e-15,
}


def steps(body: str, count: int = 3, grid: str = PERIODIC) -> Signature:
    work = "parallel = { trip = 64, inner = 1000, flops = 2 }"
    return program(
        f"{grid}\n[[program]]\nloop = {{ count = {count} }}\n"
        f"[[program.body]]\n{work}\n[[program.body]]\n{body}\n"
    )


@pytest.mark.parametrize("size", [EAGER, LARGE])
@pytest.mark.parametrize("pack", ["none", "serial", "parallel"])
@pytest.mark.parametrize("processes", [2, 4, 8, 64])
def test_nonblocking_halo(processes: int, pack: str, size: int) -> None:
    signature = steps(f'halo = {{ width = 1, bytes_per_cell = {size}, pack = "{pack}" }}')
    assert_same(*both(signature, processes, memory__copy_bw=4e9))


@pytest.mark.parametrize("size", [EAGER, LARGE])
def test_closed_form_of_a_halo_is_a_bound_where_nodes_cut_the_grid(size: int) -> None:
    signature = steps(f'halo = {{ width = 1, bytes_per_cell = {size}, pack = "none" }}')
    closed, replayed = both(signature, 27)
    assert replayed.runtime <= closed.runtime * (1 + 1e-9)
    assert replayed.runtime >= 0.95 * closed.runtime


def test_overhead_of_further_messages() -> None:
    signature = steps("halo = { width = 1, bytes_per_cell = 8 }")
    closed, replayed = both(signature, 64, net__inter__os=3e-7, net__intra__os=2e-7)
    assert_same(closed, replayed)
    assert replayed.runtime > both(signature, 64)[1].runtime


@pytest.mark.parametrize("size", [EAGER, LARGE])
def test_blocking_halo(size: int) -> None:
    body = f'halo = {{ width = 1, bytes_per_cell = {size}, mode = "blocking", pack = "none" }}'
    assert_same(*both(steps(body), 64))


@pytest.mark.parametrize("size", [100, 10**6])
@pytest.mark.parametrize("by", [1, -1, 2])
def test_shift_inside_a_node_and_between_nodes(by: int, size: int) -> None:
    for dim in (0, 2):
        signature = steps(f"shift = {{ dim = {dim}, by = {by}, bytes = {size} }}")
        assert_same(*both(signature, 64))


@pytest.mark.parametrize("size", [100, 10**6])
@pytest.mark.parametrize("mode", ["send", "sendrecv"])
@pytest.mark.parametrize("to", ["(rank + 1) % P", "rank + 1", "rank - 1", "(rank + 3) % P"])
def test_point_to_point(to: str, mode: str, size: int) -> None:
    body = f'[[program]]\np2p = {{ to = "{to}", bytes = {size}, mode = "{mode}" }}\n'
    assert_same(*both(program(body), 16, **SAME))


@pytest.mark.parametrize("op", ["barrier", "bcast", "reduce", "allreduce", "alltoall", "gather"])
def test_collective(op: str) -> None:
    assert_same(*both(steps(f'collective = {{ op = "{op}", bytes = 1000 }}', grid=""), 24))


@pytest.mark.parametrize("comm", ['"node"', '"leaders"', '"dim0"', '["dim0", "dim2"]'])
@pytest.mark.parametrize("op", ['"bcast", root = 1', '"allreduce"'])
def test_collectives_of_parts(op: str, comm: str) -> None:
    body = f"collective = {{ op = {op}, bytes = 1000, comm = {comm} }}"
    assert_same(*both(steps(body), 64))


@pytest.mark.parametrize(
    "body",
    [
        'halo = { width = 1, bytes_per_cell = 8, pack = "none", comm_threads = 4 }',
        'halo = { width = 1, bytes_per_cell = 80000, mode = "blocking", comm_threads = 2 }',
        "shift = { dim = 2, by = 1, bytes = 1000000, comm_threads = 4 }",
        'p2p = { to = "(rank + 1) % P", bytes = 1000, mode = "sendrecv", comm_threads = 2 }',
    ],
)
def test_several_threads_send(body: str) -> None:
    changes = {"net__thread_factor": 0.2, "net__inter__os": 3e-7, "net__intra__os": 2e-7}
    assert_same(*both(steps(body), 8, 4, **changes, **SAME))


@pytest.mark.parametrize("size", [100, 10**6])
@pytest.mark.parametrize("dims", ["[0]", "[2]", "[0, 1]", "[0, 1, 2]"])
def test_pipeline(dims: str, size: int) -> None:
    body = (
        f"[[program]]\npipeline = {{ dims = {dims}, blocks = 7, seconds = 0.01, bytes = {size} }}"
    )
    assert_same(*both(program(f"{OPEN}\n{body}"), 64, **SAME))


@st.composite
def anywhere(draw: st.DrawFn) -> tuple[int, str]:
    processes = draw(st.integers(2, 40))
    a, b, m = draw(st.integers(-5, 5)), draw(st.integers(-40, 40)), draw(st.integers(1, 50))
    return processes, f"({a}*rank + {b}) % {m}"


@given(anywhere(), st.sampled_from(["send", "sendrecv"]), st.sampled_from([8, 10**6]))
def test_any_pattern_of_messages_ends(where: tuple[int, str], mode: str, size: int) -> None:
    processes, to = where
    body = f'[[program]]\np2p = {{ to = "{to}", bytes = {size}, mode = "{mode}" }}\n'
    model = model_of(program(body), processes, 1)
    try:
        course = simulate(model.work(), {}, seed=0).course
    except NotUnrolled as reason:
        assert str(reason) == "no messages between processes"
        return
    assert np.isfinite(course.runtime)
    assert 0 <= course.ideal <= course.runtime
