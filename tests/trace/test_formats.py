"""Which format a file has."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from popmodel.errors import TraceError, UsageError
from popmodel.trace import read

DATA = Path(__file__).parent.parent / "data"
HINT = (
    "popmodel reads Paraver (.prv), SimGrid SMPI (.ti.txt .ti), Dimemas (.dim), GOAL (.goal), also "
    "with .gz"
)


@pytest.mark.parametrize("name", ["is.S.4.prv.gz", "smpi/jac2048.4.ti.txt.gz"])
def test_a_file_with_another_name_is_known_by_how_it_begins(tmp_path: Path, name: str) -> None:
    shutil.copy(DATA / name, tmp_path / "packed")
    (tmp_path / "plain.txt").write_bytes(gzip.decompress((DATA / name).read_bytes()))
    wanted = read(DATA / name).calls()
    for file in ("packed", "plain.txt"):
        calls = read(tmp_path / file, cache=False).calls()
        assert calls.entry.tolist() == wanted.entry.tolist()
        assert calls.names == wanted.names


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "the file is empty"),
        (b"PK\x03\x04\0\0", "the file is binary"),
        (b"Hello\n", "not a trace"),
    ],
)
def test_other_files_are_told_what_is_read(tmp_path: Path, text: bytes, problem: str) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(text)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == f"{path}: {problem}"
    assert caught.value.hint == HINT


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    for path, problem in ((tmp_path / "x", "no such file"), (tmp_path, "is a directory")):
        with pytest.raises(TraceError, match=problem):
            read(path)
    with pytest.raises(UsageError, match="must not be empty"):
        read("")
