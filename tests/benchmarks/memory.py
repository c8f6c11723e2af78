"""Anonymous memory of every verb on a long trace, beside ``wc -l`` for the time.

``python tests/benchmarks/memory.py 1000`` makes a trace of 1 GB (of 64 processes, or --processes)
and runs ``metrics``, ``inspect``, ``whatif``, ``report`` and ``signature from`` on it. While a
command runs, the anonymous memory of its processes (RssAnon: what is neither a file nor shared) is
read every few milliseconds; pages of files, which the system takes back when others need memory,
do not count. ``--ranks 65536`` makes a trace of so many ranks with few records each instead.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from metrics import write

VERBS = {
    "metrics": "metrics {trace}",
    "inspect": "inspect {trace}",
    "whatif": "whatif {trace}",
    "report": "report {trace} -o {out}.html --force",
    "signature": "signature from {trace} -o {out}.toml --force",
}


def anonymous(pid: int) -> int:
    """Bytes of a process and its children."""
    total = 0
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        total = 1024 * int(re.search(r"RssAnon:\s*(\d+) kB", status)[1])  # type: ignore[index]
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, TypeError):
        return total
    return total + sum(map(anonymous, map(int, children)))


def run(command: list[str]) -> tuple[float, float, int]:
    """CPU and wall seconds, and bytes at the peak."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while child.poll() is None:
        peak = max(peak, anonymous(child.pid))
        time.sleep(0.005)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if child.returncode:
        print(child.stderr.read().decode() if child.stderr else "", end="")
    return (
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        wall,
        peak,
    )


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", type=int, nargs="?", default=1000)
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--ranks", type=int, help="a trace of one step of so many")
    parser.add_argument("--folder", type=Path, help="keep the trace there")
    parser.add_argument("--verb", action="append", choices=VERBS)
    parser.add_argument("options", nargs="*", help="behind --: further options of each command")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        processes = arguments.ranks or arguments.processes
        size = 1 if arguments.ranks else arguments.megabytes * 10**6
        trace = folder / f"stencil-{processes}-{arguments.megabytes}.prv"
        if not trace.exists():
            write(trace, processes, size)
        cpu, *_ = run(["wc", "-l", str(trace)])
        print(f"{trace.name}: {trace.stat().st_size / 1e6:.0f} MB, wc -l {cpu:.2f} s")
        for verb in arguments.verb or VERBS:
            words = VERBS[verb].format(trace=trace, out=folder / "out").split()
            command = [sys.executable, "-m", "popmodel", *words, *arguments.options]
            cpu, wall, peak = run(command)
            print(f"{verb:12}{cpu:8.2f} s CPU{wall:8.2f} s{peak / 1e6:9.0f} MB anonymous")
            for name in (".html", ".toml"):
                (folder / f"out{name}").unlink(missing_ok=True)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
