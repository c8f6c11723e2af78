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
from popmodel.signature.collectives import all_meet, at_once
from popmodel.structure.pattern_kinds import extents_of
from popmodel.structure.rank_formulas import condition
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


_CELLS = 1000
_ONE_WAY = ("send", "recv", "isend", "irecv")
_OPENING = ("isend", "irecv")
_WAITS = ("wait", "waitall")
_FREE = ("compute", *_WAITS)


@dataclass(frozen=True)
class ScalingGrid:
    """A grid of processes."""

    # Extents at the traced number of processes; the last dimension varies fastest.
    dims: tuple[int, ...]
    periodic: tuple[bool, ...]  # Whether it is closed along each

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
    """Rows that hold for any number of processes."""

    rows: tuple[dict[str, Any], ...]  # The rows
    # For each row with partners, by where it stands, the step in the grid to its partner.
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


@lru_cache(maxsize=512)  # every grid that is tried asks for the same
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


def general(rows: Sequence[dict[str, Any]], grid: ScalingGrid) -> General | None:
    """Write rows for any number of processes; None if one says more than neighbours of a grid."""
    waiting = at_once(rows, grid.processes)
    larger = [1 + extent for extent in grid.dims], [2 * extent for extent in grid.dims]
    is_whole = all_meet(rows, grid.dims)
    for read, with_both in ((waiting, True), (rows, True), (rows, False)):
        if read is not None:
            moves: dict[tuple[int, ...], tuple[int, ...]] = {}
            found = _all(read, grid, (), moves, with_both=with_both)
            # a list that lacks ends of messages as it is tells nothing
            if found and (not is_whole or all(all_meet(found, dims) for dims in larger)):
                return General(tuple(found), moves)
    return None


def _all(
    rows: Sequence[dict[str, Any]],
    grid: ScalingGrid,
    path: tuple[int, ...],
    moves: dict[tuple[int, ...], tuple[int, ...]],
    *,
    with_both: bool,
) -> list[dict[str, Any]] | None:
    found: list[dict[str, Any]] = []
    across = [_across(row, grid) if with_both else None for row in rows]
    if any(row.get("do") == "wait" for row in rows):  # one for each request: none can be added
        across = [
            None if row.get("do") in _OPENING else axis
            for row, axis in zip(rows, across, strict=True)
        ]
    for index, row in enumerate(rows):
        here = (*path, len(found))
        if (axis := across[index]) is not None:
            kind = [i for i, one in enumerate(rows) if across[i] == axis and one["do"] == row["do"]]
            if len(kind) <= len(_WAYS):
                both = _WAYS if len(kind) == 1 else (_WAYS[kind.index(index)],)
                known = _steps(grid).open_ if len(kind) == 1 else _steps(grid).closed
                for step in (known[axis, way] for way in both):
                    moves[*path, len(found)] = step.move
                    found.append(_written(row, [step]))
                continue
        if "calls" in row:
            inner = _all(row["calls"], grid, here, moves, with_both=with_both)
            if inner is None:
                return None
            found.append({**row, "calls": inner})
            continue
        one = _one(row, grid, here, moves)
        if one is None:
            return None
        found.append(one)
    return found


def _one(
    row: dict[str, Any],
    grid: ScalingGrid,
    here: tuple[int, ...],
    moves: dict[tuple[int, ...], tuple[int, ...]],
) -> dict[str, Any] | None:
    processes = grid.processes
    rest = {key: value for key, value in row.items() if key not in ("on", "to", "from")}
    if row["do"] in _FREE:
        on = ranks_on(row, processes)
        if on.all():
            return rest
        text = _steps(grid).on.get(on.tobytes())
        return None if text is None else {"on": text, **rest}
    keys = [key for key in ("to", "from") if key in row]
    wanted = [_partners(row, key, processes) for key in keys]
    known_steps = {"to": _steps(grid).by_partner, "from": _steps(grid).by_source}
    steps = [
        known_steps[key].get(partner.tobytes()) for key, partner in zip(keys, wanted, strict=True)
    ]
    known = [step for step in steps if step is not None]
    if len(known) < len(steps):
        return None
    moves[here] = known[0].move
    return _written(row, known)


_WAYS = (-1, 1)


def _across(row: dict[str, Any], grid: ScalingGrid) -> int | None:
    """Dimension of two processes along which a send or a receive of all goes to the other one.

    The other one is the neighbour on both sides. One such call is taken for an exchange with
    neighbours at open edges, of which each process has one; two for both ways around a ring. A
    sendrecv is taken for a shift around one.
    """
    if row.get("do") not in _ONE_WAY:
        return None
    wanted = _partners(row, "to" if "to" in row else "from", grid.processes)
    for axis, extent in enumerate(grid.dims):
        if extent == 2 and np.array_equal(wanted, _steps(grid).closed[axis, 1].partner):
            return axis
    return None


def _written(row: Mapping[str, Any], known: Sequence[_ListStep]) -> dict[str, Any]:
    """A row with formulas of its partners."""
    rest = {key: value for key, value in row.items() if key not in ("on", "to", "from")}
    keys = [key for key in ("to", "from") if key in row]
    # of two partners each may be missing at another edge: no message leaves the ranks then
    alone = len(known) == 1
    found: dict[str, Any] = {"on": known[0].on} if alone and known[0].on else {}
    found["do"] = rest.pop("do")
    for key, step in zip(keys, known, strict=True):
        found[key] = step.formula if alone else step.guarded
    return found | rest


