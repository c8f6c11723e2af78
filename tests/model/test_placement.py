"""Placement, grids and requirements: figures, and the words of every refusal."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.errors import UsageError
from popmodel.machine.topology import Cache, Topology
from popmodel.model import signature
from popmodel.model.grid import best_grid, check_requirements, names
from popmodel.model.placement import launch_line, mpirun_line, place

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
        (0, 1, "0 processes are not possible", "at least 1"),
        (1, 0, "0 threads are not possible", "at least 1"),
        (2, 32, "2 x 32 is not possible: a node has 16 cores", "at most 16 threads"),
        (9, 16, "needs 9 nodes, the machine has 4", "at most 4 processes of 16 threads"),
    ],
)
def test_refusals(processes: int, threads: int, words: str, hint: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        place(processes, threads, NODES)
    assert caught.value.exit_status == 2
    assert hint in (caught.value.hint or "")


def test_launch_lines() -> None:
    placement = place(16, 4, NODES)
    assert launch_line(placement, "./a") == (
        "OMP_NUM_THREADS=4 OMP_PLACES=cores OMP_PROC_BIND=close \\\n"
        "srun -N 4 -n 16 -c 4 --ntasks-per-node=4 --cpu-bind=cores ./a"
    )
    assert mpirun_line(placement, "./a").endswith(
        "mpirun -np 16 --map-by ppr:4:node:PE=4 --bind-to core ./a"
    )


@given(st.integers(1, 400), st.integers(1, 3))
def test_best_grid_uses_all_processes(processes: int, dimensions: int) -> None:
    extent = best_grid(processes, [100.0, 200.0, 300.0][:dimensions], [False] * dimensions)
    assert math.prod(extent) == processes
    assert len(extent) == dimensions


def test_best_grid_cuts_the_longest_side_first() -> None:
    assert best_grid(16, [512, 512, 512], [False] * 3) == (2, 2, 4)
    assert best_grid(16, [512, 512, 512], [True] * 3) == (1, 4, 4)
    assert best_grid(4, [1000, 10], [False] * 2) == (4, 1)
    assert best_grid(1, [5, 5], [True] * 2) == (1, 1)


def test_names_of_cannon() -> None:
    cannon = signature.load("cannon")
    values, extent = names(cannon, 16, 4, {"N": 4096.0, "w": 8.0})
    assert extent == (4, 4)
    assert values["nb"] == 1024
    assert values["P0"] == 4
    assert values["P"] == 16


def test_local_extents_of_an_automatic_grid() -> None:
    demo = signature.from_text(HEAD + "[decomp]\nglobal = [64, 32]\n" + BODY)
    values, extent = names(demo, 8, 1, {})
    assert extent == (4, 2)
    assert (values["n0"], values["n1"]) == (16, 16)


def test_requirements_name_the_nearest_choices() -> None:
    cannon = signature.load("cannon")
    check_requirements(cannon, 9, 1, {"N": 100.0, "w": 8.0})
    with pytest.raises(UsageError, match=r"cannot run with 12 processes: it requires is_square"):
        check_requirements(cannon, 12, 1, {"N": 100.0, "w": 8.0})
    with pytest.raises(UsageError) as caught:
        check_requirements(cannon, 12, 1, {"N": 100.0, "w": 8.0})
    assert caught.value.hint == "possible: 9 or 16 processes"
    never = signature.from_text(HEAD + "[limits]\nrequire = ['P < 0']\n" + BODY)
    with pytest.raises(UsageError) as caught:
        check_requirements(never, 12, 1, {})
    assert caught.value.hint is None


def test_a_grid_must_have_all_processes() -> None:
    demo = signature.from_text(HEAD + "[decomp]\ngrid = [2, 3]\n" + BODY)
    with pytest.raises(UsageError, match="its grid is 2 x 3 = 6 processes, not 8"):
        names(demo, 8, 1, {})
    odd = signature.from_text(HEAD + "[decomp]\ngrid = ['P/2', 2]\n" + BODY)
    with pytest.raises(UsageError, match=r"a grid extent is 'P/2' = 2\.5, which is no number"):
        names(odd, 5, 1, {})
