"""Schedules in GOAL."""

import math
from pathlib import Path

import pytest

from popmodel.base.errors import TraceError, UsageError
from popmodel.network.network import PRESETS, Network
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op
from popmodel.simulator.program_files import write
from popmodel.traces import Trace, read

HINT = "give a schedule as text, such as LogGOPSim's schedgen writes it"


def written(folder: Path, text: str) -> Path:
    path = folder / "x.goal"
    path.write_text(text)
    return path


def schedule(folder: Path, *ranks: str) -> Trace:
    """Read ranks whose operations are separated by semicolons."""
    parts = [f"rank {i} {{\n{rank.replace(';', chr(10))}\n}}\n" for i, rank in enumerate(ranks)]
    return read(written(folder, f"num_ranks {len(ranks)}\n" + "".join(parts)))


def operations(trace: Trace, process: int) -> list[tuple[Op, float]]:
    """Operations of a process, with the burst before each, ns."""
    program = from_trace(trace)
    mine = slice(*program.offsets[process : process + 2])
    return [
        (Op(kind), burst)
        for kind, burst in zip(program.kind[mine], program.burst[mine].tolist(), strict=True)
    ]


def test_operations_that_need_one_another_follow_one_another(tmp_path: Path) -> None:
    trace = schedule(
        tmp_path,
        "a: calc 100; b: send 8b to 1 tag 5; b requires a; c: calc 7; c requires b",
        "r: recv 8b from 0 tag 5; s: calc 20; s requires r",
    )
    assert operations(trace, 0) == [(Op.SEND, 100)]
    assert operations(trace, 1) == [(Op.RECEIVE, 0)]
    program = from_trace(trace)
    assert program.tail.tolist() == [7, 20]
    assert (program.messages.size.tolist(), program.messages.tag.tolist()) == ([8], [5])
    assert replay(program, Network(latency=1e-6)).end == pytest.approx([107e-9, 1120e-9])
    assert [each.text for each in trace.warnings] == [
        "no measured times: computation takes as many ns as the schedule says, MPI calls take none"
    ]
    assert not trace.timed


