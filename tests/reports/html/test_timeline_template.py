"""The timeline without a script: every lane in a table."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from popmodel.reports.html.contents import Contents
from popmodel.reports.html.page import fragment
from popmodel.reports.html.page_timeline import section
from popmodel.timeline.timeline import Timeline, timeline
from popmodel.traces import read

STENCIL = Path(__file__).parents[3] / "examples" / "traces" / "stencil3d.2x2.prv.gz"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def run() -> Timeline:
    return timeline(read(STENCIL))


def written(one: Timeline) -> str:
    found = section(Contents({"title": "", "documents": []}, (one,)))
    assert found is not None
    return fragment(found)


def test_every_lane_has_a_row_of_its_times(run: Timeline) -> None:
    text = written(run)
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>((?:<td>.*?</td>)+)</tr>', text)
    labels = ["rank 0, thread 0", "rank 0, thread 1", "rank 1, thread 0", "rank 1, thread 1"]
    assert [label for label, _ in rows] == labels * 2
    for number, (_, cells) in enumerate(rows[:4]):
        told = sum(map(float, re.findall(r"<td>(.*?)</td>", cells)))
        recorded = run.measured.spent[number, 1:].sum() / 1e9
        assert told == pytest.approx(recorded, rel=1e-5)


def test_a_run_without_a_replay_says_why(run: Timeline) -> None:
    text = written(replace(run, ideal=None, ideal_end=None, why_no_ideal=HOSTILE))
    assert "No ideal replay: &lt;img" in text
    assert HOSTILE not in text
    assert text.count("<caption>") == 1


def test_what_needs_a_script_is_hidden_without_one(run: Timeline) -> None:
    assert '<div class="timeline-drawn" hidden>' in written(run)
