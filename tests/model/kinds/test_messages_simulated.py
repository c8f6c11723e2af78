"""Lists of calls against a simulation of their rows that shares no code with the model."""

from collections import defaultdict, deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import machine, program, whole

from popmodel.network.network import PRESETS
from popmodel.simulator import replay

LATENCY, BANDWIDTH = 3e-6, 1e9
Row = dict[str, Any]


def simulated(rows: list[Row], processes: int) -> list[float]:
    """When each rank ends, if all messages are eager: every rank runs until it has to wait."""
    arrived: dict[tuple[int, int, int], deque[float]] = defaultdict(deque)
    clock = [0.0] * processes
    at = [0] * processes  # next row
    opened: list[list[tuple[int, int, int] | None]] = [[] for _ in range(processes)]
    posted: list[set[int]] = [set() for _ in range(processes)]

    def partner(formula: str, rank: int) -> int:
        return int(eval(formula, {"rank": rank, "P": processes}))

    def send(rank: int, row: Row) -> None:
        to = partner(row["to"], rank)
        if 0 <= to < processes:
            arrives = clock[rank] + LATENCY + row["bytes"] / BANDWIDTH
            arrived[rank, to, row.get("tag", 0)].append(arrives)

    def source(rank: int, row: Row) -> tuple[int, int, int] | None:
        of = partner(row["from"], rank)
        return (of, rank, row.get("tag", 0)) if 0 <= of < processes else None

    def receive(rank: int, key: tuple[int, int, int] | None) -> bool:
        if key is None:
            return True
        if not arrived[key]:
            return False
        clock[rank] = max(clock[rank], arrived[key].popleft())
        return True

    def step(rank: int) -> bool:
        row = rows[at[rank]]
        if "on" in row and not eval(row["on"], {"rank": rank, "P": processes}):
            return True
        match row["do"]:
            case "compute":
                clock[rank] += eval(row["seconds"], {"rank": rank, "P": processes})
            case "send":
                send(rank, row)
            case "isend":
                send(rank, row)
                opened[rank].append(None)
            case "recv":
                return receive(rank, source(rank, row))
            case "irecv":
                opened[rank].append(source(rank, row))
            case "sendrecv":
                if at[rank] not in posted[rank]:
                    posted[rank].add(at[rank])
                    send(rank, row)
                return receive(rank, source(rank, row))
            case "wait":
                if not receive(rank, opened[rank][row.get("request", 0)]):
                    return False
                del opened[rank][row.get("request", 0)]
            case "waitall":
                while opened[rank]:
                    if not receive(rank, opened[rank][0]):
                        return False
                    del opened[rank][0]
        return True

    moved = True
    while moved:
        moved = False
        for rank in range(processes):
            while at[rank] < len(rows) and step(rank):
                at[rank] += 1
                moved = True
    assert all(one == len(rows) for one in at), "the simulation is stuck"
    return clock


def written(row: Row) -> str:
    return "{ " + ", ".join(f"{name} = {value!r}" for name, value in row.items()) + " }"


@st.composite
def shifts(draw: st.DrawFn) -> list[Row]:
    """An exchange with partners some ranks away, on a ring or a line, in one of several ways."""
    by, tag = draw(st.integers(-3, 3)), draw(st.integers(0, 2))
    wrap = " % P" if draw(st.booleans()) else ""
    to, of = f"(rank + {by}){wrap}", f"(rank - {by}){wrap}"
    size = draw(st.sampled_from([0, 8, 1000]))
    sent = {"to": to, "bytes": size, "tag": tag}
    received = {"from": of, "tag": tag}
    work = {"do": "compute", "seconds": f"1e-6 * ((rank * {draw(st.integers(0, 9))}) % 5)"}
    match draw(st.sampled_from(["sendrecv", "blocking", "waitall", "wait", "last first"])):
        case "sendrecv":
            return [work, {"do": "sendrecv", **sent, **received}]
        case "blocking":
            return [{"do": "send", **sent}, work, {"do": "recv", **received}]
        case "waitall":
            posts = [{"do": "irecv", **received}, {"do": "isend", **sent}]
            return [*posts, work, {"do": "waitall"}]
        case "wait":
            posts = [{"do": "irecv", **received}, {"do": "isend", **sent}]
            return [*posts, {"do": "wait"}, work, {"do": "wait"}]
    posts = [{"do": "irecv", **received}, {"do": "isend", **sent}]
    return [*posts, {"do": "wait", "request": 1}, work, {"do": "wait", "request": 0}]


@st.composite
def chains(draw: st.DrawFn) -> list[Row]:
    """A line of processes that pass something on."""
    work = {"do": "compute", "seconds": "1e-6 * (1 + rank % 3)", "on": "rank % 2 == 0"}
    return [
        {"do": "recv", "from": "rank - 1"},
        work,
        {"do": "send", "to": "rank + 1", "bytes": draw(st.integers(0, 500))},
    ]


@given(st.lists(st.one_of(shifts(), chains()), min_size=1, max_size=6), st.integers(1, 7))
def test_ranks_end_when_the_simulation_says(parts: list[list[Row]], processes: int) -> None:
    rows = [row for part in parts for row in part]
    text = ",\n".join(map(written, rows))
    signature = program(f"[[program]]\n[program.messages]\ncalls = [\n{text},\n]\n")
    network = PRESETS["alpha-beta"].with_(
        latency=LATENCY, bandwidth=BANDWIDTH, eager_threshold=float("inf")
    )
    made = whole(signature, machine(), processes, 1).program
    # to itself a message is no message of the simulation's network
    if (made.messages.sender == made.messages.receiver).any():
        return
    found = replay(made, network).end
    assert found.tolist() == pytest.approx(simulated(rows, processes), abs=1e-12)
