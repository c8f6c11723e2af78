"""Pictures for papers: the five kinds, the same each time, whatever names hold."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from console import ROOT
from extras import needs_matplotlib

from popmodel.base.errors import PopmodelError
from popmodel.cli.inputs import trace_of
from popmodel.cli.inspect import inspect
from popmodel.cli.metrics import metrics
from popmodel.reports import pictures
from popmodel.reports.palette import KIND_COLOURS, shade
from popmodel.reports.pictures import COLUMNS, ROWS
from popmodel.reports.renderers.svg import draw
from popmodel.timeline.lanes import KINDS
from popmodel.timeline.timeline import LIMITS, Timeline, timeline

pytestmark = needs_matplotlib

STENCIL = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"
STAMP = {"popmodel": "1.0", "time": "2026-11-28T00:00:00Z", "command": "popmodel x 'a & <b>.prv'"}
EVIL = "a$b$_{c}<i>&\x1b[31m\x00"


@pytest.fixture(scope="module")
def run_over_time() -> Timeline:
    limits = replace(LIMITS, rows=ROWS, columns=COLUMNS)
    return timeline(trace_of(STENCIL, application=1), limits=limits)


@pytest.fixture(scope="module")
def efficiencies() -> dict[str, Any]:
    found = metrics([STENCIL, ROOT / "tests" / "data" / "bt-mz.S.2x2.prv.gz"])
    return found.to_dict(found.shown)


def estimate(value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high}


def splits() -> dict[str, Any]:
    """Two splits of 4 cores, one without an interval."""
    candidates = [
        {"processes": p, "threads": 4 // p, "cores": 4, "runtime": time, "parallel_efficiency": pe}
        for p, time, pe in (
            (4, estimate(2.0, 1.5, 2.5), estimate(0.9)),
            (1, estimate(3), estimate(1)),
        )
    ]
    return {
        "application": {"name": EVIL, "settings": {}, "imbalance": {}, "bundled": False},
        "machine": {"name": "m"},
        "candidates": candidates,
        "choices": [{"cores": 4, "take": [4, 1]}],
    }


def validated() -> dict[str, Any]:
    """One configuration, within the interval."""
    one = {"mean": 2.0, "predicted": 2.5, "low": 1.5, "high": 3.5}
    return {
        "application": EVIL,
        "machine": "m",
        "splits": [
            {
                "processes": 2,
                "threads": 1,
                "parameters": {},
                "region": "extrapolation",
                "runtime": one,
                "metrics": {},
            }
        ],
    }


def texts(svg: str) -> list[str]:
    """What stands on a picture."""
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(one.itertext()) for one in found]


def test_a_tree_has_every_efficiency_on_its_colour(efficiencies: dict[str, Any]) -> None:
    svg = draw(pictures.efficiency_tree, efficiencies, STAMP)
    run = efficiencies["runs"][0]
    for value in run["metrics"]["hybrid-additive"].values():
        assert any(text.endswith(f"{100 * value:.1f}") for text in texts(svg))
        assert shade(value).paper in svg
    deep = next(text for text in texts(svg) if text.startswith("\N{NO-BREAK SPACE}"))
    assert deep.endswith("Process efficiency")


def test_a_run_over_time_is_drawn_as_long_as_it_is(run_over_time: Timeline) -> None:
    """What a shape of a kind covers is what the lanes say, measured and replayed."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import PathPatch

    figure = pictures.run_timeline(run_over_time)
    for axes, lanes in zip(figure.axes, (run_over_time.measured, run_over_time.ideal), strict=True):
        assert lanes is not None
        width = (run_over_time.axis.end - run_over_time.axis.begin) / 1e9 / lanes.kind.shape[1]
        shapes = {
            shape.get_facecolor(): shape for shape in axes.patches if isinstance(shape, PathPatch)
        }
        assert len(shapes) == len(set(np.unique(lanes.kind)) - {0})
        for kind in set(np.unique(lanes.kind).tolist()) - {0}:
            corners = shapes[to_rgba(KIND_COLOURS[KINDS[kind].id])].get_path().vertices
            boxes = corners.reshape(-1, 5, 2)
            drawn = float((boxes[:, 1, 0] - boxes[:, 0, 0]).sum())
            assert drawn == pytest.approx(width * int((lanes.kind == kind).sum()))


def test_a_matrix_has_the_messages_of_its_ranks() -> None:
    document = inspect(STENCIL, show="communication").to_dict()["communication"]
    shown = pictures.communication_matrix(document).axes[0].collections[0].get_array()
    for sender, receiver, size in zip(
        *(document["pairs"][name] for name in ("from", "to", "bytes")), strict=True
    ):
        assert shown[sender, receiver] == size
    assert shown.count() == len(document["pairs"]["from"])
    empty = {**document, "pairs": {"from": [], "to": [], "messages": []}, "messages": 0, "bytes": 0}
    assert "0 messages from rank to rank" in draw(pictures.communication_matrix, empty, STAMP)


def test_splits_and_errors_have_their_values_and_intervals() -> None:
    runtime, efficiency = pictures.split_runtimes(splits()).axes
    bars = [tuple(container[2][0].get_segments()[0][:, 1]) for container in runtime.containers[:1]]
    assert bars == [(1.5, 2.5)]
    assert [container[0].get_ydata()[0] for container in efficiency.containers] == [90, 100]
    (errors,) = pictures.predicted_and_measured(validated()).axes
    assert tuple(errors.containers[0][0].get_xydata()[0]) == (2.0, 2.5)


@pytest.mark.parametrize(
    ("picture", "document"),
    [(pictures.split_runtimes, splits()), (pictures.predicted_and_measured, validated())],
    ids=["splits", "validation"],
)
def test_names_are_text_and_a_picture_is_the_same_each_time(
    picture: Callable[[Any], Any], document: dict[str, Any]
) -> None:
    svg = draw(picture, document, STAMP)
    assert svg == draw(picture, document, STAMP)
    assert any("a$b$_{c}<i>& [31m " in text for text in texts(svg))
    assert any(STAMP["command"] in text for text in texts(svg))
    assert "<i>" not in svg


def test_without_matplotlib_a_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PopmodelError, match="need matplotlib") as caught:
        draw(pictures.split_runtimes, splits(), STAMP)
    assert caught.value.hint == "pip install 'popmodel-hpc[plots]'"
