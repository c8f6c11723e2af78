"""Finding and reading documents, and what is said of those that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel import documents
from popmodel.errors import FileError, UsageError


@pytest.fixture
def things(tmp_path: Path) -> documents.Bundled:
    for name in ("one.toml", "other.toml", "readme.md"):
        (tmp_path / name).write_text("")
    return documents.Bundled(tmp_path, ".toml", "thing", "neither a file nor a bundled thing")


def test_bundled_files_are_found_by_name(things: documents.Bundled, tmp_path: Path) -> None:
    assert things.names() == ["one", "other"]
    assert things.find("one") == (tmp_path / "one.toml", True)


def test_a_file_comes_before_a_bundled_one(
    things: documents.Bundled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one").write_text("")
    assert things.find("one") == (Path("one"), False)


def test_what_looks_like_a_path_is_one(things: documents.Bundled) -> None:
    assert things.find("none.toml") == (Path("none.toml"), False)
    assert things.find("folder/one") == (Path("folder/one"), False)


@pytest.mark.parametrize(
    ("name", "hint"), [("oen", "did you mean one?"), ("xyz", "bundled are one, other")]
)
def test_an_unknown_name(things: documents.Bundled, name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        things.find(name)
    assert caught.value.message == f"no thing {name!r}: neither a file nor a bundled thing"
    assert caught.value.hint == hint


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none: cannot be read: No such file or directory$"):
        documents.read_text(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match=r"binary: is not text in UTF-8$"):
        documents.read_text(tmp_path / "binary")


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert documents.read_text(tmp_path / "marked") == "a = 1\n"


def test_toml_with_a_mistake_names_its_line() -> None:
    with pytest.raises(FileError) as caught:
        documents.parse_toml("a = 1\nb = = 2\n", "x.toml")
    assert caught.value.message.startswith("x.toml:2:5: is not TOML: ")
    assert "at line" not in caught.value.message
    assert (caught.value.line, caught.value.column) == (2, 5)


def test_toml_that_ends_too_early_names_its_last_line() -> None:
    with pytest.raises(FileError, match=r"^x\.toml:2: is not TOML: Unterminated string$"):
        documents.parse_toml('a = 1\nb = "', "x.toml")


def test_json_with_a_mistake_names_its_line() -> None:
    with pytest.raises(FileError, match=r"^x\.json:2: is not JSON: "):
        documents.parse_json('{"a": 1,\n"b" 2}', "x.json")


def test_too_much_of_anything() -> None:
    for parse, text in (
        (documents.parse_json, "[" * 100_000),
        (documents.parse_json, "1" * 10_000),
        (documents.parse_toml, "a = " + "[" * 100_000),
    ):
        with pytest.raises(FileError, match="is nested too deeply, or has a number with too many"):
            parse(text, "x")


def test_the_kind_of_error_is_the_callers() -> None:
    class MineError(FileError):
        pass

    with pytest.raises(MineError):
        documents.parse_toml("=", "x", MineError)


@pytest.mark.parametrize(
    "name",
    [
        ".".join(["a"] * 50_000),
        " . ".join(['"a b"', "'c'", "d-1"] * 20_000),
        "x = [{ " + ".".join(["a"] * 50_000) + " = 1 }]\ny",
    ],
)
def test_a_name_of_very_many_parts_is_refused_before_it_costs_minutes(name: str) -> None:
    for text in (f"a = 1\n\n{name} = 1\n", f"a = 1\n\n[{name}]\n"):
        with pytest.raises(FileError) as caught:
            documents.parse_toml(text, "app.toml")
        assert caught.value.message == "app.toml:3: has a name of more than 32 parts"


def test_a_name_of_some_parts_is_none_of_too_many() -> None:
    name = ".".join("abcdefghijklmnopqrstuvwxyzabcdef")
    table = documents.parse_toml(f'{name} = 1.5\ntext = "a.b. c, d... e.g. this"', "app.toml")
    assert table["text"].startswith("a.b")
    assert table["a"]["b"]["c"]


def test_files_that_are_too_large_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileError, match=r"app\.toml: is larger than 1 MiB"):
        documents.parse_toml("#" * (1 << 20) + "\n", "app.toml")
    monkeypatch.setattr(documents, "LARGEST", 1 << 20)
    with pytest.raises(FileError, match="/dev/zero: is larger than 1 MiB"):
        documents.read_text("/dev/zero")
    (tmp_path / "a").write_bytes("\ufeffä\r\nb\rc\n".encode())
    assert documents.read_text(tmp_path / "a") == "ä\nb\nc\n"
