"""How large pages are: they are sent by mail and kept beside runs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic import programs, run

import popmodel
from popmodel.cli.report import Report
from popmodel.reports.html.contents import alone
from popmodel.reports.html.page import page

KB = 1000
Find = Callable[[str], Path]


@pytest.fixture(scope="module")
def sixteen(real_trace: Find) -> Report:
    return popmodel.report(real_trace("epoch_16proc"))


@pytest.mark.long
def test_a_report_of_sixteen_processes_over_time_is_small(sixteen: Report) -> None:
    assert len(sixteen.page()) <= 500 * KB


def test_a_report_without_a_timeline_is_smaller(sixteen: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(sixteen._stamped()))
    assert len(popmodel.report(path).page()) <= 150 * KB


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("verb", "most"), [("metrics", 150), ("whatif", 150), ("inspect", 170)])
def test_the_page_of_one_result_is_small(verb: str, most: int, real_trace: Find) -> None:
    result = getattr(popmodel, verb)(real_trace("epoch_16proc"))
    assert len(page(alone(result._stamped()))) <= most * KB


@pytest.mark.long
def test_a_report_of_a_thousand_processes_can_be_sent(tmp_path: Path) -> None:
    path = tmp_path / "run.prv"
    run(programs.jacobi((10, 10, 10), 5), persistent=0.1, transient=0.05).write(path)
    assert len(popmodel.report(path).page()) <= 1500 * KB
