"""Timelines of runs of which little is recorded, or nothing fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.base.errors import TraceError
from popmodel.timeline.timeline import LIMITS, Timeline, timeline
from popmodel.traces import read

DATA = Path(__file__).parent.parent / "data"
RUNNING = "1:1:1:1:1:0:1000:1\n1:1:1:2:1:0:1000:1\n"


def of(folder: Path, records: str, duration: int = 1000) -> Timeline:
    path = folder / "x.prv"
    head = f"#Paraver (20/11/2026 at 23:14):{duration}_ns:1(4):1:2(1:1,1:1),0\n"
    path.write_text(head + records)
    return timeline(read(path))


def told(rank: int, begin: int, end: int, type_: int, value: int) -> str:
    where = f"2:1:1:{rank + 1}:1"
    return f"{where}:{begin}:{type_}:{value}\n{where}:{end}:{type_}:0\n"


def test_calls_show_where_no_states_are_recorded(tmp_path: Path) -> None:
    calls = "".join(told(rank, 100, 300, 50000002, 8) for rank in (0, 1))
    found = of(tmp_path, "2:1:1:1:1:0:40000001:1\n" + calls)
    assert found.axis.step == 1
    assert found.measured.kind[0, 99:301].tolist() == [0, *[5] * 200, 0]
    assert found.measured.spent[0, :6].tolist() == [800, 0, 0, 0, 0, 200]


def test_calls_that_contradict_each_other_leave_the_measured_lanes(tmp_path: Path) -> None:
    calls = told(0, 10, 20, 50000002, 8) + told(1, 10, 20, 50000002, 7)
    found = of(tmp_path, RUNNING + calls)
    assert found.ideal is found.path is found.ideal_messages is None
    assert "members of a communicator call different collectives" in found.why_no_ideal
    assert found.measured.spent[0, 5] == 10
    assert found.sums is not None
    assert found.sums.clock is None


def test_a_replay_may_outlast_the_run(tmp_path: Path) -> None:
    # A message that is received before it is sent: clocks that differ.
    calls = told(1, 10, 20, 50000001, 2) + told(0, 30, 40, 50000001, 1)
    states = ""
    for rank, begin, state in ((0, 30, 4), (1, 10, 3)):
        where = f"1:1:1:{rank + 1}:1"
        states += f"{where}:0:{begin}:1\n{where}:{begin}:{begin + 10}:{state}\n"
        states += f"{where}:{begin + 10}:1000:1\n"
    found = of(tmp_path, states + calls + "3:1:1:1:1:30:40:1:1:2:1:10:20:8:0\n")
    assert found.ideal is not None
    assert found.ideal_end == 1010
    assert found.axis.columns == 1010 > found.columns == 1000
    assert found.ideal.kind[1, 10:30].tolist() == [3] * 20
    assert found.messages.received - found.messages.sent == [-10]


def test_a_trace_that_lasts_no_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        of(tmp_path, "", duration=0)
    assert caught.value.message.endswith("x.prv: lasts 0 s: there is nothing to draw")


def test_a_program_without_times_is_refused() -> None:
    with pytest.raises(TraceError) as caught:
        timeline(read(DATA / "smpi" / "jac2048.4.ti.txt.gz"))
    assert "has no measured times" in caught.value.message
    assert caught.value.hint == "popmodel whatif simulates the run on a network"


def test_lanes_and_columns_keep_to_their_limits() -> None:
    found = timeline(read(DATA / "comd.4.prv.gz"))
    assert found.measured.kind.shape == (len(found.rows), found.axis.columns)
    assert found.measured.kind.size <= LIMITS.cells
    assert found.axis.columns <= LIMITS.columns
