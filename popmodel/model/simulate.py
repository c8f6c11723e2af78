"""A prediction carried out: the program of a signature replayed with and without its network.

The closed form has all processes wait for the slowest in every step. Where they wait for their
neighbours only, where sends wait for late receivers, or blocks of a pipeline differ, the replay
knows better: it follows the longest path through all operations. Long loops are carried out in
part; what is left takes as long per step as the second half of what was carried out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from popmodel.base.values import NamedTuple
from popmodel.model.kinds.loops import LEAST_STEPS
from popmodel.model.run.delays import AVERAGED, RunCourse, closed_form, computation
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.script import Place, Script, ScriptPart
from popmodel.model.tree import ItemTree
from popmodel.model.uncertainty import nominal
from popmodel.model.unroll import Array, UnrollOutline, carry_out, outline
from popmodel.simulator.costs import Charges
from popmodel.simulator.program import Program
from popmodel.simulator.replayer import ends

MOST_OPERATIONS = 400_000
"""Operations of all processes that replays carry out at most: some tenths of a second."""
MOST_REPEATS = 8
"""Random programs at most: the mean of their runtimes is within a part in a thousand or so."""


class Simulation(NamedTuple):
    """What a replay found."""

    course: RunCourse  # Of the whole run; numbers
    part: float  # Part of the iterations that were carried out, 0 to 1
    repeats: int  # Random programs of which the course is the mean
    operations: int  # MPI operations that were carried out in all of them, over all processes
    computation: float  # Computation of an average process over that of the closed form


def simulate(tree: ItemTree, spread: Mapping[str, Any], seed: int) -> Simulation:
    """Replay a program on the machine's network and on one that costs nothing."""
    script = Script.of(tree, spread)
    total = script.operations({})
    if not total:
        raise NotUnrolled("no messages between processes")
    counts = _shortened(script, MOST_OPERATIONS / total) if total > MOST_OPERATIONS else {}
    done = script.operations(counts)
    repeats = max(1, min(MOST_REPEATS, int(MOST_OPERATIONS / done)))
    if not any(nominal(value) for value in tree.spread(spread).values()):
        repeats = 1  # nothing is random
    long = outline(script, counts)
    missing = [
        (outline(script, counts | {loop.place: half}), (loop.count - counts[loop.place]) / half)
        for loop in script.loops()
        if loop.place in counts
        for half in [counts[loop.place] // 2]
    ]
    found = [
        _course(long, missing, tree, spread, seed * MOST_REPEATS + repeat)
        for repeat in range(repeats)
    ]
    times = zip(*(course for course, _ in found), strict=True)
    mean = RunCourse(*(float(np.mean(values)) for values in times))
    factor = float(np.mean([computed for _, computed in found]))
    return Simulation(mean, done / total, repeats, round(done) * repeats, factor)


def _course(
    long: UnrollOutline,
    missing: Sequence[tuple[UnrollOutline, float]],
    tree: ItemTree,
    spread: Mapping[str, Any],
    seed: int,
) -> tuple[RunCourse, float]:
    """Course of one random program, and its computation over that of the closed form.

    Of every loop that is carried out in part, the program with half of that part is known, and how
    often the other half is missing. Chance makes the slowest of some steps slower or faster than it
    is on average, and as much of the ideal runtime as the processes wait for the slowest: where
    all of them do in every step, the average is known, and that part of chance is taken out. Of
    work that is known value by value chance decides little: all values come up.
    """
    shown = _carried(long, spread, seed)
    found = shown.copy()
    for half, times in missing:
        found += times * (shown - _carried(half, spread, seed))
    ideal, runtime, slowest = found[:3].tolist()
    work, processes = tree.total, long.program.processes
    computed, saved = found[3:].reshape(2, -1)
    factor, evened = _left_to_others(computed, saved)
    found_spread = tree.spread(spread)
    closed = closed_form(work, processes, found_spread, has_mpi=True).nominal()
    average, waiting = factor * nominal(computation(work)), nominal(work.waiting)
    overhead = nominal(work.overhead)
    longest = slowest - average + waiting
    if longest > 0 and AVERAGED not in found_spread:
        waits = min(max(ideal - average - overhead, 0.0) / longest, 1.0)
        chance = slowest - (closed.ideal - overhead - waiting)
        ideal, runtime = ideal - waits * chance, runtime - waits * chance
    unequal = closed.computing - nominal(computation(work))
    computing = average + max(unequal - evened, 0.0)
    # estimates from a part of the steps may cross by a little
    ideal = max(ideal, computing + overhead)
    return RunCourse(computing, ideal, max(runtime, ideal)), factor


def _left_to_others(computed: Array, saved: Array) -> tuple[float, float]:
    """Say what processes gain by memory that others of their domain have left to them."""
    if not saved.any():
        return 1.0, 0.0
    without = computed + saved
    evened = (without.max() - without.mean()) - (computed.max() - computed.mean())
    return float(computed.mean() / without.mean()), float(evened)


def _carried(outline: UnrollOutline, spread: Mapping[str, Any], seed: int) -> Array:
    """Runtime without and with the costs of the network, and the slowest of all steps, s.

    Behind them what every process computes, and what it saves by memory left to it.
    """
    carried = carry_out(outline, spread, seed)
    both = _both(carried.program, outline.charges)
    return np.concatenate([[*both, carried.slowest], carried.computed, carried.saved])


def _both(program: Program, charges: Charges) -> tuple[float, float]:
    """Runtime without and with the costs of the network, s."""
    nothing = {
        name: np.zeros_like(getattr(charges, name))
        for name in ("transfer", "send_overhead", "collective_cost", "member_cost")
    }
    ideal, run = (float(ends(program, one).max()) for one in (replace(charges, **nothing), charges))
    return ideal, run


def _shortened(script: Script, part: float) -> dict[Place, int]:
    """Iterations of the outermost loops that can be carried out in part."""
    counts: dict[Place, int] = {}
    for loop in script.loops():
        if any(loop.place[: len(place)] == place for place in counts):
            continue
        period = 2 * _period(loop.inside)  # both halves see the same
        wanted = max(math.floor(part * loop.count), LEAST_STEPS)
        wanted = max(wanted // period, 1) * period
        if wanted < loop.count:
            counts[loop.place] = wanted
    return counts


def _period(body: Sequence[ScriptPart]) -> int:
    """After how many iterations everything that happens in some of them only comes again."""
    numbers = (part.every for part in body)
    return math.lcm(*(round(every) for every in numbers if every >= 1 and every == round(every)))
