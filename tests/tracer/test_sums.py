"""Sums of threads against the trace of the same run: the same records, added up by the library."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from patience import GENEROUS
from real_mpi import ENVIRONMENT, Mpi

import popmodel
from popmodel.machines.host.hardware import parse_cpu_list
from popmodel.tracer.conversion import merge
from popmodel.tracer.raw_records import RECORD, RecordKind, known_calls
from popmodel.tracer.summaries import NEEDS_TRACE, SUMS, ProcessSums, observables_of, read_sums

from .traced import MICROBENCH, Run, library, program

__all__ = ["library", "program"]

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = ("hybrid-additive", "talp")


@pytest.fixture(scope="module")
def adder(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adds up a file of records."""
    made = tmp_path_factory.mktemp("adder") / "adder"
    source = Path(__file__).with_name("programs") / "sums_of_records.c"
    flags = ["-std=c11", "-D_GNU_SOURCE=", "-O1", f"-I{MICROBENCH / 'tracer'}", "-o", made, source]
    subprocess.run([*mpi.mpicc, *flags], check=True)
    return made


def times_of(records: np.ndarray, kind: RecordKind, name: str) -> list[int]:
    """When calls of MPI whose name begins so are entered or left, ns."""
    numbers = [number for number, call in known_calls().items() if call.name.startswith(name)]
    chosen = (records["kind"] == kind) & np.isin(records["call"], numbers)
    found: list[int] = records["time"][chosen].tolist()
    return found


def add_up(adder: Path, raw: Path, into: Path) -> float:
    """Make sums of all records in a directory, of the time in which all ranks are in MPI.

    Gives the most that a thread took to make room for records, s: it is useful time in the sums,
    and none in the trace.
    """
    into.mkdir()
    records = {
        path: np.frombuffer(path.read_bytes(), RECORD, offset=64) for path in raw.glob("*.raw")
    }
    ends = [time for some in records.values() for time in times_of(some, RecordKind.LEAVE, "Init")]
    stops = [
        time for some in records.values() for time in times_of(some, RecordKind.ENTER, "Finalize")
    ]
    for path in records:
        words = [adder, path, into / f"{path.stem}.sums", max(ends), min(stops)]
        subprocess.run(list(map(str, words)), check=True)
    for meta in raw.glob("*.meta"):
        (into / meta.name).write_text(meta.read_text())
    made_room = [
        int(some["time"][some["kind"] == RecordKind.FLUSH_END].sum())
        - int(some["time"][some["kind"] == RecordKind.FLUSH_BEGIN].sum())
        for some in records.values()
    ]
    return max(made_room) * 1e-9


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("source", "ranks", "threads", "words"),
    [
        ("stencil3d", 2, 2, ("48", "60")),
        ("stencil3d", 4, 1, ("48", "60")),
        ("stencil3d", 1, 4, ("48", "60")),
        ("cannon", 4, 2, ("360",)),
    ],
)
def test_efficiencies_are_those_of_the_trace_of_the_same_run_within_a_point(
    source: str,
    ranks: int,
    threads: int,
    words: tuple[str, ...],
    mpi: Mpi,
    library: Path,
    adder: Path,
    tmp_path: Path,
    openmp: str,
) -> None:
    program = tmp_path / source
    code = ROOT / "examples" / source / f"{source}.c"
    subprocess.run([*mpi.mpicc, "-O1", openmp, "-o", program, code, "-lm"], check=True)
    run = Run(mpi, library, tmp_path)
    done = run.start(ranks, program, *words, before=f"export OMP_NUM_THREADS={threads};")
    assert done.returncode == 0, done.stderr
    merge(run.raw, tmp_path / "run.prv.gz")
    made_room = add_up(adder, run.raw, tmp_path / "sums")
    sums = observables_of(read_sums(tmp_path / "sums").processes)
    trace = popmodel.metrics(tmp_path / "run.prv.gz")
    assert sums.threads.tolist() == [threads] * ranks
    for quantity in ("in_mpi", "in_openmp", "omp_useful"):
        expected = getattr(trace.runs[0].observables, quantity)
        # Rows of a trace are by number in the team.
        assert np.sort(getattr(sums, quantity)) == pytest.approx(np.sort(expected), abs=1e-6)
    families = popmodel.load_families()
    for name in FAMILIES if threads > 1 else ("mpi",):
        found = families[name].evaluate(sums.aggregates(), sums.absent)
        assert set(found.absent.values()) <= {NEEDS_TRACE}
        efficiencies = {id: trace[f"{name}.{id}"] for id in found.values}
        within = 0.01 + made_room / sums.useful.min()
        assert found.values == pytest.approx(efficiencies, abs=within)


