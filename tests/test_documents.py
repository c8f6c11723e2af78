"""Finding and reading documents, and what is said of those that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.base import documents
from popmodel.base.documents import Text, record
from popmodel.base.errors import FileError, UsageError


@pytest.fixture
def things(tmp_path: Path) -> documents.Bundled:
    for name in ("one.toml", "other.toml", "readme.md"):
        (tmp_path / name).write_text("")
    return documents.Bundled(tmp_path, ".toml", "thing", "neither a file nor a bundled thing")


def test_bundled_files_are_found_by_name(things: documents.Bundled, tmp_path: Path) -> None:
    assert things.names() == ["one", "other"]
    assert things.find("one") == (tmp_path / "one.toml", True)


def test_a_program_or_folder_beside_one_does_not_hide_a_bundled_file(
    things: documents.Bundled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one").write_text("")
    Path("other").mkdir()
    assert things.find("one") == (tmp_path / "one.toml", True)
    assert things.find("other") == (tmp_path / "other.toml", True)
    assert things.find("./one") == (Path("./one"), False)


def test_a_file_of_another_name_is_found_whatever_its_suffix(
    things: documents.Bundled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("")
    assert things.find("mine") == (Path("mine"), False)


def test_what_looks_like_a_path_is_one(things: documents.Bundled) -> None:
    assert things.find("none.toml") == (Path("none.toml"), False)
    assert things.find("folder/one") == (Path("folder/one"), False)


@pytest.mark.parametrize(
    ("name", "hint"), [("oen", "did you mean one?"), ("xyz", "choose a file or one of one, other")]
)
def test_an_unknown_name(things: documents.Bundled, name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        things.find(name)
    assert caught.value.message == f"no thing {name!r}: neither a file nor a bundled thing"
    assert caught.value.hint == hint


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none: cannot be read: No such file or directory"):
        documents.read_text(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfa")
    with pytest.raises(FileError, match=r"binary: is not UTF-8 text"):
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
    with pytest.raises(FileError, match=r"^x\.toml:2: is not TOML: Unterminated string"):
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
        with pytest.raises(
            FileError, match="is nested too deeply, or contains a number with too many"
        ):
            parse(text, "x")


def test_the_kind_of_error_is_the_callers() -> None:
    class MineError(FileError):
        pass

    with pytest.raises(MineError):
        documents.parse_toml("=", "x", MineError)


def test_a_key_that_is_there_twice_is_refused() -> None:
    with pytest.raises(FileError, match=r"^x: contains the key 'b' twice in one table"):
        documents.parse_json('{"a": 1, "c": [{"b": 1, "b": 2}]}', "x")


def test_a_line_of_json_is_named_by_its_number() -> None:
    for text in ("{", '{"a": 1, "a": 1}', b"\xff\xfa\xff", "[" * 100_000):
        with pytest.raises(FileError, match=r"^x:7: ") as caught:
            documents.parse_json(text, "x", line=7, hint="write it again")
        assert caught.value.hint == "write it again"


THING = documents.DocumentKind("popmodel/thing/2", "thing", record({"schema": Text()}), "make one")


@pytest.mark.parametrize(
    ("document", "words", "hint"),
    [
        ([], "is not a thing: the JSON document must be a table", "make one"),
        ({}, "is not a thing: it has no schema 'popmodel/thing/2'", "make one"),
        (
            {"schema": "popmodel/other/3"},
            "is not a thing: its schema is 'popmodel/other/3'",
            "make",
        ),
        (
            {"schema": "popmodel/thing/1"},
            "is not a thing: its schema is 'popmodel/thing/1'",
            "make",
        ),
        ({"schema": "popmodel/thing/10"}, "its schema is 'popmodel/thing/10'", "update popmodel"),
        ({"schema": "popmodel/thing/2", "x": 1}, "x is not a known key", "make one"),
    ],
)
def test_a_document_of_another_kind_or_version(document: object, words: str, hint: str) -> None:
    with pytest.raises(FileError) as caught:
        THING.read(document, "x.json")
    assert caught.value.message.startswith("x.json: ")
    assert words in caught.value.message
    assert hint in (caught.value.hint or "")


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
        assert caught.value.message == "app.toml:3: contains a key with more than 32 parts"


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
    monkeypatch.setattr(documents, "LARGEST_FILE", 1 << 20)
    with pytest.raises(FileError, match="/dev/zero: is larger than 1 MiB"):
        documents.read_text("/dev/zero")
    (tmp_path / "a").write_bytes("\ufeffä\r\nb\rc\n".encode())
    assert documents.read_text(tmp_path / "a") == "ä\nb\nc\n"
