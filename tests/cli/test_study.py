"""``popmodel study`` with real programs: what it runs, keeps, predicts and says."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from patience import GENEROUS, until
from real_mpi import ENVIRONMENT, Mpi

from popmodel.base import document_schemas
from popmodel.machines.host import hardware, launcher

from .conftest import Call

ROOT = Path(__file__).resolve().parents[2]
VM = ROOT / "examples" / "profiles" / "two-core-vm.json"

RING = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words)
{
    int rank, size;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (access("fail", F_OK) == 0 && size == 2) {
        if (rank == 0) fprintf(stderr, "ring: two are no ring\\n");
        MPI_Finalize();
        return 3;
    }
    if (access("hang", F_OK) == 0 && size == 2) {
        if (rank == 0) fclose(fopen("hangs", "w"));
        sleep(600);
    }
    static double out[4096], in[4096];
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < 4096; i++)
            for (int k = 0; k < 20 / size; k++) out[i] = 0.5 * out[i] + in[i] + 1;
        MPI_Sendrecv(out, 4096, MPI_DOUBLE, (rank + 1) % size, 0, in, 4096, MPI_DOUBLE,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return out[7] < 0;
}
"""
SIGNATURE = """
schema = "popmodel/signature/1"

[app]
name = "ring"
description = "values pass round a ring of processes"

[decomp]
grid = ["P"]
periodic = [true]

[[program]]
loop = { name = "step", count = 20 }

  [[program.body]]
  [program.body.serial]
  name = "update"
  trip = "4096*floor(20/P)"
  flops = 3

  [[program.body]]
  shift = { name = "round", dim = 0, by = 1, bytes = "8*4096" }
"""


@pytest.fixture(scope="module")
def ring(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of which no signature comes with popmodel."""
    folder = tmp_path_factory.mktemp("ring")
    (folder / "ring.c").write_text(RING)
    command = [*mpi.mpicc, "-O1", "-o", folder / "ring", folder / "ring.c"]
    subprocess.run(command, check=True)
    return folder / "ring"


@pytest.fixture
def place(mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, in which MPI programs can be started."""
    if hardware.here().usable_cores < 2:
        pytest.skip("two ranks need two cores")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("MPICC", shlex.join(mpi.mpicc))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "ring.toml").write_text(SIGNATURE)
    return tmp_path


def arguments(mpi: Mpi, program: Path, *words: str, options: tuple[str, ...] = ()) -> list[str]:
    """A study on the two cores of a profile, however many this machine has."""
    more = ["--machine", str(VM), "--all", *options]
    return ["study", "--cores", "2", *more, "--", mpi.mpirun, "-n", "{P}", str(program), *words]


OF_RING = ("--signature", "ring.toml", "--runs", "1x1,2x1", "-o", "here")


def manifest(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "manifest.json").read_text())
    return found


@pytest.mark.long
@pytest.mark.usefixtures("place")
def test_a_study_ends_with_a_validated_recommendation(
    popmodel: Call, mpi: Mpi, programs: dict[str, Path]
) -> None:
    known = ("--signature", "stencil3d", "--runs", "1x1,1x2")
    options = (*known, "--set", "N=20,24", "--target", "N=48")
    call = arguments(mpi, programs["stencil3d"], "{N}", "5", options=options)
    status, out, err = popmodel(*call)
    assert status == 0, err
    assert "popmodel: run 1x1-N=20: " in err
    assert "3 others, at least " in err
    assert "check: 1 x 2 N=24 steps=100, predicted from the others: " in out
    assert "-> best of 2 cores" in out or "-> fastest of 2 cores" in out
    assert max(map(len, out.splitlines())) <= 80
    for label in ("role", "spread", "learnt from", "check"):
        assert f"{label}" in out
        assert popmodel("docs", label)[0] == 0
    # The command again shows the same, without any of the work.
    status, again, err = popmodel(*call[:1], "--format", "json", *call[1:])
    assert (status, err) == (0, "")
    document = json.loads(again)
    assert document["schema"] == "popmodel/splits/1"
    assert document["application"]["settings"]["N"] == 48
    told = document["study"]
    names = [run["name"] for run in told["runs"]]
    for name in ("1x1-N=20", "1x2-N=20", "1x1-N=24", "1x2-N=24"):
        assert {name, f"{name}.r2", f"{name}.r3"} <= {*names}
    assert {
        run["name"].partition(".")[0] for run in told["runs"] if run["role"] == "predicted"
    } == {"1x2-N=24"}
    assert told["validation"]["runtime"]["mean"] > 0
    document_schemas.check(manifest("stencil3d.study"), "manifest.json")
    # What is kept is what the commands of the steps make.
    commands = {one["step"]: shlex.split(one["command"]) for one in told["commands"]}
    status, swept, _ = popmodel(*commands["splits"][1:], "--format", "json")
    assert (status, json.loads(swept)["candidates"]) == (0, document["candidates"])
    status, checked, _ = popmodel(*commands["validation"][1:], "--format", "json")
    assert (status, json.loads(checked)["splits"][0]["runtime"]) == (
        0,
        told["validation"]["runtime"],
    )
    assert commands["run 1x2-N=20"][:3] == ["OMP_NUM_THREADS=2", "popmodel", "trace"]


