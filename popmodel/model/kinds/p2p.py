"""Messages to one other process: to a rank that a formula gives, or along a grid dimension."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from popmodel.base.values import dataclass
from popmodel.model.kinds.item import GRID, Amount, Entry, Further, Item, quantity, symbol
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.operations import OperationsBuilder
from popmodel.model.run.work import RunWork
from popmodel.model.signature.reading import GrammarReading, Path
from popmodel.model.terms import message
from popmodel.network import point_to_point as p2p

# What items share that send messages along a grid or by several threads of a process.


@dataclass(frozen=True)
class Sending(Item):
    """An item whose messages ``comm_threads`` threads of a process can send at the same time."""

    communicates: ClassVar[bool] = True
    one_sender: ClassVar[str] = ""
    further: ClassVar[Further] = {"comm_threads": {"is_whole": True}}

    comm_threads: Amount

    def check(self, numbers: Self, point: ModelPoint) -> None:
        if numbers.comm_threads > point.placement.threads:
            raise point.refuse(
                f"comm_threads of {self.name!r} is {self.comm_threads.text!r} = "
                f"{numbers.comm_threads}",
                ", more than the threads of a process",
                "at most T threads of a process can send: write min(T, ...), or ask for more",
            )


class ToOne(Sending):
    """An item in which every rank sends ``bytes``, a field of its kind, to one other."""

    if TYPE_CHECKING:

        @property
        def bytes(self) -> Amount:
            """Size of the message."""

    @property
    def is_exchange(self) -> bool:
        """Whether processes receive while they send."""
        return True

    def targets(self, point: ModelPoint) -> NDArray[np.int64]:
        """Return the rank that each rank sends to, shape (P,); one outside 0..P-1 is none."""
        raise NotImplementedError

    def work(self, point: ModelPoint) -> RunWork:
        where = message.traffic(self.targets(point), point.placement.per_node)
        part = self.bytes / self.comm_threads
        time = point.messages.exchange(part, where, self.comm_threads)
        if self.is_exchange:
            return RunWork(transfer=p2p.exchange(time, time), steps=1.0)
        tier = "inter" if where.leaving else "intra"
        largest = p2p.eager_threshold(point.parameters.get(f"net.{tier}.eager_threshold"))
        waits = p2p.waits_for_receiver(part, largest)
        return RunWork(transfer=p2p.ring_of_blocking_sends(time, where.chain, waits), steps=1.0)

    def operations(self, point: ModelPoint, build: OperationsBuilder) -> None:
        targets, part = self.targets(point), self.bytes / self.comm_threads
        cost = build.pattern(targets, part, self.comm_threads)
        build.send_all(targets, part, cost, self.comm_threads, at_once=self.is_exchange)


def hint_of_dimensions(count: int) -> str:
    """Say which grid dimensions there are."""
    if count == 1:
        return "the grid has one dimension: 0"
    return f"the grid has dimensions 0 to {count - 1}"


def threads_sentence(entry: Entry) -> str:
    """Say how many threads send, if not one."""
    if entry["comm_threads"]["formula"] == "1":
        return ""
    return f"; {symbol(entry['comm_threads'])} threads per process send at the same time"


# A message to a rank that a formula gives.


@dataclass(frozen=True)
class PointToPoint(ToOne):
    """Every process sends ``bytes`` to the rank ``to``; a rank outside 0..P-1 is no message."""

    kind: ClassVar[str] = "p2p"
    further: ClassVar[Further] = {
        "to": {"of_ranks": True},
        "mode": {"choices": ("send", "sendrecv")},
    }
    remedies: ClassVar[Mapping[str, tuple[str, str]]] = {
        "at once": (
            "MPI_Sendrecv in {}",
            "Processes receive while they send: none waits until the next one has sent.",
        )
    }

    to: Amount
    bytes: Amount
    mode: str

    def targets(self, point: ModelPoint) -> NDArray[np.int64]:
        each = np.broadcast_to(np.asarray(self.to, float), (point.placement.processes,))
        found: NDArray[np.int64] = np.rint(each).astype(np.int64)
        return found

    @property
    def is_exchange(self) -> bool:
        return self.mode == "sendrecv"

    def faster(self, threads: int) -> Iterator[tuple[str, Item]]:  # noqa: ARG002
        if self.mode == "send":
            yield "at once", replace(self, mode="sendrecv")

    @staticmethod
    def sentence(entry: Entry) -> str:
        order = "before" if entry["mode"] == "send" else "while"
        return (
            f"send {quantity(entry['bytes'])} to rank {symbol(entry['to'])}, {order} "
            f"receiving ({entry['mode']}){threads_sentence(entry)}"
        )


# A message to the process some steps along a grid dimension.


def read_dimension(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> int:
    """Read a grid dimension."""
    dim = table["dim"]
    if isinstance(dim, bool) or not isinstance(dim, int) or not 0 <= dim < reading.dimensions:
        hint = hint_of_dimensions(reading.dimensions)
        raise reading.error(where, f"dim must be a grid dimension, not {dim!r}", hint)
    return dim


@dataclass(frozen=True)
class Shift(ToOne):
    """Every process exchanges ``bytes`` with the one ``by`` steps along a grid dimension.

    Its ``comm_threads`` threads send a part of the message each.
    """

    kind: ClassVar[str] = "shift"
    further: ClassVar[Further] = {"dim": {"read": read_dimension}, "by": {"is_whole": True}}
    needs: ClassVar[str] = GRID

    dim: int
    by: Amount
    bytes: Amount

    def targets(self, point: ModelPoint) -> NDArray[np.int64]:
        wraps = point.periodic[self.dim]
        return message.grid_neighbours(point.extent, self.dim, self.by, periodic=wraps)

    @staticmethod
    def sentence(entry: Entry) -> str:
        noun = "step" if entry["by"]["formula"] in ("1", "-1") else "steps"
        return (
            f"send {quantity(entry['bytes'])} to the process {symbol(entry['by'])} "
            f"{noun} along grid dimension {entry['dim']}, and receive as much"
            f"{threads_sentence(entry)}"
        )
