"""Bytes a second at which schedules in GOAL and traces of SMPI are read, beside ``wc -l``.

``python tests/benchmarks/text_readers.py [MB] [COMMAND ...]``: each further command, such as
``txt2bin -i {goal} -o /dev/null``, is timed on the same file in turn. CPU seconds, best of five.
"""

from __future__ import annotations

import resource
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

RANKS = 16


def write_goal(path: Path, size: int) -> int:
    """A ring in which each rank computes, posts, sends, and waits; returns the operations."""
    per_step = 6
    steps = size // (RANKS * 132)
    with path.open("w") as file:
        file.write(f"num_ranks {RANKS}\n")
        for rank in range(RANKS):
            file.write(f"rank {rank} {{\n")
            to, source = (rank + 1) % RANKS, (rank - 1) % RANKS
            for step in range(steps):
                at = 3 * step
                file.write(
                    f"l{at + 1}: recv 8192b from {source} tag {step % 100}\n"
                    f"l{at + 2}: send 8192b to {to} tag {step % 100}\n"
                    f"l{at + 3}: calc {1000 + step % 977}\n"
                    f"l{at + 3} requires l{at + 1}\nl{at + 3} requires l{at + 2}\n"
                )
                if step:
                    file.write(f"l{at + 1} requires l{at}\nl{at + 2} requires l{at}\n")
            file.write("}\n")
    return RANKS * steps * per_step // 2


def write_smpi(path: Path, size: int) -> int:
    """The same in actions; returns how many there are."""
    steps = size // (RANKS * 98)
    with path.open("w") as file:
        for rank in range(RANKS):
            to, source = (rank + 1) % RANKS, (rank - 1) % RANKS
            file.write(f"{rank} init\n")
            for step in range(steps):
                tag = step % 100
                file.write(
                    f"{rank} irecv {source} {tag} 8192 6\n{rank} send {to} {tag} 8192 6\n"
                    f"{rank} wait {source} {rank} {tag}\n{rank} compute {1000.5 + step % 977}\n"
                    f"{rank} allreduce 8 1 0\n"
                )
            file.write(f"{rank} finalize\n")
    return RANKS * (5 * steps + 2)


def cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(megabytes: int, others: list[str]) -> None:
    """Print a line for each reader and command."""
    with tempfile.TemporaryDirectory() as folder:
        goal, smpi = Path(folder, "x.goal"), Path(folder, "x.ti")
        operations = {
            goal: write_goal(goal, megabytes << 20),
            smpi: write_smpi(smpi, megabytes << 20),
        }
        reading = "import sys, popmodel.traces as t; t.read(sys.argv[1])"
        importing = "import sys, popmodel.traces.untimed.untimed_trace"
        commands = {
            "imports": [sys.executable, "-c", importing],
            "GOAL": [sys.executable, "-c", reading, str(goal)],
            "SMPI": [sys.executable, "-c", reading, str(smpi)],
            "wc -l GOAL": ["wc", "-l", str(goal)],
        }
        for text in others:
            words = shlex.split(text.format(goal=goal, smpi=smpi))
            commands[text.format(goal="GOAL", smpi="SMPI")] = words
        best = dict.fromkeys(commands, float("inf"))
        for _ in range(5):
            for name, command in commands.items():
                best[name] = min(best[name], cpu(command))
        for name, seconds in best.items():
            path = smpi if "SMPI" in name else goal
            net = seconds - (best["imports"] if name in ("GOAL", "SMPI") else 0)
            rate = f"{path.stat().st_size / net / 1e6:7.0f} MB/s"
            rate += f" {net / operations[path] * 1e9:7.0f} ns per operation"
            print(f"{name:30} {seconds:7.2f} s" + (f" {rate}" if name != "imports" else ""))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64, sys.argv[2:])
