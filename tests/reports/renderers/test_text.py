"""Wrapping and shortening of text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.reports.renderers.text import (
    clean,
    command_lines,
    display_width,
    distinct,
    paragraph,
    shorten,
)


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


def test_a_paragraph_hangs_and_keeps_figures_whole() -> None:
    assert paragraph("a loss of -12.5 % here", 16, " ! ") == [
        " ! a loss of",
        "   -12.5 % here",
    ]
    assert paragraph("", 16, "x ") == ["x"]


def test_a_path_is_never_broken_or_shortened() -> None:
    path = "/a/very/long/path/that/has/no/blank"
    assert paragraph(f"see {path} for more", 20, "- ") == [
        "- see",
        f"  {path}",
        "  for more",
    ]
    assert paragraph(path, 20) == [path]


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


@given(st.text(max_size=200), st.integers(20, 80))
def test_paragraphs_fit_their_width_long_words_aside(text: str, width: int) -> None:
    lines = paragraph(text, width, " - ")
    assert all(display_width(line) <= width or len(line[3:].split()) == 1 for line in lines)
    assert " ".join(" ".join(lines)[3:].split()) == " ".join(clean(text).split())


def test_a_command_is_broken_between_words_and_quotes_stay_whole() -> None:
    command = "mpirun -n 4 ./app --title 'two words' --size 12"
    assert command_lines(command, 24) == [
        "mpirun -n 4 ./app \\",
        "  --title 'two words' \\",
        "  --size 12",
    ]


def test_lines_of_a_command_stay_lines() -> None:
    assert command_lines("OMP_NUM_THREADS=4 \\\nsrun ./app", 80) == [
        "OMP_NUM_THREADS=4 \\",
        "srun ./app",
    ]
