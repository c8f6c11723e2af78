"""``popmodel sweep``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
RUN = ("sweep", "--cores", "64")


@pytest.mark.parametrize("width", [60, 80])
def test_the_screen_has_all_splits_and_what_to_take(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    status, out, err = popmodel(*RUN)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("stencil3d (bundled)  N=512 steps=100 ")
    assert lines[0].endswith(" 64 cores")
    (head,) = [line for line in lines if line.startswith("  P x T")]
    assert head.split() == ["P", "x", "T", "runtime", "s", "90", "%", "PE", "%", "best", "memory"]
    marked = [line for line in lines if line.startswith("* ")]
    assert len(marked) == 1
    assert any(line.startswith("take      8 x 8, expected regret 0.") for line in lines)
    assert any(line.startswith("defaults  all MPI +") for line in lines)
    assert any("1 x 64 not possible: a node has 16 cores" in line for line in lines)
    assert any(line.startswith("OMP_NUM_THREADS=8 ") for line in lines)
    assert any(line.startswith("srun -N 4 -n 8 ") for line in lines)
    assert any(line.startswith("mpirun -np 8 ") for line in lines)


def test_the_document_and_the_records(popmodel: Call) -> None:
    document = json.loads(popmodel(*RUN, "--format", "json")[1])
    assert document["schema"] == "popmodel/sweep/1"
    assert document["best"][0] == [8, 8]
    paths = [source["path"] for source in document["provenance"]["inputs"]]
    assert [path.rpartition(".")[2] for path in paths] == ["toml", "json"]
    rows = list(csv.DictReader(io.StringIO(popmodel(*RUN, "--format", "csv")[1])))
    assert len(rows) == len(document["candidates"]) + len(document["refused"])
    assert {row["cores"] for row in rows} == {"64"}
    assert rows[-1]["absent"] == "a node has 16 cores, fewer than 64 threads"


def test_markdown(popmodel: Call) -> None:
    out = popmodel(*RUN, "--format", "markdown")[1]
    assert "| P x T | runtime s | 90 % | PE % | best | memory |\n" in out
    assert "- take: 8 x 8, expected regret" in out
    assert "```sh\nOMP_NUM_THREADS=8" in out


def test_several_numbers_of_cores(popmodel: Call) -> None:
    out = popmodel("sweep", "--cores", "16,64")[1]
    assert out.splitlines()[0].endswith(" 16, 64 cores")
    assert out.count("take      ") == 2


def test_another_machine_can_be_tried(popmodel: Call) -> None:
    out = popmodel(*RUN, "--what-if", "latency=0.5x,bandwidth=2")[1]
    assert "what if  latency 0.5x, bandwidth 2x\n" in out


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("sweep",), "--cores is missing", "say how many cores, e.g. --cores 64"),
        (("sweep", "--cores", "x"), "--cores: 'x' is not a whole number from 1", None),
        (("sweep", "--cores", "0"), "--cores: '0' is not a whole number from 1", None),
        (
            (*RUN, "--what-if", "latncy=2"),
            "--what-if latncy=2: nothing is called 'latncy'",
            "did you mean latency?",
        ),
        (
            (*RUN, "--what-if", "gpu=2"),
            "--what-if gpu=2: nothing is called 'gpu'",
            "known: latency, bandwidth, memory, clock, openmp, imbalance",
        ),
        (
            (*RUN, "--what-if", "clock=0x"),
            "--what-if clock=0x: '0x' is no factor above 0",
            "write for example latency=0.5x",
        ),
        (
            (*RUN, "--what-if", "clock=2,clock=3"),
            "--what-if clock=3: clock is given twice",
            "leave one of them out",
        ),
        ((*RUN, "--set", "M=3"), "stencil3d has no parameter 'M'", "it has: N, steps"),
        ((*RUN, "--max-memory", "lots"), "'lots'", None),
    ],
)
def test_wrong_usage_is_told(
    popmodel: Call, words: tuple[str, ...], message: str, hint: str | None
) -> None:
    status, out, err = popmodel(*words)
    assert (status, out) == (2, "")
    assert message in err
    assert "\nhint: " in err
    if hint is not None:
        assert err.endswith(f"hint: {hint}\n")
