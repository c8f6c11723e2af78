"""The line of progress."""

from __future__ import annotations

import io
import sys

import pytest

from popmodel.cli.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    for stream, expected in (
        (Terminal(), "\r\x1b[K49 wide\r\x1b[Kdone\r\x1b[K"),
        (io.StringIO(), ""),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        line = ProgressLine()
        line.draw(lambda width: f"{width} wide")
        line.draw(lambda width: f"{width} wide")  # the same is not drawn twice
        line.draw(lambda _: "done")
        line.clear()
        line.clear()
        assert stream.getvalue() == expected
