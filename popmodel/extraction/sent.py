"""Messages of a run at the places of another one: from whom, to whom, how large."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.program import Op
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure


@dataclass(frozen=True)
class Sent:
    """Messages."""

    place: NDArray[np.int64]  # int64[M]: Where each is sent
    # int64[M]: Ranks.
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    size: NDArray[np.int64]  # int64[M]: Bytes

    def at(self, places: Sequence[int]) -> Sent:
        """Return those that are sent at some places."""
        return self.chosen(np.isin(self.place, places))

    def chosen(self, rows: NDArray[np.bool_]) -> Sent:
        """Return some of them."""
        return Sent(self.place[rows], self.sender[rows], self.receiver[rows], self.size[rows])


def sent(structure: Structure, home: NDArray[np.int64] | None = None) -> Sent:
    """Return the messages of a run."""
    program, messages = structure.program, structure.program.messages
    operation = np.flatnonzero(np.isin(program.kind, (Op.SEND, Op.ISEND)))
    event = np.searchsorted(structure.events.first, operation, side="right") - 1
    place = structure.place[event].astype(np.int64)
    row = program.target[operation]
    return Sent(
        place if home is None else home[place],
        messages.sender[row].astype(np.int64),
        messages.receiver[row].astype(np.int64),
        messages.size[row].astype(np.int64),
    )
