"""The directory of a run's records: made for one run, and never shared or emptied by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.base.errors import FileError, UsageError
from popmodel.tracer import raw_directory


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "app.raw"


def fill(raw: Path) -> None:
    raw.mkdir()
    for name in ("host.12.meta", "host.12.t0.raw", "host.12_2.t11.raw"):
        (raw / name).touch()


@pytest.mark.parametrize("output", ["app.prv", "app.prv.gz"])
def test_it_lies_beside_the_trace(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert raw_directory.of_output(Path(output)) == tmp_path / "app.raw"
    assert raw_directory.of_output(Path("/x") / output) == Path("/x/app.raw")


def test_it_is_made_for_one_run(raw: Path) -> None:
    raw_directory.create(raw, force=False)
    assert list(raw.iterdir()) == []
    with pytest.raises(UsageError) as raised:  # another run may have made it a moment ago
        raw_directory.create(raw, force=False)
    assert raised.value.message == (f"{raw}: contains raw files of an earlier or unfinished run")
    assert raised.value.hint == (
        f"merge them: popmodel trace merge {raw}; or remove them with --force"
    )
    raw_directory.create(raw, force=False, reuse=True)


def test_records_are_removed_only_when_asked_to(raw: Path) -> None:
    fill(raw)
    for reuse in (False, True):
        with pytest.raises(UsageError):
            raw_directory.create(raw, force=False, reuse=reuse)
    assert len(raw_directory.files(raw)) == 3
    raw_directory.create(raw, force=True)
    assert list(raw.iterdir()) == []


def test_what_is_not_the_tracers_is_not_touched(raw: Path) -> None:
    fill(raw)
    (raw / "thesis.tex").write_text("x")
    with pytest.raises(FileError) as raised:
        raw_directory.create(raw, force=True)
    assert raised.value.message == (
        f"{raw}: contains files that popmodel trace did not write, such as thesis.tex"
    )
    raw_directory.clear(raw)
    assert [path.name for path in raw.iterdir()] == ["thesis.tex"]


def test_a_place_where_nothing_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder, reason in (("absent", "no such file"), ("file", "not a directory")):
        with pytest.raises(FileError) as raised:
            raw_directory.create(tmp_path / folder / "app.raw", force=False)
        assert f"app.raw: cannot be created: {reason}" in raised.value.message
        assert raised.value.hint == (
            "choose another trace with -o: the raw files go to a directory beside it"
        )


def test_one_in_which_a_run_is_recorded_is_not_removed(raw: Path) -> None:
    raw_directory.create(raw, force=False)
    records = raw / "node.1.meta"
    with raw_directory.held(raw):
        records.touch()
        with pytest.raises(UsageError, match=r"raw: is in use by another popmodel trace"):
            raw_directory.create(raw, force=True)
        assert records.exists()
    raw_directory.create(raw, force=True)
    assert not records.exists()
