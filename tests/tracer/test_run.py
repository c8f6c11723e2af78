"""Running a command as if the user had started it: its status, its signals, its streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import GENEROUS, until, words_in

from popmodel.tracer.commands import CommandError
from popmodel.tracer.run import run

RUNNER = """\
import os, sys
from popmodel.tracer.run import run
sys.exit(run(sys.argv[1], sys.argv[1:], os.environ))
"""


def shell(text: str) -> int:
    return run("/bin/sh", ["sh", "-c", text], os.environ)


Child = subprocess.Popen[str]
Start = Callable[..., Child]


@pytest.fixture
def start() -> Iterator[Start]:
    """Processes of their own that run a command, so that signals can be sent to them."""
    children: list[Child] = []

    def begin(text: str, *before: str, **more: object) -> Child:
        command = [sys.executable, *before, "-c", RUNNER, "/bin/sh", "-c", text]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
        streams["start_new_session"] = "pass_fds" not in more  # without the terminal of the tests
        children.append(subprocess.Popen(command, **streams))  # type: ignore[call-overload]
        return children[-1]

    yield begin
    for child in children:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_status_is_that_of_the_command(status: int) -> None:
    assert shell(f"exit {status}") == status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_signal_that_ends_it_is_told_as_shells_do(number: signal.Signals) -> None:
    assert shell(f"kill -{int(number)} $$") == 128 + number


def test_its_streams_are_untouched(start: Start) -> None:
    child = start("cat; echo to stderr >&2", stdin=subprocess.PIPE)
    assert child.communicate("hello\n", timeout=GENEROUS) == ("hello\n", "to stderr\n")


def test_signals_are_as_programs_expect_them() -> None:
    # Python ignores SIGPIPE for itself; and none may be blocked.
    assert shell("yes | head -n 1 >/dev/null") == 0
    blocked = shell("grep -q '^SigBlk:.*[1-9a-f]' /proc/self/status")
    assert blocked == 1
    ignored = shell("grep -q '^SigIgn:\t0*1000$' /proc/self/status")  # SIGPIPE alone
    assert ignored == 1


def test_a_stop_that_lasts_is_no_signal_for_the_command(tmp_path: Path) -> None:
    """As by Ctrl-Z and fg: Python then tells of one that never came."""
    told, command = tmp_path / "told", tmp_path / "command.py"
    names = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGTERM")
    command.write_text(f"""\
import os, signal, sys
for name in {names}:
    write = lambda number, _: os.write(1, f"{{signal.Signals(number).name}} ".encode())
    signal.signal(getattr(signal, name), write)
print("ready", flush=True)
while True:
    signal.pause()
""")
    runner = RUNNER.replace(
        "sys.exit", "import popmodel.tracer.run as of\nof._LOOK = 0.01\nsys.exit"
    )
    words = [sys.executable, "-c", runner, sys.executable, str(command)]
    with (
        told.open("w") as out,
        subprocess.Popen(words, stdout=out, start_new_session=True) as child,
    ):
        try:
            until(lambda: words_in(told), "it is ready")
            child.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
            time.sleep(0.02)  # longer than a look lasts, at least
            child.send_signal(signal.SIGCONT)
            until(lambda: "SIGCONT" in words_in(told), "it goes on")
            child.send_signal(signal.SIGTERM)
            until(lambda: "SIGTERM" in words_in(told), "it is passed on")
        finally:
            os.killpg(child.pid, signal.SIGKILL)
    assert words_in(told) == ["ready", "SIGCONT", "SIGTERM"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_for_popmodel_is_passed_on(number: signal.Signals, start: Start) -> None:
    name = number.name.removeprefix("SIG")
    child = start(
        f"trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.05; done"
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(number)
    out, _ = child.communicate(timeout=GENEROUS)
    assert (child.returncode, out) == (9, f"got {name}\n")


def test_a_signal_that_another_thread_takes_is_passed_on(tmp_path: Path) -> None:
    """Those of NumPy keep no signal back."""
    ready = tmp_path / "ready"
    code = (
        "import signal, sys, threading\n"
        "from patience import until\n"
        "from pathlib import Path\n"
        "ready = Path(sys.argv.pop())\n"
        "def take():\n"
        "    until(ready.exists, 'the command is there')\n"
        "    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)\n"
        "threading.Thread(target=take).start()\n"
    )
    command = f"trap 'exit 9' TERM; touch {ready}; while :; do sleep 0.05; done"
    done = subprocess.run(
        [sys.executable, "-c", code + RUNNER, "/bin/sh", "-c", command, ready],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        check=False,
        timeout=GENEROUS,
    )
    assert done.returncode == 9


def test_ctrl_c_reaches_the_command_once(start: Start) -> None:
    """A terminal sends it to all processes in its foreground: passing it on would be twice."""
    import pty

    master, slave = pty.openpty()
    code = (
        "import os, fcntl, termios, sys; os.setsid(); "
        f"fcntl.ioctl({slave}, termios.TIOCSCTTY, 0); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    counts = (
        "n=0; trap 'n=$((n+1)); echo came' INT; trap 'echo $n; exit 0' USR1; echo ready; "
        "while :; do sleep 0.05; done"
    )
    child = start(counts, "-c", code, stdin=slave, pass_fds=[slave])
    os.close(slave)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        os.write(master, b"\x03")
        assert child.stdout.readline() == "came\n"
        # Signals are passed on by their numbers: another SIGINT would come before this one.
        child.send_signal(signal.SIGUSR1)
        assert child.communicate(timeout=GENEROUS)[0] == "1\n"
        assert child.returncode == 0
    finally:
        os.close(master)


def test_signals_that_came_are_over_when_it_ends(start: Start) -> None:
    # The command ignores it and has popmodel get it, which it would end.
    child = start("trap '' USR1; for i in 1 2 3 4 5 6 7 8 9; do kill -USR1 $PPID; done; exit 4")
    assert child.wait(GENEROUS) == 4


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
    assert raised.value.message == f"{plain}: cannot be executed on this system"
    assert raised.value.hint == ("a script must begin with its interpreter, such as #!/bin/bash")
    with pytest.raises(CommandError, match="cannot be started: no such file or directory"):
        run(str(tmp_path / "gone"), ["gone"], os.environ)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
