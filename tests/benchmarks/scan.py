"""How fast and in how much memory long traces are read, beside ``wc -l`` and plain decompression.

Makes traces of at least 200 MB of text, one from a real trace repeated with later times and one of
synthetic states, events and messages, each plain and compressed, and takes the CPU time (user and
system) of

- ``wc -l``: what it costs to read a file and look at every byte once,
- *scan*: text to compact streams, everything that depends on the text,
- *read*: scan, columns, labels,
- *isal*: decompression alone, of the compressed file,
- *scan gz* and *read gz*: the same of the compressed file.

Each is a process of its own, in turn for a number of rounds; the table shows medians. The peak of
memory holds the interpreter and NumPy; *own* is what comes on top of them.
Run as ``python tests/benchmarks/scan.py``.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from isal import igzip

# CPU seconds; bytes at the peak, above those at the start, and of the columns.
Row = tuple[float, int, int, int]

DATA = Path(__file__).parent.parent / "data"

SETUP = """
import re, resource, sys
from pathlib import Path
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def memory(field):
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(field + r":\\s*(\\d+) kB", status)[1])
def start():
    return cpu(), memory("VmRSS")
def done(begin, nbytes=0):
    used = cpu() - begin[0]
    peak = memory("VmHWM")
    print(used, peak, peak - begin[1], nbytes)
path = Path(sys.argv[1])
"""
SCAN = """
from contextlib import ExitStack
from popmodel.traces.paraver import reader, text_scan
layout = reader.layout_of(reader.read_header(path, 1), 1)
begin = start()
with ExitStack() as files:
    text_scan.scan_text(path, layout, files)
done(begin)
"""
READ = """
from popmodel.traces import read
from popmodel.traces.paraver import columns
begin = start()
trace = read(path)
done(begin, sum(
    getattr(getattr(trace.records, table), name).nbytes
    for table, names in columns.SCHEMA.items() for name in names
))
"""
ISAL = """
from isal import igzip
buffer = memoryview(bytearray(1 << 20))
begin = start()
with igzip.open(path) as text:
    while text.readinto(buffer):
        pass
done(begin)
"""


def repeated(source: Path, target: Path, size: int) -> None:
    """Write a trace over and over, each time later, until it has that many bytes."""
    text = gzip.decompress(source.read_bytes()).decode()
    header, _, body = text.partition("\n")
    duration = re.search(r"\):(\d+)_ns", header)
    assert duration is not None
    digits = len(duration[1])
    times = {"1": (5, 6), "2": (5,), "3": (5, 6, 11, 12)}
    head, block = [], []
    for line in body.splitlines():
        fields = line.split(":")
        if fields[0] not in times:
            head.append(line)
            continue
        for at in times[fields[0]]:
            fields[at] = "@" + fields[at].zfill(digits)
        block.append(":".join(fields))
    _write(target, header.replace(duration[0], f"):9{'9' * digits}_ns"), head, block, size)


def synthetic(target: Path, size: int) -> None:
    """Write states, events and messages of 64 processes."""
    processes = 64
    tasks = ",".join(["1:1"] * processes)
    head = f"#Paraver (x):{'9' * 11}_ns:1({processes}):1:{processes}({tasks}),0"
    block = []
    for number in range(40_000):
        task = number * 7 % processes + 1
        where, time = f"{task}:1:{task}:1", f"@{number * 1000:08d}"
        block.append(f"2:{where}:{time}:50000001:{number % 2}:42000050:{number * 7919 % 10**7}")
        block.append(f"1:{where}:{time}:@{number * 1000 + 900:08d}:{number % 2}")
        if number % 10 == 0:
            to = f"{task % processes + 1}:1:{task % processes + 1}:1"
            block.append(
                f"3:{where}:{time}:{time}:{to}:{time}:@{number * 1000 + 500:08d}:{number}:1"
            )
    _write(target, head, [], block, size)


def _write(target: Path, header: str, head: list[str], block: list[str], size: int) -> None:
    text = "".join(f"{line}\n" for line in block).encode()
    with target.open("wb") as plain, igzip.open(f"{target}.gz", "wb", compresslevel=1) as packed:
        first = "".join(f"{line}\n" for line in [header, *head]).encode()
        plain.write(first)
        packed.write(first)
        number = 100
        while plain.tell() < size:
            piece = text.replace(b"@", b"%d" % number)
            plain.write(piece)
            packed.write(piece)
            number += 1


def python(script: str) -> Callable[[Path], Row]:
    """Return what runs a script on a file and measures it."""

    def run(path: Path) -> Row:
        done = subprocess.run(
            [sys.executable, "-c", SETUP + script, str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
        used, *sizes = done.stdout.split()
        return float(used), *map(int, sizes)

    return run


def wc(path: Path) -> Row:
    """Count lines with ``wc``."""
    child = subprocess.Popen(["wc", "-l", str(path)], stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, 0, 0


STEPS: list[tuple[str, bool, Callable[[Path], Row]]] = [
    ("wc -l", False, wc),
    ("scan", False, python(SCAN)),
    ("read", False, python(READ)),
    ("isal", True, python(ISAL)),
    ("scan gz", True, python(SCAN)),
    ("read gz", True, python(READ)),
]


def measure(path: Path, rounds: int) -> None:
    """Print the table of one trace."""
    results: dict[str, list[Row]] = {name: [] for name, _, _ in STEPS}
    for _ in range(rounds):
        for name, compressed, step in STEPS:
            results[name].append(step(Path(f"{path}.gz") if compressed else path))
    print(f"{path.name}: {path.stat().st_size / 1e6:.0f} MB of text, medians of {rounds}")
    heads = f"{'CPU s':>7} {'ratio':>6}  {'to':8} {'peak MB':>8} {'own MB':>8} {'columns MB':>10}"
    print(f"{'':10} {heads}")
    median = {name: statistics.median(row[0] for row in rows) for name, rows in results.items()}
    for name, rows in results.items():
        base = "isal" if name.endswith("gz") else "wc -l"
        ratio = median[name] / median[base]
        peak, own, size = max(row[1] for row in rows), max(row[2] for row in rows), rows[0][3]
        shown = f"{size / 1e6:10.0f} ({own / size:.2f} x)" if size else ""
        print(
            f"{name:10} {median[name]:7.3f} {ratio:6.2f}  {base:8} {peak / 1e6:8.0f}"
            f" {own / 1e6:8.0f} {shown}"
        )
    print()


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path, help="real traces, .prv.gz")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for source in options.traces or [DATA / "bt-mz.S.2x2.prv.gz"]:
            target = Path(folder) / source.name.removesuffix(".gz")
            repeated(source, target, options.megabytes * 10**6)
            measure(target, options.rounds)
        target = Path(folder) / "synthetic.prv"
        synthetic(target, options.megabytes * 10**6)
        measure(target, options.rounds)


if __name__ == "__main__":
    main()
