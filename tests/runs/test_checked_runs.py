"""What ``popmodel check`` has written is a run for ``popmodel metrics``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.errors import FileError, UsageError
from popmodel.runs.checked_runs import is_checked_run, read_checked_run

SUMS = Path(__file__).resolve().parents[1] / "data" / "sums"


@pytest.fixture
def summary(tmp_path: Path) -> Path:
    """Of two ranks, as ``-o`` writes it."""
    found: Any = popmodel.check(sums=SUMS / "right")
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(found.to_dict()))
    return path


def test_its_efficiencies_are_those_of_check(summary: Path) -> None:
    checked: Any = popmodel.check(sums=SUMS / "right")
    run = popmodel.metrics(str(summary))
    assert run["runtime"] == checked["runtime"]
    for name, value in checked.found["metrics"]["hybrid-additive"].items():
        assert run[f"hybrid-additive.{name}"] == pytest.approx(value)


def test_it_stands_beside_traces(summary: Path) -> None:
    trace = str(SUMS.parent / "is.S.4.prv.gz")
    found = popmodel.metrics([str(summary), trace])
    assert found.names == ("summary.json", "is.S.4")
    assert found.to_dict()["runs"][0]["processes"] == 2


def test_it_goes_into_a_history(summary: Path, tmp_path: Path) -> None:
    popmodel.metrics(str(summary), history=tmp_path / "perf.jsonl", label="a")
    (line,) = (tmp_path / "perf.jsonl").read_text().splitlines()
    assert json.loads(line)["runtime"] == popmodel.metrics(str(summary))["runtime"]


def test_its_findings_stand_above_the_numbers(tmp_path: Path) -> None:
    found: Any = popmodel.check(sums=SUMS / "share")
    path = tmp_path / "share.json"
    path.write_text(json.dumps(found.to_dict()))
    run = read_checked_run(path)
    assert run.caveats[0] == "the 2 threads of rank 0 share 1 core (CPU 0)"
    assert run.evidence.disturbed


def test_it_has_no_parts(summary: Path) -> None:
    with pytest.raises(UsageError, match="sums of the whole run"):
        popmodel.metrics(str(summary), by="region")


def test_a_damaged_one_is_refused(summary: Path, tmp_path: Path) -> None:
    document = json.loads(summary.read_text())
    document["observables"]["runtime"] = "long"
    summary.write_text(json.dumps(document))
    assert is_checked_run(summary)
    with pytest.raises(FileError, match=r"observables\.runtime"):
        read_checked_run(summary)
    assert not is_checked_run(tmp_path / "absent.json")
