"""What the screen of a study says of its runs, its check and its recommendation."""

from __future__ import annotations

from typing import Any

import pytest

from popmodel.reports.renderers.tables import Style
from popmodel.reports.renderers.terminal import screen_text
from popmodel.reports.study_tables import _notes, check, further_doubts, narrowing, runs

RUN = {
    "processes": 2,
    "threads": 1,
    "settings": {"N": 64},
    "repeat": 1,
    "seconds": 1.2345,
    "role": "learnt from",
    "runtime": 1.1,
    "disturbed": False,
    "waited": 0.001,
}
TOLD: dict[str, Any] = {
    "folder": "app.study",
    "program": "app",
    "load": {"cpus": 2, "foreign": 1.25, "stolen": 0.0, "limit": None},
    "runs": [
        RUN,
        {**RUN, "repeat": 2, "runtime": 1.21},
        {**RUN, "processes": 1, "role": "predicted"},
    ],
    "not_run": [{"name": "1x2", "why": "the budget"}, {"name": "2x2", "why": "the budget"}],
    "signature": {"path": "app.study/signature.toml", "given": None, "notes": []},
    "machine": {"path": "target.json", "assumed": "the network is that of another machine"},
}
COMPARED = {"predicted": 2.0, "low": 1.5, "high": 2.5, "mean": 2.2, "covered": 1}
COMPARED |= {"error": -0.0909}
CHECK = {"processes": 1, "threads": 1, "parameters": {"N": 64}, "verdict": ["first", "second"]}
BEST = {"cores": 64, "processes": 32, "threads": 2, "doubtful": {}, "measure": None, "sources": {}}
DOCUMENT: dict[str, Any] = {"machine": {"preset": False}, "study": {**TOLD, "recommended": [BEST]}}


def drawn(*sections: Any) -> str:
    return screen_text([*sections], Style(width=80))


def words(*sections: Any) -> str:
    return " ".join(drawn(*sections).split())


def test_runs_and_what_was_made_of_them_are_listed() -> None:
    text = drawn(*runs(TOLD))
    assert "study of app" in text
    assert "app.study/signature.toml (found in the traces)" in text
    assert "assumed    the network is that of another machine" in text
    assert "load       others used 1.2 of 2 CPUs before the runs" in text
    assert "not run    1x2, 2x2: the budget" in text
    assert "2 x 1 N=64     2      1.154    10 %     0 %  learnt from" in text
    assert "!" not in text


def test_runs_on_a_busy_machine_are_marked_where_no_other_tells() -> None:
    busy = {**RUN, "disturbed": True, "waited": 0.345, "runtime": 3.0}
    text = drawn(*runs({**TOLD, "runs": [RUN, busy]}))
    assert "2 x 1 N=64  1 of 2        1.1             0 %  learnt from" in text
    text = drawn(*runs({**TOLD, "runs": [busy, busy]}))
    assert "2 x 1 N=64     2         3!     0 %    34 %  learnt from" in text
    assert "\n ! threads waited for CPUs more than 10 % of the time" in text


def test_a_signature_that_was_given_is_named() -> None:
    given = {**TOLD["signature"], "given": "mine.toml"}
    assert "(given: mine.toml)" in drawn(*runs({**TOLD, "signature": given}))


def test_many_notes_are_counted() -> None:
    section = _notes({"path": "s.toml", "notes": [f"note {k}" for k in range(5)]})
    assert drawn(section).splitlines() == [
        "what the traces leave open",
        *(f" - note {k}" for k in range(3)),
        " and 2 more notes in s.toml",
    ]


@pytest.mark.parametrize(
    ("mean", "said"),
    [(2.2, "-9.1 %, inside the interval"), (2.6, "-9.1 %, outside the interval")],
)
def test_the_check_says_whether_the_interval_held(mean: float, said: str) -> None:
    compared = {**COMPARED, "mean": mean}
    text = drawn(check({**TOLD, "validation": {**CHECK, "runtime": compared}}))
    assert text.splitlines() == [
        "check: 1 x 1 N=64 was left out, predicted from the others, then learnt from",
        "predicted  2.000 s (90 %: 1.50 s .. 2.50 s)",
        f"measured   {mean:.3f} s",
        f"error      {said}",
        " second",
    ]
    assert check({**TOLD, "validation": None}) == ()


def test_all_doubts_are_told_the_heaviest_elsewhere() -> None:
    doubted = {"learnt": {"doubts": ["first", "second", "third"]}}
    assert drawn(further_doubts(doubted)).splitlines() == [" - second", " - third"]
    assert further_doubts({}) == ()


def test_what_would_narrow_it_is_named_with_its_command() -> None:
    one = {
        **BEST,
        "doubtful": {"memory.bsat": 0.82, "law.loops": 0.1},
        "measure": "popmodel machine measure",
    }
    text = words(narrowing(one, DOCUMENT))
    assert "(memory.bsat), 82 % of the variance" in text
    assert "to narrow 32 x 2" in text
    assert "popmodel machine measure" in text
    assert narrowing(BEST, DOCUMENT) == ()


def test_a_constant_of_the_signature_is_narrowed_by_more_runs() -> None:
    name = "constants.c7"
    one = {**BEST, "doubtful": {name: 0.6}, "sources": {name: "sweep, 1/(P*T) at P = 2"}}
    text = words(narrowing(one, DOCUMENT))
    assert "constant c7 of the application, 60 % of the variance" in text
    assert "it comes from sweep, 1/(P*T) at P = 2; more runs would narrow it: --runs" in text
