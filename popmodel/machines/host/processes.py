"""Processes that popmodel starts: all that descends from one of them, and how to end it.

A launcher of MPI puts ranks into groups and sessions of their own, and a process that forks twice
is nobody's child any more. So a tree of processes is known by three signs, any of which suffices:
the session of its first process, the descent seen while it ran, and a mark in the environment that
every descendant inherits.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from types import FrameType

from popmodel.base.values import NamedTuple, dataclass

MARK = "POPMODEL_LAUNCH"
"""Variable that marks the environment of what popmodel started."""

NOT_STARTED = 127
"""Status of a program that the system could not start, as shells have it."""
TOOK_TOO_LONG = 124
"""Status of a program that was ended for its time, as timeout(1) has it."""

_PATIENCE = 3.0  # seconds between asking processes to end and ending them
_FORCED = 20.0  # seconds until processes that were forced are gone: the machine may be busy
_STEP = 0.02
_CHUNK = 1 << 16
# Its standard input ends with popmodel, however that was: then the group $1 is ended.
_WATCHER = """read _; kill -TERM "-$1"
for _ in 1 2 3; do sleep 1; kill -0 "-$1" || exit; done
kill -KILL "-$1"
"""
_PIPE_MOST = 1 << 20  # bytes that a pipe holds at most, for who is not privileged


class Finished(NamedTuple):
    """A program that ended."""

    status: int  # Exit status; negative for a signal; `NOT_STARTED`; `TOOK_TOO_LONG`
    text: str  # What it wrote, standard output and standard error in one

    @property
    def last_line(self) -> str:
        """Last line with words and not a rule of dashes; the exit status where there is none."""
        lines = [line.strip() for line in self.text.splitlines() if re.search(r"\w", line)]
        return lines[-1] if lines else f"{describe_status(self.status)}, no output"

    @property
    def first_error(self) -> str:
        """First line that speaks of an error, else the last line."""
        for line in self.text.splitlines():
            if "error:" in line or "error #" in line or "cannot find" in line:
                return line.strip()
        return self.last_line


class _ProcessEntry(NamedTuple):
    """A process as the system lists it. The start tells it from a later one of the same number."""

    pid: int
    parent: int
    session: int
    start: int
    is_zombie: bool


@dataclass
class ProcessTree:
    """A process that was started, with all that descends from it."""

    child: subprocess.Popen[bytes]  # The process; its session has its number
    mark: str  # What `MARK` is in the environment of the tree
    # Number and start of every process seen so far.
    known: set[tuple[int, int]] = field(default_factory=set)


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    output: int,
    folder: str | os.PathLike[str] | None = None,
) -> ProcessTree:
    """Start a program in a session of its own, without standard input."""
    mark = secrets.token_hex(8)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env={**environment, MARK: mark},
        cwd=folder,
        start_new_session=True,
    )
    tree = ProcessTree(child, mark)
    members(tree)
    return tree


def members(tree: ProcessTree) -> list[int]:
    """Find the processes of a tree that are alive, its first one included.

    Called now and then while the tree runs it also learns of those that are about to leave it.
    """
    entries = {entry.pid: entry for entry in _listing()}
    # Once the first process is waited for, its number may be given to another one.
    first = tree.child.pid if tree.child.returncode is None else None
    began = min((start for _, start in tree.known), default=0)  # no other one is older
    alive = {
        entry.pid
        for entry in entries.values()
        if first in (entry.pid, entry.session)
        or (entry.pid, entry.start) in tree.known
        or (entry.start >= began and _is_marked(entry.pid, tree.mark))
    }
    children: dict[int, list[int]] = {}
    for entry in entries.values():
        children.setdefault(entry.parent, []).append(entry.pid)
    waiting = list(alive)
    while waiting:
        fresh = set(children.get(waiting.pop(), ())) - alive
        alive |= fresh
        waiting += fresh
    tree.known |= {(pid, entries[pid].start) for pid in alive if pid in entries}
    return sorted(pid for pid in alive if pid in entries and not entries[pid].is_zombie)


def end(tree: ProcessTree, patience: float | None = None) -> list[int]:
    """End all processes of a tree: ask them to, wait, then force those that are left."""
    left = members(tree)
    _signal(left, signal.SIGTERM)
    left = _wait(tree, _PATIENCE if patience is None else patience)
    deadline = time.monotonic() + _FORCED
    while left and time.monotonic() < deadline:
        _signal(left, signal.SIGKILL)
        left = _wait(tree, 0.2)
    with suppress(subprocess.TimeoutExpired):  # it is in the list that is returned
        tree.child.wait(0 if left else _FORCED)
    return left


def output_of(
    command: Sequence[str],
    *,
    timeout: float,
    environment: Mapping[str, str],
    folder: str | os.PathLike[str] | None = None,
) -> Finished:
    """Run a program to its end and give what it wrote; nothing of it is left afterwards."""
    reading, writing = os.pipe()
    try:
        with ended_with_us() as interrupts:
            try:
                tree = start(command, environment, output=writing, folder=folder)
            except OSError as error:
                return Finished(NOT_STARTED, f"{command[0]}: {error.strerror}")
            finally:
                os.close(writing)
            try:
                return _finished(tree, reading, timeout, interrupts)
            finally:
                end(tree)
    finally:
        os.close(reading)


def chunks_of(tree: ProcessTree, reading: int, interval: float) -> Iterator[bytes]:
    """Return what a tree writes, as it comes, until its first process has ended."""
    while tree.child.poll() is None:
        ready, _, _ = select.select([reading], [], [], interval)
        chunk = os.read(reading, _CHUNK) if ready else b""
        if ready and not chunk:  # all have closed it: only the end is left to wait for
            with suppress(subprocess.TimeoutExpired):
                tree.child.wait(interval)
        yield chunk
    yield from chunks_there(reading)


def chunks_there(reading: int) -> Iterator[bytes]:
    """Return what is in a pipe already, without waiting for more or for its end.

    Who holds its writing end may do so for ever: descendants that were left behind, or a process
    that cannot be ended.
    """
    # At most what a pipe holds: one who still writes would keep it from ever being empty.
    for _ in range(_PIPE_MOST // _CHUNK):
        if not select.select([reading], [], [], 0)[0]:
            return
        chunk = os.read(reading, _CHUNK)
        if not chunk:
            return
        yield chunk


def describe_status(status: int) -> str:
    """Say in words how a process ended: ``exit status 3`` or ``signal SIGKILL``."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


