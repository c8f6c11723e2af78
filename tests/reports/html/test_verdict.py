"""The verdict of a page: sentences whose every number is one of the documents."""

from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.reports.html import page_verdict as verdict
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.page import fragment
from popmodel.reports.renderers.terminal import screen_text
from popmodel.reports.renderers.text import Style

from ..balanced import Node, parsed

ROOT = Path(__file__).parent.parent.parent.parent
HYBRID = ROOT / "tests" / "data" / "bt-mz.S.2x2.prv.gz"
STENCIL = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"


def contents(*inputs: Any) -> Contents:
    return popmodel.report(inputs).contents


def context(of: Contents) -> dict[str, Any]:
    found = verdict.verdict_section(of)
    assert found is not None
    return dict(found.context)


def drawn(of: Contents) -> Node:
    found = verdict.verdict_section(of)
    assert found is not None
    return parsed(fragment(found))


@pytest.fixture(scope="module")
def measured() -> Contents:
    return contents(popmodel.metrics(HYBRID))


def test_advice_doubts_and_caveats_are_told(measured: Contents) -> None:
    advice = measured.of("metrics")[0]["advice"]
    text = drawn(measured).text
    assert advice["verdict"] in text
    for cause in advice["causes"]:
        assert cause["why"] in text
    for doubt in advice["doubts"]:
        assert doubt in text
    assert "MPI_Init to MPI_Finalize" in text


def test_what_was_left_out_is_a_warning(measured: Contents) -> None:
    left_out = [{"trace": "a.prv", "what": "sensitivity", "why": "it deadlocks"}]
    given = measured.with_({**measured.document, "left_out": left_out})
    found = [one for one in drawn(given).all("li") if one.has_class("warning")]
    assert [one.text for one in found] == ["left out: sensitivity of a.prv: it deadlocks"]


@pytest.mark.parametrize("name", ["ft.S.4.prv.gz", "mg.S.4.prv.gz", "comd.4.prv.gz"])
def test_screens_and_the_page_say_the_same_and_nothing_beside_a_doubt(name: str) -> None:
    trace = ROOT / "tests" / "data" / name
    run, other = popmodel.metrics(trace), popmodel.whatif(trace)
    found = context(contents(run, other))
    said = [found["lead"], *found["more"], *found["steps"]]
    assert len(set(said)) == len(said)
    doubts = run.to_dict()["advice"]["doubts"]
    assert said[: len(doubts)] == doubts
    screens = " ".join(
        " ".join(screen_text(one.views.blocks(one._stamped()), Style(whole=True)).split())
        for one in (run, other)
    )
    for sentence in said:
        assert any(text in screens for text in (sentence, sentence[0].lower() + sentence[1:-1]))
    if doubts:
        assert not any(word in " ".join(said) for word in ("POP", "bound", "saves"))
