"""What a replay's clock shows at times of the measured run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from popmodel.network.network import PRESETS, Network
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.replayer import Replayer
from popmodel.timeline.lanes import LaneClock, clock_of
from popmodel.traces import Trace, read
from popmodel.traces.selection import TracePart, focused

DATA = Path(__file__).parent.parent / "data"
NAMES = sorted(path.name.removesuffix(".prv.gz") for path in DATA.glob("*.prv.gz"))
SLOW = Network(latency=1e-3, bandwidth=1e8)


def clock(trace: Trace, network: Network = PRESETS["ideal"]) -> LaneClock:
    program = from_trace(trace)
    return clock_of(trace, program, Replayer(program).moments(network))


def outside(trace: Trace, rank: int, begin: int, end: int) -> int:
    """Time of a rank's master outside of MPI between two times, ns."""
    calls = trace.calls()
    master = int(trace.process_offsets[rank])
    mine = slice(int(calls.offsets[master]), int(calls.offsets[master + 1]))
    inside = np.minimum(calls.exit[mine], end) - np.maximum(calls.entry[mine], begin)
    return end - begin - int(np.maximum(inside, 0).sum())


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_as_fast_as_the_measured_one_outside_of_calls(name: str) -> None:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    for network in (PRESETS["ideal"], SLOW):
        found = clock(trace, network)
        for rank in range(trace.processes):
            mine = slice(*found.calls.offsets[rank : rank + 2].tolist())
            before, after = found.calls.exit[mine][:-1], found.calls.entry[mine][1:]
            ranks = np.full(len(before), rank)
            passed = found.at(ranks, after) - found.at(ranks, before)
            some = np.arange(0, len(before), max(1, len(before) // 40))
            computed = [outside(trace, rank, int(before[i]), int(after[i])) for i in some]
            assert passed[some] == pytest.approx(computed, abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_it_never_runs_backwards_and_ends_with_the_replay(name: str) -> None:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    found = clock(trace)
    times = np.sort(np.random.default_rng(1).integers(trace.begin, trace.end, 300))
    for rank in range(trace.processes):
        shown = found.at(np.full(len(times), rank), times)
        assert (np.diff(shown) >= 0).all()
    ranks = np.arange(trace.processes)
    assert found.at(ranks, np.full(len(ranks), trace.begin)).tolist() == [0] * len(ranks)
    # Some end their application before the trace ends, and compute no more.
    assert found.at(ranks, np.full(len(ranks), trace.end)) == pytest.approx(found.last, abs=1e-3)


def test_calls_last_as_long_as_the_replay_says() -> None:
    trace, _ = focused(read(DATA / "mix.4.prv.gz"))
    found = clock(trace, SLOW)
    rank = np.repeat(np.arange(4), np.diff(found.calls.offsets))
    long = np.flatnonzero(found.calls.exit > found.calls.entry)
    assert found.at(rank, found.calls.entry)[long] == pytest.approx(found.calls.begin[long], abs=1)
    middle = (found.calls.entry + found.calls.exit) // 2
    half = (found.calls.begin + found.calls.end) / 2
    length = (found.calls.end - found.calls.begin) / np.maximum(
        found.calls.exit - found.calls.entry, 1
    )
    assert (np.abs(found.at(rank, middle) - half)[long] <= length[long]).all()


def test_of_a_window_it_begins_there() -> None:
    whole = read(DATA / "cg.S.2.prv.gz")
    program, _ = focused(whole)
    middle = (program.begin + program.end) // 2
    part, _ = focused(whole, TracePart(begin=middle, end=program.end))
    found = clock(part)
    ranks = np.arange(2)
    assert found.at(ranks, np.full(2, middle)).tolist() == [0, 0]
    runtime = Replayer(from_trace(part)).run(PRESETS["ideal"]).runtime
    assert found.at(ranks, np.full(2, part.end)).max() / 1e9 == pytest.approx(runtime)
