"""Signals that end popmodel: as an exception, so that what was begun is tidied up and told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def as_exits() -> Iterator[None]:
    """End with the status that shells give a signal, through all ``finally`` on the way.

    Outside the main thread nothing is changed: signals do not arrive there.
    """

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    taken = []
    if threading.current_thread() is threading.main_thread():
        # One that whoever started us has had ignored stays ignored.
        taken = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
