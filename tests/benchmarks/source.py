"""How well signatures from source agree with traces of the same programs, and what they cost.

Programs are not part of the repository: a TOML file names, for each, its sources (patterns), the
compiler's options and a trace of one run.

    [HPCCG]
    sources = "HPCCG/*.cpp"
    cflags = "-DUSING_MPI"
    trace = "traces/hpccg.prv.gz"

Run ``python tests/benchmarks/source.py programs.toml [NAME ...]``; with ``--all`` each line that
differs or is undecided is shown. A draft agrees if no line differs.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

MOST_SECONDS, MOST_MEGABYTES = 20, 500
"""CPU and memory of a draft, the trace read and joined."""
STATES = ("agrees", "given", "differs", "undecided")
_STOP = 8
"""Times the CPU that is allowed, at which a draft is stopped."""


def measured(folder: Path, program: dict[str, str]) -> dict[str, Any]:
    """A draft of a program: CPU (s), memory (MB), lines, and what the trace says of each line."""
    from popmodel.source import signature_of_source
    from popmodel.traces import read

    sources = [
        path for pattern in shlex.split(program["sources"]) for path in sorted(folder.glob(pattern))
    ]
    trace = read(folder / program["trace"])
    options = shlex.split(program.get("cflags", ""))
    text, draft = signature_of_source(sources, "app", options, trace)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024,
        "lines": len(text.splitlines()),
        "unknown": len(draft.open),
        "states": Counter(line.state for line in draft.joined),
        "details": [
            line.finding() if line.state == "differs" else f"{line.place}: {_open(line)}"
            for line in draft.joined
            if line.state in ("differs", "undecided")
        ],
    }


def _open(line: Any) -> str:
    symbols = sorted({symbol.name for said in line.source for symbol in said.free_symbols})
    return f"{line.what} not known: {', '.join(symbols[:4])}{' ...' if len(symbols) > 4 else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("programs", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true", dest="is_whole")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    programs = tomllib.loads(given.programs.read_text())
    names = given.names or list(programs)
    if given.child:
        limit = MOST_SECONDS * _STOP
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        print(json.dumps(measured(given.programs.parent, programs[names[0]])))
        return
    header = ("CPU s", "MB", "lines", "unknown", *STATES)
    print(f"{'program':12}" + "".join(f"{word:>10}" for word in header))
    right = cheap = 0
    for name in names:
        command = [sys.executable, __file__, str(given.programs), name, "--child"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name:12}  stopped: {(done.stderr.splitlines() or ['CPU limit'])[-1]}")
            continue
        row = json.loads(done.stdout)
        amounts = [f"{row['seconds']:.1f}", f"{row['megabytes']:.0f}", row["lines"], row["unknown"]]
        counts = [row["states"].get(state, 0) for state in STATES]
        print(f"{name:12}" + "".join(f"{value:>10}" for value in (*amounts, *counts)), flush=True)
        for detail in row["details"] if given.is_whole else ():
            print(f"    {detail}")
        right += not row["states"].get("differs")
        cheap += row["seconds"] < MOST_SECONDS and row["megabytes"] < MOST_MEGABYTES
    print(
        f"{right} of {len(names)} drafts agree; {cheap} take less than {MOST_SECONDS} s and "
        f"{MOST_MEGABYTES} MB"
    )


if __name__ == "__main__":
    main()
