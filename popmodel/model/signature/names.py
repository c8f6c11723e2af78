"""The names that formulas of a signature may use, with their values for some P and T.

`derived` is the one place where ``let`` and the names of the grid are computed: for a run, for
arrays of P and T, or as far as the parameters alone tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from popmodel.expressions import Expression
from popmodel.expressions.elementary import Value, numbers
from popmodel.model.grammar import amounts
from popmodel.model.grammar.reading import OPEN
from popmodel.model.run.grid import best_grid
from popmodel.model.run.placement import ImpossibleSplit
from popmodel.model.signature.program import EXTENTS, Signature, SignatureGrid
from popmodel.model.signature.tables import key_of
from popmodel.units import plural

Evaluate: TypeAlias = "Callable[[Expression, Mapping[str, Value], str], Value | None]"
"""A formula, the names known so far, and whose formula it is -> its value; None if it has none."""
Extents = Callable[[SignatureGrid, Sequence[Value], Mapping[str, Value]], Sequence[Value]]
"""A grid, its cells along each dimension, and the names -> processes along each dimension."""


def derived(
    signature: Signature, given: Mapping[str, Value], evaluate: Evaluate, extents: Extents | None
) -> dict[str, Value]:
    """Compute ``let``, and the names of the grid."""
    values = dict(given)

    def define(*, with_grid: bool) -> None:
        for name, expression in signature.let:
            if (name in signature.of_grid) == with_grid:
                value = evaluate(expression, values, f"{name!r} of let")
                if value is not None:
                    values[name] = value

    define(with_grid=False)
    grid = signature.grid
    if grid is None or extents is None:
        return values
    every = [evaluate(one, values, "an extent of global") for one in grid.cells or ()]
    cells = [cell for cell in every if cell is not None]
    extent = extents(grid, cells, values)
    values |= {f"P{dim}": size for dim, size in enumerate(extent)}
    values |= {f"n{dim}": cell / extent[dim] for dim, cell in enumerate(cells)}
    define(with_grid=True)
    return values


def names(
    signature: Signature, processes: int, threads: int, params: Mapping[str, Value]
) -> tuple[dict[str, Value], tuple[int, ...]]:
    """Compute let and the decomposition for a run."""
    found: tuple[int, ...] = ()

    def extents(
        grid: SignatureGrid, cells: Sequence[Value], values: Mapping[str, Value]
    ) -> Sequence[float]:
        nonlocal found
        domain = key_of("decomp", "global").domain
        for cell, expression in zip(cells, grid.cells or (), strict=True):
            what = f"{signature.name}: an extent of global"
            amounts.check(cell, domain, expression, values, what)
        typical = [float(numbers(cell)[0]) for cell in cells]
        if grid.dims is None:
            found = best_grid(processes, typical, grid.periodic)
        else:
            found = tuple(_whole(signature, one, values) for one in grid.dims)
            _check_grid(signature, found, typical, processes)
        return [float(size) for size in found]

    given = {"P": float(processes), "T": float(threads), **params}
    return derived(signature, given, _evaluate_for(signature), extents), found


def _evaluate_for(signature: Signature) -> Evaluate:
    def evaluate(expression: Expression, values: Mapping[str, Value], what: str) -> Value:
        return amounts.evaluate(expression, values, f"{signature.name}: {what}")

    return evaluate


def _check_grid(
    signature: Signature, extent: tuple[int, ...], cells: Sequence[float], processes: int
) -> None:
    shown = " x ".join(str(size) for size in extent)
    if math.prod(extent) != processes:
        raise ImpossibleSplit(
            f"{signature.name}: its grid is {shown} = {math.prod(extent)} processes, "
            f"not {processes}",
            processes=math.prod(extent),
        )
    if any(size > count for size, count in zip(extent, cells, strict=False)):
        raise ImpossibleSplit(
            f"{signature.name}: its grid of {shown} processes has more processes than cells: "
            f"{' x '.join(f'{count:g}' for count in cells)}"
        )


def _whole(signature: Signature, expression: Expression, values: Mapping[str, Value]) -> int:
    found = amounts.evaluate(expression, values, f"{signature.name}: an extent of grid")
    value = float(numbers(found)[0])
    if value != round(value) or value < 1:
        raise ImpossibleSplit(
            f"{signature.name}: a grid extent is {expression.text!r} = {value:g}, "
            "which is not a number of processes"
        )
    return int(value)


def check_requirements(
    signature: Signature, processes: int, threads: int, params: Mapping[str, float]
) -> None:
    """Refuse a number of processes that the application cannot run with."""

    def require(condition: Expression, values: Mapping[str, Value]) -> None:
        if not amounts.evaluate(condition, values, f"{signature.name}: a condition of require"):
            split = plural(processes, "process", "processes")
            if "T" in condition.names:
                split += f" of {plural(threads, 'thread')}"
            raise ImpossibleSplit(
                f"{signature.name} cannot run with {split}: it requires {condition.text}"
            )

    if threads > 1 and signature.learnt is not None and not signature.learnt.openmp:
        raise ImpossibleSplit(
            f"{signature.name} cannot run with {plural(threads, 'thread')}: none of the runs that "
            "it was learnt from has a parallel region"
        )
    given = {"P": float(processes), "T": float(threads), **params}
    values = derived(signature, given, _evaluate_for(signature), extents=None)
    # those on the extents last: without the others there may be no grid
    of_grid = [one for one in signature.limits.require if not one.names <= values.keys()]
    for condition in signature.limits.require:
        if condition not in of_grid:
            require(condition, values)
    if of_grid:
        values, _ = names(signature, processes, threads, params)
        for condition in of_grid:
            require(condition, values)


def unknown(signature: Signature) -> set[str]:
    """Return the names that have no value, because the signature writes it as unknown."""
    open_ = {name for name, one in signature.inputs.items() if math.isnan(one.value)}
    return {OPEN, *open_}


def closure(signature: Signature, expressions: Sequence[Expression]) -> set[str]:
    """Return the names that formulas depend on, also by way of ``let`` and of the grid."""
    let = dict(signature.let)
    grid = signature.grid
    sources = [] if grid is None else [*(grid.dims or ()), *(grid.cells or ())]
    of_grid = {"P", *(name for one in sources for name in one.names)}
    used: set[str] = set()
    waiting = [name for expression in expressions for name in expression.names]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += let[name].names if name in let else of_grid if name in EXTENTS else ()
    return used
