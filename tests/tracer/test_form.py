"""Merged traces have the form that the tools of Extrae's world read: order, states and gaps.

The same check holds for what Extrae wrote. Dimemas' reader of traces calls a trace with state 0 on
its threads disordered, and its simulation of it stops.
"""

from __future__ import annotations

import gzip
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from tracer.plan import Plan, plans

from popmodel.tracer.conversion import merge

EXTRAE = Path(__file__).parents[1] / "data"
OURS = Path(__file__).parents[2] / "examples" / "traces" / "stencil3d.2x2.prv.gz"
NOT_CREATED = 2


def check(lines: list[str]) -> None:
    """Assert what readers of the format rely on."""
    last = 0
    end: dict[tuple[str, ...], int] = defaultdict(int)
    for line in lines:
        if line[0] not in "123":
            continue
        kind, _, *fields = line.split(":")
        thread, numbers = tuple(fields[:3]), [int(field) for field in fields[3:]]
        time = numbers[1] if kind == "3" else numbers[0]
        assert time >= last, f"out of order: {line}"
        last = time
        if kind != "1":
            continue
        begin, until, state = numbers
        assert until > begin, f"a state of no length: {line}"
        assert state != 0, f"idle time is a gap: {line}"
        assert begin >= end[thread], f"states overlap: {line}"
        if thread[2] == "1":
            assert begin == end[thread], f"a gap in the states of a master: {line}"
        elif not end[thread]:
            assert begin == 0, f"a thread begins in no state: {line}"
            assert state == NOT_CREATED, f"a thread that was not created: {line}"
        end[thread] = until


def text(path: Path) -> list[str]:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()


@pytest.mark.parametrize("name", ["bt-mz.S.2x2", "comd.4", "mixnbc.4"])
def test_traces_of_extrae_have_the_form(name: str) -> None:
    check(text(EXTRAE / f"{name}.prv.gz"))


def test_the_trace_among_the_examples_has_the_form() -> None:
    check(text(OURS))


@settings(max_examples=5)
@given(plans())
def test_a_merged_run_has_the_form(plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = merge(plan.run.write(Path(folder) / "raw"), Path(folder) / "x.prv")
        check(text(told.path))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["1:1:1:1:1:0:9:1", "2:1:1:1:1:9:5:1", "2:1:1:1:1:8:5:0"], "out of order"),
        (["1:1:1:1:1:0:9:1", "1:1:1:1:1:9:12:0"], "idle time is a gap"),
        (["1:2:1:1:2:0:9:1"], "a thread that was not created"),
        (["1:1:1:1:1:0:0:1"], "a state of no length"),
        (["1:1:1:1:1:0:9:1", "1:1:1:1:1:10:12:1"], "a gap in the states of a master"),
        (["1:2:1:1:2:0:9:2", "1:2:1:1:2:8:12:1"], "states overlap"),
        (["1:2:1:1:2:5:9:1"], "a thread begins in no state"),
    ],
)
def test_the_check_can_fail(lines: list[str], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        check(lines)
