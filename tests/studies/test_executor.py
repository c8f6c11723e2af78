"""The runs of a study: in turn, within their budget, without threads where they are no use."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from popmodel.base.errors import PopmodelError
from popmodel.base.shell import filled
from popmodel.machines.host.toolchain import Compiler
from popmodel.studies import executor
from popmodel.studies.executor import RunFailed, command_of, done_runs, said, words_of
from popmodel.studies.manifest import DONE, StudyStep, opened
from popmodel.studies.plan import PlannedRun, Prepared, plan
from popmodel.tracer.commands import TracedCommand, understand
from popmodel.tracer.library import Library

WORDS = ("mpirun", "-n", "{P}", "./app")
COMMAND = TracedCommand(WORDS, "/usr/bin/mpirun", 0, True, "Open MPI", Path("./app"))
LIBRARY = Library(Path("/nowhere"), Compiler(("cc",), "cc 1", "-fopenmp"), None)

Make = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make runs that take as long as they say; gives those that were made, and what was told."""

    def make(
        planned: Sequence[PlannedRun],
        seconds: Callable[[PlannedRun], float] = lambda _: 1.0,
        *,
        budget: float = 300.0,
        words: Sequence[str] = WORDS,
        refuses: Sequence[str] = (),
        facts: Callable[[PlannedRun], dict[str, Any]] = lambda _: {},
        lost: Sequence[str] = (),
    ) -> tuple[list[str], list[str]]:
        there: list[str] = []
        told: list[str] = []

        def played(
            folder: Path, own: Sequence[str], run: PlannedRun, library: Library, limit: float
        ) -> tuple[tuple[Path, ...], dict[str, Any]]:
            assert (library, limit) == (LIBRARY, budget)
            if run.name in refuses:
                raise RunFailed(f"run {run.split} failed: app: not so", "see its output")
            there.append(run.name)
            path = folder / run.name
            path.write_text(" ".join(own))
            known = {
                **run.to_dict(),
                **{"seconds": seconds(run), "runtime": seconds(run), "waited": 0.0},
                **{"used_threads": run.threads, "has_openmp": True, "has_mpi": True},
            }
            return (path,), {**known, **facts(run)}

        monkeypatch.setattr(executor, "traced", played)
        state = opened(tmp_path, {}, [])
        about = Prepared(tuple(words), COMMAND, Path("./app"), 4, tuple(planned))
        looks: list[None] = []

        def look(state: Any) -> Any:
            looks.append(None)
            return state

        state = executor.make(state, about, lambda: LIBRARY, budget, told.append, look)
        assert len(looks) == 1
        for name in lost:
            (tmp_path / name).write_text("changed")
        if lost:
            state = executor.make(state, about, lambda: LIBRARY, budget, told.append, look)
        assert {run.name for run in done_runs(state, planned)} == set(there)
        failed = {run.name: executor.failure(state, run) for run in planned}
        assert [name for name, why in failed.items() if why] == list(refuses)
        of_two = [run for run in planned if run.name in refuses and run.cores <= 2]
        first = [run for run in planned if run.name in there]
        tried = executor.tried(state, planned, 2)  # others may lack cores
        assert tried == ([run.values for run in first], [run.values for run in of_two])
        return there, told

    return make


def test_all_runs_are_made_in_turn_and_foretold_by_the_first(made: Make) -> None:
    there, told = made(plan(2, {}), lambda run: 2.0 / run.cores)
    assert there == [f"{name}{again}" for again in ("", ".r2", ".r3") for name in NAMES]
    assert told[:5] == [
        "run 1x1: mpirun -n 1 ./app",
        "it took 2 s; 2 others, at most about 4 s, then all again: 2x1, 1x2",
        "run 2x1: mpirun -n 2 ./app",
        "run 1x2: mpirun --bind-to none -n 1 ./app",
        "run 1x1.r2",
    ]


NAMES = ("1x1", "2x1", "1x2")


def test_what_exceeds_the_budget_is_left_out_and_named(made: Make) -> None:
    there, told = made(plan(4, {}), lambda run: 4.0 / run.cores, budget=6.5)
    assert there == ["1x1", "4x1", "4x1.r2"]
    assert "run 1x4 is left out: about 4 s more would exceed the budget of 6.5 s" in told