@pytest.mark.usefixtures("place")
def test_a_program_without_openmp_is_run_with_one_thread(
    popmodel: Call, mpi: Mpi, ring: Path
) -> None:
    call = arguments(mpi, ring, options=("--signature", "ring.toml"))
    status, out, err = popmodel(*call)
    assert status == 0, err
    steps = [step["name"] for step in manifest("ring.study")["steps"]]
    assert steps[:3] == ["load", "run 1x1", "run 2x1"]
    assert steps[-2:] == ["signature", "result"]
    assert not any("1x2" in step for step in steps)
    assert "not run    1x2: no OpenMP in the program" in out
    assert "check: 2 x 1, predicted from the others" in out
    assert Path("ring.study/runs/2x1.prv.gz").stat().st_size > 0
    assert not list(Path("ring.study/runs").glob("*.raw"))


@pytest.mark.long
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("program", "words", "options", "out"),
    [
        ("stencil3d", ("24", "5"), (), (1, 2)),
        ("cannon", ("64",), ("--runs", "1x1,1x2,4x1"), (1, 2)),
        ("ring", (), (), None),  # one process shows no messages
    ],
)
def test_a_program_without_a_signature_is_described_by_its_traces(
    popmodel: Call,
    mpi: Mpi,
    programs: dict[str, Path],
    ring: Path,
    program: str,
    words: tuple[str, ...],
    options: tuple[str, ...],
    out: tuple[int, int] | None,
) -> None:
    path = ring if program == "ring" else programs[program]
    status, text, err = popmodel(*arguments(mpi, path, *words, options=("-o", "here", *options)))
    assert status == 0, err
    assert "finding the signature in " in err
    document = json.loads(Path("here/splits.json").read_text())
    told = document["study"]
    assert told["signature"]["given"] is None
    checked = told["validation"]
    if out is None:
        assert checked is None
        assert " ! not to be trusted yet: 2 x 1 could not be predicted from the others: " in text
    else:
        assert (checked["processes"], checked["threads"]) == out
        assert checked["runtime"]["predicted"] > 0
        assert f"check: {out[0]} x {out[1]}" in text
    assert popmodel("signature", "check", "here/signature.toml")[0] == 0
    # What the user writes into the signature is kept, and predicted with.
    described = Path("here/signature.toml")
    described.write_text(described.read_text() + "# checked by hand\n")
    status, _, err = popmodel(*arguments(mpi, path, *words, options=("-o", "here", *options)))
    assert status == 0, err
    assert "here/signature.toml was changed by hand: it is used as it is" in err
    assert described.read_text().endswith("# checked by hand\n")
    described.write_text("[app")
    status, _, err = popmodel(*arguments(mpi, path, *words, options=("-o", "here", *options)))
    assert status == 1
    assert err.endswith("hint: mend it, or remove it: the same command then makes it anew\n")


