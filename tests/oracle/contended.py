"""A plain replay on shared links: what can happen first happens, and all is looked at anew.

It shares nothing with the compiled engine but the rules. Nobody runs ahead, nothing is woken,
nothing is kept sorted; rates are found for all messages at once. Slow on purpose. Collectives
synchronise.
"""

import math
from collections.abc import Iterable

from oracle.replay import WAITS
from popmodel.simulator.program import Op, Program


class Message:
    """What is known of one message; times in ns."""

    def __init__(self, row: int, sender: int, receiver: int) -> None:
        self.row, self.sender, self.receiver = row, sender, receiver
        self.sent: float | None = None
        self.posted: float | None = None
        self.arrived: float | None = None
        self.turn = 0  # among those of its sender
        self.left = math.inf  # bytes
        self.entered = False  # the links


class Fifo:
    """Output link, input link, bus: taken in this order, one message after the other."""

    def __init__(self, node: list[int], output: int, into: int, buses: int) -> None:
        self.node, self.buses = node, buses
        self.half = (output > 0) != (into > 0)
        self.limited = output > 0 or into > 0
        nodes = range(max(node) + 1)
        self.free_out = dict.fromkeys(nodes, max(output, into) if self.half else output)
        self.free_in = self.free_out if self.half else dict.fromkeys(nodes, into)
        self.wait_out: dict[int, list[Message]] = {n: [] for n in nodes}
        self.wait_in: dict[int, list[Message]] = {n: [] for n in nodes}
        self.wait_bus: list[Message] = []
        self.out: list[Message] = []  # who has an output link, since when
        self.in_: list[Message] = []
        self.under_way: list[Message] = []
        self.started: list[Message] = []

    def ends(self, m: Message) -> tuple[int, int]:
        return self.node[m.sender], self.node[m.receiver]

    def shared(self, m: Message) -> bool:
        here, there = self.ends(m)
        return here != there and (self.limited or self.buses > 0)

    def idle_holder(self, node: int) -> Message | None:
        """Who has an output link of a node but waits for an input link."""
        return next((m for m in self.out if self.ends(m)[0] == node and m not in self.in_), None)

    def displace(self, m: Message) -> None:
        here, there = self.ends(m)
        self.wait_in[there].remove(m)
        self.out.remove(m)
        self.wait_out[here].insert(0, m)

    def go(self, m: Message) -> None:
        if self.limited and not self.take(m):
            return
        if self.buses and len(self.under_way) >= self.buses:
            self.wait_bus.append(m)
            return
        self.under_way.append(m)
        self.started.append(m)

    def take(self, m: Message) -> bool:
        here, there = self.ends(m)
        displaced = None
        if m not in self.out:
            if self.free_out[here]:
                self.free_out[here] -= 1
                self.out.append(m)
            elif (displaced := self.idle_holder(here)) is None:
                self.wait_out[here].append(m)
                return False
        if m in self.in_:
            return True
        other = self.idle_holder(there) if self.half and not self.free_in[there] else None
        if not self.free_in[there] and other is None:
            (self.wait_in[there] if displaced is None else self.wait_out[here]).append(m)
            return False
        if displaced is not None:
            self.displace(displaced)
            self.out.append(m)
        if other is None:
            self.free_in[there] -= 1
        else:
            self.displace(other)
        self.in_.append(m)
        return True

    def release(self, m: Message) -> None:
        here, there = self.ends(m)
        if self.limited:
            self.free_out[here] += 1
            self.out.remove(m)
            for queue in [self.wait_in[here]] * self.half + [self.wait_out[here]]:
                self.serve(queue)
            self.free_in[there] += 1
            self.in_.remove(m)
            for queue in [self.wait_out[there]] * self.half + [self.wait_in[there]]:
                self.serve(queue)
        self.under_way.remove(m)
        self.serve(self.wait_bus)

    def serve(self, queue: list[Message]) -> None:
        if queue:
            self.go(queue.pop(0))


def max_min(flows: list[Message], ways: dict[int, list[int]], capacity, fastest) -> list[float]:
    """Rates of flows over links: all grow alike until something stops some of them."""
    rate = [0.0] * len(flows)
    growing = set(range(len(flows)))
    while growing:
        room = []
        for link in {link for i in growing for link in ways[flows[i].row]}:
            users = [i for i in range(len(flows)) if link in ways[flows[i].row]]
            used = sum(rate[i] for i in users)
            room.append((capacity[link] - used) / sum(i in growing for i in users))
        room += [fastest[flows[i].row] - rate[i] for i in growing]
        step = max(min(room), 0.0)
        for i in growing:
            rate[i] += step
        full = {
            link
            for link in range(len(capacity))
            if sum(rate[i] for i in range(len(flows)) if link in ways[flows[i].row])
            >= capacity[link] * (1 - 1e-12)
        }
        growing = {
            i
            for i in growing
            if rate[i] < fastest[flows[i].row] * (1 - 1e-12) and not full & set(ways[flows[i].row])
        }
    return rate


