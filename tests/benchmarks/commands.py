"""CPU time of whole commands: ``python tests/benchmarks/commands.py [TRACE]``.

The interpreter alone, NumPy alone, and commands of popmodel with an empty and with a filled cache;
medians of user and system time over rounds, and ratios to the interpreter with NumPy.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 9
BUNDLED = Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz"


def cpu(command: list[str], environment: dict[str, str]) -> float:
    """Seconds of user and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print a table of medians."""
    trace = sys.argv[1] if len(sys.argv) > 1 else str(BUNDLED)
    python = [sys.executable]
    popmodel = [sys.executable, "-m", "popmodel"]
    commands = {
        "python -c pass": [*python, "-c", "pass"],
        "python -c 'import numpy'": [*python, "-c", "import numpy"],
        "popmodel --help": [*popmodel, "--help"],
        "popmodel metrics, no cache": [*popmodel, "metrics", trace, "--no-cache"],
        "popmodel metrics, first": [*popmodel, "metrics", trace],
        "popmodel metrics, cached": [*popmodel, "metrics", trace],
        "popmodel predict": [*popmodel, "predict", "--procs", "16", "--threads", "4"],
    }
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        environment = {
            **os.environ,
            "POPMODEL_CACHE_DIR": str(cache),
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled"),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        medians = {}
        for name, command in commands.items():
            times = []
            for _ in range(ROUNDS + 1):
                if name.endswith("first"):
                    shutil.rmtree(cache, ignore_errors=True)
                times.append(cpu(command, environment))
            medians[name] = statistics.median(times[1:])
    base = medians["python -c 'import numpy'"]
    print(f"{Path(trace).name}, medians of {ROUNDS}")
    print(f"{'':<28}{'CPU s':>8}{'ratio':>8}")
    for name, seconds in medians.items():
        print(f"{name:<28}{seconds:>8.3f}{seconds / base:>8.2f}")


if __name__ == "__main__":
    main()
