"""Building a program operation by operation, for programs that do not come from a trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popmodel.simulator.program import COLLECTIVES, Collectives, Messages, Op, Program

__all__ = ["ProgramBuilder"]

_NS = 1e9


class ProgramBuilder:
    """Collects what every process does; `build` gives the program.

    Parameters
    ----------
    processes : int
        Number of processes.
    nodes : sequence of int, optional
        Node of each process; all on node 0 by default.
    """

    def __init__(self, processes: int, nodes: Sequence[int] | None = None) -> None:
        self._ops: list[list[tuple[Op, int, float]]] = [[] for _ in range(processes)]
        self._pending = [0.0] * processes
        self._messages: list[tuple[int, int, int, int, int]] = []
        self._collectives: list[tuple[int, int, int, int, int, int, int]] = []
        self._communicators: dict[int, np.ndarray] = {0: np.arange(processes, dtype=np.int32)}
        self._nodes = np.zeros(processes, np.int32) if nodes is None else np.array(nodes, np.int32)

    def compute(self, process: int, seconds: float) -> None:
        """Let a process compute."""
        self._pending[process] += seconds * _NS

    def message(
        self, sender: int, receiver: int, size: int, tag: int = 0, buffered: bool = False
    ) -> int:
        """Describe a message; returns its number for `do`."""
        self._messages.append((sender, receiver, size, tag, int(buffered)))
        return len(self._messages) - 1

    def communicator(self, members: Sequence[int]) -> int:
        """Describe a communicator; returns its id. Id 0 has all processes."""
        number = len(self._communicators)
        self._communicators[number] = np.array(members, dtype=np.int32)
        return number

    def collective(
        self,
        kind: str,
        sent: int = 0,
        received: int = 0,
        root: int = -1,
        communicator: int = 0,
        root_sent: int = 0,
    ) -> int:
        """Describe a collective; returns its number for `do`. `root` is a process index."""
        members = len(self._communicators[communicator])
        self._collectives.append(
            (COLLECTIVES.index(kind), communicator, members, root, sent, received, root_sent)
        )
        return len(self._collectives) - 1

    def do(self, process: int, op: Op, target: int) -> None:
        """Let a process carry out an operation on a message or a collective."""
        self._ops[process].append((op, target, self._pending[process]))
        self._pending[process] = 0.0

    def build(self) -> Program:
        """The program so far."""
        ops = [op for mine in self._ops for op in mine]
        counts = [len(mine) for mine in self._ops]
        names = tuple(op.name.lower() for op in Op)
        kind = np.array([op for op, _, _ in ops], dtype=np.uint8)
        messages = np.array(self._messages, dtype=np.int64).reshape(-1, 5).T
        collectives = np.array(self._collectives, dtype=np.int64).reshape(-1, 7).T
        return Program(
            offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            kind=kind,
            target=np.array([target for _, target, _ in ops], dtype=np.int32),
            burst=np.array([burst for _, _, burst in ops], dtype=np.float64),
            tail=np.array(self._pending, dtype=np.float64),
            messages=Messages(
                messages[0].astype(np.int32),
                messages[1].astype(np.int32),
                messages[2],
                messages[3],
                messages[4].astype(np.int8),
            ),
            collectives=Collectives(
                collectives[0].astype(np.int8),
                collectives[1],
                collectives[2].astype(np.int32),
                collectives[3].astype(np.int32),
                *collectives[4:],
            ),
            call=np.arange(len(ops), dtype=np.int32),
            call_name=names,
            call_code=kind.astype(np.int32),
            call_time=np.zeros(len(ops), dtype=np.int64),
            communicators=self._communicators,
            nodes=self._nodes,
        )
