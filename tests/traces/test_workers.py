"""Several traces, or ranges of one: results do not depend on who works, nor on killed workers."""

import gc
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import killed
from oracle.compare import told
from oracle.killed import doubled
from patience import GENEROUS
from real_mpi import Mpi, mpi

import popmodel
from popmodel.base.errors import PopmodelError, TraceError, UsageError
from popmodel.traces import workers
from popmodel.traces.paraver import text_scan
from popmodel.traces.resources import worker_folder
from popmodel.traces.workers import executor_named, map_traces

__all__ = ["mpi"]

TESTS = Path(__file__).parents[1]
DATA = TESTS / "data"
TRACES = [str(DATA / f"{name}.prv.gz") for name in ("cg.S.2", "ft.S.4", "mg.S.4")]


@pytest.fixture
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MANY", 0)


def documents(**resources: Any) -> dict[str, Any]:
    with popmodel.resources(**resources):
        found = popmodel.metrics(TRACES)
    return found.to_dict()


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    return documents()


@pytest.mark.usefixtures("however_small")
@pytest.mark.long(after=1)
@pytest.mark.parametrize("number", [2, 3, 5])
def test_results_are_the_same_for_any_number_of_workers(number: int, alone: dict[str, Any]) -> None:
    assert documents(workers=number) == alone


def test_any_executor_of_python_works(alone: dict[str, Any]) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert documents(executor=pool) == alone
        assert pool.submit(doubled, 2).result() == 4  # it stays open


@given(st.lists(st.integers(), max_size=6), st.integers(0, 63))
@settings(max_examples=20)
def test_answers_come_in_order(numbers: list[int], here: int) -> None:
    paths = [None if here >> at & 1 else __file__ for at in range(len(numbers))]
    with ThreadPoolExecutor(3) as pool, popmodel.resources(executor=pool):
        found = list(map_traces(doubled, [(number,) for number in numbers], paths))
    assert found == [2 * number for number in numbers]


def test_small_traces_need_no_workers(
    monkeypatch: pytest.MonkeyPatch, alone: dict[str, Any]
) -> None:
    def elsewhere(*_: object) -> Iterator[Any]:
        raise AssertionError("workers were started")

    monkeypatch.setattr(workers, "_in_processes", elsewhere)
    assert documents(workers=4) == alone


@pytest.mark.long
@pytest.mark.usefixtures("however_small")
def test_the_first_error_is_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.prv").write_text("#Paraver (nothing\n")
    traces = [TRACES[0], tmp_path / "a.prv", tmp_path / "b.prv"]
    told = []
    for number in (1, 2):
        with pytest.raises(TraceError) as caught, popmodel.resources(workers=number):
            popmodel.metrics(traces)
        told.append((caught.value.message, caught.value.hint, caught.value.line))
    assert told[0] == told[1]
    assert "a.prv:1: " in told[0][0]


@pytest.mark.long
@pytest.mark.usefixtures("however_small")
def test_what_a_killed_worker_left_is_done_again(tmp_path: Path) -> None:
    units: list[tuple[Any, ...]] = [(1,), (2, str(tmp_path / "marker")), (3,), (4,)]
    with popmodel.resources(workers=2):
        assert list(map_traces(doubled, units, [__file__] * 4)) == [2, 4, 6, 8]


@pytest.mark.long
@pytest.mark.usefixtures("however_small")
def test_workers_that_are_always_killed_are_said(tmp_path: Path) -> None:
    units = [(1,), (2, str(tmp_path / "marker"), 100)]
    with (
        popmodel.resources(workers=2),
        pytest.raises(PopmodelError, match="workers were killed 3 times") as caught,
    ):
        list(map_traces(doubled, units, [__file__] * 2))
    assert caught.value.hint == "try --workers 1"


@pytest.fixture
def dask_address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    distributed = pytest.importorskip("distributed")
    import dask

    monkeypatch.setattr(workers, "_PATIENCE", GENEROUS)
    waits = {f"distributed.comm.timeouts.{what}": f"{GENEROUS}s" for what in ("connect", "tcp")}
    with (
        mock.patch.dict(os.environ),  # a nanny leaves OMP_NUM_THREADS=1 in it
        dask.config.set(waits),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
    ):
        yield cluster.scheduler_address.replace("tcp://", "dask://")
    gc.collect()  # what it left open is told here, where nobody minds, and in no other test


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # those of distributed
def test_a_cluster_of_dask_works(dask_address: str, alone: dict[str, Any], tmp_path: Path) -> None:
    executor = executor_named("--executor", dask_address)
    assert documents(executor=executor) == alone
    units: list[tuple[Any, ...]] = [(1,), (2, str(tmp_path / "marker")), (3,)]
    with popmodel.resources(executor=executor):
        assert list(map_traces(doubled, units, [__file__] * 3)) == [2, 4, 6]


@pytest.mark.long
def test_a_scheduler_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "_PATIENCE", 1)
    with pytest.raises(UsageError, match=r"no scheduler of dask answers at 127\.0\.0\.1:1:"):
        documents(executor="dask://127.0.0.1:1")


def libraries(mpi: Mpi) -> dict[str, str]:
    """Where mpi4py finds the library of an MPI that is no part of the system, and the tests."""
    library = Path(mpi.mpirun).resolve().parent.parent / "lib"
    return {"LD_LIBRARY_PATH": str(library), "PYTHONPATH": str(TESTS)}


