"""A run that is small enough to be carried out, and like one that is too large.

What a process computes in a step and what it sends there stay as they are. There is less of what
only comes again: iterations of loops in loops, blocks of pipelines, and where that is not enough,
processes: lines and planes of the grid. What a replay changes of the closed form there it changes
of the large run alike (`popmodel.model.run.delays.Correction`). The nearest one that is small
enough is taken, so that runs on both sides of that border differ by one process or block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from popmodel.base.errors import UsageError
from popmodel.base.expressions import parse
from popmodel.base.values import NamedTuple
from popmodel.model.kinds.item import Item
from popmodel.model.kinds.loops import LEAST_STEPS
from popmodel.model.run.context import ModelPoint, formula_value
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.run.process_placement import Placement
from popmodel.model.signature.application import Signature, derived, items
from popmodel.model.tree import ItemTree, TreeNode
from popmodel.model.uncertainty import nominal

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
