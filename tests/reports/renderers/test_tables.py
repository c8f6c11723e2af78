"""Tables on a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from popmodel.reports.blocks import BarBlock, Listing, TableBlock, TableCell, TableRow, heads, texts
from popmodel.reports.palette import Depth
from popmodel.reports.renderers.text import (
    Least,
    Style,
    clean,
    display_width,
    fits,
    in_line,
    listing_lines,
    pair_lines,
    table_lines,
)

TREE = (
    TableRow("Parallel efficiency", (TableCell("63.1", 0.631), TableCell("58.0", 0.58))),
    TableRow("Load balance", (TableCell("97.0", 0.97), TableCell("-[1]")), depth=1),
    TableRow("Communication efficiency", (TableCell("65.1", 0.651),), depth=1),
)


def drawn(table: TableBlock, width: int) -> list[str]:
    return table_lines(table, Style(width), Least())


def test_a_table_is_a_tree_with_a_column_per_run() -> None:
    assert drawn(TableBlock((("a", "2 x 2"), ("b", "4 x 1")), TREE, first="%"), 60) == [
        "                               a      b",
        "%                          2 x 2  4 x 1",
        "Parallel efficiency         63.1   58.0",
        " Load balance               97.0   -[1]",
        " Communication efficiency   65.1",
    ]


def test_columns_that_do_not_fit_are_continued_below() -> None:
    names = heads(f"run {number}" for number in range(5))
    rows = (TableRow("Speed-up", texts(f"{number}.00" for number in range(5))),)
    assert drawn(TableBlock(names, rows), 32) == [
        "          run 0  run 1  run 2",
        "Speed-up   0.00   1.00   2.00",
        "",
        "          run 3  run 4",
        "Speed-up   3.00   4.00",
    ]


def test_keys_are_repeated_where_columns_are_continued() -> None:
    names = heads(["N", *(f"run {number}" for number in range(4))])
    rows = tuple(TableRow("1 x 1", texts([cells, *["2.50"] * 4])) for cells in ("24", "256"))
    assert drawn(TableBlock(names, rows, first="P x T", keys=1), 27) == [
        "P x T    N  run 0  run 1",
        "1 x 1   24   2.50   2.50",
        "1 x 1  256   2.50   2.50",
        "",
        "P x T    N  run 2  run 3",
        "1 x 1   24   2.50   2.50",
        "1 x 1  256   2.50   2.50",
    ]


def test_keys_that_leave_no_room_are_not_repeated() -> None:
    rows = (TableRow("1 x 1", texts(["24", "1234.5", "1234.5"])),)
    assert drawn(TableBlock(heads(["N", "run 0", "run 1"]), rows, keys=1), 15) == [
        "        N",
        "1 x 1  24",
        "",
        "        run 0",
        "1 x 1  1234.5",
        "",
        "        run 1",
        "1 x 1  1234.5",
    ]


@given(
    widths=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    keys=st.integers(0, 3),
    room=st.integers(12, 60),
)
def test_every_column_is_drawn_and_no_line_is_too_wide(
    widths: list[int], keys: int, room: int
) -> None:
    rows = (TableRow("P", texts(chr(97 + at) * width for at, width in enumerate(widths))),)
    table = TableBlock(heads([""] * len(widths)), rows, keys=min(keys, len(widths)))
    lines = drawn(table, room)
    assert all(len(line) <= room for line in lines)
    words = {word for line in lines for word in line.split()} - {"P"}
    assert words == {cell.text for cell in rows[0].cells}


def test_a_long_label_stands_whole_above_its_figures() -> None:
    rows = (
        TableRow("a_function_with_a_very_long_name@file.c:123", (TableCell("123456.789"),)),
        TableRow("short", (TableCell("1.000"),)),
    )
    assert drawn(TableBlock(heads(["a_trace_with_a_long_name"]), rows), 40) == [
        "                              a_tr..name",
        "a_function_with_a_very_long_name@file.c:123",
        "                              123456.789",
        "short                              1.000",
    ]


def test_a_long_label_without_figures_is_one_line() -> None:
    table = TableBlock(heads("a"), (TableRow("a_name_longer_than_the_line"),))
    assert drawn(table, 20)[1:] == ["a_name_longer_than_the_line"]


def test_a_table_without_rows_has_its_head() -> None:
    assert drawn(TableBlock(heads("a"), (), first="none"), 40) == ["none  a"]


def test_a_title_stands_above_labels_that_are_narrower() -> None:
    rows = (TableRow("label", texts(["1"])),)
    assert drawn(TableBlock(heads("a"), rows, title="wide title"), 40) == [
        "wide title",
        "       a",
        "label  1",
    ]
    assert drawn(TableBlock(heads("a"), rows, title="title"), 40)[0] == "title  a"


def test_a_text_may_stand_in_place_of_figures() -> None:
    rows = (
        TableRow("1 x 1", texts(["2.0"])),
        TableRow("4 x 1", instead="not possible: too few cells"),
    )
    assert drawn(TableBlock(heads(["time"]), rows), 24) == [
        "       time",
        "1 x 1   2.0",
        "4 x 1  not possible: too",
        "     few cells",
    ]


def test_a_text_in_place_of_figures_is_not_repeated_below() -> None:
    rows = (TableRow("1 x 1", texts(["1234", "5678"])), TableRow("4 x 1", instead="not possible"))
    lines = drawn(TableBlock(heads("ab"), rows), 15)
    assert lines.count("") == 1
    assert lines.count("4 x 1  not") == 1


def test_bars_go_first_where_there_is_no_room() -> None:
    table = TableBlock(heads(["s", ""]), (TableRow("a", (TableCell("1.0"), BarBlock(0.5))),))
    assert drawn(table, 40) == ["     s", "a  1.0  ##########"]
    assert drawn(table, 20) == ["     s", "a  1.0"]


def test_a_bar_shows_a_part_of_the_whole() -> None:
    rows = (TableRow("a", (BarBlock(0.01),)), TableRow("b", (BarBlock(7.0),)))
    assert drawn(TableBlock(heads([""]), rows), 40) == ["a", "b  " + "#" * 20]


def test_names_that_become_numbers_are_told_below() -> None:
    names = [
        "abcdefghijklmnop1hijklmnop",
        "zbcdefghijklmnop2hijklmnoq",
        "abcdefghijklmnop3ijklmnop",
    ]
    rows = (TableRow("size", texts(["1", "2", "3"])),)
    assert drawn(TableBlock(heads(names), rows, is_key=True), 40)[2:] == [
        f"#{number}  {name}" for number, name in enumerate(names, start=1)
    ]
    without = drawn(TableBlock(heads(names), rows), 40)
    assert "#1" in without[0]
    assert len(without) == 2


def test_tables_of_a_group_stand_in_line() -> None:
    one = TableBlock(heads("a"), (TableRow("long label", texts(["1"])),))
    other = TableBlock(heads("b"), (TableRow("x", texts(["12345"])),))
    least = in_line([one, other])
    assert table_lines(one, Style(), least)[1] == "long label      1"
    assert table_lines(other, Style(), least)[1] == "x           12345"


def test_a_table_fits_if_no_name_is_shortened() -> None:
    table = TableBlock(heads(["0123456789"]), (TableRow("label", texts(["1"])),))
    assert fits(table, 17)
    assert not fits(table, 16)


def test_a_heat_map_sets_both_colours() -> None:
    rows = (TableRow("PE", (TableCell("50.0", 0.5), TableCell("100.0", 1.0), TableCell("-[1]"))),)
    lines = table_lines(TableBlock(heads("abc"), rows), Style(60, Depth.TRUE), Least())
    assert lines[1] == (
        "PE  \x1b[38;2;255;255;255;48;2;62;86;117m50.0\x1b[0m"
        "  \x1b[38;2;0;0;0;48;2;255;241;184m100.0\x1b[0m  -[1]"
    )


def test_facts_continue_long_values_below() -> None:
    facts = [("trace", "run"), ("counters", "PAPI_TOT_INS, PAPI_TOT_CYC, PAPI_L3_TCM")]
    assert pair_lines(facts, 30) == [
        "trace     run",
        "counters  PAPI_TOT_INS,",
        "          PAPI_TOT_CYC,",
        "          PAPI_L3_TCM",
    ]


def test_a_listing_wraps_names_behind_their_figures() -> None:
    rows = (TableRow("a long name in some_function", texts(["2,000", "25.0"])),)
    listing = Listing("calls", ("times", "%"), rows)
    assert listing_lines(listing, Style(40)) == [
        "calls",
        "times     %",
        "2,000  25.0  a long name in",
        "              some_function",
    ]
    assert listing_lines(listing, Style(24))[2:] == [
        "2,000  25.0",
        "  a long name in",
        "   some_function",
    ]


@given(
    st.lists(st.tuples(st.text(max_size=50), st.integers(0, 4)), max_size=5),
    st.lists(st.text(max_size=40), min_size=1, max_size=7),
    st.integers(40, 120),
)
def test_tables_fit_their_width_long_labels_aside(
    labels: list[tuple[str, int]], names: list[str], width: int
) -> None:
    rows = tuple(
        TableRow(label, tuple(TableCell("100.0", 1.0) for _ in names), depth)
        for label, depth in labels
    )
    lines = drawn(TableBlock(heads(names), rows), width)
    whole = {(" " * row.depth + clean(row.label)).rstrip(" ") for row in rows}
    assert all(display_width(line) <= width or line.rstrip(" ") in whole for line in lines)
    assert sum(line.count("100.0") for line in lines) >= len(rows) * len(names)
