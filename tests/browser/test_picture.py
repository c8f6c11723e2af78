"""The picture of a report that README and documentation show."""

from __future__ import annotations

import struct
from pathlib import Path

from report_picture import PICTURE, SIZE, drawn

from .conftest import Open

LARGEST = 180_000
"""Bytes: it lies in every clone and every wheel."""


def size(png: bytes) -> tuple[int, int]:
    """Width and height of a PNG picture, pixels."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return int(width), int(height)


def test_the_picture_can_be_drawn_anew_and_is_small(run_page: Path, open_page: Open) -> None:
    kept = PICTURE.read_bytes()
    assert len(kept) <= LARGEST
    page = open_page(run_page, width=SIZE[0], height=SIZE[1])
    assert size(drawn(page)) == size(kept) == SIZE
    assert page.locator("#timeline canvas").first.is_visible()
