"""Running a command as if the user had started it: its status, its signals, its streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from popmodel.tracer.commands import CommandError
from popmodel.tracer.run import run

RUNNER = """\
import os, sys
from popmodel.tracer.run import run
sys.exit(run(sys.argv[1], sys.argv[1:], os.environ))
"""


def shell(text: str) -> int:
    return run("/bin/sh", ["sh", "-c", text], os.environ)


def start(text: str, **more: object) -> subprocess.Popen[str]:
    """A process of its own that runs a command, so that signals can be sent to it."""
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-c", RUNNER, "/bin/sh", "-c", text],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more},
    )


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_status_is_that_of_the_command(status: int) -> None:
    assert shell(f"exit {status}") == status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_signal_that_ends_it_is_told_as_shells_do(number: signal.Signals) -> None:
    assert shell(f"kill -{int(number)} $$") == 128 + number


def test_its_words_and_its_environment_are_those_given(tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = 'echo "$0 $1 $A" >' + str(out)
    assert run("/bin/sh", ["sh", "-c", text, "zero", "one"], {"A": "x y"}) == 0
    assert out.read_text() == "zero one x y\n"


def test_its_streams_are_untouched() -> None:
    child = start("cat; echo to stderr >&2", stdin=subprocess.PIPE)
    assert child.communicate("hello\n", timeout=20) == ("hello\n", "to stderr\n")


def test_signals_are_as_programs_expect_them() -> None:
    # Python ignores SIGPIPE for itself; and none may be blocked.
    assert shell("yes | head -n 1 >/dev/null") == 0
    blocked = shell("grep -q '^SigBlk:.*[1-9a-f]' /proc/self/status")
    assert blocked == 1
    ignored = shell("grep -q '^SigIgn:\t0*1000$' /proc/self/status")  # SIGPIPE alone
    assert ignored == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_for_popmodel_is_passed_on(number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    child = start(
        f"trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.05; done"
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(number)
    out, _ = child.communicate(timeout=20)
    assert (child.returncode, out) == (9, f"got {name}\n")


def test_ctrl_c_reaches_the_command_once() -> None:
    """A terminal sends it to all processes in its foreground: passing it on would be twice."""
    import pty

    master, slave = pty.openpty()
    code = (
        "import os, fcntl, termios, sys; os.setsid(); "
        f"fcntl.ioctl({slave}, termios.TIOCSCTTY, 0); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    counts = (
        "n=0; trap 'n=$((n+1))' INT; echo ready; for i in 1 2 3 4 5 6; do sleep 0.1; done; echo $n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, "-c", RUNNER, "/bin/sh", "-c", counts],
        stdin=slave,
        stdout=subprocess.PIPE,
        pass_fds=[slave],
        text=True,
    )
    os.close(slave)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        os.write(master, b"\x03")
        assert child.communicate(timeout=20)[0] == "1\n"
        assert child.returncode == 0
    finally:
        os.close(master)


def test_signals_that_came_are_over_when_it_ends() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    timer.start()
    begin = time.monotonic()
    # The command ignores it; here it would end the tests.
    assert shell("trap '' USR1; sleep 0.6") == 0
    assert time.monotonic() - begin > 0.5
    assert signal.getsignal(signal.SIGUSR1) == before
    assert signal.SIGUSR1 not in signal.sigpending()


def test_an_end_that_the_caller_ignores_is_seen() -> None:
    """Some daemons ignore it that a child ends, and all that they start does."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert shell("exit 3") == 3
        assert signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_what_is_no_program_is_told(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("echo no interpreter is named\n")
    plain.chmod(0o755)
    with pytest.raises(CommandError) as raised:
        run(str(plain), ["plain"], os.environ)
    assert raised.value.message == f"{plain}: is no program that this system runs"
    assert raised.value.hint == (
        "a script begins with the name of its interpreter, such as #!/bin/bash"
    )
    with pytest.raises(CommandError, match="cannot be started: no such file or directory"):
        run(str(tmp_path / "gone"), ["gone"], os.environ)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
