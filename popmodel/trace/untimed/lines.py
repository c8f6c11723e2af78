"""Lines of a text, plain or compressed, each with its number, and errors that name them."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.errors import TraceError
from popmodel.trace.source import CHUNK, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST = 2**53
"""Bytes of a message, and ns that a process computes; beyond, numbers are not exact."""

LONGEST = 1 << 26
"""Bytes of a line; an Alltoallv of a million processes needs less."""

_DIGITS = 18  # more are no number of anything, and may exceed what Python converts


class LineError(ValueError):
    """A line cannot be used; the text says why, `hint` what to do about this one."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.hint = hint


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, numbered from 1; raises as `popmodel.trace.source.open_source`."""
    count, line = 0, bytearray()
    with open_source(path) as source:
        view = memoryview(bytearray(CHUNK))
        while size := source.readinto(view):
            *ends, begin = bytes(view[:size]).split(b"\n")
            for end in ends:
                count += 1
                yield count, (line + end).decode("ascii", "backslashreplace")
                line.clear()
            line += begin
            if len(line) > LONGEST:
                problem = f"a line is longer than {LONGEST >> 20} MiB"
                raise TraceError(path, problem, line=count + 1)
    if line:
        yield count + 1, line.decode("ascii", "backslashreplace")


def listed_file(path: Path, name: str) -> Path | None:
    """Return the file that a list names, if it is there.

    Its name is relative to the folder of the list, or to that of the command that wrote it: one
    above, or the working directory; or list and files were moved together.
    """
    folders = (path.parent, *path.absolute().parent.parents, Path())
    places = (*(folder / name for folder in folders), path.parent.joinpath(*Path(name).parts[-2:]))
    # isfile never raises, however long the name
    return next((place for place in places if os.path.isfile(place)), None)  # noqa: PTH113


def whole(digits: str) -> int:
    """Return the number that some digits write; raises `LineError` beyond `MOST`."""
    number = int(digits) if len(digits) <= _DIGITS else MOST + 1
    if number > MOST:
        raise LineError(f"{digits[:40]} is larger than can be represented")
    return number


class Words:
    """Arguments of what a line tells."""

    def __init__(self, what: str, words: Sequence[str]) -> None:
        self._what = what
        self._words = words

    def __len__(self) -> int:
        return len(self._words)

    def amount(self, place: int) -> float:
        """Return a number that is not negative."""
        try:
            amount = float(self._words[place])
        except (IndexError, ValueError):
            amount = math.nan
        if not 0 <= amount < math.inf:
            raise self._wrong(place, "a number")
        return amount

    def whole(self, place: int, missing: int | None = None, most: int = 2**31 - 1) -> int:
        """Return a whole number that is not negative."""
        if missing is not None and place >= len(self._words):
            return missing
        try:
            number = int(self._words[place])
        except (IndexError, ValueError):
            number = -1
        if not 0 <= number <= most:
            raise self._wrong(place, "a whole number")
        return number

    def _wrong(self, place: int, what: str) -> LineError:
        given = f"not {self._words[place][:40]!r}" if place < len(self._words) else "there is none"
        return LineError(f"argument {place + 1} of {self._what} must be {what}, {given}")
