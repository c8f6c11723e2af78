"""A prediction carried out: the program of a signature replayed with and without its network.

The closed form has all processes wait for the slowest in every step. Where they wait for their
neighbours only, where sends wait for late receivers, or blocks of a pipeline differ, the replay
knows better (model of S. Boehm and C. Engelmann, and of LogGOPSim: a longest path through all
operations). Long loops are carried out in part; what is left takes as long per step as the second
half of what was carried out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from popmodel.model.course import Course, computation
from popmodel.model.exchange import NotUnrolled, number, repetitions
from popmodel.model.performance import Model
from popmodel.model.program import Item, Loop
from popmodel.model.unroll import (
    Script,
    Unrolled,
    script,
    transient_scores,
    unroll,
)
from popmodel.model.work import Work
from popmodel.replay.engine import ends

MOST_OPERATIONS = 400_000
"""Operations of all processes that one replay carries out at most: some tenths of a second."""
LEAST_STEPS = 20
"""Iterations of a loop that say at least how long the others take."""
_TOO_MANY = 5  # times as many as wanted are more than anybody waits for


@dataclass(frozen=True)
class Simulation:
    """What a replay found.

    Attributes
    ----------
    course : Course
        Of the whole run; numbers.
    part : float
        Part of the iterations that were carried out, 0 to 1.
    operations : int
        MPI operations that were carried out, over all processes.
    """

    course: Course
    part: float
    operations: int


def simulate(model: Model, work: Work, spread: Mapping[str, Any], seed: int) -> Simulation:
    """Replay a program on the machine's network and on one that costs nothing.

    Parameters
    ----------
    model : Model
        With numbers for its values, not draws.
    work : Work
        What an average process does in the whole program.
    spread : mapping of str to value
        ``persistent_cv`` and ``transient_cv``; those missing are 0.
    seed : int
        Decides which processes are slow, and when.

    Raises
    ------
    NotUnrolled
        If the program cannot be carried out, or is too large.
    """
    items = script(model)
    total = _operations(items, model.signature.program, {})
    if not total:
        raise NotUnrolled("no process has another to send to")
    counts = _shortened(items, MOST_OPERATIONS / total) if total > MOST_OPERATIONS else {}
    done = _operations(items, model.signature.program, counts)
    if done > _TOO_MANY * MOST_OPERATIONS:
        raise NotUnrolled(
            f"{model.placement.processes} processes carry out {done:.1g} operations in "
            f"{LEAST_STEPS} steps"
        )
    long = unroll(items, spread, seed, counts)
    ideal, runtime = _both(long)
    if counts:
        halves = {loop: count // 2 for loop, count in counts.items()}
        short = unroll(items, spread, seed, halves)
        before = _operations(items, model.signature.program, halves)
        rest = (total - done) / (done - before)
        ideal, runtime = (
            whole + rest * (whole - half)
            for whole, half in zip((ideal, runtime), _both(short), strict=True)
        )
    computing = _slowest(long, number(computation(work)), spread, seed)
    # estimates from a part of the steps may cross by a little
    ideal = max(ideal, computing + number(work.overhead))
    course = Course(computing, ideal, max(runtime, ideal))
    return Simulation(course, done / total, long.program.operations)


def _both(one: Unrolled) -> tuple[float, float]:
    """Runtime without and with the costs of the network, s."""
    nothing = {
        name: np.zeros_like(getattr(one.charges, name))
        for name in ("transfer", "send_overhead", "collective_cost", "member_cost")
    }
    free = replace(one.charges, **nothing)
    ideal, run = (float(ends(one.program, cost).max()) for cost in (free, one.charges))
    return ideal, run


def _operations(items: Script, body: Sequence[Item], counts: Mapping[int, int]) -> float:
    """Operations of all processes in a body, where some loops have another count."""
    total = 0.0
    for item in body:
        if isinstance(item, Loop) and id(item) not in items.computed:
            once = _operations(items, item.body, counts)
            once *= counts.get(id(item), repetitions(items.model, item.count, item.name))
        else:
            meeting = items.exchanged.get(id(item))
            once = 0 if meeting is None else meeting.program.operations
        total += once / number(items.model.value(item.every))
    return total


def _shortened(items: Script, part: float) -> dict[int, int]:
    """Iterations of the outermost loops that can be carried out in part, by ``id``."""
    counts: dict[int, int] = {}

    def visit(body: Sequence[Item]) -> None:
        for item in body:
            if not isinstance(item, Loop) or id(item) in items.computed:
                continue
            count = repetitions(items.model, item.count, item.name)
            period = 2 * _period(items.model, item.body)  # both halves see the same
            wanted = max(math.floor(part * count), LEAST_STEPS)
            wanted = max(wanted // period, 1) * period
            if wanted < count:
                counts[id(item)] = wanted
            else:
                visit(item.body)

    visit(items.model.signature.program)
    return counts


def _period(model: Model, body: Sequence[Item]) -> int:
    """After how many iterations everything that happens in some of them only comes again."""
    numbers = (number(model.value(item.every)) for item in body)
    return math.lcm(*(round(every) for every in numbers if every >= 1 and every == round(every)))


def _slowest(long: Unrolled, work: float, spread: Mapping[str, Any], seed: int) -> float:
    """Computation of the process that has the most of it in the whole run, s."""
    rest = work - long.work
    if rest <= 1e-9 * work:
        return float(long.computing.max())
    processes = long.computing.size
    steps = long.steps * rest / long.work
    transient = number(spread.get("transient_cv", 0.0)) / math.sqrt(steps)
    scores = transient_scores(processes, np.random.default_rng([seed, processes, 1]))
    computing = long.computing + rest * (1 + long.lasting + transient * scores)
    return float(computing.max())
