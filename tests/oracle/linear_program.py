"""A run as a linear program: the least time at which all can have ended.

One variable for every moment that waits for another, one row for everything it waits for. Latency
and 1/bandwidth are variables too, held at their values; what the solver pays for holding them is
the derivative of the runtime (as T. Hoefler's group does in LLAMP, SC'24). Nothing here knows in
which order things happen. Solved by HiGHS.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from oracle import affine, algorithms
from oracle.derivatives import Derivatives
from oracle.replay import WAITS
from popmodel.network.network import Network
from popmodel.simulator.program import Op, Program

_LATENCY, _GAP, _END, _START = range(4)
_BYTES = 2.0**20  # of which the gap is the time, so that numbers are of one size


class Moment(NamedTuple):
    """A variable and what is added to it: ns, latencies, bytes."""

    variable: int
    time: float = 0.0
    latency: float = 0.0
    bytes: float = 0.0

    def later(self, time: float, latency: float = 0.0, size: float = 0.0) -> Moment:
        return Moment(self.variable, self.time + time, self.latency + latency, self.bytes + size)


class _Rows:
    """``variable >= moment`` for each row."""

    def __init__(self) -> None:
        self.variables = 4
        self.entries: list[tuple[int, Moment]] = []

    def after(self, *moments: Moment) -> Moment:
        """A new variable that is not before any of some moments."""
        self.variables += 1
        for moment in moments:
            self.entries.append((self.variables - 1, moment))
        return Moment(self.variables - 1)

    def solve(self, latency: float, gap: float) -> Derivatives:
        rows, columns, values = [], [], []
        bound = np.empty(len(self.entries))
        for row, (variable, moment) in enumerate(self.entries):
            for column, value in (
                (variable, -1.0),
                (moment.variable, 1.0),
                (_LATENCY, moment.latency),
                (_GAP, moment.bytes / _BYTES),
            ):
                rows.append(row)
                columns.append(column)
                values.append(value)
            bound[row] = -moment.time
        shape = (len(self.entries), self.variables)
        held = {_LATENCY: latency, _GAP: gap * _BYTES, _START: 0.0}
        found = linprog(
            np.eye(1, self.variables, _END)[0],
            A_ub=csr_array((values, (rows, columns)), shape=shape),
            b_ub=bound,
            bounds=[(held[k], held[k]) if k in held else (0, None) for k in range(self.variables)],
            method="highs-ds",
        )
        assert found.status == 0, found.message
        paid = found.lower.marginals + found.upper.marginals
        return Derivatives(found.fun / 1e9, float(paid[_LATENCY]), float(paid[_GAP] * _BYTES))


def runtime(program: Program, network: Network) -> Derivatives:
    """Runtime on a network without tiers, and derivatives by latency (1) and 1/bandwidth (B)."""
    if network.collectives == "algorithm":
        program, network = algorithms.carry_out(program), network.with_(collectives="rooted")
    rows = _Rows()
    _add(rows, program, network)
    return rows.solve(network.latency * 1e9, 1e9 / network.bandwidth)


def _add(rows: _Rows, program: Program, network: Network) -> None:
    charges = affine.costs(program, network)

    def plus(moment: Moment, name: str, row: int) -> Moment:
        return moment.later(0.0, *getattr(charges, name)[row])

    sent: dict[int, Moment] = {}
    posted: dict[int, Moment] = {}
    entered: dict[int, Moment] = {}
    waiting: list[tuple[str, int, int, int]] = []  # what a variable still has to wait for
    arrived: dict[int, dict[int, Moment]] = {}
    cpu = 1 / network.cpu_factor
    for p in range(program.processes):
        now = Moment(_START)
        for i in range(program.offsets[p], program.offsets[p + 1]):
            op, x = Op(program.kind[i]), int(program.target[i])
            now = now.later(float(program.burst[i]) * cpu)
            if op in (Op.SEND, Op.ISEND):
                sent[x] = now = plus(now, "send_overhead", x)
            if op in (Op.RECEIVE, Op.WAIT_RECEIVE):
                now = plus(now, "receive_before", x)
            if op in (Op.RECEIVE, Op.POST):
                posted[x] = now
            if op in (Op.ARRIVE, Op.WAIT_COLLECTIVE):
                now = plus(now, "request_cost", x)
            if op in (Op.COLLECTIVE, Op.ARRIVE):
                arrived.setdefault(x, {})[p] = now
            waits = op in (Op.SEND, Op.WAIT_SEND) and charges.rendezvous[x] == WAITS
            if op in (Op.RECEIVE, Op.WAIT_RECEIVE):
                now = rows.after(now)
                waiting.append(("arrival", now.variable, x, p))
            elif waits and (op == Op.SEND or charges.sender_waits_for_transfer):
                now = rows.after(now)
                waiting.append(("taken", now.variable, x, p))
            elif op in (Op.COLLECTIVE, Op.WAIT_COLLECTIVE):
                before, now = now, rows.after(now)
                waiting.append(("collective", now.variable, x, p))
                entered[now.variable] = before
        rows.entries.append((_END, now.later(float(program.tail[p]) * cpu)))
    done: dict[int, Moment] = {}
    for what, variable, x, p in waiting:
        if what == "collective":
            for moment in _leaving(
                rows, program, charges, plus, x, p, arrived[x], entered[variable], done
            ):
                rows.entries.append((variable, moment))
            continue
        taken = what == "taken" and not charges.sender_waits_for_transfer
        sides = [sent[x], posted[x]] if charges.rendezvous[x] else [sent[x]]
        for side in sides:
            rows.entries.append((variable, side if taken else plus(side, "transfer", x)))


def _leaving(rows, program, charges, plus, c, p, here, now, done) -> list[Moment]:
    """What process p waits for in collective c."""
    rule, root = charges.collective_rule[c], program.collectives.root[c]
    if rule == affine.FROM_ROOT:
        return [] if p == root else [plus(here[root], "collective_cost", c)]
    if rule == affine.TO_ROOT and p != root:
        return []
    if rule == affine.TO_ROOT_PAID:
        if p != root:
            return [plus(now, "member_cost", c)]
        return [
            plus(moment, "collective_cost" if q == root else "member_cost", c)
            for q, moment in here.items()
        ]
    if c not in done:
        done[c] = plus(rows.after(*here.values()), "collective_cost", c)
    return [done[c]]
