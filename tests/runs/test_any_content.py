"""Whatever a file holds, it is a table of runs or refused in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import PopmodelError
from popmodel.runs.measurement import MeasuredRow
from popmodel.runs.run_files import SUFFIXES, read_file

NAMES = st.sampled_from(
    (
        *("processes", "threads", "runtime", "runtime [ms]", "N", "p", "time", "host", "#x", ""),
        *("parameters", "metrics", "aggregates", "schema", "runs", "params", "value", "metric"),
        *("callpath", "measurements", "point", "values", "coordinates", "window", "disturbed"),
        *("ranks", "T", "t", "cores", "nodes", "ppn", "P x T", "command", "Time (s)", "wall_min"),
        *("run1", "run2", "elapsed [hh:mm:ss]", "results", "times", "mean", "speedup", "| a |"),
        *("mpi", "mpi.load_balance", "parallel_efficiency", "aggregates.useful_mean", "a.b"),
    )
)
BASE = {"processes": 4, "threads": 2, "runtime": 1.5}
CELLS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**12),
    st.floats(),
    st.sampled_from(("popmodel/runs/1", "popmodel/metrics/1", "1.5 ms", "85 %", "nan", "x", "")),
    st.sampled_from(
        ("1,5", "1.234,5", "1:02:03", "2m3s", "4 x 2", "mpirun -n 4 ./a", "#", "---", "9" * 400)
    ),
)
JSON = st.recursive(
    CELLS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6)
)
ANY = st.dictionaries(NAMES, CELLS, max_size=8)
ROW = ANY | st.dictionaries(NAMES, CELLS | ANY, max_size=3).map(lambda more: {**BASE, **more})
ROWS = st.lists(ROW, max_size=4)
LINES = st.lists(
    st.tuples(
        st.sampled_from(("PARAMETER", "POINTS", "REGION", "METRIC", "DATA", "#", "", "X")),
        st.lists(
            st.sampled_from(("p", "N", "4", "(", ")", "2.5", "nan", "time", "->")), max_size=6
        ),
    ),
    max_size=10,
)
CELL = NAMES | CELLS.map(str)
TABLES = st.lists(st.lists(CELL, max_size=6), max_size=5) | st.builds(
    lambda head, rows: [[*BASE, head], *rows],
    NAMES,
    st.lists(st.tuples(st.just("4"), st.just("2"), CELL, CELL).map(list), min_size=1, max_size=3),
)


def refused_or_read(folder: Path, suffix: str, text: str) -> None:
    path = folder / f"runs{suffix}"
    path.write_text(text)
    for parameters in (None, ("N",)):
        try:
            found = read_file(path, parameters)
        except PopmodelError as error:
            assert error.message.startswith(str(path))
            assert "\n" not in error.message
        else:
            assert all(sound(run) for run in found.runs)


def sound(run: MeasuredRow) -> bool:
    """Whether a run is one: whole numbers of processes and threads, and times above 0."""
    sizes = run.processes >= 1 and run.threads >= 1
    return sizes and 0 < run.runtime < float("inf") and len(run.digest) == 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


@given(document=JSON | ROWS | st.fixed_dictionaries({"schema": CELLS, "runs": ROWS}))
def test_json(folder: Path, document: Any) -> None:
    refused_or_read(folder, ".json", json.dumps(document))


@given(lines=st.lists(JSON | ROW, max_size=4))
def test_json_lines(folder: Path, lines: list[Any]) -> None:
    refused_or_read(folder, ".jsonl", "\n".join(map(json.dumps, lines)))


@given(lines=LINES)
def test_text_of_extra_p(folder: Path, lines: list[tuple[str, list[str]]]) -> None:
    text = "\n".join(f"{section} {' '.join(words)}" for section, words in lines)
    refused_or_read(folder, ".txt", text)


@given(rows=TABLES, mark=st.sampled_from((",", ";", "\t", " ", "|", "  ")))
def test_tables_in_text(folder: Path, rows: list[list[str]], mark: str) -> None:
    refused_or_read(folder, ".csv", "\n".join(mark.join(row) for row in rows))


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(content=st.binary(max_size=64))
def test_any_bytes(folder: Path, suffix: str, content: bytes) -> None:
    path = folder / f"bytes{suffix}"
    path.write_bytes(content)
    with pytest.raises(PopmodelError):
        read_file(path)
