"""Sums between edges: where the edges are, and the clock of the ideal replay at them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from popmodel.efficiency.measure import analyse
from popmodel.timeline.timeline import LIMITS, timeline
from popmodel.traces import read
from popmodel.traces.selection import focused

DATA = Path(__file__).parent.parent / "data"
EXAMPLE = DATA.parent.parent / "examples" / "traces" / "stencil3d.2x2.prv.gz"
TRACES = [*sorted(DATA.glob("*.prv.gz")), EXAMPLE]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_the_clock_runs_from_zero_to_the_ideal_runtime(path: Path) -> None:
    trace, _ = focused(read(path))
    sums = timeline(trace).sums
    assert sums is not None and sums.clock is not None
    assert sums.clock[0] == 0
    assert sums.clock[-1] / 1e9 == pytest.approx(analyse(trace).observables.ideal_runtime, rel=1e-9)
    assert (np.diff(sums.clock) >= 0).all()


def test_edges_lie_on_columns_and_the_last_is_the_end() -> None:
    found = timeline(focused(read(EXAMPLE))[0])
    sums = found.sums
    assert sums is not None
    stride = int(sums.edges[1])
    assert sums.edges[:-1].tolist() == list(range(0, stride * (len(sums.edges) - 1), stride))
    assert sums.edges[-1] == found.columns
    assert sums.time[-1] == found.end
    assert (sums.time[:-1] == found.begin + sums.edges[:-1] * found.axis.step).all()


def test_too_many_threads_for_sums_are_said() -> None:
    trace, _ = focused(read(EXAMPLE))
    found = timeline(trace, limits=dataclasses.replace(LIMITS, sums=7 * 4))
    assert found.sums is None
    assert found.why_no_sums == "4 threads are too many for sums of each"
