"""What lies over the lanes of a timeline and beside them, and addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import BT_MZ, STENCIL, Open, written
from .timelines import (
    Timeline,
    colour,
    colours,
    picture,
    state,
    until,
    words,
)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("what", ["messages", "path"])
def test_messages_and_the_critical_path_are_drawn_on_demand(
    what: str, timeline_page: Timeline
) -> None:
    page = timeline_page("t=0.3..0.4&t-messages=no")
    ink = colour(page, "--ink")
    without = colours(page)[ink]
    page.locator(f".timeline-{what}").check()
    found = state(page)
    assert found.get("t-messages") == (None if what == "messages" else "no")
    assert found.get("t-path") == (None if what == "messages" else "yes")
    assert colours(page)[ink] > without + 50


def test_so_many_messages_that_they_hide_the_lanes_are_not_drawn(timeline_page: Timeline) -> None:
    page = timeline_page()
    ink = colour(page, "--ink")
    shown = colours(page)[ink]
    assert "messages are here: lines are drawn once" in words(page, "notes")
    page.locator(".timeline-messages").uncheck()
    page.evaluate("atRest()")
    assert colours(page)[ink] == shown
    assert "messages are here" not in words(page, "notes")


def test_the_critical_path_is_told_at_the_cursor(timeline_page: Timeline) -> None:
    """One of the threads of the replay is on it, at any moment."""
    page = timeline_page("t=0.3..0.4")
    picture(page).focus()
    told = []
    for _ in range(8):
        page.keyboard.press("ArrowDown")
        told.append("on the critical path" in words(page, "cursor"))
    assert told.count(True) == 1
    assert not any(told[:4])


def test_the_critical_path_hides_no_lanes(timeline_page: Timeline) -> None:
    page = timeline_page("t-messages=no&t-path=yes", width=400)
    assert "stretches of the critical path are here" in words(page, "notes")
    assert colours(page)[colour(page, "--kind-parallel")] > 1000
    near = timeline_page("t=0.3..0.35&t-messages=no&t-path=yes", width=400)
    assert "critical" not in words(near, "notes")


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory, STENCIL, BT_MZ)


def test_one_of_several_runs_is_chosen(two_runs: Path, open_page: Open) -> None:
    page = open_page(two_runs, "t=0.3..0.4")
    before = picture(page).get_attribute("aria-label")
    page.locator(".timeline-run").select_option("1")
    assert state(page) == {"t-run": "2"}
    assert picture(page).get_attribute("aria-label") != before
    seen = words(page, "seen")
    assert words(open_page(two_runs, "t-run=2"), "seen") == seen


def slow(page: Any) -> None:
    """Let the page unpack slowly what it unpacks from now on."""
    page.evaluate(
        """() => {
          const unpacked = Response.prototype.arrayBuffer;
          Response.prototype.arrayBuffer = async function () {
            await new Promise(go => setTimeout(go, 400));
            return unpacked.call(this);
          };
        }"""
    )


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_change_of_the_run_that_is_left_is_of_no_account(
    when: str, two_runs: Path, open_page: Open
) -> None:
    """What it would write to the address is of that run: just before, or while one waits."""
    page = open_page(two_runs, "t=0.3..0.4")
    slow(page)
    if when == "before":
        picture(page).press("ArrowRight")
    page.locator(".timeline-run").select_option("1")
    if when == "after":
        picture(page).press("ArrowRight")
    assert state(page) == {"t-run": "2"}
    assert "bt-mz" in picture(page).get_attribute("aria-label")


@pytest.mark.long
def test_the_run_chosen_last_is_shown(two_runs: Path, open_page: Open) -> None:
    """Whichever is unpacked last."""
    page = open_page(two_runs, "t=0.3..0.4")
    slow(page)
    page.locator(".timeline-run").evaluate(
        """list => {
          for (const value of ["1", "0"]) {
            list.value = value;
            list.dispatchEvent(new Event("change"));
          }
        }"""
    )
    assert state(page) == {"t-run": "1"}
    assert "stencil3d" in picture(page).get_attribute("aria-label")
    assert page.locator(".timeline-run").input_value() == "0"


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "fragment",
    [
        *("t=a..b", "t=0.5..0.2", "t=0.5", "t=-9..99", "t-run=7", "t-run=x"),
        *("t-window=5..6", "t-family=none"),
    ],
)
def test_an_address_that_is_damaged_shows_what_it_can(
    fragment: str, timeline_page: Timeline
) -> None:
    page = timeline_page(fragment)
    assert words(page, "seen").startswith("Seen: ")
    assert len(colours(page)) > 5


def test_an_address_that_changes_changes_the_picture(timeline_page: Timeline) -> None:
    page = timeline_page("t=0.3..0.4")
    page.evaluate("location.hash = '#t=0.5..0.6'")
    until(page, "document.querySelector('.timeline-seen').textContent.includes('500.0')")
