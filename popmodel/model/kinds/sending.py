"""What items share that send messages along a grid or by several threads of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from popmodel.expressions.elementary import Value
from popmodel.model.grammar.keys import ONE_OR_MORE, GrammarKey
from popmodel.model.kinds import words
from popmodel.model.kinds.item import Amount, Item
from popmodel.model.terms import message
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.model.run.point import ModelPoint

THREADS = GrammarKey(
    "comm_threads",
    "1",
    "1",
    "threads of a process that send its messages at the same time; whole, at most T",
    ONE_OR_MORE,
    is_whole=True,
)


@dataclass(frozen=True)
class Sending(Item):
    """An item whose messages ``comm_threads`` threads of a process can send at the same time."""

    communicates: ClassVar[bool] = True
    one_sender: ClassVar[str] = ""

    comm_threads: Amount

    def check(self, numbers: Self, point: ModelPoint) -> None:
        """Refuse more threads than a process has."""
        if numbers.comm_threads > point.placement.threads:
            raise point.refuse(
                f"comm_threads of {self.name!r} is {self.comm_threads.text!r} = "
                f"{numbers.comm_threads}",
                ", more than the threads of a process",
                "at most T threads of a process can send: write min(T, ...), or ask for more",
            )


def exchanged(
    point: ModelPoint, targets: NDArray[np.int64], size: Value, threads: int = 1
) -> tuple[Value, message.Traffic]:
    """Return the time in which rank r sends to ``targets[r]``, and where these messages go."""
    where = message.traffic(targets, point.placement.per_node)
    return point.messages.exchange(size / threads, where, threads), where


def hint_of_dimensions(count: int) -> str:
    """Say which grid dimensions there are."""
    if count == 1:
        return "the grid has one dimension: 0"
    return f"the grid has dimensions 0 to {count - 1}"


def threads_sentence(entry: words.Entry) -> str:
    """Say how many threads send, if not one."""
    if entry["comm_threads"]["formula"] == "1":
        return ""
    return f"; {words.symbol(entry['comm_threads'])} threads per process send at the same time"
