"""The screen of efficiencies, on runs that no small trace gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from popmodel.metrics.hierarchy import load_families
from popmodel.metrics.measure import Run, analyse
from popmodel.metrics.scaling import Comparable, scale
from popmodel.report import metrics
from popmodel.report.metrics_document import document
from popmodel.report.terminal import Style
from popmodel.trace import read
from popmodel.trace.writer import TraceWriter


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """One process that computes for 10 ms."""
    script = TraceWriter(threads=(1,))
    script.state(0, 0, 0, 10_000_000, 1)
    script.write(tmp_path / "x.prv")
    return analyse(read(tmp_path / "x.prv", cache=False))


def shown(*runs: Run) -> dict[str, Any]:
    """The document of runs, which are called a, b, ..."""
    runs = tuple(replace(run, trace=f"{name}.prv") for name, run in zip("ab", runs, strict=False))
    aggregates = [run.observables.aggregates() for run in runs]
    absent = runs[0].observables.absent
    mpi = load_families()["mpi"]
    scaled = scale([Comparable(run.trace, aggregates[0], absent) for run in runs])
    families = [
        {"mpi": mpi.evaluate(values, absent), "scaling": scaling}
        for values, scaling in zip(aggregates, scaled.evaluations, strict=True)
    ]
    return document(runs, families, scaled, [()] * len(runs))


def test_caveats_stand_before_the_numbers(run: Run) -> None:
    result = shown(replace(run, caveats=("half of it is lost", "7 threads share a core")))
    assert result["runs"][0]["caveats"] == ["half of it is lost", "7 threads share a core"]
    assert [line.strip() for line in metrics.screen(result, Style(60))[:4]] == [
        "half of it is lost",
        "7 threads share a core",
        "",
        "a",
    ]
    assert metrics.markdown(result)[:5] == [
        "half of it is lost",
        "",
        "7 threads share a core",
        "",
        "|  | a |",
    ]


def test_caveats_of_several_runs_are_told_once(run: Run) -> None:
    lost = [replace(run, caveats=(f"{share} % is lost",)) for share in (3, 4)]
    assert metrics.screen(shown(*lost), Style(60))[:2] == ["3 / 4 % is lost", ""]
    assert metrics.screen(shown(run, lost[0]), Style(60))[:2] == ["b: 3 % is lost", ""]


def test_a_run_without_caveats_begins_with_its_numbers(run: Run) -> None:
    assert "processes" in metrics.screen(shown(run), Style(60))[1]
