"""What the screen of a study says of its runs, its check and its recommendation."""

from __future__ import annotations

from typing import Any

import pytest

from popmodel.report.blocks import Facts, Note
from popmodel.report.renderers.tables import Style
from popmodel.report.renderers.terminal import screen_text
from popmodel.report.study import _notes, check, recommended, runs

RUN = {
    "processes": 2,
    "threads": 1,
    "settings": {"N": 64},
    "seconds": 1.2345,
    "role": "learnt from",
}
RUN |= {"runtime": 1.1, "disturbed": False, "waited": 0.001}
TOLD = {
    "folder": "app.study",
    "program": "app",
    "runs": [RUN, {**RUN, "processes": 1, "role": "predicted"}],
    "not_run": [{"name": "1x2", "why": "the budget"}],
    "signature": {"path": "app.study/signature.toml", "given": None, "notes": []},
    "machine": {"path": "target.json", "assumed": "the network is that of another machine"},
}
TIME = {"predicted": 2.0, "low": 1.5, "high": 2.5, "mean": 2.2, "covered": 1, "error": -0.0909}
CHECK = {"processes": 1, "threads": 1, "parameters": {"N": 64}, "verdict": ["first", "second"]}
BEST = {
    "cores": 64,
    "processes": 32,
    "threads": 2,
    "runtime": {"value": 0.4, "low": 0.3, "high": 0.75},
    "doubtful": {},
    "measure": None,
    "sources": {},
}
MACHINE = {"machine": {"preset": False}, "choices": []}


def drawn(*sections: Any) -> str:
    return screen_text([*sections], Style(width=80))


def test_runs_and_what_was_made_of_them_are_listed() -> None:
    text = drawn(*runs(TOLD))
    assert "study of app" in text
    assert "app.study/signature.toml (found in 1 trace)" in text
    assert "assumed    the network is that of another machine" in text
    assert "not run    1x2: the budget" in text
    assert "2 x 1 N=64  1.234        1.1  learnt from" in text
    assert "waited" not in text


def test_runs_on_a_busy_machine_are_marked() -> None:
    text = drawn(*runs({**TOLD, "runs": [RUN, {**RUN, "disturbed": True, "waited": 0.0345}]}))
    assert "1.1!" in text
    assert "\n ! threads waited for CPUs" in text
    assert (
        "threads waited for CPUs (!), of the time that they were ready to run 3.5 % in 2 x 1 N=64: "
        "these times are too long"
    ) in " ".join(text.split())


def test_a_signature_that_was_given_is_named() -> None:
    given = {**TOLD["signature"], "given": "mine.toml"}  # type: ignore[dict-item]
    assert "(given: mine.toml)" in drawn(*runs({**TOLD, "signature": given}))


def test_many_notes_are_counted() -> None:
    section = _notes({"path": "s.toml", "notes": [f"note {k}" for k in range(5)]})
    assert drawn(section).splitlines() == [
        "what the traces leave open",
        *(f" - note {k}" for k in range(3)),
        " and 2 more notes in s.toml",
    ]


@pytest.mark.parametrize(
    ("covered", "said"),
    [(1, "-9.1 %, inside the interval"), (0, "-9.1 %, outside the interval"), (None, "-9.1 %")],
)
def test_the_check_says_whether_the_interval_held(covered: int | None, said: str) -> None:
    text = drawn(check({"validation": {**CHECK, "runtime": {**TIME, "covered": covered}}}))
    assert text.splitlines() == [
        "check: 1 x 1 N=64 was left out and predicted from the others",
        "predicted  2.000 s (90 %: 1.50 s .. 2.50 s)",
        "measured   2.200 s",
        f"error      {said}",
        " second",
    ]


def test_a_recommendation_has_its_interval() -> None:
    (facts,) = recommended(BEST, MACHINE)
    text = "32 x 2 on 64 cores: 400.0 ms (90 %: 300 ms .. 750 ms)"
    assert facts == Facts((("recommended", text),))


def test_a_recommendation_without_interval_says_why() -> None:
    none = {"value": 0.4, "low": None, "high": None, "why": "too far outside"}
    text = drawn(recommended({**BEST, "runtime": none}, MACHINE))
    assert "400.0 ms; no interval: too far outside" in " ".join(text.split())


def test_what_would_narrow_it_is_named_with_its_command() -> None:
    one = {**BEST, "doubtful": {"memory.bsat": 0.82, "law.loops": 0.1}, "measure": "popmodel bench"}
    section = recommended(one, MACHINE)
    assert "(memory.bsat), 82 % of the variance" in " ".join(drawn(section).split())
    assert Note in [type(block) for block in section]
    assert "popmodel bench" in drawn(section)


def test_a_constant_of_the_signature_is_narrowed_by_more_runs() -> None:
    name = "constants.c7"
    one = {**BEST, "doubtful": {name: 0.6}, "sources": {name: "sweep, 1/(P*T) at P = 2"}}
    text = " ".join(drawn(recommended(one, MACHINE)).split())
    assert "constant c7 of the application, 60 % of the variance" in text
    assert "it comes from sweep, 1/(P*T) at P = 2; more runs would narrow it: --runs" in text
