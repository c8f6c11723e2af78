"""Traces of one program and of different ones, told apart by names."""

import pytest
from synthetic import Program, programs, run

from popmodel.structure.same_program import difference


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
    ("what", "first", "other", "said"),
    [
        (
            "user regions",
            steps(marked("solve")),
            steps(marked("sort")),
            "user regions sort instead of solve",
        ),
        (
            "parallel regions",
            steps(region("sweep"), threads=2),
            steps(region("multiply"), threads=2),
            "parallel regions multiply instead of sweep",
        ),
        (
            "functions that call MPI",
            steps(allreduce("main", "app.c", 1), allreduce("norm", "app.c", 2)),
            steps(allreduce("main", "app.c", 1), allreduce("dot", "app.c", 2)),
            "functions that call MPI dot instead of norm",
        ),
        (
            "source files",
            steps(allreduce("main", "one.c", 1)),
            steps(allreduce("main", "two.c", 1)),
            "source files two.c instead of one.c",
        ),
        (
            "communication",
            programs.jacobi((4,), 3, how="sendrecv"),
            programs.jacobi((4,), 3),
            "communication MPI_Irecv, MPI_Isend, MPI_Waitall instead of MPI_Sendrecv",
        ),
    ],
)
def test_names_tell_programs_apart(traced, what, first, other, said):
    found = difference(traced(first), traced(other))
    assert found is not None
    assert (found.what, str(found)) == (what, said)


def test_of_many_names_the_first_are_said(traced):
    many = [region(name) for name in "abcde"]
    found = difference(traced(steps(region("sweep"))), traced(steps(*many)))
    assert str(found) == "parallel regions a, b, c and 2 more instead of sweep"


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
