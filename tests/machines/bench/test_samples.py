"""Samples files: what is read, what is forgiven, what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from popmodel.machines.bench.sample_files import SamplesError, read, read_one

HEADER = {"schema": "popmodel/samples/1", "program": "node", "launch": 1, "host": "here"}
JOB = {
    "job": "triad",
    "params": {"bytes": 8, "threads": 2},
    "seconds": [1e-3, 2e-3],
    "stopped": "converged",
    "moved": 24,
}
ABSENT = {"job": "smt", "params": {"shared": 1}, "absent": "no SMT"}


def write(path: Path, *lines: Any, end: str = "\n") -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + end)
    return path


def test_a_whole_launch(tmp_path: Path) -> None:
    end = {"end": "complete", "left": 0, "foreign": 0.25}
    launch = read_one(write(tmp_path / "a", HEADER, JOB, ABSENT, end))
    assert launch.program == "node"
    assert launch.hosts == ("here",)
    assert (launch.end, launch.foreign) == ("complete", 0.25)
    triad, smt = launch.results
    assert triad.seconds.tolist() == [1e-3, 2e-3]
    assert triad.reference is None
    assert triad.converged
    assert triad.facts["moved"] == 24
    assert triad.pace is None
    assert triad.key == ("triad", (("bytes", 8), ("threads", 2)))
    assert smt.absent == "no SMT"
    assert not smt.converged


def test_the_pace_of_the_cores(tmp_path: Path) -> None:
    paced = JOB | {"pace": [3e-10, 6e-10], "arithmetic": [1e-4], "arithmetic_pace": [3e-10]}
    (found,) = read_one(write(tmp_path / "a", HEADER, paced)).results
    assert found.pace is not None
    assert found.pace.tolist() == [3e-10, 6e-10]
    assert found.arithmetic_pace is not None
    assert found.arithmetic_pace.tolist() == [3e-10]
    assert not {"pace", "arithmetic_pace"} & found.facts.keys()


def test_a_launch_that_was_killed_keeps_what_it_measured(tmp_path: Path) -> None:
    launch = read_one(write(tmp_path / "a", HEADER, JOB, '{"job": "tri', end=""))
    assert len(launch.results) == 1
    assert launch.end is None


def test_a_resumed_launch_has_two_headers(tmp_path: Path) -> None:
    launch = read_one(write(tmp_path / "a", HEADER, JOB, HEADER, ABSENT, {"end": "complete"}))
    assert len(launch.results) == 2


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([HEADER, "{", JOB], "a:2: is not JSON: "),
        ([HEADER, "[1]", JOB], "a:2: is not a JSON object"),
        (
            [HEADER, '{"job": "x", "job": "y"}', JOB],
            ("a:2: contains the key 'job' twice in one table"),
        ),
        ([HEADER, "[" * 100_000, JOB], "a:2: is nested too deeply"),
        ([{"schema": "x"}, JOB], "a:1: is not a samples file: its schema is 'x'"),
        ([HEADER | {"program": "gpu"}, JOB], "a:1: program must be one of node, mpi"),
        ([HEADER | {"ranks_at": [{}]}, JOB], "a:1: ranks_at[0].host is missing"),
        ([HEADER | {"started": 1e18}, JOB], "a:1: started must be at most"),
        ([HEADER, {"params": {}}], "a:2: job is missing"),
        ([HEADER, JOB | {"params": 3}], "a:2: params must be a table, not 3"),
        ([HEADER, JOB | {"params": {"bytes": 1.5}}], "a:2: params.bytes must be a whole number"),
        ([HEADER, JOB | {"params": {"delay": "x"}}], "a:2: params.delay must be seconds above 0"),
        ([HEADER, JOB | {"seconds": ["x"]}], "a:2: seconds[0] must be a number, not 'x'"),
        ([HEADER, {"job": "x", "params": {}}], "a:2: has neither seconds nor a reason"),
        ([HEADER, JOB | {"seconds": [1, None]}], "a:2: seconds[1] must be a number, not None"),
        ([HEADER, JOB | {"seconds": [math.inf]}], "a:2: seconds[0] must be finite, not inf"),
        ([HEADER, JOB | {"seconds": [1, 0]}], "a:2: seconds must be above 0, not 0"),
        ([HEADER, JOB | {"moved": -1}], "a:2: moved must be a number above 0, not -1"),
        ([HEADER, JOB | {"job": "clock"}], "a:2: work is missing"),
        ([HEADER, JOB | {"job": "reduce_local", "params": {}}], "a:2: params.bytes is missing"),
        (
            [HEADER, JOB | {"reference": [1]}],
            "a:2: reference and seconds must have the same number",
        ),
        ([HEADER, JOB | {"pace": [1e-9]}], "a:2: pace and seconds must have the same number"),
        ([HEADER, JOB | {"pace": [1e-9, 0]}], "a:2: pace[1] must be a number above 0, not 0"),
        (
            [HEADER, JOB | {"arithmetic_pace": [1e-9]}],
            "a:2: arithmetic_pace and arithmetic must have the same number",
        ),
        ([HEADER, JOB, {"end": 1}], "a:3: end must be text, not 1"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, lines: list[Any], words: str) -> None:
    path = write(tmp_path / "a", *lines)
    with pytest.raises(SamplesError) as caught:
        read([path])
    assert words in caught.value.message
    hints = (
        "remove the line, or measure again: popmodel machine measure",
        "samples files are written by popmodel machine measure",
    )
    assert caught.value.hint in hints


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(SamplesError, match="is empty: the launch ended before it wrote anything"):
        read_one(write(tmp_path / "a", end=""))
