"""Runs a command to its end and gives its exit status, as if the user had started it.

Standard input, output and error are the user's. Signals that are sent to popmodel are passed on;
those that the terminal sends (Ctrl-C) have reached the command already, and a second one would have
a launcher kill what is about to end by itself.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from popmodel.tracer.commands import CommandError

_PASSED_ON = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGCONT,
    }
)
_OF_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Signals that Python ignores for itself, and programs do not."""
_FROM_THE_KERNEL = 0x80  # SI_KERNEL
_LOOK = 1.0  # seconds until one looks again: a caller's other threads may have taken the signal


def run(path: str, words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command to its end."""
    with _kept() as before:
        try:
            child = os.posix_spawn(
                path,
                list(words),
                dict(environment),
                setsigmask=before,
                setsigdef=[number for number in _OF_PYTHON if _is_pythons(number)],
            )
        except OSError as error:
            raise _not_started(path, error) from error
        status = _ended(child)
        # Signals for a command that is gone are none for the work that follows.
        while signal.sigtimedwait(_PASSED_ON, 0) is not None:
            pass
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


@contextmanager
def _kept() -> Iterator[set[int]]:
    """Keep signals until they are asked for; gives those that were kept back before."""
    # Who started us may have had us ignore it: then no child's end would be told, nor its status.
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON | {signal.SIGCHLD})
    try:
        yield {int(number) for number in before}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, handler)


def _ended(child: int) -> int:
    """Wait for the end of a process, passing signals on; its wait status."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            return status
        came = signal.sigtimedwait(_PASSED_ON | {signal.SIGCHLD}, _LOOK)
        if came is None or came.si_signo == signal.SIGCHLD:
            continue
        if came.si_code != _FROM_THE_KERNEL:
            os.kill(child, came.si_signo)


def _is_pythons(number: signal.Signals) -> bool:
    return signal.getsignal(number) == signal.SIG_IGN


def _not_started(path: str, error: OSError) -> CommandError:
    if error.errno == errno.ENOEXEC:
        return CommandError(
            f"{path}: cannot be executed on this system",
            "a script must begin with its interpreter, such as #!/bin/bash",
        )
    reason = (error.strerror or str(error)).lower()
    return CommandError(f"{path}: cannot be started: {reason}", "check its permissions")
