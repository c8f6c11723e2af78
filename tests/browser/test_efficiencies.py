"""The trees of efficiencies in a browser: families, explanations, the address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import popmodel
from popmodel.base.units import format_time

from .conftest import BT_MZ, STENCIL, Open, written


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of the efficiencies of two runs."""
    return written(tmp_path_factory, popmodel.metrics([STENCIL, BT_MZ]))


def visible(page: Any) -> list[str]:
    """Names of the metrics that are on the screen."""
    rows = page.locator("#efficiencies tr[data-metric]:visible th")
    return [str(text) for text in rows.all_text_contents()]


def panel(page: Any) -> Any:
    return page.get_by_label("Explanation of the chosen metric")


def test_one_family_is_shown_and_another_is_chosen(series: Path, open_page: Open) -> None:
    page = open_page(series)
    assert visible(page)[0] == "Parallel efficiency"
    assert "Thread efficiency" in visible(page)
    assert not panel(page).is_visible()
    page.get_by_label("Family").first.select_option("MPI (multiplicative)")
    assert "Thread efficiency" not in visible(page)
    assert "Transfer efficiency" in visible(page)
    expect(page).to_have_url(re.compile("family=mpi$"))


def test_an_address_leads_to_a_metric(series: Path, open_page: Open) -> None:
    page = open_page(series, "efficiencies&family=talp&metric=openmp_load_balance")
    assert panel(page).locator("h3").text_content() == "OpenMP load balance"
    page.evaluate("location.hash = 'efficiencies&family=mpi&metric=load_balance'")
    page.get_by_role("heading", name="Load balance", exact=True).first.wait_for()


def test_an_address_of_nothing_shows_what_is_shown_without(series: Path, open_page: Open) -> None:
    lost = visible(open_page(series, "family=toString&metric=__proto__"))
    assert lost == visible(open_page(series))


def test_a_metric_is_explained_by_keyboard_and_put_away_again(
    series: Path, open_page: Open
) -> None:
    page = open_page(series, "family=hybrid-additive")
    button = page.get_by_role("button", name="Thread efficiency", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    assert panel(page).locator("h3").text_content() == "Thread efficiency"
    expect(page).to_have_url(re.compile("&metric=thread_efficiency$"))
    assert page.locator("tr[aria-current]:visible th").text_content() == "Thread efficiency"
    button.click()
    expect(panel(page)).not_to_be_visible()


def test_costs_are_told_of_each_run(series: Path, open_page: Open) -> None:
    page = open_page(series, "family=hybrid-additive&metric=thread_efficiency")
    found = popmodel.metrics(STENCIL)
    runtime = found.runs[0].observables.runtime
    share = 1 - found.evaluations[0]["hybrid-additive"].values["thread_efficiency"]
    time = format_time(share * runtime, digits=3)
    told = f"Costs: {time} of each thread in stencil3d.2x2 ({100 * share:.1f} %), "
    assert told in panel(page).text_content()


def test_without_scripts_all_families_are_there(series: Path, plain: Any) -> None:
    plain.goto(series.as_uri())
    assert {"Thread efficiency", "Transfer efficiency"} <= set(visible(plain))
