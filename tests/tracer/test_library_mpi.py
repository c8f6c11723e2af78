"""The tracing library under real MPI programs, which count themselves what they do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tracer.raw_files import CALLS
from tracer.traced import (
    Finished,
    Mpi,
    Run,
    check_collectives,
    check_communicators,
    check_threads,
    compare,
)


def is_version_4(mpi: Mpi) -> bool:
    """Whether the MPI has the calls that came with version 4 of the standard."""
    source = "#include <mpi.h>\n#if MPI_VERSION < 4\n#error old\n#endif\n"
    command = [*mpi.mpicc, "-E", "-x", "c", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return done.returncode == 0


def test_names_and_exports_nothing_but_what_it_wraps(library: Path) -> None:
    """It can be loaded into any program, and brings no second MPI."""
    symbols = subprocess.check_output(["nm", "-D", "--undefined-only", library], text=True)
    assert "mpi" not in symbols.lower()
    symbols = subprocess.check_output(["nm", "-D", "--defined-only", library], text=True)
    names = [line.split()[-1] for line in symbols.splitlines()]
    mpi = {name for name in names if name.startswith("MPI_")}
    assert "MPI_Init" in mpi
    assert {name[1:] for name in names if name.startswith("PMPI_")} == mpi  # for Fortran
    wrapped = ("GOMP_", "omp_", "ompt_start_tool", "__kmpc_dispatch_next_", "popmodel_")
    rest = set(names) - mpi - {f"P{name}" for name in mpi}
    # Fortran procedures of Open MPI that do not call those of C where there is no request
    fortran = re.compile(
        r"(p?mpi_(wait|test)(all|any|some)_{0,2}|ompi_(wait|test)(all|any|some)_f)"
    )
    files = re.compile(
        r"f?(open|close|read|write)|f(sync|datasync|flush)|p?(read|write)v?|(f?open|openat|pread|pwrite)64|openat"
        r"|(__open|__open64)_2|__f?(read|pread|pread64)_chk"
    )
    own = [
        name
        for name in rest
        if name.startswith(wrapped) or fortran.fullmatch(name) or files.fullmatch(name)
    ]
    assert rest == set(own)


def test_messages(run: Run, mpi: Mpi, program: Callable[..., Path]) -> None:
    """Every way to send and to receive; two ranks."""
    flags = ["-DHAVE_ISENDRECV"] if is_version_4(mpi) else []
    done = run.start(2, program("messages", *flags))
    assert done.returncode == 0, done.stderr
    truncated = {}
    for process in run.processes():
        (size,) = (key[3] for key in process.messages() if key[0] == "received" and key[2] == 70)
        truncated[process.rank] = size
    assert set(truncated.values()) <= {40, 400}  # what arrived or what was sent: MPIs differ
    for file in run.counts.glob("*.json"):
        counts = json.loads(file.read_text())
        # One receive was cancelled, one message truncated, one call failed.
        assert counts["notes"] == [1, 1, 1]
        counts["messages"].append(["received", counts["rank"], 70, truncated[counts["rank"]]])
        file.write_text(json.dumps(counts))
    processes = compare(run, 2)
    for process in processes:
        # Posted and never received: the receive that was cancelled.
        posted = set(process.of("POST")["b"].tolist())  # Imrecv posts one a second time
        assert len(posted) == len(process.of("RECEIVE")) + 1


def test_messages_with_large_counts(run: Run, mpi: Mpi, program: Callable[..., Path]) -> None:
    if not is_version_4(mpi):
        pytest.skip("needs an MPI of version 4")
    done = run.start(2, program("large"))
    assert done.returncode == 0, done.stderr
    compare(run, 2)
    check_collectives(run)


def test_completion(run: Run, program: Callable[..., Path]) -> None:
    done = run.start(2, program("completion"))
    assert done.returncode == 0, done.stderr
    for process in compare(run, 2):
        assert len(process.of("POST")) == len(process.of("RECEIVE"))
        # Tests that find nothing are one call, however long a program polls: no disk is filled.
        leaves = process.of("LEAVE")
        several = leaves[leaves["b"] > 0]
        assert (several["b"] >= 2).all()
        assert (several["c"] >= 0).all()
        # Between two calls that became one there was less than a microsecond.
        assert (several["c"] < 1000 * several["b"]).all()


@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives(run: Run, program: Callable[..., Path], ranks: int) -> None:
    done = run.start(ranks, program("collectives"))
    assert done.returncode == 0, done.stderr
    compare(run, ranks)
    for process, counts in zip(check_collectives(run), run.counted(), strict=True):
        started, ended = process.of("COLLECT")["b"], process.of("COLLECTED")["b"]
        nonblocking = {name for name, *_ in counts["notes"] if name[0] == "I"}
        assert len(started) == sum(process.calls()[name] for name in nonblocking)
        assert sorted(started) == sorted(ended) == list(range(1, len(started) + 1))


@pytest.mark.long
def test_communicators(run: Run, program: Callable[..., Path]) -> None:
    """Both ends of a message are in one communicator, and different ones are told apart."""
    done = run.start(4, program("communicators"))
    assert done.returncode == 0, done.stderr
    check_communicators(run)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", ["completion", "collectives", "communicators", "timed"])
def test_second_names(run: Run, program: Callable[..., Path], tmp_path: Path, name: str) -> None:
    """What is called PMPI_Send and so on: Fortran comes that way. Each call is seen once."""
    ranks = 4 if name == "communicators" else 2
    done = run.start(ranks, program(name, "-DSECOND_NAMES"), tmp_path / "file")
    assert done.returncode == 0, done.stderr
    compare(run, ranks)
    if name == "collectives":
        check_collectives(run)


def test_many_threads(run: Run, program: Callable[..., Path]) -> None:
    done = run.start(2, program("threads"))
    assert done.returncode == 0, done.stderr
    for process, counts in zip(run.processes(), run.counted(), strict=True):
        assert process.messages() == Counter(tuple(message) for message in counts["messages"])
        assert len(process.threads) == 5
        assert len(process.events("thread")) == 5
        assert process.events("mpi")[0]["thread_level"] > 0
        assert len(process.of("POST")) == len(process.of("RECEIVE"))
        check_threads(process)


@pytest.mark.long
def test_timed_calls(run: Run, program: Callable[..., Path], tmp_path: Path) -> None:
    done = run.start(2, program("timed"), tmp_path / "file")
    assert done.returncode == 0, done.stderr
    compare(run, 2)


BARRIERS = 40_000  # more than the first window holds


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("finalize", "exit"),
        ("exit", "exit"),
        ("return", "exit"),
        ("MPI_Abort", "abort"),
        ("_exit", None),
        ("abort", None),
        ("kill", None),
    ],
)
def test_ends(run: Run, program: Callable[..., Path], way: str, reason: str | None) -> None:
    """What was recorded is there, whatever becomes of the process; its status is its own."""
    ends = program("ends")
    untraced = run.mpi.start(1, ends, way, str(BARRIERS))
    traced = run.start(1, ends, way, str(BARRIERS))
    assert traced.returncode == untraced.returncode
    assert (traced.returncode == 0) == (way == "finalize")
    (process,) = run.processes()
    assert process.calls()["Barrier"] == BARRIERS
    assert [event["reason"] for event in process.events("end")] == ([reason] if reason else [])
    assert len(process.events("finalize")) == (way == "finalize")
    assert (process.threads[0].tail > 0) == (reason is None)


@pytest.mark.long
def test_an_exit_that_interrupts_the_tracer(run: Run, program: Callable[..., Path]) -> None:
    """A handler calls exit() while its thread takes more room: nobody waits for ever."""
    done = run.start(1, program("interrupted", "-rdynamic"))
    assert done.returncode == 7, done.stderr
    (process,) = run.processes()
    assert len(process.of("TRACING")) > 500
    assert not process.events("end")


@pytest.mark.long
def test_leaves_output_and_status_alone(run: Run, program: Callable[..., Path]) -> None:
    ends = program("ends")
    untraced = run.mpi.start(1, ends, "output", "1")
    traced = run.start(1, ends, "output", "1")
    assert (traced.stdout, traced.returncode) == (untraced.stdout, untraced.returncode)
    assert "popmodel" not in traced.stderr


def test_child_is_not_traced(run: Run, program: Callable[..., Path]) -> None:
    done = run.start(1, program("ends"), "fork", "10")
    assert done.returncode == 0, done.stderr
    (process,) = run.processes()
    check_threads(process)
    assert process.calls()["Barrier"] == 10


def test_program_that_becomes_another(run: Run, program: Callable[..., Path]) -> None:
    """It has the same process id, and files of its own.

    Without a launcher, which may wait for ever for a process that starts MPI twice.
    """
    ends = program("ends")
    assert run.start_alone(ends, "exec", "4", ends) == 0
    first, second = run.processes()
    assert first.calls()["Barrier"] == 4
    assert second.calls()["Barrier"] == 3
    assert second.stem.startswith(f"{first.stem}_")


def test_program_that_closes_all_files(run: Run, program: Callable[..., Path]) -> None:
    """Without a launcher, which would take a process that closes its pipes for dead."""
    assert run.start_alone(program("ends"), "close", "10") == 0
    (process,) = run.processes()
    assert process.calls()["Barrier"] == 10
    assert [event["id"] for event in process.events("communicator")] == [1, 2, 3]
    assert process.events("end")


def test_pause(run: Run, program: Callable[..., Path]) -> None:
    """Messages are recorded all the same: else those that follow would be matched with others."""
    done = run.start(1, program("ends"), "pause", "2")
    assert done.returncode == 0, done.stderr
    (process,) = run.processes()
    assert process.calls()["Barrier"] == 3
    assert process.calls()["Sendrecv"] == 0
    assert process.of("TRACING")["a"].tolist() == [0, 1]
    assert len(process.of("SEND")) == len(process.of("RECEIVE")) == len(process.of("POST")) == 5


@pytest.mark.parametrize("command", [["true"], ["sh", "-c", "true; exit 0"], ["python3", "-c", ""]])
def test_dormant_without_mpi(library: Path, tmp_path: Path, command: list[str]) -> None:
    """Shells and helpers inherit the variables, and must not notice (LD_BIND_NOW: loose ends)."""
    variables = {"LD_PRELOAD": str(library), "POPMODEL_TRACE_DIR": str(tmp_path)}
    done = subprocess.run(
        command,
        env={**os.environ, **variables, "LD_BIND_NOW": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_directory_that_is_not_there(run: Run, program: Callable[..., Path]) -> None:
    shutil.rmtree(run.raw)
    done = run.start(1, program("ends"), "finalize", "3")
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "popmodel" in line]
    assert line == (
        f"popmodel: POPMODEL_TRACE_DIR={run.raw}: No such file or directory; nothing is recorded: "
        "set it to a directory that exists and is writable"
    )


def test_file_limit(run: Run, program: Callable[..., Path]) -> None:
    """Where there is no more room, the run goes on, and what was recorded before is kept."""
    done = run.start(1, program("ends"), "limit", "30000", "300000")
    assert done.returncode == 0, done.stderr
    check_full(run, done, "File too large")


@pytest.fixture
def small_disk(run: Run) -> Iterator[Path]:
    command = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", run.raw]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    yield run.raw
    subprocess.run(["umount", run.raw], check=True)


@pytest.mark.usefixtures("small_disk")
def test_full_disk(run: Run, program: Callable[..., Path]) -> None:
    done = run.start(1, program("ends"), "finalize", "30000")
    assert done.returncode == 0, done.stderr
    check_full(run, done, "No space left on device")


def test_tests_that_find_nothing_are_left_out(run: Run, program: Callable[..., Path]) -> None:
    """What completes is there, with all messages."""
    shell = "export POPMODEL_TRACE_LEAVE_OUT=tests;"
    done = run.start(2, program("completion"), before=shell)
    assert done.returncode == 0, done.stderr
    names = ("Test", "Iprobe", "Improbe", "Request_get_status")
    tests = {number for number, name in CALLS.items() if name.startswith(names)}
    for process, counts in zip(run.processes(), run.counted(), strict=True):
        assert process.messages() == Counter(tuple(message) for message in counts["messages"])
        check_threads(process)
        leaves = process.of("LEAVE")
        mine = leaves[np.isin(leaves["call"], list(tests))]
        assert len(mine)
        assert (mine["a"] == 1).all()
        others = {call: n for call, n in process.calls().items() if not call.startswith(names)}
        assert others == {call: n for call, n in counts["calls"].items() if call in others}
        (mark,) = process.of("LEFT_OUT")
        assert (mark["call"], mark["a"]) == (1, 0)


def test_limit_of_size(run: Run, program: Callable[..., Path]) -> None:
    """Each process stops at its share, and the run goes on."""
    limit = 400_000
    shell = f"export POPMODEL_TRACE_MAX_SIZE={limit};"
    done = run.start(2, program("ends"), "finalize", "30000", before=shell)
    assert done.returncode == 0, done.stderr
    processes = run.processes()
    assert sum(path.stat().st_size for path in run.raw.glob("*.raw")) <= limit
    for process in processes:
        (full,) = process.events("full")
        (thread,) = process.threads
        assert (full["limited"], full["why"]) == (1, "the limit of POPMODEL_TRACE_MAX_SIZE")
        assert full["lost_from"] >= thread.records["time"][-1]
        assert 1000 < thread.calls()["Barrier"] < 30000
        assert (
            f"{process.stem}.meta: this process has reached its share of --max-size, "
            f"{limit // 2} bytes; the rest of its run is not recorded"
        ) in done.stderr


def test_nothing_is_recorded_before_mpi_init_has_ended(
    run: Run, program: Callable[..., Path]
) -> None:
    done = run.start(
        1, program("ends"), "finalize", "50", before="export POPMODEL_TRACE_WINDOW=0:;"
    )
    assert done.returncode == 0, done.stderr
    (process,) = run.processes()
    calls = process.calls()
    assert calls["Barrier"] == 50
    assert not calls["Init"] + calls["Init_thread"]
    (thread,) = process.threads
    assert thread.of("TRACING")["a"].tolist() == [0, 1]


@pytest.mark.parametrize("window", ["100000:", ":0.000000001"], ids=["later", "over"])
def test_nothing_is_recorded_outside_of_the_window(
    run: Run, program: Callable[..., Path], window: str
) -> None:
    shell = f"export POPMODEL_TRACE_WINDOW={window};"
    done = run.start(1, program("ends"), "finalize", "50", before=shell)
    assert done.returncode == 0, done.stderr
    (process,) = run.processes()
    assert not process.calls()
    assert process.of("TRACING")["a"].tolist()[-1] == 0


def check_full(run: Run, done: Finished, why: str) -> None:
    (process,) = run.processes()
    (full,) = process.events("full")
    (thread,) = process.threads
    assert (full["thread"], full["why"]) == (0, why)
    assert full["lost_from"] >= thread.records["time"][-1]
    assert 1000 < thread.calls()["Barrier"] < 30000
    assert thread.tail == 0
    (line,) = [line for line in done.stderr.splitlines() if "popmodel" in line]
    assert line == (
        f"popmodel: {run.raw}/{process.stem}.t0.raw: {why}; the rest of this thread is not "
        "recorded: free some space or set POPMODEL_TRACE_DIR to another directory"
    )
    assert process.events("end")[0]["records"]["0"] == len(thread.records)


RANK = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"


def test_clocks_of_two_hosts(run: Run, program: Callable[..., Path]) -> None:
    """Two names stand for two hosts. They have one clock, so the offset between them is none."""
    hosts = f"export POPMODEL_TRACE_HOST=host$(( {RANK} / 2 ));"
    done = run.start(4, program("ends"), "finalize", "3", before=hosts)
    assert done.returncode == 0, done.stderr
    processes = run.processes()
    assert [process.events("start")[0]["host"] for process in processes] == [
        *("host0", "host0", "host1", "host1")
    ]
    assert [len(process.events("clock")) for process in processes] == [0, 0, 2, 0]
    first, last = processes[2].events("clock")
    assert (first["when"], last["when"]) == ("init", "finalize")
    for event in (first, last):
        assert event["with"] == "host0"
        assert len(event["round_trips"]) == 8
        durations = [received - sent for sent, _, received in event["round_trips"]]
        assert durations == sorted(durations)
        for sent, remote, received in event["round_trips"]:
            assert sent <= remote <= received
    calls = processes[2].calls()
    assert calls == {"Init": 1, "Barrier": 3, "Finalize": 1}  # none of ours


@pytest.mark.parametrize("blind", [0, 1])
def test_clocks_without_a_rank_that_records(
    run: Run, program: Callable[..., Path], tmp_path: Path, blind: int
) -> None:
    """A rank whose directory is not there on its host: the others do not wait for it for ever."""
    nowhere = tmp_path / "nowhere"
    hosts = f"export POPMODEL_TRACE_HOST=host{RANK};"
    lost = f'[ {RANK} = {blind} ] && export POPMODEL_TRACE_DIR={nowhere}; exec "$0" "$@"'
    ends = program("ends")
    done = run.start(3, "sh", "-c", lost, str(ends), "finalize", "3", before=hosts)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"POPMODEL_TRACE_DIR={nowhere}: No such file or directory") == 1
    processes = run.processes()
    assert [process.rank for process in processes] == [rank for rank in range(3) if rank != blind]
    for process in processes:
        check_threads(process)
        clocks = [event["with"] for event in process.events("clock")]
        assert clocks == ([] if process.rank == 0 else ["host0", "host0"])


def alone(library: Path, folder: Path, *objects: str) -> Finished:
    """Run a program that is linked with the library itself, and with no MPI."""
    source = folder / "alone.c"
    source.write_text("int MPI_Init(int *, char ***);\nint main(void) { return MPI_Init(0, 0); }\n")
    made = folder / "alone"
    link = ["cc", "-o", made, source, library, *objects, f"-Wl,-rpath,{library.parent}:{folder}"]
    subprocess.run([*map(str, link)], check=True)
    return subprocess.run([made], capture_output=True, text=True, check=False)


REMEDY = (
    "; set MPICC to the compiler wrapper of the program's MPI, so that popmodel builds its tracer "
    "for it\n"
)


def test_no_mpi_behind_it(library: Path, tmp_path: Path) -> None:
    done = alone(library, tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "popmodel: the program calls MPI, but no library with its profiling interface (PMPI) is "
        f"loaded{REMEDY}"
    )


def test_another_mpi_behind_it(library: Path, mpi: Mpi, tmp_path: Path) -> None:
    """Handles of another make would be nonsense: better no run than that."""
    which = "#include <mpi.h>\n#ifdef OPEN_MPI\n#error yes\n#endif\n"
    command = [*mpi.mpicc, "-E", "-x", "c", "-"]
    asked = subprocess.run(command, input=which, capture_output=True, text=True, check=False)
    is_open_mpi = asked.returncode != 0
    stub = tmp_path / "stub.c"
    variable = "" if is_open_mpi else "int ompi_mpi_comm_world;"
    stub.write_text(f"int PMPI_Init(int *a, char ***b) {{ return a || b; }} {variable}\n")
    made = tmp_path / "libstub.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, stub], check=True)
    done = alone(library, tmp_path, "-Wl,--no-as-needed", str(made))
    assert done.returncode == 1
    problem = (
        "this tracer was built for Open MPI, but the program uses another MPI"
        if is_open_mpi
        else "this tracer was not built for Open MPI, but the program uses Open MPI"
    )
    assert done.stderr == f"popmodel: {problem}{REMEDY}"


def test_mpi_that_the_program_opens_itself(run: Run, mpi: Mpi, tmp_path: Path) -> None:
    """Interpreters load MPI with what they import, and share its symbols with nobody."""
    source = tmp_path / "plugin.c"
    source.write_text(
        "#include <mpi.h>\n"
        "int plugin(void) { int flag; MPI_Init(0, 0); MPI_Barrier(MPI_COMM_WORLD);"
        " MPI_Initialized(&flag); MPI_Finalize(); return flag == 1 ? 0 : 1; }\n"
    )
    plugin = tmp_path / "plugin.so"
    subprocess.run([*mpi.mpicc, "-shared", "-fPIC", "-o", plugin, source], check=True)
    host = tmp_path / "host.c"
    host.write_text(
        "#include <dlfcn.h>\n"
        "int main(int n, char **names) { void *all = dlopen(names[1], RTLD_NOW | RTLD_LOCAL);"
        ' return all ? ((int (*)(void))dlsym(all, "plugin"))() : n; }\n'
    )
    made = tmp_path / "host"
    subprocess.run(["cc", "-o", made, host, "-ldl"], check=True)
    done = run.start(2, made, plugin)
    assert done.returncode == 0, done.stderr
    for process in run.processes():
        assert process.calls() == {"Init": 1, "Barrier": 1, "Finalize": 1}


def test_the_runtime_of_a_device_is_named(run: Run, mpi: Mpi, tmp_path: Path) -> None:
    stub, program = tmp_path / "libcuda.so.1", tmp_path / "offload"
    sources = {
        stub: ("int cuInit(unsigned flags) { return (int)flags; }", ["-shared", "-fPIC"]),
        program: (
            "#include <mpi.h>\nint cuInit(unsigned);\nint main(int n, char **v)\n"
            "{ MPI_Init(&n, &v); cuInit(0); return MPI_Finalize(); }",
            [stub, "-Wl,-rpath", tmp_path],
        ),
    }
    for made, (source, flags) in sources.items():
        code = tmp_path / "code.c"
        code.write_text(source)
        subprocess.run([*mpi.mpicc, "-o", made, code, *flags], check=True)
    assert run.start(2, program).returncode == 0
    said = "libcuda.so is loaded: kernels and copies of its devices are not traced"
    notes = [event["text"] for process in run.processes() for event in process.events("note")]
    assert notes == [said, said]
