"""Timelines of any size and with any names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import popmodel
from popmodel.reports.html import page as pages
from popmodel.reports.html.contents import Contents, Section

from .conftest import STENCIL, Open
from .timelines import (
    Timeline,
    bounds,
    colour,
    colours,
    picture,
    words,
)

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\"'&"


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
        "timeline-0-messages": np.array([0, rows - 1, 16, 160], np.int32),
    }
    return Section("timeline", "Timeline", {"runs": [table]}, {"runs": [run]}, packed)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return {**popmodel.report(STENCIL).contents.document}


@pytest.fixture
def open_made(
    document: dict[str, Any], open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Timeline:
    def opened(shown: Section, fragment: str = "", **options: Any) -> Any:
        monkeypatch.setattr(pages, "sections", lambda _: [shown])
        path = tmp_path / "made.html"
        stamp = {"popmodel": "1", "host": "h", "time": "t"}
        path.write_text(pages.page(Contents({**document, "provenance": stamp})))
        return open_page(path, fragment, **options)

    return opened


def test_names_of_a_trace_are_text(open_made: Timeline) -> None:
    page = open_made(made(4, 100, names=HOSTILE))
    assert page.locator("#timeline img").count() == 0
    assert HOSTILE in words(page, "no-window")
    assert f"report {HOSTILE} --window 0.000000000s:0.000100000s" in words(page, "command")
    assert HOSTILE in words(page, "notes")
    assert HOSTILE in picture(page).get_attribute("aria-label")


def test_long_names_leave_the_page_as_wide_as_it_was(open_made: Timeline) -> None:
    page = open_made(made(4, 100, names="x" * 10_000), width=400)
    picture(page).focus()
    page.keyboard.press("ArrowDown")
    assert len(words(page, "cursor")) < 300
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_a_run_without_replay_and_messages_is_drawn(open_made: Timeline) -> None:
    shown = made(3, 50)
    (run,) = shown.data["runs"]
    run |= {"ideal": None, "ideal_end": None, "why_no_ideal": "nobody calls MPI", "marks": None}
    run |= {"messages": None, "closer": None}
    page = open_made(shown, "t-path=yes")
    assert words(page, "notes") == "No ideal replay: nobody calls MPI."
    assert not page.locator(".timeline-messages").is_visible()
    assert not page.locator(".timeline-exact").is_visible()
    assert colour(page, "--kind-wait") in colours(page)


def test_the_iteration_at_the_cursor_is_told(open_made: Timeline) -> None:
    page = open_made(made(2, 100))
    box = bounds(page)
    for share, told in ((0.2, ""), (0.4, "iteration 3"), (0.8, "iteration 4")):
        page.mouse.move(box["x"] + 104 + share * (box["width"] - 104), box["y"] + 60)
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
              colours: [0, 1, 2], from: 0, to: 900, gap: 1});
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
              from: i, to: 1024, gap: 1});
            times.push(performance.now() - begin);
          }
          return Math.min(...times);
        }"""
    )
    assert slowest < 100  # ms; a frame takes about a tenth of it
