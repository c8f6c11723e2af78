"""Building a program operation by operation, for programs that do not come from a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from popmodel.arrays import Rows
from popmodel.simulator.program import COLLECTIVES, Collectives, Messages, Op, Program

_NS = 1e9


class ProgramBuilder:
    """Collects what every process does; `build` gives the program."""

    def __init__(self, processes: int, nodes: Sequence[int] | None = None) -> None:
        self._ops = [Rows(3) for _ in range(processes)]  # what, on what, seconds before
        self._pending = [0.0] * processes
        self._messages = Rows(5)
        self._collectives: list[tuple[int, ...]] = []
        self._communicators: dict[int, np.ndarray] = {0: np.arange(processes, dtype=np.int32)}
        self._nodes = np.zeros(processes, np.int32) if nodes is None else np.array(nodes, np.int32)

    def compute(self, process: int, seconds: float) -> None:
        """Let a process compute."""
        self._pending[process] += seconds * _NS

    def message(
        self, sender: int, receiver: int, size: int, tag: int = 0, buffered: bool = False
    ) -> int:
        """Describe a message; returns its number for `do`."""
        return self._messages.append((sender, receiver, size, tag, int(buffered)))

    def messages_again(self, count: int, times: int) -> None:
        """Describe the last messages so many more times, numbered on."""
        self._messages.again(count, times)

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
        by_peer: bool = False,
    ) -> int:
        """Describe a collective; returns its number for `do`. `root` is a process index."""
        members = len(self._communicators[communicator])
        self._collectives.append(
            (
                *(COLLECTIVES.index(kind), communicator, members, root),
                *(sent, received, root_sent, by_peer),
            )
        )
        return len(self._collectives) - 1

    def do(self, process: int, op: Op, target: int) -> None:
        """Let a process carry out an operation on a message or a collective."""
        self._ops[process].append((op, target, self._pending[process]))
        self._pending[process] = 0.0

    @contextmanager
    def repeated(self, process: int, times: int, step: int) -> Iterator[None]:
        """Let a process do what it does inside so often, each time on targets a step further."""
        mine, before = self._ops[process], self._pending[process]
        begin = len(mine)
        yield
        done, after = len(mine) - begin, self._pending[process]
        if done and (before or after):
            raise ValueError("what is repeated begins and ends with operations")
        self._pending[process] = before + times * (after - before)
        mine.again(done, times - 1, (0, step, 0))

    def build(self) -> Program:
        """The program so far."""
        every = [mine.array() for mine in self._ops]
        ops = np.concatenate(every, axis=1)
        names = tuple(op.name.lower() for op in Op)
        kind = ops[0].astype(np.uint8)
        messages = self._messages.array().astype(np.int64)
        collectives = np.array(self._collectives, dtype=np.int64).reshape(-1, 8).T
        return Program(
            offsets=np.cumsum([0, *(mine.shape[1] for mine in every)]),
            kind=kind,
            target=ops[1].astype(np.int32),
            burst=ops[2],
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
                collectives[4],
                collectives[5],
                collectives[6],
                collectives[7].astype(bool),
            ),
            call=np.arange(len(kind), dtype=np.int32),
            call_name=names,
            call_code=kind.astype(np.int32),
            call_time=np.zeros(len(kind), dtype=np.int64),
            communicators=self._communicators,
            nodes=self._nodes,
        )
