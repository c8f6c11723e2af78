"""Runs from what ``sacct -P`` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.cli.measured_runs import read_runs
from popmodel.runs.run_files import read_file
from popmodel.runs.table import RunTimes
from popmodel.runs.text_tables import TableError

HEAD = "JobID|JobName|NTasks|NNodes|AllocCPUS|Elapsed|ElapsedRaw|State"
STEPS = f"""{HEAD}
100|solve||2|16|00:10:07|607|COMPLETED
100.batch|batch|1|1|8|00:10:07|607|COMPLETED
100.extern|extern|2|2|16|00:10:07|607|COMPLETED
100.0|solve.x|8|2|16|00:05:03|303|COMPLETED
100.1|solve.x|4|1|16|00:05:00|300|COMPLETED
101|solve||2|16|00:00:20|20|FAILED
101.0|solve.x|8|2|16|00:00:18|18|FAILED
102_7.0|solve.x|16|2|16|1-00:00:01|86401|COMPLETED
103.0|solve.x|16|2|16|00:30:00|1800|CANCELLED by 1000
104.0|solve.x|16|2|16|00:00:00|0|COMPLETED
"""


def read(folder: Path, text: str, suffix: str = ".txt", **said: str) -> RunTimes:
    path = folder / f"jobs{suffix}"
    path.write_text(text)
    return read_file(path, None, said)


def sizes(found: RunTimes) -> list[tuple[int, int, float, int | None]]:
    return [(run.processes, run.threads, run.runtime, run.nodes) for run in found.runs]


@pytest.mark.parametrize("suffix", [".txt", ".sacct"])
def test_steps_are_runs_and_what_did_not_complete_is_left_out_and_said(
    tmp_path: Path, suffix: str
) -> None:
    found = read(tmp_path, STEPS, suffix)
    assert sizes(found) == [(8, 2, 303.0, 2), (4, 4, 300.0, 1), (16, 1, 86401.0, 2)]
    assert [run.line for run in found.runs] == [5, 6, 9]
    assert found.runs[0].place == f"{found.path}:5 job 100.0"
    assert found.parameters == ()
    assert found.notes == (
        "left out: 1 run (101.0): state FAILED",
        "left out: 1 run (103.0): state CANCELLED",
        "left out: 1 run (104.0): they took less than a second, and sacct counts whole ones",
    )


def test_a_trailing_separator_and_other_columns_do_not_matter(tmp_path: Path) -> None:
    text = "JobID|NTasks|CPUsPerTask|AllocCPUS|Elapsed|MaxRSS|User|\n7.0|4|3|24|02:30.5|10M|me|\n"
    assert sizes(read(tmp_path, text)) == [(4, 3, 150.5, None)]


def test_raw_ids_and_cpus_that_were_asked_for_will_do(tmp_path: Path) -> None:
    text = "JobIDRaw,NTasks,ReqCPUS,Elapsed\n7.0,4,12,1-02:03:04\n7.1,8,16,10:00\n"
    found = read(tmp_path, text, ".csv")
    assert sizes(found) == [(4, 3, 93784.0, None), (8, 2, 600.0, None)]
    assert found.parameters == ()


def test_jobs_of_another_launcher_need_what_slurm_does_not_know(tmp_path: Path) -> None:
    text = (
        "JobID|JobName|NTasks|AllocCPUS|NNodes|Elapsed|State\n"
        "8|cfd||64|2|01:00:00|COMPLETED\n8.batch|batch|1|32|1|01:00:00|COMPLETED\n"
        "8.0|orted|2|2|2|00:59:00|COMPLETED\n"
    )
    with pytest.raises(TableError) as caught:
        read(tmp_path, text)
    assert "their number of processes is not told (a launcher other than srun)" in str(caught.value)
    assert "jobs.txt:processes=N says it" in caught.value.message
    assert sizes(read(tmp_path, text, processes="16")) == [(16, 4, 3600.0, 2)]
    assert sizes(read(tmp_path, text, processes="64", threads="1")) == [(64, 1, 3600.0, 2)]


def test_a_column_may_be_a_parameter_and_a_value_hold_for_all(tmp_path: Path) -> None:
    text = STEPS.replace("solve.x", "256")
    assert [run.parameters for run in read(tmp_path, text, JobName="N", steps="9").runs] == [
        {"N": 256.0, "steps": 9.0}
    ] * 3


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("JobID|State\n1.0|COMPLETED\n", "txt:1: has no column ElapsedRaw or Elapsed", "sacct -P"),
        ("JobID|Elapsed\n1.0|00:10\n", "txt:1: has no column NTasks", "sacct -P -o JobID"),
        ("JobID|NTasks|Elapsed\n1.0|2|00:10\n", "no column CPUsPerTask or AllocCPUS", "sacct"),
        (
            f"{HEAD}\n1.0|x|3|1|8|00:10|10|COMPLETED\n",
            "txt:2: job 1.0: 8 AllocCPUS are no whole number for each of 3 NTasks",
            "threads=N",
        ),
        (f"{HEAD}\n1.0|x|3|1||00:10|10|COMPLETED\n", "AllocCPUS '' and NTasks '3' do", "threads=N"),
        (f"{HEAD}\n1.0|x|2|1|8|soon||COMPLETED\n", "Elapsed must be a time such as", None),
        (f"{HEAD}\n1.0|x|2|1\n", "txt:2: has 4 fields, the header has 8", None),
        (
            f"{HEAD}\n1.0|x|2|1|8|00:10|10|FAILED\n",
            "has no completed run: left out: 1 run",
            "sacct",
        ),
        (f"{HEAD}\n", "has no completed run", "sacct -P"),
    ],
)
def test_a_log_that_does_not_tell_a_run_is_refused(
    tmp_path: Path, text: str, words: str, hint: str | None
) -> None:
    with pytest.raises(TableError) as caught:
        read(tmp_path, text)
    assert words in caught.value.message
    assert hint is None or hint in f"{caught.value.hint} {caught.value.message}"


def test_what_was_left_out_reaches_the_user(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(STEPS)
    found = read_runs(f"{path}:N=64")
    assert [run.parameters for run in found.runs] == [{"N": 64.0}] * 3
    short = f"{STEPS}105.0|solve.x|8|2|16|00:00:20|20|COMPLETED\n"
    assert read(tmp_path, short).notes[-1] == (
        "times are whole seconds: the shortest, 20 s, may be off by 2.5 %"
    )
    assert f"{path}: left out: 1 run (101.0): state FAILED" in found.warnings
