"""Where iterations begin."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic import Program, Rank, run
from synthetic.program import Steps

from popmodel.timeline.timeline import marks_of
from popmodel.traces import Trace, read
from popmodel.traces.selection import TracePart, focused

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def twenty(tmp_path: Path) -> tuple[Trace, list[int]]:
    """Twenty iterations, and when the last process begins each."""

    def body(me: Rank) -> Steps:
        for _ in range(20):
            yield me.iteration()
            yield me.compute(1e-3)
            yield me.collective("Allreduce", 8)
        yield me.last()

    done = run(Program(3, body), transient=0.1)
    begins = [max(times) for times in zip(*done.iterations, strict=True)][:-1]
    return done.read(tmp_path), begins


def test_iterations_are_marked_where_the_last_process_begins_them(
    twenty: tuple[Trace, list[int]],
) -> None:
    trace, begins = twenty
    found = marks_of(focused(trace)[0], 500)
    assert found is not None
    assert (found.first, found.every, found.count) == (1, 1, 20)
    assert found.at.tolist() == pytest.approx(begins, abs=20_000)


def test_of_a_window_only_those_inside(twenty: tuple[Trace, list[int]]) -> None:
    trace, begins = twenty
    part, _ = focused(trace, TracePart(begin=begins[4] - 200_000, end=begins[9] - 200_000))
    found = marks_of(part, 500)
    assert found is not None
    assert (found.first, found.count) == (5, 5)


def test_where_there_are_many_every_second_or_third_is_marked(
    twenty: tuple[Trace, list[int]],
) -> None:
    whole = marks_of(focused(twenty[0])[0], 500)
    found = marks_of(focused(twenty[0])[0], 7)
    assert found is not None and whole is not None
    assert (found.every, found.count, len(found.at)) == (3, 20, 7)
    assert found.at.tolist() == whole.at[::3].tolist()


def test_occurrences_of_a_region_have_none() -> None:
    trace = read(DATA.parent.parent / "examples" / "traces" / "stencil3d.2x2.prv.gz")
    part, _ = focused(trace, TracePart(region="stencil3d+0x2670 (stencil3d.c:180)"))
    assert part.pieces is not None and len(part.pieces) > 1
    assert marks_of(part, 500) is None


def test_a_run_that_repeats_nothing_has_none(tmp_path: Path) -> None:
    def body(me: Rank) -> Steps:
        yield me.compute(1e-3)
        yield me.collective("Barrier")

    assert marks_of(run(Program(2, body)).read(tmp_path), 500) is None
