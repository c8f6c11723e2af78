"""Blocks as Markdown."""

import pytest

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
    NoteBlock,
    Role,
    TableBlock,
    TableCell,
    TableRow,
    heads,
    notes,
    texts,
)
from popmodel.reports.renderers.markdown import markdown_lines


def drawn(*blocks: Block) -> list[str]:
    return markdown_lines([blocks])


def test_an_empty_line_stands_between_blocks_but_not_between_entries_of_a_list() -> None:
    sections = [(), notes(["a"]), (Heading("list"), *notes(["b", "c"], Role.BULLET))]
    assert markdown_lines(sections) == ["a", "", "### list", "", "- b", "- c"]


def test_entries_have_a_depth() -> None:
    entries = (NoteBlock("loop:", Role.ENTRY), NoteBlock("halo", Role.ENTRY, 1))
    assert drawn(*entries) == ["- loop:", "  - halo"]


def test_steps_are_a_numbered_list() -> None:
    assert drawn(*notes(["1. a*b", "2. c"], Role.STEP)) == ["1. a\\*b", "2. c"]


def test_a_table_is_a_tree() -> None:
    rows = (
        TableRow("a|b", (TableCell("1", 0.5),), 1),
        TableRow("<tag>", texts(["2"]), 2),
        TableRow("c", depth=1),
    )
    table = TableBlock((("", "n"), ("num-", "ber")), rows, title="x")
    assert drawn(table) == [
        "| x | n | number |",
        "|:--|--:|--:|",
        "| a\\|b | 1 |  |",
        "| &nbsp;&nbsp;\\<tag> | 2 |  |",
        "| c |  |  |",
    ]


def test_bars_are_left_out() -> None:
    table = TableBlock(
        heads(["s", ""]), (TableRow("a", (TableCell("1.0"), BarBlock(0.5))),), first="time"
    )
    assert drawn(table) == ["| time | s |", "|:--|--:|", "| a | 1.0 |"]


def test_a_text_stands_in_place_of_figures() -> None:
    table = TableBlock(heads("ab"), (TableRow("4 x 1", instead="not possible"),), first="split")
    assert drawn(table)[2:] == ["| 4 x 1 | not possible |  |"]


def test_a_listing_has_its_names_first() -> None:
    listing = Listing("calls", ("times",), (TableRow("MPI_Send in f", texts(["2"])),))
    assert drawn(listing) == ["| calls | times |", "|:--|--:|", "| MPI_Send in f | 2 |"]


def test_facts_are_a_list() -> None:
    facts = Facts((("trace", "a*b"), ("where", "x"), ("", "y")))
    assert drawn(facts) == ["- **trace**: a\\*b", "- **where**: x", "  - y"]


def test_commands_and_code_are_fenced() -> None:
    assert drawn(CommandBlock(("srun ./a", "mpirun ./a"), comment="4 cores")) == [
        "```sh",
        "# 4 cores",
        "srun ./a",
        "```",
        "",
        "or",
        "",
        "```sh",
        "# 4 cores",
        "mpirun ./a",
        "```",
    ]
    assert drawn(Code(("a ``` b",))) == ["````sh", "a ``` b", "````"]


def test_equations_are_latex() -> None:
    assert drawn(EquationBlock("T", "a/b", r"T = \frac{a}{b}", "= 3 s")) == [
        "$$",
        r"T = \frac{a}{b}",
        "$$",
        "",
        "= 3 s",
    ]
    assert drawn(EquationBlock("n0", "", "n_0", "= 4: cells")) == ["- $n_0$ = 4: cells"]


def test_of_several_forms_the_first_is_shown() -> None:
    assert drawn(FitBlock((((NoteBlock("wide"),),), ((NoteBlock("narrow"),),)))) == ["wide"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b *c* `d` <e> \\", "a_b \\*c\\* \\`d\\` \\<e> \\\\"),
        ("_a_ __b__", "\\_a_ \\_\\_b_\\_"),
        ("[x](http://y)", "[x]\\(http://y)"),
        ("# no heading", "\\# no heading"),
        ("- no list", "\\- no list"),
        ("-5 %", "-5 %"),
        ("a\x1b[31m\nb", "a [31m b"),
    ],
)
def test_nothing_in_a_text_is_markup(text: str, shown: str) -> None:
    assert drawn(NoteBlock(text)) == [shown]


def test_a_file_has_the_whole_of_what_a_screen_shows_in_brief() -> None:
    assert drawn(Brief(((NoteBlock("all"),), (NoteBlock("of it"),)), ((NoteBlock("most"),),))) == [
        "all",
        "",
        "of it",
    ]
