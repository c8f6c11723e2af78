"""The rows of a list of calls of MPI, with their values for every rank."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.values import dataclass

Ranks = NDArray[np.int64]

CALLS = ("send", "recv", "isend", "irecv", "sendrecv", "wait", "waitall", "compute")
"""What a row may do."""


class CallError(Exception):
    """A list of calls cannot be carried out: which row, and why."""

    def __init__(self, row: int | None, problem: str) -> None:
        super().__init__(problem)
        self.row = row
        self.problem = problem


@dataclass(frozen=True)
class CallRow:
    """A call, with its values for every rank."""

    number: int  # Its own
    do: str  # One of `CALLS`
    on: NDArray[np.bool_]  # bool[P]: Who carries it out
    # int64[P]: Partners; one outside 0..P-1 is none, and the call has no message.
    to: Ranks
    source: Ranks
    # int64[P]: Bytes that are sent, and that are received where the row says so; -1 where it does
    # not.
    size: Ranks
    accepted: Ranks
    # int64[P]: Tag of the messages; of a wait, which open request it is for, 0 for the oldest.
    tag: Ranks
    which: Ranks


class RowRepeat(NamedTuple):
    """Rows that are carried out several times."""

    times: int
    rows: tuple[CallRow | RowRepeat, ...]


Rows: TypeAlias = "tuple[CallRow | RowRepeat, ...]"
