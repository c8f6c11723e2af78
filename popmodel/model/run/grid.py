"""The names that formulas of a signature may use, with their values for a number of processes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from popmodel.expressions import Expression
from popmodel.expressions.elementary import Value
from popmodel.model.run.placement import ImpossibleSplit
from popmodel.model.signature import amounts
from popmodel.model.signature.keys import key_of
from popmodel.model.signature.program import Signature
from popmodel.units import plural


def names(
    signature: Signature, processes: int, threads: int, params: Mapping[str, Value]
) -> tuple[dict[str, Value], tuple[int, ...]]:
    """Compute let and the decomposition.

    Parameters
    ----------
    signature : Signature
        Where they are defined.
    processes, threads : int
        P and T.
    params : mapping of str to value
        A value for every parameter.

    Returns
    -------
    values : dict of str to value
        Parameters, let, P, T, local extents n0.. and grid extents P0..
    extent : tuple of int
        Processes along each grid dimension; empty without a grid.

    Raises
    ------
    ImpossibleSplit
        If the grid does not have P processes, or leaves some of them without a cell.
    """
    values = _lets(signature, processes, threads, params)
    if signature.grid is None:
        return values, ()
    cells = [_cells(signature, expression, values) for expression in signature.grid.cells or ()]
    typical = [float(np.ravel(cell)[0]) for cell in cells]
    if signature.grid.dims is None:
        extent = best_grid(processes, typical, signature.grid.periodic)
    else:
        extent = tuple(_whole(signature, expression, values) for expression in signature.grid.dims)
        _check_grid(signature, extent, typical, processes)
    values |= {f"P{dim}": float(size) for dim, size in enumerate(extent)}
    values |= {f"n{dim}": cell / extent[dim] for dim, cell in enumerate(cells)}
    return values, extent


def _lets(
    signature: Signature, processes: int, threads: int, params: Mapping[str, Value]
) -> dict[str, Value]:
    """Values of parameters, P, T and let."""
    values: dict[str, Value] = {"P": float(processes), "T": float(threads), **params}
    for name, expression in signature.let:
        what = f"{signature.name}: {name!r} of let"
        values[name] = amounts.evaluate(expression, values, what)
    return values


def _cells(signature: Signature, expression: Expression, values: Mapping[str, Value]) -> Value:
    what = f"{signature.name}: an extent of global"
    value = amounts.evaluate(expression, values, what)
    amounts.check(value, key_of("decomp", "global").domain, expression, values, what)
    return value


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
    value = float(np.ravel(found)[0])
    if value != round(value) or value < 1:
        raise ImpossibleSplit(
            f"{signature.name}: a grid extent is {expression.text!r} = {value:g}, "
            "which is not a number of processes"
        )
    return int(value)


def best_grid(processes: int, cells: Sequence[float], periodic: Sequence[bool]) -> tuple[int, ...]:
    """Return the factorisation of P whose blocks have the least surface to their neighbours.

    Parameters
    ----------
    processes : int
        P.
    cells : sequence of float
        Global extent along each dimension.
    periodic : sequence of bool
        Whether neighbours wrap around, by dimension.

    Returns
    -------
    tuple of int
        Processes along each dimension; of equally good ones that with the most processes along
        the last dimension, whose ranks are neighbours.

    Raises
    ------
    ImpossibleSplit
        If every factorisation leaves processes without a cell.
    """
    extents = np.array(_factorisations(processes, len(cells)), dtype=np.float64)
    extents = extents[(extents <= np.array(cells)).all(axis=1)]
    if not len(extents):
        shown = " x ".join(f"{size:g}" for size in cells)
        raise ImpossibleSplit(
            f"no grid of {plural(processes, 'process', 'processes')} fits {shown} cells: "
            "each process needs at least one"
        )
    local = np.array(cells) / extents
    # two processes in a line are neighbours on one side only
    sides = np.where(np.array(periodic) & (extents > 1), 2, np.minimum(2, extents - 1))
    # of a block, as a part of its volume, which is the same for all
    surface = (sides / local).sum(axis=1)
    # rounding must not decide between grids that are the same in another order
    best = extents[surface <= surface.min() * (1 + 1e-12)]
    return min(tuple(int(size) for size in extent) for extent in best)


def divisors(number: int) -> list[int]:
    """Return all divisors of a number from 1, rising."""
    found = [1]
    left, prime = number, 2
    while left > 1:
        if prime * prime > left:
            prime = left
        powers = [1]
        while left % prime == 0:
            left //= prime
            powers.append(powers[-1] * prime)
        if len(powers) > 1:
            found = [one * power for one in found for power in powers]
        prime += 1
    return sorted(found)


def _factorisations(number: int, parts: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(number,)]
    return [
        (first, *rest)
        for first in divisors(number)
        for rest in _factorisations(number // first, parts - 1)
    ]


def check_requirements(
    signature: Signature, processes: int, threads: int, params: Mapping[str, float]
) -> None:
    """Refuse a number of processes that the application cannot run with.

    Raises
    ------
    ImpossibleSplit
        If a condition of ``limits.require`` fails.
    """
    values = _lets(signature, processes, threads, params)
    # those on the extents last: without the others there may be no grid
    of_grid = [one for one in signature.limits.require if not one.names <= values.keys()]
    for condition in signature.limits.require:
        if condition not in of_grid:
            _require(condition, signature, processes, threads, values)
    if of_grid:
        values, _ = names(signature, processes, threads, params)
        for condition in of_grid:
            _require(condition, signature, processes, threads, values)


def _require(
    condition: Expression,
    signature: Signature,
    processes: int,
    threads: int,
    values: Mapping[str, Value],
) -> None:
    if not amounts.evaluate(condition, values, f"{signature.name}: a condition of require"):
        raise ImpossibleSplit(
            f"{signature.name} cannot run with {plural(processes, 'process', 'processes')}"
            f"{_and_threads(condition, threads)}: it requires {condition.text}"
        )


def _and_threads(condition: Expression, threads: int) -> str:
    return f" of {plural(threads, 'thread')}" if "T" in condition.names else ""
