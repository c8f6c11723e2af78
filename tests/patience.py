"""Waiting for what a test is about, however slow the machine is."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest

GENEROUS = 600.0
"""Seconds after which what is waited for hangs."""
_STEP = 0.01
_NOBODY = 65534
_DAY = 86400.0  # s
_OTHERS = 0.1  # share of the processors from which on they are busy
_NOT_HELD = (AssertionError, LookupError)
_TRIES = 3

Found = TypeVar("Found")


def until(condition: Callable[[], Found], what: str) -> Found:
    """Wait until a condition holds, and give it."""
    end = time.monotonic() + GENEROUS
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {GENEROUS:.0f} s: {what}"
        time.sleep(_STEP)
    return found


def words_in(path: Path) -> list[str]:
    """Words that somebody has written into a file; none as long as it is not there."""
    return path.read_text().split() if path.exists() else []


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def clock_that_leaps(condition: Callable[[], object]) -> SimpleNamespace:
    """Stand in for the module `time`: once a condition holds days pass between looks at the clock.

    So what hangs is found out at once, and only that, however long the limit is. It is some days
    and not one: who looks may take in at the first of them what was there before.
    """
    looks = 0

    def monotonic() -> float:
        nonlocal looks
        if looks or condition():
            looks += 1
        return time.monotonic() + _DAY * min(max(looks - 1, 0), 4)

    return SimpleNamespace(monotonic=monotonic, sleep=time.sleep)


@contextmanager
def signal_once(condition: Callable[[], object], number: signal.Signals) -> Iterator[None]:
    """Send this process a signal as soon as a condition holds; never after the block."""
    over = threading.Event()

    def wait() -> None:
        while not over.wait(_STEP):
            if condition():
                os.kill(os.getpid(), number)
                return

    sender = threading.Thread(target=wait)
    sender.start()
    try:
        yield
    finally:
        over.set()
        sender.join()


class measuring(ContextDecorator):
    """What is demanded of times in this block must hold, unless the processors were busy.

    A time that is not there, as it could not be measured, is demanded as well. A test has several
    tries to measure: of what slows a virtual machine (its neighbours' use of caches, memory and
    clock) nothing is told in it.
    """

    def __enter__(self) -> None:
        self._before = time.monotonic(), _others(), _throttled()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not issubclass(kind, _NOT_HELD):
            return
        begin, before, throttled = self._before
        share = (_others() - before) / (time.monotonic() - begin) / (os.cpu_count() or 1)
        if share > _OTHERS:
            pytest.skip(f"times cannot be told: others used {share:.0%} of the processors")
        if _throttled() > throttled:
            pytest.skip("times cannot be told: the processors were withdrawn at times (cgroup)")

    def __call__(self, test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def measure(*arguments: object, **fixtures: object) -> None:
            for at in range(_TRIES):
                try:
                    with measuring():
                        test(*arguments, **fixtures)
                    break
                except _NOT_HELD:
                    if at == _TRIES - 1:
                        raise

        return measure


def _others() -> float:
    """Seconds of all processors that were not idle, without those of this process and its own."""
    line = Path("/proc/stat").read_text().partition("\n")[0]
    user, nice, system, _idle, _waiting, hard, soft, steal = map(int, line.split()[1:9])
    own = sum(os.times()[:4])
    return (user + nice + system + hard + soft + steal) / os.sysconf("SC_CLK_TCK") - own


def _throttled() -> int:
    """How often a quota has stopped the processes of this container; 0 where there is none."""
    numbers = words_in(Path("/sys/fs/cgroup/cpu.stat"))
    return int(dict(zip(numbers[::2], numbers[1::2], strict=True)).get("nr_throttled", 0))


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be a user whom permissions bind: root may read and write everything."""
    user = os.geteuid()
    if user != 0:
        yield
        return
    try:
        os.seteuid(_NOBODY)
    except OSError as error:
        pytest.skip(f"root may write everywhere, and cannot be another user here: {error.strerror}")
    try:
        yield
    finally:
        os.seteuid(user)


def shell_loop(condition: str) -> str:
    """Give shell words that wait until a condition holds."""
    return f"until {condition}; do sleep 0.01; done"
