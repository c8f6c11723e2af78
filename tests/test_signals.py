"""Signals that end popmodel."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from popmodel.base.files import ENDING, as_exits


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_through_what_tidies_up(number: signal.Signals) -> None:
    tidied = []
    with pytest.raises(SystemExit) as ended, as_exits():
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            tidied.append(number)
    assert ended.value.code == 128 + number
    assert tidied == [number]
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with as_exits():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_changes_nothing() -> None:
    seen = []

    def look() -> None:
        with as_exits():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
