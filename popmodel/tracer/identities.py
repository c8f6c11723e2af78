"""What the processes of a run call differently and is one thing: communicators, functions, names.

Each process numbers its own communicators and knows functions by their addresses. In the trace each
has one number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from popmodel.tracer.meta import Communicator, Function, Meta
from popmodel.tracer.raw import Process

WORLD, SELF = 1, 2
"""What every process calls MPI_COMM_WORLD and MPI_COMM_SELF."""

Locate = Callable[[str, Sequence[int]], Sequence[str | None]]
"""From a module and offsets in it to source lines such as ``solver.c:42``."""


@dataclass
class Communicators:
    """All communicators of a run.

    Attributes
    ----------
    members : dict of int to tuple of int
        World ranks by number; without intercommunicators, of which a trace does not tell them.
    """

    members: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _numbers: dict[tuple[str, int], int] = field(default_factory=dict)

    @classmethod
    def of(cls, processes: Sequence[Process], size: int) -> Communicators:
        """Number the communicators of all processes, MPI_COMM_WORLD as 1."""
        made = cls()
        partial: dict[int, dict[int, int]] = {}
        for process in processes:
            for number, each in sorted(process.meta.communicators.items()):
                own = made._number(each)
                if each.intercommunicator:
                    continue
                if each.members is not None:
                    made.members[own] = each.members
                partial.setdefault(own, {})[each.rank] = process.rank
                if number == WORLD:
                    made.members[own] = tuple(range(size))
        for own, ranks in partial.items():
            # Where the process that lists them is not there: those that say they belong to it.
            made.members.setdefault(own, tuple(rank for _, rank in sorted(ranks.items())))
        made.members = {
            number: tuple(rank for rank in ranks if 0 <= rank < size)
            for number, ranks in sorted(made.members.items())
        }
        return made

    def of_process(self, meta: Meta) -> NDArray[np.int64]:
        """Numbers by what a process calls its communicators; 0 for what it never described."""
        table = np.zeros(max(meta.communicators, default=0) + 1, np.int64)
        for number, each in meta.communicators.items():
            table[number] = self._number(each)
        return table

    def _number(self, each: Communicator) -> int:
        return self._numbers.setdefault((each.hash, each.ordinal), len(self._numbers) + 1)


@dataclass
class Functions:
    """Functions of parallel regions and tasks, numbered from 1.

    Attributes
    ----------
    names : list of str
        Of function 1, 2, ...
    lines : list of str
        Source lines; empty where unknown.
    """

    names: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    _numbers: dict[tuple[str, str | int], int] = field(default_factory=dict)
    _known: list[Function] = field(default_factory=list)

    def of_process(self, meta: Meta) -> dict[int, int]:
        """Numbers by address in a process."""
        return {address: self._number(each) for address, each in sorted(meta.functions.items())}

    def unknown(self, address: int) -> int:
        """Number of a function that its process never described."""
        return self._number(Function(None, "", address))

    def locate(self, locate: Locate) -> None:
        """Find the source lines of all functions."""
        by_module: dict[str, list[int]] = {}
        for number, each in enumerate(self._known):
            by_module.setdefault(each.module, []).append(number)
        for module, numbers in by_module.items():
            if not module:
                continue
            found = locate(module, [self._known[number].offset for number in numbers])
            for number, line in zip(numbers, found, strict=True):
                self.lines[number] = line or ""

    def _number(self, each: Function) -> int:
        key: tuple[str, str | int] = (each.module, each.name or each.offset)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.names) + 1
            place = f"{Path(each.module).name or 'function'}+{each.offset:#x}"
            self.names.append(each.name or place)
            self.lines.append("")
            self._known.append(each)
        return number


@dataclass
class Names:
    """Names of the user's regions, numbered from 1."""

    numbers: dict[str, int] = field(default_factory=dict)

    def of_process(self, meta: Meta) -> Mapping[int, int]:
        """Numbers by the ids of a process."""
        return {own: self.number(text) for own, text in sorted(meta.names.items())}

    def number(self, text: str) -> int:
        """Number of a name."""
        return self.numbers.setdefault(text, len(self.numbers) + 1)
