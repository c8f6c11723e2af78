"""Launches that end well, and all the ways in which they do not."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from patience import (
    GENEROUS,
    clock_that_leaps,
    is_alive,
    shell_loop,
    signal_once,
    until,
    words_in,
)

from popmodel.base.errors import FileError
from popmodel.machines.host import hardware, launcher, processes
from popmodel.machines.host.launcher import LaunchError, LaunchOutcome, start
from popmodel.machines.host.toolchain import Compiler, Mpi, ToolchainError, find_mpi

BUILDS = 'while [ "$1" != -o ]; do shift; done; echo > "$2"; chmod +x "$2"'

# Says hello for the probe, and calls any other program once with what was found out.
LAUNCHES = r"""
echo "$@" >> {folder}/calls
env | grep ^OMP_ | sort > {folder}/environment
case "$*" in
*popmodel-hello*)
  echo '{{"hello":0,"ranks":2}}'; echo '{{"hello":1,"ranks":2}}' ;;
*)
  while [ "${{1#*/program}}" = "$1" ]; do shift; done
  exec "$@" ;;
esac
"""


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def program(folder: Path, text: str) -> Path:
    """A measuring program that is a script; its first argument is its samples file."""
    return script(folder / "program", text)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let those that will not end when asked be forced soon."""
    monkeypatch.setattr(processes, "_PATIENCE", 0.3)
    monkeypatch.setattr(launcher, "_WORKED", {})


@pytest.fixture
def mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mpi:
    """An MPI whose launcher is a script, on a machine of two cores."""
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    machine = hardware.read({"affinity": "0-1"})
    monkeypatch.setattr(hardware, "here", lambda: machine)
    compiler = Compiler((str(script(tmp_path / "mpicc", BUILDS)),), "mpicc 1", "-fopenmp")
    mpirun = str(script(tmp_path / "mpirun", LAUNCHES.format(folder=tmp_path)))
    return Mpi(compiler, ((mpirun,),), "Open MPI", "5.0.11", "0123", "user")


def run(folder: Path, text: str, **more: object) -> LaunchOutcome:
    options = {"log": folder / "log", "samples": folder / "samples", **more}
    return start(program(folder, text), [str(folder / "samples")], **options)  # type: ignore[arg-type]


def failure(folder: Path, text: str, **more: object) -> LaunchError:
    with pytest.raises(LaunchError) as raised:
        run(folder, text, **more)
    return raised.value


# Without an MPI


def test_a_program_that_ends_well(tmp_path: Path) -> None:
    numbers: list[int] = []

    def see(number: int) -> None:
        numbers.append(number)
        (tmp_path / f"seen-{number}").touch()

    seen = shell_loop(f"[ -e {tmp_path}/seen-$i ]")
    text = f'echo a note >&2; for i in 1 2 3; do echo "{{}}" >> $1; {seen}; done'
    begin = time.monotonic()
    outcome = run(tmp_path, text, on_progress=see)
    assert outcome.command == (str(tmp_path / "program"), str(tmp_path / "samples"))
    assert outcome.lines == 3
    assert 0 < outcome.seconds <= time.monotonic() - begin
    assert outcome.words == ("a note",)
    assert (tmp_path / "log").read_text() == "a note\n"
    assert numbers == sorted(numbers)
    assert {1, 2, 3} <= set(numbers)


def test_only_new_samples_are_counted(tmp_path: Path) -> None:
    (tmp_path / "samples").write_text("{}\n{}\n")
    assert run(tmp_path, 'echo "{}" >> $1').lines == 1


def test_a_program_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = clock_that_leaps(lambda: words_in(tmp_path / "pid"))
    monkeypatch.setattr(launcher, "time", clock)
    text = f'echo "{{}}" >> $1; echo waiting; echo $$ > {tmp_path}/pid; exec sleep 600'
    error = failure(tmp_path, text, patience=500)
    assert error.message == "program made no progress for 500 s and was killed: waiting"
    assert error.hint == f"full output: {tmp_path}/log"
    assert error.is_hang
    assert (tmp_path / "samples").read_text() == "{}\n"
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_words_alone_are_no_progress_where_samples_are_awaited(tmp_path: Path) -> None:
    chatty = "while true; do echo waiting; sleep 0.1; done"
    assert failure(tmp_path, chatty, patience=0.5).is_hang


