"""Wall and CPU time of ``metrics`` on two workers beside one: interleaved runs, the best of each.

``python tests/benchmarks/workers.py 1000`` makes one trace of 1 GB, the same compressed in blocks
by popmodel, and four of a quarter of it, and prints for each the ratios of two workers to one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from memory import run
from metrics import write

from popmodel.traces.gzip_blocks import GzipBlocks


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", type=int, nargs="?", default=1000)
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, size = Path(temporary), arguments.megabytes * 10**6
        one, blocks = folder / "one.prv", folder / "blocks.prv.gz"
        write(one, arguments.processes, size)
        with one.open("rb") as text, blocks.open("wb") as file, GzipBlocks(file) as out:
            while piece := text.read(1 << 22):
                out.write(piece)
        four = [folder / f"{number}.prv" for number in range(4)]
        for trace in four:
            write(trace, arguments.processes, size // 4)
        for name, traces in (("one trace", [one]), ("in blocks", [blocks]), ("four traces", four)):
            best = {1: (float("inf"),) * 2, arguments.workers: (float("inf"),) * 2}
            for _ in range(arguments.rounds):
                for workers, known in best.items():
                    words = ["metrics", *map(str, traces), "--workers", str(workers)]
                    cpu, wall, _ = run([sys.executable, "-m", "popmodel", *words])
                    best[workers] = min(known[0], cpu), min(known[1], wall)
            (cpu, wall), (cpus, walls) = best.values()
            print(f"{name:12} wall {walls / wall:.2f} ({walls:.2f} of {wall:.2f} s)", end="  ")
            print(f"CPU {cpus / cpu:.2f} ({cpus:.2f} of {cpu:.2f} s)")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
