"""The timeline: what is drawn, how it is moved through, and the efficiencies of what is seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import popmodel
from popmodel.report.html import page as pages
from popmodel.report.html.contents import Contents
from popmodel.report.html.section import Section

from .conftest import STENCIL, Open

BEGIN, END = 0.012988235, 0.917495610
"""What is analysed of the run that most tests look at, s: without start and end of MPI."""
RUNTIME = END - BEGIN
Timeline = Callable[..., Any]
CG = Path(__file__).parents[1] / "data" / "cg.S.2.prv.gz"
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\"'&"


@pytest.fixture
def timeline_page(run_page: Path, open_page: Open) -> Timeline:
    return lambda fragment="", **options: open_page(run_page, fragment, **options)


def picture(page: Any) -> Any:
    return page.locator(".timeline-picture")


def colours(page: Any) -> dict[str, int]:
    """How many pixels of the picture have each colour."""
    found: dict[str, int] = page.evaluate(
        """() => {
          const canvas = document.querySelector(".timeline-picture");
          const [width, height] = [canvas.width, canvas.height];
          const copy = Object.assign(document.createElement("canvas"), {width, height});
          const context = copy.getContext("2d", {willReadFrequently: true});
          context.drawImage(canvas, 0, 0);
          const {data} = context.getImageData(0, 0, width, height);
          const many = {};
          for (let i = 0; i < data.length; i += 4) {
            const name = `rgb(${data[i]}, ${data[i + 1]}, ${data[i + 2]})`;
            many[name] = (many[name] ?? 0) + 1;
          }
          return many;
        }"""
    )
    return found


def colour(page: Any, name: str) -> str:
    """What a variable of the style is at present."""
    found: str = page.evaluate(f"popmodel.colour({name!r})")
    return found


def state(page: Any) -> dict[str, str]:
    """What stands in the address once everything has come to rest."""
    page.evaluate("new Promise(done => setTimeout(done, 400))")
    text = page.url.partition("#")[2]
    return dict(part.split("=") for part in text.split("&") if "=" in part)


def seen(page: Any) -> tuple[float, float]:
    """The stretch that the address tells, s."""
    begin, end = state(page)["t"].split("..")
    return float(begin), float(end)


def until(page: Any, condition: str) -> None:
    """Wait for a condition; a page lets nobody evaluate text in it, so it is asked from outside."""
    for _ in range(50):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(40)
    raise AssertionError(f"never: {condition}")


def middle(page: Any) -> tuple[float, float]:
    box = bounds(page)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 3


def bounds(page: Any) -> dict[str, float]:
    """Where the picture is on the screen, which it is brought to."""
    picture(page).evaluate("canvas => canvas.scrollIntoView()")
    found: dict[str, float] = picture(page).bounding_box()
    return found


def words(page: Any, name: str) -> str:
    found: str = page.locator(f".timeline-{name}").text_content()
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_kind_of_the_legend_is_drawn(scheme: str, timeline_page: Timeline) -> None:
    page = timeline_page(scheme=scheme)
    drawn = colours(page)
    for kind in ("parallel", "computing", "openmp", "wait", "idle"):
        assert drawn.get(colour(page, f"--kind-{kind}"), 0) > 20, kind
    names = page.locator(".timeline-legend button").all_text_contents()
    assert "computing in a parallel region" in names
    assert "nothing recorded" not in names


def test_a_kind_that_is_switched_off_is_not_drawn(timeline_page: Timeline) -> None:
    page = timeline_page()
    button = page.get_by_role("button", name="computing in a parallel region")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert state(page) == {"t-hide": "k2"}
    assert colour(page, "--kind-parallel") not in colours(page)
    again = timeline_page("t-hide=k2")
    assert colour(again, "--kind-parallel") not in colours(again)


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
    page.keyboard.press("w")
    assert seen(page)[1] - seen(page)[0] == pytest.approx(RUNTIME / 4, rel=1e-6)
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
    page.wait_for_timeout(100)
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
    x, y = middle(page)
    page.mouse.dblclick(x + 25, y)
    assert seen(page) == pytest.approx((a, b))
    page.get_by_role("button", name="Clear").click()
    assert "t-window" not in state(page)
    assert "What is seen" in words(page, "ends")
    page.get_by_role("button", name="Select by dragging").click()
    drag(50)
    assert "t-window" in state(page)


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


def test_rows_are_chosen(timeline_page: Timeline) -> None:
    page = timeline_page()
    picture(page).focus()
    page.keyboard.press("Alt+ArrowUp")
    assert state(page) == {"t-rows": "1..2"}
    assert "rank 0, thread 1 to rank 1, thread 0" in words(page, "seen")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert state(page) == {"t-rows": "2..3"}
    page.get_by_role("button", name="More rows").click()
    assert state(page) == {}


def test_the_overview_leads_to_a_moment(timeline_page: Timeline) -> None:
    page = timeline_page("t=0.2..0.3")
    box = bounds(page)
    page.mouse.click(box["x"] + box["width"] - 1, box["y"] + 10)
    assert seen(page) == pytest.approx((END - 0.1, END))


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


def test_where_a_pixel_stands_for_much_its_mixture_is_told(timeline_page: Timeline) -> None:
    page = timeline_page(width=400)
    page.mouse.move(*middle(page))
    shares = [int(one) for one in re.findall(r"(\d+) % ", words(page, "cursor"))]
    assert shares
    assert sum(shares) == pytest.approx(100, abs=2)


# --- Efficiencies of a window ------------------------------------------


@pytest.mark.parametrize("family", ["mpi", "hybrid-additive", "hybrid-multiplicative", "talp"])
@pytest.mark.parametrize("fragment", ["", "t=0.2..0.7", "t=0.3..0.31&t-window=0.12..0.9"])
def test_efficiencies_of_a_window_are_those_of_the_trace(
    fragment: str, family: str, timeline_page: Timeline
) -> None:
    page = timeline_page(f"{fragment}&t-family={family}")
    command, closer = words(page, "command").split("\n")
    assert closer.startswith("popmodel report ")
    assert closer.partition("--window")[2] == command.partition("--window")[2]
    begin, end = re.findall(r"([\d.]+)s", command.partition("--window ")[2])
    assert command.startswith("popmodel metrics ")
    expected = popmodel.metrics(STENCIL, window=(float(begin), float(end)))
    values = expected.evaluations[0][family].values
    compared = 0
    for row in page.locator(".timeline-metrics tr[data-metric]").all():
        cell = row.locator("td").first
        if "≈" in (cell.text_content() or "") or not cell.locator("data").count():
            continue
        value = float(cell.locator("data").get_attribute("value"))
        assert value == pytest.approx(values[row.get_attribute("data-metric")], abs=1e-9)
        compared += 1
    assert compared >= 3


def test_an_estimate_is_marked_and_withheld_where_it_tells_nothing(
    timeline_page: Timeline, open_page: Open, tmp_path: Path
) -> None:
    page = timeline_page("t-family=mpi")
    cell = page.locator(".timeline-metrics [data-metric=transfer_efficiency] td").first
    assert cell.text_content().startswith("≈ ")
    assert "replay" in words(page, "estimate")
    # Here the ideal replay advances by more than the run did.
    path = tmp_path / "report.html"
    popmodel.make_report(CG).save(path)
    early = open_page(path, "t-family=mpi&t=0.454085..0.454193")
    assert "no estimate" in early.locator(".timeline-metrics tbody").text_content()


def test_a_family_is_chosen_and_tells_what_it_lacks(timeline_page: Timeline) -> None:
    page = timeline_page()
    first = words(page, "metrics")
    page.locator(".timeline-family").select_option("mpi-additive")
    assert state(page) == {"t-family": "mpi-additive"}
    assert words(page, "metrics") != first
    assert "Global efficiency (compares with a reference run)" in words(page, "absent")


def test_the_command_is_copied(timeline_page: Timeline) -> None:
    page = timeline_page("t=0.2..0.3", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    until(page, "document.querySelector('.timeline-copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == words(page, "command")


# --- What lies over the lanes, and beside them ------------------------------------------


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
    page.wait_for_timeout(300)
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


def test_lanes_are_coloured_by_region(timeline_page: Timeline) -> None:
    page = timeline_page()
    page.get_by_label("Coloured by").select_option("region")
    assert state(page) == {"t-by": "region"}
    names = page.locator(".timeline-legend button").all_text_contents()
    assert names[:3] == [
        "stencil3d+0x2670 (stencil3d.c:180)",
        "stencil3d+0x23a0 (stencil3d.c:118)",
        "stencil3d+0x2b70 (stencil3d.c:201)",
    ]
    assert colour(page, "--kind-io") in colours(page)  # the colour of the third
    picture(page).focus()
    page.keyboard.press("ArrowDown")
    assert "stencil3d.c:180" in words(page, "cursor")


def test_what_is_seen_stands_in_a_table(timeline_page: Timeline) -> None:
    page = timeline_page("t=0.2..0.4")
    page.get_by_text("What is seen as a table, row by row").click()
    until(page, "document.querySelector('.timeline-table caption') !== null")
    table = page.locator(".timeline-table table")
    kinds = table.locator("thead th").all_text_contents()[1:]
    rows = table.locator("tbody tr:has(td)")
    assert rows.count() == 8  # four threads, measured and in the replay
    assert rows.first.locator("th").text_content() == "rank 0, thread 0"
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
    for row in rows.all()[:4]:
        cells = row.locator("td").all_text_contents()
        assert len(cells) == len(kinds)
        times = [float(number) * units[unit] for number, unit in map(str.split, cells)]
        assert sum(times) == pytest.approx(0.2, rel=0.01)
    assert "199.98 ms to 400.02 ms" in table.locator("caption").text_content()


def test_one_of_several_runs_is_chosen(whole_page: Path, open_page: Open) -> None:
    page = open_page(whole_page, "t=0.3..0.4")
    before = picture(page).get_attribute("aria-label")
    page.locator(".timeline-run").select_option("1")
    assert state(page) == {"t-run": "2"}
    assert picture(page).get_attribute("aria-label") != before
    again = open_page(whole_page, "t-run=2")
    assert words(again, "seen") == words(page, "seen")


@pytest.mark.parametrize(
    "fragment",
    [
        *("t=a..b", "t=0.5..0.2", "t=0.5", "t=-9..99", "t-run=7", "t-run=x", "t-rows=9..1"),
        *("t-window=5..6", "t-family=none", "t-by=region&t-hide=r99,,x"),
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


# --- Narrow screens, fingers, paper, barriers ------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_timeline_has_no_barriers(width: int, scheme: str, timeline_page: Timeline) -> None:
    page = timeline_page("t=0.2..0.4", width=width, scheme=scheme)
    for summary in page.locator("#timeline summary").all():
        summary.click()
    page.get_by_label("Coloured by").select_option("region")
    found = Axe().run(page, "#timeline")
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def touch(page: Any, kind: str, *points: tuple[float, float]) -> None:
    page.evaluate(
        """([kind, points]) => {
          const canvas = document.querySelector(".timeline-picture");
          const box = canvas.getBoundingClientRect();
          canvas.setPointerCapture = () => {};
          points.forEach(([x, y], i) => canvas.dispatchEvent(new PointerEvent(kind, {
            pointerId: i + 10, pointerType: "touch", bubbles: true,
            clientX: box.left + x, clientY: box.top + y,
          })));
        }""",
        [kind, points],
    )


def test_fingers_move_and_pinch(timeline_page: Timeline) -> None:
    page = timeline_page("t=0.4..0.5", width=400, has_touch=True)
    touch(page, "pointerdown", (200, 100))
    touch(page, "pointermove", (250, 100))
    touch(page, "pointerup", (250, 100))
    begin, end = seen(page)
    assert begin < 0.39
    assert end - begin == pytest.approx(0.1)
    touch(page, "pointerdown", (200, 100), (250, 100))
    touch(page, "pointermove", (150, 100), (300, 100))
    touch(page, "pointerup", (150, 100), (300, 100))
    near = seen(page)
    assert near[1] - near[0] == pytest.approx(0.1 / 3)
    assert begin < near[0] < near[1] < end


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


# --- Any size, any name ------------------------------------------


def made(rows: int, columns: int, *, names: str = "push", step: int = 1000) -> Section:
    """A timeline of many rows: computing and waiting by turns, in the ideal replay computing."""
    cells = np.where(np.arange(columns) // 3 % 2, 4, 1).astype(np.uint8)
    kinds = ["none", "computing", "parallel", "point-to-point", "wait", "collective", "other-mpi"]
    run = {
        "name": names,
        "begin": 0,
        "end": columns * step,
        "step": step,
        "columns": columns,
        "labels": [f"rank {row}" for row in range(rows)],
        "threads_per_row": None,
        "kinds": [{"id": id, "label": id, "group": "" if id == "none" else "x"} for id in kinds],
        "measured": "timeline-0-measured",
        "ideal": "timeline-0-ideal",
        "ideal_end": columns * step // 2,
        "why_no_ideal": None,
        "network": names,
        "regions": {"names": [names], "measured": "timeline-0-regions"},
        "messages": {"count": 1, "shown": 1, "note": names, "measured": "timeline-0-messages"},
        "ideal_messages": None,
        "path": None,
        "marks": {
            "what": "iterations",
            "count": 2,
            "first": 3,
            "every": 1,
            "at": [columns * step // 4, columns * step // 2],
        },
        "window": None,
        "closer": f"popmodel report {names} --window",
        "why_no_window": f"too many threads of {names}",
    }
    table = {
        "name": names,
        "begin": 0.0,
        "end": columns * step / 1e9,
        "ideal_end": None,
        "why_no_ideal": names,
        "why_no_window": names,
        "kinds": [{"id": "computing", "label": names}],
        "rows": [{"label": names, "measured": [1.0], "ideal": None}],
    }
    packed = {
        "timeline-0-measured": np.tile(cells, rows),
        "timeline-0-ideal": np.full(rows * columns, 1, np.uint8),
        "timeline-0-regions": np.full(rows * columns, 1, np.uint8),
        "timeline-0-messages": np.array([0, rows - 1, 16, 160, 8], np.int32),
    }
    return Section("timeline", "Timeline", {"runs": [table]}, {"runs": [run]}, packed)


@pytest.fixture
def open_made(open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Timeline:
    def opened(shown: Section, fragment: str = "", **options: Any) -> Any:
        monkeypatch.setattr(pages, "sections", lambda _: [shown])
        path = tmp_path / "made.html"
        document = popmodel.make_report(STENCIL).contents.document
        stamp = {"popmodel": "1", "host": "h", "time": "t"}
        path.write_text(pages.page(Contents({**document, "provenance": stamp})))
        return open_page(path, fragment, **options)

    return opened


def test_names_of_a_trace_are_text(open_made: Timeline) -> None:
    page = open_made(made(4, 100, names=HOSTILE), "t-by=region")
    assert page.locator("#timeline img").count() == 0
    assert HOSTILE in page.locator(".timeline-legend").text_content()
    assert HOSTILE in words(page, "no-window")
    assert f"report {HOSTILE} --window 0.000000000s:0.000100000s" in words(page, "command")
    assert HOSTILE in words(page, "notes")
    picture(page).focus()
    page.keyboard.press("ArrowDown")
    assert HOSTILE in words(page, "cursor")


def test_long_names_leave_the_page_as_wide_as_it_was(open_made: Timeline) -> None:
    page = open_made(made(4, 100, names="x" * 10_000), "t-by=region", width=400)
    picture(page).focus()
    page.keyboard.press("ArrowDown")
    assert len(words(page, "cursor")) < 300
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_messages_at_the_cursor_are_told(open_made: Timeline) -> None:
    """From the first row in column 1 to the last one ten columns later: 8 bytes."""
    page = open_made(made(2, 100), "t=0..0.000016")
    picture(page).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    assert ", sends 1 message (8 B), from 0 us to 3 us" in words(page, "cursor")
    page.keyboard.press("ArrowDown")
    assert "message" not in words(page, "cursor")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowRight")
    assert ", receives 1 message (8 B), from 9 us to 12 us" in words(page, "cursor")


def test_a_run_without_replay_regions_and_messages_is_drawn(open_made: Timeline) -> None:
    shown = made(3, 50)
    (run,) = shown.data["runs"]
    run |= {"ideal": None, "ideal_end": None, "why_no_ideal": "nobody calls MPI", "marks": None}
    run |= {"regions": None, "messages": None, "closer": None}
    page = open_made(shown, "t-by=region&t-path=yes")
    assert words(page, "notes") == "No ideal replay: nobody calls MPI."
    assert not page.get_by_label("Coloured by").is_visible()
    assert not page.locator(".timeline-messages").is_visible()
    assert not page.locator(".timeline-exact").is_visible()
    assert colour(page, "--kind-wait") in colours(page)


def test_the_iteration_at_the_cursor_is_told(open_made: Timeline) -> None:
    page = open_made(made(2, 100))
    box = bounds(page)
    for share, told in ((0.2, ""), (0.4, "iteration 3"), (0.8, "iteration 4")):
        page.mouse.move(box["x"] + 104 + share * (box["width"] - 104), box["y"] + 90)
        assert re.findall(r"iteration \d+", words(page, "cursor")) == ([told] if told else [])


def test_the_area_of_a_colour_is_its_share_of_time(open_made: Timeline) -> None:
    page = open_made(made(3, 3000), "t-messages=no", width=700)
    drawn = colours(page)
    (computing, wait) = (drawn[colour(page, f"--kind-{kind}")] for kind in ("computing", "wait"))
    # As much waiting as computing while measured; the replay computes half as long, three rows.
    share = page.evaluate(
        """() => {
          const cells = new Uint8Array(4 * 900).map((_, i) => (i % 900 < 300 ? 2 : 1));
          const areas = [];
          for (const height of [40, 12, 4, 3]) {
            const image = new ImageData(300, height);
            timelineLanes.paint(image, {cells: cells.map((_, i) => (i % 3 ? 1 : 2)), columns: 900,
              colours: [0, 1, 2], from: 0, to: 900, first: 0, last: 4, gap: 1, together: false});
            const painted = new Uint32Array(image.data.buffer).filter(one => one);
            areas.push(painted.filter(one => one === 2).length / painted.length);
          }
          return areas;
        }"""
    )
    assert share == pytest.approx([1 / 3] * 4, abs=0.05)
    assert wait > 1000
    assert computing > 1.5 * wait


def test_a_large_run_is_painted_at_once(open_made: Timeline) -> None:
    page = open_made(made(512, 1024))
    assert words(page, "no-window").startswith("too many threads")
    slowest = page.evaluate(
        """() => {
          const picture = new TimelinePicture(document.querySelector(".timeline-picture"));
          const view = new TimelineView({rows: 512, total: 1024, columns: 1024});
          const cells = new Uint8Array(512 * 1024).map((_, i) => i % 7);
          const image = new ImageData(1100, 300);
          const times = [];
          for (let i = 0; i < 5; i++) {
            const begin = performance.now();
            timelineLanes.paint(image, {cells, columns: 1024, colours: [0, 1, 2, 3, 4, 5, 6],
              from: i, to: 1024, first: 0, last: 512, gap: 1, together: false});
            times.push(performance.now() - begin);
          }
          return Math.min(...times);
        }"""
    )
    assert slowest < 100  # ms; a frame takes about a tenth of it
