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
    """A list of calls cannot be carried out: which row, and why.

    Parameters
    ----------
    row : int or None
        Its number; None if it is none in particular.
    problem : str
        What is wrong, to follow the name of the row.
    """

    def __init__(self, row: int | None, problem: str) -> None:
        super().__init__(problem)
        self.row = row
        self.problem = problem


@dataclass(frozen=True)
class Row:
    """A call, with its values for every rank.

    Attributes
    ----------
    number : int
        Its own.
    do : str
        One of `CALLS`.
    on : bool[P]
        Who carries it out.
    to, source : int64[P]
        Partners; one outside 0..P-1 is none, and the call has no message.
    size, accepted : int64[P]
        Bytes that are sent, and that are received where the row says so; -1 where it does not.
    tag, which : int64[P]
        Tag of the messages; of a wait, which open request it is for, 0 for the oldest.
    """

    number: int
    do: str
    on: NDArray[np.bool_]
    to: Ranks
    source: Ranks
    size: Ranks
    accepted: Ranks
    tag: Ranks
    which: Ranks


class Repeat(NamedTuple):
    """Rows that are carried out several times."""

    times: int
    rows: tuple[Row | Repeat, ...]


Rows: TypeAlias = "tuple[Row | Repeat, ...]"
