"""A line of progress on standard error."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PATIENCE = 2.0
"""Seconds that need no explanation."""


_SHOWN: ContextVar[bool] = ContextVar("shown", default=False)
"""Whether progress is shown: on the command line, not in Python."""


@contextmanager
def shown() -> Iterator[None]:
    """Show progress of what is done in here."""
    token = _SHOWN.set(True)
    try:
        yield
    finally:
        _SHOWN.reset(token)


class ProgressLine:
    """The last line of a terminal, drawn anew again and again; nothing where there is none."""

    def __init__(self) -> None:
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown = ""

    def draw(self, text: Callable[[int], str]) -> None:
        """Show a text, made for a width that leaves the terminal's last column free."""
        if not self._terminal:
            return
        line = text(shutil.get_terminal_size((80, 24)).columns - 1)
        if line != self._shown:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
            self._shown = line

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = ""


@contextmanager
def counted(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many of how many things are done, if that takes more than a moment."""
    line, begin = ProgressLine(), time.monotonic()

    def step(done: int, total: int) -> None:
        if _SHOWN.get() and time.monotonic() - begin >= PATIENCE:
            line.draw(lambda width: f"{done} of {total} {what}"[:width])

    try:
        yield step
    finally:
        line.clear()


_BAR = 20


def progress_line(part: str, done: int, total: int, left: float, width: int) -> str:
    """One line: part of the suite, a bar, jobs, and the time that is left."""
    from popmodel.reports.renderers.text import shorten

    filled = _BAR * done // total if total else _BAR
    minutes, seconds = divmod(round(left), 60)
    figures = f"{done}/{total} jobs, {minutes}:{seconds:02d} left"
    bar = "#" * filled + "." * (_BAR - filled)
    whole = f"{part:<11} [{bar}] {figures}"
    return whole if len(whole) <= width else shorten(f"{part} {figures}", width)
