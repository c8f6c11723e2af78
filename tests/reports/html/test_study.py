"""A study in a page: its runs, the check of its prediction, the commands of its steps."""

from __future__ import annotations

from typing import Any

import pytest

import popmodel
from popmodel.reports.html import splits, study

from ..balanced import Node
from . import documents
from .documents import Document, contents, document_of

RUN = {
    "processes": 2,
    "threads": 1,
    "settings": {},
    "repeat": 1,
    "seconds": 1.25,
    "role": "learnt from",
    "runtime": 1.1,
    "disturbed": False,
    "waited": 0.001,
}
TOLD: dict[str, Any] = {
    "folder": "app.study",
    "program": "app",
    "load": None,
    "runs": [RUN, {**RUN, "processes": 1, "role": "predicted", "runtime": 2.2}],
    "not_run": [{"name": "1x2", "why": "the budget"}],
    "signature": {"path": "app.study/app.toml", "given": None, "notes": ["no counters"]},
    "machine": {"path": "target.json", "assumed": None},
    "validation": {
        "processes": 1,
        "threads": 1,
        "parameters": {},
        "verdict": ["first"],
        "runtime": {
            "predicted": 2.0,
            "low": 1.5,
            "high": 2.5,
            "mean": 2.2,
            "covered": 1,
            "error": -0.09,
        },
    },
    "recommended": [
        {
            "cores": 16,
            "processes": 16,
            "threads": 1,
            "runtime": {"value": 0.4, "low": 0.3, "high": 0.75},
            "doubtful": {"memory.bsat": 0.8},
            "measure": None,
            "sources": {},
        }
    ],
    "commands": [{"step": "sweep", "command": "popmodel predict app.study/app.toml --cores 16"}],
}


LEARNT = {
    "doubts": ["1 x 1 was predicted as 2 s, and took 2.2 s", "threads waited for CPUs"],
    "next_run": {"processes": 4, "threads": 1},
    "runs": [],
}


@pytest.fixture(scope="module")
def document() -> Document:
    swept = document_of(popmodel.predict("stencil3d", cores=16, draws=20))
    return {**swept, "learnt": LEARNT, "study": TOLD}


def drawn(*found: Document) -> Node:
    return documents.drawn(study, *found)


def test_runs_check_and_recommendation_are_told(document: Document) -> None:
    text = drawn(document).text
    for told in (
        "study of app",
        "1x2: the budget",
        "no counters",
        "not to be trusted yet",
        "check: 1 x 1 was left out, predicted from the others, then learnt from",
        "-9.0 %, inside the interval",
        "threads waited for CPUs",
        "to narrow 16 x 1",
    ):
        assert told in text


def test_every_step_can_be_repeated(document: Document) -> None:
    texts = [one.text for one in drawn(document).all("pre")]
    assert any(TOLD["commands"][0]["command"] in one for one in texts)


def test_its_splits_stand_in_their_own_section(document: Document) -> None:
    shown = documents.drawn(splits, document)
    assert len(shown.all("table", id="splits-0-16")) == 1


def test_names_are_text(document: Document) -> None:
    hostile = "<script>alert(1)</script>"
    shown = drawn({**document, "study": {**TOLD, "program": hostile}})
    assert f"study of {hostile}" in shown.text
    assert shown.all("script") == []


def test_a_sweep_alone_is_no_study(document: Document) -> None:
    alone = {key: value for key, value in document.items() if key != "study"}
    assert study.section(contents(alone)) is None