@dataclass(frozen=True)
class _ListStep:
    """A step in a grid: to whom, by which formulas, and where there is somebody."""

    move: tuple[int, ...]
    partner: NDArray[np.int64]
    formula: str
    on: str
    closed: tuple[bool, ...]

    @property
    def guarded(self) -> str:
        """The partner, or no rank where there is none."""
        return f"{self.formula} if {self.on} else -1" if self.on else self.formula


@dataclass(frozen=True)
class _ListSteps:
    """Steps of a grid by the partners of all ranks, and conditions by the ranks that they hold on.

    Of several that are the same at this number of processes the simplest counts: along one
    dimension first, closed as the grid is, else open. Of two opposite ones, as on a ring of two,
    messages take the one and come from the other: else nobody would send what is received on a
    longer ring.
    """

    by_partner: Mapping[bytes, _ListStep]
    by_source: Mapping[bytes, _ListStep]
    on: Mapping[bytes, str]
    open_: Mapping[tuple[int, int], _ListStep]
    closed: Mapping[tuple[int, int], _ListStep]
    """By dimension and way: to the neighbour where there is one, and around the ring."""


@lru_cache(maxsize=64)
def _steps(grid: ScalingGrid) -> _ListSteps:
    by_partner: dict[bytes, _ListStep] = {}
    by_source: dict[bytes, _ListStep] = {}
    on: dict[bytes, str] = {}
    open_: dict[tuple[int, int], _ListStep] = {}
    closed: dict[tuple[int, int], _ListStep] = {}
    made = list(_made(grid))
    opposite = {(step.closed, step.move): step for step in made}
    for step in made:
        axes = [axis for axis, way in enumerate(step.move) if way]
        if len(axes) == 1:
            known = open_ if step.on else closed
            known.setdefault((axes[0], step.move[axes[0]]), step)
        if (step.partner >= 0).any():
            by_partner.setdefault(step.partner.tobytes(), step)
        other = opposite[step.closed, tuple(-one for one in step.move)]
        if (other.partner >= 0).any():
            by_source.setdefault(other.partner.tobytes(), other)
        if step.on:
            on.setdefault((step.partner >= 0).tobytes(), step.on)
    return _ListSteps(by_partner, by_source, on, open_, closed)


def _made(grid: ScalingGrid) -> Iterator[_ListStep]:
    ranks = np.arange(grid.processes)
    axes = range(len(grid.dims))
    moves = sorted(product((-1, 0, 1), repeat=len(grid.dims)), key=lambda move: sum(map(abs, move)))
    for periodic in dict.fromkeys((grid.periodic, *product((False, True), repeat=len(grid.dims)))):
        for move in moves:
            partner, formula, on = ranks.copy(), "rank", []
            inside = np.ones(len(ranks), dtype=bool)
            for axis in axes:
                step, extent = move[axis], grid.dims[axis]
                if not step:
                    continue
                stride = int(np.prod(grid.dims[axis + 1 :]))
                at = ranks // stride % extent
                name, size = _coordinate(axis, len(grid.dims)), f"P{axis}"
                ahead = f"{'+' if step > 0 else '-'} {_stride(axis, len(grid.dims))}"
                if periodic[axis]:
                    partner += ((at + step) % extent - at) * stride
                    formula = _around(formula, ahead, axis, len(grid.dims))
                else:
                    inside &= (at + step >= 0) & (at + step < extent)
                    partner += step * stride
                    formula += f" {ahead}"
                    on.append(f"{name} < {size} - 1" if step > 0 else f"{name} > 0")
            partners = np.where(inside, partner, -1)
            yield _ListStep(move, partners, formula, " and ".join(on), periodic)


def _around(formula: str, ahead: str, axis: int, dimensions: int) -> str:
    """A step around a dimension: within the block of ranks that differ along it and faster ones."""
    block = _stride(axis - 1, dimensions) if axis else "P"
    moved = f"(rank {ahead}) % {_in_brackets(block)}"
    if formula != "rank":  # steps along others are taken already
        here = f"rank % {_in_brackets(block)}" if axis else "rank"
        return f"{formula} + {moved} - {here}"
    return f"rank // {_in_brackets(block)} * {block} + {moved}" if axis else moved


def _in_brackets(text: str) -> str:
    return f"({text})" if "*" in text else text


def _stride(axis: int, dimensions: int) -> str:
    names = [f"P{one}" for one in range(axis + 1, dimensions)]
    return "*".join(names) or "1"


def grid_of(lists: Sequence[tuple[Sequence[dict[str, Any]], float]], processes: int) -> ScalingGrid:
    """Return the grid on which most bytes of some lists of calls go between neighbours."""
    best, most = ScalingGrid((processes,), (False,)), 0.0
    grids = sorted(extents_of(processes), key=lambda dims: (len(dims), max(dims) - min(dims)))
    for dims in grids:
        for is_periodic in (False, True):
            grid = ScalingGrid(dims, (is_periodic,) * len(dims))
            if best_grid(processes, grid.cells, grid.periodic) != dims:
                continue  # signatures choose another one
            moved = sum(size for rows, size in lists if general(rows, grid) is not None)
            if moved > most * (1 + 1e-9):
                best, most = grid, moved
    return best


def _coordinate(axis: int, dimensions: int) -> str:
    """Formula of the coordinate of a rank along a dimension."""
    stride = _stride(axis, dimensions)
    over = "rank" if stride == "1" else f"rank // {_in_brackets(stride)}"
    return over if axis == 0 else f"{over} % P{axis}"
