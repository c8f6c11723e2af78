"""Rows of calls that hold for any number of processes: partners as neighbours in a grid.

A row of a list names ranks and partners at the number of processes that was traced. Where all that
it says is "the neighbour along this dimension, where there is one", it is written with the extents
of the grid instead, and is tried: at the traced number it must give the same ranks and partners.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.expressions import parse
from popmodel.model.run.grid import best_grid
from popmodel.patterns.formulas import condition
from popmodel.patterns.grid import extents_of
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["General", "Grid", "general", "grid_of", "ranks_on", "tidy"]

_CELLS = 1000
_OPENING = ("isend", "irecv")
_WAITS = ("wait", "waitall")
_FREE = ("compute", *_WAITS)


@dataclass(frozen=True)
class Grid:
    """A grid of processes.

    Attributes
    ----------
    dims : tuple of int
        Extents at the traced number of processes; the last dimension varies fastest.
    periodic : tuple of bool
        Whether it is closed along each.
    """

    dims: tuple[int, ...]
    periodic: tuple[bool, ...]

    @property
    def processes(self) -> int:
        """Number of processes."""
        return int(np.prod(self.dims))

    @property
    def cells(self) -> list[int]:
        """Cells for which the grid is the best: as many per process along each dimension."""
        return [_CELLS * extent for extent in self.dims]


@dataclass(frozen=True)
class General:
    """Rows that hold for any number of processes.

    Attributes
    ----------
    rows : tuple of dict
        The rows.
    moves : dict of tuple of int to tuple of int
        For each row with partners, by where it stands, the step in the grid to its partner.
    """

    rows: tuple[dict[str, Any], ...]
    moves: Mapping[tuple[int, ...], tuple[int, ...]]


def ranks_on(row: Mapping[str, Any], processes: int) -> NDArray[np.bool_]:
    """Who carries out a row: bool[P]."""
    on = row.get("on")
    if on is None:
        return np.ones(processes, dtype=bool)
    if isinstance(on, list):
        found = np.zeros(processes, dtype=bool)
        found[on] = True
        return found
    holds: NDArray[np.bool_] = _values(str(on), processes) != 0
    return holds


def _values(formula: str, processes: int) -> NDArray[np.float64]:
    names = {"rank": np.arange(processes, dtype=np.float64), "P": float(processes)}
    found = np.asarray(parse(formula).evaluate(names), dtype=np.float64)
    return np.broadcast_to(found, processes)


def _partners(row: Mapping[str, Any], key: str, processes: int) -> NDArray[np.int64]:
    """Partner of each rank, -1 for none: int64[P]."""
    value = row[key]
    listed = np.array(value) if isinstance(value, list) else _values(str(value), processes)
    partner = np.rint(listed).astype(np.int64)
    inside = ranks_on(row, processes) & (partner >= 0) & (partner < processes)
    return np.where(inside, partner, -1)


def tidy(rows: Sequence[Mapping[str, Any]], processes: int) -> list[dict[str, Any]]:
    """Write rows as signatures read them: lists of ranks as such, requests of those that have any.

    A row may leave out on which ranks it does nothing because its partner is no rank; of a
    nonblocking call that would be a request that nobody waits for.
    """
    found = []
    for row in rows:
        one = dict(row)
        if "calls" in one:
            one["calls"] = tidy(one["calls"], processes)
        if isinstance(one.get("on"), str) and _is_list(one["on"]):
            one["on"] = _listed(one["on"])
        if one.get("do") in _OPENING:
            mine = _partners(one, "to" if one["do"] == "isend" else "from", processes) >= 0
            if (mine != ranks_on(one, processes)).any():
                text = condition(mine)
                on: Any = _listed(text) if _is_list(text) else text
                one = {"on": on, **{key: value for key, value in one.items() if key != "on"}}
        found.append(one)
    return found


def _is_list(text: str) -> bool:
    return bool(text) and not set(text) - set("0123456789,- ")


def _listed(text: str) -> list[int]:
    """Ranks of a text such as ``0,3-4``."""
    ranks: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


def general(rows: Sequence[dict[str, Any]], grid: Grid) -> General | None:
    """Write rows for any number of processes; None if one says more than neighbours of a grid.

    Parameters
    ----------
    rows : sequence of dict
        Tidy rows.
    grid : Grid
        Of the processes.
    """
    moves: dict[tuple[int, ...], tuple[int, ...]] = {}
    found = _all(rows, grid, (), moves)
    return None if found is None else General(tuple(found), moves)


_Made = tuple[dict[str, Any], tuple[int, ...] | None]
"""A row, and the step to its partner if it has one."""


def _all(
    rows: Sequence[dict[str, Any]],
    grid: Grid,
    path: tuple[int, ...],
    moves: dict[tuple[int, ...], tuple[int, ...]],
) -> list[dict[str, Any]] | None:
    found: list[dict[str, Any]] = []
    pairs = [_pair(row, grid) for row in rows]
    keys = [(row.get("do"), axis) for row, axis in zip(rows, pairs, strict=True)]
    waits_singly = any(row.get("do") == "wait" for row in rows)
    for index, (row, axis) in enumerate(zip(rows, pairs, strict=True)):
        if "calls" in row:
            inner = _all(row["calls"], grid, (*path, len(found)), moves)
            if inner is None:
                return None
            found.append({**row, "calls": inner})
            continue
        if axis is None:
            made = _one(row, grid)
        else:
            often = keys.count(keys[index])
            if often > 2 or (often == 1 and waits_singly and row["do"] in _OPENING):
                return None
            made = _of_two(row, grid, axis, keys[:index].count(keys[index]), often)
        if made is None:
            return None
        for one, move in made:
            if move is not None:
                moves[*path, len(found)] = move
            found.append(one)
    return found


def _pair(row: Mapping[str, Any], grid: Grid) -> int | None:
    """The dimension of two processes along which everybody turns to the other one, if any.

    Both neighbours are the same there: which of them is meant a row alone does not say.
    """
    keys = [key for key in ("to", "from") if key in row]
    if not keys:
        return None
    partners = [_partners(row, key, grid.processes) for key in keys]
    ranks = np.arange(grid.processes)
    for axis, extent in enumerate(grid.dims):
        if extent == 2:
            stride = int(np.prod(grid.dims[axis + 1 :]))
            other = ranks + np.where(ranks // stride % 2 == 0, stride, -stride)
            if all((partner == other).all() for partner in partners):
                return axis
    return None


def _of_two(row: Mapping[str, Any], grid: Grid, axis: int, turn: int, often: int) -> list[_Made]:
    """Rows for a dimension of two: a row stands for both neighbours, or two rows for one each.

    With one row the dimension is open, and each neighbour that there is gets its message; with two
    it is closed, and a process and its neighbour exchange two messages.
    """
    rest = {key: value for key, value in row.items() if key not in ("on", "to", "from", "do")}
    ways = (-1, 1) if often == 1 else ((-1, 1)[turn],)
    found: list[_Made] = []
    for way in ways:
        made: dict[str, Any] = {"do": row["do"]}
        both = "to" in row and "from" in row
        for key in ("to", "from"):
            if key not in row:
                continue
            # what is received comes from the other side than what is sent
            step = _step(grid, axis, way if key == "to" else -way, closed=often == 2)
            made[key] = step.guarded if both else step.formula
            if step.on and not both:
                made = {"on": step.on, **made}
        move = [0] * len(grid.dims)
        move[axis] = way
        found.append((made | rest, tuple(move)))
    return found


def _one(row: dict[str, Any], grid: Grid) -> list[_Made] | None:
    processes = grid.processes
    rest = {key: value for key, value in row.items() if key not in ("on", "to", "from")}
    if row["do"] in _FREE:
        on = ranks_on(row, processes)
        if on.all():
            return [(rest, None)]
        text = _steps(grid).on.get(on.tobytes())
        return None if text is None else [({"on": text, **rest}, None)]
    keys = [key for key in ("to", "from") if key in row]
    wanted = [_partners(row, key, processes) for key in keys]
    steps = [_steps(grid).by_partner.get(partner.tobytes()) for partner in wanted]
    known = [step for step in steps if step is not None]
    if len(known) < len(steps):
        return None
    # of two partners each may be missing at another edge: no message leaves the ranks then
    alone = len(known) == 1
    found: dict[str, Any] = {"on": known[0].on} if alone and known[0].on else {}
    found["do"] = rest.pop("do")
    for key, step in zip(keys, known, strict=True):
        found[key] = step.formula if alone else step.guarded
    return [(found | rest, known[0].move)]


@dataclass(frozen=True)
class _Step:
    """A step in a grid: to whom, by which formulas, and where there is somebody."""

    move: tuple[int, ...]
    partner: NDArray[np.int64]
    formula: str
    on: str

    @property
    def guarded(self) -> str:
        """The partner, or no rank where there is none."""
        return f"{self.formula} if {self.on} else -1" if self.on else self.formula


@dataclass(frozen=True)
class _Steps:
    """Steps of a grid by the partners of all ranks, and conditions by the ranks that they hold on.

    Of several that are the same at this number of processes the simplest counts: along one
    dimension first, closed as the grid is, else open.
    """

    by_partner: Mapping[bytes, _Step]
    on: Mapping[bytes, str]


@lru_cache(maxsize=64)
def _steps(grid: Grid) -> _Steps:
    by_partner: dict[bytes, _Step] = {}
    on: dict[bytes, str] = {}
    for step in _made(grid):
        if (step.partner >= 0).any():
            by_partner.setdefault(step.partner.tobytes(), step)
        if step.on:
            on.setdefault((step.partner >= 0).tobytes(), step.on)
    return _Steps(by_partner, on)


def _made(grid: Grid) -> Iterator[_Step]:
    size = len(grid.dims)
    moves = sorted(product((-1, 0, 1), repeat=size), key=lambda move: sum(map(abs, move)))
    for periodic in dict.fromkeys((grid.periodic, *product((False, True), repeat=size))):
        for move in moves:
            yield _towards(grid.dims, periodic, move)


def _step(grid: Grid, axis: int, way: int, *, closed: bool) -> _Step:
    """A step along one dimension."""
    move = tuple(way if one == axis else 0 for one in range(len(grid.dims)))
    return _towards(grid.dims, (closed,) * len(grid.dims), move)


def _towards(dims: tuple[int, ...], periodic: tuple[bool, ...], move: tuple[int, ...]) -> _Step:
    ranks = np.arange(int(np.prod(dims)))
    partner, formula, on = ranks.copy(), "rank", []
    inside = np.ones(len(ranks), dtype=bool)
    for axis, (step, extent) in enumerate(zip(move, dims, strict=True)):
        if not step:
            continue
        stride = int(np.prod(dims[axis + 1 :]))
        at = ranks // stride % extent
        name, size = _coordinate(axis, len(dims)), f"P{axis}"
        width = _stride(axis, len(dims))
        if periodic[axis]:
            partner += ((at + step) % extent - at) * stride
            ahead = f"(({name} {'+' if step > 0 else '-'} 1) % {size} - {name})"
            formula += f" + {_times(ahead, width)}"
        else:
            inside &= (at + step >= 0) & (at + step < extent)
            partner += step * stride
            formula += f" {'+' if step > 0 else '-'} {width}"
            on.append(f"{name} < {size} - 1" if step > 0 else f"{name} > 0")
    return _Step(move, np.where(inside, partner, -1), formula, " and ".join(on))


def _times(ahead: str, width: str) -> str:
    return ahead if width == "1" else f"{ahead}*{width}"


def _stride(axis: int, dimensions: int) -> str:
    names = [f"P{one}" for one in range(axis + 1, dimensions)]
    return "*".join(names) or "1"


def grid_of(lists: Sequence[tuple[Sequence[dict[str, Any]], float]], processes: int) -> Grid:
    """Return the grid on which most bytes of some lists of calls go between neighbours.

    Parameters
    ----------
    lists : sequence of (rows, float)
        Tidy rows, and the bytes that they move.
    processes : int
        Number of processes.

    Returns
    -------
    Grid
        Of those that do equally well the one with the fewest dimensions, the most nearly square.
    """
    best, most = Grid((processes,), (False,)), 0.0
    grids = sorted(extents_of(processes), key=lambda dims: (len(dims), max(dims) - min(dims)))
    for dims in grids:
        for is_periodic in (False, True):
            grid = Grid(dims, (is_periodic,) * len(dims))
            if best_grid(processes, grid.cells, grid.periodic) != dims:
                continue  # signatures choose another one
            moved = sum(size for rows, size in lists if general(rows, grid) is not None)
            if moved > most * (1 + 1e-9):
                best, most = grid, moved
    return best


def _coordinate(axis: int, dimensions: int) -> str:
    """Formula of the coordinate of a rank along a dimension."""
    stride = _stride(axis, dimensions)
    over = "rank"
    if stride != "1":
        over = f"(rank // ({stride}))" if "*" in stride else f"(rank // {stride})"
    return over if axis == 0 else f"({over} % P{axis})"
