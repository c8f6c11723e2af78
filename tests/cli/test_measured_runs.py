"""Measured runs from any mix of traces and tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from popmodel.base.errors import FileError
from popmodel.cli.measured_runs import read_runs
from popmodel.traces import read
from popmodel.traces.selection import TracePart

DATA = Path(__file__).parent.parent / "data"
HYBRID = DATA / "bt-mz.S.2x2.prv.gz"
HEAD = "processes,threads,runtime"


def test_traces_and_tables_give_runs_in_their_order(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(f"{HEAD},N\n4,2,1.5,64\n")
    found = read_runs([f"{HYBRID}:N=128", table], ["N"])
    assert [(run.processes, run.threads, dict(run.parameters)) for run in found.runs] == [
        (2, 2, {"N": 128.0}),
        (4, 2, {"N": 64.0}),
    ]
    assert found.runs[0].metrics["hybrid-additive"].keys() >= {"parallel_efficiency"}
    assert [table.path for table in found.tables] == [str(table)]
    assert (found.files, found.warnings) == ((str(HYBRID), str(table)), ())


def test_a_loaded_trace_is_a_run() -> None:
    trace = read(HYBRID)
    whole = read_runs(trace)
    assert whole.runs[0].source == str(HYBRID)
    assert read_runs(trace, asked=TracePart.of(window="0:100ms")).runs[0].runtime == pytest.approx(
        0.1
    )


def test_what_is_said_of_a_table_holds_for_its_rows(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text("ranks,threads,runtime\n4,2,1.5\n")
    [run] = read_runs(f"{table}:ranks=processes,N=64", ["N"]).runs
    assert (run.processes, dict(run.parameters)) == (4, {"N": 64.0})


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    link = tmp_path / "link.prv.gz"
    link.symlink_to(HYBRID)
    found = read_runs([HYBRID, link, HYBRID])
    assert len(found.runs) == 1
    assert found.warnings == (f"2 files are named again, first {link}: read once",)


def test_a_copy_of_a_trace_counts_once_also_without_its_names(tmp_path: Path) -> None:
    copy = tmp_path / "copy.prv.gz"
    shutil.copy(HYBRID, copy)
    found = read_runs([HYBRID, copy])
    assert [run.source for run in found.runs] == [str(HYBRID)]
    assert found.warnings == (f"{copy} is the run of {HYBRID}: counted once",)


def test_traces_of_different_programs_are_refused() -> None:
    other = DATA / "is.S.4.prv.gz"
    with pytest.raises(FileError, match=r"is\.S\.4\.prv\.gz: not the program of .*bt-mz"):
        read_runs([HYBRID, other])