class Replay:
    """A replay that moves from one thing that happens to the next."""

    def __init__(self, program: Program, costs: dict, links: Fifo | None, ways=None) -> None:
        self.program, self.costs, self.links = program, costs, links
        self.ways, self.capacity, self.fastest, self.bytes = ways or ({}, [], {}, {})
        senders, receivers = program.messages.sender.tolist(), program.messages.receiver.tolist()
        self.messages = [
            Message(row, *ends) for row, ends in enumerate(zip(senders, receivers, strict=True))
        ]
        count = program.processes
        self.at = program.offsets[:-1].tolist()
        self.clock = [0.0] * count
        self.entered = [False] * count
        self.sends = [0] * count
        self.arrivals: dict[int, list[float]] = {}
        self.pending: list[tuple[float, Message]] = []  # ready to go at a time
        self.ending: list[tuple[float, Message]] = []
        self.flows: list[Message] = []
        self.now = 0.0
        for p in range(count):
            self.compute(p)

    def compute(self, p: int) -> None:
        done = self.at[p] == self.program.offsets[p + 1]
        burst = self.program.tail[p] if done else self.program.burst[self.at[p]]
        self.clock[p] += float(burst) * self.costs["cpu"]

    def run(self) -> tuple[list[float], list[int]]:
        while True:
            acts = [(t, p) for p in range(len(self.at)) if (t := self.acts_at(p)) is not None]
            links = self.next_on_links()
            if not acts and links is None:
                return self.clock, self.at
            if acts and (links is None or min(acts)[0] <= links):
                t, p = min(acts)
                self.advance(t)
                self.act(p, t)
            else:
                self.advance(links)
                self.happen()

    # -- processes

    def acts_at(self, p: int) -> float | None:
        """When a process does its next step, if nothing keeps it."""
        if self.at[p] == self.program.offsets[p + 1]:
            return None
        if not self.entered[p]:
            return self.clock[p]
        until = self.waits_until(p)
        return None if until is None else max(self.clock[p], until)

    def waits_until(self, p: int) -> float | None:
        op, x = Op(self.program.kind[self.at[p]]), int(self.program.target[self.at[p]])
        if op in (Op.COLLECTIVE, Op.WAIT_COLLECTIVE):
            here = self.arrivals.get(x, [])
            whole = len(here) == self.program.collectives.members[x]
            return max(here) + self.costs["collective_cost"][x] if whole else None
        if op == Op.ARRIVE:
            return 0.0
        m = self.messages[x]
        if op in (Op.RECEIVE, Op.WAIT_RECEIVE):
            return m.arrived
        rendezvous, ends = self.costs["rendezvous"][x], self.costs["sender_waits_for_transfer"]
        if rendezvous == WAITS and (op == Op.SEND or (op == Op.WAIT_SEND and ends)):
            if ends:
                return m.arrived
            return None if m.posted is None else max(m.posted, m.sent or 0.0)
        return 0.0

    def act(self, p: int, t: float) -> None:
        i = self.at[p]
        op, x = Op(self.program.kind[i]), int(self.program.target[i])
        if self.entered[p]:
            self.entered[p] = False
            if op in (Op.RECEIVE, Op.WAIT_RECEIVE):
                t += self.costs["receive_after"][x]
            self.clock[p] = t
            self.at[p] += 1
            self.compute(p)
            return
        self.entered[p] = True
        if op >= Op.COLLECTIVE:
            if op != Op.COLLECTIVE:
                t += self.costs["request_cost"][x]
            if op != Op.WAIT_COLLECTIVE:
                self.arrivals.setdefault(x, []).append(t)
            self.clock[p] = t
            return
        m = self.messages[x]
        if op in (Op.SEND, Op.ISEND):
            t += self.costs["send_overhead"][x]
            m.sent, m.turn = t, self.sends[p]
            self.sends[p] += 1
        if op in (Op.RECEIVE, Op.WAIT_RECEIVE):
            t += self.costs["receive_before"][x]
        if op in (Op.RECEIVE, Op.POST):
            m.posted = t
        self.clock[p] = t
        self.ready(m)

    # -- messages

    def ready(self, m: Message) -> None:
        rendezvous = self.costs["rendezvous"][m.row]
        if m.entered or m.sent is None or (rendezvous and m.posted is None):
            return
        m.entered = True
        start = max(m.sent, m.posted or 0.0) if rendezvous else m.sent
        if self.links is not None and self.links.shared(m):
            self.pending.append((start, m))
        elif m.row in self.ways and self.bytes[m.row] > 0:
            transfer = self.costs["transfer"][m.row] - self.costs["busy"][m.row]
            self.pending.append((start + transfer, m))
        else:
            m.arrived = start + self.costs["transfer"][m.row]

    def rates(self) -> list[float]:
        return max_min(self.flows, self.ways, self.capacity, self.fastest)

    def next_on_links(self) -> float | None:
        times = [t for t, _ in self.pending] + [t for t, _ in self.ending]
        if self.flows:
            rates = self.rates()
            times += [self.now + m.left / rate for m, rate in zip(self.flows, rates, strict=True)]
        return min(times, default=None)

    def advance(self, t: float) -> None:
        """Let flows go on until a time; it is not later than the end of any."""
        if t > self.now:
            for m, rate in zip(self.flows, self.rates(), strict=True):
                m.left -= rate * (t - self.now)
            self.now = t

    def happen(self) -> None:
        """What happens now on links: one end, or else one start."""
        for m in self.flows:
            if m.left <= 1e-9 * self.bytes[m.row]:
                self.flows.remove(m)
                m.arrived = self.now
                return
        if self.ending and self.ending[0][0] <= self.now:
            _, m = self.ending.pop(0)
            self.links.release(m)
        else:
            first = min(self.pending, key=lambda e: (e[0], e[1].sender, e[1].turn))
            self.pending.remove(first)
            m = first[1]
            if self.links is None:
                m.left = self.bytes[m.row]
                self.flows.append(m)
            else:
                self.links.go(m)
        for m in self.drain():
            m.arrived = self.now + self.costs["transfer"][m.row]
            self.ending.append((self.now + self.costs["busy"][m.row], m))
        self.ending.sort(key=lambda e: e[0])  # of several at once the first that started

    def drain(self) -> Iterable[Message]:
        if self.links is None:
            return []
        started, self.links.started = self.links.started, []
        return started
