"""The timeline: what is drawn, how it is moved through, and on which screens."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from .timelines import (
    BEGIN,
    END,
    RUNTIME,
    Timeline,
    colour,
    colours,
    middle,
    picture,
    seen,
    state,
    until,
    words,
)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_kind_of_the_legend_is_drawn(scheme: str, timeline_page: Timeline) -> None:
    page = timeline_page(scheme=scheme)
    drawn = colours(page)
    for kind in ("parallel", "computing", "openmp", "wait", "idle"):
        assert drawn.get(colour(page, f"--kind-{kind}"), 0) > 20, kind
    names = page.locator(".timeline-legend > span").all_text_contents()
    assert "computing in a parallel region" in names
    assert "nothing recorded" not in names


@pytest.mark.long
def test_keys_zoom_and_move(timeline_page: Timeline) -> None:
    page = timeline_page()
    whole = page.evaluate("document.querySelector('.timeline-seen').textContent")
    picture(page).focus()
    page.keyboard.press("+")
    begin, end = seen(page)
    assert end - begin == pytest.approx(RUNTIME / 2, rel=1e-6)
    page.keyboard.press("ArrowRight")
    moved = seen(page)
    assert moved[0] - begin == pytest.approx((end - begin) / 10, rel=1e-6)
    page.keyboard.press("ArrowLeft")
    assert seen(page) == pytest.approx((begin, end))
    page.keyboard.press("Home")
    assert seen(page)[0] == BEGIN
    page.keyboard.press("End")
    assert seen(page)[1] == pytest.approx(END, rel=1e-9)
    page.keyboard.press("-")
    page.keyboard.press("0")
    assert state(page) == {}
    assert words(page, "seen") == whole == words(page, "spoken")


def test_buttons_do_what_keys_do(timeline_page: Timeline) -> None:
    page = timeline_page()
    page.get_by_role("button", name="Zoom in").click()
    assert seen(page) == pytest.approx((BEGIN + RUNTIME / 4, END - RUNTIME / 4), rel=1e-6)
    page.get_by_role("button", name="Later").click()
    assert seen(page)[0] == pytest.approx(BEGIN + 0.3 * RUNTIME, rel=1e-6)
    page.get_by_role("button", name="Whole run").click()
    assert state(page) == {}


def test_the_wheel_scrolls_the_page_unless_ctrl_or_a_click_say_otherwise(
    timeline_page: Timeline,
) -> None:
    page = timeline_page(height=500)
    page.mouse.move(*middle(page))
    above = page.evaluate("scrollY")
    page.mouse.wheel(0, 100)
    until(page, f"scrollY === {above + 100}")
    assert state(page) == {}
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    first = seen(page)
    assert first[1] - first[0] < RUNTIME
    page.mouse.click(*middle(page))
    page.mouse.wheel(0, -200)
    second = seen(page)
    assert first[0] < second[0] < second[1] < first[1]
    assert page.evaluate("scrollY") == above


def test_after_a_click_the_wheel_scrolls_the_page_once_the_whole_run_is_seen(
    timeline_page: Timeline,
) -> None:
    page = timeline_page("t=0.3..0.7", height=500)
    page.mouse.click(*middle(page))
    above = page.evaluate("scrollY")
    page.mouse.wheel(0, 200)
    page.mouse.wheel(0, 200)
    assert state(page) == {}
    assert page.evaluate("scrollY") == above
    page.mouse.wheel(0, 100)
    until(page, f"scrollY === {above + 100}")


def test_what_is_below_the_pointer_stays_there(timeline_page: Timeline) -> None:
    page = timeline_page()
    x, y = middle(page)
    page.mouse.move(x, y)
    at = words(page, "cursor")
    page.keyboard.down("Control")
    page.mouse.wheel(0, -150)
    page.keyboard.up("Control")
    page.evaluate("atRest()")
    page.mouse.move(x, y)
    moment = re.compile(r"([\d.]+) ms")
    before, after = (moment.search(text) for text in (at, words(page, "cursor")))
    assert before is not None and after is not None
    assert float(after[1]) == pytest.approx(float(before[1]), abs=1.0)


def test_dragging_moves_and_with_shift_it_selects(timeline_page: Timeline) -> None:
    page = timeline_page("t=0.2..0.4")

    def drag(by: float) -> None:
        x, y = middle(page)
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + by, y, steps=4)
        page.mouse.up()

    drag(-100)
    begin, end = seen(page)
    assert end - begin == pytest.approx(0.2)
    assert begin > 0.21
    page.keyboard.down("Shift")
    drag(50)
    page.keyboard.up("Shift")
    found = state(page)
    assert seen(page) == (begin, end)
    a, b = map(float, found["t-window"].split(".."))
    assert begin < a < b < end
    assert "What is selected" in words(page, "ends")
    page.get_by_role("button", name="Zoom to selection").click()
    assert seen(page) == pytest.approx((a, b))
    page.get_by_role("button", name="Clear").click()
    assert "t-window" not in state(page)
    assert "What is seen" in words(page, "ends")


def test_a_window_is_selected_by_keys(timeline_page: Timeline) -> None:
    page = timeline_page()
    picture(page).focus()
    for key in ("ArrowDown", "m"):
        page.keyboard.press(key)
    assert state(page) == {}
    assert "; marked: " in words(page, "spoken")
    for key in ("Shift+ArrowRight", "Shift+ArrowRight", "m"):
        page.keyboard.press(key)
    a, b = map(float, state(page)["t-window"].split(".."))
    assert BEGIN < a < b < END
    page.keyboard.press("Enter")
    assert seen(page) == pytest.approx((a, b))
    page.keyboard.press("Escape")
    assert "t-window" not in state(page)


def test_the_cursor_is_told_in_words_and_spoken_only_when_keys_move_it(
    timeline_page: Timeline,
) -> None:
    page = timeline_page("t=0.30..0.33")
    page.mouse.move(*middle(page))
    assert words(page, "cursor").startswith("rank 0, thread 1, measured, iteration ")
    assert words(page, "spoken") == ""
    picture(page).focus()
    page.keyboard.press("Shift+ArrowRight")
    told = words(page, "cursor")
    assert told == words(page, "spoken")
    assert re.fullmatch(
        r"rank 0, thread 1, measured, iteration \d+, "
        r"([\d.]+) ms: .*, from \1 ms to [\d.]+ ms \(.* us\)",
        told,
    )
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    assert words(page, "spoken").startswith("rank 0, thread 1, ideal replay, ")


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_timeline_has_no_barriers(width: int, scheme: str, timeline_page: Timeline) -> None:
    page = timeline_page("t=0.2..0.4", width=width, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    found = Axe().run(page, "#timeline")
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_finger_moves(timeline_page: Timeline) -> None:
    page = timeline_page("t=0.4..0.5", width=400, has_touch=True)
    for kind, x in (("pointerdown", 200), ("pointermove", 250), ("pointerup", 250)):
        page.evaluate(
            """([kind, x]) => {
              const canvas = document.querySelector(".timeline-picture");
              const box = canvas.getBoundingClientRect();
              canvas.setPointerCapture = () => {};
              canvas.dispatchEvent(new PointerEvent(kind, {
                pointerId: 10, pointerType: "touch", bubbles: true, isPrimary: true,
                clientX: box.left + x, clientY: box.top + 100,
              }));
            }""",
            [kind, x],
        )
    begin, end = seen(page)
    assert begin < 0.39
    assert end - begin == pytest.approx(0.1)


def test_paper_has_the_whole_run_in_the_colours_of_a_light_page(timeline_page: Timeline) -> None:
    page = timeline_page("t=0.3..0.4", scheme="dark")
    shown = colours(page)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    printed = colours(page)
    assert "rgb(255, 255, 255)" in printed
    assert "rgb(0, 114, 178)" in printed
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert colours(page) == shown
    assert seen(page) == (0.3, 0.4)