@pytest.mark.long
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("given", [(), ("--signature", "ring.toml")])
def test_what_it_prints_can_be_pasted(
    popmodel: Call, mpi: Mpi, ring: Path, given: tuple[str, ...]
) -> None:
    words = ("1200", "a b", "$HOME", "*", "it's")
    options = ("--runs", "1x1,2x1", "-o", "my study", *given)
    call = arguments(mpi, ring, *words, options=options)
    status, _, err = popmodel(*call)
    assert status == 0, err
    document = json.loads(Path("my study/splits.json").read_text())
    started = shlex.split(document["choices"][0]["launch_mpirun"].replace("\\\n", ""))
    assert started[-len(words) - 1 :] == [str(ring), *words]
    # Each command of a step, in a shell, beside the files that it made the first time.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for one in document["study"]["commands"]:
        done = subprocess.run(
            ["bash", "-c", one["command"]],
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": path},
            timeout=GENEROUS,
            check=False,
        )
        assert done.returncode == 0, f"{one['command']}\n{done.stderr}"
    # A study goes on with what they made, and starts the program as before.
    status, again, err = popmodel(*call[:1], "--format", "json", *call[1:])
    assert status == 0, err
    launch = json.loads(again)["choices"][0]["launch_mpirun"].replace("\\\n", "")
    assert shlex.split(launch)[-len(words) - 1 :] == [str(ring), *words]


@pytest.mark.long
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("given", [(), ("--signature", "ring.toml")])
def test_what_rests_on_a_run_that_was_lost_is_made_anew(
    popmodel: Call, mpi: Mpi, ring: Path, given: tuple[str, ...]
) -> None:
    options = ("--runs", "1x1,2x1", "-o", "here", "--format", "json", *given)
    call = arguments(mpi, ring, options=options)
    status, first, err = popmodel(*call)
    assert status == 0, err

    def learnt() -> set[str]:  # on a busy machine some repeats only
        steps = [step for step in manifest("here")["steps"] if step["name"] == "signature"]
        return {run for step in steps for run in step["facts"]["runs"]}

    for name in ("2x1", "1x1"):
        learnt_before = learnt()
        trace = Path(f"here/runs/{name}.prv.gz")
        trace.write_bytes(trace.read_bytes()[:-9])
        before = Path("here/splits.json").read_bytes()
        status, again, err = popmodel(*call)
        assert status == 0, err
        assert f"run {name}: its files were changed or lost: it is made again\n" in err
        is_learnt = name in learnt_before | learnt()
        # on a busy machine the new time of one repeat may have others chosen
        is_found = "finding the signature in" in err
        assert not is_found if given else is_found or not is_learnt
        runs = {run["name"]: run for run in json.loads(again)["study"]["runs"]}
        steps = {step["name"]: step for step in manifest("here")["steps"]}
        assert runs[name]["seconds"] == steps[f"run {name}"]["facts"]["seconds"]
        status, measured, _ = popmodel("metrics", str(trace), "--format", "json")
        assert runs[name]["runtime"] == json.loads(measured)["runs"][0]["runtime"]
        assert Path("here/splits.json").read_bytes() != before
    assert json.loads(first)["study"]["runs"] != json.loads(again)["study"]["runs"]


def written(path: str) -> tuple[int, int]:
    """Which file it is and when it was written: not when it was read, as all of `stat` tells."""
    told = Path(path).stat()
    return told.st_ino, told.st_mtime_ns


@pytest.mark.long
@pytest.mark.usefixtures("place")
def test_an_interrupted_study_goes_on_after_the_last_run(mpi: Mpi, ring: Path) -> None:
    Path("hang").touch()
    words = [sys.executable, "-m", "popmodel", *arguments(mpi, ring, options=OF_RING)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as child:
        until(lambda: Path("hangs").exists() or child.poll(), "the second run hangs")
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=GENEROUS)
    assert child.returncode == 130
    assert "what is done is kept in here: the same command goes on with it" in err
    assert {step["name"]: step["state"] for step in manifest("here")["steps"]} == {
        "load": "done",
        "run 1x1": "done",
        "run 2x1": "interrupted",
    }
    first = written("here/runs/1x1.prv.gz")
    Path("hang").unlink()
    done = subprocess.run(words, capture_output=True, text=True, timeout=GENEROUS, check=False)
    assert done.returncode == 0, done.stderr
    assert "run 1x1:" not in done.stderr
    assert written("here/runs/1x1.prv.gz") == first
    assert "check: 2 x 1, predicted from the others" in done.stdout


