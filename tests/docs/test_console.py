"""The documents are true: commands print what is shown below them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from console import Step, differences, documents, printed, steps, updated

STEPS = [step for document in documents() for step in steps(document)]
outputs = cache(printed)
"""Some commands stand in several documents."""


@pytest.mark.long(after=1)
@pytest.mark.parametrize("step", STEPS, ids=map(str, STEPS))
def test_a_command_prints_what_is_shown(step: Step) -> None:
    assert not differences(outputs(step.command), step.shown), "python tests/update_documents.py"


def test_the_readme_shows_what_analysts_ask_for() -> None:
    verbs = {step.command.split()[1] for step in STEPS if step.document.name == "README.md"}
    assert verbs >= {"metrics", "predict", "validate"}


def test_words_have_to_agree() -> None:
    assert not differences("load balance  96 %\n", "load  balance 96\n%")
    assert differences("load balance 96 %", "load balance 96 points")


def test_numbers_may_be_two_per_cent_or_a_digit_apart() -> None:
    assert not differences("takes 102 s", "takes 100 s")
    assert not differences("takes 0.2 s", "takes 0.1 s")
    assert differences("takes 103 s", "takes 100 s") == ["printed: 103, shown: 100"]


def test_an_update_replaces_outputs_and_nothing_else() -> None:
    text = "One\n\n```console\n$ popmodel --version | \\\n  tail -n 1\nold\n```\n\n```\nkept\n```\n"
    version = printed("popmodel --version")
    assert updated(text) == text.replace("old\n", version)


@pytest.mark.long
def test_a_command_that_fails_is_reported() -> None:
    with pytest.raises(RuntimeError, match=r"popmodel docs nothing: exit status 2: .*'nothing'"):
        printed("popmodel docs nothing")


def test_steps_are_the_commands_of_a_document(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ popmodel a\nx\n\ny\n$ popmodel b\n```\n```\n$ popmodel c\n```\n")
    assert list(steps(page)) == [Step(page, "popmodel a", "x\n\ny\n"), Step(page, "popmodel b", "")]
