"""Runs predicted from traces of smaller ones: ``python tests/benchmarks/scaling.py [NAME...]``.

For each case a signature from the small runs, predicted at the size of a run that was left out,
beside what that took, and beside plain extrapolations of the run times. Real traces are those of
``tests/data`` and, where they are, of ``shared/traces``; synthetic ones are simulated apart from
the package. NAME chooses cases that contain it. ``predict`` is for a preset, with another network
than that of the runs; ``replay`` carries out the whole signature on their own, or on the preset
alpha-beta where it is not known.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from synthetic import Network, Program, programs, run  # noqa: E402

import popmodel  # noqa: E402
from popmodel.base.errors import PopmodelError  # noqa: E402
from popmodel.fit.baselines import baselines  # noqa: E402
from popmodel.fit.samples import Sample  # noqa: E402

SHARED = Path(os.environ.get("POPMODEL_SHARED", ROOT.parent / "shared" / "traces"))
MACHINE = "sandybridge-fdr"
CELLS = {1: (1 << 24,), 2: (4096, 4096), 3: (256, 256, 256)}


@dataclass(frozen=True)
class Case:
    """Small runs, and the one that is predicted: traces with their P x T."""

    name: str
    small: tuple[Path, ...]
    large: Path
    network: str = "alpha-beta"
    latency: float | None = None


@dataclass(frozen=True)
class Row:
    """A prediction beside the truth, s."""

    name: str
    size: tuple[int, int]
    measured: float
    predicted: float
    low: float | None
    high: float | None
    replayed: float
    efficiency: tuple[float, float]
    others: dict[str, float]
    seconds: float

    @property
    def error(self) -> float:
        """Relative error of the runtime."""
        return self.predicted / self.measured - 1

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth."""
        return (
            self.low is not None
            and self.high is not None
            and (self.low <= self.measured <= self.high)
        )


Grid = tuple[int, ...]
SYNTHETIC: Mapping[str, tuple[Callable[[Grid], Program], Sequence[Grid]]] = {
    "jacobi 1-D": (
        lambda grid: programs.jacobi(grid, 20, cells=CELLS[1]),
        [(2,), (4,), (8,), (32,)],
    ),
    "jacobi 2-D": (
        lambda grid: programs.jacobi(grid, 20, cells=CELLS[2]),
        [(2, 2), (2, 4), (4, 4), (8, 8)],
    ),
    "jacobi 2-D, one run": (
        lambda grid: programs.jacobi(grid, 20, cells=CELLS[2]),
        [(4, 4), (8, 8)],
    ),
    "jacobi 2-D, periodic": (
        lambda grid: programs.jacobi(grid, 20, cells=CELLS[2], periodic=True),
        [(3, 3), (4, 4), (8, 8)],
    ),
    "jacobi 3-D": (
        lambda grid: programs.jacobi(grid, 20, cells=CELLS[3]),
        [(2, 2, 2), (4, 2, 2), (4, 4, 2), (4, 4, 4)],
    ),
    "transposes": (
        lambda grid: programs.transposes(grid[0], 10, points=1 << 22),
        [(2,), (4,), (8,), (32,)],
    ),
    "pipeline": (
        lambda grid: programs.pipeline(grid, 10, cells=CELLS[2]),
        [(2, 2), (2, 4), (4, 4), (8, 8)],
    ),
    "rows and transposes": (
        lambda grid: programs.rows_and_transposes(*grid),
        [(1, 2), (2, 2), (2, 4), (4, 4)],
    ),
    "levels": (
        lambda grid: programs.levels(grid, 10, cells=4096),
        [(2, 2), (2, 4), (4, 4), (8, 8)],
    ),
    "hybrid, more processes": (
        lambda grid: programs.jacobi(grid, 20, cells=CELLS[2], threads=2, serial=0.05),
        [(2, 1), (2, 2), (4, 2), (4, 4)],
    ),
    "hybrid, more threads": (
        lambda grid: programs.jacobi(grid[:1], 20, cells=CELLS[1], threads=grid[1], serial=0.05),
        [(2, 2), (2, 4), (2, 8), (2, 16)],
    ),
}
"""Programs, and the grids of their runs; the last one is left out."""

TRACED: Mapping[str, tuple[str, ...]] = {
    "EPOCH 1, 4 -> 16": ("epoch_1proc", "epoch_4proc", "epoch_16proc"),
    "EPOCH 4 -> 16": ("epoch_4proc", "epoch_16proc"),
    "ImageMagick 2 -> 8 threads": ("imagemagick_omp2", "imagemagick_omp8"),
}
REPLAYED: Mapping[str, tuple[str, ...]] = {
    "Jacobi (SMPI) 4 -> 16": ("smpi/jac2048.4", "smpi/jac2048.16"),
    "NAS CG 2, 4 -> 8": ("nas/cg.W.2", "nas/cg.W.4", "nas/cg.W.8"),
    "NAS CG 2, 4, 8 -> 16": ("nas/cg.W.2", "nas/cg.W.4", "nas/cg.W.8", "nas/cg.W.16"),
    "NAS CG 4 -> 16": ("nas/cg.W.4", "nas/cg.W.16"),
    "NAS MG 2, 4 -> 8": ("nas/mg.W.2", "nas/mg.W.4", "nas/mg.W.8"),
    "NAS MG 2, 4, 8 -> 16": ("nas/mg.W.2", "nas/mg.W.4", "nas/mg.W.8", "nas/mg.W.16"),
    "NAS MG 4 -> 16": ("nas/mg.W.4", "nas/mg.W.16"),
    "NAS BT-MZ 2 -> 4": ("nas/bt-mz.W.2", "nas/bt-mz.W.4"),
    "NAS BT-MZ 2, 4 -> 8": ("nas/bt-mz.W.2", "nas/bt-mz.W.4", "nas/bt-mz.W.8"),
    "NAS BT-MZ 2, 4, 8 -> 16": (
        *("nas/bt-mz.W.2", "nas/bt-mz.W.4", "nas/bt-mz.W.8", "nas/bt-mz.W.16"),
    ),
    "NAS BT-MZ 8 -> 16": ("nas/bt-mz.W.8", "nas/bt-mz.W.16"),
}
"""Time-independent traces of ``tests/data``, which SimGrid SMPI's rules give times."""


