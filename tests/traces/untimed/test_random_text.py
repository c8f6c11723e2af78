"""The compiled readers of GOAL and SMPI on random text, right and wrong.

That of GOAL agrees with a plain one; what that of SMPI reads is held by SimGrid's own answers
(tests/simulator/test_simgrid.py), here it says the same however the text is cut into pieces.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.untimed import goal

from popmodel.base.errors import TraceError
from popmodel.traces import Trace, read
from popmodel.traces.untimed import untimed_trace

COLUMNS = ("offsets", "entry", "exit", "name", "partner", "tag", "bytes", "request")


def told(trace: Trace) -> dict[str, Any]:
    """All that a reader says, as plain lists."""
    calls, exact = trace.calls(), trace.records.exact
    assert exact is not None
    collectives = calls.collectives
    columns = ("call", "sent", "received", "communicator", "is_root")
    return {
        **{name: getattr(calls, name).tolist() for name in COLUMNS},
        "names": (calls.names, calls.group),
        "collectives": [getattr(collectives, name).tolist() for name in columns],
        "parts": {call: parts.tolist() for call, parts in collectives.parts.items()},
        "times": (exact.entry.tolist(), exact.end.tolist()),
        "bursts": [getattr(trace.states, each).tolist() for each in ("offsets", "begin", "end")],
        "processes": (trace.process_offsets.tolist(), trace.end),
        "warnings": trace.warnings,
    }


def answer(reader: Callable[[Path], Trace], path: Path) -> Any:
    """What a reader says of a file: a trace, or what is wrong."""
    try:
        return told(reader(path))
    except TraceError as error:
        return error.message, error.hint


def in_pieces(path: Path, text: str) -> Any:
    """What the compiled reader says of a text that comes in pieces."""
    path.write_text(text)
    with patch.object(untimed_trace, "CHUNK", 1 + len(text) % 61):
        return answer(read, path)


def assert_as_the_plain_reader(path: Path, text: str) -> None:
    assert in_pieces(path, text) == answer(goal.read, path), text


def assert_as_in_one_piece(path: Path, text: str) -> None:
    found = in_pieces(path, text)
    assert found == answer(read, path), text
    if isinstance(found, tuple):
        assert str(path) in found[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


# Schedules: each rank has operations, some on a second processor, and needs among them, of which
# every one goes to an operation that is written before; messages have both ends, or miss one.

KINDS = st.sampled_from(["calc", "send", "recv"])
OPERATION = st.tuples(KINDS, st.integers(0, 900), st.integers(0, 2), st.integers(0, 1))
NEED = st.tuples(st.integers(0, 30), st.integers(0, 30), st.booleans())
RANKS = st.lists(
    st.tuples(st.lists(OPERATION, max_size=8), st.lists(NEED, max_size=10)), min_size=1, max_size=3
)


def schedule(ranks: list[Any], *, two_processors: bool, paired: bool, cyclic: bool) -> str:
    lines: list[list[str]] = [[] for _ in ranks]
    counts = [0] * len(ranks)

    def add(rank: int, text: str, cpu: int) -> None:
        place = f" cpu {cpu}" if two_processors else ""
        lines[rank].append(f"l{counts[rank]}: {text}{place}")
        counts[rank] += 1

    for rank, (operations, _) in enumerate(ranks):
        for kind, amount, other, cpu in operations:
            peer = other % len(ranks)
            if kind == "calc":
                add(rank, f"calc {amount}", cpu)
                continue
            ends = [(rank, f"{kind} {amount}b {'to' if kind == 'send' else 'from'} {peer} tag 3")]
            if paired:
                back = f"recv {amount}b from" if kind == "send" else f"send {amount}b to"
                ends.append((peer, f"{back} {rank} tag 3"))
            for end, text in ends:
                add(end, text, cpu)
    for rank, (_, needs) in enumerate(ranks):
        for later, earlier, complete in needs:
            if counts[rank] > 1:
                ends = [later % counts[rank], earlier % counts[rank]]
                if not cyclic:
                    ends.sort(reverse=True)
                if cyclic or ends[0] != ends[1]:
                    what = "requires" if complete else "irequires"
                    lines[rank].append(f"l{ends[0]} {what} l{ends[1]}")
    ranked = (f"rank {rank} {{\n{chr(10).join(of)}\n}}" for rank, of in enumerate(lines))
    return f"num_ranks {len(ranks)}\n" + "\n".join(ranked) + "\n"


@given(ranks=RANKS, two_processors=st.booleans(), paired=st.booleans())
def test_schedules(folder: Path, ranks: list[Any], two_processors: bool, paired: bool) -> None:
    text = schedule(ranks, two_processors=two_processors, paired=paired, cyclic=False)
    assert_as_the_plain_reader(folder / "x.goal", text)


@given(ranks=RANKS)
def test_schedules_whose_operations_need_one_another(folder: Path, ranks: list[Any]) -> None:
    text = schedule(ranks[:1], two_processors=False, paired=True, cyclic=True)
    assert_as_the_plain_reader(folder / "x.goal", text)


LINES_OF_GOAL = st.sampled_from(
    [
        *("num_ranks 2", "rank 0 {", "rank 1 {", "rank 2{", "}", "a: calc 5", "a:calc 5 cpu 1"),
        *("calc 7 nic 3", "calc  8 cpu 2 nic 1", "calc 9 cpu 1234", "calc x", "calc: calc 3"),
        *("send 8b to 1", "send 8 b to 1 tag 4", "recv 8b from 0 tag 4 cpu 1", "send 8b to 5"),
        *("recv 8b from -1", "send 8b to 1 tag -1", "sends 8b to 1", "b: recv 1b from 1"),
        *("a requires b", "b irequires a", "calc requires a", "a  requires  zz", "a needs b"),
        *("/* on", "off */", "// all", "calc 3 // rest", "calc /* 4 */ 5", "/ calc 3", "  "),
        *("calc 99999999999999999999", "calc 9007199254740993", "\t}\r", "é", 'it\'s \\ "x"'),
    ]
)


@given(st.lists(LINES_OF_GOAL, max_size=14), st.booleans())
def test_lines_of_schedules(folder: Path, lines: list[str], begun: bool) -> None:
    begin = ["num_ranks 2", "rank 0 {"] if begun else []
    text = "\n".join([*begin, *lines]).replace("é", "")
    assert_as_the_plain_reader(folder / "x.goal", text)


# Traces of SMPI.

ACTIONS = st.sampled_from(
    [
        *("init", "init 1", "compute 1e6", "compute 7.25", "compute 123456789.125", "sleep 1e-3"),
        *("compute .5", "compute 5.", "compute 1.7976931348623157e308", "compute 3e-30"),
        *("compute 12345678901234567890", "compute 0.30000000000000004", "compute -1"),
        *("compute nan", "compute 1e400", "compute x", "compute", "COMPUTE 5", "wait 1 0 3"),
        *("isend 1 3 10 1", "irecv 0 3 10 1", "send 1 3 10 1", "recv 0 3 10 1", "send 0 3 4"),
        *("recv -333 3 10 1", "irecv 0 -444 -1", "recv -1 -1 10 0", "send -1 3 1", "ssend 1 3 1"),
        *("recv -666 3 1", "send 1 -7 1", "isend 1 +3 1 6", "test 0 1 3", "testall", "waitall 2"),
        *("sendrecv 4 1 4 0 1 1", "sendrecv 4 1 4 -666", "barrier", "bcast 8 0 0", "bcast 8 1"),
        *(
            "reduce 8 100 1 0",
            "allreduce 8 1 0",
            "gather 4 5 1 1 2",
            "scatter 4 5 1 6 6",
            "iscan 1 1",
        ),
        *("allgather 4 4 1 1", "alltoall 4 4", "gatherv 4 1 2 0 1 1", "alltoallv 9 1 2 9 3 4 1 1"),
        *("scatterv 1 2 3 0", "allgatherv 1 2 3", "reducescatter 4 5 6 1", "iallreduce 8 1 0"),
        *("exscan 4 4", "wait 0 1 -1003", "allreduce 8 1 -1", "allreduce 8 1 99", "bcast 1e17"),
        *("put 1", "io 3", "start", "fly 'x'", "location", "comm_split", "finalize", "ibarrier"),
        *("allreduce 1e15 1 0", "alltoall 1e15 1e15", "wait 0 1 3", "send 2147483648 0 1", ""),
    ]
)
RANK = st.sampled_from(["0", "1", "p0", "rank-1", "p1"])
LINES_OF_SMPI = st.one_of(
    *[st.tuples(RANK, ACTIONS).map(" ".join)] * 6,
    st.tuples(RANK, ACTIONS).map("  ".join),
    st.sampled_from(["# remark", "", "x compute 1", "0", "-1 init", "1234567890 init", " # no"]),
)


@given(st.lists(LINES_OF_SMPI, max_size=12), st.booleans())
def test_lines_of_smpi(folder: Path, lines: list[str], finished: bool) -> None:
    text = "\n".join(["0 init", "1 init", *lines]) + ("\n" if finished else "")
    assert_as_in_one_piece(folder / "x.ti", text)


# What the ranks do together: sends and receives in any order, some receives of any, tests.

EXCHANGES = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(3, 5),
        st.sampled_from(["send", "isend", "ssend"]),
        st.sampled_from(["recv", "irecv", "any", "any tag", "test"]),
        st.integers(0, 3),
    ),
    max_size=9,
)


@given(EXCHANGES)
def test_messages_that_are_received_from_any(folder: Path, exchanges: list[Any]) -> None:
    lines = [f"{rank} init" for rank in range(3)]
    for sender, receiver, tag, send, receive, amount in exchanges:
        lines += [f"{sender} compute {amount}e3", f"{sender} {send} {receiver} {tag} 4 1"]
        source, wanted = str(sender), str(tag)
        if receive in ("any", "any tag"):
            source, wanted = ("-333", wanted) if receive == "any" else (source, "-444")
        posted = "recv" if receive == "recv" else "irecv"
        lines += [f"{receiver} {posted} {source} {wanted} 4 1", f"{receiver} compute {amount}5"]
        if receive == "test":
            lines += [f"{receiver} test {source} {receiver} {wanted}"] * 2
        if receive != "recv":
            lines.append(f"{receiver} wait {source} {receiver} {wanted}")
        if amount == 0:
            lines += [f"{rank} barrier" for rank in range(3)]
    assert_as_in_one_piece(folder / "x.ti", "\n".join(lines) + "\n")
