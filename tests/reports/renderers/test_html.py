"""Blocks as HTML."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.reports import blocks as known
from popmodel.reports.blocks import (
    BarBlock,
    Block,
    Brief,
    Code,
    CommandBlock,
    EquationBlock,
    Facts,
    FitBlock,
    Heading,
    Listing,
    MarkdownBlock,
    MarksBlock,
    NoteBlock,
    Role,
    Strip,
    Strips,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    folded,
    heads,
    notes,
    texts,
)
from popmodel.reports.renderers.html import html

from ..balanced import Node, parsed

HOSTILE = "</td><script>alert(1)</script>\"' \x1b[31m\u202e&amp;"
SHOWN = "</td><script>alert(1)</script>\"'  [31m?&amp;"


def drawn(*blocks: Block, brief: bool = False) -> Node:
    return parsed(html([blocks], brief=brief))


def every(text: str) -> list[Block]:
    """Each kind of block, with a text wherever one can stand."""
    row = TableRow(text, (TableCell(text, 0.7), BarBlock(0.5)))
    table = TableBlock(((text,), ("",)), (row, TableRow(text, instead=text)), title=text)
    return [
        Title(text, (text,)),
        Heading(text),
        *(NoteBlock(text, role) for role in Role),
        Facts(((text, text), ("", text))),
        table,
        Listing(text, (text,), (TableRow(text, texts([text])),)),
        CommandBlock((text, text), text),
        Code((text, text)),
        Strips((Strip(text, (0.5,)), MarksBlock(text, (0.5,), ((0.1, 0.2),))), text, text),
        EquationBlock(text, text, text, text),
        FitBlock((((table,),), ())),
        Brief(((Heading(text),),), ()),
        folded(((Heading(text),),)),
        MarkdownBlock(text, text),
    ]


def test_every_block_can_be_drawn() -> None:
    assert {type(block) for block in every("a")} == set(get_args(known.Block))


@pytest.mark.parametrize("block", every(HOSTILE), ids=lambda block: type(block).__name__)
def test_text_stays_text(block: Block) -> None:
    found = drawn(block)
    assert not found.all("script")
    assert SHOWN in found.text


@given(st.text(min_size=1))
def test_any_text_gives_elements_that_are_closed(text: str) -> None:
    parsed(html([every(text)]))


def test_headings_follow_each_other_without_a_gap() -> None:
    assert [one.text for one in drawn(Heading("a"), Heading("b")).all("h3")] == ["a", "b"]
    found = drawn(Title("a", ("long", "short")), Heading("part", is_part=True), Heading("b"))
    assert [one.text for one in found.all("h3")] == ["a, long", "part"]
    assert [one.text for one in found.all("h4")] == ["b"]


def test_headings_are_never_deeper_than_there_are() -> None:
    assert parsed(html([(Heading("a", is_part=True), Heading("b"))], 6)).all("h6")[1].text == "b"


def test_notes_of_one_kind_are_one_list() -> None:
    found = drawn(*notes(["a", "b"], Role.BULLET), NoteBlock("c"), *notes(["1. d"], Role.STEP))
    assert [len(one.all("li")) for one in found.all("ul")] == [2, 1]
    assert found.all("ul")[1].has_class("plain")
    assert found.all("p")[0].text == "c"


def test_deeper_entries_are_lists_in_lists() -> None:
    entries = [
        NoteBlock("loop", Role.ENTRY),
        NoteBlock("halo", Role.ENTRY, 1),
        NoteBlock("end", Role.ENTRY),
    ]
    (outer, inner) = drawn(*entries).all("ul")
    assert [one.text for one in inner.all("li")] == ["halo"]
    assert len(outer.children) == 2


def test_facts_are_terms_with_their_values() -> None:
    found = drawn(Facts((("machine", "a"), ("", "b"), ("cores", "4"))))
    assert [one.text for one in found.all("dl")[0].children] == ["machine", "a", "b", "cores", "4"]
    assert [one.name for one in found.all("dl")[0].children] == ["dt", "dd", "dd", "dt", "dd"]


def test_a_table_has_heads_for_rows_and_columns() -> None:
    rows = (
        TableRow("LB", (TableCell("81.2 ", 0.812), BarBlock(0.25)), 1),
        TableRow("none", instead="no MPI", depth=2),
    )
    found = drawn(TableBlock((("num-", "ber"), ("", "")), rows, title="MPI, %"))
    assert [one.text for one in found.all("th", scope="col")] == ["MPI, %", "number"]
    assert [one.text for one in found.all("th", scope="row")] == ["LB", "none"]
    assert found.all("th", scope="row")[1].attributes["style"] == "--depth: 1"
    number, bar, instead = found.all("td")[1:]  # the first one stands above the bars
    assert number.text == "81.2"
    assert number.has_class("heat-80")
    assert bar.children[0].attributes["style"] == "--part: 0.250"
    assert instead.attributes["colspan"] == "2"
    assert found.all("div")[0].attributes["aria-label"] == "MPI, %"


def test_a_listing_has_its_long_names_at_the_left() -> None:
    found = drawn(Listing("regions", ("s",), (TableRow("a_long_name", texts(["1.0"])),)))
    assert [one.text for one in found.all("tr")] == ["regions s", "a_long_name 1.0"]


def test_commands_stay_in_their_lines() -> None:
    found = drawn(CommandBlock(("srun \\\n./a", "mpirun ./a"), "run it"), Code(("a", "b")))
    assert [one.text for one in found.all("pre")] == [
        "# run it\nsrun \\\n./a",
        "# run it\nmpirun ./a",
        "a\nb",
    ]
    assert [one.text for one in found.all("p")] == ["or"]


def test_strips_are_drawn_and_stand_in_a_table() -> None:
    values = tuple([1.0] * 50 + [0.0] * 50)
    shown = Strips((Strip("useful", values), MarksBlock("focus", (), ((0.5, 0.75),))), "0 s", "2 s")
    found = drawn(shown)
    assert [one.attributes["role"] for one in found.all("svg")] == ["img", "img"]
    (table,) = found.all("table")
    figures = [one.text for one in table.all("td")]
    assert figures == ["100.0"] * 10 + ["0.0"] * 10
    assert "focus: 50.0 to 75.0 %" in found.text


def test_marks_of_nothing_are_none() -> None:
    assert "begin: none" in drawn(Strips((MarksBlock("begin"),), "0", "1")).text


def test_strips_with_few_values_repeat_them() -> None:
    found = drawn(Strips((Strip("a", (0.25, 0.75)),), "0", "1"))
    assert [one.text for one in found.all("td")] == ["25.0"] * 10 + ["75.0"] * 10


def test_equations_and_symbols_are_read_as_text() -> None:
    found = drawn(EquationBlock("t", "a + b", "", "the time"), EquationBlock("a", "", "", "a time"))
    assert found.all("pre")[0].text == "t = a + b"
    assert found.all("li")[0].text == "a a time"


def test_a_page_has_room_for_the_widest_form() -> None:
    form = ((Heading("wide"),),), ((Heading("narrow"),),)
    assert drawn(FitBlock(form)).text == "wide"


def test_a_notebook_shows_things_in_brief() -> None:
    block = Brief(((Heading("whole"),),), ((Heading("brief"),),))
    assert drawn(block).text == "whole"
    assert drawn(block, brief=True).text == "brief"


def test_a_table_without_heads_has_none_that_are_empty() -> None:
    found = drawn(TableBlock(heads(["%"]), (TableRow("a", texts(["1"])),)))
    assert [one.text for one in found.all("th", scope="col")] == ["%"]