@pytest.mark.parametrize(
    ("text", "number", "problem"),
    [
        ("hello\n", 1, "must be num_ranks or rank, not 'hello'"),
        ("num_ranks 1\nrank 1 {\n", 2, "rank 1 of num_ranks 1"),
        ("num_ranks 1\nrank 0 {\n}\nrank 0 {\n", 4, "rank 0 is given twice"),
        ("num_ranks 1\nrank 0 {\nfly 3\n", 3, "not an operation of a rank: 'fly 3'"),
        ("num_ranks 1\nrank 0 {\nsend 3b to 1\n", 3, "rank 1 of num_ranks 1"),
        (
            "num_ranks 1\nrank 0 {\nrecv 3b from -1\n",
            3,
            "a receive from any rank or with any tag: name them",
        ),
        ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 1\n", 4, "label 'a' is used twice"),
        ("num_ranks 1\nrank 0 {\na requires b\n", 3, "no operation 'a' before this line"),
        (
            f"num_ranks 1\nrank 0 {{\ncalc {10**16}\n",
            3,
            f"{10**16} is larger than can be represented",
        ),
        (
            f"num_ranks {'9' * 5000}\n",
            1,
            f"{'9' * 40} is larger than can be represented",
        ),
    ],
)
def test_lines_that_cannot_be_used(tmp_path: Path, text: str, number: int, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == f"{path}:{number}: {problem}"
    assert caught.value.hint == HINT


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file has no schedule"),
        (f"num_ranks {10**15}\n", "no operations of rank 0"),
        ("num_ranks 2\nrank 0 {\n}\n", "no operations of rank 1"),
        ("num_ranks 1\nrank 0 {\n", "rank 0 has no end: } is missing"),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n",
            "operations of rank 0 need one another ('a' first)",
        ),
        (
            "num_ranks 1\nrank 0 {\nsend 3b to 0\n}\n",
            "1 send of process 0 to process 0 with tag 0, but 0 receives",
        ),
    ],
)
def test_schedules_that_cannot_be(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert caught.value.message == f"{path}: {problem}"
    with pytest.raises(UsageError, match="no application 2"):
        read(path, application=2)


def ends(folder: Path, *ranks: str) -> list[float]:
    """Of each rank, ns, where LogGOPSim's L is 2500 ns, o 1500 ns, G and O are 0."""
    text = f"num_ranks {len(ranks)}\n"
    text += "".join(f"rank {rank} {{\n{lines}\n}}\n" for rank, lines in enumerate(ranks))
    network = PRESETS["alpha-beta"].with_(
        latency=2.5e-6,
        bandwidth=math.inf,
        send_overhead=1.5e-6,
        receive_overhead=1.5e-6,
        eager_threshold=32768,
    )
    return [end * 1e9 for end in replay(from_trace(read(written(folder, text))), network).end]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (
            "l1: calc 1000000 cpu 0\nl2: calc 1000000 cpu 1\nl3: calc 1000000 cpu 2\n"
            "l4: calc 1000000 cpu 3\nl5: send 8b to 1 tag 1 cpu 0\nl5 requires l1",
            "l1: recv 8b from 0 tag 1 cpu 0",
            [1001500, 1005500],
        ),
        ("calc 100\ncalc 200 cpu 1\ncalc 300\ncalc 250 cpu 1", "calc 5", [450, 5]),
        (
            "l1: calc 1000\nl2: send 8b to 1 tag 3\nl2 requires l1\nl3: calc 9000 cpu 1",
            "l1: recv 8b from 0 tag 3\nl2: calc 500\nl2 requires l1\nl3: calc 20000 cpu 1",
            [9000, 20000],
        ),
        (
            "l1: calc 40000\nl2: send 100000b to 1 tag 3\nl2 requires l1\nl4: calc 700\n"
            "l4 requires l2",
            "l1: recv 100000b from 0 tag 3\nl2: calc 500\nl2 requires l1\nl3: calc 20000 cpu 1",
            [44700, 46000],
        ),
        (
            "l1: calc 5000\nl2: send 8b to 1 tag 3 cpu 1\nl3: calc 100 cpu 1\nl3 requires l2",
            "l1: recv 8b from 0 tag 3 cpu 1\nl2: calc 500 cpu 1\nl2 requires l1\nl3: calc 20000",
            [5000, 20000],
        ),
        (
            "l1: send 8b to 1 tag 3\nl2: send 8b to 1 tag 4 cpu 1",
            "l1: recv 8b from 0 tag 3\nl2: recv 8b from 0 tag 4 cpu 1\nl3: calc 700 cpu 1\n"
            "l3 requires l2\nl4: calc 900\nl4 requires l1",
            [1500, 6400],
        ),
        (
            "l1: send 8b to 1 tag 3 cpu 0 nic 0\nl2: send 8b to 1 tag 4 cpu 1 nic 1",
            "l1: recv 8b from 0 tag 3 cpu 0 nic 0\nl2: recv 8b from 0 tag 4 cpu 1 nic 1",
            [1500, 5500],
        ),
    ],
)
def test_processors_of_a_rank_work_at_once_as_in_loggopsim(
    first: str, second: str, expected: list[int], tmp_path: Path
) -> None:
    assert ends(tmp_path, first, second) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("needs", "end"),
    [
        ("l1: calc 1000\nl2: calc 500 cpu 1\nl2 requires l1", 1500),
        ("l1: calc 1000\nl3: calc 50\nl2: calc 500 cpu 1\nl2 requires l1", 1500),
        ("l1: send 8b to 1\nl2: calc 500 cpu 1\nl2 irequires l1", 2000),
        ("l1: send 8b to 1\nl2: calc 500 cpu 1\nl2 requires l1\nl2 irequires l1", 2000),
        ("l1: recv 8b from 1\nl2: calc 500 cpu 1\nl2 requires l1", 106000),
        ("l1: recv 8b from 1\nl3: calc 9\nl2: calc 500 cpu 1\nl2 irequires l1", 105500),
    ],
)
def test_an_operation_needs_one_of_another_processor(needs: str, end: int, tmp_path: Path) -> None:
    """By the definition of GOAL; LogGOPSim does not let a processor wait for another one."""
    other = "calc 5"
    if "send" in needs:
        other = "recv 8b from 0"
    elif "recv" in needs:
        other = "l1: calc 100000\nl2: send 8b to 0\nl2 requires l1"
    assert ends(tmp_path, needs, other)[0] == pytest.approx(end)


def test_threads_are_not_lost_in_other_formats(tmp_path: Path) -> None:
    program = from_trace(read(written(tmp_path, "num_ranks 1\nrank 0 {\ncalc 3 cpu 1\n}\n")))
    with pytest.raises(UsageError, match="1 further thread of processes would be lost"):
        write(program, tmp_path / "x.ti")
