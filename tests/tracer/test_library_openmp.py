"""The tracing library under OpenMP programs, which count themselves what they do."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from patience import measuring
from real_mpi import Mpi
from tracer.openmp_runs import (
    CONSTRUCTS,
    PROGRAMS,
    THREADS,
    WAYS,
    Build,
    Run,
    check_pairs,
    check_regions,
    compilers,
    number,
    run,
    traced,
    untraced,
)
from tracer.raw_files import KINDS, read

__all__ = ["run"]  # of OpenMP programs, not of those with MPI


def shares(compiler: str, counts: Mapping[str, int]) -> int:
    """Of code for libgomp, LLVM's runtime does not tell its tools of sections."""
    return 0 if compiler == "gcc-libomp" else counts["shares"]


@compilers
def test_loops(run: Run, build: Build, compiler: str) -> None:
    process, counts = traced(run, build(compiler), "loops")
    check_regions(process, counts)
    check_pairs(process)
    assert number(process, "SCHEDULING") == counts["requests"]
    assert number(process, "BARRIER") + number(process, "IMPLICIT_BARRIER") == counts["barriers"]
    (event,) = process.events("openmp")
    assert event["how"] == WAYS[compiler]
    assert ("libgomp" if compiler == "gcc" else "LLVM") in event["runtime"]


@compilers
def test_constructs(run: Run, build: Build, compiler: str) -> None:
    process, counts = traced(run, build(compiler), "constructs", POPMODEL_TRACE_LOCKS="each")
    check_regions(process, counts)
    assert not process.events("note")
    assert number(process, "CRITICAL_WAIT") == counts["criticals"]
    assert number(process, "CRITICAL_HOLD") == counts["criticals"]
    assert number(process, "LOCK_WAIT") == number(process, "LOCK_HOLD") == counts["locks"]
    assert number(process, "BARRIER") + number(process, "IMPLICIT_BARRIER") == counts["barriers"]
    assert number(process, "SINGLE") == counts["singles"]
    assert number(process, "SECTIONS") == shares(compiler, counts)
    assert number(process, "ORDERED") == counts["ordered"]
    enters, leaves = process.of("OMP_ENTER"), process.of("OMP_LEAVE")
    assert Counter(enters["call"].tolist()) == Counter(leaves["call"].tolist())
    held = enters[enters["call"] == CONSTRUCTS["CRITICAL_HOLD"]]["b"]
    assert len(set(held.tolist())) == 2  # two locks, whatever they are called
    if WAYS[compiler] == "gomp":
        assert 0 in held  # the one without a name


@compilers
def test_sections(run: Run, build: Build, compiler: str) -> None:
    process, counts = traced(run, build(compiler), "sections")
    check_regions(process, counts)
    assert counts["sections"] == 4
    assert number(process, "SECTIONS") == shares(compiler, counts)


@compilers
def test_copyprivate(run: Run, build: Build, compiler: str) -> None:
    process, counts = traced(run, build(compiler), "copyprivate")
    check_regions(process, counts)
    check_pairs(process)
    assert counts["given"] == 42 * THREADS
    # Nor of single constructs with copyprivate.
    assert number(process, "SINGLE") == (0 if compiler == "gcc-libomp" else counts["singles"])


@compilers
def test_tasks(run: Run, build: Build, compiler: str) -> None:
    """Each is created once and carried out once, with the data that it was given."""
    process, counts = traced(run, build(compiler), "tasks")
    check_regions(process, counts)
    assert counts["loop"] == 2 * 4950 + 5050
    assert counts["fibonacci"] == 21
    if compiler == "gcc":
        assert counts["misplaced"] == 0
    created, ran = process.of("TASK_CREATE"), process.of("TASK_RUN")
    assert len(created) == counts["tasks"]
    assert sorted(created["c"].tolist()) == sorted(set(ran["c"].tolist()))
    assert sorted(ran["c"].tolist()) == sorted(process.of("TASK_STOP")["c"].tolist())
    assert len(ran) - len(created) <= 1  # the untied one may go on later
    functions = dict(zip(created["c"].tolist(), created["b"].tolist(), strict=True))
    assert all(functions[int(each["c"])] == each["b"] for each in ran)
    times = dict(zip(created["c"].tolist(), created["time"].tolist(), strict=True))
    assert all(times[int(each["c"])] <= each["time"] for each in ran)
    known = {int(event["address"], 16) for event in process.events("function")}
    assert set(functions.values()) <= known
    check_pairs(process)
    assert number(process, "TASKWAIT") == counts["taskwaits"]
    groups = counts["taskgroups"] + counts["loops"] - 1  # of libgomp's own ones nothing is seen
    assert number(process, "TASKGROUP") in (counts["taskgroups"], groups)


