"""CPU time and memory of ``popmodel metrics`` on long traces.

``python tests/benchmarks/metrics.py`` makes traces of a program that exchanges with four neighbours
(Irecv, Isend, Waitall) and reduces every fourth step, on 16 and on 64 processes, with two hardware
counters at every event, of about the given size. Then, each in a process of its own and in turn for
a number of rounds,

- *imported*: what the others import, and no trace,
- *read*: the trace alone,
- *metrics*: the analysis,
- *program*: from the read trace with its calls to the program of the replay, by operation; without
  the time of all that comes before.

The table shows medians of user and system time, their ratio to ``wc -l`` on the same file in the
same run, the peak of memory, and what of it lies above *imported*, by MPI call.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

STEPS = 100  # of the program in one block of text, which is repeated with later times
STEP = 100_000  # ns; a block takes 10**7

SETUP = """
import re, resource, sys
from pathlib import Path
import popmodel, popmodel.cli.metrics, popmodel.reports.efficiency_tables
from popmodel.efficiency.measure import analyse
from popmodel.simulator.from_trace import from_trace
from popmodel.traces import read
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
begin, per = 0.0, 0
"""
DONE = r"""
used = cpu() - begin
peak = 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])
print(used, peak, per)
"""
NOTHING = ""
READ = "trace = read(sys.argv[1])"
METRICS = "analyse(read(sys.argv[1]))"
PROGRAM = """
from popmodel.traces.selection import focused
from popmodel.traces.selection import PROGRAM
trace, _ = focused(read(sys.argv[1]), PROGRAM)
(trace.whole or trace).calls()
begin = cpu()
per = from_trace(trace).operations
"""


class Row(NamedTuple):
    """What one process took."""

    seconds: float
    peak: int
    operations: int


def lines_of(step: int, processes: int) -> tuple[bytes, int]:
    """Text of a step, in which times begin with ``@`` for what is put before; and its calls."""
    lines = [line for rank in range(processes) for line in _step(step, rank, processes)]
    calls = sum(":50000001:0:" in line or ":50000002:0:" in line for line in lines)
    return "".join(f"{line}\n" for line in lines).encode(), calls


def _step(step: int, rank: int, processes: int) -> list[str]:
    """Lines of one step of one process, in the order of time."""
    where = f"{rank + 1}:1:{rank + 1}:1"
    clock, lines = step * STEP, []

    def at(time: int) -> str:
        return f"@{time:07d}"

    def call(type_: int, value: int, begin: int, length: int, state: int, more: str = "") -> None:
        nonlocal clock
        lines.append(f"1:{where}:{at(clock)}:{at(begin)}:1")
        lines.append(f"1:{where}:{at(begin)}:{at(begin + length)}:{state}")
        for time, what in ((begin, f"{value}{more}"), (begin + length, "0")):
            counters = f"42000050:{3 * (begin - clock)}:42000059:{4 * (begin - clock)}"
            lines.append(f"2:{where}:{at(time)}:{type_}:{what}:{counters}")
        clock = begin + length

    others = [(rank + hop) % processes for hop in (1, -1, 2, -2)]
    for number in range(len(others)):
        call(50000001, 4, _entry(step, rank, number), 100, 11)
    for number, other in enumerate(others):
        entry = _entry(step, rank, len(others) + number)
        call(50000001, 3, entry, 150, 10)
        # The other posted this one as its number-th receive of the step, and waits for all.
        posted = _entry(step, other, number) + 100
        received = _entry(step, other, 2 * len(others)) + 4000
        whom = f"{other + 1}:1:{other + 1}:1"
        times = f"{at(entry)}:{at(clock)}:{whom}:{at(posted)}:{at(received)}"
        lines.append(f"3:{where}:{times}:{8192 * (1 + number)}:7")
    call(50000001, 6, _entry(step, rank, 2 * len(others)), 4000, 8)
    if step % 4 == 3:
        more = ":50100001:8:50100002:8:50100004:1"
        call(50000002, 10, clock + 2000 + rank * 17 % 500, 3000, 13, more)
    lines.append(f"1:{where}:{at(clock)}:{at((step + 1) * STEP - 1)}:1")
    return lines


def _entry(step: int, rank: int, number: int) -> int:
    """When a process enters its number-th call of a step, ns; ranks are late by different times."""
    return step * STEP + rank * 31 % 1009 + 2000 * (number + 1)


def write(target: Path, processes: int, size: int) -> int:
    """Write whole steps until there are so many bytes; return the number of MPI calls."""
    tasks = ",".join(["1:1"] * processes)
    ranks = ":".join(str(rank + 1) for rank in range(processes))
    header = f"#Paraver (01/01/2024 at 12:00):{'9' * 12}_ns:1({processes}):1:{processes}({tasks}),1"
    steps: dict[int, tuple[bytes, int]] = {}
    calls = 0
    with target.open("wb") as file:
        file.write(f"{header}\nc:1:1:{processes}:{ranks}\n".encode())
        step = 0
        while not step or file.tell() < size:
            if step < STEPS:
                steps[step] = lines_of(step, processes)
            text, more = steps[step % STEPS]
            file.write(text.replace(b"@", b"%d" % (step // STEPS)))
            calls += more
            step += 1
    return calls


def python(script: str, path: Path) -> Row:
    """Run a script on a trace, with modules compiled beforehand as those that are installed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", SETUP + script + DONE, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**kept, "OPENBLAS_NUM_THREADS": "1"},
    )
    seconds, peak, operations = done.stdout.split()
    return Row(float(seconds), int(peak), int(operations))


