"""The tree of efficiencies as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.reports.pictures import Figure, HeatMap
from popmodel.reports.tree_plot import picture

DATA = Path(__file__).parent.parent / "data"
STENCIL = DATA.parent.parent / "examples" / "traces" / "stencil3d.2x2.prv.gz"
CG, HYBRID = DATA / "cg.S.2.prv.gz", DATA / "bt-mz.S.2x2.prv.gz"


def drawn(document: dict[str, Any]) -> HeatMap:
    shown = picture(document).shown
    assert isinstance(shown, HeatMap)
    return shown


def figures(shown: HeatMap) -> dict[str, tuple[Figure, ...]]:
    return {line.label: line.figures for line in shown.lines}


def test_every_metric_of_the_family_that_fits_is_a_line() -> None:
    document = popmodel.metrics(HYBRID).to_dict()
    shown = drawn(document)
    values = document["runs"][0]["metrics"]["hybrid-additive"]
    assert shown.heads[0][0] == "bt-mz.S.2x2"
    (top,) = figures(shown)["Parallel efficiency"]
    assert top.efficiency == values["parallel_efficiency"]
    assert top.text == f"{100 * values['parallel_efficiency']:.1f}"
    assert len(shown.lines) == len(values)
    marked = [label for label, (one,) in figures(shown).items() if one.is_worst]
    assert len(marked) == 1


def test_runs_that_can_be_compared_have_their_scaling_without_colours() -> None:
    document = popmodel.metrics([CG, CG]).to_dict()
    shown = drawn(document)
    labels = [line.label for line in shown.lines]
    assert "Scaling against a reference run, ratios" in labels
    assert all(one.efficiency is None for one in figures(shown)["Speed-up"])


def test_runs_that_are_no_series_have_none() -> None:
    document = popmodel.metrics([STENCIL, HYBRID]).to_dict()
    assert "another program" in document["runs"][1]["caveats"][0]
    assert "Speed-up" not in figures(drawn(document))


def test_a_prediction_has_its_intervals() -> None:
    document = popmodel.predict(procs=4, threads=2, draws=50).to_dict()
    one = document["metrics"]["hybrid-additive"]["parallel_efficiency"]
    (top,) = figures(drawn(document))["Parallel efficiency"]
    low, high = (f"{100 * one[end]:.1f}" for end in ("low", "high"))
    assert top.text == f"{100 * one['value']:.1f} ({low} .. {high})"


def test_a_report_has_the_runs_of_all_its_results() -> None:
    both = [popmodel.metrics(HYBRID), popmodel.predict(procs=4, threads=2, draws=10)]
    shown = drawn(popmodel.report(both).to_dict())
    assert [head[1] for head in shown.heads] == ["2 x 2, measured", "4 x 2, predicted"]


def test_a_metric_that_a_run_lacks_is_a_dash() -> None:
    both = [popmodel.metrics(CG, family="mpi"), popmodel.metrics(HYBRID)]
    shown = drawn(popmodel.report(both).to_dict())
    assert figures(shown)["Global efficiency"][1] == Figure("-")


def test_without_runs_there_is_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="no tree to draw"):
        picture(popmodel.predict(cores=8, draws=10).to_dict())
