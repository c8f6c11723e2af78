"""Which region each lane is in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from synthetic import Program, Rank, run
from synthetic.program import Steps

from popmodel.timeline.lanes import NamedStates, TimeAxis, named_regions, rows_of
from popmodel.traces import Trace, read
from popmodel.traces.selection import focused


@pytest.fixture
def nested(tmp_path: Path) -> Trace:
    """Ten steps: 1 ms in none, then a step that holds a part and a parallel region."""

    def body(me: Rank) -> Steps:
        for _ in range(10):
            yield me.compute(1e-3, even=True)
            yield me.enter("step")
            yield me.compute(2e-3, even=True)
            yield me.enter("part")
            yield me.compute(3e-3, even=True)
            yield me.leave()
            yield me.region("loop", 4e-3, even=True)
            yield me.leave()
            yield me.collective("Barrier")

    return run(Program(2, body, threads=2), startup=0.0).read(tmp_path)


def shares(found: NamedStates, row: int) -> dict[str, float]:
    count = np.bincount(found.region[row], minlength=len(found.names) + 1) / found.region.shape[1]
    return dict(zip(("", *found.names), count.tolist(), strict=True))


def named(trace: Trace, columns: int = 2000, most: int = 30) -> NamedStates:
    trace, _ = focused(trace)
    return named_regions(
        trace, TimeAxis.over(trace.begin, trace.duration, columns), rows_of(trace, 512), most
    )


def test_the_innermost_region_is_shown(nested: Trace) -> None:
    found = named(nested)
    told = {name: number for number, name in enumerate(found.names)}
    assert set(told) == {"step", "part", "loop"}
    assert found.names[0] == "loop"  # the one that lasts longest
    wanted = {"": 0.1, "step": 0.2, "part": 0.3, "loop": 0.4}
    assert shares(found, 0) == pytest.approx(wanted, abs=0.01)
    # A worker is in the regions of its team only.
    wanted = {"": 0.6, "step": 0.0, "part": 0.0, "loop": 0.4}
    assert shares(found, 1) == pytest.approx(wanted, abs=0.01)


def test_regions_without_a_name_of_their_own_are_others(nested: Trace) -> None:
    found = named(nested, most=2)
    assert found.names == ("loop", "other regions")
    wanted = {"": 0.1, "loop": 0.4, "other regions": 0.5}
    assert shares(found, 0) == pytest.approx(wanted, abs=0.01)


def test_a_step_shows_the_region_that_takes_most_of_it(nested: Trace) -> None:
    found = named(nested, columns=10)
    assert [found.names[each - 1] for each in found.region[0].tolist()] == ["loop"] * 10


def test_a_trace_without_regions_has_none() -> None:
    data = Path(__file__).parent.parent / "data"
    found = named(read(data / "cg.S.2.prv.gz"))
    assert found.names == ()
    assert not found.region.any()
