"""The trace among the examples is what its README says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from popmodel import traces as reader
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import MeasuredRun, analyse, runtime
from popmodel.network.network import preset
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.traces.recorded_run import Trace
from popmodel.traces.selection import TracePart, focused

TRACE = Path(__file__).parents[2] / "examples" / "traces" / "stencil3d.2x2.prv.gz"
MOST_BYTES = 200_000


@pytest.fixture(scope="module")
def trace() -> Trace:
    return reader.read(TRACE)


def test_it_is_small_and_names_no_place() -> None:
    assert TRACE.stat().st_size < MOST_BYTES
    labels = TRACE.with_name("stencil3d.2x2.pcf").read_text()
    assert "stencil3d.c:180" in labels
    assert not re.search(r"(^|[ (])/", labels, re.MULTILINE)


def test_its_messages_are_faces_of_the_cube(trace: Trace) -> None:
    assert trace.messages.size.tolist() == [200 * 200 * 8] * 200
    process = trace.process_of_location()
    assert set(process[trace.messages.sender].tolist()) == {0, 1}
    assert (process[trace.messages.sender] + process[trace.messages.receiver] == 1).all()
    assert trace.warnings == ()


def test_its_efficiencies_are_those_of_the_readme(trace: Trace) -> None:
    values = efficiencies(analyse(trace))
    assert round(100 * values["parallel_efficiency"]) == 61
    assert round(100 * values["thread_efficiency"]) == 66
    whole = efficiencies(analyse(trace, part=TracePart(from_start=True)))
    assert round(100 * whole["parallel_efficiency"]) == 57


def efficiencies(run: MeasuredRun) -> Mapping[str, float]:
    """Those of the additive hybrid family."""
    observed = run.observables
    return (
        load_families()["hybrid-additive"].evaluate(observed.aggregates(), observed.absent).values
    )


def test_the_ideal_network_is_worth_what_the_readme_says(trace: Trace) -> None:
    window, focus = focused(trace)
    program = from_trace(window)
    ideal = replay(program, preset("ideal"))
    assert round(100 * (1 - ideal.runtime / runtime(window))) == 2
    assert round((focus.before + focus.after) / 1e6) == 59
    assert any("2,000 point-to-point calls without" in str(note) for note in program.notes)
