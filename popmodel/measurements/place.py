"""Where in a table something stands, for errors that name it."""

from __future__ import annotations

from popmodel.errors import FileError
from popmodel.values import dataclass

__all__ = ["Place", "TableError"]


class TableError(FileError):
    """A table of runs is damaged, or does not say what has to be known."""


@dataclass(frozen=True)
class Place:
    """A place in a file.

    Attributes
    ----------
    path : str
        The file.
    line : int or None
        The line, counted from 1, where the format has lines.
    entry : str
        Else the entry of the document, such as ``runs[2]``; empty for the file as a whole.
    """

    path: str
    line: int | None = None
    entry: str = ""

    def error(self, problem: str, hint: str | None = None) -> TableError:
        """The error that something here is wrong."""
        inside = f"{self.entry}: {problem}" if self.entry else problem
        return TableError(self.path, inside, line=self.line, hint=hint)
