"""Profiles of Score-P in Cube's format are runs for `metrics`, by the rules of Cube's Advisor."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs.made_cube import Called, paths, write_cube

import popmodel
from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.cli import main
from popmodel.efficiency.measure import analyse
from popmodel.runs.cube_profiles import read_cube_profile

DATA = Path(__file__).resolve().parents[1] / "data"

pytest.importorskip("pycubexr", reason="needs pycubexr: pip install 'popmodel-hpc[cubex]'")

LOOP = Called(
    "!$omp parallel @a.c:7",
    "openmp",
    "parallel",
    (
        Called("!$omp for @a.c:8", "openmp", "loop"),
        Called("!$omp ibarrier @a.c:9", "openmp", "implicit barrier"),
    ),
)
HYBRID = Called("main", inside=(Called("MPI_Allreduce", "mpi", "all2all"), LOOP))
TIMES = [  # of two processes with two threads each
    [2.0, 0.0, 1.0, 0.0],  # main
    [1.0, 0.0, 3.0, 0.0],  # MPI_Allreduce
    [0.5, 0.5, 0.5, 0.5],  # parallel
    [6.0, 5.0, 5.5, 2.0],  # loop
    [0.5, 1.5, 0.0, 3.5],  # implicit barrier
]


def test_efficiencies_are_those_of_cubes_advisor(tmp_path: Path) -> None:
    run = popmodel.metrics(write_cube(tmp_path / "profile.cubex", HYBRID, (2, 2), {"time": TIMES}))
    outside = np.array([2 + 7, 1 + 6])  # serial computation + time in OpenMP, of masters
    useful = np.array([8.5, 5.5, 7.0, 2.5])
    assert run["runtime"] == 10
    assert run["hybrid-additive.process_efficiency"] == pytest.approx(outside.mean() / 10)
    assert run["hybrid-multiplicative.mpi_load_balance"] == pytest.approx(outside.mean() / 9)
    assert run["hybrid-multiplicative.mpi_communication_efficiency"] == pytest.approx(0.9)
    assert run["hybrid-multiplicative.hybrid_parallel_efficiency"] == pytest.approx(
        useful.mean() / 10
    )
    absent = run.to_dict()["runs"][0]["absent"]["hybrid-multiplicative"]
    assert absent["mpi_transfer_efficiency"] == "a profile has sums, and no course of time"
    assert "by the rules of Cube's Advisor" in " ".join(str(run).split())


def test_it_says_what_its_trace_says_apart_from_replays(tmp_path: Path) -> None:
    trace = DATA / "bt-mz.S.2x2.prv.gz"
    seen = analyse(popmodel.read(trace)).observables
    masters = seen.masters
    table = np.zeros((5, len(seen.useful)))
    table[0, masters] = seen.serial_useful
    table[1, masters] = seen.serial_mpi
    table[3] = seen.omp_useful
    table[4, masters] = seen.in_openmp - seen.omp_useful[masters]
    # What is left of the runtime of a master is nothing that computes.
    table[1, masters] += seen.runtime - table.sum(axis=0)[masters]
    file = write_cube(tmp_path / "x.cubex", HYBRID, tuple(seen.threads), {"time": table})
    ours, theirs = popmodel.metrics([trace, file]).to_dict()["runs"]
    for family in ("hybrid-additive", "hybrid-multiplicative", "mpi"):
        for name, value in theirs["metrics"][family].items():
            assert value == pytest.approx(ours["metrics"][family][name], rel=1e-9), (family, name)
    assert {"process_efficiency", "parallel_efficiency"} <= theirs["metrics"][
        "hybrid-additive"
    ].keys()


_KINDS = (
    ("compiler", "function"),
    ("mpi", "point2point"),
    ("openmp", "parallel"),
    ("openmp", "task"),
    ("openmp", "barrier"),
    ("openmp", "loop"),
    ("pthread", "function"),
)


@given(seed=st.integers(0, 10_000), packed=st.booleans(), end=st.sampled_from("<>"))
def test_sums_are_those_of_a_plain_loop(
    tmp_path_factory: pytest.TempPathFactory, seed: int, packed: bool, end: str
) -> None:
    drawn = random.Random(seed)

    def some(depth: int) -> Called:
        kind = drawn.choice(_KINDS) if depth else _KINDS[0]
        below = range(drawn.randrange(4 - depth))
        return Called(f"f{drawn.random()}", *kind, tuple(some(depth + 1) for _ in below))

    root = some(0)
    threads = [drawn.randrange(1, 4) for _ in range(drawn.randrange(1, 4))]
    devices = drawn.randrange(2)
    locations = sum(threads) + devices * len(threads)
    times = [[drawn.random() for _ in range(locations)] for _ in paths(root)]
    file = tmp_path_factory.mktemp("cube") / "p.cubex"
    write_cube(file, root, threads, {"time": times}, packed=packed, devices=devices, end=end)
    found = read_cube_profile(file).observables
    place, column = 0, 0
    for process, count in enumerate(threads):
        for thread in range(count):
            sums = dict.fromkeys(("useful", "omp_useful", "mpi", "in_openmp"), 0.0)
            _add(root, iter([row[column] for row in times]), False, sums)
            assert found.useful[place] == pytest.approx(sums["useful"])
            assert found.omp_useful[place] == pytest.approx(sums["omp_useful"])
            assert found.in_mpi[place] == pytest.approx(sums["mpi"])
            if not thread:
                assert found.in_openmp[process] == pytest.approx(sums["in_openmp"])
            place, column = place + 1, column + 1
        column += devices
    assert found.runtime <= max(map(sum, zip(*times, strict=True))) + 1e-9


def _add(path: Called, values: Any, inside: bool, sums: dict[str, float]) -> None:
    value = next(values)
    inside = inside or path.role in ("parallel", "task")
    sums["mpi"] += value * (path.paradigm == "mpi")
    sums["in_openmp"] += value * inside
    if path.paradigm not in ("mpi", "pthread") and path.role != "barrier":
        sums["useful"] += value
        sums["omp_useful"] += value * inside
    for called in path.inside:
        _add(called, values, inside, sums)


def test_counters_and_idle_threads_are_taken_where_there_are_any(tmp_path: Path) -> None:
    idle = np.zeros((5, 4))
    idle[0, 1] = 4
    times = np.array(TIMES)
    times[0, 1] += 4
    counted = np.ones((5, 4))
    file = write_cube(
        tmp_path / "a.cubex",
        HYBRID,
        (2, 2),
        {"time": times, "omp_idle_threads": idle, "PAPI_TOT_INS": counted},
    )
    found = read_cube_profile(file).observables
    assert found.useful.tolist() == [8.5, 5.5, 7.0, 2.5]
    assert found.instructions is not None
    assert found.instructions.tolist() == [3, 3, 3, 3]  # main, parallel, loop


def test_calls_and_parallel_regions_are_listed(tmp_path: Path) -> None:
    visits = np.array([[1, 0, 1, 0], [3, 0, 4, 0], [2, 2, 2, 2], [2, 2, 2, 2], [2, 2, 2, 2]], float)
    file = write_cube(tmp_path / "a.cubex", HYBRID, (2, 2), {"visits": visits, "time": TIMES})
    run = read_cube_profile(file)
    (site,) = run.call_sites
    assert (site.name, site.count, site.time) == ("MPI_Allreduce in main", 7, 4.0)
    assert site.share == pytest.approx(4 / 40)
    assert run.evidence.calls == 7
    (region,) = run.observables.regions
    useful, busiest = 6.5 + 5.5 + 6 + 2.5, 2 * (6.5 + 6)
    assert (region.name, region.count, region.wall) == ("!$omp parallel @a.c:7", 4, 7 + 6)
    assert region.parallel_efficiency == pytest.approx(useful / (2 * 13))
    assert region.load_balance == pytest.approx(useful / busiest)
    assert (region.cost, region.barriers, region.mpi) == pytest.approx((26 - useful, 5.5, 0))
    shown = popmodel.metrics([file, DATA / "cg.S.2.prv.gz"])  # whose calls are other ones
    assert shown.to_dict()["runs"][0]["call_sites"][0]["function"] == "main"


def test_runs_are_compared(tmp_path: Path) -> None:
    pure = Called("main", inside=(Called("MPI_Recv", "mpi", "point2point"),))
    small = write_cube(tmp_path / "a.cubex", pure, (1,), {"time": [[8.0], [0.0]]})
    large = write_cube(tmp_path / "b.cubex", pure, (1, 1), {"time": [[4.0, 4.0], [1.0, 1.0]]})
    found = popmodel.metrics([small, large])
    assert found.to_dict()["runs"][1]["metrics"]["scaling"]["speedup"] == pytest.approx(1.6)
    assert found.to_dict()["runs"][1]["metrics"]["mpi"]["global_efficiency"] == pytest.approx(0.8)


def test_damaged_archives_are_refused_in_one_line(tmp_path: Path) -> None:
    good = write_cube(tmp_path / "a.cubex", HYBRID, (2, 2), {"time": TIMES}).read_bytes()
    drawn = random.Random(4)
    bad = tmp_path / "b.cubex"
    for _ in range(60):
        content = bytearray(good)
        for _ in range(drawn.randrange(1, 9)):
            content[drawn.randrange(len(content))] = drawn.randrange(256)
        bad.write_bytes(content[: drawn.choice((len(content), drawn.randrange(len(content))))])
        try:
            popmodel.metrics(bad)
        except PopmodelError as error:
            assert "\n" not in str(error)


def test_other_files_are_refused(tmp_path: Path) -> None:
    remapped = write_cube(
        tmp_path / "a.cubex", HYBRID, (2, 2), {"time": TIMES}, kind="PREDERIVED_EXCLUSIVE"
    )
    visits = write_cube(tmp_path / "b.cubex", HYBRID, (2, 2), {"visits": TIMES})
    (no_tar := tmp_path / "c.cubex").write_text("nothing")
    damaged = (
        "is damaged, or has what pycubexr does not read: several roots of calls (tasks), computed "
        "metrics (remapped profiles)"
    )
    for file, problem in (
        (remapped, damaged),
        (no_tar, damaged),
        (visits, "is a profile without times"),
        (tmp_path / "none.cubex", "no such file or directory"),
    ):
        with pytest.raises(FileError) as caught:
            popmodel.metrics(file)
        assert caught.value.message == f"{file}: {problem}"


def test_it_has_no_parts(tmp_path: Path) -> None:
    file = write_cube(tmp_path / "a.cubex", HYBRID, (2, 2), {"time": TIMES})
    for part in ({"window": (0, 1)}, {"by": "region"}):
        with pytest.raises(UsageError, match="sums of the whole run"):
            popmodel.metrics(file, **part)
    rows = popmodel.metrics(file, by="process").to_dict()["runs"][0]["by_process"]
    assert [row["process"] for row in rows] == [0, 1]


def test_without_the_library_a_line_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pycubexr", None)
    command: Sequence[str] = ["metrics", str(tmp_path / "a.cubex")]
    assert main(command) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"popmodel: error: {tmp_path / 'a.cubex'}: profiles of Cube are read by pycubexr, which is "
        "not installed",
        "hint: pip install 'popmodel-hpc[cubex]'",
    ]
