"""The trees of efficiencies in a browser: families, rows by keyboard, explanations, the address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.units import format_time

from .conftest import BT_MZ, STENCIL, Open, written


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of the efficiencies of two runs."""
    return written(tmp_path_factory, popmodel.metrics([STENCIL, BT_MZ]))


def visible(page: Any) -> list[str]:
    """Names of the metrics that are on the screen."""
    rows = page.locator("#efficiencies tr[data-depth]:visible th")
    return [str(text) for text in rows.all_text_contents()]


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.querySelector('th')?.textContent ?? ''"))


def panel(page: Any) -> Any:
    return page.get_by_label("Explanation of the chosen metric")


def test_one_family_is_shown_and_another_is_a_button_away(series: Path, open_page: Open) -> None:
    page = open_page(series)
    assert visible(page)[0] == "Parallel efficiency"
    assert "Thread efficiency" in visible(page)
    page.get_by_role("button", name="MPI (multiplicative)").click()
    assert "Thread efficiency" not in visible(page)
    assert "Transfer efficiency" in visible(page)
    assert "family=mpi&" in page.url
    pressed = page.locator("#efficiencies button[aria-pressed=true]").all_text_contents()
    assert pressed == ["MPI (multiplicative)"]


def test_an_address_leads_to_a_metric(series: Path, open_page: Open) -> None:
    page = open_page(series, "efficiencies&family=talp&metric=openmp_load_balance")
    assert panel(page).locator("h3").text_content() == "OpenMP load balance"
    page.evaluate("location.hash = 'efficiencies&family=mpi&metric=load_balance'")
    page.wait_for_function("document.querySelector('aside h3').textContent === 'Load balance'")


def test_an_address_of_nothing_shows_what_is_shown_without(series: Path, open_page: Open) -> None:
    lost = visible(open_page(series, "family=toString&metric=__proto__"))
    assert lost == visible(open_page(series))


def test_a_tree_is_walked_folded_and_explained_by_keyboard(series: Path, open_page: Open) -> None:
    page = open_page(series, "family=hybrid-additive")
    before = visible(page)
    page.locator("#efficiencies tr[data-depth]:visible").first.focus()
    for key, expected in (
        ("ArrowDown", "Process efficiency"),
        ("ArrowRight", "Process load balance"),
        ("ArrowUp", "Process efficiency"),
        ("End", "Serial region efficiency"),
        ("ArrowLeft", "Thread efficiency"),
        ("Home", "Parallel efficiency"),
    ):
        page.keyboard.press(key)
        assert focused(page) == expected, key
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert "Process load balance" not in visible(page)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert visible(page) == ["Parallel efficiency"]
    page.keyboard.press("ArrowRight")
    assert "Process load balance" not in visible(page)  # what was folded stays so
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert visible(page) == before
    page.keyboard.press("Enter")
    assert panel(page).locator("h3").text_content() == "Process efficiency"
    assert page.url.endswith("&metric=process_efficiency")


def test_a_row_is_explained_and_folded_by_the_pointer(series: Path, open_page: Open) -> None:
    page = open_page(series, "family=hybrid-additive")
    row = page.locator("tr[data-depth]:visible", has_text="Thread efficiency")
    row.locator("td").first.click()
    assert panel(page).locator("h3").text_content() == "Thread efficiency"
    assert row.get_attribute("aria-selected") == "true"
    row.locator(".efficiencies-fold").click()
    assert row.get_attribute("aria-expanded") == "false"
    assert "Serial region efficiency" not in visible(page)


def test_costs_are_those_of_all_threads(series: Path, open_page: Open) -> None:
    page = open_page(series, "family=hybrid-additive&metric=thread_efficiency")
    cells = panel(page).locator("tbody tr").first.locator("td").all_text_contents()
    found = popmodel.metrics(STENCIL)
    runtime = found.runs[0].observables.runtime
    share = 1 - found.evaluations[0]["hybrid-additive"].values["thread_efficiency"]
    times = [format_time(share * runtime * threads, digits=3) for threads in (1, 4)]
    assert cells == [*times, f"{100 * share:.1f} %"]


def test_without_scripts_all_families_are_there(series: Path, plain: Any) -> None:
    plain.goto(series.as_uri())
    assert {"Thread efficiency", "Transfer efficiency"} <= set(visible(plain))
