"""Constants of signatures from the computation in time-independent traces of SMPI.

What a trace computes before its messages is assigned to the phases of the program by the order of
its messages, and divided by the amount of work that the signature says. No time of a message and no
runtime is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from oracle import smpi
from scipy import stats

from popmodel.machines.quantity import Quantity
from popmodel.model.signature.application import Signature

Array = NDArray[np.float64]


class Constants(NamedTuple):
    """What a signature needs to know: parameters, and spreads of the work of the processes."""

    params: Mapping[str, Quantity]
    imbalance: Mapping[str, Quantity]

    def into(self, signature: Signature) -> Signature:
        """Return the signature with these instead of its own."""
        assert set(self.params) == set(signature.params)
        return replace(signature, params=self.params, imbalance=self.imbalance)


class Call(NamedTuple):
    """An action of a process, and what it computes before."""

    seconds: float
    action: str


def calls(path: Path) -> list[list[Call]]:
    """Return what every process does."""
    found: dict[int, list[Call]] = {}
    pending: dict[int, float] = {}
    for rank, action, *words in smpi.lines_of(path):
        if action == "compute":
            pending[int(rank)] = pending.get(int(rank), 0.0) + float(words[0]) / smpi.FLOPS
        else:
            found.setdefault(int(rank), []).append(Call(pending.pop(int(rank), 0.0), action))
    return [found[rank] for rank in sorted(found)]


# -- the programs


def jacobi(path: Path, points: int, steps: int) -> Constants:
    """Constants of ``jacobi2d`` from a run of ``points`` x ``points`` on a square of processes."""
    ranks = calls(path)
    own = points / len(ranks) ** 0.5  # along a side
    phases, turns = [], []
    for rank in ranks:
        begin = [call.action for call in rank].index("barrier")
        ends = [index for index, call in enumerate(rank) if call.action == "allreduce"]
        inside = [
            [call.seconds for call in rank[first + 1 : last + 1]]
            for first, last in zip([begin, *ends[:-1]], ends, strict=True)
        ]
        assert len(inside) == steps
        phases.append(
            {
                "start": rank[begin].seconds / own**2,
                "column": sum(sum(step[:-1]) for step in inside) / (steps * 2 * own),
                "point": sum(step[-1] for step in inside) / (steps * own**2),
            }
        )
        turns.append([[sum(step)] for step in inside])
    return _constants({"N": points, "steps": steps}, phases, turns)


def conjugate_gradients(path: Path, rows: int, nonzeros: int, outer: int, inner: int) -> Constants:
    """Constants of ``nas_cg`` from a run on a square of processes."""
    ranks = calls(path)
    part, products = rows / len(ranks) ** 0.5, (1 + outer) * (1 + inner)
    # an outer iteration: first rho, as often as inner and once more a product, which is summed in
    # its row, transposed, multiplied, and the end of an update
    length = 1 + 4 * (inner + 1)
    phases, turns = [], []
    for rank in ranks:
        exchange = _grouped(rank, 3).sum(axis=1)
        first, *others = exchange.reshape(1 + outer, length)[:, 0]
        product, swap, dot, update = (
            exchange.reshape(1 + outer, length)[:, 1:].reshape(products, 4).T
        )
        start = first + sum(call.seconds for call in rank if call.action in COLLECTIVES)
        phases.append(
            {
                "start": start / (nonzeros / len(ranks)),
                "nonzero": product.sum() / (products * nonzeros / len(ranks)),
                "swap": swap.sum() / (products * part),
                "dot": dot.sum() / (products * part),
                "update": (update.sum() + sum(others)) / ((1 + outer) * inner * part),
            }
        )
        turns.append((product + swap + dot + update)[:, None])
    known = {"rows": rows, "nonzeros": nonzeros, "outer": outer, "inner": inner}
    return _constants(known, phases, turns)


FINEST, COARSE = 8, 3  # levels of NAS MG class A; at the coarse ones clearing buffers is everything
BEGIN = (("zero", FINEST), ("resid", FINEST))
CYCLE = (
    *(("rprj", level) for level in range(FINEST - 1, 0, -1)),
    ("psinv", 1),
    *((name, level) for level in range(2, FINEST + 1) for name in ("interp", "psinv")),
    ("resid", FINEST),
)
# where a cycle goes to another level: after each restriction, the coarsest level, each prolongation
# with its smoothing
LEVELS = [*range(1, FINEST), *range(FINEST, len(CYCLE), 2)]


def multigrid(path: Path, points: int, cycles: int) -> Constants:
    """Constants of ``nas_mg`` from a run on four processes, 1 x 2 x 2."""
    order = [*BEGIN, *CYCLE, *BEGIN, *CYCLE * cycles]
    names, levels = np.array([name for name, _ in order]), np.array([level for _, level in order])
    size, surface = points**3 / 4 / 8.0 ** (FINEST - levels), 2.5 / 4.0 ** (FINEST - levels)
    phases, turns = [], []
    for rank in calls(path):
        exchange = _grouped(rank, 18)
        assert len(exchange) == len(order)
        clear = exchange[levels <= COARSE].sum(axis=1).mean()
        # the first of the six buffers is cleared before the first call
        before = exchange[:, 0] - clear / 6
        found = {
            name: before[names == name].sum() / size[names == name].sum()
            for name in ("zero", "resid", "psinv", "rprj", "interp")
        }
        # the prolongation is followed by a residual before the next message
        found["interp"] -= found["resid"]
        found["clear"] = clear / (12 * (points + 2) ** 2)
        packing = exchange[:, 1:].sum() - len(order) * clear * 5 / 6
        found["pack"] = packing / (points**2 * surface).sum()
        for name, actions, times in (("start", ("barrier", "bcast"), 2), ("norm", SUMS, 4)):
            seconds = sum(call.seconds for call in rank if call.action in actions)
            found[name] = seconds / (times * size[0])
        phases.append(found)
        whole = exchange.sum(axis=1)
        later = [len(order) - len(CYCLE) * (cycles - cycle) for cycle in range(cycles)]
        turns.append(
            [
                [sum(part) for part in np.split(whole[first : first + len(CYCLE)], LEVELS)]
                for first in (len(BEGIN), *later)
            ]
        )
    return _constants({"N": points, "cycles": cycles}, phases, turns)


SUMS = ("allreduce", "reduce")
COLLECTIVES = ("barrier", "bcast", *SUMS)


def _grouped(rank: Sequence[Call], size: int) -> Array:
    """Return what is computed before the calls of point-to-point messages, in groups."""
    messages = [call for call in rank if call.action in ("irecv", "send", "wait")]
    assert all(call.action == "irecv" for call in messages[::size])
    return np.array([call.seconds for call in messages]).reshape(-1, size)


# -- what is known of them


def _constants(
    known: Mapping[str, float],
    phases: Sequence[Mapping[str, float]],
    turns: Sequence[Sequence[float] | Array],
) -> Constants:
    """Means of what is found in every process, and the spread of turns."""
    found = {name: _mean(np.array([phase[name] for phase in phases])) for name in phases[0]}
    return Constants(
        {name: Quantity(float(value)) for name, value in known.items()} | found,
        spreads(np.array(turns)),
    )


def spreads(turns: Array) -> dict[str, Quantity]:
    """Split the spread of times (processes, repeats, kinds) in a lasting and a passing part.

    An analysis of variance: what a process has more than the others all the time is lasting, what
    is left is passing. Turns of several kinds count as their times do.
    """
    processes, repeats, _ = turns.shape
    weight = turns.mean(axis=(0, 1)) / turns.mean(axis=(0, 1)).sum()
    relative = turns / turns.mean(axis=0) - 1
    lasting = (relative * weight).sum(axis=2).mean(axis=1)
    left = relative - lasting[:, None, None]
    freedom = (processes - 1) * (repeats - 1)
    variance = (left**2).sum(axis=(0, 1)) / freedom
    # the mean of all turns keeps a part of what passes
    kept = (weight**2 * variance).sum() / repeats
    return {
        "persistent_cv": _deviation(max(lasting.var(ddof=1) - kept, 0.0) ** 0.5, processes - 1),
        "transient_cv": _deviation((weight * variance**0.5).sum(), freedom),
    }


def _mean(sample: Array) -> Quantity:
    """Mean of what processes need, with its 90 % interval."""
    mean = sample.mean()
    width = stats.t.ppf(0.95, sample.size - 1) * sample.std(ddof=1) / sample.size**0.5
    return Quantity(
        float(mean), float(max(mean - width, 0.0)), float(mean + width), "trace", sample.size
    )


def _deviation(value: float, freedom: int) -> Quantity:
    """Standard deviation of a sample with so many degrees of freedom, with its 90 % interval."""
    low, high = (value * (freedom / stats.chi2.ppf(part, freedom)) ** 0.5 for part in (0.95, 0.05))
    return Quantity(float(value), float(low), float(high), "trace", freedom + 1)