def names() -> list[str]:
    """Cases that can be made here."""
    return [*SYNTHETIC, *REPLAYED, *(TRACED if SHARED.is_dir() else ())]


def made(name: str, folder: Path) -> Case:
    """Make a case, with traces in a folder where there are none yet."""
    paths: list[Path] = []
    if name in TRACED:
        paths = [SHARED / "paraver" / f"{one}.prv.gz" for one in TRACED[name]]
        return Case(name, tuple(paths[:-1]), paths[-1])
    if name in REPLAYED:
        for one in REPLAYED[name]:
            paths.append(folder / f"{Path(one).name}.prv.gz")
            source = ROOT / "tests" / "data" / f"{one}.ti.txt.gz"
            popmodel.whatif(str(source), "smpi", flop_rate=1e9, save_trace=str(paths[-1]))
        return Case(name, tuple(paths[:-1]), paths[-1], "smpi")
    program, grids = SYNTHETIC[name]
    for grid in grids:
        done = run(program(grid), persistent=0.03, transient=0.02, seed=7, network=Network())
        paths.append(done.write(folder / f"run-{'x'.join(map(str, grid))}.prv"))
    return Case(name, tuple(paths[:-1]), paths[-1], latency=2.5e-6)


def measured(path: Path) -> tuple[tuple[int, int], float, float]:
    """P x T, runtime and parallel efficiency of a trace."""
    (found,) = popmodel.metrics(str(path)).to_dict()["runs"]
    threads = found["threads"]
    size = found["processes"], max(threads) if isinstance(threads, list) else threads
    family = "hybrid-additive" if size[1] > 1 else "mpi"
    return size, found["runtime"], found["metrics"][family]["parallel_efficiency"]


def predicted(case: Case, folder: Path) -> Row:
    """Predict the large run of a case."""
    start = time.process_time()
    size, truth, efficiency = measured(case.large)
    known = [measured(path) for path in case.small]
    signature = folder / "app.toml"
    popmodel.signature([str(path) for path in case.small]).save(signature)
    document = popmodel.predict(
        str(signature), machine=MACHINE, procs=size[0], threads=size[1]
    ).to_dict()
    runtime = document["runtime"]
    whole = popmodel.whatif(
        str(signature), case.network, latency=case.latency, procs=size[0], threads=size[1]
    )
    metrics = document["metrics"]["hybrid-additive"]["parallel_efficiency"]
    runs = [Sample(*place, seconds) for place, seconds, _ in known]
    return Row(
        case.name,
        size,
        truth,
        runtime["value"],
        runtime["low"],
        runtime["high"],
        whole.to_dict()["runs"][0]["runtime"],
        (metrics["value"], efficiency),
        baselines(runs, *size),
        time.process_time() - start,
    )


def shown(row: Row) -> str:
    """A line of the table."""
    interval = f"{row.low:.4g} .. {row.high:.4g}" if row.low is not None else "none"
    gaps = "".join(f"{100 * (value / row.measured - 1):>+8.0f}" for value in row.others.values())
    return (
        f"{row.name:<27}{row.size[0]:>3} x {row.size[1]:<3}{row.measured:>9.4g}"
        f"{row.predicted:>10.4g}{100 * row.error:>+7.1f}  {interval:<19}"
        f"{'yes' if row.covered else 'no':<4}{100 * (row.replayed / row.measured - 1):>+7.1f}"
        f"{100 * row.efficiency[1]:>7.1f}{100 * row.efficiency[0]:>7.1f}{gaps}{row.seconds:>7.1f}"
    )


HEAD = (
    f"{'case':<27}{'P x T':>9}{'truth, s':>9}{'predicted':>10}{'off, %':>7}  {'90 %':<19}{'in':<4}"
    f"{'replay':>7}{'PE, %':>7}{'pred.':>7}{'nearest':>8}{'linear':>8}{'amdahl':>8}{'pipe':>8}"
    f"{'normal':>8}{'CPU, s':>7}   (replay, baselines: off, %)"
)


def main() -> None:
    """Print the table."""
    wanted = sys.argv[1:]
    print(HEAD)
    for name in names():
        if wanted and not any(each in name for each in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(shown(predicted(made(name, Path(folder)), Path(folder))), flush=True)
            except PopmodelError as error:
                print(f"{name:<27}failed: {error}", flush=True)


if __name__ == "__main__":
    main()
