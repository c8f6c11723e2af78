"""What the screen of a study says of its runs, its check and what to run next."""

from collections.abc import Callable
from typing import Any

import pytest

import popmodel
from popmodel.reports.renderers.terminal import screen_text
from popmodel.reports.renderers.text import Style
from popmodel.reports.study_tables import blocks

RUN = {
    "processes": 2,
    "threads": 1,
    "settings": {"N": 64},
    "role": "learnt from",
    "runtime": 1.1,
    "disturbed": False,
    "waited": 0.001,
}
BUSY = {**RUN, "disturbed": True, "waited": 0.345, "runtime": 3.0}
TOLD: dict[str, Any] = {
    "folder": "app.study",
    "program": "app",
    "load": {"cpus": 2, "foreign": 1.25, "stolen": 0.0, "limit": None},
    "runs": [RUN, {**RUN, "runtime": 1.21}, {**RUN, "processes": 1, "role": "predicted"}],
    "not_run": [{"name": "1x2", "why": "the budget"}, {"name": "2x2", "why": "the budget"}],
    "signature": {"path": "s.toml", "given": None, "notes": [f"note {k}" for k in range(11)]},
    "machine": {"path": "target.json", "assumed": "the network is that of another machine"},
    "validation": {
        "processes": 1,
        "threads": 1,
        "parameters": {"N": 64},
        "runtime": {"predicted": 2.0, "low": 1.5, "high": 2.5, "mean": 2.2, "error": -0.0909},
        "verdict": ["first", "second"],
    },
    "next": None,
    "commands": [{"step": "signature", "command": "popmodel signature from a.prv -o s.toml"}],
}
DOUBTS = [
    f"doubt {k} that is so long that it takes more than a line of a screen {'x' * 20}"
    for k in range(9)
]
NEXT = {"why": "run all again", "command": "popmodel study --cores 64 -- mpirun -n '{P}' ./app"}

Drawn = Callable[..., str]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return popmodel.predict("stencil3d", cores=64).to_dict()


@pytest.fixture
def drawn(document: dict[str, Any]) -> Drawn:
    def draw(
        *, doubts: list[str] | None = None, why: str = "", whole: bool = True, **told: Any
    ) -> str:
        trust = {"ok": not doubts and not why, "why": why}
        made = {**document, "study": {**TOLD, **told}, "trust": trust}
        if doubts:
            made["learnt"] = {"doubts": doubts, "runs": [], "next_run": None}
        return screen_text(blocks(made), Style(width=80, whole=whole))

    return draw


@pytest.mark.parametrize("doubts", [[], DOUBTS])
@pytest.mark.parametrize("next", [None, NEXT, {"why": "ask for more cores", "command": None}])
def test_the_answer_fits_a_screen(drawn: Drawn, doubts: list[str], next: Any) -> None:
    text = drawn(doubts=doubts, whole=False, next=next)
    assert len(text.splitlines()) <= 23, text  # the footer takes two more
    assert "check: 1 x 1 N=64, predicted from the others: -9.1 %, inside the interval" in text
    assert ("not to be trusted yet" in text) is bool(doubts)
    assert ("srun " in text) is not bool(doubts)
    if next:
        assert f"next: {next['why']}" in text
        assert (NEXT["command"] in text) is (next is NEXT)


def test_whole_it_says_what_the_answer_rests_on(drawn: Drawn) -> None:
    text = drawn(doubts=DOUBTS)
    assert text.count("doubt ") >= len(DOUBTS)
    assert "s.toml (found in the traces)" in text
    assert "assumed    the network is that of another machine" in text
    assert "load       others used 1.2 of 2 CPUs before the runs" in text
    assert "not run    1x2, 2x2: the budget" in text
    assert "2 x 1 N=64     2      1.154    10 %     0 %  learnt from" in text
    assert " - note 7\n - and 3 more notes in s.toml" in text
    assert " - second" in text
    assert "popmodel signature from a.prv -o s.toml" in text
    given = {**TOLD["signature"], "given": "mine.toml"}
    assert "(given: mine.toml)" in drawn(signature=given)


def test_runs_on_a_busy_machine_are_marked_where_no_other_tells(drawn: Drawn) -> None:
    text = drawn(runs=[RUN, BUSY])
    assert "2 x 1 N=64  1 of 2        1.1             0 %  learnt from" in text
    text = drawn(runs=[BUSY, BUSY])
    assert "2 x 1 N=64     2         3!     0 %    34 %  learnt from" in text
    assert "\n ! threads waited for CPUs more than 10 % of the time" in text


def test_the_check_says_whether_the_interval_held(drawn: Drawn) -> None:
    time = {**TOLD["validation"]["runtime"], "mean": 2.6}
    missed = drawn(validation={**TOLD["validation"], "runtime": time})
    assert "-9.1 %, outside the interval" in missed
    assert "check:" not in drawn(validation=None)


def test_a_doubt_of_the_prediction_alone_comes_first_too(drawn: Drawn) -> None:
    assert drawn(why="N is far outside").startswith(" ! not to be trusted yet: N is far outside\n")