@pytest.mark.long
def test_more_tasks_than_a_stack_holds(run: Run, build: Build) -> None:
    process, counts = traced(run, build("gcc"), "many")
    check_regions(process, counts)
    check_pairs(process)
    for kind in ("TASK_CREATE", "TASK_RUN", "TASK_STOP"):
        assert len(set(process.of(kind)["c"].tolist())) == counts["tasks"]
    assert counts["sum"] == 100000 * 99999 // 2


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_detached_tasks(run: Run, build: Build, compiler: str) -> None:
    """The runtime writes the event into their data."""
    done = run.start(build(compiler), str(THREADS), "detached")
    process, counts = run.process(), json.loads(done.stdout)
    assert counts["sum"] == 1
    assert len(process.of("TASK_CREATE")) == 1
    notes = [event["text"] for event in process.events("note")]
    if compiler == "gcc":
        assert notes == ["tasks with a detach clause: their runtime is not recorded"]
    else:
        assert notes == []
        assert len(process.of("TASK_RUN")) == len(process.of("TASK_STOP")) == 1


@compilers
def test_nested(run: Run, build: Build, compiler: str) -> None:
    process, counts = traced(run, build(compiler), "nested")
    check_pairs(process)
    parts = process.of("TASK_BEGIN")
    levels = Counter(parts["call"].tolist())
    wanted = {1: counts["parts"], 2: counts["inner parts"], 3: counts["innermost parts"]}
    assert levels == wanted
    assert len(process.of("PARALLEL_BEGIN")) == counts["regions"]
    inner = parts[parts["call"] == 2]
    assert sorted(inner["a"].tolist()) == sorted([0, 1] * THREADS)
    assert set(parts[parts["call"] == 3]["a"].tolist()) == {0}


@compilers
def test_parts_end_where_threads_are_through(run: Run, build: Build, compiler: str) -> None:
    """Not where the region ends, or where the next one begins."""
    program = build(compiler)
    with measuring():
        done = run.start(program, "2", "work")
        process, work = run.process(), json.loads(done.stdout)["work"]
        begins, ends = process.of("TASK_BEGIN"), process.of("TASK_END")
        # The first is through with 20 ms, the second with 40 ms of work.
        assert ends[ends["a"] == 0]["time"][0] < work[1][1]
    for thread, (begin, end) in enumerate(work):
        (first,) = begins[begins["a"] == thread]
        (last,) = ends[ends["a"] == thread]
        assert first["time"] <= begin
        assert end <= last["time"]
    (region_end,) = process.of("PARALLEL_END")["time"]
    assert region_end >= work[1][1]
    join = process.of("OMP_ENTER")
    assert join["call"].tolist() == [CONSTRUCTS["JOIN"]]
    assert join["time"][0] == ends[ends["a"] == 0]["time"][0]


@compilers
def test_dormant_without_a_region(run: Run, build: Build, compiler: str) -> None:
    """Having a runtime, asking it and taking its locks is not worth a trace."""
    run.start(build(compiler), "2", "none")
    assert list(run.raw.iterdir()) == []


@pytest.mark.parametrize(
    ("compiler", "asked", "how"),
    [
        ("gcc", "gomp", "gomp"),
        ("clang", "ompt", "ompt"),
        ("gcc-libomp", "gomp", "gomp"),
        ("gcc-libomp", "ompt", "ompt"),
        ("gcc", "", "gomp"),
        ("gcc", "auto", "gomp"),
    ],
)
def test_asked_for(run: Run, build: Build, compiler: str, asked: str, how: str) -> None:
    process, counts = traced(run, build(compiler), "loops", POPMODEL_TRACE_OPENMP=asked)
    assert [event["how"] for event in process.events("openmp")] == [how]
    check_regions(process, counts)
    assert number(process, "SCHEDULING") == counts["requests"]


@pytest.mark.parametrize(
    ("compiler", "asked"),
    [("gcc", "off"), ("clang", "off"), ("gcc", "ompt"), ("clang", "gomp"), ("gcc-libomp", "off")],
)
def test_not_asked_for(run: Run, build: Build, compiler: str, asked: str) -> None:
    run.start(build(compiler), "2", "loops", POPMODEL_TRACE_OPENMP=asked)
    assert list(run.raw.iterdir()) == []


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("flags", [[], ["-no-pie", "-fno-pic"]], ids=["moved", "fixed"])
def test_where_functions_are(run: Run, build: Build, compiler: str, flags: list[str]) -> None:
    """The offset is what addr2line wants, wherever the program was put in memory."""
    addr2line = shutil.which("addr2line")
    if addr2line is None:
        pytest.skip("needs addr2line")
    program = build(compiler, "openmp", *flags)
    run.start(program, "2", "work")
    (event,) = run.process().events("function")
    assert event["module"] == str(program)
    (region,) = run.process().of("PARALLEL_BEGIN")
    assert int(event["address"], 16) == region["b"]
    found = subprocess.check_output([addr2line, "-e", program, event["offset"]], text=True)
    lines = (PROGRAMS / "openmp.c").read_text().splitlines()
    begin = lines.index("static void work(int threads)")
    wanted = next(i for i in range(begin, len(lines)) if "omp parallel" in lines[i]) + 1
    file, line = found.split()[0].rsplit(":", 1)
    assert Path(file).name == "openmp.c"
    assert int(line) == wanted


