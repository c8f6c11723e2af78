"""Real programs, traced and merged: what they count themselves is in the trace, and it replays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tracer.builder import tally
from tracer.traced import Run

from popmodel import traces as reader
from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.tracer.conversion import merge

TRUNCATED = 70
"""Tag of a message that is longer than its receive: it arrives, but is not counted."""
UNSIGNED = 0xFFFFFFFF
"""Tags of exchanges between neighbours are below 0; records hold them without a sign."""


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("name", "ranks"),
    [("messages", 2), ("completion", 2), ("collectives", 4), ("communicators", 4), ("timed", 2)],
)
def test_a_real_program_is_in_its_trace(
    run: Run, program: Callable[..., Path], tmp_path: Path, name: str, ranks: int
) -> None:
    done = run.start(ranks, program(name), tmp_path / "file")
    assert done.returncode == 0, done.stderr
    told = merge(run.raw, tmp_path / "x.prv.gz")
    trace = reader.read(told.path)
    # In a run of milliseconds some processes do end long before others.
    assert [w.text for w in trace.warnings if "end long before" not in w.text] == []
    calls, warnings = tally(trace)
    assert warnings == ()

    counted = run.counted()
    expected = sum((Counter(each["calls"]) for each in counted), Counter())
    assert Counter(told.calls) == Counter({f"MPI_{call}": n for call, n in expected.items()})
    assert set(calls) >= {f"MPI_{call}" for call in expected if not call.startswith(("Te", "Ip"))}

    process = trace.process_of_location()
    found = Counter(
        zip(
            process[trace.messages.sender].tolist(), process[trace.messages.receiver].tolist(),
            trace.messages.tag.tolist(), trace.messages.size.tolist(),
            strict=True,
        )
    )  # fmt: skip
    sent = [(rank["rank"], to, tag & UNSIGNED, size) for rank in counted
            for what, to, tag, size in map(tuple, rank["messages"]) if what == "sent"]  # fmt: skip
    received = [(source, rank["rank"], tag & UNSIGNED, size) for rank in counted
                for what, source, tag, size in map(tuple, rank["messages"])
                if what == "received"]  # fmt: skip
    truncated = Counter({key: n for key, n in found.items() if key[2] == TRUNCATED})
    assert truncated.total() == (ranks if name == "messages" else 0)
    assert found - truncated == Counter(received)
    lost = Counter(sent) - found  # cancelled, or nobody received them
    unreceived = sum(w.count for w in told.warnings if w.text.startswith("sends without"))
    assert lost.total() == unreceived

    for location in range(trace.locations):
        mine = slice(trace.states.offsets[location], trace.states.offsets[location + 1])
        assert np.array_equal(trace.states.begin[mine][1:], trace.states.end[mine][:-1])
    execution = replay(from_trace(trace), PRESETS["ideal"])
    assert 0 < execution.runtime * 1e9 < trace.end