@pytest.mark.parametrize("with_samples", [False, True], ids=["words", "samples"])
def test_words_are_progress_and_so_are_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_samples: bool
) -> None:
    # 400 s pass with each of four steps, which the program takes when the one before was seen.
    steps = tmp_path / ("samples" if with_samples else "log")
    clock = SimpleNamespace(monotonic=lambda: 400.0 * len(words_in(steps)))
    monkeypatch.setattr(launcher, "time", clock)
    seen = tmp_path / "seen"

    def see(_: int) -> None:
        seen.write_text(f"{len(words_in(steps))}\n")

    step = 'echo "{}" >> $1' if with_samples else "echo waiting"
    slow = f"for i in 1 2 3 4; do {step}; {shell_loop(f'grep -qs ^$i {seen}')}; done"
    samples = steps if with_samples else None
    outcome = run(tmp_path, slow, samples=samples, patience=500, on_progress=see)
    assert outcome.lines == (4 if with_samples else 0)
    assert outcome.seconds == 1600


def test_a_launch_that_takes_too_long(tmp_path: Path) -> None:
    busy = 'while true; do echo "{}" >> $1; sleep 0.1; done'
    error = failure(tmp_path, busy, limit=0.5)
    assert error.message == "program did not finish within 0.5 s and was killed"


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileError) as raised:
        run(tmp_path, "exit 0", log=tmp_path / "none" / "log")
    assert raised.value.message == (
        f"{tmp_path}/none/log: cannot be written: No such file or directory"
    )
    assert raised.value.hint == "choose another path with -o"


def test_a_log_on_a_full_disk_ends_the_launch(tmp_path: Path) -> None:
    text = f'echo "{{}}" >> $1; echo $$ > {tmp_path}/pid; echo words; exec sleep 600'
    with pytest.raises(FileError) as raised:
        run(tmp_path, text, log="/dev/full")
    assert raised.value.message == "/dev/full: cannot be written: No space left on device"
    assert raised.value.hint == (
        "free some space there, or choose another path with -o; the same command resumes from here"
    )
    assert (tmp_path / "samples").read_text() == "{}\n"
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_log_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_LOG_MOST", 1000)
    outcome = run(tmp_path, "head -c 100000 /dev/zero | tr '\\0' x; echo; echo end")
    assert (tmp_path / "log").stat().st_size == 1000
    assert outcome.words[-1] == "end"


@pytest.mark.parametrize("polite", [True, False], ids=["polite", "stubborn"])
def test_an_interrupt_ends_the_launch_first(tmp_path: Path, polite: bool) -> None:
    trap = "" if polite else "trap '' TERM INT;"
    text = f"{trap} sleep 600 & echo $! $$ > {tmp_path}/pids; wait; wait; sleep 600"
    up = signal_once(lambda: words_in(tmp_path / "pids"), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), up:
        run(tmp_path, text)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    assert not [pid for pid in pids if is_alive(pid)]


def test_who_ends_popmodel_ends_the_launch(tmp_path: Path) -> None:
    path = program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    code = (
        "import sys; from popmodel.machines.host.launcher import start; "
        "start(sys.argv[1], [], log=sys.argv[2])"
    )
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "log")]
    with subprocess.Popen(command) as popmodel:
        until(lambda: words_in(tmp_path / "pid"), "the launch begins")
        popmodel.terminate()
        assert popmodel.wait(GENEROUS) == 128 + signal.SIGTERM
    assert not is_alive(int((tmp_path / "pid").read_text()))


# With a launcher


