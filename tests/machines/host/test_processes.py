"""Processes that are started, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import GENEROUS, clock_that_leaps, is_alive, shell_loop, until, words_in

from popmodel.machines.host import processes
from popmodel.machines.host.processes import (
    NOT_STARTED,
    TOOK_TOO_LONG,
    Finished,
    describe_status,
    end,
    members,
    output_of,
    start,
)

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1] + "/" + str(os.getpid()), "w").close()
time.sleep(600)
"""

_ENDING = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]

# What a launcher and its ranks do: a child, a child in a session of its own, and one that forks
# twice and so has no parent left; all of them ignore being asked to end.
FAMILY = """
import os, subprocess, sys
stubborn = [sys.executable, "-c", open(sys.argv[2]).read(), sys.argv[1]]
subprocess.Popen(stubborn)
subprocess.Popen(stubborn, start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, stubborn)
    os._exit(0)
os.execv(sys.executable, stubborn)
"""


@pytest.fixture
def output() -> Iterator[int]:
    """Where what is started may write to."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


def family(tmp_path: Path, script_of_all: str = STUBBORN) -> tuple[list[str], Path]:
    """A command that starts four processes, and a folder in which they leave their ids."""
    pids = tmp_path / "pids"
    pids.mkdir()
    script = tmp_path / "stubborn.py"
    script.write_text(script_of_all)
    return [sys.executable, "-c", FAMILY, str(pids), str(script)], pids


def run(script: str, timeout: float = GENEROUS) -> Finished:
    return output_of(["/bin/sh", "-c", script], timeout=timeout, environment=os.environ)


def wait_for(pids: Path, number: int) -> list[int]:
    """Wait until so many processes have come up; give their ids."""
    until(lambda: len(list(pids.iterdir())) >= number, f"{number} processes come up")
    return [int(path.name) for path in pids.iterdir()]


def test_a_family_that_scatters_is_found_and_ended(tmp_path: Path, output: int) -> None:
    command, folder = family(tmp_path)
    tree = start(command, os.environ, output=output)
    pids = wait_for(folder, 4)
    assert set(pids) <= set(members(tree))
    assert len({os.getsid(pid) for pid in pids}) >= 3
    assert end(tree, patience=0.2) == []
    assert not [pid for pid in pids if is_alive(pid)]


def test_those_who_end_when_asked_are_not_forced(tmp_path: Path, output: int) -> None:
    # A signal that comes between fork and exec is lost: it is up once it is the other program.
    up = f"until grep -q sleep /proc/$!/comm; do :; done; echo > {tmp_path}/up"
    polite = f"trap 'echo bye > {tmp_path}/bye; exit 0' TERM; sleep 600 & {up}; wait"
    tree = start(["/bin/sh", "-c", polite], os.environ, output=output)
    until((tmp_path / "up").exists, "it can be asked")
    assert end(tree, patience=GENEROUS) == []
    assert (tmp_path / "bye").read_text() == "bye\n"


def test_what_ended_by_itself_may_have_left_something(tmp_path: Path, output: int) -> None:
    leaves = f"setsid sh -c 'touch {tmp_path}/$$; exec sleep 600' & exit 0"
    tree = start(["/bin/sh", "-c", leaves], os.environ, output=output)
    tree.child.wait()
    (pid,) = wait_for(tmp_path, 1)
    assert is_alive(pid)
    assert end(tree) == []
    assert not is_alive(pid)


def test_processes_of_others_are_left_alone(output: int) -> None:
    with subprocess.Popen(["/bin/sleep", "600"]) as other:
        try:
            tree = start(["/bin/sleep", "600"], os.environ, output=output)
            assert other.pid not in members(tree)
            end(tree)
            assert other.poll() is None
        finally:
            other.kill()


def test_a_number_that_another_process_has_now_is_left_alone(output: int) -> None:
    tree = start(["/bin/true"], os.environ, output=output)
    tree.child.wait()
    with subprocess.Popen(["/bin/sleep", "600"], start_new_session=True) as other:
        try:
            tree.child.pid = other.pid
            assert members(tree) == []
            assert end(tree) == []
            assert other.poll() is None
        finally:
            other.kill()


def test_a_process_that_cannot_be_ended_is_named(
    output: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = start(["/bin/sleep", "600"], os.environ, output=output)
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_FORCED", 0.3)
        patch.setattr(processes, "_signal", lambda *_: None)
        assert end(tree, patience=0.1) == [tree.child.pid]
    assert end(tree) == []


def test_what_a_program_writes() -> None:
    done = run("echo out; echo err >&2; exit 3")
    assert done == Finished(3, "out\nerr\n")


def test_a_program_that_writes_much() -> None:
    done = run("head -c 1000000 /dev/zero")
    assert (done.status, len(done.text)) == (0, 1_000_000)


def test_a_program_that_closes_its_output_first() -> None:
    done = run("echo a; exec >&- 2>&-; sleep 0.01; exit 2")
    assert done == Finished(2, "a\n")


def test_a_program_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = tmp_path / "waits"
    script = f"echo a; touch {waits}; exec sleep 600"
    monkeypatch.setattr(processes, "time", clock_that_leaps(waits.exists))
    done = run(script)
    assert done.status == TOOK_TOO_LONG
    assert done.text.split("\n") == ["a", "", "no answer within 600 s", ""]


def test_a_program_whose_children_keep_its_output_open(tmp_path: Path) -> None:
    child = f"setsid sh -c 'touch {tmp_path}/$$; exec sleep 600' &"
    up = shell_loop(f"ls {tmp_path} | grep -q .")
    assert run(f"{child} {up}; echo done").text == "done\n"
    (pid,) = wait_for(tmp_path, 1)
    assert not is_alive(pid)


def test_a_program_that_is_not_there() -> None:
    done = output_of(["/no/program"], timeout=20, environment=os.environ)
    assert done == Finished(NOT_STARTED, "/no/program: No such file or directory")


def test_a_thread_may_run_programs_too() -> None:
    done: list[Finished] = []
    thread = threading.Thread(target=lambda: done.append(run("exit 0")))
    thread.start()
    thread.join()
    assert done == [Finished(0, "")]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("number", _ENDING)
def test_whoever_ends_popmodel_ends_what_it_started(tmp_path: Path, number: signal.Signals) -> None:
    polite = STUBBORN.replace("signal.SIG_IGN", "signal.SIG_DFL")
    command, folder = family(tmp_path, polite)
    script = (
        "import os, sys; from popmodel.machines.host.processes import output_of; "
        "output_of(sys.argv[1:], timeout=600, environment=os.environ)"
    )
    popmodel = subprocess.Popen([sys.executable, "-c", script, *command], stderr=subprocess.DEVNULL)
    pids = wait_for(folder, 4)
    popmodel.send_signal(number)
    status = popmodel.wait(GENEROUS)
    assert status == (-signal.SIGINT if number == signal.SIGINT else 128 + number)
    assert not [pid for pid in pids if is_alive(pid)]


def test_what_popmodel_started_ends_even_if_popmodel_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys; from popmodel.machines.host.launcher import start; "
        "start(sys.argv[1], sys.argv[2:], log=sys.argv[2] + '/log')"
    )
    program = "echo $$ > $1/pid; sleep 600 & echo $! > $1/child; wait"
    (tmp_path / "program").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "program").chmod(0o755)
    words = [sys.executable, "-c", script, str(tmp_path / "program"), str(tmp_path)]
    popmodel = subprocess.Popen(words)
    until(lambda: words_in(tmp_path / "child"), "the program comes up")
    children = Path(f"/proc/{popmodel.pid}/task/{popmodel.pid}/children")
    until(lambda: len(words_in(children)) == 2, "it is watched")
    pids = [int(word) for name in ("pid", "child") for word in words_in(tmp_path / name)]
    assert all(map(is_alive, pids))
    popmodel.kill()
    popmodel.wait(GENEROUS)
    until(lambda: not any(map(is_alive, pids)), "what it started ends")


def test_a_signal_is_kept_until_it_is_asked_for() -> None:
    with pytest.raises(SystemExit) as raised, processes.ended_with_us() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        interrupts.check()
    assert raised.value.code == 128 + signal.SIGTERM


def test_a_signal_that_nobody_asks_for_is_acted_upon_at_the_end() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), processes.ended_with_us():
        os.kill(os.getpid(), signal.SIGINT)
        reached.append("the end")
    assert reached == ["the end"]


def test_signals_that_are_ignored_stay_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with processes.ended_with_us():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("status", "words"),
    [(0, "exit status 0"), (-9, "signal SIGKILL"), (-64, "signal SIGRTMAX"), (-99, "signal 99")],
)
def test_how_a_process_ended(status: int, words: str) -> None:
    assert describe_status(status) == words


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("a.c: In f:\na.c:1: error: x\na.c:2: error: y\n2 errors\n", "a.c:1: error: x", "2 errors"),
        ("one\ntwo\n\n", "two", "two"),
        ("-----\nno compiler\n-----\n", "no compiler", "no compiler"),
        ("", "exit status 1, no output", "exit status 1, no output"),
    ],
)
def test_lines_that_tell(text: str, first: str, last: str) -> None:
    done = Finished(1, text)
    assert (done.first_error, done.last_line) == (first, last)
