"""The job script: that a shell takes it, and what it does with a batch system that is played."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from patience import GENEROUS

from popmodel.base.errors import FileError, UsageError
from popmodel.tracer import run as script
from popmodel.tracer.commands import Settings, TracedCommand

SRUN = """\
#!/bin/bash
# Plays srun: notes its words, sets what it is told to, then runs the program once.
printf '%s\\n' "$@" >"$LOG"
while [[ $1 == -* ]]; do
    [[ $1 == --export=* ]] && IFS=, read -ra list <<<"${1#--export=}"
    shift
done
for pair in "${list[@]}"; do [[ $pair == *=* && $pair != LD_PRELOAD=* ]] && export "$pair"; done
exec "$@"
"""

PROGRAM = """\
#!/bin/sh
echo "ran $* with $OMP_NUM_THREADS threads in $PWD"
[ -n "$QUIET" ] || echo record >"$POPMODEL_TRACE_DIR/host.1.meta"
exit ${STATUS:-0}
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program in it, and a library elsewhere."""
    work = tmp_path / "r&d"
    work.mkdir()
    monkeypatch.chdir(work)
    app = work / "app"
    app.write_text(PROGRAM)
    app.chmod(0o755)
    (tmp_path / "libpopmodel_trace.so").write_text("library")
    return work


def job(*words: str, **more: object) -> script.TracedJob:
    command = TracedCommand(tuple(words), words[0], 0, False, None, Path("app"))
    return script.TracedJob(command, **more)  # type: ignore[arg-type]


def write(work: Path, made: script.TracedJob, *, force: bool = False) -> Path:
    library = work.parent / "libpopmodel_trace.so"
    return script.write(made, library, Path("run.prv.gz"), mpi="Open MPI 5.0", force=force)


def submit(path: Path, **variables: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the script as the batch system would: from another folder, a copy of it."""
    folder = path.parent.parent.parent
    srun = folder / "bin" / "srun"
    srun.parent.mkdir(exist_ok=True)
    srun.write_text(SRUN)
    srun.chmod(0o755)
    spooled = folder / "slurm_script"
    spooled.write_text(path.read_text())
    log = folder / "srun.log"
    environment = {
        "PATH": f"{srun.parent}:{os.environ['PATH']}",
        "LOG": str(log),
        "SLURM_JOB_ID": "77",
        "SLURM_CPUS_PER_TASK": "3",
        **variables,
    }
    done = subprocess.run(
        ["bash", str(spooled)], capture_output=True, text=True, timeout=GENEROUS, env=environment
    )
    return done, log.read_text().splitlines()


def test_the_script_says_what_it_wants_and_how_it_is_used(work: Path) -> None:
    path = write(work, job("./app", nodes=2, ranks=8, threads=3))
    folder = work / "run.trace"
    assert path == folder / "job.sh"
    assert os.access(path, os.X_OK)
    assert subprocess.run(["bash", "-n", path], capture_output=True).stderr == b""
    text, output = path.read_text(), shlex.quote(f"{work}/run.prv.gz")
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks=8\n#SBATCH --cpus-per-task=3\n" in text
    assert f"#   submit   sbatch {shlex.quote(str(path))}\n" in text
    assert f"popmodel trace merge RAW -o {output}\n" in text
    assert "for Open MPI 5.0." in text
    assert (folder / "libpopmodel_trace.so").read_text() == "library"
    does = [line for line in text.splitlines() if not line.startswith("#")]
    assert not any("sbatch" in line for line in does)  # it submits nothing


def test_a_job_records_into_a_directory_of_its_own(work: Path) -> None:
    path = write(work, job("./app", "7", "a b", threads=3))
    done, words = submit(path)
    assert done.returncode == 0
    assert done.stdout == f"ran 7 a b with 3 threads in {work}\n"
    raw = path.parent / "raw-77"
    assert [each.name for each in raw.iterdir()] == ["host.1.meta"]
    before, _, next_ = done.stderr.partition("popmodel trace merge ")
    assert before == "popmodel: recorded: "
    assert shlex.split(next_) == [str(raw), "-o", f"{work}/run.prv.gz"]
    library = path.parent / "libpopmodel_trace.so"
    assert words == [
        f"--export=ALL,LD_PRELOAD={library},POPMODEL_TRACE_DIR={raw},POPMODEL_TRACE_OPENMP=auto,"
        "POPMODEL_TRACE_COUNTERS=0",
        "--cpus-per-task=3",
        "./app",
        "7",
        "a b",
    ]
    done, _ = submit(path, SLURM_JOB_ID="78")
    assert (path.parent / "raw-78").is_dir()
    done, _ = submit(path, SLURM_JOB_ID="78")  # two runs never share one
    assert done.returncode == 1


