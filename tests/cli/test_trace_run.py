"""``popmodel trace -- COMMAND``: real programs, from the command to the metrics."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import GENEROUS
from real_mpi import Mpi

import popmodel as package
from popmodel.machines.host.toolchain import find_compiler

from .traced_programs import Call, Traced, document_of, environment


def merged(folder: Path, popmodel: Call, name: str) -> dict[str, Any]:
    """Merge the records of a run once more, for what the merge tells of it."""
    status, out, err = popmodel(
        "trace", "merge", str(folder / f"{name}.raw"), "-o", str(folder / "again.prv"), "--format",
        "json",
    )  # fmt: skip
    assert (status, err) == (0, "")
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
        "Irecv": 60, "Isend": 60, "Allreduce": 10 / 5 + 1, "Reduce": 4,
    }  # fmt: skip

    trace = str(tmp_path / "run.prv.gz")
    info = package.inspect(trace).to_dict()["info"]
    assert (info["processes"], info["threads"]) == (ranks, threads)
    assert info["records"]["messages"] == told["messages"]
    (run,) = document_of(popmodel, "metrics", trace)["runs"]
    family = run["metrics"]["hybrid-additive" if threads > 1 else "mpi"]
    assert 0 < family["parallel_efficiency"] < 1
    (replayed,) = document_of(popmodel, "whatif", trace, "--network", "ideal")["runs"]
    assert 0 < replayed["runtime"] <= run["runtime"]


@pytest.mark.long
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
    (run,) = document_of(popmodel, "whatif", trace, "--network", "ideal")["runs"]
    assert run["runtime"] > 0


@pytest.mark.long
def test_what_was_traced_is_told(
    mpi: Mpi, programs: dict[str, Path], traced: Traced, tmp_path: Path
) -> None:
    done = traced(mpi.mpirun, "-n", "2", programs["stencil3d"], "16", "10", OMP_NUM_THREADS="2")
    said = done.stderr
    doubt, summary, _ = said.partition("trace      stencil3d.prv.gz, ")
    assert summary
    assert doubt == "" or doubt.startswith(("more threads than CPUs", "threads waited for a CPU"))
    assert "\nprocesses  2 on 1 host\nthreads    2 per process\n" in said
    number, _ = stencil_messages(2, 16, 10)
    assert f"{number} messages, " in said.replace("\n           ", " ")
    assert "\noverhead   " in said
    assert "\npopmodel metrics stencil3d.prv.gz\npopmodel whatif stencil3d.prv.gz\n" in said
    own = [line for line in said.splitlines() if str(programs["stencil3d"]) not in line]
    assert max(map(len, own)) <= 60
    left = {path.name for path in tmp_path.iterdir() if path.suffix != ".json"}
    assert left == {"stencil3d.prv.gz", "stencil3d.pcf", "stencil3d.row"}


@pytest.mark.long
def test_an_openmp_program_is_traced(
    programs: dict[str, Path], traced: Traced, tmp_path: Path, popmodel: Call
) -> None:
    done = traced(programs["openmp"], options=("-o", "omp.prv"))
    assert (done.returncode, done.stdout) == (0, "sum 2.4975e+06\n")
    info = package.inspect(str(tmp_path / "omp.prv")).to_dict()["info"]
    assert (info["processes"], info["threads"]) == (1, 2)
    (run,) = document_of(popmodel, "metrics", str(tmp_path / "omp.prv"))["runs"]
    assert run["runtime"] > 0


@pytest.mark.long
def test_openmp_can_be_left_out(
    mpi: Mpi, programs: dict[str, Path], traced: Traced, tmp_path: Path
) -> None:
    words = (mpi.mpirun, "-n", "2", programs["stencil3d"], "8", "2")
    traced(*words, options=("--openmp", "off"), OMP_NUM_THREADS="2")
    info = package.inspect(str(tmp_path / "stencil3d.prv.gz")).to_dict()["info"]
    assert info["threads"] == 1


@pytest.mark.long(after=1)
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


@pytest.mark.long
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


@pytest.mark.long
def test_forked_children_and_helpers_leave_nothing(
    mpi: Mpi, programs: dict[str, Path], traced: Traced, tmp_path: Path, popmodel: Call
) -> None:
    done = traced(mpi.mpirun, "-n", "2", programs["ends"], "fork", "3", options=("--keep-raw",))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("in the child\n") == 2
    told = merged(tmp_path, popmodel, "ends")
    assert told["processes"] == 2
    assert len(list((tmp_path / "ends.raw").glob("*.meta"))) == 2


@pytest.mark.long
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
    assert not told["only_masters_call"]
    assert "popmodel whatif " in done.stderr
    replayed = document_of(
        popmodel, "whatif", str(tmp_path / "threads.prv.gz"), "--network", "ideal"
    )
    assert any("threads besides masters replayed on their own" in n for n in replayed["notes"])


@pytest.mark.long
def test_the_threads_of_a_team_that_communicates(
    mpi: Mpi, programs: dict[str, Path], traced: Traced, tmp_path: Path, popmodel: Call
) -> None:
    done = traced(mpi.mpirun, "-n", "2", programs["teams"])
    if "no MPI_THREAD_MULTIPLE" in done.stderr:
        pytest.skip("needs MPI_THREAD_MULTIPLE")
    assert done.returncode == 0, done.stderr
    trace = tmp_path / "teams.prv.gz"
    words = ("--latency", "0,1ms", "--eager-threshold", "inf")
    document = document_of(popmodel, "whatif", str(trace), "--network", "ideal", *words)
    assert document["notes"][0].startswith("2 threads besides masters replayed on their own")
    fast, slow = (run["runtime"] for run in document["runs"])
    assert fast <= document["measured_runtime"]
    # 20 steps: in each a message, and a collective of two ranks after the team's barrier.
    assert slow - fast > 0.8 * 20 * 2e-3
    for run in document["runs"]:
        assert all(rank["end"] >= rank["compute"] for rank in run["ranks"])
    (measured,) = document_of(popmodel, "metrics", str(trace))["runs"]
    assert measured["ideal_runtime"] is None
    assert "not only masters call MPI" in json.dumps(measured)


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_run_of_which_nothing_is_recorded(traced: Traced, tmp_path: Path) -> None:
    done = traced("sh", "-c", "echo hello")
    assert (done.returncode, done.stdout) == (1, "hello\n")
    assert done.stderr.startswith(
        "popmodel: error: sh: nothing was recorded: no process called MPI_Init or entered a "
        "parallel region with the tracer loaded\nhint: the program must link"
    )
    assert list(tmp_path.iterdir()) == []
    done = traced("sh", "-c", "exit 5")
    assert done.returncode == 5
    assert done.stderr == (
        "popmodel: error: sh: nothing was recorded: it ended with status 5 before a process "
        "called MPI_Init or entered a parallel region with the tracer loaded\nhint: run it "
        "without popmodel: if it fails as well, the tracer is not the cause\n"
    )
    done = traced("sh", "-c", "kill -SEGV $$")
    assert done.returncode == 128 + signal.SIGSEGV
    assert done.stderr.startswith(
        "popmodel: error: sh: nothing was recorded: it ended with signal SIGSEGV before "
    )
    launcher = tmp_path / "mpirun"  # 132 of Open MPI: it could not start the program
    launcher.write_text("#!/bin/sh\nexit 132\n")
    launcher.chmod(0o755)
    done = traced(str(launcher), "-n", "2", "./none")
    assert done.returncode == 132
    assert "mpirun: nothing was recorded: it ended with status 132 before " in done.stderr


def test_a_program_that_brings_its_runtime_along_is_told_so(traced: Traced, tmp_path: Path) -> None:
    """As one with a static libgomp does: its symbols show it."""
    source = tmp_path / "own.c"
    source.write_text("int GOMP_parallel(void)\n{\n    return 3;\n}\nint main(void)\n{\n    "
                      "return GOMP_parallel();\n}\n")  # fmt: skip
    subprocess.run([*find_compiler().command, "-o", tmp_path / "own", source], check=True)
    done = traced("./own")
    assert done.returncode == 3
    assert done.stderr == (
        "popmodel: error: own: nothing was recorded: OpenMP is linked statically, so the "
        "tracer cannot intercept calls\nhint: link shared libraries: no -static, no "
        "-static-libgomp, no MPI archives (.a)\n"
    )


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("openmp", "why"),
    [
        ("off", "it was switched off"),
        ("ompt", "the program does not use it, or its runtime has no tools interface"),
        ("gomp", "the program does not use it, or its runtime is not libgomp"),
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
        "hint: leave --openmp out: popmodel then detects how to observe OpenMP\n"
    )


@pytest.mark.long
def test_an_interface_that_shows_no_openmp_is_told(
    mpi: Mpi, programs: dict[str, Path], traced: Traced
) -> None:
    done = traced(
        mpi.mpirun, "-n", "1", programs["ends"], "exit", "0", options=("--openmp", "ompt")
    )
    told = " ".join(done.stderr.split())
    assert "no OpenMP: the program does not use it, or its runtime has no tools interface" in told


@pytest.mark.long
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
    assert "\nx.run2.prv.gz          2        2 " in done.stderr
    assert "popmodel metrics x.run1.prv.gz" in done.stderr
    read = [package.inspect(f"x.run{run}.prv.gz").to_dict()["info"] for run in (1, 2)]
    assert [info["processes"] for info in read] == [1, 2]
    # Nor is one of several replaced unasked.
    merging = ("trace", "merge", "x.raw", "-o", "x.prv.gz", "--format", "json")
    status, _, err = popmodel(*merging)
    assert (status, err.splitlines()[0]) == (
        2, "popmodel: error: -o x.run1.prv.gz: x.run1.prv.gz exists",
    )  # fmt: skip
    told = json.loads(popmodel(*merging, "--force")[1])
    assert [told["processes"], *(other["processes"] for other in told["others"])] == [1, 2]
