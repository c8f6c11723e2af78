"""The example programs: compiled without a warning, correct on every grid, clear about mistakes."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from patience import measuring
from real_mpi import Mpi

from popmodel.model.run.feasible_splits import best_grid

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> dict[str, Path]:
    """Both programs, by name."""
    found = {}
    for name in ("stencil3d", "cannon"):
        folder = tmp_path_factory.mktemp(name)
        for source in (EXAMPLES / name).iterdir():
            shutil.copy(source, folder)
        done = subprocess.run(
            ["make", f"MPICC={shlex.join(mpi.mpicc)}", "CFLAGS=-O2 -Werror"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found[name] = folder / name
    return found


def run(mpi: Mpi, ranks: int, program: Path, *words: str, threads: int = 1) -> tuple[int, str]:
    done = mpi.start(ranks, program, *words, OMP_NUM_THREADS=str(threads))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("ranks", "threads"), [(1, 2), (2, 1), (3, 2), (8, 1)])
def test_the_stencil_is_correct(mpi: Mpi, built: dict[str, Path], ranks: int, threads: int) -> None:
    status, shown = run(mpi, ranks, built["stencil3d"], "17", "10", threads=threads)
    assert status == 0, shown
    assert shown.count("correct") == 1
    assert f"{ranks} processes x {threads} threads" in shown
    grid = "x".join(map(str, best_grid(ranks, (17.0,) * 3, (False,) * 3)))
    assert f"grid {grid}\n" in shown  # the one that the model expects


@pytest.mark.long
def test_the_stencil_allows_for_the_rounding_of_many_steps(
    mpi: Mpi, built: dict[str, Path]
) -> None:
    status, shown = run(mpi, 1, built["stencil3d"], "24", "30000")
    assert status == 0, shown


@measuring()
def test_the_phases_of_the_stencil_make_up_its_runtime(mpi: Mpi, built: dict[str, Path]) -> None:
    _, shown = run(mpi, 1, built["stencil3d"], "64", "20")
    times = {name: float(value) for name, value in re.findall(r"^(\w+) +([\d.]+) s", shown, re.M)}
    runtime = times.pop("runtime")
    assert 0 < 20 * times.pop("tenth") <= 1.01 * runtime
    assert set(times) == {"halo", "sweep", "wall", "residual"}
    assert 0.9 * runtime < sum(times.values()) <= 1.01 * runtime


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("ranks", "threads"), [(1, 2), (4, 1), (9, 1)])
def test_cannon_is_correct(mpi: Mpi, built: dict[str, Path], ranks: int, threads: int) -> None:
    status, shown = run(mpi, ranks, built["cannon"], "36", threads=threads)
    assert status == 0, shown
    assert shown.count("correct") == 1


@measuring()
def test_a_tenth_of_the_products_take_no_longer_than_all(mpi: Mpi, built: dict[str, Path]) -> None:
    _, shown = run(mpi, 1, built["cannon"], "64", "50")
    times = {name: float(value) for name, value in re.findall(r"^(\w+) +([\d.]+) s", shown, re.M)}
    assert 0 < times["tenth"] <= times["runtime"] + 1e-6  # which is their mean, rounded


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("program", "ranks", "words", "message"),
    [
        ("stencil3d", 1, ("x",), "usage: stencil3d [CELLS [STEPS]], both whole numbers above 0"),
        ("stencil3d", 1, ("8", "1", "1"), "usage: stencil3d [CELLS [STEPS]]"),
        ("stencil3d", 4, ("1",), "more processes than cells along a dimension"),
        ("cannon", 1, ("0",), "usage: cannon [N [PRODUCTS]], both whole numbers above 0"),
        ("cannon", 2, (), "the number of processes has to be a square: 1, 4, 9, 16, ..."),
        ("cannon", 4, ("7",), "the root of the number of processes has to divide N"),
    ],
)
def test_mistakes_are_told(
    mpi: Mpi,
    built: dict[str, Path],
    program: str,
    ranks: int,
    words: tuple[str, ...],
    message: str,
) -> None:
    status, shown = run(mpi, ranks, built[program], *words)
    assert status != 0
    assert f"{program}: {message}" in shown
