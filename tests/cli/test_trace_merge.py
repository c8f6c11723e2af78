"""``popmodel trace merge``: from records to a trace, also where a run was ended before."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
from pathlib import Path

import pytest
from real_mpi import Mpi

from popmodel.base.errors import TraceError

from .traced_programs import Call, Traced


@pytest.mark.long(after=1)
@pytest.mark.parametrize("merges", [False, True], ids=["after the run", "merge"])
def test_a_merge_that_a_signal_ends_says_how_to_go_on(
    programs: dict[str, Path],
    traced: Traced,
    tmp_path: Path,
    popmodel: Call,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    merges: bool,
) -> None:
    """Nothing is left but the records, in a directory that can be seen."""
    program = str(programs["openmp"])
    monkeypatch.chdir(tmp_path)
    if merges:
        traced(program, options=("--keep-raw",))
        for path in tmp_path.glob("openmp.*"):
            if path.is_file():
                path.unlink()
    there = {path.name for path in tmp_path.iterdir()}

    def killed(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

    monkeypatch.setattr("popmodel.tracer.conversion.merge_runs", killed)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        popmodel("trace", *(("merge", "openmp.raw") if merges else ("--", program)))
    assert ended.value.code == 128 + signal.SIGTERM
    said = capsys.readouterr().err
    assert (
        "the raw files are kept; to merge them: popmodel trace merge openmp.raw -o openmp.prv.gz"
    ) in said
    assert signal.getsignal(signal.SIGTERM) == before
    assert {path.name for path in tmp_path.iterdir()} == there | {"openmp.raw"}
    assert list((tmp_path / "openmp.raw").glob("*.meta"))


def test_records_are_kept_where_no_trace_can_be_made_of_them(
    mpi: Mpi,
    programs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from popmodel.cli import main

    def full(*_: object, **__: object) -> None:
        raise TraceError("x.prv.gz", "cannot be written: no space left on device", hint="free some")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPICC", shlex.join(mpi.mpicc))  # whose library is built already
    monkeypatch.setattr("popmodel.tracer.conversion.merge_runs", full)
    for status in (0, 3):
        program = str(programs["openmp"])
        assert main(["trace", "--force", "-o", "x.prv.gz", program, str(status)]) == (status or 1)
        assert capfd.readouterr().err == (
            "popmodel: the raw files are kept; to merge them: popmodel trace merge x.raw -o "
            "x.prv.gz\npopmodel: error: x.prv.gz: cannot be written: no space left on "
            "device\nhint: free some\n"
        )
        assert list((tmp_path / "x.raw").glob("*.meta"))


@pytest.mark.long
def test_merging_names_the_trace_after_the_directory(
    programs: dict[str, Path],
    traced: Traced,
    tmp_path: Path,
    popmodel: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traced(programs["openmp"], options=("--keep-raw",))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    status, _, err = popmodel("trace", "merge", "openmp.raw")
    assert (status, err) == (
        2,
        "popmodel: error: -o openmp.prv.gz: openmp.prv.gz exists\n"
        "hint: use --force to overwrite it\n",
    )
    status, out, err = popmodel("trace", "merge", "openmp.raw", "--force")
    assert (status, err) == (0, "")
    doubt, summary, _ = out.partition("trace      openmp.prv.gz, ")
    assert summary
    assert doubt == "" or doubt.startswith("threads waited for a CPU")  # on a busy machine
    assert "\nraw files  openmp.raw, " in out
    assert "popmodel whatif" not in out  # there was no MPI
    for format in ("csv", "markdown"):
        status, out, _ = popmodel("trace", "merge", "openmp.raw", "--force", "--format", format)
        assert status == 0
        assert "openmp.prv.gz" in out


@pytest.mark.long
def test_a_program_may_be_called_merge(
    programs: dict[str, Path], traced: Traced, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copy(programs["openmp"], tmp_path / "bin" / "merge")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = traced("merge", PATH=path)
    assert (done.returncode, done.stdout) == (0, "sum 2.4975e+06\n")
    assert (tmp_path / "merge.prv.gz").exists()