@pytest.fixture
def openmp() -> str:
    from popmodel.machines.host.toolchain import find_compiler

    return find_compiler().openmp


def test_a_run_takes_a_page_for_each_thread_whatever_its_length(
    mpi: Mpi, library: Path, program: Callable[..., Path], tmp_path: Path
) -> None:
    sizes = []
    for steps in ("10", "1000"):
        folder = tmp_path / steps
        folder.mkdir()
        done = subprocess.run(
            [mpi.mpirun, "-n", "1", program("placed", "-DWITH_MPI", "-fopenmp"), steps],
            env={
                **os.environ, **ENVIRONMENT, "OMP_NUM_THREADS": "2", "LD_PRELOAD": str(library),
                "POPMODEL_TRACE_DIR": str(folder), "POPMODEL_TRACE_SUMMARY": "1",
            },
            capture_output=True, text=True, check=False, timeout=GENEROUS,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        sizes.append([path.stat().st_size for path in sorted(folder.glob("*.sums"))])
        assert not list(folder.glob("*.raw"))
        (meta,) = folder.glob("*.meta")
        assert meta.stat().st_size < 8192
    assert sizes == [[4096, 4096]] * 2


def test_a_process_tells_the_cpus_of_its_control_group(
    library: Path, program: Callable[..., Path], tmp_path: Path
) -> None:
    environment = {
        **os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1",
        "POPMODEL_TRACE_DIR": str(tmp_path), "POPMODEL_TRACE_SUMMARY": "1",
    }  # fmt: skip
    bound = ["taskset", "-c", str(min(os.sched_getaffinity(0))), program("placed", "-fopenmp"), "2"]
    subprocess.run(bound, env=environment, capture_output=True, check=True, timeout=GENEROUS)
    (process,) = read_sums(tmp_path).processes
    if "cpuset" not in process.meta.variables:
        pytest.skip("needs a control group of CPUs")
    held = set(parse_cpu_list(process.meta.variables["cpuset"]))
    assert held >= os.sched_getaffinity(0) >= process.meta.cpus[0]


S = 10**9
A, B, C = ({"PMIX_RANK": str(rank)} for rank in range(3))


@pytest.mark.parametrize(
    ("size", "begins", "variables", "runs"),
    [
        (1, [0, 1, 2], [{}, {}, {}], [3]),  # each is there for 3 s or 4 s
        (1, [0, 5, 10], [{}, {}, {}], [1, 1, 1]),
        (1, [0, 5, 10], [A, B, C], [3]),  # a launcher that is slow to start them
        (None, [0, 5, 10], [A, B, A], [2, 1]),
        (1, [0, 0, 5], [A, B, A], [2, 1]),
        (1, [0, 1, 1], [A, A, A], [3]),  # in the background of a script that a launcher started
        (2, [0, 0, 5], [A, B, A], [2, 1]),
    ],
)
def test_processes_of_a_run_have_a_rank_each_or_are_there_at_a_time(
    size: int | None,
    begins: list[int],
    variables: list[dict[str, str]],
    runs: list[int],
    tmp_path: Path,
) -> None:
    sums = next((ROOT / "tests/data/sums/right").glob("*.sums")).read_bytes()
    (of_clock,) = {int(word) for word in np.frombuffer(sums, SUMS, 1, 64)["begin"]}
    for number, (begin, own) in enumerate(zip(begins, variables, strict=True)):
        events: list[dict[str, object]] = [
            {"event": "start", "version": 2, "host": "a", "boot": "a", "pid": number,
             "monotonic": of_clock, "realtime": (1000 + begin) * S},
            {"event": "environment", **own},
        ]  # fmt: skip
        if size is not None:
            rank = int(own["PMIX_RANK"]) if size > 1 else 0
            events.append(
                {"event": "mpi", "rank": rank, "size": size, "thread_level": 1, "library": "MPI",
                 "job": "", "spawned": 0, "time": of_clock}
            )  # fmt: skip
        (tmp_path / f"a.{number}.meta").write_text("\n".join([*map(json.dumps, events), ""]))
        (tmp_path / f"a.{number}.t0.sums").write_bytes(sums)
    found = read_sums(tmp_path)
    assert len(found.processes) == max(runs)
    told = [note for note in found.notes if "of the same command" in note]
    others = len(runs) - 1
    assert told == [f"{others} shorter run{'s' * (others > 1)} of the same command (not shown)"] * (
        others > 0
    )


def test_of_a_process_whose_first_thread_ends_early_the_rest_is_time_in_regions() -> None:
    """Without MPI: the threads that are still there are what the process does."""
    (process, _) = read_sums(ROOT / "tests/data/sums/right").processes
    process.meta.rank = None
    two = np.zeros(2, SUMS)
    two["end"] = 4 * S, 10 * S
    two["useful"] = [(S, 3 * S), (0, 9 * S)]
    two["in_regions"][0] = 3 * S
    two["regions"] = 1
    alone = observables_of([ProcessSums(process.meta, two, (0, 1))])
    assert (alone.runtime, alone.serial_useful[0], alone.in_openmp[0]) == (10, 1, 9)


@pytest.mark.parametrize(
    ("header", "size"),
    [
        *((b"", size) for size in (0, 64, 4096)),
        (bytes(8) + b"\x01" * 40, 4096),
        (b"popmodel" + b"\x01" * 40, 4096),
    ],
)
def test_a_thread_that_was_killed_before_its_first_sum_is_left_out(
    tmp_path: Path, header: bytes, size: int
) -> None:
    """The library makes room in zeros, then it writes the header, its magic number last."""
    for path in (ROOT / "tests/data/sums/right").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    whole = read_sums(tmp_path)
    first = min(tmp_path.glob("*.sums"))
    killed = first.with_name(first.name.replace(".t0.", ".t9."))
    killed.write_bytes(header.ljust(size, b"\0"))
    found = read_sums(tmp_path)
    assert [process.numbers for process in found.processes] == [
        process.numbers for process in whole.processes
    ]
    told = "1 thread without sums (killed at once, or disk full?)"
    assert found.notes == (*whole.notes, told)


def test_of_a_run_that_was_killed_at_once_proc_is_not_called_hidden(tmp_path: Path) -> None:
    """Threads look into /proc each second, and at their end."""
    for path in (ROOT / "tests/data/sums/right").iterdir():
        content = bytearray(path.read_bytes())
        if path.suffix == ".sums":
            at = 64 + (SUMS.fields or {})["used"][1]
            content[at : at + 8] = bytes(8)
        (tmp_path / path.name).write_bytes(content)
    assert read_sums(tmp_path).notes[-1].startswith("/proc is hidden")
    for path in tmp_path.glob("*.meta"):
        lines = [line for line in path.read_text().splitlines() if '"event":"end"' not in line]
        path.write_text("\n".join([*lines, ""]))
    (note,) = read_sums(tmp_path).notes
    assert note.startswith("2 processes did not come to an end")
