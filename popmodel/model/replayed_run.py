"""A prediction carried out: the program of a signature replayed with and without its network.

The closed form has all processes wait for the slowest in every step. Where they wait for their
neighbours only, where sends wait for late receivers, or blocks of a pipeline differ, the replay
knows better: it follows the longest path through all operations. Long loops are carried out in
part; what is left takes as long per step as the second half of what was carried out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import UsageError
from popmodel.base.expressions import parse
from popmodel.base.values import NamedTuple, dataclass, fields_of
from popmodel.efficiency.observables import Observables
from popmodel.model.kinds.halo import Halo
from popmodel.model.kinds.item import Item
from popmodel.model.kinds.loops import LEAST_STEPS
from popmodel.model.run.context import ModelPoint, formula_value
from popmodel.model.run.operations import NotUnrolled, OperationsBuilder
from popmodel.model.run.process_placement import Placement
from popmodel.model.run.work import AVERAGED, Correction, RunCourse, closed_form, computation
from popmodel.model.script import Compute, Place, Script, ScriptPart
from popmodel.model.signature.application import Signature, derived, items
from popmodel.model.tree import ItemTree, TreeNode
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
    ideal, run = ends(program, [replace(charges, **nothing), charges]).max(axis=1).tolist()
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


# A replay beside the closed form of the same run.
#
# The closed form assumes that in every step all processes wait for the slowest. The replay follows
# the messages one by one. Predictions show the replay wherever there is one; the gap between the
# two tells how much the assumption matters.


CLOSED_FORM, REPLAY = "closed form", "replay"
"""Where the numbers of a predicted run come from."""


@dataclass(frozen=True)
class ReplayAgreement:
    """Replay and closed form of one run, both for the best estimate."""

    # Useful time of an average thread, of the closed form and of the replay, s.
    useful: float
    useful_replayed: float
    # Numbers.
    closed_form: RunCourse
    replay: RunCourse
    correction: Correction  # How the replay changes the delays of the closed form
    processes: int  # Processes that were replayed: fewer than those of the run if that is too large
    part: float  # Part of the program that was replayed, 0 to 1
    repeats: int  # Number of random programs; `replay` is their mean
    operations: int  # MPI operations replayed, over all processes
    seed: int  # Seed of the imbalance: which processes were slow, and when

    @property
    def gap(self) -> float:
        """Parallel efficiency of the replay less that of the closed form."""
        return float(
            self.useful_replayed / self.replay.runtime - self.useful / self.closed_form.runtime
        )

    def to_dict(self) -> dict[str, Any]:

        def side(course: RunCourse, useful: float) -> dict[str, Any]:
            return {
                "runtime": course.runtime,
                "ideal_runtime": course.ideal,
                "parallel_efficiency": useful / course.runtime,
            }

        return {
            "replay": side(self.replay, self.useful_replayed),
            "closed_form": side(self.closed_form, self.useful),
            "gap": self.gap,
            **fields_of(self, "processes", "part", "repeats", "operations", "seed"),
        }


# A run that is small enough to be carried out, and like one that is too large.
#
# What a process computes in a step and what it sends there stay as they are. There is less of what
# only comes again: iterations of loops in loops, blocks of pipelines, and where that is not enough,
# processes: lines and planes of the grid. What a replay changes of the closed form there it changes
# of the large run alike (`popmodel.model.run.work.Correction`). The nearest one that is small
# enough is taken, so that runs on both sides of that border differ by one process or block.


MOST_IN_STEPS = 400_000
"""Operations of all processes, in `LEAST_STEPS` iterations of each loop, that are carried out."""
MOST_AT_ONCE = 200_000
"""Operations of all processes in one communication, which are described one by one."""
FEWEST = 16
"""Processes that say at least something about many."""
_HALVINGS = 20


class Similar(NamedTuple):
    """A run that stands for another one; made by `similar`."""

    signature: Signature  # The program, with fewer repetitions
    point: ModelPoint  # Where it is evaluated, with fewer processes
    share: float  # Its part of the operations of the other run


def similar(signature: Signature, tree: ItemTree) -> Similar:
    """Return the nearest run that is small enough to be carried out; mostly the run itself."""
    processes = tree.point.placement.processes
    part = _largest_part(tree)
    program = _lighter(signature.program, tree.nodes, part, tree.point)
    if part == 1 and program == signature.program:
        return Similar(signature, tree.point, 1.0)
    each, at_once = _operations(tree, part)
    most = min(MOST_IN_STEPS / max(each, 1.0), MOST_AT_ONCE / max(at_once, 1.0), processes)
    held = next((one.name for one in items(signature.program) if one.only_at is not None), None)
    if most < processes and held is not None:
        raise NotUnrolled(
            f"too large to replay: {each * processes:,.0f} operations in {LEAST_STEPS} steps, and "
            f"the calls of {held!r} are known with so many processes only"
        )
    point = tree.point if most == processes else _fewer(signature, tree.point, math.floor(most))
    if point is not tree.point and point.placement.processes < min(FEWEST, processes):
        raise NotUnrolled(
            f"too large to replay: {each * processes:,.0f} operations in {LEAST_STEPS} steps"
        )
    whole = sum(processes * own for _, own in _each(tree.nodes, 1.0, tree.point, limited=False))
    share = point.placement.processes * sum(
        own for _, own in _each(tree.nodes, part, tree.point, limited=False)
    )
    return Similar(replace(signature, program=program), point, share / whole if whole else 1.0)


def _largest_part(tree: ItemTree) -> float:
    """Part of the repetitions with which the run of all processes is small enough; 0 to 1."""

    def fits(part: float) -> bool:
        each, at_once = _operations(tree, part)
        count = tree.point.placement.processes
        return count * each <= MOST_IN_STEPS and count * at_once <= MOST_AT_ONCE

    if fits(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _operations(tree: ItemTree, part: float) -> tuple[float, float]:
    """Operations of a process at most: in the whole of a replay, and in one communication."""
    every = list(_each(tree.nodes, part, tree.point))
    return sum(own for _, own in every), max((once for once, _ in every), default=0.0)


def _each(
    nodes: tuple[TreeNode, ...],
    part: float,
    point: ModelPoint,
    times: float = 1.0,
    *,
    limited: bool = True,
    inner: bool = False,
) -> Iterator[tuple[float, float]]:
    """Operations of a process at most, once and in all turns, of every communication.

    Limited: of an outermost loop only the iterations that are carried out at least.
    """
    for node in nodes:
        if not node.communicates:
            continue
        turns = times / nominal(node.item.every)
        if node.inside:
            count = float(node.item.lighter(part if inner else 1.0, point).repeats)
            if limited and not inner:
                count = min(count, LEAST_STEPS)
            within = turns * count
            yield from _each(node.inside, part, point, within, limited=limited, inner=True)
        else:
            once = node.item.lighter(part, point).most_operations(point)
            yield once, turns * once


def _lighter(
    program: tuple[Item, ...],
    nodes: tuple[TreeNode, ...],
    part: float,
    point: ModelPoint,
    *,
    inner: bool = False,
) -> tuple[Item, ...]:
    """Return the items of a program with a part of what they repeat; outermost loops are whole."""
    found = []
    for item, node in zip(program, nodes, strict=True):
        changed = _written(item, node.item, part if inner or not node.inside else 1.0, point)
        if node.inside:
            body = _lighter(item.inside, node.inside, part, point, inner=True)
            changed = changed.around(body)
        found.append(changed)
    return tuple(found)


def _written(item: Item, numbers: Item, part: float, point: ModelPoint) -> Item:
    """Return an item with formulas, and with the numbers of its lighter form where these differ."""
    lighter = numbers.lighter(part, point)
    changed: dict[str, Any] = {
        field.name: parse(repr(float(getattr(lighter, field.name))))
        for field in fields(numbers)
        if getattr(lighter, field.name) is not getattr(numbers, field.name)
    }
    return replace(item, **changed) if changed else item


def _fewer(signature: Signature, point: ModelPoint, most: int) -> ModelPoint:
    """Return the point with no more than some processes, and everything else as it is there."""
    extent = _fewer_lines(point.extent, point.placement.per_node, most)
    processes = math.prod(extent) if extent else _fewer_ranks(point.placement, most)
    per_node = min(point.placement.per_node, processes)
    placement = replace(
        point.placement,
        processes=processes,
        per_node=per_node,
        nodes=math.ceil(processes / per_node),
    )
    params = {name: point.values[name] for name in signature.inputs}
    given = {"P": float(processes), "T": point.team, **params}
    try:
        ranked = derived(
            signature,
            given,
            lambda formula, values, what: formula_value(formula, values, what),
            lambda *_: [float(size) for size in extent],
        )
    except UsageError as error:
        raise NotUnrolled(f"too large to replay, and with fewer processes {error}") from None
    return replace(point, placement=placement, extent=extent, ranked=ranked)


def _fewer_lines(extent: tuple[int, ...], per_node: int, most: int) -> tuple[int, ...]:
    """Return a smaller grid of about the same form.

    Along the last dimension, along which ranks are neighbours, nodes keep their place in a line.
    """
    now = list(extent)
    steps = [1] * len(now)
    if now:
        steps[-1] = math.gcd(now[-1], per_node)
    while math.prod(now) > most:
        longer = [dim for dim in range(len(now)) if now[dim] > steps[dim]]
        if longer:
            dim = max(longer, key=lambda dim: now[dim] / extent[dim])
            now[dim] -= steps[dim]
        elif max(steps) > 1:
            steps = [1] * len(now)
        else:
            break
    for dim in range(len(now) - 1):  # what the last dimension leaves of the processes
        while now[dim] < extent[dim] and math.prod(now) // now[dim] * (now[dim] + 1) <= most:
            now[dim] += 1
    return tuple(now)


def _fewer_ranks(placement: Placement, most: int) -> int:
    """Return a smaller number of ranks: full nodes, and a power of two of one.

    Partners are often 2**k ranks apart.
    """
    if placement.processes & (placement.processes - 1) == 0:
        return 1 << max(most.bit_length() - 1, 0)
    return max(most // placement.per_node * placement.per_node, min(most, placement.per_node))


# A signature as the whole program of a run, every step carried out, to be replayed anywhere.
#
# Predictions carry out a part of long loops and charge messages as the machine profile says. Here
# nothing is left out, and what messages cost is up to the network of a replay; computation is that
# of the prediction.


MOST_WHOLE = 20_000_000
"""Operations of all processes: some gigabytes."""
_NS = 1e9
_LAST = (-1,)  # place of what ends a program


class Whole(NamedTuple):
    """A run of a signature; made by `carried_out_whole`."""

    program: Program  # What every process does
    placement: Placement  # Where
    observed: Observables  # Its computation by thread, in a run whose MPI takes no time


def carried_out_whole(
    signature: Signature, tree: ItemTree, spread: Mapping[str, Any], seed: int
) -> Whole:
    """Carry out every step of a program."""
    placement = tree.point.placement
    try:
        script = Script.of(tree, spread)
        total = script.operations({})
        if total > MOST_WHOLE:
            raise NotUnrolled(
                f"{total:,.0f} operations of all processes, more than the {MOST_WHOLE:,} that "
                "are carried out as a whole"
            )
        carried = carry_out(outline(_with_end(script), {}), spread, seed)
    except NotUnrolled as error:
        raise UsageError(
            f"{signature.name} at {tree.point} cannot be replayed as a whole: {error}",
            "popmodel predict replays a part of it; or set fewer steps",
        ) from None
    made = replace(carried.program, notes=tuple(_notes(tree)), unmodelled=signature.not_modelled)
    return Whole(made, placement, _observed(made, carried.computed, tree, placement))


def _with_end(script: Script) -> Script:
    """Return the script with a last communication of nobody: there may be no other."""
    nothing = OperationsBuilder(script.point.messages).build()
    end = ScriptPart(_LAST, 1.0, Compute(), nothing)
    return replace(script, parts=(*script.parts, end))


def _notes(tree: ItemTree) -> list[str]:
    """Say what of a prediction a replay on another network does not have."""
    names = dict.fromkeys(
        item.name for item, _ in tree.leaves() if isinstance(item, Halo) and nominal(item.overlap)
    )
    return [
        f"the transfers of {name!r} that predictions hide behind computation are not hidden here"
        for name in names
    ]


def _observed(
    program: Program, working: NDArray[np.float64], tree: ItemTree, placement: Placement
) -> Observables:
    """Divide the computation of each process among its threads, as the average process does."""
    work, threads = tree.total, placement.threads
    computed = program.compute() / _NS
    grows, overhead = nominal(computation(work)), np.maximum(computed - working, 0.0)
    factor = working / grows if grows else np.zeros(computed.size)
    serial, share, busiest, awaiting = (
        nominal(one) * factor for one in (work.serial, work.share, work.stretched, work.awaiting)
    )
    others = (threads * share - busiest) / (threads - 1) if threads > 1 else share
    # the busiest thread is the master, as under a static schedule
    in_regions = np.concatenate(
        [busiest[:, None], np.repeat(np.maximum(others, 0.0)[:, None], threads - 1, axis=1)], axis=1
    )
    useful = in_regions.copy()
    useful[:, 0] += serial
    uneven = float((busiest - share).mean())
    synchronising = nominal(work.synchronising) + float(awaiting.mean())
    has_openmp = bool(nominal(work.parallel))
    processes = computed.size
    return Observables(
        runtime=float(computed.max()) or 1.0 / _NS,
        threads=np.full(processes, threads),
        node=program.nodes,
        useful=useful.ravel(),
        omp_useful=in_regions.ravel(),
        in_mpi=np.zeros(processes * threads),
        serial_useful=serial,
        in_openmp=busiest + overhead if has_openmp else np.zeros(processes),
        serial_mpi=np.zeros(processes),
        has_mpi=bool(program.operations),
        has_openmp=has_openmp,
        openmp_imbalance=uneven,
        openmp_synchronisation=synchronising,
        # what rounding leaves below 0 is none
        openmp_scheduling=max(float(overhead.mean()) + uneven - synchronising, 0.0),
        openmp_mpi=0.0,
    )
