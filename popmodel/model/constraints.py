"""With which processes and threads an application can run, and what its formulas give there.

All numbers of processes up to a limit are tried at once where conditions depend on nothing but
processes, so that "never" is no guess. Where the threads count too, or every number of processes
needs a grid of its own, a choice of numbers is tried that conditions are usually about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import distinct
from popmodel.base.expressions import Expression
from popmodel.base.expressions.elementary import Value, numbers
from popmodel.base.values import NamedTuple, dataclass
from popmodel.model.kinds import key_at
from popmodel.model.run.feasible_splits import best_grid
from popmodel.model.run.process_placement import MOST_PROCESSES, ImpossibleSplit
from popmodel.model.signature.application import (
    EXTENTS,
    Signature,
    SignatureGrid,
    closure,
    derived,
    unknown,
)
from popmodel.model.signature.keys import of_machine
from popmodel.model.signature.reading import OPEN, Path

MOST_THREADS = 256

ALL_SMALL = 4096
"""Every number of processes up to this one is tried where not all can be."""

MOST_SEARCHED_GRIDS = 512
"""As `ALL_SMALL`, where each number of processes needs a search for its grid."""

SAMPLES = 48
"""Numbers of processes for which formulas are evaluated."""

SOME_THREADS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Numbers of threads for which they are evaluated if no condition is about threads."""

Truth: TypeAlias = NDArray[np.bool_]


class Condition(NamedTuple):
    """A condition and where it holds."""

    path: Path  # Its place in the signature
    text: str  # As written
    holds: Truth  # By processes (rows) and threads (columns; a single one if they do not matter)


@dataclass(frozen=True)
class Possible:
    """What was tried, and what of it every condition allows."""

    # Numbers that were tried.
    processes: NDArray[np.float64]
    threads: NDArray[np.float64]
    conditions: tuple[Condition, ...]  # Those of ``limits.require``, and last that of a given grid
    is_complete: bool  # Whether all numbers of processes up to `MOST_PROCESSES` were tried

    @cached_property
    def allowed(self) -> Truth:
        """Whether all conditions hold, by processes (rows) and threads (columns)."""
        allowed = np.ones((self.processes.size, self.threads.size), dtype=bool)
        for condition in self.conditions:
            allowed = allowed & condition.holds
        return allowed

    def smallest(self, number: int) -> list[int]:
        """Return the smallest possible numbers of processes, with some number of threads."""
        return [int(one) for one in self.processes[self.allowed.any(axis=1)][:number]]

    def first_conflict(self) -> tuple[Condition, Condition | None] | None:
        """Return the first condition that excludes the last runs that are left."""
        sensible = [one for one in self.conditions if one.holds.any()]
        left = np.ones((self.processes.size, 1), dtype=bool)
        for index, condition in enumerate(sensible):
            left = left & condition.holds
            if not left.any():
                opposed = (
                    one for one in sensible[:index] if not (one.holds & condition.holds).any()
                )
                return condition, next(opposed, None)
        return None


class ConstraintOutcome(NamedTuple):
    """What a formula gives at the defaults, where the application can run."""

    path: Path  # Its place
    values: NDArray[np.float64]  # One for each of `processes`; not finite where it has none
    # Numbers of processes and of threads, every pair once.
    processes: NDArray[np.float64]
    threads: NDArray[np.float64]


def possible(
    signature: Signature, require: Mapping[Path, Expression], params: Mapping[str, float]
) -> Possible:
    grid = signature.grid
    dims = () if grid is None or grid.dims is None else grid.dims
    without = unknown(signature)  # what depends on it excludes nothing
    require = {
        path: one for path, one in require.items() if not without & closure(signature, [one])
    }
    if without & closure(signature, dims):
        dims = ()
    used = closure(signature, [*require.values(), *dims])
    searches = grid is not None and grid.dims is None and bool(EXTENTS & used)
    with_threads = "T" in used
    processes = _candidates(with_threads=with_threads, searches=searches)
    threads: NDArray[np.float64] = np.ones(1)
    if with_threads:
        some = 2 ** np.arange(9) if searches else np.arange(1, MOST_THREADS + 1)
        threads = some.astype(np.float64)
    extents = searches or bool(dims)
    values = environment(signature, processes[:, None], threads[None, :], params, with_grid=extents)
    conditions = [
        Condition(path, expression.text, _truth(expression, values, processes.size))
        for path, expression in require.items()
    ]
    if dims:
        text = " x ".join(expression.text for expression in dims)
        fits = _fits(processes[:, None], [values[f"P{index}"] for index in range(len(dims))])
        conditions.append(Condition(("decomp", "grid"), text, fits))
    complete = not (with_threads or searches)
    return Possible(processes, threads, tuple(conditions), complete)


