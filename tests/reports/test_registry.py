"""How saved documents are shown."""

import re
from pathlib import Path

import pytest

import popmodel
from popmodel.reports.breakdown_tables import BY_PROCESS, BY_REGION
from popmodel.reports.efficiency_tables import VIEWS
from popmodel.reports.registry import SHOWN, views_of

ROOT = Path(__file__).parent.parent.parent
ELSEWHERE = {"history", "runs", "study", "convert", "report"}
"""Shown by their own verbs only."""


def test_metrics_are_shown_as_they_were_asked_for() -> None:
    expected = {"by_process": BY_PROCESS, "by_region": BY_REGION, "": VIEWS}
    for part, views in expected.items():
        runs = [{part: []} if part else {}]
        assert views_of({"schema": "popmodel/metrics/1", "runs": runs}) is views


def test_predictions_are_shown_with_all_their_families() -> None:
    document = popmodel.predict("stencil3d", procs=4).to_dict()
    document["provenance"] = {"popmodel": "", "host": "", "time": "", "command": ""}
    assert views_of(document).blocks(document)


def test_every_result_has_its_views() -> None:
    text = (ROOT / "popmodel" / "docs" / "json.md").read_text()
    named = set(re.findall(r"^## popmodel/([a-z-]+)/1", text, re.MULTILINE))
    assert named - set(SHOWN) == ELSEWHERE & named


def test_an_unknown_schema_is_none_of_them() -> None:
    with pytest.raises(KeyError):
        views_of({"schema": "popmodel/nonsense/1"})