@pytest.mark.long
def test_ranks_of_mpi_work(mpi: Mpi, alone: dict[str, Any]) -> None:
    pytest.importorskip("mpi4py")
    words = ["-m", "popmodel", "metrics", *TRACES, "--executor", "mpi4py", "--format", "json"]
    done = mpi.start(3, sys.executable, "-m", "mpi4py.futures", *words, **libraries(mpi))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {key: found[key] for key in alone} == json.loads(json.dumps(alone))


# Ranges of one trace.


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "ft.S.4.prv"
    path.write_bytes(gzip.decompress((DATA / "ft.S.4.prv.gz").read_bytes()))
    return path


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


SCRIPT = """
import sys
import popmodel.cli
from oracle import killed
from popmodel.traces.paraver import text_scan
if __name__ == "__main__":
    text_scan.RANGE = 200
    if "--kill" in sys.argv:
        sys.argv.remove("--kill")
        text_scan._scan_apart = killed.scan_apart
    sys.exit(popmodel.cli.main())
"""


def by_ranks(mpi: Mpi, trace: Path, scratch: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Scan ranges of a trace by two ranks of MPI; the third hands them out."""
    pytest.importorskip("mpi4py")
    script = trace.with_suffix(".py")
    script.write_text(SCRIPT)
    words = [script, "metrics", trace, "--executor", "mpi4py", "--scratch", scratch]
    words += ["--format", "json", *more]
    return mpi.start(3, sys.executable, "-m", "mpi4py.futures", *words, **libraries(mpi))


@pytest.mark.long
def test_ranks_of_mpi_scan_ranges_of_one_trace(mpi: Mpi, trace: Path, scratch: Path) -> None:
    done = by_ranks(mpi, trace, scratch)
    assert done.returncode == 0, done.stderr
    found, wanted = json.loads(done.stdout), popmodel.metrics(trace).to_dict()
    assert {key: found[key] for key in wanted} == json.loads(json.dumps(wanted))
    assert list(scratch.iterdir()) == []


@pytest.mark.long
def test_a_killed_rank_of_mpi_ends_the_job_and_leaves_nothing(
    mpi: Mpi, trace: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = by_ranks(mpi, trace, scratch, "--kill")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    monkeypatch.setattr(text_scan, "RANGE", 200)  # where the launcher killed rank 0, too
    with ThreadPoolExecutor(1) as pool:
        assert told(trace, executor=pool, scratch=scratch) == told(trace)
    assert list(scratch.iterdir()) == []


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # those of distributed
def test_a_cluster_of_dask_scans_ranges_again_whose_worker_was_killed(
    dask_address: str, trace: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = told(trace)
    monkeypatch.setattr(text_scan, "RANGE", 200)
    assert told(trace, executor=dask_address, scratch=scratch) == wanted
    monkeypatch.setattr(text_scan, "_scan_apart", killed.scan_apart)
    assert told(trace, executor=dask_address, scratch=scratch) == wanted
    assert trace.with_suffix(".killed").exists()
    assert list(scratch.iterdir()) == []


KILLED = """
import sys
from concurrent.futures import ThreadPoolExecutor
from oracle import killed
from oracle.compare import told
from popmodel.traces.paraver import text_scan
text_scan.RANGE = 200
text_scan._scan_apart = killed.scan_apart  # in a thread: this process is killed
with ThreadPoolExecutor(1) as pool:
    told(sys.argv[1], executor=pool, scratch=sys.argv[2])
"""


def test_what_a_killed_command_left_in_scratch_goes_at_the_next_start(
    trace: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, trace, scratch],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        check=False,
        timeout=GENEROUS,
    )
    assert done.returncode == -signal.SIGKILL
    assert any(scratch.glob("*/*"))
    foreign = scratch / "popmodel-foreign"
    foreign.mkdir()
    monkeypatch.setattr(text_scan, "RANGE", 200)
    with ThreadPoolExecutor(1) as pool, ExitStack() as close:
        with popmodel.resources(scratch=scratch):
            used = worker_folder(trace, close)
        assert told(trace, executor=pool, scratch=scratch) == told(trace)
        assert set(scratch.iterdir()) == {foreign, used, used.with_suffix(".lock")}
    assert list(scratch.iterdir()) == [foreign]


@pytest.mark.parametrize("text", ["slurm", "dask://", "dask://host", "nowhere.json"])
def test_executors_that_do_not_exist(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        executor_named("--executor", text)
    assert caught.value.message == (
        f"--executor: must be mpi4py, dask://HOST:PORT or a scheduler file of dask, not {text!r}"
    )


@pytest.mark.long
def test_mpi_needs_further_ranks(mpi: Mpi) -> None:
    pytest.importorskip("mpi4py")
    words = ["-m", "popmodel", "metrics", *TRACES, "--executor", "mpi4py"]
    done = mpi.start(1, sys.executable, *words, **libraries(mpi))
    assert "--executor: MPI has one rank, which has no workers" in done.stderr


def test_at_least_one_works() -> None:
    with pytest.raises(UsageError, match="must be at least 1"), popmodel.resources(workers=0):
        pass


def test_an_executor_that_is_given_is_used() -> None:
    class Counting(ThreadPoolExecutor):
        count = 0

        def submit(self, *args: Any, **more: Any) -> Any:
            Counting.count += 1
            return super().submit(*args, **more)

    pool: Executor
    with Counting(1) as pool, popmodel.resources(executor=pool):
        assert list(map_traces(doubled, [(1,), (2,)], [__file__] * 2)) == [2, 4]
    assert Counting.count == 2
