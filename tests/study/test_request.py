"""Commands with placeholders: what may stand in them, and how they are filled."""

from __future__ import annotations

import pytest

from popmodel.errors import UsageError
from popmodel.shell import filled
from popmodel.study.plan import check_command, placeholders, uses

COMMAND = ("mpirun", "-n", "{P}", "./app", "--size={N}", "x{N}y{T}")


def test_placeholders_stand_anywhere_in_a_word() -> None:
    assert placeholders(COMMAND) == ["P", "N", "T"]
    assert uses(COMMAND, "T")
    made = filled(COMMAND, {"P": 4, "T": 2, "N": 128.0})
    assert made == ("mpirun", "-n", "4", "./app", "--size=128", "x128y2")


def test_other_braces_stay() -> None:
    words = ("./app", '{"a": 1}', "${HOME}x{1}")
    assert filled(words, {"HOME": 3.5}) == ("./app", '{"a": 1}', "$3.5x{1}")


@pytest.mark.parametrize(
    ("words", "parameters", "message", "hint"),
    [
        (("mpirun", "./app"), (), "mpirun ./app: the number of processes must be {P}", "-n {P}"),
        (("mpirun", "{P}", "{M}"), (), "{M}: nothing says what it stands for", "--set M=100,200"),
        (("mpirun", "{P}", "{cell}"), ("cells",), "{cell}: nothing says", "did you mean cells?"),
        (("mpirun", "{P}"), ("N",), "--set N: the command has no {N}", "./app {N}"),
        (("mpirun", "{P}"), ("T",), "--set T: {T} is the number of threads", "--runs 1x1,2x1"),
        (("mpirun", "{P}", "a\x1bb"), (), "the command contains an invisible character", "rename"),
    ],
)
def test_mistakes_are_told(
    words: tuple[str, ...], parameters: tuple[str, ...], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as told:
        check_command(words, parameters)
    assert told.value.message.startswith(message)
    assert hint in (told.value.hint or "")
