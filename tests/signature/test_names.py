"""What phases are called in formulas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.expressions import parse
from popmodel.signature.outline import TIME, numbered_names, short_name


@pytest.mark.parametrize(
    ("name", "inside", "word"),
    [
        ("MPI_Allreduce", "", "allreduce"),
        ("sweep", "", "sweep"),
        ("x_solve_", "", "x_solve"),
        ("stencil3d+0x2670 (stencil3d.c:180)", "", "stencil3d_180"),
        ("copy_x_face_ (region 2)", "", "copy_x_face_region_2"),
        ("MPI_Send", "sweep", "sweep_send"),
        ("MPI_Bcast", "deck::read_deck (deck.F90:735)", "read_deck_bcast"),
        ("MPI_Sendrecv", "partlist::partlist_sendrecv (partlist.F90:829)", "partlist_sendrecv"),
        ("MPI_Recv", "boundary::do_field_mpi_with_lengths (b.F90:2)", "do_field_mpi_with"),
        ("x" * 90, "", "x" * 24),
        ("π", "", "phase"),
    ],
)
def test_a_name_says_where_a_phase_is(name: str, inside: str, word: str) -> None:
    assert short_name(name, inside) == word


def test_names_that_come_again_are_numbered() -> None:
    assert numbered_names(["a", "b", "a", "a"]) == ["a", "b", "a_2", "a_3"]
    assert numbered_names(["a", "a", "a_2"]) == ["a", "a_3", "a_2"]


def test_parameters_keep_their_names() -> None:
    assert numbered_names(["end", "sweep"], ["t_end", "N"]) == ["end_2", "sweep"]


texts = st.text(max_size=40)


@given(st.lists(st.tuples(texts, texts), max_size=8), st.lists(texts.map(short_name), max_size=3))
def test_names_are_unique_short_and_stand_in_formulas(
    places: list[tuple[str, str]], taken: list[str]
) -> None:
    reserved = [TIME + one for one in taken]
    names = [TIME + one for one in numbered_names([short_name(*one) for one in places], reserved)]
    assert len(set(names)) == len(names) == len(places)
    assert not set(names) & set(reserved)
    for name in names:
        assert len(name) <= 30
        assert parse(name).evaluate({name: 1.0}) == 1.0
