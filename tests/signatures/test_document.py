"""The TOML that is written reads back as what was put in; names of phases stand in formulas."""

import math
import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from popmodel.base.expressions import parse
from popmodel.signatures.document import Noted, TomlItem, TomlTable, text_of
from popmodel.signatures.outline import TIME, numbered_names, short_name

plain = st.one_of(
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=30),
)
keys = st.text(min_size=1, max_size=8)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@example({"a": [{"a long key with blanks" * 9: [], "key of a list": [{}]}]})
@given(st.dictionaries(keys, values, max_size=5))
def test_whatever_is_written_reads_back(entries):
    text = text_of((), [TomlTable("", entries)], ())
    assert tomllib.loads(text) == entries


@given(st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), values, max_size=4))
def test_items_read_back_in_order(entries):
    inner = TomlItem("serial", entries, notes=("what it does",))
    program = [
        inner,
        TomlItem("loop", {"count": 3}, (inner, TomlItem("loop", {"count": 2}, (inner,)))),
    ]
    read = tomllib.loads(text_of(("head",), [], program))
    item = {"serial": entries}
    assert read["program"] == [
        item,
        {"loop": {"count": 3}, "body": [item, {"loop": {"count": 2}, "body": [item]}]},
    ]


def test_a_noted_value_has_its_comment_behind_it():
    text = text_of((), [TomlTable("constants", {"a": Noted(0.5, "trace"), "b": 1})], ())
    assert text == "[constants]\na = 0.5  # trace\nb = 1\n"


def test_a_list_of_rows_has_a_line_for_each():
    rows = [{"do": "isend", "to": "rank + 1", "bytes": 8192 * one} for one in range(4)]
    again = {"repeat": 3, "calls": rows}
    text = text_of((), [], [TomlItem("messages", {"name": "halo", "calls": [*rows, again]})])
    assert max(map(len, text.splitlines())) <= 100
    assert tomllib.loads(text)["program"][0]["messages"]["calls"] == [*rows, again]


def test_head_comments_wrap():
    lines = text_of(("word " * 60,), [TomlTable("", {"schema": "x"})], ()).splitlines()
    assert all(line.startswith("# ") for line in lines[:-1])
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="is no number of a signature"):
        text_of((), [TomlTable("", {"a": value})], ())


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
