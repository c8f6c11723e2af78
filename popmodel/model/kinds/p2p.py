"""A message to a rank that a formula gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from popmodel.model.grammar.keys import NOT_NEGATIVE, GrammarKey
from popmodel.model.kinds import sending, words
from popmodel.model.kinds.item import Amount
from popmodel.model.run.work import RunWork
from popmodel.network import point_to_point as p2p
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.model.run.operations import OperationsBuilder
    from popmodel.model.run.point import ModelPoint


@dataclass(frozen=True)
class PointToPoint(sending.Sending):
    """Every process sends ``bytes`` to the rank ``to``; a rank outside 0..P-1 is no message."""

    kind: ClassVar[str] = "p2p"
    about: ClassVar[str] = "a message to a rank that a formula gives"
    own: ClassVar[tuple[GrammarKey, ...]] = (
        GrammarKey(
            "to",
            "1",
            None,
            "destination, a formula of rank; no message if outside 0..P-1",
            of_ranks=True,
        ),
        GrammarKey("bytes", "B", None, "message size", NOT_NEGATIVE),
        GrammarKey(
            "mode",
            "",
            "send",
            "send: blocking, before the receive; sendrecv: both at once",
            choices=("send", "sendrecv"),
        ),
        sending.THREADS,
    )

    to: Amount
    bytes: Amount
    mode: str

    def targets(self, point: ModelPoint) -> NDArray[np.int64]:
        """Return the rank that each rank sends to, shape (P,); one outside 0..P-1 is none."""
        each = np.broadcast_to(np.asarray(self.to, float), (point.placement.processes,))
        found: NDArray[np.int64] = np.rint(each).astype(np.int64)
        return found

    def work(self, point: ModelPoint) -> RunWork:
        """Return the work of one message of every process."""
        one, where = sending.exchanged(point, self.targets(point), self.bytes, self.comm_threads)
        if self.mode == "sendrecv":
            return RunWork(transfer=p2p.exchange(one, one), steps=1.0)
        tier = "inter" if where.leaving else "intra"
        largest = p2p.eager_threshold(point.parameters.get(f"net.{tier}.eager_threshold"))
        waits = p2p.waits_for_receiver(self.bytes / self.comm_threads, largest)
        return RunWork(transfer=p2p.ring_of_blocking_sends(one, where.chain, waits), steps=1.0)

    def operations(self, point: ModelPoint, build: OperationsBuilder) -> None:
        """Let all send to their targets."""
        targets, part = self.targets(point), self.bytes / self.comm_threads
        cost = build.pattern(targets, part, self.comm_threads)
        build.send_all(targets, part, cost, self.comm_threads, at_once=self.mode == "sendrecv")

    @staticmethod
    def sentence(entry: words.Entry) -> str:
        """Say what is sent where, and when received."""
        order = "before" if entry["mode"] == "send" else "while"
        return (
            f"send {words.quantity(entry['bytes'])} to rank {words.symbol(entry['to'])}, {order} "
            f"receiving ({entry['mode']}){sending.threads_sentence(entry)}"
        )
