"""Operations per second of the replay: ``python tests/benchmarks/replay.py``.

A ring of processes that exchange with both neighbours and reduce every tenth step, and the same
without collectives. CPU time, medians over rounds: of making the program ready, of a replay then as
it is called from Python, of eight networks in one pass (operations times networks), and of the
critical path relative to a replay. Then all-to-alls carried out as messages: CPU time, and memory,
which must not grow with the square of the members, beside the same messages laid out in plain
Python (``tests/oracle/algorithms.py``).
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from popmodel.network.network import PRESETS
from popmodel.network.topology import FatTree
from popmodel.simulator import Program, replay
from popmodel.simulator.program import Op, ProgramBuilder, ProgramMessages
from popmodel.simulator.replayer import Replayer

PROCESSES, STEPS, ROUNDS = 64, 4000, 5
MEMBERS = (256, 512, 1024, 2048, 4096)
LAID_OUT = 1024  # beyond it the plain layout takes minutes and gigabytes


def ring(every: int, steps: int = STEPS) -> Program:
    """Nonblocking exchange with both neighbours, an allreduce every so many steps (0: never)."""
    program = ProgramBuilder(PROCESSES)
    bursts = np.random.default_rng(1).uniform(1e-6, 2e-6, (steps, PROCESSES))
    for step in range(steps):
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


def large(processes: int = 1000, steps: int = 1250) -> Program:
    """The exchange of `ring`, laid out as columns: 8 operations of each process in each step."""
    p, step = np.arange(processes), np.arange(steps)[:, None]
    right = 2 * (step * processes + p)  # messages of a step, to the right and to the left
    left = right + 1
    of_process = [
        right[:, p - 1],
        left[:, (p + 1) % processes],
        right,
        left,
        right[:, p - 1],
        left[:, (p + 1) % processes],
        right,
        left,
    ]
    target = np.stack(of_process, axis=-1).transpose(1, 0, 2).ravel().astype(np.int32)
    kinds = [Op.POST] * 2 + [Op.ISEND] * 2 + [Op.WAIT_RECEIVE] * 2 + [Op.WAIT_SEND] * 2
    number = 8 * steps * processes
    burst = np.zeros((number // 8, 8))
    burst[:, 4] = np.random.default_rng(1).integers(1000, 2000, number // 8)
    sender = np.repeat(np.tile(p, steps), 2).astype(np.int32)
    receiver = (sender + np.tile([1, -1], steps * processes)) % processes
    size = np.where(np.arange(len(sender)) // (2 * processes) % 7, 1024, 65536)
    return replace(
        ProgramBuilder(processes).build(),
        offsets=np.arange(processes + 1, dtype=np.int64) * 8 * steps,
        kind=np.tile(np.array(kinds, np.uint8), number // 8),
        target=target,
        burst=burst.ravel(),
        messages=ProgramMessages(
            sender,
            receiver.astype(np.int32),
            size.astype(np.int64),
            np.zeros(len(sender), np.int64),
            np.zeros(len(sender), np.int8),
        ),
        call=np.arange(number, dtype=np.int32),
        call_code=np.zeros(number, np.int32),
        call_time=np.zeros(number, np.int64),
    )


def alltoall(members: int) -> Program:
    """One all-to-all of members that are a little late, each a little differently."""
    program = ProgramBuilder(members)
    c = program.collective("alltoall", 1000, 1000)
    for p in range(members):
        program.compute(p, p * 7919 % 1000 * 1e-9)
        program.do(p, Op.COLLECTIVE, c)
    return program.build()


def peak() -> int:
    """Most memory that this process had so far, MiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def carried_out(members: int, laid_out: bool) -> tuple[float, int, float]:
    """CPU seconds, memory taken at most (MiB) and runtime of an all-to-all as messages."""
    network = PRESETS["alpha-beta"].with_(collectives="algorithm")
    program = alltoall(members)
    before = peak()
    start = time.process_time()
    if laid_out:
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from oracle.algorithms import carry_out

        program = carry_out(program)
    runtime = replay(program, network).runtime
    spent = time.process_time() - start
    return spent, peak() - before, runtime


def algorithms() -> None:
    """Print time and memory of all-to-alls, each in a process of its own."""
    print(f"\n{'all-to-all as messages':<28}{'messages':>12}{'CPU s':>10}{'MiB':>8}{'plain':>20}")
    for members in MEMBERS:
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            seconds, memory, runtime = pool.apply(carried_out, (members, False))
            ratio = ""
            if members <= LAID_OUT:
                plain, taken, expected = pool.apply(carried_out, (members, True))
                assert abs(runtime - expected) <= 1e-12 * expected, (runtime, expected)
                ratio = f"{plain / seconds:.0f} x s, {taken} MiB"
        count = members * (members - 1)
        print(f"{members:<28}{count:>12}{seconds:>10.3f}{memory:>8}{ratio:>20}")


def contended() -> None:
    """Print operations per second where messages share links: the ring on 64 and on 16 nodes."""
    print(f"\n{'on shared links':<28}{'nodes':<12}{'operations':>12}{'CPU s':>10}{'M op/s':>10}")
    one_each = PRESETS["alpha-beta"].with_(output_links=1, input_links=1)
    tree = FatTree((8, 8), (1, 4), (1, 1), (10e9, 10e9), (0.0, 0.0))
    networks = {
        "one link in, one out": one_each,
        "the same, and 8 buses": one_each.with_(buses=8),
        "the same links, fair": one_each.with_(sharing="fair"),
        "fat tree, 2:1": PRESETS["alpha-beta"].with_(topology=tree),
    }
    program = ring(10)
    for nodes in (PROCESSES, PROCESSES // 4):
        placed = replace(program, nodes=np.arange(PROCESSES, dtype=np.int32) * nodes // PROCESSES)
        for name, network in networks.items():
            times = []
            for _ in range(ROUNDS):
                start = time.process_time()
                replay(placed, network)
                times.append(time.process_time() - start)
            median = statistics.median(times)
            rate = program.operations / median / 1e6
            print(f"{name:<28}{nodes:<12}{program.operations:>12}{median:>10.4f}{rate:>10.1f}")


def median(call: Callable[[], object]) -> float:
    """CPU seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def main() -> None:
    """Print a table of medians, one of collectives as messages, and one of shared links."""
    print(
        f"{'program':<28}{'network':<12}{'operations':>12}{'ready, s':>10}{'replay, s':>10}"
        f"{'M op/s':>8}{'8 at once':>10}{'path':>7}"
    )
    programs = (
        ("ring", ring(0)),
        ("ring + allreduce / 10 steps", ring(10)),
        ("ring of 1000", large()),
    )
    for name, program in programs:
        ready = median(partial(Replayer, program))
        replayer = Replayer(program)
        for network in map(PRESETS.get, ("ideal", "alpha-beta", "dimemas")):
            several = [network.with_(latency=1e-6 * k) for k in range(8)]
            one = median(partial(replayer.run, network))
            eight = median(partial(replayer.scenarios, several))
            path = median(partial(replayer.path, network))
            rate, rates = (program.operations / t / 1e6 for t in (one, eight / 8))
            print(
                f"{name:<28}{network.name:<12}{program.operations:>12}{ready:>10.4f}{one:>10.4f}"
                f"{rate:>8.0f}{rates:>10.0f}{path / one:>5.1f} x"
            )
    algorithms()
    contended()


if __name__ == "__main__":
    main()
