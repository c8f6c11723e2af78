"""Who talks to whom, in a browser: what is shown, and what is told of a cell."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from popmodel.reports.html.contents import SCHEMA, Contents
from popmodel.reports.html.page import page

from .conftest import Open

STAMP = {"popmodel": "1", "command": "popmodel x", "host": "h", "time": "t", "inputs": []}
MiB = 1 << 20


def document(
    trace: str,
    processes: int,
    pairs: Iterable[tuple[int, int, int, int, bool]],
    nodes: int | None = 1,
    together: int = 1,
) -> dict[str, Any]:
    """The document of such messages: from, to, how many, bytes, whether on one node."""
    names = ("from", "to", "messages", "bytes", "within_node")
    columns = dict(zip(names, map(list, zip(*pairs, strict=True)), strict=True))
    total = {"messages": sum(columns["messages"]), "bytes": sum(columns["bytes"])}
    found = {
        "processes": processes,
        "nodes": nodes,
        "analysed": None,
        "caveats": [],
        **total,
        "within_nodes": total,
        "neighbours": {"min": 1, "mean": 1.0, "max": 1},
        "per_iteration": None,
        "sizes": [],
        "calls": [],
        "ranks_together": together,
        "pairs": columns,
        "grids": [],
        "grid_note": "x",
        "patterns": [],
        "notes": [],
    }
    named = {"schema": "popmodel/inspect/1", "trace": trace}
    return {**named, "communication": found, "provenance": STAMP}


RING = document(
    "ring.prv",
    4,
    [(0, 1, 40, 2 * MiB, True), (1, 2, 1, 100, False), (2, 3, 3, 3000, True), (3, 0, 3, 0, False)],
    nodes=2,
)
LARGE = document(
    "large.prv", 1000, [(rank, (rank + 1) % 1000, 2, 64 + rank, True) for rank in range(1000)]
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = {"schema": SCHEMA, "title": "two", "documents": [RING, LARGE], "left_out": []}
    path = tmp_path_factory.mktemp("communication") / "page.html"
    path.write_text(page(Contents({**made, "provenance": STAMP})))
    return path


def told(shown: Any) -> str:
    text: str = shown.locator(".communication-run:visible .communication-told").inner_text()
    return text


def cells(shown: Any) -> int:
    """Cells that are not empty, by the outlines of their shades."""
    paths = shown.locator(".communication-run:visible .communication-cells path")
    shapes = [path.get_attribute("d") for path in paths.all()]
    return sum(shape.count("M") for shape in shapes)


def legend(shown: Any) -> list[str]:
    entries = shown.locator(".communication-run:visible .communication-legend span")
    return [text for text in entries.all_inner_texts() if text]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_bars_the_way_with_all_tables_open(
    scheme: str, file: Path, open_page: Open
) -> None:
    shown = open_page(file, "communication.run=0&communication.pairs=within", scheme=scheme)
    shown.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    found = Axe().run(shown)
    assert found.violations_count == 0, found.generate_report()


def test_arrow_keys_tell_what_is_in_a_cell(file: Path, open_page: Open) -> None:
    shown = open_page(file, "communication.run=0")
    matrix = shown.get_by_role("application").first
    matrix.focus()
    shown.keyboard.press("ArrowDown")
    assert told(shown) == "rank 0 to rank 0: no messages"
    shown.keyboard.press("ArrowRight")
    assert told(shown) == "rank 0 to rank 1: 2 MiB in 40 messages, 51.2 KiB each"
    shown.keyboard.press("ArrowLeft")
    shown.keyboard.press("ArrowLeft")
    assert told(shown) == "rank 0 to rank 0: no messages"


def test_with_shift_they_go_to_the_next_messages(file: Path, open_page: Open) -> None:
    shown = open_page(file, "communication.run=0")
    shown.get_by_role("application").first.focus()
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("Shift+ArrowDown")
    assert told(shown) == "rank 3 to rank 0: 0 B in 3 messages, 0 B each"
    shown.keyboard.press("Shift+ArrowDown")
    assert told(shown).startswith("rank 3 to rank 0")


@pytest.mark.long(after=1)
@pytest.mark.parametrize("width", [1280, 400])
def test_the_pointer_tells_what_is_in_a_cell(width: int, file: Path, open_page: Open) -> None:
    shown = open_page(file, "communication.run=0", width=width)
    box = shown.locator(".communication-blank").first.bounding_box()
    side = box["width"] / 4
    shown.locator(".communication-blank").first.scroll_into_view_if_needed()
    box = shown.locator(".communication-blank").first.bounding_box()
    shown.mouse.move(box["x"] + 2.5 * side, box["y"] + 1.5 * side)
    assert told(shown) == "rank 1 to rank 2: 100 B in 1 message, 100 B each"


def test_messages_and_mean_sizes_have_legends_of_their_own(file: Path, open_page: Open) -> None:
    shown = open_page(file, "communication.run=0")
    assert legend(shown)[0] == "bytes, from:"
    assert (legend(shown)[1], legend(shown)[-1]) == ("64 B", "1 MiB")
    assert cells(shown) == 3
    shown.get_by_role("button", name="messages").first.click()
    assert legend(shown) == ["messages, from:", "1", "2", "4", "8", "16", "32"]
    assert cells(shown) == 4
    assert shown.url.endswith("&communication.show=messages")
    shown.get_by_role("button", name="mean size").first.click()
    assert legend(shown)[0] == "mean size, from:"
    assert legend(shown)[1] == "64 B"


def test_pairs_within_nodes_are_shown_alone(file: Path, open_page: Open) -> None:
    shown = open_page(
        file, "communication.run=0&communication.pairs=within&communication.show=messages"
    )
    assert cells(shown) == 2
    select = shown.get_by_role("combobox", name="Pairs")
    assert select.input_value() == "within"
    select.select_option("between")
    assert cells(shown) == 2
    shown.get_by_role("application").first.focus()
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("ArrowRight")
    assert told(shown) == "rank 0 to rank 1: no messages"


def test_of_many_ranks_some_share_a_cell(file: Path, open_page: Open) -> None:
    shown = open_page(file, "communication.run=1")
    assert shown.locator(".communication-each").inner_text() == (
        "A cell is the sum over 4 x 4 ranks."
    )
    shown.locator("svg[role=application]:visible").focus()
    shown.keyboard.press("ArrowDown")
    assert told(shown) == "ranks 0-3 to ranks 0-3: 195 B in 6 messages, 32.5 B each"
    assert cells(shown) == 2 * 250


def test_one_trace_is_shown_at_a_time_the_largest_first(file: Path, open_page: Open) -> None:
    shown = open_page(file)
    runs = shown.locator(".communication-run")
    assert [run.is_visible() for run in runs.all()] == [False, True]
    shown.get_by_label("Trace").select_option("ring")
    assert [run.is_visible() for run in runs.all()] == [True, False]
    assert shown.url.endswith("#communication.run=0")


def test_a_state_that_nobody_wrote_does_no_harm(file: Path, open_page: Open) -> None:
    shown = open_page(
        file, "communication.run=7&communication.show=__proto__&communication.pairs=x"
    )
    assert cells(shown) == 2 * 250
    assert shown.get_by_label("Trace").input_value() == "1"


def test_the_shades_of_python_are_those_of_the_script(open_page: Open, tmp_path: Path) -> None:
    sizes = [1, 2, 3, 5, 1000, 1023, 1024, 1025, 2**31, 2**40 - 1, 2**40]
    one = document("x.prv", 11, [(rank, rank, 1, size, True) for rank, size in enumerate(sizes)])
    path = tmp_path / "x.html"
    made = {"schema": SCHEMA, "title": "x", "documents": [one], "left_out": []}
    path.write_text(page(Contents({**made, "provenance": STAMP})))
    shown = open_page(path)
    drawn = shown.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.communication-cells path')]"
        ".map(path => [path.getAttribute('class'), path.getAttribute('d')]))"
    )
    static = path.read_text().partition('class="communication-cells"')[2].partition("</g>")[0]
    assert {f'<path class="{name}" d="{shape}"/>' in static for name, shape in drawn.items()} == {
        True
    }
    assert json.dumps(drawn).count("M") == 11
