"""The manifest: a study goes on with what was asked for before, and with nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.studies.manifest import MANIFEST, Manifest, carried_out, held, is_done, opened

Work = tuple[Sequence[Path], Mapping[str, Any]]
ASKED = {"command": ["mpirun", "-n", "{P}", "./app"], "cores": [64], "runs": None, "target": {}}
FACTS = {
    **{"processes": 1, "threads": 1, "seconds": 1.5, "runtime": 1.0, "waited": 0.0},
    **{"used_threads": 1, "has_openmp": True, "has_mpi": True},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app").write_text("program")
    made = tmp_path / "app.study"
    made.mkdir()
    return made


def begun(folder: Path, *, force: bool = False, **changes: Any) -> Manifest:
    asked = {**ASKED, **changes}
    return opened(folder, asked, [folder.parent / "app"], changeable=("runs",), force=force)


def written(folder: Path, name: str = "a.txt") -> Manifest:
    """A study with one step that made a file."""

    def work() -> Work:
        (folder / name).write_text("result")
        return [folder / name], FACTS

    return carried_out(begun(folder), "run 1x1", "popmodel trace", work)


def test_what_is_done_is_known_to_the_next_command(folder: Path) -> None:
    before = written(folder)
    after = begun(folder)
    assert after == before
    assert is_done(after, "run 1x1")
    assert not is_done(after, "run 2x1")
    assert after.steps["run 1x1"].facts == FACTS


@pytest.mark.parametrize("change", ["other", None])
def test_a_step_whose_file_changed_or_is_gone_is_not_done(folder: Path, change: str | None) -> None:
    state = written(folder)
    if change is None:
        (folder / "a.txt").unlink()
    else:
        (folder / "a.txt").write_text(change)
    assert not is_done(state, "run 1x1")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cores": [128]}, "cores: 64, not 128"),
        ({"command": ["./b"]}, "command: mpirun -n '{P}' ./app, not ./b"),
        ({"target": {"N": 512.0}}, "target: none, not N=512"),
    ],
)
def test_another_study_is_refused_in_a_line(
    folder: Path, change: dict[str, Any], said: str
) -> None:
    written(folder)
    with pytest.raises(UsageError) as told:
        begun(folder, **change)
    assert told.value.message == f"{folder}: contains another study ({said})"
    assert "--force" in (told.value.hint or "")
    fresh = begun(folder, force=True, **change)
    assert not fresh.steps


def test_a_program_that_was_built_anew_is_another_study(folder: Path) -> None:
    written(folder)
    (folder.parent / "app").write_text("another program")
    with pytest.raises(UsageError, match=r"another version of .*app"):
        begun(folder)


def test_what_only_adds_runs_may_change(folder: Path) -> None:
    written(folder)
    after = begun(folder, runs="1x1,2x1")
    assert after.request["runs"] == "1x1,2x1"
    assert is_done(after, "run 1x1")


def test_nothing_is_lost_with_a_study_in_which_nothing_was_done(folder: Path) -> None:
    begun(folder)
    assert begun(folder, cores=[128]).request["cores"] == [128]


def test_a_step_that_fails_is_noted_with_its_reason(folder: Path) -> None:
    def fails() -> Work:
        raise PopmodelError("no luck")

    with pytest.raises(PopmodelError, match="no luck"):
        carried_out(begun(folder), "machine", "popmodel machine measure", fails)
    step = begun_again(folder)["machine"]
    assert (step["state"], step["error"]) == ("failed", "no luck")


def test_a_step_that_is_interrupted_is_noted(folder: Path) -> None:
    def stops() -> Work:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carried_out(begun(folder), "machine", "popmodel machine measure", stops)
    assert begun_again(folder)["machine"]["state"] == "interrupted"


def begun_again(folder: Path) -> dict[str, Any]:
    table = json.loads((folder / MANIFEST).read_text())
    return {step["name"]: step for step in table["steps"]}


def test_a_damaged_manifest_is_told_and_can_be_replaced(folder: Path) -> None:
    written(folder)
    (folder / MANIFEST).write_text("{")
    with pytest.raises(FileError) as told:
        begun(folder)
    assert told.value.hint == "begin anew with --force"
    assert not begun(folder, force=True).steps


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match="files that popmodel study did not write"), held(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_one_command_works_in_a_directory(tmp_path: Path) -> None:
    folder = tmp_path / "app.study"
    with (
        held(folder),
        pytest.raises(FileError, match="is in use by another popmodel study"),
        held(folder),
    ):
        pass


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"), held(tmp_path / "file" / "study"):
        pass


@pytest.mark.parametrize(
    ("fact", "value", "said"),
    [
        ("processes", -3, "must be a whole number, at least 1, not -3"),
        ("seconds", "soon", "must be a number, at least 0, not 'soon'"),
        ("seconds", -1.0, "must be a number, at least 0, not -1.0"),
        ("has_mpi", None, "must be true or false, not None"),
        ("has_mpi", ..., "is missing"),
    ],
)
def test_facts_of_a_run_are_checked(folder: Path, fact: str, value: Any, said: str) -> None:
    written(folder)
    table = json.loads((folder / MANIFEST).read_text())
    facts = table["steps"][0]["facts"]
    if value is ...:
        del facts[fact]
    else:
        facts[fact] = value
    (folder / MANIFEST).write_text(json.dumps(table))
    with pytest.raises(FileError) as told:
        begun(folder)
    assert told.value.message == f"{folder / MANIFEST}: steps[0].facts.{fact} {said}"
    assert told.value.hint == "begin anew with --force"
