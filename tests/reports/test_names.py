"""Short names of runs."""

from __future__ import annotations

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
        ([], []),
    ],
)
def test_names_tell_runs_apart(paths: list[str], names: list[str]) -> None:
    assert run_names(paths) == names
