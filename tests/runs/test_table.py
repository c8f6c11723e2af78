"""Tables of measured runtimes."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.base.errors import UsageError
from popmodel.runs.run_files import read_text_table
from popmodel.runs.table import RunTimes, numbers_of, split
from popmodel.runs.text_tables import TableError

HEAD = "processes,threads,runtime"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


def table(path: Path, text: str, *parameters: str, **said: str) -> RunTimes:
    path.write_text(text)
    return read_text_table(path, parameters, said)


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
        ("", "runs.csv: is empty", "a line of names"),
        ("processes,threads\n", "runs.csv:1: has no column 'runtime'", "the first line names"),
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
        (f"{HEAD}\n2,2,\n", "csv:2: has no runtime, as all rows", "its unit above"),
        (f"{HEAD}\n2,2,-1\n", "runtime must be a number of seconds above 0, not '-1'", None),
        ("procceses,threads,runtime\n", "has an unknown column 'procceses'", "mean 'processes'"),
        (f"{HEAD}\n2,2,1e999\n", "runtime must be a number of seconds above 0", None),
        (f"{HEAD},N\n2,2,1,0\n", "runs.csv:2: N must be a number above 0, not '0'", None),
        (
            f"{HEAD},cells\n2,2,1,64\n",
            "runs.csv:1: column 'cells' is not a parameter of the application (N, steps)",
            "name it after the parameter that it sets, or #cells if it sets none",
        ),
        (f"{HEAD},box\n2,2,1,\n2,2,1,2\n", "column 'box' is not a parameter", "or #box if"),
        (f"{HEAD},N\n2,2,1,big\n", "runs.csv:2: N must be a number above 0, not 'big'", None),
        (f"{HEAD}\n2,2,1 mm\n", "csv:2: runtime must be a number of seconds above 0", "[ms]"),
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


@pytest.mark.parametrize(
    ("head", "cell"),
    [
        ("runtime", "1.5"),
        ("runtime [s]", "1.5"),
        ("runtime_ms", "1500"),
        ("runtime (us)", "1500000"),
        ("runtime[min]", "0.025"),
    ],
)
def test_a_runtime_has_the_unit_that_is_written(path: Path, head: str, cell: str) -> None:
    found = table(path, f"processes,threads,{head}\n4,2,{cell}\n")
    assert found.runs[0].runtime == pytest.approx(1.5, rel=1e-12)
    assert found.runs[0].aggregates == {"processes": 4, "threads": 8, "runtime": pytest.approx(1.5)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{HEAD}_ms,runtime [s]\n", "csv:1: has 2 columns 'runtime': runtime_ms, runtime [s]"),
        (f"{HEAD} [days]\n", "csv:1: column 'runtime' has the unit 'days'"),
        (f"{HEAD},parallel_efficiency [s]\n", "column 'parallel_efficiency' has the unit 's'"),
        (f"{HEAD} [ms]\n1,1,-2\n", "csv:2: runtime must be a number of ms above 0, not '-2'"),
        (f"{HEAD},mpi.load_balance\n1,1,2,85\n", "csv:2: load_balance cannot be 85"),
        (f"{HEAD},parallel_efficiency\n1,1,2,nan\n", "must be a fraction or per cent, not 'nan'"),
        (f"{HEAD},parallel_efficiency\n1,1,2,-0.5\n", "parallel_efficiency cannot be -0.5"),
        (f"{HEAD},aggregates.useful_mean\n1,1,2,-1\n", "useful_mean must be a number, at least 0"),
    ],
)
def test_units_that_contradict_each_other_are_refused(path: Path, text: str, words: str) -> None:
    with pytest.raises(TableError) as caught:
        table(path, text)
    assert words in caught.value.message


def test_what_is_per_cent_is_told_how_to_write_it(path: Path) -> None:
    with pytest.raises(TableError) as caught:
        table(path, f"{HEAD},mpi.load_balance\n1,1,2,85\n")
    assert caught.value.hint == "if it is per cent, write 85% or mpi.load_balance [%]"


def test_metrics_are_columns(path: Path) -> None:
    head = f"{HEAD},parallel_efficiency,mpi.load_balance [%],talp.parallel_efficiency"
    found = table(path, f"{head}\n4,2,1.5,0.8,85,90 %\n8,1,1.5,,70,\n")
    assert [run.metrics for run in found.runs] == [
        {
            "hybrid-additive": {"parallel_efficiency": 0.8},
            "mpi": {"load_balance": 0.85},
            "talp": {"parallel_efficiency": 0.9},
        },
        {"mpi": {"load_balance": 0.7}},
    ]


def test_metrics_that_contradict_their_parts_are_refused(path: Path) -> None:
    head = f"{HEAD},parallel_efficiency,process_efficiency,thread_efficiency"
    assert table(path, f"{head}\n4,2,1,72%,81%,90%\n").runs[0].metrics  # rounded
    with pytest.raises(TableError) as caught:
        table(path, f"{head}\n4,2,1,0.72,0.81,0.9\n4,2,1,0.42,0.6,0.7\n")
    assert caught.value.message.endswith(
        "runs.csv:3: hybrid-additive: parallel_efficiency is 0.42, and its parts give 0.3 "
        "(process_efficiency, thread_efficiency)"
    )


def test_metrics_above_one_of_their_parts_are_refused(path: Path) -> None:
    """The other part would be above 1: projections took it for a load balance of 180 %."""
    head = f"{HEAD},mpi.parallel_efficiency,mpi.communication_efficiency"
    assert table(path, f"{head}\n4,1,1,0.92,0.9\n").runs[0].metrics  # rounded
    with pytest.raises(TableError) as caught:
        table(path, f"{head}\n2,1,1,0.8,0.9\n4,1,1,0.9,0.5\n")
    assert caught.value.message.endswith(
        "runs.csv:3: mpi: parallel_efficiency is 0.9, and its part communication_efficiency only "
        "0.5"
    )


def test_metrics_follow_from_quantities_in_a_table(path: Path) -> None:
    head = f"{HEAD},aggregates.useful_mean [ms],aggregates.instructions_sum"
    found = table(path, f"{head}\n4,2,2,1500,1e9\n")
    assert found.runs[0].metrics["hybrid-additive"] == {"parallel_efficiency": 0.75}
    assert found.runs[0].aggregates["useful_mean"] == pytest.approx(1.5)
    assert found.runs[0].aggregates["instructions_sum"] == 1e9


def test_without_an_application_every_column_of_numbers_is_a_parameter(path: Path) -> None:
    path.write_text(f"{HEAD},N,compiler,repeat,#flops\n4,2,2,128,gcc,1,3\n")
    found = read_text_table(path, None)
    assert found.runs[0].parameters == {"N": 128.0}
    assert (found.parameters, found.ignored) == (("N",), ("compiler", "repeat", "#flops"))


def test_columns_mean_what_is_said(path: Path) -> None:
    text = "ranks,walltime\n4,2.5\n"
    found = table(path, text, "N", ranks="processes", walltime="runtime [ms]", threads="2", N="64")
    run = found.runs[0]
    assert (run.processes, run.threads, run.runtime) == (4, 2, 0.0025)
    assert run.parameters == {"N": 64.0}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"ranks": "processes"}, "has no column 'ranks' that could mean processes"),
        ({"threads": "2"}, "has no run with threads = 2"),
    ],
)
def test_what_is_said_must_fit_the_table(path: Path, said: dict[str, str], words: str) -> None:
    with pytest.raises(TableError) as caught:
        table(path, f"{HEAD}\n1,1,2\n", **said)
    assert words in caught.value.message


# -- files of runs as they are named


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        ("run.prv.gz", "run.prv.gz", {}),
        ("run.prv.gz:N=128,steps=1e2", "run.prv.gz", {"N": "128", "steps": "1e2"}),
        ("a:b.prv:N=1", "a:b.prv", {"N": "1"}),
        ("x:N=1/run.prv", "x:N=1/run.prv", {}),
        (
            "runs.txt:p=processes, r = main->solve",
            "runs.txt",
            {"p": "processes", "r": "main->solve"},
        ),
    ],
)
def test_a_file_and_what_is_said_of_it(text: str, path: str, said: dict[str, str]) -> None:
    assert split(text) == (path, said)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run.prv:N=", "run.prv:N= N=: value missing"),
        ("run.prv:N=1,2", "run.prv:N=1,2 2: value missing"),
        ("run.prv:N=1,N=1", "N is set twice"),
    ],
)
def test_what_is_not_name_and_value_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        split(text)
    assert words in caught.value.message


@pytest.mark.parametrize("value", ["big", "nan", "inf", "1e999"])
def test_parameters_are_numbers(value: str) -> None:
    assert numbers_of("x", {"N": "64"}) == {"N": 64.0}
    with pytest.raises(UsageError, match=f"x N={value}: must be a number, not '{value}'"):
        numbers_of("x", {"N": value})
