"""CPU time of finding the structure of long traces, by event.

``python tests/benchmarks/structure.py`` makes traces of a program that exchanges with four
neighbours and reduces every fourth step (as ``metrics.py``), of 10, 30 and 100 MB of text, and
programs that are harder: without any repetition, and with a solver inside of each step that takes
as many iterations as it needs. For each it prints the time of reading with the program of the
replay, that of the structure, and the latter by event: where that stays the same, the time is
linear. It also says what was found.

Then it finds the signatures of the same traces, and of a run of EPOCH on 16 processes if its trace
is in ``--traces``, else of one from ``tests/data``: CPU time of the whole process, by record (line
of the trace), and by how much the latter exceeds that of the shortest.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import metrics
import numpy as np

from popmodel.simulator import Program
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.structure.iterations import find, structure_of
from popmodel.structure.structure import Structure
from popmodel.traces import read

DATA = Path(__file__).resolve().parents[1] / "data"


def stencil(folder: Path, processes: int, megabytes: int) -> tuple[float, float, Structure]:
    """CPU time of reading and of finding, and what is found in a trace of so much text."""
    path = folder / f"stencil-{processes}-{megabytes}.prv"
    if not path.exists():
        metrics.write(path, processes, megabytes * 10**6)
    begin = time.process_time()
    trace = read(path)
    program = from_trace(trace)
    middle = time.process_time()
    found = find(trace, program)
    return middle - begin, time.process_time() - middle, found


def extracting(path: Path) -> tuple[float, int]:
    """CPU time of a process that finds the signature of a trace, s, and records of the trace."""
    text = "import sys, popmodel; popmodel.signature(sys.argv[1])"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", text, str(path)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        records = sum(1 for _ in lines)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, records


def irregular(processes: int, calls: int) -> Program:
    """Messages and collectives of random partners, sizes and tags."""
    rng = np.random.default_rng(1)
    builder = ProgramBuilder(processes)
    for _ in range(calls):
        for process in range(processes):
            builder.compute(process, 1e-6)
        if rng.integers(0, 3) == 0:
            target = builder.collective("allreduce", int(2 ** rng.integers(1, 12)), 8)
            for process in range(processes):
                builder.do(process, Op.COLLECTIVE, target)
        else:
            one, other = (int(each) for each in rng.choice(processes, 2, replace=False))
            size, tag = int(2 ** rng.integers(1, 20)), int(rng.integers(0, 5))
            message = builder.message(one, other, size, tag)
            builder.do(one, Op.ISEND, message)
            builder.do(other, Op.RECEIVE, message)
    return builder.build()


def solver(processes: int, steps: int) -> Program:
    """Steps with a solver of 10 to 20 iterations, each a shift and a reduction."""
    rng = np.random.default_rng(2)
    builder = ProgramBuilder(processes)

    def shift(tag: int) -> None:
        for process in range(processes):
            builder.compute(process, 1e-4)
        pairs = [(p, (p + 1) % processes) for p in range(processes)]
        messages = [builder.message(*pair, 4096, tag) for pair in pairs]
        for process in range(processes):
            builder.do(process, Op.SEND, messages[process])
            builder.do(process, Op.RECEIVE, messages[process - 1])

    for count in rng.integers(10, 21, steps).tolist():
        shift(1)
        shift(2)
        for _ in range(count):
            shift(3)
            target = builder.collective("allreduce", 8, 8)
            for process in range(processes):
                builder.do(process, Op.COLLECTIVE, target)
    return builder.build()


def show(name: str, reading: float | None, seconds: float, found: Structure) -> None:
    """Print a row."""
    events = len(found.events)
    before = "" if reading is None else f"{reading:.2f}"
    count = "none" if found.loop is None else f"{found.loop.count:.0f}"
    print(
        f"{name:24}{events:>10}{before:>8}{seconds:>8.2f}{seconds / events * 1e9:>10.0f}"
        f"{len(found.places):>8}{count:>12}{len(set(found.kinds.tolist())):>7}"
    )


def show_signatures(paths: Sequence[Path]) -> None:
    """Print rows of signatures; the shortest of the traces that grow comes first."""
    print(f"\n{'signature of':32}{'records':>12}{'CPU s':>8}{'us/record':>11}{'to first':>10}")
    first = None
    for path in paths:
        seconds, records = extracting(path)
        each = seconds / records
        first = first or each
        print(f"{path.name:32}{records:>12}{seconds:>8.2f}{each * 1e6:>11.2f}{each / first:>10.2f}")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="keep the traces there")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--traces", type=Path, default=Path("traces"), help="of EPOCH")
    options = parser.parse_args()
    print(
        f"{'':24}{'events':>10}{'read s':>8}{'find s':>8}{'ns/event':>10}"
        f"{'places':>8}{'iterations':>12}{'kinds':>7}"
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for megabytes in options.megabytes:
            show(f"stencil, {megabytes} MB", *stencil(folder, 16, megabytes))
        epoch = options.traces / "epoch_16proc.prv.gz"
        known = epoch if epoch.exists() else DATA / "comd.4.prv.gz"
        made = [folder / f"stencil-16-{megabytes}.prv" for megabytes in options.megabytes]
        show_signatures([*made, known])
        print()
    for make, sizes in ((solver, (100, 1_000)), (irregular, (2_000, 20_000))):
        for size in sizes:
            program = make(8, size)
            begin = time.process_time()
            found = structure_of(program)
            show(f"{make.__name__}, {size}", None, time.process_time() - begin, found)


if __name__ == "__main__":
    main()