def test_ranks_are_started_as_the_probe_found(tmp_path: Path, mpi: Mpi) -> None:
    outcome = run(tmp_path, 'echo "{}" >> $1', mpi=mpi, ranks=2)
    assert outcome.lines == 1
    assert outcome.command[:8] == (
        *(mpi.launchers[0][0], "--map-by", "slot:PE=1", "--bind-to", "core"),
        *("-x", "OMP_NUM_THREADS", "-n"),
    )
    assert (tmp_path / "environment").read_text() == "OMP_NUM_THREADS=1\n"


def test_threads_beyond_the_cores_wait_without_spinning(tmp_path: Path, mpi: Mpi) -> None:
    outcome = run(tmp_path, "exit 0", mpi=mpi, ranks=2, threads=2)
    assert outcome.command[1:3] == ("--bind-to", "none")
    assert (tmp_path / "environment").read_text() == (
        "OMP_NUM_THREADS=2\nOMP_WAIT_POLICY=passive\n"
    )


def test_more_ranks_than_cores(tmp_path: Path, mpi: Mpi) -> None:
    error = failure(tmp_path, "exit 0", mpi=mpi, ranks=4)
    assert error.message == "too few cores for 4 ranks: this process may use 2 cores"
    assert error.hint == "use --ranks 2: ranks that share a core would measure time slicing"


def test_in_a_job_there_may_be_other_nodes(
    tmp_path: Path, mpi: Mpi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    assert "4" in run(tmp_path, "exit 0", mpi=mpi, ranks=4).command


def test_after_a_failure_the_way_is_found_out_again(tmp_path: Path, mpi: Mpi) -> None:
    failure(tmp_path, "exit 1", mpi=mpi, ranks=2)
    run(tmp_path, "exit 0", mpi=mpi, ranks=2)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert ["popmodel-hello" in call for call in calls] == [True, False, True, False]


def test_a_launcher_that_hangs_and_scatters(
    tmp_path: Path, mpi: Mpi, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = clock_that_leaps(lambda: len(words_in(tmp_path / "pids")) == 3)
    monkeypatch.setattr(launcher, "time", clock)
    # Ranks in sessions of their own that ignore being asked to end, as does the launcher.
    rank = f"trap '' TERM; echo $$ >> {tmp_path}/pids; while true; do sleep 1; done"
    script(tmp_path / "rank", rank)
    text = f"trap '' TERM; setsid {tmp_path}/rank & setsid {tmp_path}/rank & {tmp_path}/rank"
    error = failure(tmp_path, text, mpi=mpi, ranks=2, patience=500)
    assert error.message == "mpirun made no progress for 500 s and was killed"
    assert error.hint == (
        "the ranks may not reach each other (network interface, firewall): try other "
        f"launcher options with --launcher (output: {tmp_path}/log)"
    )
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 3
    assert not [pid for pid in pids if is_alive(pid)]


def test_processes_that_cannot_be_ended_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = processes.end
    monkeypatch.setattr(processes, "end", lambda tree: [*end(tree), 11, 12])
    error = failure(tmp_path, "exit 0")
    assert error.message == "program: some processes could not be killed: 11,12"
    assert error.hint == ("they wait for a device or belong to another user: ps -fp 11,12")


# With a real MPI


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mpi:
    """The MPI of this machine."""
    try:
        mpi = find_mpi()
    except ToolchainError as error:
        pytest.skip(f"{error.message}; {error.hint}")
    if hardware.here().usable_cores < 2:
        pytest.skip("two ranks need two cores")
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(tmp_path / "cache"))
    return mpi


def test_a_real_rank_that_dies(tmp_path: Path, real: Mpi) -> None:
    # One rank dies, the other would sleep: the launcher has to end it, or popmodel does.
    first = f"mkdir {tmp_path}/first 2>/dev/null"
    rank = f"echo $$ >> {tmp_path}/pids; {first} && kill -9 $$; sleep 600"
    error = failure(tmp_path, rank, mpi=real, ranks=2, patience=GENEROUS)
    assert "rank" in error.message
    assert "SIGKILL" in error.message or "died" in error.message
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert not [pid for pid in pids if is_alive(pid)]
