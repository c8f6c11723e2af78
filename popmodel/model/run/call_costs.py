"""What the messages of a list of calls cost.

Those that one call completes follow each other through the port of a process: one latency, and
the time that each takes for its bytes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import numbered
from popmodel.base.expressions.elementary import Value
from popmodel.base.values import dataclass
from popmodel.model.run.call_list import ListExchange, ListPlan
from popmodel.model.run.messages import ELSEWHERE, NOWHERE, ON_NODE, TIERS, RunMessages
from popmodel.model.uncertainty import nominal
from popmodel.network import point_to_point as p2p
from popmodel.simulator.costs import Charges, core, costs
from popmodel.simulator.program import Collectives, Op, Program
from popmodel.simulator.program import ProgramMessages as Sent

Ranks = NDArray[np.int64]
Seconds = NDArray[np.float64]
_NS = 1e9


@dataclass(frozen=True)
class Priced:
    """Messages of a list with what they cost; best estimates. Made by `Priced.of`."""

    exchanged: ListExchange  # The messages
    where: RunMessages  # Processes on nodes
    place: Ranks  # int64[M]: Where each goes; a message of a process to itself goes nowhere
    kind: Ranks  # int64[M]: Row of ``sizes`` and ``places``
    # int64[K]: Different sizes and places.
    sizes: Ranks
    places: Ranks
    # float64[M]: Time of an empty message, and what its bytes add, s.
    latency: Seconds
    gap: Seconds
    waits: NDArray[np.bool_]  # bool[M]: Whether a blocking send of it waits for its receive

    @staticmethod
    def of(exchanged: ListExchange, where: RunMessages) -> Priced:
        """Find what messages cost on a placement."""
        sender, receiver, nodes = exchanged.sender, exchanged.receiver, where.nodes
        place = np.where(nodes[sender] == nodes[receiver], ON_NODE, ELSEWHERE)
        place[sender == receiver] = NOWHERE
        width = ELSEWHERE + 1
        pairs, kind = numbered(exchanged.size * width + place)
        sizes, places = np.divmod(pairs, width)
        nothing, each = np.zeros(place.size), kind.ravel()
        costs_nothing = (nothing, nothing, np.zeros(place.size, dtype=bool))
        found = Priced(exchanged, where, place, each, sizes, places, *costs_nothing)
        latency, whole = np.zeros(sizes.size), np.zeros(sizes.size)
        waits = np.zeros(sizes.size, dtype=bool)
        for tier, classes in found.classes().items():
            mine = places == tier
            largest = where.parameters.get(f"net.{TIERS[tier]}.eager_threshold")
            waits[mine] = p2p.waits_for_receiver(sizes[mine], nominal(p2p.eager_threshold(largest)))
            best = [_best(one) for one in classes]
            latency[mine] = p2p.by_size(0, best)
            whole[mine] = p2p.by_size(sizes[mine].astype(np.float64), best)
        gap = whole - latency
        return replace(found, latency=latency[each], gap=gap[each], waits=waits[each])

    def classes(self) -> dict[int, list[p2p.SizeClass]]:
        staying, leaving = (self._flows(place) for place in (ON_NODE, ELSEWHERE))
        return self.where.classes(staying, leaving)

    def _flows(self, place: int) -> int:
        """Processes of a node that send to a place, at most."""
        senders = np.unique(self.exchanged.sender[self.place == place])
        return int(np.bincount(self.where.nodes[senders]).max(initial=0))

    def times(self) -> Seconds:
        """Return how long each message is on its way, behind those that are sent before it."""
        sides = (
            (self.exchanged.sent_by, self.exchanged.sent),
            (self.exchanged.received_by, self.exchanged.received),
        )
        queued = [_queued(group, turn, self.gap) for group, turn in sides]
        found: Seconds = self.latency + np.maximum(*queued)
        return found

    def slowest(self) -> Value:
        """Return the time that the process takes for its messages which has the most of them."""
        sent, received = self.exchanged.sender, self.exchanged.receiver
        sides = [(sent, self.exchanged.sent_by), (received, self.exchanged.received_by)]
        firsts = [_furthest(group, self.place) for _, group in sides]
        processes = self.where.placement.processes
        spent = np.stack(
            [
                np.bincount(rank, self.gap, processes)
                + np.bincount(rank[first], self.latency[first], processes)
                for (rank, _), first in zip(sides, firsts, strict=True)
            ]
        )
        side, slowest = np.unravel_index(int(spent.argmax()), spent.shape)
        rank, first = sides[int(side)][0], firsts[int(side)]
        count = np.bincount(self.kind[rank == slowest], minlength=self.sizes.size)
        once = np.bincount(self.place[first][rank[first] == slowest], minlength=ELSEWHERE + 1)
        return self._time(count, once)

    def _time(self, count: Ranks, once: Ranks) -> Value:
        """Time of so many messages of each kind, with so many latencies of each place."""
        total: Value = 0.0
        for tier, classes in self.classes().items():
            mine = np.flatnonzero((self.places == tier) & (count > 0))
            if not mine.size:
                continue
            sizes = self.sizes[mine]
            self.where.use(tier, float(sizes.max()))
            self.where.use(tier, float(sizes.min()))
            latency = p2p.by_size(0, classes)
            total = total + float(once[tier]) * latency
            for size, times in zip(sizes.tolist(), count[mine].tolist(), strict=True):
                total = total + float(times) * (p2p.by_size(float(size), classes) - latency)
        return total


def _best(one: p2p.SizeClass) -> p2p.SizeClass:
    """Return a size class of best estimates."""
    upto = None if one.upto is None else nominal(one.upto)
    return p2p.SizeClass(upto, nominal(one.alpha), nominal(one.beta))


def _queued(group: Ranks, turn: Ranks, gap: Seconds) -> Seconds:
    """Sum of the gaps of the messages of a group up to each one."""
    order = np.lexsort((turn, group))
    total = np.cumsum(gap[order])
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    before = np.repeat(total[starts] - gap[order][starts], np.diff(starts, append=group.size))
    found = np.empty_like(gap)
    found[order] = total - before
    return found


def _furthest(group: Ranks, place: Ranks) -> Ranks:
    """Return one message of each group, of those that go furthest."""
    order = np.lexsort((place, group))
    last: Ranks = order[np.flatnonzero(np.diff(group[order], append=-1))]
    return last


def program(plan: ListPlan, priced: Priced) -> tuple[Program, Charges]:
    """Return what all processes do as a program in which nothing is computed, and its charges."""
    sent, count = plan.messages, len(plan.messages)
    zeros, none = np.zeros(count), np.empty(0, np.int64)
    names = tuple(op.name.lower() for op in Op)
    made = Program(
        offsets=plan.offsets,
        kind=plan.kind,
        target=plan.target.astype(np.int32),
        burst=np.zeros(plan.operations),
        tail=np.zeros(plan.processes),
        messages=Sent(
            sent.sender.astype(np.int32),
            sent.receiver.astype(np.int32),
            sent.size,
            sent.tag,
            np.zeros(count, np.int8),
        ),
        collectives=Collectives(
            none.astype(np.int8),
            none,
            none.astype(np.int32),
            none.astype(np.int32),
            none,
            none,
            none,
            none.astype(bool),
        ),
        call=np.arange(plan.operations, dtype=np.int32),
        call_name=names,
        call_code=plan.kind.astype(np.int32),
        call_time=np.zeros(plan.operations, np.int64),
        communicators={0: np.arange(plan.processes, dtype=np.int32)},
        nodes=np.zeros(plan.processes, np.int32),
    )
    charges = Charges(
        transfer=priced.times() * _NS,
        rendezvous=priced.waits.astype(np.uint8),
        send_overhead=zeros,
        receive_before=zeros,
        receive_after=zeros,
        sender_waits_for_transfer=True,
        collective_cost=np.empty(0),
        member_cost=np.empty(0),
        collective_rule=np.empty(0, np.uint8),
        request_cost=np.empty(0),
    )
    return made, charges


def stuck(plan: ListPlan, priced: Priced) -> tuple[int, int] | None:
    """Return a process that waits forever, and the row of its call; None if all come to the end."""
    made, charges = program(plan, priced)
    messages = np.arange(len(plan.messages), dtype=np.int32)
    lanes = costs([charges], [np.ones(plan.processes)])
    _, at = core(made, messages, np.empty(0, np.int32)).run(lanes, None)
    waiting = np.flatnonzero(at < plan.offsets[1:])
    if not waiting.size:
        return None
    process = int(waiting[0])
    return process, int(plan.row[at[process]])
