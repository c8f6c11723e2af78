"""Splits in a browser: tables sorted by keyboard, commands copied, nothing that hinders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

import popmodel

from .conftest import Open, written

CORES = 64


@pytest.fixture(scope="session")
def splits_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory, popmodel.predict("stencil3d", cores=CORES, draws=60))


def order(page: Any) -> list[str]:
    """The splits from top to bottom, those that are not possible left out."""
    found: list[str] = (
        page.locator(f"#splits-0-{CORES} tbody").first.locator("th").all_inner_texts()
    )
    return found


def runtimes(page: Any) -> list[float]:
    cells = page.locator(f"#splits-0-{CORES} tbody").first.locator("td:nth-child(2)")
    return [float(one.get_attribute("data-value")) for one in cells.all()]


def test_a_table_is_sorted_by_keyboard_and_the_address_knows(
    splits_page: Path, open_page: Open
) -> None:
    page = open_page(splits_page)
    before = order(page)
    page.get_by_role("button", name="Runtime").focus()
    page.keyboard.press("Enter")
    assert runtimes(page) == sorted(runtimes(page))
    assert order(page) != before
    head = page.get_by_role("columnheader", name="Runtime")
    assert head.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert runtimes(page) == sorted(runtimes(page), reverse=True)
    assert head.get_attribute("aria-sort") == "descending"

    sorted_by, address = order(page), page.url.partition("#")[2]
    assert order(open_page(splits_page, address)) == sorted_by


def test_splits_that_are_not_possible_stay_last(splits_page: Path, open_page: Open) -> None:
    page = open_page(splits_page)
    page.get_by_role("button", name="Memory per process").click()
    last = page.locator(f"#splits-0-{CORES} tr").last
    assert "not possible" in last.inner_text()


def test_an_address_that_names_no_column_sorts_nothing(splits_page: Path, open_page: Open) -> None:
    known = order(open_page(splits_page))
    for asked in ("77", "x", "4", "-0"):
        assert order(open_page(splits_page, f"sort-splits-0-{CORES}={asked}")) == known


def test_a_launch_line_is_copied(splits_page: Path, open_page: Open) -> None:
    page = open_page(splits_page, permissions=["clipboard-read", "clipboard-write"])
    button = page.get_by_role("button", name="Copy: Launch").first
    command = page.locator("pre.command", has_text="srun").first.inner_text()
    button.focus()
    page.keyboard.press("Enter")
    page.get_by_text("copied", exact=True).wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == command


def test_without_a_clipboard_a_launch_line_is_selected(splits_page: Path, open_page: Open) -> None:
    page = open_page(splits_page)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.get_by_role("button", name="Copy: Launch").first.click()
    page.get_by_text("selected: copy it with the keyboard").wait_for()
    command = page.locator("pre.command", has_text="srun").first.inner_text()
    assert page.evaluate("getSelection().toString()") == command


def test_splits_without_scripts_are_all_there(splits_page: Path, plain: Any) -> None:
    plain.goto(splits_page.as_uri())
    assert len(order(plain)) == 5
    assert plain.locator("pre", has_text="srun").first.is_visible()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_splits_have_no_barriers(
    scheme: str, width: int, splits_page: Path, open_page: Open
) -> None:
    page = open_page(splits_page, width=width, scheme=scheme)
    for folded in page.locator("details").all():
        folded.evaluate("one => { one.open = true; }")
    found = Axe().run(page, {"include": ["#splits"]})
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_heads_of_sorted_tables_are_printed(splits_page: Path, open_page: Open) -> None:
    page = open_page(splits_page)
    page.emulate_media(media="print")
    assert page.locator(f"#splits-0-{CORES} .sort").first.is_visible()
    assert not page.get_by_role("button", name="Copy: Launch").first.is_visible()
