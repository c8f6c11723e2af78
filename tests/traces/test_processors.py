"""Whether threads had a processor each."""

from pathlib import Path

import pytest

from popmodel.efficiency.measure import analyse
from popmodel.traces import Trace, read
from popmodel.traces.caveats import crowding, waiting
from popmodel.traces.codes import Event
from popmodel.traces.info import info
from popmodel.traces.paraver.writer import TraceWriter

S = 10**9


def run(folder: Path, *threads: tuple[int, int, int, int], processes: int = 2) -> Trace:
    """Threads of processes of one thread: processors, who shares them, s used and waited."""
    writer = TraceWriter([1] * processes)
    for process in range(processes):
        writer.state(process, 0, 0, 10 * S, 1)
    for process, (cpus, sharing, used, waited) in enumerate(threads):
        writer.event(process, 0, 0, [(Event.CPUS, cpus), (Event.SHARING, sharing)])
        if used or waited:
            writer.event(process, 0, 10 * S, [(Event.USED, used * S), (Event.WAITED, waited * S)])
    writer.write(folder / "x.prv")
    return read(folder / "x.prv")


def test_a_run_of_which_it_is_not_known(tmp_path: Path) -> None:
    assert crowding(run(tmp_path)) == []
    assert waiting(run(tmp_path)) == 0


@pytest.mark.parametrize("waited", [0, 1])
def test_threads_that_have_a_processor_each(tmp_path: Path, waited: int) -> None:
    """A little waiting is there always."""
    threads = [(2, 2, 200, waited)] * 2
    assert crowding(run(tmp_path, *threads)) == []


def test_more_threads_than_processors_are_said_first(tmp_path: Path) -> None:
    trace = run(tmp_path, (1, 2, 5, 5), (1, 2, 6, 4))
    text = (
        "more threads than CPUs: 2 threads may use only 1 CPU (thread 0 of rank 0 is "
        "one of them); they waited for a CPU 45 % of the time that they were ready to run; the "
        "measured times include this waiting"
    )
    assert crowding(trace) == [text]
    assert analyse(trace).caveats[0] == text
    assert info(trace)["caveats"] == [text]
    assert crowding(trace.window(S, 2 * S)) == [text]
    assert waiting(trace) == waiting(trace.window(S, 2 * S)) == 9 / 20


def test_threads_of_which_the_kernel_does_not_say_how_long_they_waited(tmp_path: Path) -> None:
    trace = run(tmp_path, (1, 4, 0, 0), (4, 4, 0, 0))
    assert crowding(trace) == [
        "more threads than CPUs: 4 threads may use only 1 CPU (thread 0 of rank 0 is "
        "one of them; 1 of 2 threads share a CPU); the measured times include this waiting"
    ]


def test_threads_that_share_and_never_run_at_a_time_are_no_matter(tmp_path: Path) -> None:
    assert crowding(run(tmp_path, (1, 2, 5, 0), (1, 2, 5, 0))) == []


def test_a_busy_machine(tmp_path: Path) -> None:
    assert crowding(run(tmp_path, (2, 2, 10, 0), (2, 2, 6, 4))) == [
        "threads waited for a CPU 20 % of the time that they were ready to run (most: thread 0 "
        "of rank 1): other programs ran on the same CPUs; the measured times include this "
        "waiting"
    ]
