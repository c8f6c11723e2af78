"""Programs of Dimemas; that they say what Dimemas says is in tests/simulator/test_dimemas.py."""

from pathlib import Path

import pytest

from popmodel.base.errors import TraceError, UsageError
from popmodel.simulator.from_trace import from_trace
from popmodel.traces import read

HINT = "give a .dim file as prv2dim writes it, with one thread in each task"
HEADER = '#DIMEMAS:"x":1,0000000:2(1,1),1,0,0'
ALL = "d:1:1:2:0:1"


def written(folder: Path, *lines: str) -> Path:
    path = folder / "x.dim"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_messages_may_leave_out_the_thread_of_the_partner_and_events_are_counted(
    tmp_path: Path,
) -> None:
    path = written(
        tmp_path,
        HEADER,
        ALL,
        "20:0:0:50000001:1",
        "2:0:0:1:8:5:1:0",
        "0:0:0",
        "3:1:0:0:8:5:1:0",
        "s:0:40",
    )
    trace = read(path)
    assert [(each.text, each.count) for each in trace.warnings] == [
        ("no measured times: bursts are as the program says, MPI calls take none", 1),
        ("events (not used)", 1),
    ]
    messages = from_trace(trace).messages
    assert (messages.size.tolist(), messages.tag.tolist()) == ([8], [5])


@pytest.mark.parametrize(
    ("lines", "number", "problem"),
    [
        (["1:0:0:1"], 1, "must begin with #DIMEMAS, not '1:0:0:1'"),
        (['#DIMEMAS:"x":1,0:2(2,1),1'], 1, "tasks must have one thread each"),
        (['#DIMEMAS:"x":1,0:3(1,1),1'], 1, "3 tasks, but threads of 2 tasks"),
        ([HEADER, "d:1:1:2:0:7"], 2, "a communicator with task 7 of 2"),
        (
            [HEADER.replace("2(", f"{'9' * 5000}(")],
            1,
            f"{'9' * 40} is larger than can be represented",
        ),
        ([HEADER, "1:2:0:1"], 2, "task 2 of 2"),
        ([HEADER, "1:0:1:1"], 2, "thread 1 of task 0: tasks must have one thread"),
        ([HEADER, "1:0:0:x"], 2, "argument 1 of record 1 must be a number, not 'x'"),
        ([HEADER, "2:0:0:1:0:8:5:1:9"], 2, "unknown kind of send: 9"),
        ([HEADER, "3:0:0:1:0:8:5:1:9"], 2, "unknown kind of receive: 9"),
        ([HEADER, "3:0:0:1:0:8:5:1:2"], 2, "no open request from task 1 with tag 5"),
        ([HEADER, "10:0:0:11:1:0:0:8:8:1"], 2, "communicator 1 is not defined"),
        ([HEADER, ALL, "10:0:0:99:1:0:0:8:8:1"], 3, "unknown collective 99"),
        (
            [HEADER, ALL, "10:0:0:11:1:0:0:8:8:2"],
            3,
            "no open request of MPI_Iallreduce on communicator 1",
        ),
        ([HEADER, "11:0:0:1.0"], 2, "unknown record '11'"),
    ],
)
def test_lines_that_cannot_be_used(
    tmp_path: Path, lines: list[str], number: int, problem: str
) -> None:
    path = written(tmp_path, *lines)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == f"{path}:{number}: {problem}"
    assert caught.value.hint == HINT


def test_a_send_without_its_receive(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, "2:0:0:1:0:8:5:1:0", "2:0:0:1:0:8:5:1:0", "3:1:0:0:0:8:5:1:0")
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == (
        f"{path}: 2 sends of process 0 to process 1 with tag 5, but 1 receive"
    )


def test_an_empty_file_another_application_and_a_flop_rate(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="the file has no program"):
        read(written(tmp_path))
    with pytest.raises(UsageError, match="no application 2"):
        read(written(tmp_path, HEADER), application=2)
    with pytest.raises(UsageError) as caught:
        read(written(tmp_path, HEADER), flop_rate=1e9)
    assert caught.value.message.endswith("a flop rate is not valid for Dimemas")
    assert caught.value.hint == "leave it out: computing is given as time"
