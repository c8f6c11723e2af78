"""``popmodel validate`` with runs from tables of all formats, and from traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import popmodel as package

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
TRACE = "examples/traces/stencil3d.2x2.prv.gz"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("table") / "runs.csv"
    path.write_text("processes,threads,runtime,N\n1,2,1.60,64\n1,2,1.7,64\n2,1,9.0,64\n")
    return str(path)


def rows(popmodel: Call, *sources: str) -> list[dict[str, Any]]:
    status, out, err = popmodel("validate", "stencil3d", *sources, "--format", "json")
    assert (status, err) == (0, "")
    found: list[dict[str, Any]] = json.loads(out)["rows"]
    return [{key: value for key, value in row.items() if key != "source"} for row in found]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_all_formats_of_tables_give_the_same(
    shown: Call, tmp_path: Path, runs: str, suffix: str
) -> None:
    path = tmp_path / f"same{suffix}"
    package.convert(runs, path)
    assert rows(shown, str(path)) == rows(shown, runs)


def test_a_document_of_metrics_serves_as_its_trace(popmodel: Call, tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    assert popmodel("metrics", TRACE, "-o", str(path))[0] == 0
    assert rows(popmodel, f"{path}:N=200") == rows(popmodel, f"{TRACE}:N=200")


def test_what_is_doubtful_is_on_the_screen(popmodel: Call, tmp_path: Path, runs: str) -> None:
    short = tmp_path / "ms.csv"
    short.write_text("processes,threads,runtime,N\n2,1,9000,64\n")
    status, out, _ = popmodel("validate", "stencil3d", runs, runs, str(short))
    assert status == 0
    words = " ".join(out.split())
    assert f"1 file is named again, first {runs}: read once" in words
    assert "check the units" in words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"params": {"p": 2, "cells": 8}, "value": 1.0}\n' * 2, ""),
        (
            '{"params": {"p": 2, "cells": 8}, "value": 1.0}\n'
            '{"params": {"p": 2, "cells": 9}, "value": 1.0}\n',
            "cells differs between its runs (8, 9), and is not a parameter",
        ),
        ('{"params": {"p": 2}, "value": NaN}\n', "runs.jsonl:1: value must be"),
        ('{"params": {"p": 2}, "value": 0}\n', "runs.jsonl:1: runtime must be a number of seconds"),
    ],
)
def test_runs_that_do_not_serve_are_refused_in_a_line(
    popmodel: Call, tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(content)
    status, out, err = popmodel("validate", "stencil3d", str(path))
    assert (status, words in err) == (1 if words else 0, True)
    assert bool(out) is not bool(words)
