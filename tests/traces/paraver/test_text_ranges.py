"""A trace in ranges: records, warnings and errors are those of the whole, whoever scans."""

import gzip
import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fuzz.mutate import mutate
from oracle.compare import told

from popmodel.traces.paraver import text_scan
from popmodel.traces.source import text_ranges

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_scan, "RANGE", 200)


def unpacked(path: Path, folder: Path) -> Path:
    target = folder / path.name.removesuffix(".gz")
    text = path.read_bytes()
    target.write_bytes(gzip.decompress(text) if path.suffix == ".gz" else text)
    return target


def check(path: Path, folder: Path) -> None:
    trace = unpacked(path, folder)
    wanted = told(trace)
    assert len(text_ranges(trace, 14, 200)) > 1
    for workers in (2, 3, 7):
        assert told(trace, workers=workers) == wanted, f"{path.name}, {workers} workers"
    trace.unlink()


@pytest.mark.usefixtures("however_small")
def test_records_do_not_depend_on_workers(tmp_path: Path) -> None:
    for name in ("bt-mz.S.2x2", "mixrma.4"):
        check(DATA / f"{name}.prv.gz", tmp_path)


@pytest.mark.long
@pytest.mark.usefixtures("however_small")
def test_records_of_the_reference_traces_do_not_depend_on_workers(
    shared_traces: Path, tmp_path: Path
) -> None:
    for folder in ("paraver", "programs", "gpu"):
        for path in (shared_traces / folder).glob("*.prv*"):
            check(path, tmp_path)


@pytest.mark.usefixtures("however_small")
def test_damage_is_told_as_by_one_worker(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "cg.S.2.prv.gz").read_bytes())
    header, body = text[: text.index(b"\n") + 1], text[text.index(b"\n") + 1 :]
    lines = []
    for seed in range(40):
        path = tmp_path / f"{seed}.prv"
        path.write_bytes(header + mutate(body, random.Random(seed)))
        wanted = told(path)
        assert told(path, workers=3) == wanted
        lines.append(wanted.get("error", (None, None, None))[2])
    assert len({line for line in lines if line and line > 1000}) > 5


@pytest.mark.usefixtures("however_small")
def test_an_executor_scans_ranges_of_one_trace(tmp_path: Path) -> None:
    trace = unpacked(DATA / "ft.S.4.prv.gz", tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    class Counting(ThreadPoolExecutor):
        count = 0

        def submit(self, *args: Any, **more: Any) -> Any:
            Counting.count += 1
            return super().submit(*args, **more)

    with Counting(2) as pool:
        assert told(trace, executor=pool, scratch=scratch) == told(trace)
    assert Counting.count > 10
    assert list(scratch.iterdir()) == []


@pytest.mark.long
@pytest.mark.usefixtures("however_small")
def test_processes_scan_ranges_and_tell_errors(tmp_path: Path) -> None:
    trace = unpacked(DATA / "cg.S.2.prv.gz", tmp_path)
    lines = trace.read_bytes().split(b"\n")
    lines[-300] = b"5:1:1"
    damaged = tmp_path / "damaged.prv"
    damaged.write_bytes(b"\n".join(lines))
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for path in (trace, damaged):
            assert told(path, executor=pool) == told(path)
    assert told(damaged)["error"][2] == len(lines) - 299
