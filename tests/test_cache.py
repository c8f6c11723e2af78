"""Whether what lies in the cache can be believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from popmodel.base import files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, which is not there yet."""
    where = tmp_path / "above" / "cache"
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(where))
    return where


def test_a_folder_is_made_for_its_user_alone_and_trusted(folder: Path) -> None:
    assert files.doubt_of_cache("a", "b") is None  # not there
    assert files.make_cache_folder("a", "b") == folder / "a" / "b"
    assert files.make_cache_folder("a", "b") == folder / "a" / "b"
    made = (folder.parent, folder, folder / "a", folder / "a" / "b")
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
    assert files.doubt_of_cache("a", "b") is None


@pytest.mark.parametrize(("mode", "who"), [(0o720, "720"), (0o702, "702"), (0o1777, "1777")])
def test_a_folder_that_others_can_write_is_doubted(folder: Path, mode: int, who: str) -> None:
    files.make_cache_folder("a", "b")
    (folder / "a").chmod(mode)
    assert files.doubt_of_cache("a", "b") == f"{folder}/a is writable by others (mode {who})"
    assert files.doubt_of_cache() is None


def test_a_folder_of_another_user_is_doubted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.make_cache_folder()
    owner = folder.stat().st_uid
    if owner == 0:
        owner = 4321
        os.chown(folder, owner, owner)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert files.doubt_of_cache() == f"{folder} belongs to another user (uid {owner})"


def test_a_link_is_as_good_as_who_made_it_and_where_it_leads(folder: Path) -> None:
    there = folder.parent.parent / "there"
    there.mkdir(mode=0o700)
    folder.parent.mkdir()
    folder.symlink_to(there)
    assert files.doubt_of_cache() is None
    there.chmod(0o777)
    assert files.doubt_of_cache() == f"{folder} is writable by others (mode 777)"
    there.chmod(0o700)
    if os.geteuid() == 0:
        os.lchown(folder, 4321, 4321)
        assert files.doubt_of_cache() == f"{folder} belongs to another user (uid 4321)"
