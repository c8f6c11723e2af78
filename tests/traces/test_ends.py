"""When processes end."""

from pathlib import Path

from popmodel.traces import read
from popmodel.traces.paraver.writer import TraceWriter


def test_a_process_ends_where_it_says_so_else_with_its_last_record(tmp_path: Path) -> None:
    writer = TraceWriter([1, 2, 1, 1], duration=200)
    writer.event(0, 0, 90, [(40000001, 0)])
    writer.state(0, 0, 0, 100, 1)
    writer.state(1, 0, 0, 70, 1)
    writer.event(1, 1, 95, [(40000001, 0)])  # of a thread that is not the master
    writer.event(2, 0, 80, [(50000001, 0)])
    writer.write(tmp_path / "x.prv")
    assert read(tmp_path / "x.prv").ends().tolist() == [90, 70, 80, 0]
