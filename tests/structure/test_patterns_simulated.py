"""Patterns found in simulated runs, read from their traces, beside what their programs did."""

from pathlib import Path

import pytest
from synthetic import Program, programs, run

from popmodel.structure.iterations import find
from popmodel.structure.patterns import FoundCommunication, find_communication


def communication(program: Program, folder: Path) -> FoundCommunication:
    """What is found; all messages are in a pattern."""
    done = run(program, persistent=0.1, transient=0.1, seed=1)
    found = find_communication(find(done.read(folder)))
    told = [one for one in found.patterns if one.kind != "collective"]
    assert sum(one.messages for one in told) == len(done.messages)
    assert sum(one.bytes for one in told) == sum(size for _, _, size, _ in done.messages)
    return found


@pytest.mark.parametrize(
    ("dims", "cells", "periodic", "width", "how"),
    [
        ((6,), (600,), False, 1, "nonblocking"),
        ((4, 3), (64, 300), (False, True), 1, "blocking"),
        ((3, 3, 4), (90, 60, 120), (True, False, False), 2, "nonblocking"),
        ((3, 4, 5), (60, 60, 60), True, 3, "sendrecv"),
    ],
)
def test_halos_have_their_grid_and_the_bytes_of_each_face(
    dims: tuple[int, ...],
    cells: tuple[int, ...],
    periodic: bool | tuple[bool, ...],
    width: int,
    how: str,
    tmp_path: Path,
) -> None:
    program = programs.jacobi(dims, 6, cells=cells, periodic=periodic, width=width, how=how)
    found = communication(program, tmp_path)
    wraps = (periodic,) * len(dims) if isinstance(periodic, bool) else periodic
    assert (found.grids[0].dims, found.grids[0].periodic) == (dims, wraps)
    (halo,) = (one for one in found.patterns if one.kind == "halo")
    assert (halo.exact, halo.executions) == (True, 6)
    sizes = programs.faces(dims, cells, width)
    moves = {tuple(each["move"]): each["bytes"] for each in halo.facts["directions"]}
    assert moves == {
        tuple(way * (axis == other) for other in range(len(dims))): size
        for axis, size in enumerate(sizes)
        for way in (-1, 1)
    }


def test_sums_over_rows_and_transposes_are_told_apart(tmp_path: Path) -> None:
    found = communication(programs.rows_and_transposes(4, 4, 3, 5, unknowns=1400), tmp_path)
    assert not found.grids
    by_kind = {kind: [] for kind in ("butterfly", "transpose")}
    for one in found.patterns:
        if one.kind != "collective":
            assert one.exact
            by_kind[one.kind].append(one)
    (transpose,) = by_kind["transpose"]
    assert (transpose.executions, transpose.messages) == (15, 15 * 12)
    assert (transpose.facts["columns"], transpose.facts["rows"]) == (4, 4)
    flips = {flip for one in by_kind["butterfly"] for flip in one.facts["flips"]}
    assert flips == {1, 2}


CASES = {
    "halo by shifts": (programs.jacobi((4, 4), periodic=True, how="sendrecv"), (4, 4), {"halo"}),
    "halo that nothing synchronises": (programs.jacobi((2, 2), residual=0), (2, 2), {"halo"}),
    "wavefronts": (programs.pipeline((3, 4)), (3, 4), {"pipeline"}),
    "wavefronts of four": (programs.pipeline((2, 2)), (2, 2), {"pipeline"}),
    "butterfly": (programs.butterfly(16), None, {"butterfly"}),
    # of eight processes each stage is also the exchange along a dimension of 2 x 2 x 2
    "butterfly of eight": (programs.butterfly(8), (2, 2, 2), {"halo"}),
    "twice as many columns": (
        programs.rows_and_transposes(2, 4, 3, 5),
        None,
        {"butterfly", "transpose"},
    ),
    "all pairs": (programs.transposes(8, how="pairwise"), None, {"pairwise"}),
    "levels": (programs.levels((2, 2, 2)), (2, 2, 2), {"halo"}),
    "workers": (programs.master_worker(5), None, {"list"}),
    "random": (programs.random_graph(9, 5, degree=4), None, {"list"}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_found_exactly(name: str, tmp_path: Path) -> None:
    program, dims, kinds = CASES[name]
    found = communication(program, tmp_path)
    assert (found.grids[0].dims if found.grids else None) == dims
    messages = [pattern for pattern in found.patterns if pattern.kind != "collective"]
    assert {pattern.kind for pattern in messages} == kinds
    assert all(pattern.exact != (pattern.kind == "list") for pattern in messages)
