"""Files of runs by their names: what reads each, and what writes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from popmodel.documents import read_text
from popmodel.runs.csv_files import read_csv, write_csv
from popmodel.runs.extrap_files import (
    read_extrap_text,
    write_extrap_json,
    write_lines,
    write_text,
)
from popmodel.runs.json_files import SCHEMA, read_json, read_json_lines, write_json
from popmodel.runs.measurement import MeasuredRow
from popmodel.runs.sacct_files import is_sacct, read_sacct
from popmodel.runs.table import RunTimes, TableError

_TRACES = (".ti.txt",)
"""Ends of names of traces that end as tables do."""


def _read_text(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = (),
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read runs from text: what sacct prints, or Extra-P's."""
    read = read_sacct if is_sacct(read_text(path, TableError)) else read_extrap_text
    return read(path, parameters, said)


_READERS: Mapping[str, Callable[..., RunTimes]] = {
    ".csv": read_csv,
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".txt": _read_text,
    ".sacct": read_sacct,
}
SUFFIXES = tuple(_READERS)
"""Of the files that hold tables of runs."""


class FileForm(NamedTuple):
    """A format in which tables of runs are written."""

    name: str  # For people
    # From runs and the provenance of the file to its text, and notes on what it does not hold.
    write: Callable[[Sequence[MeasuredRow], Mapping[str, Any]], tuple[str, tuple[str, ...]]]


FORMATS: Mapping[str, FileForm] = {
    ".csv": FileForm("CSV", write_csv),
    ".extrap.json": FileForm("Extra-P JSON", write_extrap_json),
    ".json": FileForm(SCHEMA, write_json),
    ".jsonl": FileForm("Extra-P JSON lines", write_lines),
    ".txt": FileForm("Extra-P text", write_text),
}
"""By the suffix of the file; the first that fits."""


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a table of runs, and no trace, by its name."""
    name = os.fspath(path).lower()
    return name.endswith(SUFFIXES) and not name.endswith(_TRACES)


def read_file(
    path: str | os.PathLike[str],
    parameters: Iterable[str] | None = None,
    said: Mapping[str, str] | None = None,
) -> RunTimes:
    """Read a table of runs in any of its formats; arguments as for `read_csv`."""
    suffix = next(each for each in SUFFIXES if os.fspath(path).lower().endswith(each))
    return _READERS[suffix](path, parameters, said)


def form_of(path: str | os.PathLike[str]) -> FileForm | None:
    """The format of tables of runs that the name of a file asks for; None if it asks for none."""
    name = os.fspath(path).lower()
    if name.endswith(_TRACES):
        return None
    return next((form for suffix, form in FORMATS.items() if name.endswith(suffix)), None)
