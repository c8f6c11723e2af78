"""A cache of traces of its own, and a small trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.trace.paraver import reader

TEXT = (
    "#Paraver (x):1000_ns:1(4):1:2(2:1,1:1),1\nc:1:1:2:1:2\n"
    "1:1:1:1:1:0:10:1\n2:1:1:1:1:5:50000001:1\n3:1:1:1:1:1:2:3:1:2:1:3:4:8:9\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    where = tmp_path / "cache"
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(where))
    return where


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace of three records."""
    where = tmp_path / "x.prv"
    where.write_text(TEXT)
    return where


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was scanned instead of being taken from the cache."""
    seen: list[str] = []
    scan = reader.scan

    def watch(source, path, application, scratch):
        seen.append(path.name)
        return scan(source, path, application, scratch)

    monkeypatch.setattr(reader, "scan", watch)
    return seen


def cached(folder: Path) -> Path:
    """The one file in the cache."""
    (only,) = folder.iterdir()
    return only
