"""Tables of measured runtimes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.validation.run_times import RunTimes, TableError, read_table

HEAD = "processes,threads,runtime"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


def table(path: Path, text: str, *parameters: str) -> RunTimes:
    path.write_text(text)
    return read_table(path, parameters)


def test_columns_may_have_any_order_and_blanks(path: Path) -> None:
    found = table(path, "runtime,threads ,processes\n2.5,4,2\n\n 2.6 ,4,2\n")
    assert [(run.processes, run.threads, run.runtime, run.line) for run in found.runs] == [
        (2, 4, 2.5, 2),
        (2, 4, 2.6, 4),
    ]
    assert found.runs[1].place == f"{path}:4"


def test_columns_named_like_parameters_are_those_of_each_run(path: Path) -> None:
    found = table(path, f"N,{HEAD},steps\n64,1,1,2,10\n1e2,1,1,3,20\n", "N", "steps", "K")
    assert [dict(run.parameters) for run in found.runs] == [
        {"N": 64.0, "steps": 10.0},
        {"N": 100.0, "steps": 20.0},
    ]
    assert found.parameters == ("N", "steps")
    assert found.ignored == ()


def test_columns_that_set_nothing_are_named(path: Path) -> None:
    text = f"{HEAD},compiler,repeat,#gflops,\n1,1,2,gcc 13,1,3.5,\n1,1,2,12,2,3.4,\n"
    found = table(path, text, "N")
    assert found.ignored == ("compiler", "repeat", "#gflops")
    assert found.runs[0].parameters == {}


def test_an_empty_cell_leaves_a_parameter_open(path: Path) -> None:
    found = table(path, f"{HEAD},N,steps\n1,1,2,64,\n1,1,3,,7\n", "N", "steps")
    assert [dict(run.parameters) for run in found.runs] == [{"N": 64.0}, {"steps": 7.0}]


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("", "runs.csv:1: has no column 'processes'", "the first line names the columns: proc"),
        ("processes,threads\n", "runs.csv:1: has no column 'runtime'", "the first line names"),
        ("processes,thread,runtime\n", "has no column 'threads'", "rename the column 'thread'"),
        ("Processes,threads,runtime\n", "no column 'processes'", "rename the column 'Processes'"),
        (f"{HEAD}\n", "runs.csv: has no runs", "one line per run"),
        (f"{HEAD},runtime\n1,1,1,2\n", "runs.csv:1: has 2 columns 'runtime'", "all but one"),
        (f"{HEAD},N,N\n", "runs.csv:1: has 2 columns 'N'", "remove or rename"),
        (f"{HEAD},n\n", "runs.csv:1: has an unknown column 'n'", "did you mean 'N'? Rename"),
        (f"{HEAD},stepss\n", "has an unknown column 'stepss'", "did you mean 'steps'?"),
        (f"{HEAD},runtime2\n", "has an unknown column 'runtime2'", "did you mean 'runtime'?"),
        (f"{HEAD}\n1,1,2\n1,1,3,4\n", "runs.csv:3: has 4 fields, the header has 3", "decimal"),
        (f"{HEAD}\n1,1\n", "runs.csv:2: has 2 fields, the header has 3", "decimal points"),
        (f"{HEAD}\n2,x,1\n", "runs.csv:2: threads must be a whole number, at least 1", None),
        (f"{HEAD}\n2,2,1\n0,2,1\n", "csv:3: processes must be a whole number, at least", None),
        (f"{HEAD}\n2,2,\n", "runtime must be a number of seconds above 0, not ''", None),
        (f"{HEAD}\n2,2,-1\n", "runtime must be a number of seconds above 0, not '-1'", None),
        (f"{HEAD}\n2,2,nan\n", "runtime must be a number of seconds above 0, not 'nan'", None),
        (f"{HEAD}\n2,2,1e999\n", "runtime must be a number of seconds above 0", None),
        (f"{HEAD},N\n2,2,1,0\n", "runs.csv:2: N must be a number above 0, not '0'", None),
        (
            f"{HEAD},cells\n2,2,1,64\n",
            "runs.csv:1: column 'cells' is not a parameter of the application (N, steps)",
            "name it after the parameter that it sets, or #cells if it sets none",
        ),
        (f"{HEAD},nodes\n2,2,1,\n2,2,1,2\n", "column 'nodes' is not a parameter", "or #nodes if"),
        (f"{HEAD},N\n2,2,1,big\n", "runs.csv:2: N must be a number above 0, not 'big'", None),
    ],
)
def test_a_damaged_table_is_refused_with_its_line(
    path: Path, text: str, words: str, hint: str | None
) -> None:
    with pytest.raises(TableError) as caught:
        table(path, text, "N", "steps")
    assert words in caught.value.message
    assert (caught.value.hint or "").find(hint or "") >= 0
    assert (caught.value.hint is None) == (hint is None)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 10**6), st.integers(1, 999), st.floats(1e-6, 1e6), st.floats(1e-3, 1e9)
        ),
        min_size=1,
        max_size=20,
    )
)
def test_numbers_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, float, float]]
) -> None:
    lines = [f"{HEAD},N", *(",".join(map(repr, row)) for row in rows)]
    found = table(tmp_path_factory.mktemp("t") / "runs.csv", "\n".join(lines), "N")
    assert [
        (run.processes, run.threads, run.runtime, run.parameters["N"]) for run in found.runs
    ] == rows
