"""Measuring: what is kept, what is left, what goes on, whatever happens to a launch.

A program stands in for the real ones: a shell script that writes a sample for every job, and does
to some jobs what the test is about.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from patience import GENEROUS, clock_that_leaps, words_in

from popmodel.base import files
from popmodel.base.errors import FileError
from popmodel.machines.bench import run_directory, suite
from popmodel.machines.bench.bench_plan import BenchPlan, PlanLimits, PlannedLaunch
from popmodel.machines.bench.jobs import job
from popmodel.machines.bench.run_directory import Files, StoredMeasurement
from popmodel.machines.host import launcher as launch_module
from popmodel.machines.host.launcher import LaunchError

LIMITS = PlanLimits(budget=0.01, least=5, most=10, precision=0.1)
JOBS = tuple(job("ping_pong", bytes=size, tier="node") for size in (0, 8, 64, 512))
MADE_WITH = {"host": "here", "compiler": "cc 1"}

PROGRAM = """\
#!/bin/sh
# Writes what the measuring programs write, and stumbles where its environment says so.
while [ $# -gt 0 ]; do
    case $1 in
        -j) jobs=$2; shift ;;
        -o) samples=$2; shift ;;
    esac
    shift
done
[ -n "$DUMB" ] && { echo "cannot begin" >&2; exit 3; }
echo '{"schema":"popmodel/samples/1","program":"mpi"}' >"$samples"
while read -r name params; do
    case "$params" in
        *"bytes=$DIE "*) echo "rank 1 fell over" >&2; kill -SEGV $$ ;;
        *"bytes=$HANG "*) echo $$ >"$0.hangs"; exec sleep 600 ;;
    esac
    size=${params#bytes=}
    params="{\\"bytes\\":${size%% *},\\"tier\\":\\"node\\"}"
    echo "{\\"job\\":\\"$name\\",\\"params\\":$params}" >>"$samples"
done <"$jobs"
echo '{"end":"complete","left":0,"wall":0.1}' >>"$samples"
"""


def launch(number: int, program: str = "node", level: str | None = None) -> PlannedLaunch:
    return PlannedLaunch(number, program, 1, 1, 1, level, LIMITS, JOBS)


def plan(*launches: PlannedLaunch) -> BenchPlan:
    return BenchPlan("quick", ("p2p",), 2, 1, 7, launches or (launch(1), launch(2), launch(3)), {})


@pytest.fixture
def run(tmp_path: Path) -> StoredMeasurement:
    return run_directory.begin(tmp_path / "m.samples", plan(), MADE_WITH)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DIE", "HANG", "DUMB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(suite, "_PATIENCE", GENEROUS)
    path = tmp_path / "program"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return path


def begin(program: Path) -> suite.Starter:
    return suite.starter({"node": program, "mpi": program}, None)


def hanging(program: Path) -> list[str]:
    """Process that has come to the job in which it hangs."""
    return words_in(Path(f"{program}.hangs"))


def measured(run: StoredMeasurement) -> dict[str, list[int]]:
    """Sizes that each samples file holds, in order."""
    return {
        path.name: [int(one.get("bytes")) for one in run_directory.done_in(path)[0]]
        for path in run_directory.all_samples(run.folder)
    }


def test_every_launch_writes_its_samples(run: StoredMeasurement, program: Path) -> None:
    seen: list[suite.Progress] = []
    assert suite.measure(run, begin(program), seen.append) == []
    assert measured(run) == {f"launch-00{n}.jsonl": [0, 8, 64, 512] for n in (1, 2, 3)}
    assert (run.folder / "launch-001.jobs").read_text().splitlines() == [one.line for one in JOBS]
    assert all(run_directory.missing(run, each) == [] for each in run.plan.launches)
    assert (seen[-1].part, seen[-1].all) == ("p2p", 12)
    assert [at.done for at in seen] == sorted(at.done for at in seen)
    assert seen[0].left > seen[-1].left >= 0


def test_the_programs_are_told_when_to_stop() -> None:
    one = replace(launch(4, "mpi", "multiple"), jobs=JOBS * 5)
    words = suite.limits_of(one, 20)
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert options == {
        "-n": "4", "--budget": "0.01", "--least": "5", "--most": "10", "--precision": "0.1",
        "--limit": f"{one.limit(20):g}", "--thread-level": "multiple",
    }  # fmt: skip
    assert one.limit(1) < one.limit(20)


def test_what_is_done_is_not_done_again(run: StoredMeasurement, program: Path) -> None:
    (run.folder / "launch-001.jsonl").write_text(
        '{"schema":"popmodel/samples/1"}\n'
        '{"job":"ping_pong","params":{"bytes":64,"tier":"node"},"seconds":[1]}\n'
        '{"job":"ping_pong","params":{"bytes":512,"ti'
    )
    (run.folder / "launch-002.jsonl").write_text('{"end":"limit","left":4,"wall":1}\n')
    assert suite.measure(run, begin(program)) == []
    assert measured(run) == {
        "launch-001-2.jsonl": [0, 8, 512],
        "launch-001.jsonl": [64],
        "launch-002.jsonl": [],  # it ended by itself: its time was over
        "launch-003.jsonl": [0, 8, 64, 512],
    }
    assert run_directory.without_sample(run) == 4
    before = measured(run)
    assert suite.measure(run, begin(program)) == []
    assert measured(run) == before


def test_a_job_that_hangs_is_ended_and_left_out(
    run: StoredMeasurement, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANG", "0")
    monkeypatch.setattr(launch_module, "time", clock_that_leaps(lambda: hanging(program)))
    (failure,) = suite.measure(run, begin(program))
    assert failure.job == JOBS[0]
    assert "made no progress" in failure.error.message
    assert measured(run)["launch-003.jsonl"] == [8, 64, 512]


def test_a_dead_program_does_not_stop_the_other(tmp_path: Path, program: Path) -> None:
    launches = (launch(1, "mpi", "funneled"), launch(2), launch(3, "mpi", "funneled"), launch(4))
    run = run_directory.begin(tmp_path / "m.samples", plan(*launches), MADE_WITH)
    missing = suite.starter({"node": program, "mpi": tmp_path / "nothing"}, None)
    (failure,) = suite.measure(run, missing)
    assert failure.program == "mpi"
    assert set(measured(run)) == {"launch-002.jsonl", "launch-004.jsonl"}


def test_a_full_disk_ends_the_measurement(
    run: StoredMeasurement, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIE", "64")
    usage = type("usage", (), {"free": 4096})
    monkeypatch.setattr(suite.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(LaunchError):
        suite.measure(run, begin(program))
    assert measured(run) == {"launch-001.jsonl": [0, 8]}


def test_progress_counts_what_was_done_before_and_what_is_given_up(run: StoredMeasurement) -> None:
    (run.folder / "launch-001.jsonl").write_text('{"end":"complete"}\n')
    seen: list[suite.Progress] = []

    def dies_at_once(
        launch: PlannedLaunch,
        arguments: Sequence[str],
        files: Files,
        patience: float,
        on_progress: Callable[[int], None],
    ) -> None:
        assert arguments[:4] == ["-j", str(files.jobs), "-o", str(files.samples)]
        assert patience > 20
        files.samples.write_text("{}\n")
        on_progress(1)
        if launch.number == 2:
            raise LaunchError("dead")

    (failure,) = suite.measure(run, dies_at_once, seen.append)
    assert failure.job == JOBS[0]
    assert [(at.done, at.all) for at in seen] == [(4, 12), (8, 12), (8, 11), (11, 11)]


# -- the run directory


def test_beginning_removes_samples_of_before_and_nothing_else(run: StoredMeasurement) -> None:
    for name in ("launch-001.jsonl", "launch-001-2.jsonl", "launch-012.log", "launch-001.jobs"):
        (run.folder / name).write_text("")
    (run.folder / "notes.txt").write_text("mine")
    run_directory.begin(run.folder, run.plan, MADE_WITH)
    assert sorted(path.name for path in run.folder.iterdir()) == ["notes.txt", "plan.json"]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EIO])
def test_a_file_system_without_locks_is_measured_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.fcntl, "flock", flock)
    expected = (
        nullcontext()
        if number == errno.ENOLCK
        else pytest.raises(FileError, match=r"\.lock: cannot be written: Input/output error")
    )
    with expected, run_directory.held(tmp_path / "m.samples"):
        run_directory.begin(tmp_path / "m.samples", plan(), MADE_WITH)


def test_runs_of_other_settings_or_tools_differ(run: StoredMeasurement) -> None:
    made = run.plan
    assert run_directory.difference(run, replace(made, seed=8), MADE_WITH) is None
    for other, with_, words in (
        (replace(made, mode="full"), MADE_WITH, "mode quick, not full"),
        (replace(made, parts=("core",)), MADE_WITH, "parts p2p, not core"),
        (replace(made, ranks=4), MADE_WITH, "ranks 2, not 4"),
        (made, {**MADE_WITH, "compiler": "cc 2"}, "compiler cc 1, not cc 2"),
        (made, {**MADE_WITH, "mpi": "Open MPI 5"}, "mpi none, not Open MPI 5"),
    ):
        assert run_directory.difference(run, other, with_) == words


def test_a_place_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "m.samples").write_text("a file")
    with pytest.raises(FileError) as error:
        run_directory.begin(tmp_path / "m.samples", plan(), MADE_WITH)
    assert error.value.message == f"{tmp_path / 'm.samples'}: cannot be written: File exists"
    assert error.value.hint == "choose another path with -o"


def test_a_full_disk_says_how_to_go_on() -> None:
    error = run_directory.unwritable(Path("x"), OSError(28, "No space left on device"))
    assert error.message == "x: cannot be written: No space left on device"
    assert error.hint == "free some space, then run the same command again: finished jobs are kept"


def test_the_directory_lies_beside_its_profile() -> None:
    assert run_directory.beside(Path("a/machine.json")) == Path("a/machine.samples")
    some = run_directory.beside(Path("machine.json"), ("core", "p2p"))
    assert some == Path("machine.core-p2p.samples")
