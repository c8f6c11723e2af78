"""The table of processes, on runs that no small trace gives."""

from typing import Any

import numpy as np

from popmodel.efficiency.measure import UNITS
from popmodel.reports import breakdown_tables
from popmodel.reports.renderers.data import rows
from popmodel.reports.renderers.terminal import block_lines
from popmodel.reports.renderers.text import Style


def document(
    processes: list[dict[str, Any]], *, runtime: float, threads: int = 1
) -> dict[str, Any]:
    run = {
        "trace": "run.prv",
        "caveats": [],
        "runtime": runtime,
        "threads": threads,
        "by_process": processes,
    }
    return {"runs": [run]}


def drawn(document: dict[str, Any], width: int = 80) -> list[str]:
    return block_lines(breakdown_tables.process_blocks(document), Style(width))


def many(count: int, **columns: Any) -> list[dict[str, Any]]:
    nothing = [None] * count
    return [
        {
            **{"process": process, "node": 0, "threads": 1},
            **{name: columns.get(name, nothing)[process] for name in UNITS},
        }
        for process in range(count)
    ]


def test_the_ends_of_each_column_are_marked() -> None:
    processes = many(
        3,
        useful=[0.5, 0.4, 0.45],
        mpi=[0.5, 0.6, 0.6],
        instructions=[2e9, 2.5e9, 2e9],
        ipc=[1.0, np.nan, 2.0],
    )
    assert drawn(document(processes, runtime=1.0), 60) == [
        "                                   instruc-",
        "           useful  useful     MPI     tions     IPC",
        "processes       s       %       s       1e9",
        " rank 0    0.500>   50.0>  0.500<    2.000<  1.000<",
        " rank 1    0.400<   40.0<  0.600>    2.500>      -",
        " rank 2    0.450    45.0   0.600>    2.000<  2.000>",
        "lowest     0.400    40.0   0.500     2.000   1.000",
        "average    0.450    45.0   0.567     2.167   1.500",
        "highest    0.500    50.0   0.600     2.500   2.000",
        "highest of all processes marked >, lowest <",
    ]


def test_equal_processes_have_no_marks() -> None:
    lines = block_lines(
        breakdown_tables.process_blocks(document(many(2, useful=[2e-3, 2e-3]), runtime=4e-3)),
        Style(60),
    )
    assert lines[2:4] == [" rank 0    2.000    50.0", " rank 1    2.000    50.0"]


def test_of_many_processes_the_outliers_are_shown() -> None:
    useful = np.full(1000, 5.0)
    useful[[7, 400]] = 9.0, 1.0
    mpi = np.full(1000, 2.0)
    mpi[900] = 3.0
    one = document(many(1000, useful=useful, mpi=mpi), runtime=10.0)
    lines = drawn(one)
    shown = [line.split()[1] for line in lines if line.startswith(" rank ")]
    assert len(shown) == breakdown_tables.SHOWN
    assert {"7", "400", "900"} <= set(shown)
    assert shown == sorted(shown, key=int)
    assert "and 990 processes nearer to the average (all with --format csv or json)" in lines
    assert len(one["runs"][0]["by_process"]) == 1000
    assert len(rows(one, breakdown_tables.BY_PROCESS)) == 1000


def test_hybrid_runs_say_whose_times_they_are() -> None:
    processes = many(1, useful=[2.0], mpi=[1.0], in_openmp=[6.0], serial_useful=[1.5])
    lines = drawn(document(processes, runtime=10.0, threads=4))
    assert " ".join(" ".join(lines).split()).endswith(
        "useful: average over the threads of a process; MPI, in OpenMP, serial useful: master "
        "thread"
    )