class Interrupts:
    """Signals that came and have not been acted upon."""

    def __init__(self) -> None:
        self._number: int | None = None

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Keep a signal, the first one: a handler of signals."""
        self._number = self._number or number

    def check(self) -> None:
        """Act upon a signal that came: KeyboardInterrupt for Ctrl-C, else SystemExit."""
        if self._number == signal.SIGINT:
            raise KeyboardInterrupt
        if self._number is not None:
            raise SystemExit(128 + self._number)


@contextmanager
def ended_with_us() -> Iterator[Interrupts]:
    """Keep the signals that end popmodel, so that what it started can be ended first.

    The processes are in a session of their own, which Ctrl-C, a closed terminal or a batch system
    that ends popmodel do not reach. A signal that raised an exception wherever popmodel happens to
    be could do so between the start of a process and the note that there is one; so it is kept, and
    the caller asks for it where nothing can be lost. At the end it is acted upon in any case.
    Outside the main thread nothing is changed: signals do not arrive there.
    """
    interrupts = Interrupts()
    taken = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            # Who ignores or handles a signal (nohup does) keeps it that way.
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                with suppress(ValueError):
                    taken[number] = signal.signal(number, interrupts.note)
        yield interrupts
    finally:
        for number, handler in taken.items():
            signal.signal(number, handler)
        interrupts.check()


@contextmanager
def ended_after_us(tree: ProcessTree) -> Iterator[None]:
    """Have the first process of a tree and its group ended even if popmodel is killed (SIGKILL).

    A launcher of MPI that is asked to end ends its ranks.
    """
    reading, writing = os.pipe()  # nobody else has the writing end: it closes as popmodel dies
    try:
        watcher = subprocess.Popen(
            ["sh", "-c", _WATCHER, "sh", str(tree.child.pid)],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            watcher.kill()
            watcher.wait()
    finally:
        os.close(reading)
        os.close(writing)


def _finished(tree: ProcessTree, reading: int, timeout: float, interrupts: Interrupts) -> Finished:
    deadline = time.monotonic() + timeout
    chunks: list[bytes] = []
    for chunk in chunks_of(tree, reading, _STEP):
        interrupts.check()
        chunks.append(chunk)
        if time.monotonic() > deadline:
            chunks.append(f"\nno answer within {timeout:.3g} s\n".encode())
            return Finished(TOOK_TOO_LONG, b"".join(chunks).decode("utf-8", "replace"))
    return Finished(tree.child.returncode, b"".join(chunks).decode("utf-8", "replace"))


def _wait(tree: ProcessTree, seconds: float) -> list[int]:
    """Wait until a tree has ended, up to a time; give what is alive then."""
    deadline = time.monotonic() + seconds
    while True:
        tree.child.poll()  # a zombie of ours goes
        left = members(tree)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_STEP)


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        # It may have ended since, and another user's (a setuid helper) is not ours to end.
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _listing() -> Iterator[_ProcessEntry]:
    """List the processes of the machine."""
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                with suppress(OSError, ValueError, IndexError):  # it ended while we looked
                    yield _entry(int(entry.name))


def _entry(pid: int) -> _ProcessEntry:
    # The name in brackets may hold blanks and brackets itself: what counts comes after the last.
    fields = _content(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return _ProcessEntry(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        start=int(fields[19]),
        is_zombie=fields[0] in b"ZX",
    )


def _is_marked(pid: int, mark: str) -> bool:
    try:
        environment = _content(f"/proc/{pid}/environ")
    except OSError:  # another user's, or it ended
        return False
    return f"{MARK}={mark}".encode() in environment.split(b"\0")


def _content(path: str) -> bytes:
    """What is in a small file of the system, without what `open` does for large ones."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (a path object costs as much again)
        return file.read()
