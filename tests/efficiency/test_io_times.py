"""The family of I/O: MPI-IO and POSIX, against a plain loop and by hand."""

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_files import DATA

import popmodel
from popmodel.traces.codes import INPUT_OUTPUT, RUNNING, TOGETHER
from popmodel.traces.paraver.writer import TraceWriter

POSIX, FLUSH, MPI_IO, WRITE_ALL, BARRIER = 40000004, 40000003, 50000005, 146, 8
POSIX_BYTES, MPI_BYTES = 40000011, 50000110
READ, WRITE = 1, 2  # calls of POSIX


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
                "posix": [(POSIX, READ), (POSIX_BYTES, 100 * lasts)],
                "flush": [(FLUSH, 1), (POSIX, WRITE)],
                "mpi-io": [(MPI_IO, WRITE_ALL), (MPI_BYTES, 10 * lasts)],
                "posix in mpi-io": [(MPI_IO, WRITE_ALL), (POSIX, WRITE), (POSIX_BYTES, 9)],
                "barrier": [(50000002, BARRIER), (50100004, 1)],
            }.get(kind, [])
            if types:
                writer.event(rank, 0, time, types)
                told = (50100004, POSIX_BYTES, MPI_BYTES)
                ends = [(type_, 0) for type_, _ in types if type_ not in told]
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
    evaluation, io = run.evaluations[0]["io"], run.runs[0].observables.io
    if io is not None and io.read is not None and io.written is not None:
        steps = [step for own in ranks for step in own]
        assert io.read.sum() == 100 * sum(step.lasts for step in steps if step.kind == "posix")
        assert io.written.sum() == 10 * sum(step.lasts for step in steps if step.kind == "mpi-io")
        moved = io.read.sum() + io.written.sum()
        assert run.to_dict()["runs"][0]["observables"]["io_bandwidth"] == pytest.approx(
            moved / (most / 1e9)
        )
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
    told = run.to_dict()["runs"][0]["observables"]
    assert (told["bytes_read"], told["bytes_written"]) == ([0], [100])  # of calls that begin there


def test_bytes_stand_below_the_family(tmp_path: Path) -> None:
    path = trace_of([[Step("posix", 20), Step("mpi-io", 10)]], tmp_path / "x.prv")
    shown = " ".join(str(popmodel.metrics(str(path), family="io")).split())
    assert "1.953 KiB read, 100 B written: 70 GB/s over the longest I/O of a process" in shown


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
