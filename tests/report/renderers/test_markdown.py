"""Blocks as Markdown."""

from __future__ import annotations

import pytest

from popmodel.report.blocks import (
    Bar,
    Block,
    Brief,
    Cell,
    Check,
    Checks,
    Code,
    Command,
    Equation,
    Facts,
    Finding,
    Fit,
    Heading,
    Listing,
    Note,
    Role,
    Row,
    Symbol,
    Table,
    Title,
    heads,
    notes,
    texts,
)
from popmodel.report.renderers.markdown import markdown_lines


def drawn(*blocks: Block) -> list[str]:
    return markdown_lines([blocks])


def test_an_empty_line_stands_between_blocks_but_not_between_entries_of_a_list() -> None:
    sections = [(), notes(["a"]), (Heading("list"), *notes(["b", "c"], Role.BULLET))]
    assert markdown_lines(sections) == ["a", "", "### list", "", "- b", "- c"]


def test_entries_have_a_depth() -> None:
    entries = (Note("loop:", Role.ENTRY), Note("halo", Role.ENTRY, 1))
    assert drawn(*entries) == ["- loop:", "  - halo"]


def test_steps_are_a_numbered_list() -> None:
    assert drawn(*notes(["1. a*b", "2. c"], Role.STEP)) == ["1. a\\*b", "2. c"]


def test_a_table_is_a_tree() -> None:
    rows = (Row("a|b", (Cell("1", 0.5),), 1), Row("<tag>", texts(["2"]), 2), Row("c", depth=1))
    table = Table((("", "n"), ("num-", "ber")), rows, title="x")
    assert drawn(table) == [
        "| x | n | number |",
        "|:--|--:|--:|",
        "| a\\|b | 1 |  |",
        "| &nbsp;&nbsp;\\<tag> | 2 |  |",
        "| c |  |  |",
    ]


def test_bars_are_left_out() -> None:
    table = Table(heads(["s", ""]), (Row("a", (Cell("1.0"), Bar(0.5))),), first="time")
    assert drawn(table) == ["| time | s |", "|:--|--:|", "| a | 1.0 |"]


def test_a_text_stands_in_place_of_figures() -> None:
    table = Table(heads("ab"), (Row("4 x 1", instead="not possible"),), first="split")
    assert drawn(table)[2:] == ["| 4 x 1 | not possible |  |"]


def test_a_listing_has_its_names_first() -> None:
    listing = Listing("calls", ("times",), (Row("MPI_Send in f", texts(["2"])),))
    assert drawn(listing) == ["| calls | times |", "|:--|--:|", "| MPI_Send in f | 2 |"]


def test_facts_are_a_list() -> None:
    facts = Facts((("trace", "a*b"), ("where", "x"), ("", "y")))
    assert drawn(facts) == ["- **trace**: a\\*b", "- **where**: x", "  - y"]


def test_checks_are_a_table() -> None:
    assert drawn(Checks((Check("MPI", "fail", "no mpicc", "load it"),))) == [
        "| check | status | result | what to do |",
        "|:--|:--|:--|:--|",
        "| MPI | fail | no mpicc | load it |",
    ]


def test_commands_and_code_are_fenced() -> None:
    assert drawn(Command(("srun ./a", "mpirun ./a"), comment="4 cores")) == [
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
    assert drawn(Equation("T", "a/b", r"T = \frac{a}{b}", "= 3 s")) == [
        "$$",
        r"T = \frac{a}{b}",
        "$$",
        "",
        "= 3 s",
    ]
    assert drawn(Symbol("n0", "n_0", "= 4: cells")) == ["- $n_0$ = 4: cells"]


def test_titles_and_findings() -> None:
    assert drawn(Title("app", ("4 processes", "4"))) == ["## app, 4 processes"]
    assert drawn(Finding("a.toml:3:", "unknown key", "remove it")) == [
        "- a.toml:3: unknown key (remove it)"
    ]


def test_of_several_forms_the_first_is_shown() -> None:
    assert drawn(Fit((((Note("wide"),),), ((Note("narrow"),),)))) == ["wide"]


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
    assert drawn(Note(text)) == [shown]


def test_a_cause_points_at_its_loss() -> None:
    assert drawn(Note("2 s lost", Role.CAUSE)) == ["\\<- 2 s lost"]


def test_a_file_has_the_whole_of_what_a_screen_shows_in_brief() -> None:
    assert drawn(Brief(((Note("all"),), (Note("of it"),)), ((Note("most"),),))) == [
        "all",
        "",
        "of it",
    ]
