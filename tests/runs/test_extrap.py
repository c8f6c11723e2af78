"""Measured runs from files of Extra-P."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from popmodel.runs.run_files import read_file
from popmodel.runs.table import RunTimes
from popmodel.runs.text_tables import TableError

TEXT = """# two parameters, two repeats
PARAMETER p N
POINTS ( 2 64 ) ( 4 64 )
POINTS (8 128)

REGION main
METRIC time
DATA 4 4.2
DATA 2.1 2.0
DATA 2.5 2.6
"""


def read(
    folder: Path, text: str | object, suffix: str = ".txt", *parameters: str, **said: str
) -> RunTimes:
    path = folder / f"runs{suffix}"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return read_file(path, parameters or None, said)


def sizes(found: RunTimes) -> list[tuple[int, int, float, dict[str, float]]]:
    return [(run.processes, run.threads, run.runtime, dict(run.parameters)) for run in found.runs]


ROWS = [
    (2, 1, 4.0, {"N": 64.0}),
    (2, 1, 4.2, {"N": 64.0}),
    (4, 1, 2.1, {"N": 64.0}),
    (4, 1, 2.0, {"N": 64.0}),
    (8, 1, 2.5, {"N": 128.0}),
    (8, 1, 2.6, {"N": 128.0}),
]


def test_text_gives_a_run_for_every_value(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT)
    assert sizes(found) == ROWS
    assert [run.line for run in found.runs] == [8, 8, 9, 9, 10, 10]
    assert [run.place.removeprefix(found.path) for run in found.runs[:2]] == [
        ":8 value 1",
        ":8 value 2",
    ]
    note = f"no threads are given: 1 per process assumed, {found.path}:threads=N sets them"
    assert found.notes == (note,)


@pytest.mark.parametrize(
    "points", ["2 4 8", "(2) (4) (8)", "(2)(4)(8)", "((2)) ((4)) ((8))", "( 2 ) ( 4 ) ( 8 )"]
)
def test_points_of_one_parameter_may_have_brackets_or_not(tmp_path: Path, points: str) -> None:
    text = f"PARAMETER ranks\nPOINTS {points}\nDATA 3\nDATA 2\nDATA 1\n"
    found = read(tmp_path, text, threads="4")
    assert sizes(found) == [(2, 4, 3.0, {}), (4, 4, 2.0, {}), (8, 4, 1.0, {})]
    assert found.notes == ("its metric has no name: taken for the runtime, in seconds",)


def test_blanks_may_be_tabs(tmp_path: Path) -> None:
    assert sizes(read(tmp_path, TEXT.replace(" ", "\t"))) == ROWS


def test_json_lines_give_the_same(tmp_path: Path) -> None:
    lines = [
        {"params": {"p": p, **values}, "metric": "time", "value": time}
        for p, _, time, values in ROWS
    ]
    found = read(tmp_path, "\n".join(map(json.dumps, lines)), ".jsonl")
    assert sizes(found) == ROWS
    assert [run.line for run in found.runs] == [1, 2, 3, 4, 5, 6]


def test_a_value_of_json_lines_may_be_several(tmp_path: Path) -> None:
    found = read(tmp_path, {"params": {"np": 4, "t": 2}, "value": [1.5, 1.6]}, ".jsonl")
    assert sizes(found) == [(4, 2, 1.5, {}), (4, 2, 1.6, {})]


def test_json_gives_the_same(tmp_path: Path) -> None:
    values = [
        {"point": [2, 64], "values": [4, 4.2]},
        {"point": [4, 64], "values": [2.1, 2.0]},
        {"point": [8, 128], "values": [2.5, 2.6]},
    ]
    document = {"parameters": ["p", "N"], "measurements": {"main": {"time": values}}}
    found = read(tmp_path, document, ".json")
    assert sizes(found) == ROWS
    assert found.runs[3].place == f"{found.path} main, time[1] value 2"


def test_metrics_of_the_same_point_belong_to_its_runs(tmp_path: Path) -> None:
    text = (
        "PARAMETER processes threads\nPOINTS (4 2) (8 2)\nREGION main\nMETRIC runtime [ms]\n"
        "DATA 1500 1600\nDATA 800\nMETRIC parallel_efficiency\nDATA .9 .8\nDATA .7\n"
        "METRIC bytes\nDATA 5 6\nDATA 7\nMETRIC visits\nDATA 1\nDATA 1\n"
    )
    found = read(tmp_path, text)
    assert sizes(found) == [(4, 2, 1.5, {}), (4, 2, 1.6, {}), (8, 2, 0.8, {})]
    assert [run.metrics["hybrid-additive"]["parallel_efficiency"] for run in found.runs] == [
        0.9,
        0.8,
        0.7,
    ]
    assert found.ignored == ("bytes", "visits")
    assert found.notes == ("not one value for each run: visits: left out where that is so",)


@pytest.mark.parametrize(
    ("regions", "said", "whole"),
    [
        (("main", "main->solve"), {}, "main"),
        (("start", "start->solve"), {}, "start"),
        (("<root>", "solve"), {}, "<root>"),
        (("a", "b"), {"region": "b"}, "b"),
    ],
)
def test_the_whole_program_is_one_of_the_regions(
    tmp_path: Path, regions: tuple[str, ...], said: dict[str, str], whole: str
) -> None:
    data = "".join(f"REGION {one}\nMETRIC time\nDATA {i + 1}\n" for i, one in enumerate(regions))
    found = read(tmp_path, f"PARAMETER p\nPOINTS 4\n{data}", **said)
    assert sizes(found) == [(4, 1, 1.0 + regions.index(whole), {})]


def test_a_name_that_is_a_parameter_of_the_application_means_this(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT.replace("PARAMETER p N", "PARAMETER ranks p"), ".txt", "p")
    assert sizes(found)[0] == (2, 1, 4.0, {"p": 64.0})


def test_what_is_said_of_the_names_holds(tmp_path: Path) -> None:
    text = TEXT.replace("PARAMETER p N", "PARAMETER x y").replace("METRIC time", "METRIC m")
    found = read(tmp_path, text, ".txt", "N", x="processes", y="N", threads="2", metric="m")
    assert sizes(found)[0] == (2, 2, 4.0, {"N": 64.0})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("PARAMETER p\n", "txt: has no values"),
        ("PARAMETER p\nNOTHING 3\n", "txt:2: NOTHING is no section of a text file of Extra-P"),
        ("DATA\n" + "a" * 100_000 + "\n", "txt:1: DATA is an empty section"),
        ("PARAMETER p\n" + "a" * 100_000 + "\n", f"txt:2: {'a' * 76}...a is no section"),
        ("PARAMETER\n", "txt:1: PARAMETER is an empty section"),
        ("POINTS 3 4\n", "txt:1: 2 coordinates are no points of 0 parameters"),
        ("PARAMETER p N\nPOINTS 3 4 5\n", "txt:2: 3 coordinates are no points of 2 parameters"),
        ("PARAMETER p\nPOINTS 2\nPARAMETER q\n", "txt:3: PARAMETER behind POINTS"),
        ("PARAMETER p\nPOINTS 2\nDATA 1\nDATA 2\n", "txt:4: more DATA lines than the 1 points"),
        ("PARAMETER p\nPOINTS 2 4\nDATA 1\n", "txt:3: only 1 DATA lines before it for 2 points"),
        (
            "PARAMETER p\nPOINTS 2 4\nMETRIC time\nDATA 1\nMETRIC m\nDATA 1\nDATA 2\n",
            "txt:5: only 1 DATA lines before it for 2 points",
        ),
        ("PARAMETER p\nPOINTS 2\nDATA nan\n", "txt:3: has no runtime ('nan'), as all rows"),
        ("PARAMETER p\nPOINTS 2\nDATA 0\n", "txt:3: runtime must be a number of seconds above 0"),
        ("PARAMETER p\nPOINTS 2.5\nDATA 1\n", "txt:3: processes must be a whole number"),
        ("PARAMETER x\nPOINTS 2\nDATA 1\n", "is known as the number of processes (x)"),
        (
            "PARAMETER p\nPOINTS 2\nREGION a\nDATA 1\nREGION b\nDATA 2\n",
            "has 2 regions (a, b), none of which is known as the whole program",
        ),
        (
            "PARAMETER p\nPOINTS 2\nMETRIC a\nDATA 1\nMETRIC b\nDATA 2\n",
            "none of its metrics may be the runtime (a, b)",
        ),
        (
            "PARAMETER p\nPOINTS 2\nMETRIC time\nDATA 1\nMETRIC walltime\nDATA 2\n",
            "each of 2 of its metrics may be the runtime (time, walltime)",
        ),
    ],
)
def test_damaged_text_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TableError) as caught:
        read(tmp_path, text)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"region": "solve"}, "has no region 'solve'"),
        ({"metric": "power"}, "has no metric 'power'"),
        ({"q": "processes"}, "has no column 'q' that could mean processes"),
    ],
)
def test_what_is_said_must_be_in_the_file(tmp_path: Path, said: dict[str, str], words: str) -> None:
    with pytest.raises(TableError) as caught:
        read(tmp_path, TEXT, **said)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([{"params": {"p": 2}}], "jsonl:1: value is missing"),
        ([{"params": {"p": 2}, "value": "fast"}], "jsonl:1: value must be a number, or a list"),
        ([{"params": {"p": 2}, "value": -1}], "jsonl:1: runtime must be a number of seconds above"),
        (
            [{"params": {"p": 2}, "value": 1}, {"params": {"q": 2}, "value": 1}],
            "jsonl:2: its parameters are q, not p",
        ),
        (
            [
                {"params": {"p": 2}, "metric": "time", "value": 1},
                {"params": {"p": 4}, "metric": "visits", "value": 1},
            ],
            "jsonl:2: no time at this point: p=4",
        ),
    ],
)
def test_damaged_lines_are_refused(tmp_path: Path, lines: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(TableError) as caught:
        read(tmp_path, "\n".join(map(json.dumps, lines)), ".jsonl")
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            {
                "parameters": ["p", "N"],
                "measurements": {"main": {"time": [{"point": [1], "values": [2]}]}},
            },
            "json: main, time[0]: the point has 1 coordinates for 2 parameters (p, N)",
        ),
        ({"parameters": [], "measurements": {}}, "parameters must be a list with at least one"),
    ],
)
def test_damaged_documents_are_refused(
    tmp_path: Path, document: dict[str, Any], words: str
) -> None:
    with pytest.raises(TableError) as caught:
        read(tmp_path, document, ".json")
    assert words in caught.value.message


def test_runs_of_several_sizes_need_a_parameter_of_the_application(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"N differs between its runs \(64, 128\), and is not a"):
        read(tmp_path, TEXT, ".txt", "steps")
    same = TEXT.replace("128", "64")
    assert read(tmp_path, same, ".txt", "steps").ignored == ("N",)