def outcomes(
    signature: Signature,
    formulas: Mapping[Path, Expression],
    params: Mapping[str, float],
    runs: Possible,
) -> list[ConstraintOutcome]:
    """Evaluate all formulas but conditions for some of the possible runs.

    A working set is taken to fit in the cache and not to: a formula with ``if_fits`` has an outcome
    for either. One that names quantities of the machine has none.
    """
    processes, threads = _samples(signature, runs)
    values = environment(signature, processes, threads, params)
    if "P0" in values:
        there = np.isfinite(np.asarray(values["P0"], dtype=np.float64))
        if there.any() and not there.all():  # some numbers have no grid of whole cells
            processes, threads = processes[there], threads[there]
            values = environment(signature, processes, threads, params)
    values |= {"rank": np.zeros(1)}
    without = unknown(signature)
    found = []
    for path, expression in formulas.items():
        key = key_at(path)
        if key is not None and not key.unit:  # a condition
            continue
        if of_machine(expression.names):  # its value is known on a machine only
            continue
        if without & closure(signature, [expression]):
            continue
        branches = (1, 2) if "if_fits" in expression.calls else (1,)
        for branch in branches:
            result = _evaluate(expression, values, branch)
            sized = np.broadcast_to(np.asarray(result, dtype=np.float64), processes.shape)
            found.append(ConstraintOutcome(path, sized, processes, threads))
    return found


def environment(
    signature: Signature,
    processes: NDArray[np.float64],
    threads: NDArray[np.float64],
    params: Mapping[str, float],
    *,
    with_grid: bool = True,
) -> dict[str, Value]:
    """Evaluate let and the decomposition for arrays of P and T that broadcast together.

    What has no value is not finite. Without `with_grid` the extents of the grid are left out: to
    search for it takes long.
    """

    def extents(
        grid: SignatureGrid, cells: Sequence[Value], values: Mapping[str, Value]
    ) -> Sequence[Value]:
        if grid.dims is None:
            return _searched(processes, cells, grid.periodic)
        return [_evaluate(one, values) for one in grid.dims]

    given: dict[str, Value] = {"P": processes, "T": threads, **params}
    with np.errstate(all="ignore"):
        return derived(
            signature,
            given,
            lambda expression, values, _: _evaluate(expression, values),
            extents if with_grid else None,
        )


def _candidates(*, with_threads: bool, searches: bool) -> NDArray[np.float64]:
    """Return the numbers of processes to try, all where that is affordable."""
    if not (with_threads or searches):
        return np.arange(1.0, MOST_PROCESSES + 1)
    small = np.arange(1, (MOST_SEARCHED_GRIDS if searches else ALL_SMALL) + 1)
    most = ALL_SMALL if searches else MOST_PROCESSES
    powers = 2 ** np.arange(21)
    multiples = np.outer(powers, (1, 3, 5, 6, 7, 9, 12, 28, 36, 48, 56, 64)).ravel()
    squares = np.arange(1, 1025) ** 2
    cubes = np.arange(1, 102) ** 3
    every = distinct(np.concatenate([small, multiples, squares, cubes]))
    return every[every <= most].astype(np.float64)


def _samples(
    signature: Signature, runs: Possible
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Choose some possible runs, evenly over the orders of magnitude, the smallest among them.

    If no run is possible, which is said elsewhere, some of those that were tried.
    """
    allowed = runs.allowed if runs.allowed.any() else np.ones_like(runs.allowed)
    rows = np.flatnonzero(allowed.any(axis=1))
    if signature.grid is not None and signature.grid.dims is None:
        # the search for a grid takes the longer the larger it is
        small = rows[runs.processes[rows] <= ALL_SMALL]
        rows = small if small.size else rows[:1]
    spread = np.geomspace(1, rows.size, SAMPLES).astype(int) - 1
    pairs = [
        (runs.processes[row], thread)
        for row in rows[distinct(spread)]
        for thread in (SOME_THREADS if runs.threads.size == 1 else runs.threads[allowed[row]])
    ]
    processes, threads = np.array(pairs).T
    return processes, threads


def _searched(
    processes: NDArray[np.float64], cells: Sequence[Value], periodic: tuple[bool, ...]
) -> list[Value]:
    """Return the extents of the grid of least surface, by P; not finite where there is none."""

    @cache
    def grid(processes: float, *cells: float) -> tuple[float, ...]:
        with suppress(ImpossibleSplit):
            if all(map(math.isfinite, cells)):
                return best_grid(int(processes), cells, periodic)
        return (math.nan,) * len(cells)

    number, *sizes = np.broadcast_arrays(processes, *map(numbers, cells))
    cases = zip(number.flat, *(size.flat for size in sizes), strict=True)
    with np.errstate(all="ignore"):  # cells without a value have no surface
        extents = np.array([grid(*case) for case in cases], dtype=np.float64)
    return [extents[:, dim].reshape(number.shape) for dim in range(len(cells))]


def _fits(processes: NDArray[np.float64], extents: list[Value]) -> Truth:
    sizes = [numbers(extent) for extent in extents]
    with np.errstate(over="ignore"):  # what is too large has no processes either
        fits: Truth = np.asarray(math.prod(sizes, start=1.0) == processes)
    for size in sizes:
        fits = fits & (size == np.rint(size)) & (size >= 1)
    return fits


def _truth(expression: Expression, values: Mapping[str, Value], rows: int) -> Truth:
    """Evaluate a condition; what has no value does not hold."""
    result = np.asarray(_evaluate(expression, values))
    holds = result if result.dtype == bool else (result != 0) & ~np.isnan(result)
    return np.broadcast_to(holds, np.broadcast_shapes(holds.shape, (rows, 1)))


def _evaluate(expression: Expression, values: Mapping[str, Value], branch: int = 1) -> Value:
    """Evaluate a formula elementwise; what has no value is not finite."""
    if OPEN in expression.names:
        return math.nan
    with np.errstate(all="ignore"):
        found: Value = expression.elementwise(values, {"if_fits": lambda *given: given[branch]})
    return found
