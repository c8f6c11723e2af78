"""Messages of formats without records of them: calls tell partners, tags and requests."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np
from oracle.programs import operations, targets
from oracle.script import Script

from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.traces import Trace


class Told(NamedTuple):
    """A call and what it tells of itself."""

    name: str
    partner: int = -1
    tag: int = 0
    size: int = 0
    request: int = -1


def run(folder: Path, *processes: list[Told]) -> Trace:
    """A run in which every process computes 10 ns before each of its calls and after the last."""
    script = Script(len(processes))
    for p, calls in enumerate(processes):
        for call in calls:
            script.compute(p, 10)
            script.call(p, call.name, 0)
        script.compute(p, 10)
    script.end()
    trace = script.read(folder)
    told = [call for calls in processes for call in calls]
    columns = {
        "partner": np.array([call.partner for call in told], np.int32),
        "tag": np.array([call.tag for call in told], np.int64),
        "bytes": np.array([call.size for call in told], np.int64),
        "request": np.array([call.request for call in told], np.int32),
    }
    calls = dataclasses.replace(trace.calls(), **columns)
    trace._derived["calls"] = calls
    return trace


def test_the_kth_send_meets_the_kth_receive_of_its_partner_and_tag(tmp_path: Path) -> None:
    trace = run(
        tmp_path,
        [Told("Send", 1, 7, 100), Told("Send", 1, 8, 200), Told("Send", 1, 7, 300)],
        [Told("Recv", 0, 8), Told("Recv", 0, 7), Told("Recv", 0, 7)],
    )
    program = from_trace(trace)
    assert program.messages.size.tolist() == [100, 200, 300]
    assert program.messages.tag.tolist() == [7, 8, 7]
    assert operations(program, 1) == ["RECEIVE", "RECEIVE", "RECEIVE"]
    assert targets(program, 1) == [1, 0, 2]
    assert program.notes == ()


def test_requests_complete_by_their_number(tmp_path: Path) -> None:
    trace = run(
        tmp_path,
        [
            Told("Isend", 1, 0, 100, request=5),
            Told("Irecv", 1, 0, request=6),
            Told("Irecv", 1, 1, request=7),
            Told("Wait", request=7),
            Told("Wait", request=5),
            Told("Wait", request=6),
        ],
        [
            Told("Irecv", 0, 0, request=1),
            Told("Isend", 0, 0, 8, request=2),
            Told("Isend", 0, 1, 9, request=3),
            Told("Waitall"),
        ],
    )
    program = from_trace(trace)
    assert program.messages.size.tolist() == [100, 8, 9]
    assert operations(program, 0) == [
        "ISEND",
        "POST",
        "POST",
        "WAIT_RECEIVE",
        "WAIT_SEND",
        "WAIT_RECEIVE",
    ]
    assert targets(program, 0) == [0, 1, 2, 2, 0, 1]
    assert operations(program, 1) == [
        "POST",
        "ISEND",
        "ISEND",
        "WAIT_RECEIVE",
        "WAIT_SEND",
        "WAIT_SEND",
    ]
    assert targets(program, 1) == [0, 1, 2, 0, 1, 2]
    assert replay(program, PRESETS["ideal"]).end.tolist() == [70e-9, 50e-9]


def test_a_call_without_its_other_side_is_told(tmp_path: Path) -> None:
    trace = run(
        tmp_path,
        [Told("Send", 1, 0, 100), Told("Send", 1, 0, 100), Told("Irecv", 1, request=1)],
        [Told("Recv", 0), Told("Send", 0, 0, 8), Told("Recv")],
    )
    (note,) = from_trace(trace).notes
    assert note.startswith("4 point-to-point calls without a communication record")
    assert "rank 0 in MPI_Send at 0.000000020 s" in note


def test_windows_cut_such_messages_too(tmp_path: Path) -> None:
    trace = run(
        tmp_path,
        [Told("Isend", 1, 0, 100, 1), Told("Wait", request=1), Told("Send", 1, 0, 8)],
        [Told("Irecv", 0, request=4), Told("Wait", request=4), Told("Recv", 0)],
    )
    part = from_trace(trace.window(15, 40))
    assert part.messages.size.tolist() == [100, 8]
    assert operations(part, 0) == ["ISEND", "WAIT_SEND", "SEND"]
    assert targets(part, 0) == [0, 0, 1]
    assert operations(part, 1) == ["POST", "WAIT_RECEIVE", "RECEIVE"]
    assert targets(part, 1) == [0, 0, 1]
