"""Regions: which part of each burst belongs to which of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.script import Script

from popmodel.sensitivity.region_speeds import LAST, OUTSIDE, innermost, regions_of, scaled
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.traces import read
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.selection import TracePart, focused

USER, PARALLEL = 60000019, 60000001
_TYPES = {USER: "User function", PARALLEL: "Parallel (OMP)"}
_NAMES = {USER: {1: "inner", 2: "outer"}, PARALLEL: {1: "DO (open)"}}


class Step(NamedTuple):
    """What a process does next, and for how long."""

    what: str
    length: int


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("regions")


def script(processes, steps) -> Script:
    """All processes do the same, as long as each of them wants."""
    made = Script(processes)
    made.writer._labels = Labels(event_types=_TYPES, event_values=_NAMES)
    for step in steps:
        for process in range(processes):
            length = step.length + 3 * process
            now = made.clock[process]
            match step.what:
                case "compute":
                    made.compute(process, length)
                case "disabled":
                    made.compute(process, length, state=14)
                case "local":
                    made.call(process, "Comm_split", length)
                case "outer" | "inner":
                    made.writer.event(process, 0, now, [(USER, 1 + (step.what == "outer"))])
                case "leave":
                    made.writer.event(process, 0, now, [(USER, 0)])
                case "parallel":
                    made.writer.event(process, 0, now, [(PARALLEL, 1)])
                case "join":
                    made.writer.event(process, 0, now, [(PARALLEL, 0)])
                case name:
                    made.collective(process, name, length)
    made.end()
    return made


def painted(processes, steps) -> dict[tuple[str, int], float]:
    """Computing by region and process, ns, counted step by step."""
    found: dict[tuple[str, int], float] = {}
    last = LAST if {"Barrier", "Allreduce"} & {step.what for step in steps} else OUTSIDE
    for process in range(processes):
        users: list[str] = []
        parallel = ""
        for number, step in enumerate(steps):
            length = step.length + 3 * process
            if step.what in ("inner", "outer"):
                users.append(step.what)
            elif step.what == "leave":
                users.pop()
            elif step.what in ("parallel", "join"):
                parallel = "parallel" if step.what == "parallel" else ""
            elif step.what == "compute" and length:
                calls = [s.what for s in steps[number:] if s.what in ("Barrier", "Allreduce")]
                phase = f"before MPI_{calls[0]}" if calls else last
                where = users[-1] if users else parallel or phase
                found[where, process] = found.get((where, process), 0) + length
    return found


@st.composite
def runs(draw):
    """Steps in which regions are nested, and what is begun is ended."""
    steps, users, parallel = [], [], False
    for _ in range(draw(st.integers(0, 14))):
        kinds = ["compute", "compute", "disabled", "local", "Barrier", "Allreduce"]
        kinds += ["leave"] if users else []
        kinds += [name for name in ("outer", "inner") if name not in users]
        kinds.append("join" if parallel else "parallel")
        what = draw(st.sampled_from(kinds))
        if what == "leave":
            users.pop()
        elif what in ("outer", "inner"):
            users.append(what)
        elif what in ("parallel", "join"):
            parallel = what == "parallel"
        length = draw(st.integers(1, 50)) if what not in ("leave", "outer", "inner") else 0
        steps.append(Step(what, length))
        if what in ("outer", "inner"):  # of two that begin together a trace has no order
            steps.append(Step("compute", 1))
    steps += [Step("leave", 0)] * len(users) + [Step("join", 0)] * parallel
    return steps


def times(regions, program) -> dict[tuple[str, int], float]:
    """Computing by region and process, ns, without zeros."""
    cells = regions.by_process(program)
    names = [
        "parallel" if k == "parallel region" else n
        for n, k in zip(regions.names, regions.kinds, strict=True)
    ]
    return {(names[r], p): cells[r, p] for r, p in zip(*np.nonzero(cells), strict=True)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(processes=st.integers(1, 3), steps=runs())
def test_every_nanosecond_of_computing_belongs_to_one_region(folder, processes, steps):
    trace = script(processes, steps).read(folder)
    program = from_trace(trace)
    assert times(regions_of(program, trace), program) == painted(processes, steps)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=runs(), begin=st.integers(0, 39), length=st.integers(1, 300))
def test_parts_of_a_burst_add_up_to_it_in_any_window(folder, steps, begin, length):
    whole = script(2, [Step("compute", 40), *steps]).read(folder)
    trace = focused(whole, TracePart(begin, begin + length))[0]
    program = from_trace(trace)
    regions = regions_of(program, trace)
    parts = np.bincount(regions.row, regions.time, program.operations + program.processes)
    assert parts.tolist() == [*program.burst.tolist(), *program.tail.tolist()]
    assert np.all(regions.time > 0)


def test_a_region_cut_out_of_a_run_is_all_of_it(folder):
    steps = [Step("compute", 5), Step("outer", 0), Step("compute", 20), Step("Barrier", 4)]
    steps += [Step("compute", 30), Step("leave", 0), Step("compute", 7)]
    whole = script(2, steps).read(folder)
    trace = focused(whole, TracePart(region="outer", from_start=True))[0]
    program = from_trace(trace)
    found = times(regions_of(program, trace), program)
    assert {name for name, _ in found} <= {"outer", "before MPI_Barrier", LAST}
    assert found["outer", 0] == 50
    assert found["outer", 1] == 56


@pytest.mark.parametrize("name", ["bt-mz.S.2x2", "mix.4", "comd.4"])
def test_parts_of_the_bursts_of_real_traces_add_up(name):
    trace = focused(read(f"tests/data/{name}.prv.gz"))[0]
    program = from_trace(trace)
    regions = regions_of(program, trace)
    parts = np.bincount(regions.row, regions.time, program.operations + program.processes)
    assert parts.tolist() == [*program.burst.tolist(), *program.tail.tolist()]
    assert np.all(regions.time > 0)
    assert regions.by_process(program).sum(axis=0).tolist() == program.compute().tolist()


def test_parallel_regions_of_a_hybrid_run_are_regions():
    trace = focused(read("tests/data/bt-mz.S.2x2.prv.gz"))[0]
    regions = regions_of(from_trace(trace), trace)
    named = dict(zip(regions.names, regions.kinds, strict=True))
    assert named["exact_rhs_"] == "parallel region"
    assert named["before MPI_Waitall"] == "phase"


def test_a_program_without_a_trace_has_phases():
    builder = ProgramBuilder(2)
    barrier = builder.collective("barrier")
    for process in range(2):
        builder.compute(process, 1.5e-9 * (process + 1))
        builder.do(process, Op.COLLECTIVE, barrier)
    builder.compute(0, 1e-9)
    program = builder.build()
    regions = regions_of(program)
    assert regions.names == ("before collective", LAST)
    assert regions.by_process(program).tolist() == [[1.5, 3.0], [1.0, 0.0]]


@given(factor=st.floats(0, 2), process=st.integers(0, 1))
def test_scaling_changes_one_region_of_one_process(factor, process):
    builder = ProgramBuilder(2)
    barrier = builder.collective("barrier")
    for each in range(2):
        builder.compute(each, 10e-9)
        builder.do(each, Op.COLLECTIVE, barrier)
        builder.compute(each, 7e-9)
    program = builder.build()
    regions = regions_of(program)
    factors = np.ones((2, 2))
    factors[0, process] = factor
    other = scaled(program, regions, factors)
    expected = [10.0, 10.0]
    expected[process] = 10.0 * factor
    assert other.burst.tolist() == expected
    assert other.tail.tolist() == program.tail.tolist()


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 9)), max_size=12
    ).filter(lambda rows: len({row[:2] for row in rows}) == len(rows))
)
def test_of_intervals_that_cross_the_one_that_began_last_holds(rows):
    location = np.array([row[0] for row in rows], np.int64)
    begin = np.array([row[1] for row in rows], np.int64)
    end = begin + np.array([row[2] for row in rows], np.int64)
    which, since, until = innermost(location, begin, end)
    held = {}
    for interval, low, high in zip(which.tolist(), since.tolist(), until.tolist(), strict=True):
        assert low < high
        for now in range(low, high):
            assert (location[interval], now) not in held
            held[int(location[interval]), now] = interval
    expected = {}
    for where in range(3):
        for now in range(30):
            open_ = np.flatnonzero((location == where) & (begin <= now) & (now < end))
            if len(open_):
                expected[where, now] = int(open_[np.argmax(begin[open_])])
    assert held == expected
