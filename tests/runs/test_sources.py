"""Files of runs as they are named."""

from __future__ import annotations

import pytest

from popmodel.errors import UsageError
from popmodel.runs.table import numbers_of, split


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        ("run.prv.gz", "run.prv.gz", {}),
        ("run.prv.gz:N=128,steps=1e2", "run.prv.gz", {"N": "128", "steps": "1e2"}),
        ("a:b.prv:N=1", "a:b.prv", {"N": "1"}),
        ("x:N=1/run.prv", "x:N=1/run.prv", {}),
        (
            "runs.txt:p=processes, r = main->solve",
            "runs.txt",
            {"p": "processes", "r": "main->solve"},
        ),
    ],
)
def test_a_file_and_what_is_said_of_it(text: str, path: str, said: dict[str, str]) -> None:
    assert split(text) == (path, said)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run.prv:N=", "run.prv:N= N=: value missing"),
        ("run.prv:N=1,2", "run.prv:N=1,2 2: value missing"),
        ("run.prv:N=1,N=1", "N is set twice"),
    ],
)
def test_what_is_not_name_and_value_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        split(text)
    assert words in caught.value.message


@pytest.mark.parametrize("value", ["big", "nan", "inf", "1e999"])
def test_parameters_are_numbers(value: str) -> None:
    assert numbers_of("x", {"N": "64"}) == {"N": 64.0}
    with pytest.raises(UsageError, match=f"x N={value}: must be a number, not '{value}'"):
        numbers_of("x", {"N": value})
