"""Operations per second of the replay: ``python tests/benchmarks/replay.py``.

A ring of processes that exchange with both neighbours and reduce every tenth step, and the same
without collectives. CPU time of the replay alone, medians over rounds.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from popmodel.network.network import PRESETS
from popmodel.replay import Program, replay
from popmodel.replay.build import ProgramBuilder
from popmodel.replay.program import Op

PROCESSES, STEPS, ROUNDS = 64, 4000, 5


def ring(every: int) -> Program:
    """Nonblocking exchange with both neighbours, an allreduce every so many steps (0: never)."""
    program = ProgramBuilder(PROCESSES)
    bursts = np.random.default_rng(1).uniform(1e-6, 2e-6, (STEPS, PROCESSES))
    for step in range(STEPS):
        size = 1024 if step % 7 else 65536
        right = [program.message(p, (p + 1) % PROCESSES, size) for p in range(PROCESSES)]
        left = [program.message(p, (p - 1) % PROCESSES, size) for p in range(PROCESSES)]
        c = program.collective("allreduce", 8, 8) if every and step % every == 0 else -1
        for p in range(PROCESSES):
            before, after = (p - 1) % PROCESSES, (p + 1) % PROCESSES
            program.do(p, Op.POST, right[before])
            program.do(p, Op.POST, left[after])
            program.do(p, Op.ISEND, right[p])
            program.do(p, Op.ISEND, left[p])
            program.compute(p, float(bursts[step, p]))
            program.do(p, Op.WAIT_RECEIVE, right[before])
            program.do(p, Op.WAIT_RECEIVE, left[after])
            program.do(p, Op.WAIT_SEND, right[p])
            program.do(p, Op.WAIT_SEND, left[p])
            if c >= 0:
                program.do(p, Op.COLLECTIVE, c)
    return program.build()


def main() -> None:
    """Print a table of medians."""
    print(f"{'program':<28}{'network':<12}{'operations':>12}{'CPU s':>10}{'M op/s':>10}")
    for name, program in (("ring", ring(0)), ("ring + allreduce / 10 steps", ring(10))):
        for network in ("ideal", "alpha-beta", "dimemas"):
            times = []
            for _ in range(ROUNDS):
                start = time.process_time()
                replay(program, PRESETS[network])
                times.append(time.process_time() - start)
            median = statistics.median(times)
            rate = program.operations / median / 1e6
            print(f"{name:<28}{network:<12}{program.operations:>12}{median:>10.4f}{rate:>10.1f}")


if __name__ == "__main__":
    main()
