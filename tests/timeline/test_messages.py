"""Messages and critical paths on lanes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.timeline.timeline import LIMITS, Timeline, timeline
from popmodel.traces import read
from popmodel.traces.selection import focused

DATA = Path(__file__).parent.parent / "data"
NAMES = sorted(path.name.removesuffix(".prv.gz") for path in DATA.glob("*.prv.gz"))


def shown(name: str, **limits: int) -> Timeline:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    return timeline(trace, limits=dataclasses.replace(LIMITS, **limits))


def test_all_messages_are_there_where_there_are_few() -> None:
    trace, _ = focused(read(DATA / "comd.4.prv.gz"))
    found = timeline(trace).messages
    told = trace.messages
    assert found.every == len(found) == len(told.size)
    assert found.note is None
    order = np.argsort(told.logical_send, kind="stable")
    assert found.sent.tolist() == told.logical_send[order].tolist()
    assert found.received.tolist() == told.physical_receive[order].tolist()
    assert found.sender.tolist() == told.sender[order].tolist()
    assert found.size.tolist() == told.size[order].tolist()


def test_else_the_largest_are() -> None:
    every, few = shown("comd.4").messages, shown("comd.4", arrows=100).messages
    assert few.note == "the 100 largest of 984 messages"
    assert sorted(few.size) == sorted(every.size)[-100:]
    assert (np.diff(few.sent) >= 0).all()


@pytest.mark.parametrize("name", ["cg.S.2", "comd.4", "mix.4", "mixpers.4"])
def test_the_replay_has_the_same_messages_and_none_takes_time(name: str) -> None:
    # Of the whole run, where every message has both ends.
    found = timeline(
        read(DATA / f"{name}.prv.gz"), limits=dataclasses.replace(LIMITS, arrows=10**6)
    )
    assert found.ideal_messages is not None and found.ideal_end is not None
    one, other = found.messages, found.ideal_messages
    assert sorted(zip(one.sender, one.receiver, one.size, strict=True)) == sorted(
        zip(other.sender, other.receiver, other.size, strict=True)
    )
    assert (other.received >= other.sent).all()
    assert other.received.max() <= found.begin + found.ideal_end


@pytest.mark.parametrize("name", NAMES)
def test_the_critical_path_leads_through_the_replay(name: str) -> None:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    for most in (10**6, 20):
        found = timeline(trace, limits=dataclasses.replace(LIMITS, stretches=most))
        path = found.path
        assert path is not None and found.ideal_end is not None
        assert 0 < len(path) <= most
        assert path.begin[0] == found.begin
        assert path.begin[1:].tolist() == path.end[:-1].tolist()
        runtime = replay(from_trace(trace), PRESETS["ideal"]).runtime
        assert (path.end[-1] - found.begin) / 1e9 == pytest.approx(runtime, abs=2e-9)
        assert (path.lane[1:] != path.lane[:-1]).all()
        assert bool(path.shortest) == (most == 20 and path.changes >= 20)


def test_all_of_the_path_is_computing_in_the_lanes() -> None:
    found = shown("cg.S.2")
    assert found.path is not None and found.ideal is not None
    middle = (found.path.begin + found.path.end) // 2
    long = found.path.end - found.path.begin > 4 * found.axis.step
    kinds = found.ideal.kind[found.path.lane[long], (middle[long] - found.begin) // found.axis.step]
    assert long.sum() > 50
    assert (kinds == 1).mean() > 0.98
