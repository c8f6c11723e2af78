"""What tracing adds to MPI calls and OpenMP constructs: ``python tests/benchmarks/tracer.py``.

``python tests/benchmarks/tracer.py -- COMMAND...`` runs a program of one's own instead, and
compares what tracing added to it with the range that popmodel states for it: exits with status 1
where that does not hold it. What counts is CPU time: other programs disturb it less than the
clock.

One process with one thread, so that nothing but the work of the call itself hides what the tracer
adds. Launches with and without the tracer alternate; a figure is the median over launches of the
median over batches. Exits with status 1 if a bound is missed: 150 ns per MPI call, 200 ns per
OpenMP construct. ``MPICC`` names the MPI, ``OMP_NUM_THREADS`` another number of threads (1 here).
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from popmodel.machines.host.toolchain import find_mpi
from popmodel.tracer.commands import Settings, variables
from popmodel.tracer.conversion import held_up, merge
from popmodel.tracer.library import find_or_build

ROUNDS = 5
PAIRS = 9
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


def processor_time(command: list[str], environment: dict[str, str]) -> float:
    """Seconds that a command and what it starts compute."""
    before = os.times()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )


def paired(command: list[str]) -> None:
    """Print what tracing added to a program and what is stated of it."""
    program = str(Path(shutil.which(command[0]) or command[0]).absolute())
    library = find_or_build()
    environment = {"OMP_NUM_THREADS": "1", **os.environ, **ROOT}
    times: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for number in range(PAIRS):
            raw = Path(folder) / f"raw{number}"
            raw.mkdir()
            given = variables(library.path, raw, Settings())
            plain = processor_time([program, *command[1:]], environment)
            traced = processor_time([program, *command[1:]], {**environment, **given})
            times.append((plain, traced))
            if number == 0:
                merged = merge(raw, Path(folder) / "trace.prv")
            shutil.rmtree(raw)
    plain = statistics.median(each[0] for each in times)
    added = statistics.median(each[1] for each in times) - plain
    low, high = (each / plain for each in held_up(merged))
    least = min(each[1] for each in times) / min(each[0] for each in times) - 1
    print(f"added    {100 * added / plain:.1f} % (of the fastest runs {100 * least:.1f} %)")
    print(f"stated   {100 * low:.1f} to {100 * high:.1f} %, {merged.records} records")
    if not low <= added / plain <= high:
        sys.exit("what was added is not in the range that is stated")


def main() -> None:
    """Print a table of medians, or what was added to a program."""
    if sys.argv[1:2] == ["--"]:
        paired(sys.argv[2:])
        return
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
