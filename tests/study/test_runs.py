"""The runs of a study: within their budget, without threads where there is no OpenMP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from popmodel.errors import PopmodelError
from popmodel.host.toolchain import Compiler
from popmodel.study import runs
from popmodel.study.manifest import Manifest, opened
from popmodel.study.plan import Run, plan
from popmodel.study.traced import RunFailed, Traced
from popmodel.tracer.commands import Command
from popmodel.tracer.library import Library

WORDS = ("mpirun", "-n", "{P}", "./app")
COMMAND = Command(WORDS, "/usr/bin/mpirun", 0, True, "Open MPI", Path("./app"))
LIBRARY = Library(Path("/nowhere"), Compiler(("cc",), "cc 1", "-fopenmp"), None)

Make = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make runs that take as long as they say; gives those that were made, and what was told."""

    def make(
        planned: Sequence[Run],
        seconds: Callable[[Run], float] = lambda _: 1.0,
        *,
        budget: float = 300.0,
        words: Sequence[str] = WORDS,
        refuses: Sequence[str] = (),
        **facts: Any,
    ) -> tuple[list[str], list[str]]:
        there: list[str] = []
        told: list[str] = []

        def played(
            folder: Path, own: Sequence[str], run: Run, library: Library, limit: float
        ) -> Traced:
            assert (library, limit) == (LIBRARY, budget)
            if run.name in refuses:
                raise RunFailed(f"run {run.split} failed: app: not so", "see its output")
            there.append(run.name)
            path = folder / run.name
            path.write_text(" ".join(own))
            return Traced(seconds(run), {"has_openmp": True, "has_mpi": True, **facts}, (path,))

        monkeypatch.setattr(runs, "traced", played)
        state: Manifest = opened(tmp_path, {}, [])
        args = (state, words, COMMAND, planned, lambda: LIBRARY, budget, told.append)
        state = runs.make(*args)
        assert list(runs.done_runs(state, planned)) == [run for run in planned if run.name in there]
        failed = {run.name: runs.failure(state, run) for run in planned}
        assert [name for name, why in failed.items() if why] == list(refuses)
        of_two = [one for one in planned if one.name in refuses and one.cores <= 2]
        of_made = [one for one in planned if one.name in there]
        assert runs.tried(state, planned, 2) == (
            [{"P": one.processes, "T": one.threads, **dict(one.settings)} for one in of_made],
            [
                {"P": one.processes, "T": one.threads, **dict(one.settings)} for one in of_two
            ],  # others may lack cores
        )
        return there, told

    return make


def test_all_runs_are_made_and_foretold_by_the_first(made: Make) -> None:
    there, told = made(plan(2, {}), lambda run: 2.0 / run.cores)
    assert there == ["1x1", "2x1", "1x2"]
    assert told == [
        "run 1x1: mpirun -n 1 ./app",
        "it took 2 s; 2 more runs, at most about 4 s: 2x1, 1x2",
        "run 2x1: mpirun -n 2 ./app",
        "run 1x2: mpirun --bind-to none -n 1 ./app",
    ]


def test_what_exceeds_the_budget_is_left_out_and_named(made: Make) -> None:
    there, told = made(plan(4, {}), lambda run: 4.0 / run.cores, budget=6.5)
    assert there == ["1x1", "4x1"]
    assert "run 1x4 is left out: about 4 s more would exceed the budget of 6.5 s" in told


def test_two_runs_are_made_whatever_the_budget(made: Make) -> None:
    assert made(plan(2, {}), lambda _: 5.0, budget=6.0)[0] == ["1x1", "2x1"]


def test_larger_problems_take_at_least_as_long(made: Make) -> None:
    _, told = made(plan(2, {"N": (1.0, 2.0)}), words=(*WORDS, "{N}"))
    assert told[1].startswith("it took 1 s; 4 more runs, at least 6 s: ")


def test_threads_are_dropped_without_openmp(made: Make) -> None:
    there, told = made(plan(4, {}), has_openmp=False)
    assert there == ["1x1", "4x1", "2x1"]
    assert told[1] == "it took 1 s; 2 more runs, at most about 2 s: 4x1, 2x1"


def test_threads_of_another_kind_are_kept_where_the_command_asks_for_them(made: Make) -> None:
    there, _ = made(plan(2, {}), words=(*WORDS, "{T}"), has_openmp=False)
    assert there == ["1x1", "2x1", "1x2"]


def test_a_program_without_mpi_is_refused(made: Make) -> None:
    with pytest.raises(PopmodelError, match="run 1 x 1: no call of MPI was recorded"):
        made(plan(2, {}), has_mpi=False)


def test_the_binding_of_the_user_stays(made: Make) -> None:
    words = ("mpirun", "--map-by", "slot:PE={T}", "-n", "{P}", "./app")
    _, told = made(plan(2, {}), words=words)
    assert told[-1] == "run 1x2: mpirun --map-by slot:PE=2 -n 1 ./app"


def test_runs_that_a_program_refuses_are_left_out(made: Make) -> None:
    there, told = made(plan(4, {}), refuses=["4x1", "2x2"])
    assert there == ["1x1", "1x4", "2x1", "1x2"]
    assert "run 4 x 1 failed: app: not so; see its output" in told
    assert told[-1] == "warning: 2 of 6 runs failed (4x1, 2x2): the study goes on without"


def test_a_program_that_refuses_the_first_run_is_run_otherwise(made: Make) -> None:
    there, told = made(plan(2, {}), refuses=["1x1"])
    assert there == ["2x1", "1x2"]
    assert "it took 1 s; 1 more run, at most about 1 s: 1x2" in told


def test_one_run_that_does_not_fail_is_too_few(made: Make) -> None:
    with pytest.raises(RunFailed, match="run 2 x 1 failed: app: not so") as error:
        made(plan(2, {}), refuses=["2x1", "1x2"])
    assert error.value.hint == "see its output"
