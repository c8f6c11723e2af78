"""Drawings of efficiencies."""

from __future__ import annotations

from pathlib import Path

import popmodel

DATA = Path(__file__).parent.parent / "data"


def test_several_runs_show_their_speedup_as_a_fact_and_scaling_as_ratios() -> None:
    drawn = str(popmodel.metrics([DATA / "cg.S.2.prv.gz", DATA / "ft.S.4.prv.gz"]).plot())
    assert "speed-up 1<" in drawn
    assert "Speed-up" not in drawn
    assert "Scaling against a reference run, ratios" in drawn
    assert ">1.000<" in drawn


def test_one_run_has_no_scaling() -> None:
    drawn = str(popmodel.metrics(DATA / "cg.S.2.prv.gz").plot())
    assert "speed-up" not in drawn
    assert "Scaling" not in drawn


def test_views_of_a_loss_stand_in_parentheses_as_on_the_screen() -> None:
    drawn = str(popmodel.metrics(DATA / "bt-mz.S.2x2.prv.gz", family="hybrid-additive").plot())
    assert "(OpenMP load balance)" in drawn
