"""Traces of one program and of different ones, told apart by the sites that hold their time."""

import re

import pytest
from synthetic import Program, programs, run

import popmodel
from popmodel.runs.same_program import difference
from popmodel.traces.paraver.writer import TraceWriter


@pytest.fixture
def traced(tmp_path):
    """The trace of a program, in a folder of its own."""

    def read(program):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return run(program).read(folder)

    return read


def steps(*acts, processes=2, threads=1):
    """A program of some acts, three times; each makes what a rank does."""

    def body(me):
        for _ in range(3):
            yield me.compute(1e-4, "step")
            for act in acts:
                yield from act(me)

    return Program(processes, body, threads)


def allreduce(function="", file="", line=0):
    def act(me):
        yield me.collective("Allreduce", 8, site=(function, file, line) if function else None)

    return act


def region(name):
    def act(me):
        yield me.region(name, 1e-4)

    return act


def marked(name):
    def act(me):
        yield me.enter(name)
        yield me.compute(1e-4, "inside")
        yield me.leave()

    return act


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (
            programs.jacobi((2, 2), 4, threads=2),
            programs.jacobi((3, 3), 9, threads=2, cells=(99, 99)),
        ),
        (programs.jacobi((1,), 4), programs.jacobi((2, 2), 4)),
        (programs.butterfly(2, 3), programs.butterfly(8, 5)),
    ],
)
def test_sizes_do_not_make_another_program(traced, small, large):
    one, other = traced(small), traced(large)
    assert difference(one, other) is None
    assert difference(other, one) is None


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        (
            steps(region("sweep"), threads=2),
            steps(region("multiply"), threads=2),
            "parallel region in multiply instead of parallel region in sweep",
        ),
        (
            steps(allreduce("norm", "app.c", 2), allreduce("main", "app.c", 1)),
            steps(allreduce("dot", "app.c", 2), allreduce("main", "app.c", 1)),
            "MPI_Allreduce in dot instead of MPI_Allreduce in norm",
        ),
    ],
)
def test_sites_that_hold_the_time_tell_programs_apart(traced, first, other, said):
    told = difference(traced(first), traced(other))
    assert told.sure
    assert told.text == f"the sites that they share hold 0 % of the computing ({said})"


def test_sites_that_hold_little_time_do_not(traced):
    first = steps(allreduce("main", "app.c", 1), allreduce("norm", "app.c", 2))
    other = steps(allreduce("main", "app.c", 1), allreduce("dot", "app.c", 2))
    assert difference(traced(first), traced(other)) is None


def test_of_many_names_the_first_are_said(traced):
    many = [region(name) for name in "abcde"]
    found = difference(traced(steps(region("sweep"))), traced(steps(*many)))
    assert found is not None
    assert re.search(r"\(.*, .*, .* and \d+ more instead of ", found.text)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("app+0x11a0 (app.c:40)", "app+0x23c0 (app.c:44)"),
        ("sweep (region 1)", "sweep"),
        ("sweep", "app+0x11a0 (app.c:40)"),
    ],
)
def test_another_build_is_not_another_program(traced, first, other):
    one, two = (traced(steps(region(name), threads=2)) for name in (first, other))
    assert difference(one, two) is None


def test_one_process_need_not_communicate_as_several_do(traced):
    def alone(me):
        other = me.rank ^ 1 if me.size > 1 else me.rank
        yield me.sendrecv(other, 8, other)

    def together(me):
        requests = [(yield me.irecv(me.rank ^ 1)), (yield me.isend(me.rank ^ 1, 8))]
        yield me.waitall(requests)

    several = traced(steps(together))
    assert difference(traced(steps(alone, processes=1)), several) is None
    assert difference(traced(steps(alone)), several) is not None


def test_parts_are_of_the_program_of_their_runs(traced):
    one, other = traced(steps(region("a"), region("b"))), traced(steps(region("b"), region("a")))
    first, last = (one.window(one.begin, one.end // 4), other.window(other.end // 2, other.end))
    assert difference(first, last) is None


def test_kinds_of_calls_in_other_numbers_leave_a_doubt(real_trace):
    one, other = (popmodel.read(real_trace(name)) for name in ("cg.S.2", "is.S.4"))
    told = difference(one, other)
    assert told is not None
    assert not told.sure


def test_kinds_of_calls_that_only_one_run_makes_leave_a_doubt(traced):
    """One run exchanges with its neighbour, the other only reduces."""

    def exchange(me):
        yield me.sendrecv(me.rank ^ 1, 8, me.rank ^ 1)

    told = difference(traced(steps(allreduce())), traced(steps(exchange)))
    assert told is not None
    assert not told.sure
    assert told.text.endswith("(MPI_Sendrecv instead of none)")
    assert difference(traced(steps(allreduce(), processes=1)), traced(steps(exchange))) is None


def test_runs_without_calls_tell_nothing(traced, tmp_path):
    def exchange(me):
        yield me.sendrecv(me.rank ^ 1, 8, me.rank ^ 1)

    writer = TraceWriter([1, 1], duration=100)
    writer.state(0, 0, 0, 100, 1)
    writer.write(tmp_path / "x.prv")
    assert difference(popmodel.read(tmp_path / "x.prv"), traced(steps(exchange))) is None
