"""Drawing on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.report.colour import Depth, depth_of, heat
from popmodel.report.terminal import (
    Cell,
    Row,
    Style,
    bar,
    clean,
    display_width,
    distinct,
    pairs,
    paragraph,
    percent,
    shorten,
    table,
)
from popmodel.units import count, plural

TREE = [
    Row("Parallel efficiency", (Cell("63.1", 0.631), Cell("58.0", 0.58))),
    Row("Load balance", (Cell("97.0", 0.97), Cell("-[1]")), depth=1),
    Row("Communication efficiency", (Cell("65.1", 0.651),), depth=1),
]


def test_a_table_is_a_tree_with_a_column_per_run() -> None:
    drawn = table([["a", "2 x 2"], ["b", "4 x 1"]], TREE, Style(60), first="%")
    assert drawn == [
        "                               a      b",
        "%                          2 x 2  4 x 1",
        "Parallel efficiency         63.1   58.0",
        " Load balance               97.0   -[1]",
        " Communication efficiency   65.1",
    ]


def test_columns_that_do_not_fit_are_continued_below() -> None:
    heads = [[f"run {number}"] for number in range(5)]
    rows = [Row("Speed-up", tuple(Cell(f"{number}.00") for number in range(5)))]
    assert table(heads, rows, Style(32)) == [
        "          run 0  run 1  run 2",
        "Speed-up   0.00   1.00   2.00",
        "",
        "          run 3  run 4",
        "Speed-up   3.00   4.00",
    ]


def test_a_long_label_stands_whole_above_its_figures() -> None:
    rows = [
        Row("a_function_with_a_very_long_name@file.c:123", (Cell("123456.789"),)),
        Row("short", (Cell("1.000"),)),
    ]
    assert table([["a_trace_with_a_long_name"]], rows, Style(40)) == [
        "                              a_tr..name",
        "a_function_with_a_very_long_name@file.c:123",
        "                              123456.789",
        "short                              1.000",
    ]


def test_a_long_label_without_figures_is_one_line() -> None:
    assert table([["a"]], [Row("a_name_longer_than_the_line")], Style(20))[1:] == [
        "a_name_longer_than_the_line"
    ]


@pytest.mark.parametrize(
    ("texts", "width", "drawn"),
    [
        (["epoch_1proc", "epoch_4proc"], 11, ["epoch_1proc", "epoch_4proc"]),
        (["first_long_run", "second_long_run"], 10, ["firs.._run", "seco.._run"]),
        (["epoch_1processes", "epoch_16processes"], 10, ["1", "16"]),
        (["weak_run_12.node", "weak_run_16.node"], 10, ["12", "16"]),
        (["a_run_11_of_many", "a_run_111_of_many"], 8, ["11", "111"]),
        (["the_same_long_name"] * 2, 10, ["the_..name"] * 2),
        (["abcdefg1hijklmnop", "zbcdefg2hijklmnoq", "abcdefg3hijklmnop"], 8, ["#1", "#2", "#3"]),
    ],
)
def test_different_names_stay_different(texts: list[str], width: int, drawn: list[str]) -> None:
    assert distinct(texts, [width] * len(texts)) == drawn


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6), st.integers(4, 20))
def test_distinct_names_fit_and_differ(texts: list[str], width: int) -> None:
    drawn = distinct(texts, [width] * len(texts))
    assert all(display_width(text) <= width for text in drawn)
    assert len(set(drawn)) >= len({clean(text) for text in texts})


def test_text_columns_stand_on_the_left() -> None:
    drawn = table([["why"]], [Row("x", (Cell("so"),))], Style(40), first="name", align="left")
    assert drawn == ["name  why", "x     so"]


def test_a_table_without_rows_has_its_head() -> None:
    assert table([["a"]], [], Style(40), first="none") == ["none  a"]


def test_pairs_continue_long_values_below() -> None:
    facts = [("trace", "run"), ("counters", "PAPI_TOT_INS, PAPI_TOT_CYC, PAPI_L3_TCM")]
    assert pairs(facts, Style(30)) == [
        "trace     run",
        "counters  PAPI_TOT_INS,",
        "          PAPI_TOT_CYC,",
        "          PAPI_L3_TCM",
    ]


def test_a_paragraph_hangs_and_keeps_figures_whole() -> None:
    assert paragraph("a loss of -12.5 % here", Style(16), first=" ! ") == [
        " ! a loss of",
        "   -12.5 % here",
    ]
    assert paragraph("", Style(16), first="x ") == ["x"]


def test_a_path_is_never_broken_or_shortened() -> None:
    path = "/a/very/long/path/that/has/no/blank"
    assert paragraph(f"see {path} for more", Style(20), first="- ") == [
        "- see",
        f"  {path}",
        "  for more",
    ]
    assert paragraph(path, Style(20)) == [path]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert clean("a\x1b[31mb\nc\x85") == "a [31mb c?"
    assert shorten("\x1b]0;title\x07", 40) == " ]0;title "


def test_wide_and_combining_characters_count_as_they_are_shown() -> None:
    assert display_width("計算") == 4
    assert display_width("e\u0301") == 1
    assert display_width(shorten("計算計算計算計算", 9)) <= 9


@given(st.text(max_size=40), st.integers(1, 30))
def test_shortened_text_fits(text: str, width: int) -> None:
    assert display_width(shorten(text, width)) <= width


@given(
    st.lists(st.tuples(st.text(max_size=50), st.integers(0, 4)), max_size=5),
    st.lists(st.text(max_size=40), min_size=1, max_size=7),
    st.integers(40, 120),
)
def test_tables_fit_their_width_long_labels_aside(
    labels: list[tuple[str, int]], heads: list[str], width: int
) -> None:
    rows = [
        Row(label, tuple(Cell("100.0", 1.0) for _ in heads), depth=depth) for label, depth in labels
    ]
    drawn = table([[head] for head in heads], rows, Style(width))
    whole = {(" " * row.depth + clean(row.label)).rstrip(" ") for row in rows}
    assert all(display_width(line) <= width or line.rstrip(" ") in whole for line in drawn)
    assert sum(line.count("100.0") for line in drawn) >= len(rows) * len(heads)


@given(st.text(max_size=200), st.integers(20, 80))
def test_paragraphs_fit_their_width_long_words_aside(text: str, width: int) -> None:
    lines = paragraph(text, Style(width), first=" - ")
    assert all(display_width(line) <= width or len(line[3:].split()) == 1 for line in lines)
    assert " ".join(" ".join(lines)[3:].split()) == " ".join(clean(text).split())


def test_small_pieces() -> None:
    assert bar(0.5, 20) == "#" * 10
    assert bar(0.01, 20) == ""
    assert bar(7.0, 3) == "###"
    assert percent(0.81249) == "81.2"
    assert count(1234567) == "1,234,567"
    assert plural(1, "process", "processes") == "1 process"
    assert plural(2, "process", "processes") == "2 processes"
    assert plural(1024, "thread") == "1,024 threads"


def test_a_heat_map_sets_both_colours() -> None:
    rows = [Row("PE", (Cell("50.0", 0.5), Cell("100.0", 1.0), Cell("-[1]")))]
    drawn = table([["a"], ["b"], ["c"]], rows, Style(60, Depth.TRUE))
    assert drawn[1] == (
        "PE  \x1b[38;2;0;0;0;48;2;230;108;94m50.0\x1b[0m"
        "  \x1b[38;2;0;0;0;48;2;100;186;106m100.0\x1b[0m  -[1]"
    )


def test_colours_go_from_red_over_yellow_to_green() -> None:
    assert heat("x", 0.1, Depth.SIXTEEN) == "\x1b[30;41mx\x1b[0m"
    assert heat("x", 0.7, Depth.SIXTEEN) == "\x1b[30;43mx\x1b[0m"
    assert heat("x", 1.2, Depth.SIXTEEN) == "\x1b[30;42mx\x1b[0m"
    assert heat("x", 0.1, Depth.PALETTE) == "\x1b[38;5;16;48;5;167mx\x1b[0m"
    assert heat("x", 0.98, Depth.PALETTE) == "\x1b[38;5;16;48;5;71mx\x1b[0m"
    assert heat("x", 0.85, Depth.TRUE) == "\x1b[38;2;0;0;0;48;2;213;213;108mx\x1b[0m"
    assert heat("x", 0.8, Depth.TRUE) == "\x1b[38;2;0;0;0;48;2;248;212;104mx\x1b[0m"
    assert heat("x", 1.5, Depth.TRUE) == heat("x", 1.0, Depth.TRUE)
    assert heat("x", 0.5, Depth.NONE) == "x"


def test_colour_depth_follows_the_terminal_and_the_user() -> None:
    xterm = {"TERM": "xterm-256color"}
    assert depth_of(xterm, terminal=True) is Depth.PALETTE
    assert depth_of(xterm | {"COLORTERM": "truecolor"}, terminal=True) is Depth.TRUE
    assert depth_of({"TERM": "linux"}, terminal=True) is Depth.SIXTEEN
    assert depth_of({"TERM": "dumb"}, terminal=True) is Depth.NONE
    assert depth_of({}, terminal=True) is Depth.NONE
    assert depth_of(xterm, terminal=False) is Depth.NONE
    assert depth_of(xterm | {"FORCE_COLOR": "1"}, terminal=False) is Depth.PALETTE
    assert depth_of(xterm | {"FORCE_COLOR": "0"}, terminal=False) is Depth.NONE
    assert depth_of(xterm | {"FORCE_COLOR": "1", "NO_COLOR": "1"}, terminal=True) is Depth.NONE
    assert depth_of(xterm | {"NO_COLOR": ""}, terminal=True) is Depth.PALETTE
