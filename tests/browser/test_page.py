"""The page as a whole: what it asks for, its state, its keys, what can be saved."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import popmodel
from popmodel.reports.html.page import held

from .conftest import Open

WIDE, NARROW = 1280, 400
"""Pixels."""


@pytest.mark.long
def test_a_page_needs_no_network_and_says_nothing(whole_page: Path, open_page: Open) -> None:
    page = open_page(whole_page)
    shown = page.locator("main section")
    ids = [section.get_attribute("id") for section in shown.all()]
    assert ids[-1] == "provenance"
    assert all(section.is_visible() for section in shown.all())
    assert [link.get_attribute("href") for link in page.locator("nav a").all()] == [
        f"#{name}" for name in ids
    ]


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_a_page_has_no_barriers(width: int, scheme: str, whole_page: Path, open_page: Open) -> None:
    found = Axe().run(open_page(whole_page, width=width, scheme=scheme))
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.long(after=1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_has_the_colours_of_a_wide_one(
    scheme: str, whole_page: Path, open_page: Open
) -> None:
    """So that what one width shows of contrasts holds for the other."""
    wide, narrow = (
        open_page(whole_page, width=width, scheme=scheme).evaluate(COLOURS)
        for width in (WIDE, NARROW)
    )
    assert len(wide) > 3000
    assert narrow == wide


COLOURS = """() => [...document.querySelectorAll("body *")].map(one => {
  const {color, backgroundColor, backgroundImage, opacity} = getComputedStyle(one);
  const shown = one.checkVisibility();
  return [one.tagName, shown, color, backgroundColor, backgroundImage, opacity].join("; ");
})"""
"""Of every element what axe compares."""


@pytest.mark.long(after=1)
@pytest.mark.parametrize("width", [320, 400, 1280])
def test_a_page_is_never_wider_than_the_screen(
    width: int, whole_page: Path, open_page: Open
) -> None:
    page = open_page(whole_page, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_address_leads_to_a_section_and_links_keep_what_was_chosen(
    run_page: Path, open_page: Open
) -> None:
    page = open_page(run_page, "provenance&family=mpi")
    assert page.evaluate("scrollY") > 0
    assert page.get_by_label("Family").first.input_value() == "mpi"
    page.locator("nav a").first.click()
    expect(page).to_have_url(re.compile("(?<!#provenance)&family=mpi$"))


def test_an_address_that_is_damaged_is_no_error(run_page: Path, open_page: Open) -> None:
    assert open_page(run_page, "nowhere&family=%E0%A4%A&=&x").title() == "stencil3d.2x2"


def test_the_keyboard_leads_past_the_links(run_page: Path, open_page: Open) -> None:
    page = open_page(run_page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_the_results_can_be_saved_from_the_page(run_page: Path, open_page: Open) -> None:
    page = open_page(run_page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as JSON").click()
    saved = json.loads(Path(download.value.path()).read_text())
    assert saved["schema"] == "popmodel/report/1"
    assert saved == json.loads(held(run_page.read_text()) or "")


def test_quantities_are_written_as_the_terminal_does(run_page: Path, open_page: Open) -> None:
    from popmodel.base.units import format_bandwidth, format_time

    page = open_page(run_page)
    for call, write, values in (
        ("time", format_time, [0.0, 1.5e-9, 9.9996e-4, 0.0123, 61.5, 86400.0, 3e7, -2e-6]),
        ("bandwidth", format_bandwidth, [1e9, 123456.0]),
    ):
        found = page.evaluate(f"values => values.map(one => popmodel.{call}(one))", values)
        assert found == [write(one) for one in values], call


def test_a_page_prints_without_controls(run_page: Path, open_page: Open, tmp_path: Path) -> None:
    page = open_page(run_page)
    page.emulate_media(media="print")
    assert not page.get_by_role("button", name="Save as JSON").is_visible()
    assert page.pdf(path=str(tmp_path / "page.pdf"), format="A4").startswith(b"%PDF")


def test_results_of_functions_are_inputs_too() -> None:
    made = popmodel.report(popmodel.predict("stencil3d", cores=8)).to_dict()
    assert [one["schema"] for one in made["documents"]] == ["popmodel/splits/1"]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", ["run_page", "whole_page"])
def test_the_first_view_is_the_picture(
    name: str, request: pytest.FixtureRequest, open_page: Open
) -> None:
    """Verdict, tree and timeline are seen without scrolling; all else is folded up."""
    page = open_page(request.getfixturevalue(name), unfolded=False, height=800)
    for seen in (".verdict-lead", "#efficiencies table", ".timeline-picture"):
        box = page.locator(f"{seen} >> visible=true").first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800, seen
    assert page.locator(".fold[open]").count() == 0


def test_a_link_opens_the_section_that_it_leads_to(run_page: Path, open_page: Open) -> None:
    page = open_page(run_page, unfolded=False)
    slider = page.get_by_role("slider", name="Latency")
    assert not slider.is_visible()
    page.get_by_role("link", name="What if").click()
    slider.wait_for()
    page = open_page(run_page, "whatif", unfolded=False)
    page.get_by_role("slider", name="Latency").wait_for()
