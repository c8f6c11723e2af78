"""Two runs beside each other, in a browser: the script writes what Python wrote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.reports.html import comparison
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.page import page

from .conftest import BT_MZ, STENCIL, Open

ROOT = Path(__file__).parent.parent.parent
COMD = ROOT / "tests" / "data" / "comd.4.prv.gz"


@pytest.fixture(scope="module")
def report() -> Any:
    return popmodel.report([BT_MZ, STENCIL, COMD])


@pytest.fixture(scope="module")
def file(report: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("comparison") / "page.html"
    path.write_text(page(Contents(report._stamped())))
    return path


def texts(shown: Any) -> list[str]:
    """Sentence and tables, as they are read."""
    section = shown.locator("#comparison")
    found = [section.locator(".comparison-sentence").text_content()]
    for table in section.locator("table").all():
        found += [re.sub(r"\s+", " ", row) for row in table.locator("tr").all_text_contents()]
    return found


def test_the_script_writes_what_python_wrote(file: Path, plain: Any, open_page: Open) -> None:
    shown = open_page(file)
    written = texts(shown)
    assert len(written) > 40
    plain.goto(file.as_uri())
    assert texts(plain) == written


def test_exchanged_runs_exchange_signs(file: Path, open_page: Open) -> None:
    shown = open_page(file)
    before = [row.split() for row in texts(shown)]
    effects = shown.locator(".comparison-factors tr td:nth-child(4)").all_inner_texts()
    shown.get_by_role("button", name="Exchange").click()
    exchanged = shown.locator(".comparison-factors tr td:nth-child(4)").all_inner_texts()
    assert [row.split() for row in texts(shown)] != before
    swapped = {"+": "-", "-": "+"}
    assert [swapped.get(text[0], "") + text.lstrip("+-") for text in effects] == exchanged


def test_any_two_runs_are_chosen_and_stand_in_the_address(
    report: Any, file: Path, open_page: Open
) -> None:
    shown = open_page(file)
    section = shown.locator("#comparison")
    section.get_by_role("combobox", name="Run").select_option("2")
    section.get_by_role("combobox", name="compared with").select_option("1")
    assert "comparison.base=1&comparison.other=2" in shown.url
    runs = comparison.measured(report.contents.of("metrics"), report.contents.sensitivities)
    expected = comparison.sentence(runs[1], runs[2])
    assert shown.locator(".comparison-sentence").inner_text() == expected
    chosen = texts(shown)
    assert texts(open_page(file, "comparison.base=1&comparison.other=2")) == chosen


def test_a_run_beside_itself_does_not_differ(file: Path, open_page: Open) -> None:
    shown = open_page(file, "comparison.base=1&comparison.other=1")
    effects = shown.locator(".comparison-factors tr td:nth-child(4)").all_inner_texts()
    assert set(effects) == {"0 s"}


def test_a_state_that_nobody_wrote_does_no_harm(file: Path, open_page: Open) -> None:
    usual = texts(open_page(file))
    for state in ("comparison.base=9", "comparison.other=length", "comparison.base=-1"):
        assert texts(open_page(file, state)) == usual
