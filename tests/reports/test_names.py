"""Short names of runs."""

from pathlib import Path

import pytest

from popmodel.reports.figures import run_names


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/data/epoch.prv"], ["epoch"]),
        (["epoch_4.prv.gz", "sub/epoch_16.prv"], ["epoch_4", "epoch_16"]),
        (["a/run.prv", "b/run.prv"], ["a/run", "b/run"]),
        (["/x/a/run.prv", "/y/a/run.prv", "other.prv"], ["x/a/run", "y/a/run", "other"]),
        (["run.prv", "/run.prv"], ["run", "/run"]),
        (["run.prv", "run.prv"], ["run #1", "run #2"]),
        ([".prv"], [".prv"]),
        (["run.prv", "run.prv.gz"], ["run #1", "run #2"]),
        (["a/scorep-1/traces.otf2", "a/scorep-2"], ["scorep-1", "scorep-2"]),
        (["small/x/traces.otf2", "large/x/traces.otf2"], ["small/x", "large/x"]),
        (["/x/a/traces.otf2", "/x/y.otf2"], ["a", "y"]),
        ([], []),
    ],
)
def test_names_tell_runs_apart(paths: list[str], names: list[str]) -> None:
    assert run_names(paths) == names


@pytest.mark.parametrize("path", ["traces.otf2", "."])
def test_an_archive_here_has_the_name_of_the_directory(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_names([path]) == [tmp_path.name]
