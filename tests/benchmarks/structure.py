"""CPU time of finding the structure of long traces, by event.

``python tests/benchmarks/structure.py`` makes traces of a program that exchanges with four
neighbours and reduces every fourth step (as ``metrics.py``), of 10, 30 and 100 MB of text, and
programs that are harder: without any repetition, and with a solver inside of each step that takes
as many iterations as it needs. For each it prints the time of reading with the program of the
replay, that of the structure, and the latter by event: where that stays the same, the time is
linear. It also says what was found.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import metrics
import numpy as np

from popmodel.simulator import Program, from_trace
from popmodel.simulator.build import ProgramBuilder
from popmodel.simulator.program import Op
from popmodel.structure import Structure, find
from popmodel.structure.find import structure_of
from popmodel.trace import read


def stencil(folder: Path, processes: int, megabytes: int) -> tuple[float, float, Structure]:
    """CPU time of reading and of finding, and what is found in a trace of so much text."""
    path = folder / f"stencil-{processes}-{megabytes}.prv"
    if not path.exists():
        metrics.write(path, processes, megabytes * 10**6)
    begin = time.process_time()
    trace = read(path, cache=False)
    program = from_trace(trace)
    middle = time.process_time()
    found = find(trace, program)
    return middle - begin, time.process_time() - middle, found


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


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="keep the traces there")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 30, 100])
    options = parser.parse_args()
    print(
        f"{'':24}{'events':>10}{'read s':>8}{'find s':>8}{'ns/event':>10}"
        f"{'places':>8}{'iterations':>12}{'kinds':>7}"
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for megabytes in options.megabytes:
            show(f"stencil, {megabytes} MB", *stencil(folder, 16, megabytes))
    for make, sizes in ((solver, (100, 1_000)), (irregular, (2_000, 20_000))):
        for size in sizes:
            program = make(8, size)
            begin = time.process_time()
            found = structure_of(program)
            show(f"{make.__name__}, {size}", None, time.process_time() - begin, found)


if __name__ == "__main__":
    main()
