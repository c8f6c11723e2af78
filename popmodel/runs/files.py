"""Tables of runs in files, by their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from popmodel.runs.documents import read_document, read_lines
from popmodel.runs.extrap import read_extrap_text
from popmodel.runs.rows import RunTimes
from popmodel.runs.table import read_table

_READERS: Mapping[str, Callable[..., RunTimes]] = {
    ".csv": read_table,
    ".json": read_document,
    ".jsonl": read_lines,
    ".txt": read_extrap_text,
}
SUFFIXES = tuple(_READERS)
"""Of the files that hold tables of runs."""
_TRACES = (".ti.txt",)
"""Ends of names of traces that end as tables do."""


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a table of runs, and no trace, by its name."""
    name = os.fspath(path).lower()
    return name.endswith(SUFFIXES) and not name.endswith(_TRACES)


def read_file(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = None,
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read a table of runs in any of its formats; parameters as for `read_table`."""
    suffix = next(each for each in SUFFIXES if os.fspath(path).lower().endswith(each))
    return _READERS[suffix](path, parameters, said)