def test_two_runs_are_made_whatever_the_budget(made: Make) -> None:
    assert made(plan(2, {}), lambda _: 5.0, budget=6.0)[0] == ["1x1", "2x1"]


def test_times_that_do_not_repeat_are_taken_more_often_within_the_budget(made: Make) -> None:
    def seconds(run: PlannedRun) -> float:
        return 1.0 + (run.repeat % 2) * (run.processes == 2)

    there, _ = made(plan(2, {}), seconds, budget=20.0)
    assert sum(name.startswith("2x1") for name in there) > 3
    assert sum(name.startswith("1x1") for name in there) == 3


def test_runs_whose_files_are_lost_are_made_again_though_others_would_do(made: Make) -> None:
    def seconds(run: PlannedRun) -> float:
        return 1.0 + (run.repeat % 2) * (run.processes == 2)

    there, told = made(plan(2, {}), seconds, budget=20.0, lost=["2x1.r2", "1x2"])
    assert there[-2:] == ["2x1.r2", "1x2"]
    assert "run 1x2: its files were changed or lost: it is made again" in told


def test_runs_that_waited_for_cpus_are_made_again_until_some_did_not(made: Make) -> None:
    there, told = made(plan(2, {}), facts=lambda run: {"waited": 0.5 if run.repeat < 3 else 0.01})
    assert {name for name in there if name.startswith("1x1")} == {
        *("1x1", "1x1.r2", "1x1.r3", "1x1.r4")
    }
    assert "run 1x1: its threads waited for CPUs 50 % of the time" in told


def test_larger_problems_take_at_least_as_long(made: Make) -> None:
    _, told = made(plan(2, {"N": (1.0, 2.0)}), words=(*WORDS, "{N}"))
    assert told[1].startswith("it took 1 s; 5 others, at least 8 s, then all again: ")


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        (lambda _: {"has_openmp": False}, {"1x1", "4x1", "2x1"}),
        # the runtime is there, and a run with several threads shows that none is used
        (lambda _: {"used_threads": 1}, {"1x1", "4x1", "2x1", "1x4"}),
    ],
)
def test_threads_are_dropped_where_they_are_no_use(
    made: Make, facts: Callable[[PlannedRun], dict[str, Any]], names: set[str]
) -> None:
    there, _ = made(plan(4, {}), facts=facts)
    assert {name.partition(".")[0] for name in there} == names
    assert "1x4.r2" not in there


def test_runs_with_threads_that_were_no_use_are_not_learnt_from() -> None:
    def step(used: int) -> StudyStep:
        facts = {"has_openmp": True, "used_threads": used}
        return StudyStep("run", DONE, "", "", 1.0, facts=facts)

    done = {PlannedRun(1, 1): step(1), PlannedRun(1, 2): step(1)}
    assert executor.without_threads(WORDS, done) == (
        "no parallel region in a run with OMP_NUM_THREADS=2"
    )
    assert list(executor.suited(WORDS, done)) == [PlannedRun(1, 1)]
    assert list(executor.suited(WORDS, {**done, PlannedRun(1, 2): step(2)})) == [
        PlannedRun(1, 1),
        PlannedRun(1, 2),
    ]


def test_threads_of_another_kind_are_kept_where_the_command_asks_for_them(made: Make) -> None:
    there, _ = made(plan(2, {}), words=(*WORDS, "{T}"), facts=lambda _: {"has_openmp": False})
    assert there[:3] == ["1x1", "2x1", "1x2"]


def test_a_program_without_mpi_is_refused(made: Make) -> None:
    with pytest.raises(PopmodelError, match="run 1 x 1: no call of MPI was recorded"):
        made(plan(2, {}), facts=lambda _: {"has_mpi": False})


def test_the_binding_of_the_user_stays(made: Make) -> None:
    words = ("mpirun", "--map-by", "slot:PE={T}", "-n", "{P}", "./app")
    _, told = made(plan(2, {}), words=words)
    assert "run 1x2: mpirun --map-by slot:PE=2 -n 1 ./app" in told


