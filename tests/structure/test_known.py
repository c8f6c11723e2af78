"""The structure of real traces, beside what is known of these programs.

Iterations of the NAS parallel benchmarks of class S and A as published with them (NPB 3): CG 15 (in
each 25 of the solver and one more product for the residual), MG 4, LU 50, IS 10, FT 6, BT-MZ 60.
IS runs an untimed iteration of the same form before, which no call tells from the others: 11. CG,
MG and BT-MZ have theirs apart; LU's has another end.
"""

from pathlib import Path

import pytest
from structure.programs import loops

from popmodel.structure.iterations import find
from popmodel.structure.structure import FoundLoop
from popmodel.traces import read

SMPI = Path(__file__).parent.parent / "data" / "smpi"


@pytest.fixture(scope="module")
def structure(real_trace):
    """The structure of a real trace by its name; each is found once."""
    found = {}

    def of(name):
        if name not in found:
            own = SMPI / f"{name}.ti.txt.gz"
            found[name] = find(read(own if own.exists() else real_trace(name)))
        return found[name]

    return of


def inner(loop):
    return [each for each in loop.body if isinstance(each, FoundLoop)]


@pytest.mark.long(after=13)
@pytest.mark.parametrize(
    ("name", "iterations", "places"),
    [
        ("cg.S.2", 15, 34),
        ("ft.S.4", 6, 7),
        ("is.S.4", 11, 10),
        ("bt-mz.S.2x2", 60, 85),
        ("comd.4", 4, 34),  # prints every 10 of its 40 steps: 4 times 10
        ("mix.4", 20, 26),  # roots take turns, messages come in any order
        ("mixnbc.4", 20, 28),
        ("mixpers.4", 20, 28),
        ("mixrma.4", 20, 26),
        ("lu.S.4", 50, 80),
        ("mg.S.4", 4, 344),
        ("epoch_1proc", 10, 41),
        ("epoch_4proc", 10, 84),
        ("epoch_16proc", 10, 94),
        ("cgA.4", 15, 33),
        ("mgA.4", 4, 559),
        ("jac2048.4", 40, 8),
        ("jac2048.16", 40, 12),
    ],
)
def test_iterations(name, iterations, places, structure):
    found = structure(name)
    assert found.loop is not None
    assert found.loop.counts == (iterations,)
    assert found.iterations.shape == (iterations + 1, found.program.sequences)
    assert len(found.places) == places
    assert found.confidence > 0.2


@pytest.mark.parametrize("name", ["cg.S.2", "cgA.4"])
def test_the_solver_inside_of_an_iteration_of_cg(name, structure):
    loop = structure(name).loop
    assert [each.counts for each in inner(loop)] == [(26,) * 15]


def test_ten_time_steps_between_the_outputs_of_comd(structure):
    assert [each.counts for each in inner(structure("comd.4").loop)] == [(10,) * 4]


def test_the_sweeps_of_lu_forth_and_back(structure):
    found = structure("lu.S.4")
    forth, back = inner(found.loop)
    assert set(forth.counts) == set(back.counts) == {10}  # planes of a grid of 12 without its edges
    names = [[found.places[p].name for p in each.body[0].places] for each in (forth, back)]
    assert names == [["MPI_Recv"] * 2 + ["MPI_Send"] * 2] * 2
    # The norm of the last step is a place that the others pass without.
    assert found.kinds.tolist() == [0] * 49 + [1]


def test_epoch_does_more_at_some_steps(structure):
    found = structure("epoch_4proc")
    assert set(found.kinds.tolist()) == {0, 1}
    assert found.period == pytest.approx(0.43, rel=0.02)


@pytest.mark.parametrize("name", ["imagemagick_omp2", "imagemagick_omp8"])
def test_imagemagick_repeats_inside_of_its_regions_only(name, structure):
    found = structure(name)
    assert found.loop is None
    assert found.notes == ("no iterations: nothing repeats",)
    assert all(place.is_region for place in found.places)
    assert not list(loops(found.nest))


def test_places_of_a_run_with_call_sites_have_them(structure):
    found = structure("epoch_1proc")
    assert "boundary::do_field_mpi_with_lengths (boundary.F90:286)" in {
        place.inside for place in found.places
    }
