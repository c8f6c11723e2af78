"""Walks over long columns: what they find, and that they hold no memory behind themselves."""

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.traces import tables


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_BLOCK", 7)


def test_a_walk_covers_everything_once() -> None:
    column = np.arange(23)
    assert np.concatenate([column[block] for block in tables.walk(column)]).tolist() == list(
        range(23)
    )
    assert list(tables.walk(np.empty(0))) == []


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 20))
def test_a_walk_over_locations_covers_them_in_order(lengths: list[int], rows: int) -> None:
    offsets = np.cumsum([0, *lengths])
    column = np.arange(offsets[-1])
    found = list(tables.walk_locations(offsets, column, rows=rows))
    assert [n for each in found for n in range(each.start, each.stop)] == list(range(len(lengths)))
    for each in found:
        together = int(offsets[each.stop] - offsets[each.start])
        assert together <= rows or each.stop - each.start == 1


@given(st.sets(st.integers(0, 99)))
def test_values_of_some_rows(rows: set[int]) -> None:
    column = np.arange(100) * 3
    chosen = np.array(sorted(rows), dtype=np.int64)
    assert tables.take(column, chosen).tolist() == column[chosen].tolist()


def resident(address: int) -> int:
    """Bytes in memory of the mapping that begins at an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line[:1] in "0123456789abcdef" and "-" in line.split(" ")[0]:
            begin = int(line.split("-")[0], 16)
            inside = begin == address
        elif inside and line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no such mapping")


def test_mapped_memory_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_BLOCK", 1 << 15)
    size = 4 << 20
    (tmp_path / "column").write_bytes(bytes(64) + np.arange(size // 8).tobytes())
    with (tmp_path / "column").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    column = np.frombuffer(mapped, np.int64, size // 8, 64)
    address = np.frombuffer(mapped, np.uint8).ctypes.data
    assert int(column.sum()) == (size // 8) * (size // 8 - 1) // 2
    assert resident(address) >= size
    total = sum(int(column[block].sum()) for block in tables.walk(column))
    assert total == (size // 8) * (size // 8 - 1) // 2
    assert resident(address) < size // 4
    # What was given back is there when it is asked for again.
    assert column[[0, 1000, size // 8 - 1]].tolist() == [0, 1000, size // 8 - 1]
