"""Shaded cells as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

from popmodel.reports.pictures import Cells, Picture, PictureCell
from popmodel.reports.renderers.cells import outlines
from popmodel.reports.renderers.svg import draw

STAMP = {"popmodel": "0", "time": "now", "command": "popmodel communication"}
LEGEND = ((1, "1 B"), (9, "1 KiB"))


def drawn(number: int, cells: Iterable[PictureCell], each: int = 1) -> str:
    names = tuple(
        str(row) if each == 1 else f"{row * each}-{(row + 1) * each - 1}" for row in range(number)
    )
    shown = Cells(names, tuple(cells), "from", "to", "bytes", LEGEND)
    text = draw(Picture("Bytes", ["a < b"], shown), STAMP)
    ElementTree.fromstring(text.encode())
    return text


def diagonal(number: int) -> list[PictureCell]:
    return [PictureCell(row, row, row % 9 + 1, f"{row} to {row}") for row in range(number)]


def covered(path: str) -> set[tuple[int, int]]:
    """Columns and rows of the cells that a path goes around."""
    runs = re.findall(r"M(\d+) (\d+)h(\d+)v1h-(\d+)z", path)
    assert "".join(f"M{x} {y}h{n}v1h-{m}z" for x, y, n, m in runs) == path
    assert all(n == m for _, _, n, m in runs)
    return {(int(x) + step, int(y)) for x, y, n, _ in runs for step in range(int(n))}


def test_every_cell_has_its_shade_and_what_is_in_it() -> None:
    text = drawn(4, diagonal(4))
    assert re.findall(r'class="cell shade(\d)"', text) == ["1", "2", "3", "4"]
    assert "<title>2 to 2</title>" in text


def test_the_legend_says_from_what_value_on_a_shade_is_used() -> None:
    text = drawn(4, diagonal(4))
    assert "bytes, from:" in text
    assert re.findall(r'<rect class="shade(\d)"', text) == ["1", "9"]
    assert ">1 KiB</text>" in text


def test_many_rows_stay_on_the_sheet_and_some_are_named() -> None:
    for number in (1, 16, 128):
        text = drawn(number, diagonal(number))
        width = float(re.search(r'<svg [^>]*width="(\d+)"', text)[1])
        ends = [
            float(x) + float(w)
            for x, w in re.findall(
                r'class="cell \w+" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', text
            )
        ]
        assert max(ends) < width <= 580
    labels = re.findall(r'class="end">(\d+)<', drawn(128, diagonal(128)))
    assert 4 < len(labels) < 40


def test_columns_of_several_ranks_are_named_by_the_first() -> None:
    text = drawn(4, diagonal(4), each=8)
    assert re.findall(r'class="middle">([\d-]+)<', text) == ["0", "8", "16", "24"]
    assert re.findall(r'class="end">([\d-]+)<', text) == ["0-7", "8-15", "16-23", "24-31"]


def test_neighbours_of_one_shade_have_one_outline() -> None:
    cells = [
        PictureCell(0, 0, 1, ""),
        PictureCell(0, 1, 1, ""),
        PictureCell(0, 3, 1, ""),
        PictureCell(1, 4, 1, ""),
    ]
    assert outlines([*cells, PictureCell(0, 2, 5, "")]) == {
        1: "M0 0h2v1h-2zM3 0h1v1h-1zM4 1h1v1h-1z",
        5: "M2 0h1v1h-1z",
    }


def test_of_very_many_cells_each_shade_is_one_path() -> None:
    cells = [
        PictureCell(row, column, 1 + (row ^ column) % 9, "x")
        for row in range(100)
        for column in range(90)
    ]
    text = drawn(100, cells)
    paths = dict(re.findall(r'<path class="cell shade(\d)"[^>]* d="([^"]*)"', text))
    assert {
        (column, row): int(shade) for shade, path in paths.items() for column, row in covered(path)
    } == {(cell.column, cell.row): cell.shade for cell in cells}
    assert len(text) < 150_000
