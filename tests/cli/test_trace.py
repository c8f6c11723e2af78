"""``popmodel trace``: real programs from the command to the metrics, and what can go wrong."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import GENEROUS
from real_mpi import ENVIRONMENT, Mpi, mpi

from popmodel.errors import TraceError
from popmodel.machine.toolchain import find_compiler

__all__ = ["mpi"]

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
Finished = subprocess.CompletedProcess[str]
Traced = Callable[..., Finished]

ROOT = Path(__file__).resolve().parents[2]
OPENMP = """
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words)
{
    double sum = 0;
    for (int k = 0; k < 5; k++) {
#pragma omp parallel for num_threads(2) reduction(+ : sum)
        for (int i = 0; i < 1000; i++)
            sum += i;
    }
    printf("sum %g\\n", sum);
    return count > 1 ? atoi(words[1]) : 0;
}
"""
SLEEPS = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words)
{
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("asleep");
    fflush(stdout);
    sleep(600);
    MPI_Finalize();
}
"""


@pytest.fixture(scope="module")
def programs(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Programs to trace, by name."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "openmp.c").write_text(OPENMP)
    (folder / "sleeps.c").write_text(SLEEPS)
    tracer = ROOT / "tests" / "tracer" / "programs"
    examples = ROOT / "examples"
    found = {}
    for source, flags in (
        (examples / "stencil3d" / "stencil3d.c", ["-g", "-fopenmp"]),
        (examples / "cannon" / "cannon.c", ["-fopenmp"]),
        (folder / "sleeps.c", []),
        (tracer / "ends.c", []),
        (tracer / "threads.c", ["-pthread"]),
    ):
        found[source.stem] = folder / source.stem
        command = [*mpi.mpicc, "-O1", *flags, "-o", found[source.stem], source, "-lm"]
        subprocess.run(command, check=True)
    found["openmp"] = folder / "openmp"
    cc = find_compiler()
    command = [*cc.command, cc.openmp, "-o", found["openmp"], folder / "openmp.c"]
    subprocess.run(command, check=True)
    return found


@pytest.fixture
def traced(mpi: Mpi, tmp_path: Path) -> Traced:
    """Run ``popmodel trace`` as a process of its own, in an empty folder."""

    def run(*words: str | Path, options: tuple[str, ...] = (), **variables: str) -> Finished:
        command = [sys.executable, "-m", "popmodel", "trace", *options, "--", *map(str, words)]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env={**environment(mpi), "COUNTS": str(tmp_path), **variables},
            capture_output=True,
            text=True,
            timeout=GENEROUS,
            check=False,
        )

    return run


def environment(mpi: Mpi) -> dict[str, str]:
    return {**os.environ, **ENVIRONMENT, "MPICC": shlex.join(mpi.mpicc), "COLUMNS": "60"}


