"""Where in a table something stands, for errors that name it."""

from __future__ import annotations

from popmodel.errors import FileError
from popmodel.values import dataclass


class TableError(FileError):
    """A table of runs is damaged, or does not say what has to be known."""


@dataclass(frozen=True)
class Place:
    """A place in a file."""

    path: str  # The file
    line: int | None = None  # The line, counted from 1, where the format has lines
    # Else the entry of the document, such as ``runs[2]``; empty for the file as a whole.
    entry: str = ""

    def error(self, problem: str, hint: str | None = None) -> TableError:
        """The error that something here is wrong."""
        inside = f"{self.entry}: {problem}" if self.entry else problem
        return TableError(self.path, inside, line=self.line, hint=hint)
