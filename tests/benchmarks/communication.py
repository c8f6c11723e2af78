"""What it costs to find the patterns of long runs: CPU time over the number of messages.

Makes halo exchanges on grids of processes as time-independent traces, ever longer ones, and takes
the CPU time of

- *read*: the trace, and the program that it holds,
- *structure*: loops and places,
- *patterns*: grid and patterns, and
- *rows*: the list of calls of an iteration,

and prints seconds per million messages: the same in all rows if the cost is linear. Run as
``python tests/benchmarks/communication.py [PROCESSES [STEPS...]]``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from math import isqrt
from pathlib import Path
from typing import Any

from popmodel.simulator.from_trace import from_trace
from popmodel.structure.iterations import find as find_structure
from popmodel.structure.message_rows import PlaceTable
from popmodel.structure.patterns import find_communication
from popmodel.traces import read


def write(path: Path, side: int, steps: int) -> int:
    """Write halo exchanges on a square grid; gives the number of messages."""
    messages = 0
    with path.open("w") as file:
        for rank in range(side * side):
            row, column = divmod(rank, side)
            around = [
                other
                for other, there in (
                    (rank - 1, column > 0),
                    (rank + 1, column < side - 1),
                    (rank - side, row > 0),
                    (rank + side, row < side - 1),
                )
                if there
            ]
            step = [f"{rank} compute 1000000"]
            step += [f"{rank} irecv {other} 0 512 6" for other in around]
            step += [f"{rank} isend {other} 0 512 6" for other in around]
            step += [f"{rank} waitall {2 * len(around)}", f"{rank} allreduce 1 100 6"]
            messages += steps * len(around)
            file.write("\n".join([f"{rank} init", *(step * steps), f"{rank} finalize", ""]))
    return messages


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of some work, and what it gives."""
    begin = time.process_time()
    made = work()
    return time.process_time() - begin, made


def main(arguments: list[str]) -> None:
    """Print a row for each length of a run."""
    processes, *given = (int(one) for one in arguments or ["64"])
    side = isqrt(processes)
    print(f"{side} x {side} processes; CPU seconds per million messages")
    print("   messages    read  structure  patterns    rows  found")
    with tempfile.TemporaryDirectory() as folder:
        for steps in given or (100, 400, 1600):
            path = Path(folder) / f"halo{steps}.ti"
            messages = write(path, side, steps)
            reading, trace = timed(lambda path=path: read(path, flop_rate=1e9))
            programming, program = timed(lambda trace=trace: from_trace(trace))
            shaping, structure = timed(lambda t=trace, p=program: find_structure(t, p))
            finding, found = timed(lambda structure=structure: find_communication(structure))
            halo = next(one for one in found.patterns if one.kind == "halo")
            listing, rows = timed(lambda s=structure, halo=halo: PlaceTable(s).rows(halo.places))
            assert halo.executions == steps and not rows.why, halo
            costs = [reading + programming, shaping, finding, listing]
            shown = [f"{1e6 * cost / messages:.2f}" for cost in costs]
            print(
                f"{messages:>11,}{shown[0]:>8}{shown[1]:>11}{shown[2]:>10}{shown[3]:>8}"
                f"  halo on {[grid.dims for grid in found.grids]}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
