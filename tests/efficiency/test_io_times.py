"""The family of I/O: MPI-IO and POSIX, against a plain loop and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_files import DATA

import popmodel
from popmodel.traces.codes import INPUT_OUTPUT, RUNNING, TOGETHER
from popmodel.traces.paraver.writer import TraceWriter

POSIX, FLUSH, MPI_IO, WRITE_ALL, BARRIER = 40000004, 40000003, 50000005, 128, 8


class Step(NamedTuple):
    kind: str  # compute, posix, flush, mpi-io, posix in mpi-io, barrier
    lasts: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["compute", "posix", "flush", "mpi-io", "posix in mpi-io", "barrier"]),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=8,
)


def trace_of(ranks: list[list[Step]], path: Path) -> Path:
    length = max(sum(step.lasts for step in steps) for steps in ranks)
    writer = TraceWriter([1] * len(ranks), communicators={1: list(range(len(ranks)))})
    for rank, steps in enumerate(ranks):
        time = 0
        spent = sum(step.lasts for step in steps)
        for kind, lasts in [*steps, Step("compute", length - spent)]:
            end = time + lasts
            state = RUNNING if kind == "compute" else INPUT_OUTPUT
            writer.state(rank, 0, time, end, TOGETHER if kind == "barrier" else state)
            types = {
                "posix": [(POSIX, 1)],
                "flush": [(FLUSH, 1), (POSIX, 2)],
                "mpi-io": [(MPI_IO, WRITE_ALL)],
                "posix in mpi-io": [(MPI_IO, WRITE_ALL), (POSIX, 2)],
                "barrier": [(50000002, BARRIER), (50100004, 1)],
            }.get(kind, [])
            if types:
                writer.event(rank, 0, time, types)
                ends = [(type_, 0) for type_, _ in types if type_ != 50100004]
                writer.event(rank, 0, end, ends)
            time = end
    writer.write(path)
    return path


@settings(deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=3))
def test_random_runs_are_as_a_plain_loop_finds_them(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[list[Step]]
) -> None:
    length = max(sum(step.lasts for step in steps) for steps in ranks)
    by_rank = [
        {
            kinds: sum(step.lasts for step in steps if step.kind in kinds)
            for kinds in (("posix",), ("mpi-io", "posix in mpi-io"), ("compute",))
        }
        for steps in ranks
    ]
    idle = sum(length - sum(step.lasts for step in steps) for steps in ranks)
    posix, mpi, useful = (sum(times[kinds] for times in by_rank) for kinds in by_rank[0])
    useful += idle  # ranks compute to the end
    most = max(sum(list(times.values())[:2]) for times in by_rank)
    run = popmodel.metrics(str(trace_of(ranks, tmp_path_factory.mktemp("io") / "x.prv")))
    evaluation = run.evaluations[0]["io"]
    expected: dict[str, float] = {}
    if posix or mpi:
        expected["io_efficiency"] = useful / (useful + posix + mpi)
        expected["io_load_balance"] = (posix + mpi) / len(ranks) / most
    if mpi:
        expected["mpi_io_efficiency"] = 1 - mpi / (len(ranks) * length)
    if posix:
        expected["posix_io_efficiency"] = 1 - posix / (len(ranks) * length)
    assert evaluation.values == pytest.approx(expected)
    assert not evaluation.notes


def test_a_window_cuts_io(tmp_path: Path) -> None:
    steps = [Step("compute", 10), Step("posix", 20), Step("mpi-io", 10)]
    path = trace_of([steps], tmp_path / "x.prv")
    run = popmodel.metrics(str(path), window="15ns:35ns")
    assert run["io.posix_io_efficiency"] == pytest.approx(1 - 15 / 20)
    assert run["io.mpi_io_efficiency"] == pytest.approx(1 - 5 / 20)
    assert run["io.io_load_balance"] == 1


def test_a_run_without_io_has_a_reason_and_no_such_family_by_default() -> None:
    run = popmodel.metrics(str(DATA / "comd.4.prv.gz"))
    assert "io" not in run.to_dict()["runs"][0]["metrics"]
    asked = popmodel.metrics(str(DATA / "comd.4.prv.gz"), family="io").to_dict()["runs"][0]
    assert set(asked["absent"]["io"].values()) == {"no I/O in the trace"}


def test_only_one_kind_of_io_leaves_the_other_absent(tmp_path: Path) -> None:
    path = trace_of([[Step("compute", 10), Step("posix", 20)]], tmp_path / "x.prv")
    run = popmodel.metrics(str(path))
    assert run.evaluations[0]["io"].absent == {"mpi_io_efficiency": "no time in MPI-IO"}
    assert "io" in run.to_dict()["runs"][0]["metrics"]
