"""Where the records of a trace contradict each other, every verb that computes from it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.traces.paraver.writer import TraceWriter

from .conftest import MS, Call

OVERLAP = "the states of rank 0 overlap by 40 ms, which count twice"
RUNNING = 1
VERBS = (
    ("metrics",),
    ("inspect",),
    ("inspect", "--show", "info"),
    ("inspect", "--show", "phases"),
    ("whatif",),
    ("whatif", "--network", "ideal"),
    ("signature", "from"),
    ("report", "-o", "-", "--format", "html"),
)


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TraceWriter:
    """Twenty steps of 5 and 6 ms before an allreduce of 1 ms at least."""
    monkeypatch.chdir(tmp_path)
    writer = TraceWriter([1, 1])
    for rank in range(2):
        for begin in range(0, 140 * MS, 7 * MS):
            called = begin + (5 + rank) * MS
            for time, value in ((called, 10), (begin + 7 * MS, 0)):
                writer.event(rank, 0, time, [(50000002, value)])
    return writer


def states(writer: TraceWriter, computing: int) -> None:
    """Their states; `computing` is that outside of calls."""
    for rank in range(2):
        for begin in range(0, 140 * MS, 7 * MS):
            called = begin + (5 + rank) * MS
            writer.state(rank, 0, begin, called, computing)
            writer.state(rank, 0, called, begin + 7 * MS, 13)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_every_verb_says_that_states_overlap(steps: TraceWriter, popmodel: Call) -> None:
    states(steps, RUNNING)
    for rank in range(2):
        for begin in range(0, 140 * MS, 7 * MS):
            steps.state(rank, 0, begin + 1 * MS, begin + 3 * MS, RUNNING)
    steps.write("x.prv")
    for verb in VERBS:
        status, out, err = popmodel(*verb, "x.prv")
        assert (status, err) == (0, ""), verb
        assert flat(out).count(OVERLAP) > 0, verb
    advice = flat(popmodel("metrics", "x.prv")[1])
    assert advice.startswith(f"-> Doubtful: {OVERLAP}. Parallel efficiency is 61.1 %.")
    assert advice.count(OVERLAP) == 1
    assert "Check" not in advice


def test_a_prediction_names_the_runs_whose_records_contradict_each_other(
    steps: TraceWriter, popmodel: Call
) -> None:
    states(steps, RUNNING)
    steps.state(0, 0, 0, 40 * MS, RUNNING)
    steps.write("x.prv")
    out = flat(popmodel("predict", "x.prv", "--procs", "4")[1])
    assert f"x.prv: {OVERLAP}" in out


def test_threads_that_are_never_running_are_said(steps: TraceWriter, popmodel: Call) -> None:
    states(steps, 0)
    steps.write("x.prv")
    told = "no thread of 2 processes is ever running by its states: efficiencies take it for idle"
    for verb in VERBS:
        assert told in flat(popmodel(*verb, "x.prv")[1]), verb
    out = flat(popmodel("metrics", "x.prv")[1])
    assert out.startswith("-> No advice: no thread is running by its states.")
    assert "Its parts are unknown" not in out


def test_time_in_which_threads_do_not_run_is_told_from_computing(
    steps: TraceWriter, popmodel: Call
) -> None:
    for rank in range(2):
        for begin in range(0, 140 * MS, 7 * MS):
            called = begin + (5 + rank) * MS
            steps.state(rank, 0, begin, begin + MS, RUNNING)
            steps.state(rank, 0, begin + MS, called, 12)
            steps.state(rank, 0, called, begin + 7 * MS, 13)
    steps.write("x.prv")
    out = flat(popmodel("inspect", "x.prv")[1])
    assert "-> load balance 100.0 % of the 18.2 % of their time outside of calls in which" in out
