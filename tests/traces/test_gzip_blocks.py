"""Compressed text in blocks: what any gunzip makes of it, and readers of its ranges."""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.compare import told

from popmodel.traces import gzip_blocks, read
from popmodel.traces.gzip_blocks import GzipBlocks, block_ranges, read_index
from popmodel.traces.paraver import text_scan
from popmodel.traces.paraver.writer import labels_of, write_trace
from popmodel.traces.source import open_source, text_ranges

DATA = Path(__file__).parents[1] / "data"
SMALL = 1 << 12


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_blocks, "BLOCK", SMALL)
    monkeypatch.setattr(gzip_blocks, "_LISTED", 3)
    monkeypatch.setattr(text_scan, "RANGE", 2 * SMALL)


def written(path: Path, pieces: list[bytes]) -> Path:
    with path.open("wb") as file, GzipBlocks(file) as out:
        for piece in pieces:
            out.write(piece)
    return path


def text_of(path: Path, part: tuple[int, int] | None = None) -> bytes:
    buffer, text = memoryview(bytearray(1000)), b""
    with open_source(path, part) as source:
        while size := source.readinto(buffer):
            text += bytes(buffer[:size])
    return text


@given(st.lists(st.binary(max_size=40).map(lambda line: line + b"\n" * 3), max_size=60))
def test_any_gunzip_reads_it(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gzip_blocks, "BLOCK", 50)
        patch.setattr(gzip_blocks, "_LISTED", 2)
        path = written(tmp_path_factory.mktemp("blocks") / "x.gz", lines)
    text = b"".join(lines)
    assert gzip.decompress(path.read_bytes()) == text
    assert text_of(path) == text
    blocks = read_index(path)
    assert blocks is not None
    assert blocks[:, 1].sum() == len(text)
    if shutil.which("gunzip"):
        assert subprocess.run(["gunzip", "-c", path], capture_output=True).stdout == text
    for most in (2, 3, 7):
        parts = block_ranges(path, most, 60)
        assert len(parts) <= most
        assert not parts or b"".join(text_of(path, part) for part in parts) == text
        assert all(text_of(path, part).endswith(b"\n") for part in parts)


@pytest.mark.usefixtures("small")
def test_a_written_trace_is_read_in_ranges(tmp_path: Path) -> None:
    path = tmp_path / "x.prv.gz"
    trace = read(DATA / "cg.S.2.prv.gz")
    write_trace(path, trace, labels_of(trace))
    assert len(text_ranges(path, 14, 2 * SMALL)) > 3
    assert told(path, workers=3) == told(path)


@pytest.mark.usefixtures("small")
def test_damage_is_told_as_by_one_worker(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "cg.S.2.prv.gz").read_bytes())
    whole = written(tmp_path / "x.prv.gz", [text]).read_bytes()
    for place in range(100, len(whole), len(whole) // 30):
        path = tmp_path / f"{place}.prv.gz"
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        assert told(path, workers=3) == told(path)


@pytest.mark.usefixtures("small")
def test_files_without_an_index_of_all_are_read_in_one_piece(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "cg.S.2.prv.gz").read_bytes())
    whole = written(tmp_path / "x.prv.gz", [text]).read_bytes()
    path = tmp_path / "y.prv.gz"
    for other in (whole + whole, whole[:-1], whole[10:], whole[-34:], b"", gzip.compress(text)):
        path.write_bytes(other)
        assert read_index(path) is None