def merged(folder: Path, popmodel: Call, name: str) -> dict[str, Any]:
    """Merge the records of a run once more, for what the merge tells of it."""
    status, out, err = popmodel(
        "trace", "merge", str(folder / f"{name}.raw"), "-o", str(folder / "again.prv"), "--format",
        "json",
    )  # fmt: skip
    assert (status, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    return document


def document_of(popmodel: Call, *words: str) -> dict[str, Any]:
    status, out, _ = popmodel(*words, "--format", "json")
    assert status == 0
    document: dict[str, Any] = json.loads(out)
    return document


def stencil_messages(ranks: int, cells: int, steps: int) -> tuple[int, int]:
    """Messages and bytes of the stencil on a cube that the grid of processes divides."""
    grid = {2: (1, 1, 2), 4: (1, 2, 2)}[ranks]
    block = [cells // extent for extent in grid]
    number = size = 0
    for axis in range(3):
        faces = 2 * (grid[axis] - 1) * ranks // grid[axis]
        number += steps * faces
        size += steps * faces * 8 * block[0] * block[1] * block[2] // block[axis]
    return number, size


@pytest.mark.parametrize(("ranks", "threads"), [(2, 2), (4, 1)])
def test_the_stencil_is_in_its_trace(
    ranks: int,
    threads: int,
    mpi: Mpi,
    programs: dict[str, Path],
    traced: Traced,
    tmp_path: Path,
    popmodel: Call,
) -> None:
    done = traced(
        mpi.mpirun, "-n", str(ranks), programs["stencil3d"], "16", "10",
        options=("--keep-raw", "-o", "run.prv.gz"), OMP_NUM_THREADS=str(threads),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{ranks} processes x {threads} threads" in done.stdout
    assert "correct" in done.stdout
    assert "popmodel" not in done.stdout  # what popmodel says goes to standard error
    told = merged(tmp_path, popmodel, "run")
    assert (told["messages"], told["message_bytes"]) == stencil_messages(ranks, 16, 10)
    assert told["threads"] == [threads] * ranks
    calls = {name.removeprefix("MPI_"): number / ranks for name, number in told["calls"].items()}
    assert calls == {
        "Init_thread": 1, "Finalize": 1, "Cart_create": 1, "Barrier": 1, "Waitall": 10,
        "Irecv": 60, "Isend": 60, "Allreduce": 10 / 5 + 1, "Reduce": 3,
    }  # fmt: skip

    trace = str(tmp_path / "run.prv.gz")
    info = document_of(popmodel, "info", trace)
    assert (info["processes"], info["threads"]) == (ranks, threads)
    assert info["records"]["messages"] == told["messages"]
    (run,) = document_of(popmodel, "metrics", trace)["runs"]
    family = run["metrics"]["hybrid-additive" if threads > 1 else "mpi"]
    assert 0 < family["parallel_efficiency"] < 1
    (replayed,) = document_of(popmodel, "replay", trace)["runs"]
    assert 0 < replayed["runtime"] <= run["runtime"]


def test_cannon_is_in_its_trace(
    mpi: Mpi, programs: dict[str, Path], traced: Traced, tmp_path: Path, popmodel: Call
) -> None:
    done = traced(
        mpi.mpirun, "-n", "4", programs["cannon"], "48", options=("--keep-raw",),
        OMP_NUM_THREADS="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = merged(tmp_path, popmodel, "cannon")
    # Two blocks of 24 x 24 doubles, moved twice by each of four processes.
    assert (told["messages"], told["message_bytes"]) == (16, 16 * 24 * 24 * 8)
    assert told["calls"]["MPI_Sendrecv"] == 16
    trace = str(tmp_path / "cannon.prv.gz")
    (run,) = document_of(popmodel, "replay", trace)["runs"]
    assert run["runtime"] > 0


def test_what_was_traced_is_told(
    mpi: Mpi, programs: dict[str, Path], traced: Traced, tmp_path: Path
) -> None:
    done = traced(mpi.mpirun, "-n", "2", programs["stencil3d"], "16", "10", OMP_NUM_THREADS="2")
    said = done.stderr
    assert said.startswith("trace      stencil3d.prv.gz, ")
    assert "\nprocesses  2 on 1 host\nthreads    2 per process\n" in said
    number, _ = stencil_messages(2, 16, 10)
    assert f"{number} messages of" in said.replace("\n           ", " ")
    assert "\noverhead   " in said
    assert "(measured here)" in said.replace("\n           ", " ")
    assert "\npopmodel metrics stencil3d.prv.gz\npopmodel replay stencil3d.prv.gz\n" in said
    own = [line for line in said.splitlines() if str(programs["stencil3d"]) not in line]
    assert max(map(len, own)) <= 60
    left = {path.name for path in tmp_path.iterdir() if path.suffix != ".json"}
    assert left == {"stencil3d.prv.gz", "stencil3d.pcf", "stencil3d.row"}


def test_an_openmp_program_is_traced(
    programs: dict[str, Path], traced: Traced, tmp_path: Path, popmodel: Call
) -> None:
    done = traced(programs["openmp"], options=("-o", "omp.prv"))
    assert (done.returncode, done.stdout) == (0, "sum 2.4975e+06\n")
    info = document_of(popmodel, "info", str(tmp_path / "omp.prv"))
    assert (info["processes"], info["threads"]) == (1, 2)
    (run,) = document_of(popmodel, "metrics", str(tmp_path / "omp.prv"))["runs"]
    assert run["runtime"] > 0


def test_openmp_can_be_left_out(
    mpi: Mpi, programs: dict[str, Path], traced: Traced, tmp_path: Path, popmodel: Call
) -> None:
    words = (mpi.mpirun, "-n", "2", programs["stencil3d"], "8", "2")
    traced(*words, options=("--openmp", "off"), OMP_NUM_THREADS="2")
    info = document_of(popmodel, "info", str(tmp_path / "stencil3d.prv.gz"))
    assert info["threads"] == 1


@pytest.mark.parametrize(
    ("way", "status"),
    [("exit", 7), ("_exit", 8), ("return", 10), ("output", 11), ("finalize", 0),
     ("kill", 128 + signal.SIGKILL)],
)  # fmt: skip
def test_the_status_is_the_programs_and_its_records_are_kept(
    way: str,
    status: int,
    programs: dict[str, Path],
    traced: Traced,
    tmp_path: Path,
    popmodel: Call,
) -> None:
    done = traced(programs["ends"], way, "20", options=("--keep-raw",))
    if "MPI_Init" in done.stdout + done.stderr and not (tmp_path / "ends.raw").exists():
        pytest.skip("this MPI starts no single process without its launcher")
    assert done.returncode == status, done.stderr
    assert merged(tmp_path, popmodel, "ends")["calls"]["MPI_Barrier"] == 20
    assert (tmp_path / "ends.prv.gz").exists()


@pytest.mark.parametrize("way", ["abort", "MPI_Abort", "kill", "exit", "return"])
def test_a_launcher_that_reports_a_failure_does_so_traced_as_well(
    way: str, mpi: Mpi, programs: dict[str, Path], traced: Traced, tmp_path: Path, popmodel: Call
) -> None:
    plain = mpi.start(2, programs["ends"], way, "20", COUNTS=str(tmp_path))
    done = traced(mpi.mpirun, "-n", "2", programs["ends"], way, "20", options=("--keep-raw",))
    assert done.returncode == plain.returncode != 0
    told = merged(tmp_path, popmodel, "ends")
    # Launchers end the other rank when one has failed.
    assert 20 <= told["calls"]["MPI_Barrier"] <= 40


def test_forked_children_and_helpers_leave_nothing(
    mpi: Mpi, programs: dict[str, Path], traced: Traced, tmp_path: Path, popmodel: Call
) -> None:
    done = traced(mpi.mpirun, "-n", "2", programs["ends"], "fork", "3", options=("--keep-raw",))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("in the child\n") == 2
    told = merged(tmp_path, popmodel, "ends")
    assert told["processes"] == 2
    assert len(list((tmp_path / "ends.raw").glob("*.meta"))) == 2


def test_threads_that_communicate_at_once(
    mpi: Mpi, programs: dict[str, Path], traced: Traced, tmp_path: Path, popmodel: Call
) -> None:
    done = traced(mpi.mpirun, "-n", "2", programs["threads"], options=("--keep-raw",))
    if "no MPI_THREAD_MULTIPLE" in done.stderr:
        pytest.skip("needs MPI_THREAD_MULTIPLE")
    assert done.returncode == 0, done.stderr
    counted = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    sent = [each for rank in counted for each in rank["messages"] if each[0] == "sent"]
    told = merged(tmp_path, popmodel, "threads")
    assert told["messages"] == len(sent)
    assert told["message_bytes"] == sum(each[3] for each in sent)
    # a replay follows master threads only: it is not offered
    assert not told["only_masters_call"]
    assert "popmodel metrics " in done.stderr
    assert "popmodel replay " not in done.stderr


def test_a_closed_standard_output_harms_nobody(
    mpi: Mpi, programs: dict[str, Path], tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "popmodel", "trace", "--", str(programs["ends"])]
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(words)} finalize 5 >&-"],
        cwd=tmp_path,
        env=environment(mpi) | {"COUNTS": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=GENEROUS,
    )
    assert done.returncode == 0, done.stderr
    assert "trace      ends.prv.gz, " in done.stderr
    assert (tmp_path / "ends.prv.gz").exists()


def test_an_interrupted_run_is_merged(
    mpi: Mpi, programs: dict[str, Path], tmp_path: Path, popmodel: Call
) -> None:
    """Ctrl-C in a job: popmodel gets the signal, hands it on, and goes on to the merge."""
    words = [mpi.mpirun, "-n", "2", str(programs["sleeps"])]
    child = subprocess.Popen(
        [sys.executable, "-m", "popmodel", "trace", "--keep-raw", "--", *words],
        cwd=tmp_path,
        env=environment(mpi),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "asleep\n"
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=GENEROUS)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode != 0
    assert "trace      sleeps.prv.gz, " in err
    assert merged(tmp_path, popmodel, "sleeps")["calls"]["MPI_Barrier"] == 2


@pytest.mark.parametrize("merges", [False, True], ids=["after the run", "merge"])
def test_a_merge_that_a_signal_ends_says_how_to_go_on(
    programs: dict[str, Path],
    traced: Traced,
    tmp_path: Path,
    popmodel: Call,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    merges: bool,
) -> None:
    """Nothing is left but the records, in a directory that can be seen."""
    program = str(programs["openmp"])
    monkeypatch.chdir(tmp_path)
    if merges:
        traced(program, options=("--keep-raw",))
        for path in tmp_path.glob("openmp.*"):
            if path.is_file():
                path.unlink()
    there = {path.name for path in tmp_path.iterdir()}

    def killed(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

    monkeypatch.setattr("popmodel.tracer.merge.merge_runs", killed)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        popmodel("trace", *(("merge", "openmp.raw") if merges else ("--", program)))
    assert ended.value.code == 128 + signal.SIGTERM
    said = capsys.readouterr().err
    assert "what was recorded is kept: popmodel trace merge openmp.raw -o openmp.prv.gz" in said
    assert signal.getsignal(signal.SIGTERM) == before
    assert {path.name for path in tmp_path.iterdir()} == there | {"openmp.raw"}
    assert list((tmp_path / "openmp.raw").glob("*.meta"))


def test_a_run_of_which_nothing_is_recorded(traced: Traced, tmp_path: Path) -> None:
    done = traced("sh", "-c", "echo hello")
    assert (done.returncode, done.stdout) == (1, "hello\n")
    assert done.stderr.startswith(
        "popmodel: error: sh: nothing was recorded: no process called MPI_Init or entered a "
        "parallel region with the tracer loaded\nhint: a program uses MPI or OpenMP and links"
    )
    assert list(tmp_path.iterdir()) == []
    done = traced("sh", "-c", "exit 5")
    assert done.returncode == 5
    assert done.stderr == (
        "popmodel: error: sh: it ended with status 5, and no process of it called MPI_Init or "
        "entered a parallel region with the tracer loaded: nothing was recorded\n"
        "hint: run it without popmodel: if it fails as well, nothing is wrong with the tracing\n"
    )
    done = traced("sh", "-c", "kill -SEGV $$")
    assert done.returncode == 128 + signal.SIGSEGV
    assert done.stderr.startswith("popmodel: error: sh: it ended with signal SIGSEGV, and no ")


def test_a_program_that_brings_its_runtime_along_is_told_so(traced: Traced, tmp_path: Path) -> None:
    """As one with a static libgomp does: its symbols show it."""
    source = tmp_path / "own.c"
    source.write_text("int GOMP_parallel(void)\n{\n    return 3;\n}\nint main(void)\n{\n    "
                      "return GOMP_parallel();\n}\n")  # fmt: skip
    subprocess.run([*find_compiler().command, "-o", tmp_path / "own", source], check=True)
    done = traced("./own")
    assert done.returncode == 3
    assert done.stderr == (
        "popmodel: error: own: nothing was recorded: OpenMP is linked into it statically, and the "
        "tracer cannot be put in front\n"
        "hint: link the shared libraries: without -static, -static-libgomp or archives (.a) of "
        "MPI\n"
    )


@pytest.mark.parametrize(
    ("openmp", "why"),
    [
        ("off", "it was not to be observed"),
        ("ompt", "the program has none, or its runtime has no tools interface"),
        ("gomp", "the program has none, or its runtime is another than libgomp"),
    ],
)
def test_a_choice_of_openmp_that_leaves_nothing_is_named(
    traced: Traced, openmp: str, why: str
) -> None:
    done = traced("true", options=("--openmp", openmp))
    assert done.returncode == 1
    assert done.stderr == (
        "popmodel: error: true: nothing was recorded: no process called MPI_Init, and no OpenMP: "
        f"{why} (--openmp {openmp})\n"
        "hint: leave --openmp out: popmodel then finds out how OpenMP can be observed\n"
    )


def test_an_interface_that_shows_no_openmp_is_told(
    mpi: Mpi, programs: dict[str, Path], traced: Traced
) -> None:
    done = traced(
        mpi.mpirun, "-n", "1", programs["ends"], "exit", "0", options=("--openmp", "ompt")
    )
    told = " ".join(done.stderr.split())
    assert "no OpenMP: the program has none, or its runtime has no tools interface" in told


def test_records_are_kept_where_no_trace_can_be_made_of_them(
    mpi: Mpi,
    programs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from popmodel.cli import main

    def full(*_: object, **__: object) -> None:
        raise TraceError("x.prv.gz", "cannot be written: no space left on device", hint="free some")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPICC", shlex.join(mpi.mpicc))  # whose library is built already
    monkeypatch.setattr("popmodel.tracer.merge.merge_runs", full)
    for status in (0, 3):
        program = str(programs["openmp"])
        assert main(["trace", "--force", "-o", "x.prv.gz", program, str(status)]) == (status or 1)
        assert capfd.readouterr().err == (
            "popmodel: what was recorded is kept: popmodel trace merge x.raw -o x.prv.gz\n"
            "popmodel: error: x.prv.gz: cannot be written: no space left on device\n"
            "hint: free some\n"
        )
        assert list((tmp_path / "x.raw").glob("*.meta"))


def test_a_script_that_runs_mpi_several_times_gives_a_trace_of_each(
    traced: Traced,
    programs: dict[str, Path],
    mpi: Mpi,
    tmp_path: Path,
    popmodel: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "script.sh"
    runs = "".join(
        f"{shlex.quote(mpi.mpirun)} -n {ranks} {shlex.quote(str(programs['ends']))} finalize 4\n"
        for ranks in (1, 2)
    )
    script.write_text(f"#!/bin/sh\nset -e\n{runs}")
    script.chmod(0o755)
    done = traced("./script.sh", options=("--keep-raw", "-o", "x.prv.gz"))
    assert done.returncode == 0, done.stderr
    assert "run 1 of 2\n" in done.stderr
    assert "popmodel metrics x.run2.prv.gz" in done.stderr
    read = [popmodel("info", f"x.run{run}.prv.gz", "--format", "json")[1] for run in (1, 2)]
    assert [json.loads(text)["processes"] for text in read] == [1, 2]
    # Nor is one of several replaced unasked.
    merging = ("trace", "merge", "x.raw", "-o", "x.prv.gz", "--format", "json")
    status, _, err = popmodel(*merging)
    assert (status, err.splitlines()[0]) == (
        2, "popmodel: error: -o x.run1.prv.gz: x.run1.prv.gz exists",
    )  # fmt: skip
    told = json.loads(popmodel(*merging, "--force")[1])
    assert [told["processes"], *(other["processes"] for other in told["others"])] == [1, 2]


def test_nothing_is_overwritten_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = tmp_path / "ran"
    words = ["sh", "-c", f"touch {ran}"]
    for name in ("x.prv.gz", "x.pcf", "x.row"):
        (tmp_path / name).write_text("precious")
        assert popmodel("trace", "-o", "x.prv.gz", *words) == (
            2,
            "",
            f"popmodel: error: -o x.prv.gz: {name} exists\nhint: use --force to replace it\n",
        )
        (tmp_path / name).unlink()
    (tmp_path / "x.row").mkdir()
    assert popmodel("trace", "-o", "x.prv.gz", "--force", *words)[2] == (
        "popmodel: error: -o x.prv.gz: x.row is a directory\nhint: name another file\n"
    )
    (tmp_path / "x.row").rmdir()
    (tmp_path / "x.raw").mkdir()
    status, _, err = popmodel("trace", "-o", "x.prv.gz", *words)
    assert status == 2
    assert "x.raw: there are records of an earlier run or of one that goes on\n" in err
    assert not ran.exists()  # refused before the run, not after it


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ([], "trace: no command is given", "popmodel trace -- mpirun -n 4 ./app"),
        (["-o", "x.txt", "sh"], "-o x.txt: a trace is written as .prv or .prv.gz", "-o app.prv.gz"),
        (["-o", ".prv", "sh"], "-o .prv: a trace is written as .prv or .prv.gz", "-o app.prv.gz"),
        (["-o", "-", "sh"], "-o -: a trace is written as .prv or .prv.gz", "-o app.prv.gz"),
        (["--openmp", "omt", "sh"], "--openmp: unknown value 'omt'", "did you mean ompt?"),
        (
            ["--window", "5s", "sh"],
            "--window 5s: is not FROM:TO",
            "write for example --window 10s:20s, or --window 10s: for all that follows",
        ),
        (
            ["--window", "5s:3s", "sh"],
            "--window 5s:3s: it ends before it begins",
            "write for example --window 10s:20s, or --window 10s: for all that follows",
        ),
        (
            ["--window", "x:3s", "sh"],
            "--window: 'x' is not a time",
            "write a number with ns, us, ms, s, min or h, for example 5us",
        ),
        (
            ["--window", "1s:3s", "--after-init", "sh"],
            "--after-init and --window exclude each other: a window begins after MPI_Init",
            "leave --after-init out",
        ),
        (
            ["--leave-out", "tests,chunk", "sh"],
            "--leave-out: unknown value 'chunk'",
            "did you mean chunks?",
        ),
        (
            ["--max-rate", "0", "sh"],
            "--max-rate: '0' is not a whole number from 1",
            "write for example --max-rate 4",
        ),
        (
            ["--max-size", "1kB", "sh"],
            "--max-size 1kB: must be at least 1MiB",
            "--max-size 1GiB",
        ),
        (["--locks", "all", "sh"], "--locks: unknown value 'all'", "choose one of sum, each"),
        (
            ["--format", "json", "sh"],
            "--format: a traced run is told on standard error, beside what the program says",
            "make the trace with --keep-raw, then popmodel trace merge DIR --format json",
        ),
        (
            ["--ranks", "4", "sh"],
            "--ranks: goes with --script",
            "a command says itself how many ranks it starts, for example mpirun -n 4 ./app",
        ),
        (
            ["--build-only", "--print-env"],
            "--build-only and --print-env exclude each other",
            "leave one of them out",
        ),
        (
            ["--print-env", "./app"],
            "--print-env runs nothing: './app' does not go with it",
            "leave the command out, and give it the variables in your script",
        ),
        (
            ["--build-only", "-o", "x.prv"],
            "-o x.prv: nothing is traced with --build-only",
            "leave -o out",
        ),
        (["--script", "pbs", "sh"], "--script: unknown value 'pbs'", "choose one of slurm"),
        (
            ["--script", "slurm", "--nodes", "none", "sh"],
            "--nodes: 'none' is not a whole number from 1",
            "write for example --nodes 4",
        ),
        (
            ["merge"],
            "merge: takes one directory, not 0",
            "popmodel trace merge app.raw -o app.prv.gz",
        ),
        (
            ["merge", "x.raw", "--script", "slurm"],
            "merge runs nothing: --script does not go with it",
            "popmodel trace merge DIR -o app.prv.gz",
        ),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    message: str,
    hint: str,
    popmodel: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = (2, "", f"popmodel: error: {message}\nhint: {hint}\n")
    assert popmodel("trace", *arguments) == expected
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(popmodel: Call, tmp_path: Path) -> None:
    status, _, err = popmodel("trace", "-o", f"{tmp_path}/absent/x.prv.gz", "sh", "-c", "exit 9")
    assert status == 1
    assert f"{tmp_path}/absent/x.raw: cannot be made: no such file or directory\n" in err


def test_a_static_program_is_refused(popmodel: Call, tmp_path: Path) -> None:
    source, program = tmp_path / "app.c", tmp_path / "app"
    source.write_text("int main(void) { return 0; }\n")
    built = subprocess.run(
        [*find_compiler().command, "-static", "-o", program, source], capture_output=True
    )
    if built.returncode != 0:
        pytest.skip("needs a static library of C")
    status, _, err = popmodel("trace", "-o", str(tmp_path / "x.prv"), str(program))
    assert status == 1
    assert err.startswith(f"popmodel: error: {program}: is linked statically, so no library can")


def test_merging_names_the_trace_after_the_directory(
    programs: dict[str, Path],
    traced: Traced,
    tmp_path: Path,
    popmodel: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traced(programs["openmp"], options=("--keep-raw",))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    status, _, err = popmodel("trace", "merge", "openmp.raw")
    assert (status, err) == (
        2,
        "popmodel: error: -o openmp.prv.gz: openmp.prv.gz exists\n"
        "hint: use --force to replace it\n",
    )
    status, out, err = popmodel("trace", "merge", "openmp.raw", "--force")
    assert (status, err) == (0, "")
    assert out.startswith("trace      openmp.prv.gz, ")
    assert "\nraw files  openmp.raw, " in out
    assert "(usually)" in out
    assert "popmodel replay" not in out  # there was no MPI
    for format in ("csv", "markdown"):
        status, out, _ = popmodel("trace", "merge", "openmp.raw", "--force", "--format", format)
        assert status == 0
        assert "openmp.prv.gz" in out


def test_a_directory_without_records_cannot_be_merged(popmodel: Call, tmp_path: Path) -> None:
    status, _, err = popmodel("trace", "merge", str(tmp_path), "-o", str(tmp_path / "x.prv"))
    assert status == 1
    assert err.startswith(f"popmodel: error: {tmp_path}: there are no raw files")
    assert list(tmp_path.iterdir()) == []


def test_a_program_may_be_called_merge(
    programs: dict[str, Path], traced: Traced, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copy(programs["openmp"], tmp_path / "bin" / "merge")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = traced("merge", PATH=path)
    assert (done.returncode, done.stdout) == (0, "sum 2.4975e+06\n")
    assert (tmp_path / "merge.prv.gz").exists()


def test_what_is_behind_the_command_is_its_own(
    programs: dict[str, Path], tmp_path: Path, mpi: Mpi
) -> None:
    """Without -- the options end where the command begins."""
    words = ["trace", "-o", "x.prv", str(programs["openmp"]), "4", "--force", "-o", "--", "--help"]
    done = subprocess.run(
        [sys.executable, "-m", "popmodel", *words],
        cwd=tmp_path, env=environment(mpi), capture_output=True, text=True, timeout=GENEROUS,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (4, "sum 2.4975e+06\n")
    assert (tmp_path / "x.prv").exists()


def test_the_library_is_built_ahead(
    mpi: Mpi, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPICC", shlex.join(mpi.mpicc))
    document = document_of(popmodel, "trace", "--build-only")
    assert document["schema"] == "popmodel/trace-library/1"
    assert Path(document["library"]).name == "libpopmodel_trace.so"
    assert document["mpi"] is not None
    status, out, _ = popmodel("trace", "--build-only")
    assert (status, out.splitlines()[0]) == (0, document["library"])


def test_variables_for_a_script_of_ones_own(
    mpi: Mpi,
    programs: dict[str, Path],
    tmp_path: Path,
    popmodel: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MPICC", shlex.join(mpi.mpicc))
    monkeypatch.chdir(tmp_path)
    status, out, err = popmodel("trace", "--print-env", "-o", "own.prv.gz", "--openmp", "off")
    assert status == 0
    given = dict(line.split("=", 1) for line in shlex.split(out))
    assert given["POPMODEL_TRACE_DIR"] == str(tmp_path / "own.raw")
    assert given["POPMODEL_TRACE_OPENMP"] == "off"
    assert err == (
        "popmodel: give them to the program alone: mpirun -n 4 env $(popmodel trace --print-env "
        "-o own.prv.gz --openmp off) ./app\n"
        "popmodel: when it has run: popmodel trace merge own.raw -o own.prv.gz\n"
    )
    again = popmodel("trace", "--print-env", "-o", "own.prv.gz", "--openmp", "off")
    assert again == (status, out, err)
    done = mpi.start(2, "env", *shlex.split(out), programs["ends"], "finalize", "4",
                     COUNTS=str(tmp_path))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert popmodel("trace", "--print-env", "-o", "own.prv.gz")[0] == 2  # two runs never mix
    document = document_of(popmodel, "trace", "merge", "own.raw", "-o", "own.prv.gz")
    assert document["calls"]["MPI_Barrier"] == 8


def test_variables_with_blanks_can_be_pasted(
    mpi: Mpi, tmp_path: Path, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    monkeypatch.setenv("MPICC", shlex.join(mpi.mpicc))
    monkeypatch.chdir(folder)
    status, out, err = popmodel("trace", "--print-env")
    assert status == 0
    advice = err.splitlines()[0].removeprefix("popmodel: give them to the program alone: ")
    assert advice == "eval mpirun -n 4 env $(popmodel trace --print-env) ./app"
    # What the shell makes of it: the program is found, and the directory is one word.
    line = advice.replace("mpirun -n 4", "").replace("popmodel trace --print-env", "cat given")
    (folder / "given").write_text(out.replace("LD_PRELOAD", "UNUSED"))
    (folder / "app").write_text('#!/bin/sh\necho "$POPMODEL_TRACE_DIR"\n')
    (folder / "app").chmod(0o755)
    shell = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=GENEROUS)
    assert (shell.stdout, shell.stderr) == (f"{folder / 'trace.raw'}\n", "")


def test_a_job_script_is_written_and_not_submitted(
    mpi: Mpi,
    programs: dict[str, Path],
    tmp_path: Path,
    popmodel: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MPICC", shlex.join(mpi.mpicc))
    monkeypatch.chdir(tmp_path)
    status, out, err = popmodel(
        "trace", "--script", "slurm", "--nodes", "2", "--ranks", "8", "--threads", "4", "--",
        str(programs["stencil3d"]), "64",
    )  # fmt: skip
    assert status == 0
    path = tmp_path / "stencil3d.trace" / "job.sh"
    assert out == f"{path}\n"
    assert f"popmodel: submit it: sbatch {path}\n" in err
    text = path.read_text()
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks=8\n#SBATCH --cpus-per-task=4\n" in text
    assert f"\nsrun --export=ALL,LD_PRELOAD={path.parent}/libpopmodel_trace.so," in text
    assert {each.name for each in path.parent.iterdir()} == {"job.sh", "libpopmodel_trace.so"}
