"""What keeps the tests apart from who runs them, from where, and from each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import patience
import pytest
from patience import (
    as_nobody,
    clock_that_leaps,
    is_alive,
    measuring,
    signal_once,
    until,
    words_in,
)
from surroundings import Leftovers, neutral_environment

TESTS = Path(__file__).resolve().parent
EXAMPLES = """
import sys
sys.path.insert(0, sys.argv[1])
if sys.argv[2:]:
    import popmodel.cli.app
import conftest
from hypothesis import given, strategies as st
@given(st.tuples(st.lists(st.integers()), st.text(), st.floats()))
def show(values):
    print(ascii(values))
show()
"""
SIGNALS = """
import signal, sys
sys.path.insert(0, sys.argv[1])
from surroundings import signals_as_at_a_terminal
signals_as_at_a_terminal()
ignored = [s.name for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN]
print(sorted(ignored), signal.getsignal(signal.SIGINT) is signal.default_int_handler,
      signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""


def test_signals_that_the_caller_ignores_are_as_at_a_terminal() -> None:
    def ignore() -> None:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

    done = subprocess.run(
        [sys.executable, "-c", SIGNALS, str(TESTS)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=ignore,
    )
    assert done.stdout == "['SIGPIPE', 'SIGXFSZ'] True set()\n"


def test_the_tests_themselves_run_as_at_a_terminal() -> None:
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    assert "OMP_NUM_THREADS" not in os.environ


def test_examples_of_properties_do_not_depend_on_what_is_loaded() -> None:
    told = set()
    for words, seed in (([], "1"), (["loaded"], "1"), ([], "2")):
        done = subprocess.run(
            [sys.executable, "-c", EXAMPLES, str(TESTS), *words],
            env={**os.environ, "PYTHONHASHSEED": seed, "HYPOTHESIS_PROFILE": "thorough"},
            capture_output=True,
            text=True,
            check=True,
        )
        told.add(done.stdout)
    assert len(told) == 1
    assert done.stdout.count("\n") > 50


NOT_IN_A_PAGE = (".wait_for_function(", ".wait_for_timeout(")


def test_tests_of_pages_wait_for_what_is_seen_from_outside() -> None:
    """A page lets no text be evaluated in it later; and no time is long enough everywhere."""
    texts = {path: path.read_text() for path in TESTS.rglob("*.py") if path != Path(__file__)}
    assert len(texts) > 500
    assert not [path for path, text in texts.items() if any(map(text.__contains__, NOT_IN_A_PAGE))]


def test_variables_that_steer_are_taken_out_and_others_stay() -> None:
    stay = {"PATH": "/bin", "MPICC": "mpicc", "OMPI_CC": "gcc-12", "POPMODEL_SHARED": "/traces"}
    steer = {"OMP_NUM_THREADS": "3", "OMPI_MCA_btl": "self", "SLURM_JOB_ID": "1", "COLUMNS": "9"}
    environment = {**stay, **steer}
    neutral_environment(environment)
    assert environment == stay


def test_what_a_test_leaves_is_found_and_ended(tmp_path: Path) -> None:
    leftovers = Leftovers()
    leftovers.patience = 0.1
    before = leftovers.children()
    hides = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' &"
    subprocess.run(["/bin/sh", "-c", hides], check=True)
    pid = int(until(lambda: words_in(tmp_path / "pid"), "it is up")[0])
    until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n", "it is what it will be")
    assert leftovers.end(before) == [f"{pid} sleep 600"]
    assert not is_alive(pid)
    assert leftovers.end(before) == []


def test_what_is_about_to_end_is_waited_for(tmp_path: Path) -> None:
    leftovers = Leftovers()
    before = leftovers.children()
    ends = f"setsid sh -c 'sleep 0.2; touch {tmp_path}/ended' &"
    subprocess.run(["/bin/sh", "-c", ends], check=True)
    assert leftovers.end(before) == []
    assert (tmp_path / "ended").exists()


def test_days_pass_once_a_condition_holds() -> None:
    holds: list[bool] = []
    clock = clock_that_leaps(lambda: holds)
    begin = clock.monotonic()
    assert clock.monotonic() - begin < patience.GENEROUS
    holds.append(True)
    begin = clock.monotonic()
    assert clock.monotonic() - begin > 86400
    for _ in range(5):
        clock.monotonic()
    begin = clock.monotonic()
    assert clock.monotonic() - begin < patience.GENEROUS


def test_a_signal_comes_when_it_should_or_never() -> None:
    holds: list[bool] = []
    with pytest.raises(KeyboardInterrupt), signal_once(lambda: holds, signal.SIGINT):
        holds.append(True)
        time.sleep(patience.GENEROUS)
    with signal_once(lambda: False, signal.SIGINT):
        pass


@pytest.mark.parametrize(
    ("busy", "throttled", "outcome"),
    [
        (0.0, 0, AssertionError),
        (1e6, 0, pytest.skip.Exception),
        (0.0, 1, pytest.skip.Exception),
    ],
)
def test_times_count_where_nobody_else_uses_the_processors(
    monkeypatch: pytest.MonkeyPatch, busy: float, throttled: int, outcome: type[BaseException]
) -> None:
    others, stops = iter([0.0, busy]), iter([0, throttled])
    monkeypatch.setattr(patience, "_others", lambda: next(others))
    monkeypatch.setattr(patience, "_throttled", lambda: next(stops))
    with pytest.raises(outcome), measuring():
        assert not "slow"


@pytest.mark.parametrize(("slow", "fails"), [(2, False), (3, True)])
def test_times_are_measured_anew(monkeypatch: pytest.MonkeyPatch, slow: int, fails: bool) -> None:
    monkeypatch.setattr(patience, "_others", lambda: 0.0)
    monkeypatch.setattr(patience, "_throttled", lambda: 0)
    measured = []

    @measuring()
    def test() -> None:
        measured.append(1.0)
        assert len(measured) > slow

    with pytest.raises(AssertionError) if fails else nullcontext():
        test()
    assert len(measured) == 3


def test_what_others_use_only_grows() -> None:
    before = patience._others()
    assert patience._others() - before > -1
    assert patience._throttled() >= 0


def test_permissions_bind_the_user_of_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o500)
    with as_nobody(), pytest.raises(PermissionError):
        Path("file").touch()
    tmp_path.chmod(0o700)
    Path("file").touch()