def test_regions_of_old_compilers(run: Run, build: Build) -> None:
    """The calling thread carries out its part between two calls."""
    program = build("gcc", "openmp_old")
    done = run.start(program)
    assert done.stdout == untraced(program).stdout == "102\n"
    process = run.process()
    check_regions(process, {"regions": 2, "parts": 4})
    check_pairs(process)
    assert number(process, "BARRIER") == 2
    assert number(process, "SCHEDULING") == 10 + 2


def test_fork_in_a_region(run: Run, build: Build) -> None:
    """The child is not traced, and comes back through the wrappers."""
    done = run.start(build("gcc", "openmp_old"), "fork")
    assert done.stdout == "109\n"
    process = run.process()
    check_regions(process, {"regions": 3, "parts": 6})


def test_runtime_that_the_program_opens(run: Run, build: Build) -> None:
    """As interpreters do: the runtime's symbols are not for all."""
    library = build("gcc", "opened", "-shared", "-fPIC")
    done = run.start(build("gcc-plain", "opens"), library)
    assert done.stdout == "2\n"
    process = run.process()
    check_regions(process, {"regions": 1, "parts": 2})
    (event,) = process.events("openmp")
    assert "libgomp" in event["runtime"]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_deeply_nested(run: Run, build: Build, compiler: str) -> None:
    """The stack of LLVM's parts has an end, at which nothing is mixed up."""
    done = run.start(build(compiler), "2", "deep")
    process = run.process()
    assert json.loads(done.stdout) == {"regions": 40}
    depth = 40 if compiler == "gcc" else 32
    assert sorted(set(process.of("TASK_BEGIN")["call"].tolist())) == list(range(1, depth + 1))
    notes = [event["text"] for event in process.events("note")]
    if compiler == "clang":
        assert set(notes) == {"parallel regions nested more than 32 deep: not recorded"}
    else:
        assert notes == []
        check_pairs(process)


def test_runtime_of_version_5_0(run: Run, build: Build) -> None:
    """It does not say which barrier ends a region, and tells the end when the next one begins."""
    run.start(build("gcc", "runtime_5_0"))
    process = run.process()
    check_regions(process, {"regions": 2, "parts": 4})
    assert number(process, "IMPLICIT_BARRIER") == 4
    region_ends = np.sort(process.of("PARALLEL_END")["time"])
    (worker,) = [thread for thread in process.threads if not len(thread.of("PARALLEL_BEGIN"))]
    assert (worker.of("TASK_END")["time"] <= region_ends).all()
    (event,) = process.events("openmp")
    assert (event["how"], event["runtime"]) == ("ompt", "a runtime of 5.0")
    lacking = "this OpenMP runtime does not report waits for task groups to tools: not recorded"
    assert [event["text"] for event in process.events("note")] == [lacking]


def test_entry_that_nobody_has(run: Run, build: Build) -> None:
    """As the dynamic linker would have said, had the tracer not stood in for it."""
    program = build("gcc-plain", "lacking")
    done = run.start(program, status=127)
    assert done.stderr == (
        "popmodel: the program calls GOMP_barrier, which no loaded library provides; set "
        "POPMODEL_TRACE_OPENMP=off to see whether it runs untraced\n"
    )


def test_hybrid(run: Run, mpi: Mpi, tmp_path: Path) -> None:
    program = tmp_path / "hybrid"
    source = PROGRAMS / "hybrid.c"
    command = [*mpi.mpicc, "-fopenmp", "-o", program, source]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    preload = [f"LD_PRELOAD={run.library}", f"POPMODEL_TRACE_DIR={run.raw}"]
    done = mpi.start(2, "env", *preload, program)
    assert done.returncode == 0, done.stderr
    processes = read(run.raw)
    assert [process.rank for process in processes] == [0, 1]
    for process in processes:
        check_regions(process, {"regions": 12, "parts": 24})
        check_pairs(process)
        assert process.calls()["Sendrecv"] == 10
        assert number(process, "BARRIER") == 20
        first, *others = process.threads
        assert first.records["kind"][0] == KINDS["PARALLEL_BEGIN"]  # before MPI_Init
        assert sum(thread.calls()["Sendrecv"] for thread in others) == 0
        # Each call lies in the part of the master.
        inside = np.cumsum((first.records["kind"] == KINDS["TASK_BEGIN"]).astype(int))
        inside -= np.cumsum((first.records["kind"] == KINDS["TASK_END"]).astype(int))
        assert (inside[first.records["kind"] == KINDS["SEND"]] == 1).all()
