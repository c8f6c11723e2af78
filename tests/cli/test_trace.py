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
