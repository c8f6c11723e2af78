"""Which part of a run a user asks for, in texts and in numbers."""

import math

import pytest

from popmodel.base.errors import UsageError
from popmodel.traces.selection import PROGRAM, TracePart, Window

S, MS = 10**9, 10**6
EXAMPLES = "try --window 1.5s:3s, --window :2s or --window 500ms:"


@pytest.mark.parametrize(
    ("window", "begin", "end"),
    [
        ("1.5s:3s", 1500 * MS, 3 * S),
        ("1:2", 1 * S, 2 * S),
        (":2s", None, 2 * S),
        ("500ms:", 500 * MS, None),
        (" 1 ms : 2 ms ", 1 * MS, 2 * MS),
        ("0:1us", 0, 1000),
        ((0.25, 3), 250 * MS, 3 * S),
        ((None, 2.0), None, 2 * S),
        (("10ms", None), 10 * MS, None),
    ],
)
def test_windows(window: Window, begin: int | None, end: int | None) -> None:
    part = TracePart.of(window)
    assert (part.begin, part.end, part.region, part.from_start) == (begin, end, None, False)
    assert part.has_window


def test_nothing_asked_for_is_the_program() -> None:
    assert TracePart.of() == PROGRAM
    assert not PROGRAM.has_window


def test_a_region_in_a_window() -> None:
    assert TracePart.of("1:2", "solve") == TracePart(1 * S, 2 * S, "solve")


@pytest.mark.parametrize(
    ("window", "problem"),
    [
        ("5s", "--window 5s: must be BEGIN:END"),
        ("1:2:3", "--window 1:2:3: must be BEGIN:END"),
        (":", "--window :: needs a start or an end"),
        ((None, None), "--window :: needs a start or an end"),
        ("3s:2s", "--window 3s:2s: must end after it begins"),
        ("2:2", "--window 2:2: must end after it begins"),
        ((1.0, 0.5), "--window 1.0:0.5: must end after it begins"),
        ("-1:2", "--window -1:2: times must be finite and not negative"),
        ((0.0, math.inf), "--window 0.0:inf: times must be finite and not negative"),
        ("nan:2", "--window nan:2: times must be finite and not negative"),
    ],
)
def test_windows_that_are_none(window: Window, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        TracePart.of(window)
    assert (caught.value.message, caught.value.hint) == (problem, EXAMPLES)


def test_a_time_that_is_none_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        TracePart.of("1parsec:2")
    assert caught.value.message == "--window 1parsec:2: '1parsec': 'parsec' is not a unit of time"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("give a number with ns, us, ms, s")


def test_a_region_can_be_taken_with_the_start_of_mpi() -> None:
    assert TracePart.of(region="a", from_start=True) == TracePart(region="a", from_start=True)