def wc(path: Path) -> Row:
    """Count lines with ``wc``."""
    child = subprocess.Popen(["wc", "-l", str(path)], stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0
    return Row(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, 0)


def measure(path: Path, calls: int, rounds: int) -> None:
    """Print the table of one trace."""
    steps = {
        "imported": NOTHING,
        "read": READ,
        "metrics": METRICS,
        "program": PROGRAM,
    }
    results: dict[str, list[Row]] = {name: [] for name in ("wc -l", *steps)}
    for _ in range(rounds):
        results["wc -l"].append(wc(path))
        for name, script in steps.items():
            results[name].append(python(script, path))
    size = path.stat().st_size / 1e6
    print(f"{path.name}: {size:.0f} MB of text, {calls} MPI calls, medians of {rounds}")
    print(f"{'':20}{'CPU s':>8}{'ratio':>8}{'peak MB':>9}{'B/call':>8}{'ns/op':>8}")
    medians = {
        name: Row(*(statistics.median(each) for each in zip(*rows, strict=True)))
        for name, rows in results.items()
    }
    base, empty = medians["wc -l"].seconds, medians["imported"]
    for name, row in medians.items():
        by_call = "" if name == "wc -l" else f"{(row.peak - empty.peak) / calls:8.0f}"
        by_operation = f"{row.seconds / row.operations * 1e9:8.0f}" if row.operations else ""
        print(
            f"{name:20}{row.seconds:8.3f}{row.seconds / base:8.2f}{row.peak / 1e6:9.0f}"
            f"{by_call:>8}{by_operation}"
        )
    print()


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keep the traces there")
    parser.add_argument(
        "--trace",
        action="append",
        metavar="PROCESSES:MEGABYTES",
        help="default: 16:110 and 64:131",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for each in options.trace or ["16:110", "64:131"]:
            if not re.fullmatch(r"\d+:\d+", each):
                parser.error(f"{each}: must be PROCESSES:MEGABYTES")
            processes, megabytes = map(int, each.split(":"))
            path = folder / f"stencil-{processes}-{megabytes}.prv"
            calls = write(path, processes, megabytes * 10**6)
            measure(path, calls, options.rounds)


if __name__ == "__main__":
    main()