def test_the_status_of_the_program_is_that_of_the_job(work: Path) -> None:
    done, _ = submit(write(work, job("./app")), STATUS="4", OMP_NUM_THREADS="5")
    assert done.returncode == 4
    assert "with 5 threads" in done.stdout


def test_a_job_that_recorded_nothing_says_so(work: Path) -> None:
    done, _ = submit(write(work, job("./app")), QUIET="1")
    assert done.stderr == (
        "popmodel: nothing was recorded: is the program linked with shared libraries?\n"
    )


def test_a_launcher_of_the_users_own_is_kept(work: Path) -> None:
    command = TracedCommand(("mpirun", "-n", "4", "./app"), "/x", 0, True, "Open MPI", Path("app"))
    settings = Settings(counters=True, openmp="off")
    text = write(work, script.TracedJob(command, settings=settings)).read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("mpirun")]
    assert "srun" not in line
    assert '-x POPMODEL_TRACE_DIR="$raw"' in line
    assert "-x POPMODEL_TRACE_OPENMP=off -x POPMODEL_TRACE_COUNTERS=1 -n 4 ./app" in line


def test_a_script_is_replaced_only_when_asked_to(work: Path) -> None:
    path = write(work, job("./app"))
    with pytest.raises(UsageError) as raised:
        write(work, job("./app", "2"))
    assert raised.value.message == f"{path}: the file exists"
    assert raised.value.hint == "use --force to overwrite it"
    write(work, job("./app", "2"), force=True)
    assert "./app 2\n" in path.read_text()


HOSTILE = ["a\nb", "a\x1b[31mb", "a\rb", "a\u202eb", "a\x85b", "a\u2028b"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_could_end_a_comment_are_refused(
    work: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = work.parent / "libpopmodel_trace.so"
    program = Path(f"{name}; touch OUCH")
    command = TracedCommand((str(program),), str(program), 0, False, None, program)
    with pytest.raises(UsageError, match="the name of the program contains an invisible character"):
        script.write(script.TracedJob(command), library, Path("run.prv.gz"))
    with pytest.raises((UsageError, FileError), match=r"invisible|blanks"):
        script.write(job("./app"), library, Path(f"{name}.prv.gz"))
    (work / name).mkdir()
    monkeypatch.chdir(work / name)
    with pytest.raises(
        UsageError, match="the path of this directory contains an invisible character"
    ):
        script.write(job("./app"), library, work / "run.prv.gz")
    assert not list(work.glob("**/*.sh"))


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_program_is_called_no_other_command_runs(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = tmp_path_factory.mktemp("work")
    program = Path("bin") / f"zq{name.replace('/', '_')}"
    command = TracedCommand((str(program),), str(program), 0, False, None, program)
    try:
        text = script._text(script.TracedJob(command), folder, "lib.so", Path("a.prv"), "an\nMPI")
    except UsageError:
        assert not name.isprintable()
        return
    lines = text.splitlines()
    assert lines[1] == f"# Runs {program.name} and records a trace with popmodel."
    assert [line for line in lines if "zq" in line and not line.startswith("#")] == [
        line for line in lines if line.endswith(f" {shlex.quote(str(program))}")
    ]


def test_a_place_that_cannot_be_written(work: Path) -> None:
    (work / "run.trace").touch()
    with pytest.raises(FileError) as raised:
        write(work, job("./app"))
    assert raised.value.message == f"{work}/run.trace: cannot be written: file exists"
    assert raised.value.hint == "choose another path with -o"


def test_a_place_that_no_library_can_be_loaded_from(work: Path) -> None:
    made = job("./app")
    with pytest.raises(FileError) as raised:
        script.write(made, Path("libx.so"), Path("my run.prv.gz"))
    assert raised.value.message == (
        f"{work}/my run.trace/libx.so: cannot be preloaded: a path in LD_PRELOAD must not "
        "contain blanks or colons"
    )
    assert raised.value.hint == "choose another trace with -o, in another directory"
