"""Remarks that several runs share."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.units import count
from popmodel.reports.notes import join, joint_notes, joint_warnings


def run(*notes: str, warnings: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"notes": notes, "family_notes": {}, "warnings": warnings}


def test_one_number_that_differs_is_given_with_the_name_of_each_run() -> None:
    texts = [f"{calls} of 9 calls of epoch2d" for calls in (7, 1_000)]
    assert join(texts, ["a", "b"]) == "7 (a), 1000 (b) of 9 calls of epoch2d"
    assert (
        join(["after 1 s of it", "after 2 s of it"], ["a", "b"]) == "after 1 s (a), 2 s (b) of it"
    )
    assert join(["no number"] * 3, ["a", "b", "c"]) == "no number"


def test_several_numbers_that_differ_are_ranges() -> None:
    texts = [
        f"{calls} calls (rank 0 at {time} s)" for calls, time in (("11,952", 0.5), ("952", 1e-7))
    ]
    assert join(texts, ["a", "b"]) == "952 to 11,952 calls (rank 0 at 1e-07 to 0.5 s)"


def test_many_runs_have_ranges_instead_of_a_list() -> None:
    texts = [f"{calls} calls" for calls in (5, -7, 3, 20, 4)]
    assert join(texts, list("abcde")) == "-7 to 20 calls"


def test_numbers_that_name_something_have_no_range() -> None:
    for text in ("rank {} is late", "threads 0-{} run", "in solve (app.c:{})", "processes 1, {}"):
        assert join([text.format(3), text.format(8)], ["a", "b"]) is None
    first, second = run("12 calls (first: rank 3)"), run("15 calls (first: rank 0)")
    assert joint_notes([first, second], ["a", "b"]) == [
        "a: 12 calls (first: rank 3) (similar in b)"
    ]


@pytest.mark.parametrize("text", ["see run-{}.prv", "in /data/{}/run", "Extrae {}.1.2", "mix.{}"])
def test_parts_of_names_and_versions_are_no_numbers(text: str) -> None:
    notes = [text.format(number) for number in (4, 16)]
    assert joint_notes([run(notes[0]), run(notes[1])], ["a", "b"]) == [
        f"a: {notes[0]}",
        f"b: {notes[1]}",
    ]


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=9), st.integers(0, 9999))
def test_numbers_stay_whole_however_long(numbers: list[int], other: int) -> None:
    names = [f"run_{index}" for index in range(len(numbers))]
    texts = [f"{count(number)} calls after {count(other)}, rank 0" for number in numbers]
    if len(set(numbers)) == 1:
        expected = count(numbers[0])
    elif len(numbers) <= 4:
        told = zip(numbers, names, strict=True)
        expected = ", ".join(f"{count(number)} ({name})" for number, name in told)
    else:
        expected = f"{count(min(numbers))} to {count(max(numbers))}"
    assert join(texts, names) == f"{expected} calls after {count(other)}, rank 0"


@given(
    st.lists(
        st.tuples(st.integers(0, 10**9), st.floats(1e-9, 1e9), st.integers(-99, 99)),
        min_size=2,
        max_size=6,
    )
)
def test_every_number_of_a_joint_note_is_one_of_a_run(
    values: list[tuple[int, float, int]],
) -> None:
    names = [f"run{'x' * index}" for index in range(len(values))]
    runs = [run(f"{count(a)} calls in {b:.9g} s, {c} degrees") for a, b, c in values]
    (note,) = joint_notes(runs, names)
    for index, column in enumerate(zip(*values, strict=True)):
        if len(set(column)) > 1 and f"({names[0]})" not in note:
            write = (count, "{:.9g}".format, str)[index]
            written = sorted((float(write(v).replace(",", "")), write(v)) for v in column)
            assert written[0][1] in note
            assert written[-1][1] in note
    parts = note.split()
    known = {count(a) for a, _, _ in values} | {f"{b:.9g}" for _, b, _ in values}
    known |= {str(c) for _, _, c in values}
    assert {part for part in parts if part.strip("-")[:1].isdigit()} <= known


def test_notes_that_differ_in_numbers_are_one() -> None:
    names = ["a", "b", "c"]
    runs = [run("7 calls", "slow"), run("8 calls", "slow"), run("7 calls")]
    assert joint_notes(runs, names) == ["7 (a), 8 (b), 7 (c) calls", "a, b: slow"]
    assert joint_notes([run("7 calls", "8 calls", "7 calls")], ["a"]) == ["7 calls", "8 calls"]
    runs = [run("7 calls", "9 calls"), run("8 calls")]
    assert joint_notes(runs, ["a", "b"]) == ["7 (a), 8 (b) calls", "a: 9 calls"]


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
    assert joint_warnings(often, names) == [
        {"text": "calls without an exit (4 times (a), 1,200 times (b))"}
    ]
