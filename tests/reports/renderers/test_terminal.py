"""Blocks on a terminal."""

import pytest

from popmodel.reports.blocks import (
    Block,
    Brief,
    Code,
    CommandBlock,
    EquationBlock,
    Facts,
    FitBlock,
    Heading,
    NoteBlock,
    Role,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.palette import Depth
from popmodel.reports.renderers.terminal import block_lines
from popmodel.reports.renderers.text import Style


def drawn(*blocks: Block, width: int = 80) -> list[str]:
    return block_lines([blocks], Style(width))


def test_an_empty_line_stands_between_sections_and_none_for_empty_ones() -> None:
    assert block_lines([(), notes(["a", "b"]), (), notes(["c"])], Style()) == ["a", "b", "", "c"]


def test_a_part_of_a_report_stands_apart() -> None:
    sections = [(Heading("run 1", is_part=True),), notes(["a"]), (Heading("run 2", is_part=True),)]
    assert block_lines(sections, Style()) == ["run 1", "", "a", "", "", "run 2"]


@pytest.mark.parametrize(
    ("role", "lines"),
    [
        (Role.PLAIN, ["one", "two"]),
        (Role.BULLET, [" - one", "   two"]),
        (Role.WARNING, [" ! one", "   two"]),
        (Role.REMARK, [" one", " two"]),
        (Role.HANGING, ["one", "    two"]),
        (Role.VERDICT, ["-> one", "   two"]),
        (Role.DOUBT, ["   one", "   two"]),
        (Role.STEP, ["   one", "      two"]),
        (Role.ENTRY, [" one", "   two"]),
        (Role.TERM, ["one", "    two"]),
    ],
)
def test_a_note_begins_as_its_role_says(role: Role, lines: list[str]) -> None:
    assert drawn(NoteBlock("one two", role), width=6) == lines


def test_a_note_has_a_depth() -> None:
    assert drawn(NoteBlock("one two", Role.ENTRY, 2), width=7) == ["   one", "     two"]
    assert drawn(NoteBlock("one two", Role.TERM, 1), width=7) == ["  one", "      two"]


def test_a_heading_without_notes_is_not_shown() -> None:
    assert titled("warnings", []) == ()
    assert drawn(*titled("warnings", ["x"], Role.WARNING)) == ["warnings", " ! x"]


def test_a_title_has_the_first_text_beside_it_that_fits() -> None:
    title = Title("app", ("4 processes", "4 procs"))
    assert drawn(title, width=16) == ["app  4 processes"]
    assert drawn(title, width=14) == ["app    4 procs"]
    assert drawn(title, width=11) == ["app", "4 processes"]


def test_facts_of_a_group_stand_in_line() -> None:
    facts = (Facts((("a", "1"),), "all"), Facts((("long", "2"),), "all"), Facts((("b", "3"),)))
    assert drawn(*facts) == ["a     1", "long  2", "b  3"]


def test_facts_may_leave_a_margin() -> None:
    assert drawn(Facts((("a", "one two"),)), width=10) == ["a  one two"]
    assert drawn(Facts((("a", "one two"),), margin=1), width=10) == ["a  one", "   two"]


def test_a_narrow_screen_shows_another_form() -> None:
    wide = TableBlock(heads(["a", "b"]), (TableRow("label", texts(["1234", "5678"])),))
    narrow = TableBlock(heads(["a"]), (TableRow("label", texts(["1234"])),))
    fit = FitBlock((((wide,),), ((narrow, NoteBlock("without b")),)))
    assert drawn(fit, width=17) == ["          a     b", "label  1234  5678"]
    assert drawn(fit, width=16) == ["          a", "label  1234", "without b"]


def test_the_last_form_is_continued_below() -> None:
    table = TableBlock(heads(["", ""]), (TableRow("x", texts(["1234567"] * 2)),))
    assert drawn(FitBlock((((table,),),)), width=14) == ["x  1234567", "", "x  1234567"]


def test_commands_can_be_pasted() -> None:
    command = CommandBlock(("srun -n 4 ./app", "mpiexec -n 4 ./app"), comment="4 cores")
    assert drawn(command, width=12) == [
        "# 4 cores",
        "srun -n 4 \\",
        "  ./app",
        "or",
        "mpiexec -n \\",
        "  4 ./app",
    ]
    assert drawn(CommandBlock(("./app",), depth=1)) == ["  ./app"]


def test_code_stays_as_it_is() -> None:
    assert drawn(Code(("a  long  line  of  code",)), width=5) == ["a  long  line  of  code"]


def test_equations_are_broken_before_operators() -> None:
    equation = EquationBlock("time", "first_part + second_part", "t = a + b", "= 3 s: runtime")
    assert drawn(equation, width=20) == [
        " time = first_part",
        "     + second_part",
        "     = 3 s: runtime",
    ]
    assert drawn(EquationBlock("P", "", "P", "= 4: processes")) == [" P = 4: processes"]


def test_only_colours_control_the_terminal() -> None:
    table = TableBlock(heads(["\x1b[31ma"]), (TableRow("x\x07", (TableCell("1\x1b[2J", 1.0),)),))
    lines = block_lines([(table, Code(("\x1b]0;title\x07",)))], Style(80, Depth.SIXTEEN))
    assert lines == [
        "     [31ma",
        "x   \x1b[30;43m 1 [2J\x1b[0m",
        " ]0;title ",
    ]


def test_a_screen_shows_what_is_given_in_brief_and_no_gap_where_that_is_nothing() -> None:
    whole = ((NoteBlock("all"),),)
    assert block_lines([(Brief(whole, ((NoteBlock("a"),), (NoteBlock("b"),))),)], Style()) == [
        "a",
        "",
        "b",
    ]
    assert block_lines([(NoteBlock("a"),), (Brief(whole, ()),)], Style()) == ["a"]
