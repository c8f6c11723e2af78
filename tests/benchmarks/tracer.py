"""What tracing adds to MPI calls and OpenMP constructs: ``python tests/benchmarks/tracer.py``.

One process with one thread, so that nothing but the work of the call itself hides what the tracer
adds. Launches with and without the tracer alternate; a figure is the median over launches of the
median over batches. Exits with status 1 if a bound is missed: 150 ns per MPI call, 200 ns per
OpenMP construct. ``MPICC`` names the MPI, ``OMP_NUM_THREADS`` another number of threads (1 here).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from popmodel.machine.toolchain import find_mpi
from popmodel.tracer.environment import Settings, variables
from popmodel.tracer.library import find_or_build

ROUNDS = 5
BOUNDS = {"MPI": 150.0, "OpenMP": 200.0}
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

Times = dict[tuple[str, str, int], list[float]]


def launch(program: Path, environment: dict[str, str], times: Times) -> None:
    """Run the program once, and add what it measured."""
    done = subprocess.run(
        [program], env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    for line in done.stdout.splitlines():
        name, family, calls, each = line.split("\t")
        times.setdefault((name, family, int(calls)), []).append(float(each) / int(calls))


def main() -> None:
    """Print a table of medians."""
    mpi = find_mpi()
    library = find_or_build()
    plain: Times = {}
    traced: Times = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "tracer"
        source = Path(__file__).with_suffix(".c")
        command = [*mpi.compiler.command, "-O2", mpi.compiler.openmp, "-o", program, source]
        subprocess.run(command, check=True)
        environment = {"OMP_NUM_THREADS": "1", **os.environ, **ROOT}
        for number in range(ROUNDS):
            raw = Path(folder) / f"raw{number}"
            raw.mkdir()
            given = variables(library.path, raw, Settings())
            launch(program, environment, plain)
            launch(program, {**environment, **given}, traced)
            if not any(raw.iterdir()):
                sys.exit("nothing was recorded: there is nothing to compare")
    print(f"{mpi.name}, {mpi.compiler.version}; ns per call or construct, medians")
    print(f"{'':26}{'without':>9}{'traced':>9}{'added':>8}{'ratio':>7}{'bound':>7}")
    missed = []
    for key, before in plain.items():
        name, family, _ = key
        without, with_ = statistics.median(before), statistics.median(traced[key])
        added = with_ - without
        ratio = with_ / without
        bound = BOUNDS[family]
        print(f"{name:26}{without:9.1f}{with_:9.1f}{added:8.1f}{ratio:7.2f}{bound:7.0f}")
        if added > bound:
            missed.append(name)
    if missed:
        sys.exit(f"above its bound: {', '.join(missed)}")


if __name__ == "__main__":
    main()
