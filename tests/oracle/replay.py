"""A plain replay: sweeps over the processes until none can move.

It shares nothing with the compiled engine but the rules: no ready stack, no wake-up lists, every
condition is looked up anew in each sweep. Slow on purpose, and short enough to be read.
"""

from popmodel.network.network import Network
from popmodel.simulator.costs import charge, classes
from popmodel.simulator.program import Op, Program

WAITS = 1  # of a rendezvous: the sender does, unless it is detached
_OF_MESSAGES = ("transfer", "rendezvous", "send_overhead", "receive_before", "receive_after")
SYNCHRONISING, FROM_ROOT, TO_ROOT, TO_ROOT_PAID, _, LAST_DECIDES = range(6)


def on(program: Program, network: Network) -> tuple[list[float], list[int], list[float]]:
    """The same with the costs of a network."""
    found = classes(program)
    charges = charge(program, found, network)
    costs = {}
    for name, column in vars(charges).items():
        row = found.collective if name.startswith(("collective", "member", "request")) else None
        row = found.message if name in _OF_MESSAGES else row
        costs[name] = column if row is None else column[row]
    return replay(
        program, 1 / network.cpu_factor, uneven_operation=program.uneven.operation, **costs
    )


def replay(program: Program, cpu: float, **costs) -> tuple[list[float], list[int], list[float]]:
    """End of every process (or where it is stuck), where, and time in each operation, ns."""
    kinds = program.kind.tolist()
    targets = program.target.tolist()
    begin, end = program.offsets[:-1].tolist(), program.offsets[1:].tolist()
    root = program.collectives.root.tolist()
    cost = {name: getattr(c, "tolist", lambda c=c: c)() for name, c in costs.items()}
    sent: dict[int, float] = {}
    posted: dict[int, float] = {}
    arrived: dict[int, dict[int, float]] = {}
    brings = dict(zip(cost["uneven_operation"], cost["uneven_cost"], strict=True))
    brought: dict[tuple[int, int], float] = {}
    clock = [0.0] * program.processes
    at = list(begin)
    started = [False] * program.processes
    entered = [0.0] * program.processes
    spent = [0.0] * program.operations

    def arrival(m: int) -> float | None:
        if m not in sent:
            return None
        if not cost["rendezvous"][m]:
            return sent[m] + cost["transfer"][m]
        if m not in posted:
            return None
        return max(sent[m], posted[m]) + cost["transfer"][m]

    def sender_end(m: int, t: float) -> float | None:
        if m not in posted or m not in sent:
            return None
        transfer = cost["transfer"][m] if cost["sender_waits_for_transfer"] else 0.0
        return max(t, max(sent[m], posted[m]) + transfer)

    def leave(p: int, c: int, t: float) -> float | None:
        rule, here = cost["collective_rule"][c], arrived.get(c, {})
        if rule == FROM_ROOT:
            if p == root[c]:
                return t
            if root[c] not in here:
                return None
            return max(t, here[root[c]] + cost["collective_cost"][c])
        if rule in (TO_ROOT, TO_ROOT_PAID) and p != root[c]:
            return t + (cost["member_cost"][c] if rule == TO_ROOT_PAID else 0.0)
        if len(here) < program.collectives.members[c]:
            return None
        if rule == TO_ROOT_PAID:
            own = {q: cost["collective_cost" if q == p else "member_cost"][c] for q in here}
            return max(t, *(here[q] + own[q] for q in here))
        if rule == LAST_DECIDES:
            _, last = max((time, q) for q, time in here.items())
            return max(t, here[last] + brought[c, last])
        return max(t, max(here.values()) + cost["collective_cost"][c])

    def attempt(p: int) -> float | None:
        """Time after the next operation of p, or None while it has to wait."""
        i, t = at[p], clock[p]
        op, x = Op(kinds[i]), targets[i]
        if not started[p]:
            t += float(program.burst[i]) * cpu
            entered[p] = t
            if op in (Op.SEND, Op.ISEND):
                t += cost["send_overhead"][x]
                sent[x] = t
            if op in (Op.RECEIVE, Op.WAIT_RECEIVE):
                t += cost["receive_before"][x]
            if op in (Op.RECEIVE, Op.POST):
                posted[x] = t
            if op in (Op.ARRIVE, Op.WAIT_COLLECTIVE):
                t += cost["request_cost"][x]
            if op in (Op.COLLECTIVE, Op.ARRIVE):
                arrived.setdefault(x, {})[p] = t
                brought[x, p] = brings.get(i, 0.0)
            clock[p], started[p] = t, True
        if op in (Op.RECEIVE, Op.WAIT_RECEIVE):
            there = arrival(x)
            return None if there is None else max(t, there) + cost["receive_after"][x]
        if op == Op.SEND and cost["rendezvous"][x] == WAITS:
            return sender_end(x, t)
        ends = op == Op.WAIT_SEND and cost["sender_waits_for_transfer"]
        if ends and cost["rendezvous"][x] == WAITS:
            return sender_end(x, t)
        if op in (Op.COLLECTIVE, Op.WAIT_COLLECTIVE):
            return leave(p, x, t)
        return t

    moved = True
    while moved:
        moved = False
        for p in range(program.processes):
            while at[p] < end[p]:
                after = attempt(p)
                if after is None:
                    break
                spent[at[p]] = after - entered[p]
                clock[p], at[p], started[p], moved = after, at[p] + 1, False, True
    for p in range(program.processes):
        if at[p] == end[p]:
            clock[p] += float(program.tail[p]) * cpu
    return clock, at, spent
