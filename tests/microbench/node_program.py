"""The program that measures a node, compiled, started, and the lines that it writes."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from patience import GENEROUS

SOURCES = Path(__file__).resolve().parents[2] / "microbench"
Line = dict[str, Any]
Finished = subprocess.CompletedProcess[str]

# Jobs end early: these tests look at what a line holds and at orders of magnitude.
MISSED = "no batch with all threads"  # all threads were at work at once
QUICKLY = ("--budget", "0.02", "--least", "5", "--most", "20")
CPUS = len(os.sched_getaffinity(0))
two_cpus = pytest.mark.skipif(CPUS < 2, reason="needs two processors")


def build(folder: Path, *settings: str) -> Path:
    """Compile through the Makefile; a warning is an error."""
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("needs make and a C compiler")
    done = subprocess.run(
        ["make", "-C", str(SOURCES), "node", f"BUILD={folder}", *settings],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return folder / "popmodel-node"


def compile_beside(words: Sequence[str], source: str, output: Path, *flags: str) -> Path:
    """Compile a source of these tests."""
    command = [*words, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}", "-o", output]
    done = subprocess.run(
        [*map(str, command), *flags, str(Path(__file__).parent / source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("node"), "CFLAGS=-O2 -Werror")


@pytest.fixture
def run(node: Path) -> Callable[..., Finished]:
    def start(*arguments: str) -> Finished:
        return subprocess.run(
            [node, *arguments], capture_output=True, text=True, check=False, timeout=GENEROUS
        )

    return start


@pytest.fixture
def measure(run: Callable[..., Finished]) -> Callable[..., list[Line]]:
    """Results of some jobs, without header and end.

    On a machine that does other work as well, threads may miss each other in every batch of a short
    budget: such jobs have another try, and skip the test if they never meet.
    """

    def of(*jobs: str, options: Sequence[str] = QUICKLY) -> list[Line]:
        found: dict[str, Line] = {}
        for _ in range(3):
            left = [job for job in jobs if job not in found]
            lines = zip(left, once(*left, options=options), strict=True)
            found |= {job: each for job, each in lines if MISSED not in each.get("absent", "")}
            if len(found) == len(jobs):
                return [found[job] for job in jobs]
        pytest.skip("the processors are busy with other work: threads never run together")

    def once(*jobs: str, options: Sequence[str]) -> list[Line]:
        done = run(*options, *jobs)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert lines[0]["schema"] == "popmodel/samples/1"
        assert lines[-1]["end"] == "complete"
        assert lines[-1]["left"] == 0
        return lines[1:-1]

    return of


def check_result(line: Line) -> None:
    """Look at what every line of a job that was done must hold."""
    known = {"job", "params", "inner", "seconds", "reference", "moved", "work", "rejected"}
    known |= {
        "pace",
        "arithmetic",
        "arithmetic_pace",
        "stopped",
        "wall",
        "at",
        "involuntary",
        "steal",
        "foreign",
    }
    assert set(line) <= known, line
    assert line["inner"] >= 1
    assert 1 <= len(line["seconds"]) <= 20
    assert all(seconds > 0 for seconds in line["seconds"]), line
    if "reference" in line:
        assert len(line["reference"]) == len(line["seconds"])
        assert all(seconds > 0 for seconds in line["reference"]), line
    if line["job"] not in ("quantum", "smt"):
        assert len(line["pace"]) == len(line["seconds"])
        assert all(seconds > 0 for seconds in line["pace"]), line
    assert line["stopped"] in ("converged", "batches", "budget")
    assert line["wall"] > 0
    assert time.time() - GENEROUS < line["at"] < time.time() + 1
    assert line["involuntary"] >= 0
    assert line["steal"] is None or line["steal"] >= 0
    assert line["foreign"] is None or 0 <= line["foreign"] <= 1


def median(line: Line) -> float:
    return float(statistics.median(line["seconds"]))
