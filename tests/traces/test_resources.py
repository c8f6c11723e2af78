"""Long columns and arrays lie in files of a scratch folder, and nothing of them is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import popmodel
from popmodel.base.errors import FileError, UsageError
from popmodel.kernel import _kernel
from popmodel.traces import resources as module

DATA = Path(__file__).parents[1] / "data"
TRACE = DATA / "cg.S.2.prv.gz"
SHM = Path("/dev/shm")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def every_trace_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONG", 0)
    monkeypatch.setattr(module, "BUDGET", 0)


def mapped(folder: Path) -> int:
    """Bytes of deleted files of a folder that this process has mapped."""
    total = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        if str(folder) in line and "(deleted)" in line:
            begin, end = (int(each, 16) for each in line.split()[0].split("-"))
            total += end - begin
    return total


@LINUX
@pytest.mark.usefixtures("every_trace_is_long")
def test_long_arrays_lie_in_files_without_a_name(tmp_path: Path) -> None:
    with popmodel.resources(scratch=tmp_path):
        popmodel.read(TRACE)
        small, large = np.ones(1000), np.ones(1 << 20)
        assert mapped(tmp_path) == large.nbytes
        assert list(tmp_path.iterdir()) == []
        grown = np.append(large, small)
        assert float(grown.sum()) == len(large) + len(small)
        large = np.zeros(1 << 20)  # in the file that `large` had, or another one
        assert not large.any()
    assert np.ones(1 << 20).sum() == 1 << 20
    del grown, large
    assert mapped(tmp_path) == 0


@pytest.mark.usefixtures("every_trace_is_long")
def test_results_are_those_in_memory(tmp_path: Path) -> None:
    path = DATA / "smpi" / "jac2048.4.ti.txt.gz"
    with popmodel.resources(scratch=tmp_path):
        there = popmodel.whatif(path, flop_rate=1e9).to_dict()
    assert there == popmodel.whatif(path, flop_rate=1e9).to_dict()


@pytest.mark.usefixtures("every_trace_is_long")
def test_space_is_checked_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PER_BYTE", 1e12)
    with popmodel.resources(scratch=tmp_path), pytest.raises(FileError) as caught:
        popmodel.read(TRACE)
    assert f"of scratch, {tmp_path} has " in caught.value.message
    assert caught.value.hint == "name a folder with more space: --scratch DIR, or TMPDIR=DIR"


LIMITED = """
import resource, sys
import numpy as np
import popmodel
from popmodel.base.errors import FileError
from popmodel.traces import resources as module
module.LONG = module.BUDGET = 0
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 23, 1 << 23))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with popmodel.resources(scratch=sys.argv[1]):
        popmodel.read(sys.argv[2])
        np.ones(1 << 21)
except FileError as error:
    print(error.message)
"""


@LINUX
def test_a_scratch_folder_that_takes_no_more_is_said(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path), str(TRACE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}: cannot hold 16 MiB more: file too large\n"


@pytest.mark.parametrize(
    ("folder", "problem"), [("nowhere", "is no folder"), ("x", "is no folder")]
)
def test_folders_that_cannot_be_used(tmp_path: Path, folder: str, problem: str) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(UsageError, match=problem), popmodel.resources(scratch=tmp_path / folder):
        pass


@pytest.mark.skipif(not SHM.is_dir() or not _kernel.is_in_memory(str(SHM)), reason="no tmpfs")
def test_folders_in_memory_are_refused_and_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="lies in memory"), popmodel.resources(scratch=SHM):
        pass
    monkeypatch.setattr("tempfile.tempdir", str(SHM))
    if not _kernel.is_in_memory(str(TRACE.parent)):
        assert module.default_folder(TRACE) == TRACE.parent.absolute()


KILLED = """
import sys, time
import numpy as np
import popmodel
from popmodel.traces import resources as module
module.LONG = module.BUDGET = 0
with popmodel.resources(scratch=sys.argv[1]):
    popmodel.read(sys.argv[2])
    held = np.ones(1 << 20)
    print("holds", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holding(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(TRACE)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with child:
        yield child
        child.kill()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_after_a_kill(
    holding: subprocess.Popen[str], tmp_path: Path, sent: signal.Signals
) -> None:
    assert holding.stdout is not None
    assert holding.stdout.readline() == "holds\n"
    os.kill(holding.pid, sent)
    holding.wait()
    assert list(tmp_path.iterdir()) == []