@pytest.mark.long
@pytest.mark.usefixtures("place")
def test_a_study_that_is_killed_at_any_moment_goes_on(mpi: Mpi, ring: Path) -> None:
    words = [sys.executable, "-m", "popmodel", *arguments(mpi, ring, options=OF_RING)]
    moments = random.Random(7)
    done: set[str] = set()
    for _ in range(8):
        with subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as child:
            try:
                child.wait(moments.uniform(0.3, 4))
            except subprocess.TimeoutExpired:
                child.kill()
        if Path("here/manifest.json").exists():
            steps = manifest("here")["steps"]
            now = {step["name"] for step in steps if step["state"] == "done"}
            assert now >= done
            done = {name for name in now if name.startswith("run")}
    last = subprocess.run(words, capture_output=True, text=True, timeout=GENEROUS, check=False)
    assert last.returncode == 0, last.stderr
    assert "check: 2 x 1, predicted from the others" in last.stdout


@pytest.mark.long
@pytest.mark.usefixtures("place")
def test_a_run_that_fails_is_named_with_its_output(popmodel: Call, mpi: Mpi, ring: Path) -> None:
    Path("fail").touch()
    call = arguments(mpi, ring, options=OF_RING)
    status, out, err = popmodel(*call)
    assert status == 0, err
    assert "popmodel: run 2 x 1 failed: ring: two are no ring; its output is in " in err
    assert "not run    2x1: failed: ring: two are no ring\n" in out
    assert "only one configuration was run: nothing checks the prediction" in " ".join(out.split())
    assert "two are no ring" in Path("here/runs/2x1.log").read_text()
    assert {step["name"]: step["state"] for step in manifest("here")["steps"]}["run 2x1"] == (
        "failed"
    )
    # Other runs may be asked for; something else may not.
    others = [word.replace("1x1,2x1", "1x1,1x1") for word in call]
    status, _, err = popmodel(*others)
    assert (status, err.splitlines()[0]) == (
        2,
        "popmodel: error: --runs 1x1,1x1: a study needs two different runs: one to learn from, "
        "one to predict",
    )
    status, _, err = popmodel(*call, "more")
    assert status == 2
    assert "here: contains another study (command: " in err


@pytest.mark.long
@pytest.mark.usefixtures("place")
def test_a_study_goes_on_without_a_run_that_the_program_refuses(
    popmodel: Call, mpi: Mpi, ring: Path
) -> None:
    Path("fail").touch()
    options = (*OF_RING[:2], "--runs", "1x1,2x1,3x1", "-o", "here")
    status, out, err = popmodel(*arguments(mpi, ring, options=options))
    assert status == 0, err
    assert "popmodel: warning: 1 run failed (2x1): the study goes on without\n" in err
    assert "not run    2x1: failed: ring: two are no ring\n" in out
    assert [step["state"] for step in manifest("here")["steps"][1:4]] == ["done", "failed", "done"]


def test_only_runs_that_the_signature_allows_are_planned(
    popmodel: Call, mpi: Mpi, ring: Path, place: Path
) -> None:
    (place / "ring.toml").write_text(f'{SIGNATURE}\n[limits]\nrequire = ["P != 2"]\n')
    options = (*OF_RING[:2], "--max-cores", "4", "--dry-run")
    status, out, err = popmodel(*arguments(mpi, ring, options=options))
    assert status == 0, err
    assert " 4 x 1" in out
    assert "2 x " not in out
    status, _, err = popmodel(*arguments(mpi, ring, options=OF_RING))
    assert status == 2
    said = "--runs 1x1,2x1: ring cannot run with 2 processes: it requires P != 2\n"
    assert said in err
    options = (*OF_RING[:2], "--max-cores", "2", "--dry-run", "--set", "steps=2")
    (place / "ring.toml").write_text(
        f'{SIGNATURE}\n[params]\nsteps = 2\n[limits]\nrequire = ["P == 2"]\n'
    )
    status, _, err = popmodel(*arguments(mpi, ring, "{steps}", options=options))
    assert status == 2
    assert "error: ring takes 1 run on 2 cores, and a study needs two: one to learn from" in err


