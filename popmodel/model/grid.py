"""The names that formulas of a signature may use, with their values for a number of processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from popmodel.errors import UsageError
from popmodel.expressions import Expression
from popmodel.expressions.elementary import Value
from popmodel.model import amounts
from popmodel.model.keys import key_of
from popmodel.model.signature import Signature


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
    UsageError
        If the grid does not have P processes.
    """
    values: dict[str, Value] = {"P": float(processes), "T": float(threads), **params}
    for name, expression in signature.let:
        what = f"{signature.name}: {name!r} of let"
        values[name] = amounts.evaluate(expression, values, what)
    if signature.grid is None:
        return values, ()
    cells = [_cells(signature, expression, values) for expression in signature.grid.cells or ()]
    if signature.grid.dims is None:
        extent = best_grid(
            processes,
            [float(np.ravel(cell)[0]) for cell in cells],
            signature.grid.periodic,
        )
    else:
        extent = tuple(_whole(signature, expression, values) for expression in signature.grid.dims)
        if math.prod(extent) != processes:
            shown = " x ".join(str(size) for size in extent)
            raise UsageError(
                f"{signature.name}: its grid is {shown} = {math.prod(extent)} processes, "
                f"not {processes}"
            )
    values |= {f"P{dim}": float(size) for dim, size in enumerate(extent)}
    values |= {f"n{dim}": cell / extent[dim] for dim, cell in enumerate(cells)}
    return values, extent


def _cells(signature: Signature, expression: Expression, values: Mapping[str, Value]) -> Value:
    what = f"{signature.name}: an extent of global"
    value = amounts.evaluate(expression, values, what)
    amounts.check(value, key_of("decomp", "global").domain, expression, values, what)
    return value


def _whole(signature: Signature, expression: Expression, values: Mapping[str, Value]) -> int:
    found = amounts.evaluate(expression, values, f"{signature.name}: an extent of grid")
    value = float(np.ravel(found)[0])
    if value != round(value) or value < 1:
        raise UsageError(
            f"{signature.name}: a grid extent is {expression.text!r} = {value:g}, "
            "which is no number of processes"
        )
    return int(value)


def best_grid(processes: int, cells: Sequence[float], periodic: Sequence[bool]) -> tuple[int, ...]:
    """Give the factorisation of P whose blocks have the least surface to their neighbours.

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
    """

    def surface(extent: tuple[int, ...]) -> float:
        local = [size / count for size, count in zip(cells, extent, strict=True)]
        volume = math.prod(local)
        total = 0.0
        for size, count, wraps in zip(local, extent, periodic, strict=True):
            # two processes in a line are neighbours on one side only
            sides = 0 if count == 1 else 2 if wraps else min(2, count - 1)
            total += sides * volume / size
        return total

    return min(_factorisations(processes, len(cells)), key=lambda extent: (surface(extent), extent))


def _factorisations(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (number,)
        return
    for first in range(1, number + 1):
        if number % first == 0:
            for rest in _factorisations(number // first, parts - 1):
                yield (first, *rest)


def check_requirements(
    signature: Signature, processes: int, threads: int, params: Mapping[str, float]
) -> None:
    """Refuse a number of processes that the application cannot run with.

    Raises
    ------
    UsageError
        If a condition of ``limits.require`` fails; the hint names the nearest numbers of processes
        for which all hold.
    """

    def failing(count: int) -> Expression | None:
        values: dict[str, Value] = {"P": float(count), "T": float(threads), **params}
        for name, expression in signature.let:
            values[name] = expression.evaluate(values)
        return next(
            (one for one in signature.limits.require if not one.evaluate(values)),
            None,
        )

    failed = failing(processes)
    if failed is None:
        return
    near = _nearest(processes, lambda count: failing(count) is None)
    raise UsageError(
        f"{signature.name} cannot run with {processes} processes: it requires {failed.text}",
        f"possible: {' or '.join(str(count) for count in near)} processes" if near else None,
    )


def _nearest(processes: int, possible: Callable[[int], bool]) -> list[int]:
    """Give the nearest possible numbers below and above, within a factor of four."""
    below = range(processes - 1, max(1, processes // 4) - 1, -1)
    above = range(processes + 1, 4 * processes + 1)
    found = (next(filter(possible, candidates), None) for candidates in (below, above))
    return [count for count in found if count is not None]
