"""Remarks that several runs share."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from popmodel.report.joint import join, joint_notes, joint_warnings
from popmodel.units import count, plural


def run(*notes: str, warnings: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"notes": notes, "family_notes": {}, "warnings": warnings}


def test_numbers_that_differ_are_given_for_each_run() -> None:
    texts = [
        f"{calls} of 9 calls (rank 0 at {time} s) of epoch2d"
        for calls, time in ((7, 0.5), (8, 1e-7))
    ]
    assert join(texts) == "7 / 8 of 9 calls (rank 0 at 0.5 / 1e-07 s) of epoch2d"
    assert join(["no number"] * 3) == "no number"


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=4), st.integers(0, 9999))
def test_numbers_stay_whole_however_long(numbers: list[int], other: int) -> None:
    told = [f"{plural(number, 'call')} after {count(other)}, rank 0" for number in numbers]
    same = len(set(numbers)) == 1
    expected = count(numbers[0]) if same else " / ".join(count(number) for number in numbers)
    if len({number == 1 for number in numbers}) == 1:
        noun = "call" if numbers[0] == 1 else "calls"
        assert join(told) == f"{expected} {noun} after {count(other)}, rank 0"


def test_notes_that_differ_in_numbers_are_one() -> None:
    names = ["a", "b", "c"]
    runs = [run("7 calls", "slow"), run("8 calls", "slow"), run("7 calls")]
    assert joint_notes(runs, names) == ["7 / 8 / 7 calls", "a, b: slow"]
    assert joint_notes([run("7 calls", "8 calls", "7 calls")], ["a"]) == ["7 calls", "8 calls"]
    runs = [run("7 calls", "9 calls"), run("8 calls")]
    assert joint_notes(runs, ["a", "b"]) == ["7 / 8 calls", "a: 9 calls"]


def test_notes_of_families_are_told_with_those_of_the_run() -> None:
    one = {**run("slow"), "family_notes": {"mpi": ["slow", "odd"]}}
    assert joint_notes([one], ["a"]) == ["slow", "odd"]


def test_warnings_are_told_once() -> None:
    missing = {"text": "no .pcf file", "count": 1, "line": None}
    odd = {"text": "calls without an exit", "count": 4, "line": 17}
    names = ["a", "b"]
    assert joint_warnings([run(warnings=(missing, odd))], ["a"]) == [missing, odd]
    both = [run(warnings=(missing, odd)), run(warnings=(missing,))]
    assert joint_warnings(both, names) == [
        {"text": "no .pcf file"},
        {**odd, "text": "a: calls without an exit"},
    ]
    often = [run(warnings=(odd,)), run(warnings=({**odd, "count": 1200},))]
    assert joint_warnings(often, names) == [{"text": "calls without an exit (4 / 1,200 times)"}]