@pytest.mark.long
@pytest.mark.usefixtures("place")
def test_a_run_that_takes_too_long_is_ended(
    popmodel: Call, mpi: Mpi, ring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("hang").touch()
    hours = SimpleNamespace(monotonic=lambda: time.monotonic() + 7200 * Path("hangs").exists())
    monkeypatch.setattr(launcher, "time", hours)
    options = (*OF_RING[:2], "--runs", "2x1,1x1", "-o", "here", "--budget", "1h")
    status, _, err = popmodel(*arguments(mpi, ring, options=options))
    assert status == 0, err
    assert "run 2 x 1: mpirun did not finish within 3600 s and was killed; allow more time" in err


def test_a_study_that_cannot_go_on_is_not_said_to_go_on(
    popmodel: Call, mpi: Mpi, ring: Path, place: Path
) -> None:
    (place / "here").mkdir()
    (place / "here" / "manifest.json").write_text('{"schema": "popmodel')
    status, _, err = popmodel(*arguments(mpi, ring, options=OF_RING))
    assert status == 1
    assert err.startswith("popmodel: error: here/manifest.json:1: is not JSON")
    assert err.endswith("hint: begin anew with --force\n")


@pytest.mark.usefixtures("place")
def test_a_program_without_mpi_is_refused(popmodel: Call, mpi: Mpi) -> None:
    call = arguments(mpi, Path(shutil.which("true") or ""), options=OF_RING)
    status, _, err = popmodel(*call)
    assert status == 1
    assert "popmodel: error: 1x1: nothing was recorded: no process called MPI_Init" in err


SRUN = """\
#!/bin/bash
# Plays srun on this machine: ranks are started by its own MPI.
while [[ $1 == -* ]]; do
    case $1 in
        -n) ranks=$2; shift 2 ;;
        -c) shift 2 ;;
        --export=*) IFS=, read -ra set <<<"${1#--export=}"; shift
            for each in "${set[@]}"; do [[ $each == *=* ]] && given+=(-x "$each"); done ;;
        *) shift ;;
    esac
done
exec MPIRUN "${given[@]}" -n "$ranks" "$@"
"""


@pytest.mark.long
def test_the_runs_can_be_made_by_a_job(
    popmodel: Call, mpi: Mpi, ring: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    srun = place / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SRUN.replace("MPIRUN", mpi.mpirun))
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{srun.parent}:{os.environ['PATH']}")
    call = ["study", "--cores", "2", "--machine", str(VM), *OF_RING, "--script", "slurm"]
    call += ["--", str(ring)]
    status, out, err = popmodel(*call)
    assert status == 0, err
    assert "job          here/job.sh\nsubmit it    sbatch here/job.sh\n" in out
    status, _, err = popmodel(*call)
    assert status == 1
    assert "here: the job has not made 1x1, 2x1, 1x1.r2, 2x1.r2, 1x1.r3, 2x1.r3 yet" in err
    job = ["bash", "here/job.sh"]
    done = subprocess.run(job, capture_output=True, text=True, timeout=GENEROUS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    status, out, err = popmodel(*call)
    assert status == 0, err
    assert "check: 2 x 1, predicted from the others" in out


def test_a_plan_is_shown_and_nothing_done(
    popmodel: Call, mpi: Mpi, ring: Path, place: Path
) -> None:
    call = arguments(mpi, ring, options=("--dry-run", "--max-cores", "4"))
    before = sorted(place.iterdir())
    status, out, _ = popmodel(*call)
    assert status == 0
    assert "plan of a study of ring" in out
    assert "predicted    2 x 2" in out
    assert sorted(place.iterdir()) == before
    status, out, _ = popmodel(*call[:1], "--format", "json", *call[1:])
    document_schemas.check(json.loads(out), "plan.json")


def test_mistakes_are_told_before_anything_is_done(popmodel: Call, mpi: Mpi, place: Path) -> None:
    """Others are in ``tests/golden/study.txt``."""
    for words, message in (
        ((mpi.mpirun, "-n", "{P}", "./nothing"), "no program found that it could"),
        (("nompirun", "-n", "{P}", "./app"), "program nompirun not found"),
    ):
        status, _, err = popmodel("study", "--cores", "2", "-o", "here", "--", *words)
        assert status == 2
        assert message in err
        assert not (place / "here").exists()


@pytest.mark.usefixtures("place")
def test_no_run_is_planned_that_the_given_profile_cannot_predict(
    popmodel: Call, mpi: Mpi, ring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware.Hardware, "usable_cores", property(lambda _: 16))
    status, out, err = popmodel(*arguments(mpi, ring, options=("--dry-run", "--format", "json")))
    assert status == 0, err
    runs = [(run["processes"], run["threads"]) for run in json.loads(out)["runs"]]
    assert runs == [(1, 1), (2, 1), (1, 2)]
