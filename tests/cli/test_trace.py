"""``popmodel trace``: its options, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from patience import GENEROUS
from real_mpi import Mpi

from popmodel.machines.host.toolchain import find_compiler

from .traced_programs import Call, environment


@pytest.mark.long
def test_nothing_is_overwritten_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popmodel: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = tmp_path / "ran"
    words = ["sh", "-c", f"touch {ran}"]
    for name in ("x.prv.gz", "x.pcf", "x.row"):
        (tmp_path / name).write_text("precious")
        assert popmodel("trace", "-o", "x.prv.gz", *words) == (
            2,
            "",
            f"popmodel: error: -o x.prv.gz: {name} exists\nhint: use --force to overwrite it\n",
        )
        (tmp_path / name).unlink()
    (tmp_path / "x.row").mkdir()
    assert popmodel("trace", "-o", "x.prv.gz", "--force", *words)[2] == (
        "popmodel: error: -o x.prv.gz: x.row is a directory\nhint: choose another file\n"
    )
    (tmp_path / "x.row").rmdir()
    (tmp_path / "x.raw").mkdir()
    status, _, err = popmodel("trace", "-o", "x.prv.gz", *words)
    assert status == 2
    assert "x.raw: contains raw files of an earlier or unfinished run\n" in err
    assert not ran.exists()  # refused before the run, not after it


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ([], "trace: no command given", "popmodel trace -- mpirun -n 4 ./app"),
        (
            ["-o", "x.txt", "sh"],
            "-o x.txt: must end in .prv or .prv.gz",
            ("try -o app.prv.gz"),
        ),
        (
            ["-o", ".prv", "sh"],
            "-o .prv: must end in .prv or .prv.gz",
            ("try -o app.prv.gz"),
        ),
        (["-o", "-", "sh"], "-o -: must end in .prv or .prv.gz", ("try -o app.prv.gz")),
        (["--openmp", "omt", "sh"], "--openmp: unknown value 'omt'", "did you mean ompt?"),
        (
            ["--window", "5s", "sh"],
            "--window 5s: must be FROM:TO",
            "try --window 10s:20s, or --window 10s: to record to the end",
        ),
        (
            ["--window", "5s:3s", "sh"],
            "--window 5s:3s: must begin before it ends",
            "try --window 10s:20s, or --window 10s: to record to the end",
        ),
        (
            ["--window", "x:3s", "sh"],
            "--window: 'x' is not a time",
            "give a number with ns, us, ms, s, min or h, for example 5us",
        ),
        (["--after-init", "sh"], "no such option: --after-init", "now --window 0:"),
        (
            ["--leave-out", "tests,chunk", "sh"],
            "--leave-out: unknown value 'chunk'",
            "did you mean chunks?",
        ),
        (
            ["--max-rate", "0", "sh"],
            "--max-rate: must be a whole number, at least 1, not '0'",
            "try --max-rate 4",
        ),
        (
            ["--max-size", "1kB", "sh"],
            "--max-size 1kB: must be at least 1MiB",
            "try --max-size 1GiB",
        ),
        (["--locks", "all", "sh"], "--locks: unknown value 'all'", "choose one of sum, each"),
        (
            ["--ranks", "4", "sh"],
            "--ranks: only valid with --script",
            "otherwise the command sets it, for example mpirun -n 4 ./app",
        ),
        (
            ["--print-env", "--script", "slurm"],
            "--print-env and --script are mutually exclusive",
            "leave one of them out",
        ),
        (
            ["--print-env", "./app"],
            "--print-env: takes no command, not './app'",
            "leave the command out; run it in your script with the printed variables",
        ),
        (["--script", "pbs", "sh"], "--script: unknown value 'pbs'", "choose one of slurm"),
        (
            ["--script", "slurm", "--nodes", "none", "sh"],
            "--nodes: must be a whole number, at least 1, not 'none'",
            "try --nodes 4",
        ),
        (
            ["merge"],
            "merge: takes one directory, not 0",
            "popmodel trace merge app.raw -o app.prv.gz",
        ),
        (
            ["merge", "x.raw", "--script", "slurm"],
            "--script: not valid with merge",
            "popmodel trace merge DIR -o app.prv.gz",
        ),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    message: str,
    hint: str,
    popmodel: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = (2, "", f"popmodel: error: {message}\nhint: {hint}\n")
    assert popmodel("trace", *arguments) == expected
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(popmodel: Call, tmp_path: Path) -> None:
    status, _, err = popmodel("trace", "-o", f"{tmp_path}/absent/x.prv.gz", "sh", "-c", "exit 9")
    assert status == 1
    assert f"{tmp_path}/absent/x.prv.gz: cannot be written: no such file or directory\n" in err


def test_a_static_program_is_refused(popmodel: Call, tmp_path: Path) -> None:
    source, program = tmp_path / "app.c", tmp_path / "app"
    source.write_text("int main(void) { return 0; }\n")
    built = subprocess.run(
        [*find_compiler().command, "-static", "-o", program, source], capture_output=True
    )
    if built.returncode != 0:
        pytest.skip("needs a static library of C")
    status, _, err = popmodel("trace", "-o", str(tmp_path / "x.prv"), str(program))
    assert status == 1
    assert err.startswith(f"popmodel: error: {program}: cannot be traced: it is statically linked")


@pytest.mark.long
def test_what_is_behind_the_command_is_its_own(
    programs: dict[str, Path], tmp_path: Path, mpi: Mpi
) -> None:
    """Without -- the options end where the command begins."""
    words = ["trace", "-o", "x.prv", str(programs["openmp"]), "4", "--force", "-o", "--", "--help"]
    done = subprocess.run(
        [sys.executable, "-m", "popmodel", *words],
        cwd=tmp_path, env=environment(mpi), capture_output=True, text=True, timeout=GENEROUS,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (4, "sum 2.4975e+06\n")
    assert (tmp_path / "x.prv").exists()
