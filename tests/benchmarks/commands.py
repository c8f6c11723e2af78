"""CPU time of whole commands: ``python tests/benchmarks/commands.py [TRACE]``.

The interpreter alone, NumPy alone, and commands of popmodel; medians of user and system time over
rounds, and ratios to the interpreter with NumPy. The commands take turns, so that a busy machine
slows all alike. The exit status is 1 if a ratio is above its limit by half: a machine differs from
another, and from itself, by less.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 9
LIMITS = {
    "popmodel --help": 0.9,
    "popmodel docs": 1.5,
    "popmodel machine show": 1.3,
    "popmodel predict": 6.4,
    "popmodel predict --cores": 7.1,
}
"""Ratios of the day, lowered when commands get faster; what a trace costs depends on the trace."""
SLACK = 1.5
"""How far above its limit a ratio fails."""

BUNDLED = Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz"


def cpu(command: list[str], environment: dict[str, str]) -> float:
    """Seconds of user and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> int:
    """Print a table of medians; give the exit status."""
    trace = sys.argv[1] if len(sys.argv) > 1 else str(BUNDLED)
    python = [sys.executable]
    popmodel = [sys.executable, "-m", "popmodel"]
    commands = {
        "python -c pass": [*python, "-c", "pass"],
        "python -c 'import numpy'": [*python, "-c", "import numpy"],
        "popmodel --help": [*popmodel, "--help"],
        "popmodel metrics": [*popmodel, "metrics", trace],
        "popmodel docs": [*popmodel, "docs", "load_balance"],
        "popmodel machine show": [*popmodel, "machine", "show"],
        "popmodel predict": [*popmodel, "predict", "--procs", "16", "--threads", "4"],
        "popmodel predict --cores": [*popmodel, "predict", "--cores", "64"],
    }
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled"),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS + 1):
            for name, command in commands.items():
                times[name].append(cpu(command, environment))
        medians = {name: statistics.median(each[1:]) for name, each in times.items()}
    base = medians["python -c 'import numpy'"]
    print(f"{Path(trace).name}, medians of {ROUNDS}")
    print(f"{'':<28}{'CPU s':>8}{'ratio':>8}{'limit':>8}")
    exceeded = False
    for name, seconds in medians.items():
        limit = LIMITS.get(name)
        exceeded = exceeded or (limit is not None and seconds / base > SLACK * limit)
        shown = "" if limit is None else f"{limit:>8.1f}"
        print(f"{name:<28}{seconds:>8.3f}{seconds / base:>8.2f}{shown}")
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
