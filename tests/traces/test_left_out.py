"""What a trace says that it leaves out."""

from pathlib import Path

from popmodel.efficiency.measure import analyse
from popmodel.traces import Trace, read
from popmodel.traces.caveats import left_out
from popmodel.traces.codes import Event
from popmodel.traces.info import info
from popmodel.traces.paraver.writer import TraceWriter

TESTS = (
    "tests and probes that found nothing are not recorded in 2 processes: their time "
    "counts as useful"
)
CHUNKS = (
    "requests for loop iterations are not recorded in 1 process from 2 s on "
    "(--max-rate): their time counts as useful"
)


def trace(folder: Path, *events: tuple[int, int, int]) -> Trace:
    """Two processes of four seconds; `events` are process, time and value."""
    script = TraceWriter(threads=(1, 1))
    for process in range(2):
        script.state(process, 0, 0, 4_000_000_000, 1)
    for process, time, value in events:
        script.event(process, 0, time, [(Event.LEFT_OUT, value)])
    script.write(folder / "x.prv")
    return read(folder / "x.prv")


def test_nothing_is_left_out_of_other_traces(tmp_path: Path) -> None:
    assert left_out(trace(tmp_path)) == []


def test_what_is_left_out_is_said_first(tmp_path: Path) -> None:
    found = trace(tmp_path, (0, 5, 1), (1, 7, 1), (1, 2_000_000_000, 12))
    assert left_out(found) == [TESTS, CHUNKS]
    assert list(analyse(found).caveats[-2:]) == [TESTS, CHUNKS]
    assert info(found)["caveats"] == [TESTS, CHUNKS]


def test_a_window_behind_the_mark_says_it_too(tmp_path: Path) -> None:
    found = trace(tmp_path, (0, 5, 1), (1, 7, 1))
    assert left_out(found.window(1_000_000_000, 2_000_000_000)) == [TESTS]
