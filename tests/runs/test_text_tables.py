"""Tables as people and programs write them: names, units, separators, marks of numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.runs.column_names import meaning_of, seconds_of
from popmodel.runs.run_files import read_file
from popmodel.runs.table import RunTimes
from popmodel.runs.text_tables import TableError

TWO = [(1, 1, 100.5), (4, 2, 14.25)]


def read(folder: Path, text: str | bytes, suffix: str = ".csv", **said: str) -> RunTimes:
    path = folder / f"runs{suffix}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(path, None, said)


def sizes(found: RunTimes) -> list[tuple[int, int, float]]:
    return [(run.processes, run.threads, pytest.approx(run.runtime)) for run in found.runs]


TABLES = {
    "Excel in German": "\ufeffRanks;Threads;Time [s]\r\n1;1;100,5\r\n4;2;14,25\r\n",
    "sep= and quoted names": 'sep=;\n"MPI ranks";"OMP_NUM_THREADS";"Time (s)"\n1;1;100,5\n'
    "4;2;14,25\n",
    "tabulators": "nprocs\tnthreads\twalltime\n1\t1\t100,5\n4\t2\t14,25\n",
    "quoted numbers": 'np,omp,elapsed\n1,1,"100,5"\n4,2,"14,25"\n',
    "Markdown": "# Runs\n\nOn two nodes:\n\n| P | T | `time` (ms) |\n|--:|:-:|---|\n"
    "| 1 | 1 | **100500** |\n| 4 | 2 | 14250 |\n\nText.\n",
    "psql": " ranks | threads | time \n-------+---------+-------\n 1 | 1 | 100.5\n 4 | 2 | 14.25\n",
    "blanks": "MPI ranks   OMP threads   Time (s)\n        1             1      100.5\n"
    "        4             2      14.25\n",
    "pandas": "   P  T    time\n0  1  1  100.50\n1  4  2   14.25\n",
    "gnuplot": "# job 17\n# P T time[s]\n1 1 100.5\n4 2 14.25\n",
    "gnuplot with commas": "#P,T,time\n1,1,100.5\n# out of memory\n4,2,14.25\n",
    "fixed width": "NTasks cpus-per-task      Elapsed\n------ ------------- ------------\n"
    "     1             1   00:01:40.5\n     4             2  00:00:14.25\n",
    "nodes and ranks per node": "nodes,tasks/node,threads,time / s\n1,1,1,100.5\n2,2,2,14.25\n",
    "cores and threads": "cores,threads,time\n1,1,100.5\n8,2,14.25\n",
    "cores and ranks": "total cores,# ranks,t\n1,1,100.5\n8,4,14.25\n",
    "units in cells": "p,t,real\n1,1,1m40.5s\n4,2,14250 ms\n",
    "clock": "np,nt,Elapsed (hh:mm:ss)\n1,1,0:01:40.5\n4,2,00:00:14.25\n",
    "minutes": "procs,threads,wall clock time [min]\n1,1,1.675\n4,2,0.2375\n",
    "splits": "P × T,time,date\n1x1,100.5,2024-01-01\n4 x 2,14.25,2024-01-02\n",
    "date and time": "date,time,np,nt,t_total\n1.1.,12:03,1,1,100.5\n1.1.,12:30,4,2,14.25\n",
    "title and lines in names": 'Strong scaling\n\nranks,"OMP\nthreads","time\n(s)"\n'
    "1,1,100.5\n4,2,14.25\n",
    "times in two units": "np,omp,Time (s),time_ms\n1,1,100.5,100500\n4,2,14.25,14250\n",
    "commands": "command,mean,stddev,median,user,system,min,max\n"
    "OMP_NUM_THREADS=1 mpirun -np 1 ./a,100.5,1,2,3,4,5,6\n"
    '"OMP_NUM_THREADS=2 mpirun --bind-to core -n 4 ./a",14.25,1,2,3,4,5,6\n',
    "results beside": "P,T,time,speedup,Efficiency [%],GFLOP/s,MPI time [s]\n"
    "1,1,100.5,1,100,3,1\n4,2,14.25,7.1,88,21,2\n",
}


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES.keys())
def test_a_table_is_read_as_people_write_it(tmp_path: Path, text: str) -> None:
    for suffix in (".csv", ".txt", ".md"):
        found = read(tmp_path, text, suffix)
        assert sizes(found) == TWO
        assert found.parameters == ()


def test_repeats_may_stand_beside_each_other(tmp_path: Path) -> None:
    found = read(tmp_path, "ranks,run1 [ms],run2 [ms],mean [ms]\n1,1000,1100,1050\n2,500,,500\n")
    assert sizes(found) == [(1, 1, 1.0), (1, 1, 1.1), (2, 1, 0.5)]
    assert found.runs[1].place.endswith("runs.csv:2 run2 [ms]")


def test_json_of_hyperfine_and_of_columns_is_read(tmp_path: Path) -> None:
    runs = [
        {"command": "mpirun -np 1 ./a", "mean": 100.0, "times": [100.5], "exit_codes": [0]},
        {
            "command": "./run.sh",
            "mean": 14.0,
            "times": [14.25, 14.5],
            "parameters": {"ranks": "4", "threads": "2"},
        },
    ]
    found = read(tmp_path, json.dumps({"results": runs[1:]}), ".json")
    assert sizes(found) == [(4, 2, 14.25), (4, 2, 14.5)]
    assert found.runs[1].place.endswith("runs.json results[0]: times[1]")
    assert sizes(read(tmp_path, json.dumps({"results": runs[:1]}), ".json")) == [(1, 1, 100.5)]
    columns = {"P": [1, 4], "T": {"0": 1, "1": 2}, "time [s]": [100.5, 14.25]}
    assert sizes(read(tmp_path, json.dumps(columns), ".json")) == TWO
    listed = json.dumps({"what": "runs", "of": [{"np": 1, "t": 100.5}, {"np": 4, "t": 14.25}]})
    assert sizes(read(tmp_path, listed, ".json")) == [(1, 1, 100.5), (4, 1, 14.25)]


def test_runs_of_several_kinds_are_told_and_taken_apart(tmp_path: Path) -> None:
    text = "np,time,compiler,host\n1,3,gcc,a\n1,2,icc,b\n2,2,gcc,a\n2,1,icc,a\n"
    found = read(tmp_path, text)
    assert found.notes[0] == (
        "runs of one size differ in compiler (gcc, icc), and are taken for repeats: "
        f"{found.path}:compiler=gcc takes those of one"
    )
    assert sizes(read(tmp_path, text, compiler="icc")) == [(1, 1, 2.0), (2, 1, 1.0)]


def test_a_value_of_a_column_takes_the_runs_that_have_it(tmp_path: Path) -> None:
    text = "np,N,time\n1,64,3\n2,64,2\n1,128,9\n"
    assert sizes(read(tmp_path, text, N="64")) == [(1, 1, 3.0), (2, 1, 2.0)]
    with pytest.raises(TableError, match="has no run with N = 7") as caught:
        read(tmp_path, text, N="7")
    assert caught.value.hint == "has 64, 128"


def test_a_parameter_that_sounds_like_a_statistic_stays_one(tmp_path: Path) -> None:
    found = read(tmp_path, "P,t,tmax,dx min,timemax\n1,30,10,1,4\n2,15,10,1,4\n")
    assert sizes(found) == [(1, 1, 30.0), (2, 1, 15.0)]
    assert found.parameters == ("tmax", "dx min")


def test_what_is_missing_is_left_out_and_said(tmp_path: Path) -> None:
    found = read(tmp_path, "ranks,threads,time\n1,1,3\n2,1,OOM\n4,1,\n8,1,1\n")
    assert sizes(found) == [(1, 1, 3.0), (8, 1, 1.0)]
    assert found.notes == (f"2 runs left out, first {found.path}:3: no runtime ('OOM')",)


def test_what_is_assumed_and_not_used_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, "ranks,N,time,speedup\n1,64,3,1\n2,64,2,1.5\n")
    assert found.parameters == ("N",)
    assert found.notes == (
        f"no threads are given: 1 per process assumed, {found.path}:threads=N sets them",
        "not used, as results of runs: speedup",
    )


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("cores,time\n4,2\n", "1: column 'cores' may be processes, or proc", ":cores=processes"),
        (
            "np,time,walltime\n4,2,3\n",
            "1: columns 'time' and 'walltime' may both be the runtime",
            "say which: {}:time=runtime",
        ),
        ("np,nranks,time\n4,2,3\n", "'np' and 'nranks' may both be the processes", ":np=proc"),
        ("np,wall_min\n4,2\n", "column 'wall_min' may be in minutes", "wall_min=runtime [min]"),
        ('np,time\n4,"1,234"\n', "2: 1,234 may be 1.234 or 1234", "write decimal points"),
        ('np,time\n4,"1,5"\n8,1.2\n', "3: 1,5 has a decimal comma, 1.2 a decimal point", "write"),
        ("cores,threads,time\n9,2,3\n", "2: 9 cores are no whole number", "processes=N"),
        ("np,threads,time\n4,2,3\n,4,2\n", "3: processes must be a whole number", "merged cells"),
        ("nodes,threads,time\n2,4,3\n", "has no column 'processes'", "say which of nodes"),
        ("np,time\n4,12 parsecs\n", "2: runtime must be a number of seconds above 0", "its unit"),
        ("np,Elapsed (hh:mm:ss)\n1,0:10\n2,0.004\n", "3: runtime must be a time such as hh", ""),
        ("| np | time |\n|--|--|\n| 1 | 2 |\n\n| a | b |\n|--|--|\n", "6: a second table", "own"),
        ("np time\n4 2 3\n", "2: has 3 fields, the header has 2", "one field"),
        ("np,t1,t2,t4\n1,9,5,3\n", "has no column 'runtime'", "say which of t1, t2, t4 it is"),
        ("np,clock\n1,2.4\n", "has no column 'runtime'", "say which of clock it is"),
        ("1,1,100\n2,1,51\n", "has no column 'processes'", "the first line names the columns"),
    ],
)  # fmt: skip
def test_what_may_be_two_things_is_refused(
    tmp_path: Path, text: str, words: str, hint: str
) -> None:
    with pytest.raises(TableError) as caught:
        read(tmp_path, text)
    assert words in caught.value.message
    assert hint.format(tmp_path / "runs.csv") in (caught.value.hint or "")


def test_a_column_with_any_name_means_what_is_said(tmp_path: Path) -> None:
    text = "cpus-per-job,Zeit [ms],wall (us)\n4,1500,3\n"
    found = read(tmp_path, text, **{"cpus-per-job": "processes", "Zeit": "runtime"})
    assert sizes(found) == [(4, 1, 1.5)]
    for head in ("Zeit", "Zeit [ms]"):
        said = {"cpus-per-job": "processes", head: "runtime"}
        assert sizes(read(tmp_path, text, **said)) == [(4, 1, 1.5)]
    assert sizes(read(tmp_path, "np,a_ms,time_ms,t\n1,2,1500,8\n", time_ms="runtime")) == [
        (1, 8, 1.5)
    ]


def test_names_that_say_nothing_stay_parameters() -> None:
    for head in ("N", "n", "size", "steps", "nodes_x", "iterations", "grid", "tau", "time steps"):
        assert meaning_of(head) is None, head


@given(st.integers(1, 10**6), st.sampled_from(("s", "sec", "Seconds", "[s]", "(s)")))
def test_seconds_of_a_clock_are_those_of_the_number(seconds: int, unit: str) -> None:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    assert seconds_of(f"{hours}:{minutes:02}:{rest:02}", None) == seconds
    assert seconds_of(f"{days}-{hour:02}:{minutes:02}:{rest:02}", "hh:mm:ss") == seconds
    assert seconds_of(f"{hours}h {minutes}m{rest}s", None) == seconds
    assert seconds_of(f"{60 * hours + minutes}:{rest:02}", None) == seconds
    meaning = meaning_of(f"Wall time {unit}")
    assert meaning is not None
    assert seconds_of(str(seconds), meaning.unit) == seconds