def test_runs_that_a_program_refuses_are_left_out(made: Make) -> None:
    there, told = made(plan(4, {}), refuses=["4x1", "2x2"])
    assert there[:4] == ["1x1", "1x4", "2x1", "1x2"]
    assert "run 4 x 1 failed: app: not so; see its output" in told
    assert told[-1] == "warning: 2 runs failed (4x1, 2x2): the study goes on without"


def test_a_program_that_refuses_the_first_run_is_run_otherwise(made: Make) -> None:
    there, told = made(plan(2, {}), refuses=["1x1"])
    assert there[:2] == ["2x1", "1x2"]
    assert "it took 1 s; 1 other, at most about 1 s, then all again: 1x2" in told


def test_a_program_that_refuses_every_run_ends_the_study(made: Make) -> None:
    with pytest.raises(RunFailed, match="run 1 x 1 failed: app: not so") as error:
        made(plan(2, {}), refuses=["1x1", "2x1", "1x2"])
    assert "its output is in " in str(error.value.hint)


# -- the command of a run, and what its program said before it failed

RULE = "-" * 60
OF_THE_LAUNCHER = "prterun detected that a process exited with non-zero status\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"app: only squares\n{RULE}\n{OF_THE_LAUNCHER}{RULE}\n", "app: only squares"),
        (f"{RULE}\n{OF_THE_LAUNCHER}app: only squares\n{RULE}\n", "app: only squares"),
        (f"{RULE}\n{OF_THE_LAUNCHER}app: only squares\n", "app: only squares"),
        (f"it is no square\n{RULE}\n{OF_THE_LAUNCHER}{RULE}\n", "it is no square"),
        (f"{RULE}\n{OF_THE_LAUNCHER}{RULE}\n", ""),
    ],
)
def test_the_words_of_the_program_are_found(tmp_path: Path, text: str, words: str) -> None:
    log = tmp_path / "2x1.log"
    log.write_text(text)
    assert said(log, Path("bin/app")) == words


def test_nothing_issaid_where_there_is_no_output(tmp_path: Path) -> None:
    assert said(tmp_path / "2x1.log", None) == ""


@pytest.mark.parametrize("name", ["./my app", "bin/../my app", "my app"])
@pytest.mark.parametrize("launcher", [("mpirun", "-n", "{P}"), ()], ids=["mpirun", "alone"])
def test_a_program_of_any_spelling_is_found_in_its_command(
    launcher: tuple[str, ...], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for file in ("my app", "bin/my app", "bin/mpirun"):
        (tmp_path / file).write_text("#!/bin/sh\n")
        (tmp_path / file).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    words = (*launcher, name, "a b")
    command = understand(filled(words, {"P": 2}))
    assert command.program is not None
    assert Prepared(words, command, command.program, 2, ()).own_words == (name, "a b")


@pytest.mark.parametrize(
    "launcher",
    [
        ("mpirun", "-n", "{P}"),
        ("mpiexec", "-n", "{P}", "--map-by", "node"),
        ("srun", "-n", "{P}", "-c", "{T}"),
        ("aprun", "-n", "{P}", "-d", "{T}"),
        ("jsrun", "-n", "{P}", "-a", "1"),
        ("ibrun", "-np", "{P}"),
        ("env", "A=b c", "srun", "-n", "{P}"),
    ],
    ids=lambda words: words[0],
)
def test_a_program_gets_its_own_arguments_behind_any_launcher(
    launcher: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mpirun", "mpiexec", "srun", "aprun", "jsrun", "ibrun", "my app"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    run = PlannedRun(2, 4, (("N", 1200.0),))
    own = (str(folder / "my app"), "{N}", "a b", "$HOME", "*", "it's", '"x"', "", "~", "{P}x{T}")
    words = (*launcher, *own)
    command = understand(filled(words, run.values))
    assert command.program == folder / "my app"
    about = Prepared(words, command, command.program, 8, (run,))
    assert about.own_words == own
    started = words_of(words, run, command)
    printed = command_of(Path("my study"), about, run)
    # a shell makes of what is printed the very words that are run
    listed = printed.replace("popmodel trace", "printf '%s\\0'", 1)
    out = subprocess.run(["sh", "-c", listed], capture_output=True, check=True).stdout.decode()
    assert tuple(out.split("\0")[4:-1]) == started
    assert started[-len(own) :] == filled(own, run.values)
