"""Programs of known structure, run by a simulation and written as traces: what is found in them."""

from __future__ import annotations

import pytest
from synthetic import programs, run

from popmodel.patterns.find import find
from popmodel.structure import find as find_structure

CASES = {
    "halo": (programs.jacobi((4, 4)), (4, 4), {"halo"}),
    "blocking halo": (programs.jacobi((4, 4), how="blocking"), (4, 4), {"halo"}),
    "halo around a torus": (programs.jacobi((3, 2, 2), periodic=True), (3, 2, 2), {"halo"}),
    "halo by shifts": (
        programs.jacobi((4, 4), periodic=True, how="sendrecv"),
        (4, 4),
        {"halo"},
    ),
    "halo of a line": (programs.jacobi((8,)), (8,), {"halo"}),
    "halo that nothing synchronises": (programs.jacobi((2, 2), residual=0), (2, 2), {"halo"}),
    "wavefronts": (programs.pipeline((3, 4)), (3, 4), {"pipeline"}),
    "wavefronts of a line": (programs.pipeline((4,)), (4,), {"pipeline"}),
    "wavefronts of four": (programs.pipeline((2, 2)), (2, 2), {"pipeline"}),
    "butterfly": (programs.butterfly(16), None, {"butterfly"}),
    # of eight processes each stage is also the exchange along a dimension of 2 x 2 x 2
    "butterfly of eight": (programs.butterfly(8), (2, 2, 2), {"halo"}),
    "rows and transposes": (programs.rows_and_transposes(4, 4), None, {"butterfly", "transpose"}),
    "twice as many columns": (
        programs.rows_and_transposes(2, 4),
        None,
        {"butterfly", "transpose"},
    ),
    "all pairs": (programs.transposes(8, how="pairwise"), None, {"pairwise"}),
    "levels": (programs.levels((4, 4)), (4, 4), {"halo"}),
    "levels in three dimensions": (programs.levels((2, 2, 2)), (2, 2, 2), {"halo"}),
}


def found_in(program, tmp_path):
    trace = run(program, persistent=0.05, transient=0.02, seed=1).read(tmp_path)
    return find(find_structure(trace))


@pytest.mark.long(after=8)
@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_found_exactly(name, tmp_path):
    program, dims, kinds = CASES[name]
    found = found_in(program, tmp_path)
    assert (found.grid.dims if found.grid else None) == dims
    messages = [pattern for pattern in found.patterns if pattern.kind != "collective"]
    assert {pattern.kind for pattern in messages} == kinds
    assert all(pattern.exact for pattern in messages)


@pytest.mark.parametrize(
    "program", [programs.master_worker(5), programs.random_graph(12)], ids=["workers", "random"]
)
def test_what_has_no_pattern_stays_a_list(program, tmp_path):
    found = found_in(program, tmp_path)
    assert found.grid is None
    assert {pattern.kind for pattern in found.patterns} == {"collective", "list"}


def test_the_widths_of_a_halo_show_in_its_bytes(tmp_path):
    sizes = []
    for width in (1, 3):
        folder = tmp_path / str(width)
        folder.mkdir()
        found = found_in(programs.jacobi((4, 4), width=width, cells=(64, 128)), folder)
        (halo,) = (pattern for pattern in found.patterns if pattern.kind == "halo")
        sizes.append({way["move"]: way["bytes"] for way in halo.facts["directions"]})
    assert sizes[0] == {(1, 0): 256, (-1, 0): 256, (0, 1): 128, (0, -1): 128}
    assert sizes[1] == {move: 3 * size for move, size in sizes[0].items()}
