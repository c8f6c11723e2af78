"""Reads time-independent traces of SimGrid SMPI, with its collectives as the messages it sends."""

from __future__ import annotations

import gzip
from collections import defaultdict
from pathlib import Path

from oracle.algorithms import exchanges
from popmodel.simulator.program import Op, Program, ProgramBuilder

FLOPS = 1e9  # of a host of the reference platforms, per second
# Latency, s, and bandwidth, B/s, between the hosts of the platforms without contention.
NETWORKS = {
    "net1us_10G_flat": (1e-6, 10e9),
    "net10us_1G_flat": (10e-6, 1e9),
    "netideal": (0.0, 1e18),
}
HEADER = 16  # bytes that SMPI adds to every message
EAGER = 65536  # bytes from which a send waits for its receiver
TO_ITSELF = 10e9  # B/s of the messages of a process to itself
BYTES = {"0": 8, "1": 4, "23": 4}  # of the datatypes that occur


class _Reader:
    def __init__(self, processes: int, recursive_doubling: bool) -> None:
        self.processes = processes
        self.recursive_doubling = recursive_doubling
        self.program = ProgramBuilder(processes)
        # The k-th send of a rank to another with a tag is what the k-th receive gets.
        self.messages: dict[tuple, list[int]] = {}
        self.turn: dict[tuple, int] = defaultdict(int)
        self.open: dict[int, list[tuple[str, str, int]]] = defaultdict(list)

    def sizes(self, lines: list[list[str]]) -> None:
        """Create all messages beforehand: a receive does not know the size."""
        for rank, action, *rest in lines:
            if action in ("send", "isend"):
                to, tag, count, datatype = rest
                self.create(int(rank), int(to), tag, int(float(count)) * BYTES[datatype])

    def create(self, sender: int, receiver: int, tag: object, size: int) -> None:
        made = self.program.message(sender, receiver, size)
        self.messages.setdefault((sender, receiver, tag), []).append(made)

    def message(self, sender: int, receiver: int, tag: object, side: str, size: int = -1) -> int:
        key = (sender, receiver, tag)
        turn = self.turn[side, key]
        self.turn[side, key] += 1
        if size >= 0 and turn >= len(self.messages.get(key, [])):
            self.create(*key, size)
        return self.messages[key][turn]

    def send(self, rank: int, to: int, tag: object, size: int, op: Op = Op.SEND) -> None:
        self.program.do(rank, op, self.message(rank, to, tag, "send", size))

    def receive(self, rank: int, sources: list[int], tag: object, size: int) -> None:
        """Post all, then wait for all."""
        incoming = [self.message(source, rank, tag, "receive", size) for source in sources]
        for op in (Op.POST, Op.WAIT_RECEIVE):
            for m in incoming:
                self.program.do(rank, op, m)

    def exchange(self, rank: int, kind: str, size: int, root: int = 0) -> None:
        for to, source, *_ in exchanges(kind, self.processes, root, rank):
            if to < 0:
                self.receive(rank, [source], kind, size)
            elif source < 0:
                self.send(rank, to, kind, size)
            else:
                incoming = self.message(source, rank, kind, "receive", size)
                self.program.do(rank, Op.POST, incoming)
                self.send(rank, to, kind, size)
                self.program.do(rank, Op.WAIT_RECEIVE, incoming)

    def reduce(self, rank: int, size: int, root: int) -> None:
        if rank == root:
            others = [other for other in range(self.processes) if other != root]
            self.receive(rank, others, "reduce", size)
        else:
            self.send(rank, root, "reduce", size)

    def barrier(self, rank: int) -> None:
        if self.recursive_doubling:
            self.exchange(rank, "allreduce", 0)
        elif rank == 0:
            others = list(range(1, self.processes))
            self.receive(0, others, "arrive", 0)
            for other in others:
                self.send(0, other, "leave", 0, Op.ISEND)
        else:
            self.send(rank, 0, "arrive", 0)
            self.receive(rank, [0], "leave", 0)

    def allreduce(self, rank: int, size: int) -> None:
        if self.recursive_doubling:
            self.exchange(rank, "allreduce", size)
        else:
            self.reduce(rank, size, 0)
            self.exchange(rank, "bcast", size)

    def do(self, rank: int, action: str, rest: list[str]) -> None:
        if action == "compute":
            self.program.compute(rank, float(rest[0]) / FLOPS)
        elif action == "send":
            self.send(rank, int(rest[0]), rest[1], 0)
        elif action == "isend":
            self.send(rank, int(rest[0]), rest[1], 0, Op.ISEND)
        elif action == "irecv":
            m = self.message(int(rest[0]), rank, rest[1], "receive")
            self.program.do(rank, Op.POST, m)
            self.open[rank].append((rest[0], rest[1], m))
        elif action == "wait":
            source, _, tag = rest
            found = next(e for e in self.open[rank] if e[:2] == (source, tag))
            self.open[rank].remove(found)
            self.program.do(rank, Op.WAIT_RECEIVE, found[2])
        elif action == "waitall":
            for _, _, m in self.open.pop(rank, []):
                self.program.do(rank, Op.WAIT_RECEIVE, m)
        elif action == "bcast":
            self.exchange(rank, "bcast", int(rest[0]) * BYTES[rest[2]], int(rest[1]))
        elif action == "reduce":
            self.reduce(rank, int(rest[0]) * BYTES[rest[3]], int(rest[2]))
        elif action == "allreduce":
            self.allreduce(rank, int(rest[0]) * BYTES[rest[2]])
        elif action == "barrier":
            self.barrier(rank)
        elif action not in ("init", "finalize"):
            raise ValueError(action)


def lines_of(path: Path) -> list[list[str]]:
    """Words of every line of a trace: rank, action, what belongs to it."""
    return [line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def read(path: Path, recursive_doubling: bool) -> Program:
    """Program of a trace; `recursive_doubling` selects SMPI's algorithms ``rdb``."""
    lines = lines_of(path)
    reader = _Reader(1 + max(int(line[0]) for line in lines), recursive_doubling)
    reader.sizes(lines)
    for rank, action, *rest in lines:
        reader.do(int(rank), action, rest)
    return reader.program.build()
