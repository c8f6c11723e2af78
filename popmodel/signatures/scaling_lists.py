"""Rows of calls that hold for any number of processes: partners as neighbours in a grid.

A row of a list names ranks and partners at the number of processes that was traced. Where all that
it says is "the neighbour along this dimension, where there is one", it is written with the extents
of the grid instead, and is tried: at the traced number it must give the same ranks and partners.
At one number of processes two neighbours may be the same process. On a larger grid they are not,
and what is sent to one may be awaited from the other: so messages must have both ends there, too.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.base.expressions import parse
from popmodel.base.values import dataclass
from popmodel.model.run.feasible_splits import best_grid
from popmodel.structure.pattern_kinds import extents_of
from popmodel.structure.rank_formulas import who

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

Row = dict[str, Any]
Dims = tuple[int, ...]
Moves = dict[tuple[int, ...], tuple[int, ...]]

_CELLS = 1000
_SENDS, _RECEIVES = ("send", "isend", "sendrecv"), ("recv", "irecv", "sendrecv")
_ONE_WAY = ("send", "recv", "isend", "irecv")
_OPENING = ("isend", "irecv")
_FREE = ("compute", "wait", "waitall")
_WAYS = (-1, 1)
_REPEATED = 3  # repetitions that show how rows go on


@dataclass(frozen=True)
class ScalingGrid:
    """A grid of processes."""

    dims: Dims  # Extents at the traced number of processes; the last dimension varies fastest
    periodic: tuple[bool, ...]  # Whether it is closed along each

    @property
    def processes(self) -> int:
        """Number of processes."""
        return math.prod(self.dims)

    @property
    def cells(self) -> list[int]:
        """Cells for which the grid is the best: as many per process along each dimension."""
        return [_CELLS * extent for extent in self.dims]


# -- what rows say of ranks


def _values(formula: str, dims: Dims) -> NDArray[np.float64]:
    processes = math.prod(dims)
    names: dict[str, Any] = {f"P{axis}": float(extent) for axis, extent in enumerate(dims)}
    names |= {"rank": np.arange(processes, dtype=np.float64), "P": float(processes)}
    return np.broadcast_to(np.asarray(parse(formula).evaluate(names), np.float64), processes)


_values_on_line = lru_cache(maxsize=512)(_values)  # every grid that is tried asks for the same


def _evaluated(formula: Any, dims: Dims) -> NDArray[np.float64]:
    return (_values_on_line if len(dims) == 1 else _values)(str(formula), dims)


def ranks_on(row: Mapping[str, Any], dims: Dims) -> NDArray[np.bool_]:
    """Who carries out a row: bool[P]."""
    on = row.get("on")
    if on is None:
        return np.ones(math.prod(dims), dtype=bool)
    if isinstance(on, list):
        return np.isin(np.arange(math.prod(dims)), on)
    return np.asarray(_evaluated(on, dims) != 0)


def partners(row: Mapping[str, Any], key: str, dims: Dims) -> NDArray[np.int64]:
    """Partner of each rank, -1 for none: int64[P]."""
    value = row[key]
    listed = np.array(value) if isinstance(value, list) else _evaluated(value, dims)
    partner = np.rint(listed).astype(np.int64)
    inside = ranks_on(row, dims) & (partner >= 0) & (partner < math.prod(dims))
    return np.where(inside, partner, -1)


def tidy(rows: Sequence[Mapping[str, Any]], processes: int) -> list[Row]:
    """Write rows as signatures read them: requests of those ranks that have any.

    A row may leave out on which ranks it does nothing because its partner is no rank; of a
    nonblocking call that would be a request that nobody waits for.
    """
    made = []
    for row in map(dict, rows):
        if "calls" in row:
            row["calls"] = tidy(row["calls"], processes)
        if row.get("do") in _OPENING:
            mine = partners(row, "to" if row["do"] == "isend" else "from", (processes,)) >= 0
            if (mine != ranks_on(row, (processes,))).any():
                row = {"on": who(mine), **{k: row[k] for k in row if k != "on"}}
        made.append(row)
    return made


# -- whether every message has both ends


def all_meet(rows: Sequence[Mapping[str, Any]], dims: Dims) -> bool:
    """Whether every message has both ends, of the same size, and every request one."""
    processes = math.prod(dims)
    opened = np.zeros(processes, dtype=np.int64)
    # by tag, pairs of ranks and sizes as they are written, in order: of what is sent, and received
    sent: dict[str, list[tuple[NDArray[np.int64], str]]] = {}
    received: dict[str, list[tuple[NDArray[np.int64], str]]] = {}
    for row in _flat(rows):
        on, do = ranks_on(row, dims), row["do"]
        if do in _OPENING:
            opened += on
        elif do == "waitall":
            opened[on] = 0
        elif do == "wait":
            opened[on] -= 1
            if (opened < 0).any():
                return False
        tag, size = str(row.get("tag", 0)), str(row.get("bytes", ""))
        if do in _SENDS:
            partner = partners(row, "to", dims)
            rank = np.flatnonzero(partner >= 0)
            sent.setdefault(tag, []).append((rank * processes + partner[rank], size))
        if do in _RECEIVES:
            partner = partners(row, "from", dims)
            rank = np.flatnonzero(partner >= 0)
            received.setdefault(tag, []).append((partner[rank] * processes + rank, size))
    return (
        not opened.any()
        and sent.keys() == received.keys()
        and all(_match(sent[tag], received[tag]) for tag in sent)
    )


def _match(
    sent: Sequence[tuple[NDArray[np.int64], str]], received: Sequence[tuple[NDArray[np.int64], str]]
) -> bool:
    """Whether the k-th message of a pair is sent and received, and as large where both say."""
    numbers = {"": 0}
    columns = []
    for side in (sent, received):
        pair = np.concatenate([pairs for pairs, _ in side])
        codes = [numbers.setdefault(size, len(numbers)) for _, size in side]
        size = np.repeat(codes, [len(pairs) for pairs, _ in side])
        order = np.argsort(pair, kind="stable")
        columns.append((pair[order], size[order]))
    (senders, given), (receivers, taken) = columns
    return (
        np.array_equal(senders, receivers)
        and not ((given != taken) & (given > 0) & (taken > 0)).any()
    )


def _flat(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Rows in the order in which they are carried out; many repetitions as a few of them."""
    for row in rows:
        if "calls" in row:
            for _ in range(min(round(float(row["repeat"])), _REPEATED)):
                yield from _flat(row["calls"])
        else:
            yield row


def messages_of(rows: Sequence[Mapping[str, Any]], dims: Dims) -> int:
    """Return how many messages all processes send with some extents of the grid."""
    count = 0
    for row in rows:
        if "calls" in row:
            count += round(float(row["repeat"])) * messages_of(row["calls"], dims)
        elif row["do"] in _SENDS:
            count += int((partners(row, "to", dims) >= 0).sum())
    return count


def at_once(rows: Sequence[Row], processes: int) -> list[Row] | None:
    """Write waits for the only open request as waits for all; None if there is another one.

    Then a list may open more requests for larger grids.
    """
    opened = np.zeros(processes, dtype=np.int64)
    made = []
    for row in rows:
        if "calls" in row:
            inner = at_once(row["calls"], processes)
            if inner is None or opened.any():
                return None
            made.append({**row, "calls": inner})
            continue
        on = ranks_on(row, (processes,))
        if row["do"] in _OPENING:
            opened += on
        elif row["do"] == "waitall":
            opened[on] = 0
        elif row["do"] == "wait":
            if "request" in row or (opened[on] != 1).any():
                return None
            opened[on] = 0
            row = {**row, "do": "waitall"}
        made.append(row)
    return None if opened.any() else made


# -- rows on a grid


def general(rows: Sequence[Row], grid: ScalingGrid) -> tuple[list[Row], Moves] | None:
    """Write rows for any number of processes; None if one says more than neighbours of a grid.

    Also for each row with partners, by where it stands, the step in the grid to its partner.
    """
    larger = tuple(1 + extent for extent in grid.dims), tuple(2 * extent for extent in grid.dims)
    is_whole = all_meet(rows, grid.dims)  # a list that lacks ends as it is tells nothing
    for read, with_both in ((at_once(rows, grid.processes), True), (rows, True), (rows, False)):
        if read is not None:
            moves: Moves = {}
            made = _on_grid(read, grid, (), moves, with_both=with_both)
            if made and (not is_whole or all(all_meet(made, dims) for dims in larger)):
                return made, moves
    return None


def _on_grid(
    rows: Sequence[Row],
    grid: ScalingGrid,
    path: tuple[int, ...],
    moves: Moves,
    *,
    with_both: bool,
) -> list[Row] | None:
    made: list[Row] = []
    # one wait for each request: none can be added
    single = ("send", "recv") if any(row.get("do") == "wait" for row in rows) else _ONE_WAY
    across = [_across(row, grid) if with_both and row.get("do") in single else None for row in rows]
    steps = _steps(grid)
    for index, row in enumerate(rows):
        here = (*path, len(made))
        if "calls" in row:
            inner = _on_grid(row["calls"], grid, here, moves, with_both=with_both)
            if inner is None:
                return None
            made.append({**row, "calls": inner})
            continue
        axis, kind = across[index], [index]
        if axis is not None:
            kind = [i for i, r in enumerate(rows) if axis == across[i] and r["do"] == row["do"]]
        if axis is not None and len(kind) <= len(_WAYS):
            ways = _WAYS if len(kind) == 1 else (_WAYS[kind.index(index)],)
            along = steps.open_ if len(kind) == 1 else steps.closed
            for step in (along[axis, way] for way in ways):
                moves[*path, len(made)] = step.move
                made.append(_with_formulas(row, [step]))
        elif row["do"] in _FREE:
            on = ranks_on(row, (grid.processes,))
            text = "" if on.all() else steps.on.get(on.tobytes())
            if text is None:
                return None
            rest = {key: value for key, value in row.items() if key != "on"}
            made.append({"on": text, **rest} if text else rest)
        else:
            found = [
                known.get(partners(row, key, (grid.processes,)).tobytes())
                for key, known in (("to", steps.by_partner), ("from", steps.by_source))
                if key in row
            ]
            taken = [step for step in found if step is not None]
            if len(taken) < len(found):
                return None
            moves[here] = taken[0].move
            made.append(_with_formulas(row, taken))
    return made


def _across(row: Row, grid: ScalingGrid) -> int | None:
    """Dimension of two processes along which a send or a receive of all goes to the other one.

    The other one is the neighbour on both sides. One such call is taken for an exchange with
    neighbours at open edges, of which each process has one; two for both ways around a ring. A
    sendrecv is taken for a shift around one.
    """
    partner = partners(row, "to" if "to" in row else "from", (grid.processes,))
    for axis, extent in enumerate(grid.dims):
        if extent == 2 and np.array_equal(partner, _steps(grid).closed[axis, 1].partner):
            return axis
    return None


def _with_formulas(row: Row, steps: Sequence[_GridStep]) -> Row:
    """A row with formulas of its partners."""
    rest = {key: value for key, value in row.items() if key not in ("on", "to", "from", "do")}
    made: Row = {"do": row["do"]}
    keys = [key for key in ("to", "from") if key in row]
    if len(steps) == 1:
        made = {"on": steps[0].on, **made} if steps[0].on else made
        return made | {keys[0]: steps[0].formula} | rest
    # of two partners each may be missing at another edge: no message leaves the ranks then
    for key, step in zip(keys, steps, strict=True):
        made[key] = f"{step.formula} if {step.on} else -1" if step.on else step.formula
    return made | rest


class _GridStep(NamedTuple):
    """A step in a grid: to whom, by which formulas, and where there is somebody."""

    move: tuple[int, ...]
    partner: NDArray[np.int64]
    formula: str
    on: str
    closed: tuple[bool, ...]


class _GridSteps(NamedTuple):
    """Steps of a grid by the partners of all ranks, and conditions by the ranks that they hold on.

    Of several that are the same at this number of processes the simplest counts: along one
    dimension first, closed as the grid is, else open. Of two opposite ones, as on a ring of two,
    messages take the one and come from the other: else nobody would send what is received on a
    longer ring.
    """

    by_partner: dict[bytes, _GridStep]
    by_source: dict[bytes, _GridStep]
    on: dict[bytes, str]
    # By dimension and way: to the neighbour where there is one, and around the ring.
    open_: dict[tuple[int, int], _GridStep]
    closed: dict[tuple[int, int], _GridStep]


@lru_cache(maxsize=64)
def _steps(grid: ScalingGrid) -> _GridSteps:
    steps = _GridSteps({}, {}, {}, {}, {})
    made = list(_made(grid))
    opposite = {(step.closed, step.move): step for step in made}
    for step in made:
        axes = [axis for axis, way in enumerate(step.move) if way]
        if len(axes) == 1:
            along = steps.open_ if step.on else steps.closed
            along.setdefault((axes[0], step.move[axes[0]]), step)
        if (step.partner >= 0).any():
            steps.by_partner.setdefault(step.partner.tobytes(), step)
        other = opposite[step.closed, tuple(-way for way in step.move)]
        if (other.partner >= 0).any():
            steps.by_source.setdefault(other.partner.tobytes(), other)
        if step.on:
            steps.on.setdefault((step.partner >= 0).tobytes(), step.on)
    return steps


def _made(grid: ScalingGrid) -> Iterator[_GridStep]:
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
                stride = math.prod(grid.dims[axis + 1 :])
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
            yield _GridStep(move, partners, formula, " and ".join(on), periodic)


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


def grid_of(lists: Sequence[tuple[Sequence[Row], float]], processes: int) -> ScalingGrid:
    """Return the grid on which most bytes of some lists of calls go between neighbours."""
    best, most = ScalingGrid((processes,), (False,)), 0.0
    grids = sorted(extents_of(processes), key=lambda dims: (len(dims), max(dims) - min(dims)))
    # Most grids are ruled out by the partners of some ranks.
    some = np.unique(np.linspace(0, processes - 1, _SAMPLE).round().astype(np.int64))
    asked = [_partners_of(rows, processes, some) for rows, _ in lists]
    for dims in grids:
        reached = _reached(dims, some)
        may = [one for one, needed in zip(lists, asked, strict=True) if needed <= reached]
        if not may:
            continue
        for is_periodic in (False, True):
            grid = ScalingGrid(dims, (is_periodic,) * len(dims))
            if best_grid(processes, tuple(grid.cells), grid.periodic) != dims:
                continue  # signatures choose another one
            moved = sum(size for rows, size in may if general(rows, grid) is not None)
            if moved > most * (1 + 1e-9):
                best, most = grid, moved
    return best


_SAMPLE = 128  # ranks


def _partners_of(rows: Sequence[Row], processes: int, some: NDArray[np.int64]) -> set[bytes]:
    """Partners of some ranks in each row."""
    found: set[bytes] = set()
    for row in rows:
        found |= _partners_of(row.get("calls", ()), processes, some)
        for key in ("to", "from"):
            if key in row:
                found.add(partners(row, key, (processes,))[some].tobytes())
    return found


def _reached(dims: Dims, some: NDArray[np.int64]) -> set[bytes]:
    """Partners of some ranks by every step in a grid, open or closed along each dimension."""
    partner, inside = some[np.newaxis], np.ones((1, len(some)), bool)
    for axis, extent in enumerate(dims):
        stride = math.prod(dims[axis + 1 :])
        at = some // stride % extent
        around = [(at + way) % extent - at for way in _WAYS]
        shifts = np.stack([np.full_like(at, way) for way in (0, *_WAYS)] + around)
        exists = (at + shifts >= 0) & (at + shifts < extent)
        partner = (partner[:, np.newaxis] + stride * shifts).reshape(-1, len(some))
        inside = (inside[:, np.newaxis] & exists).reshape(-1, len(some))
    return {row.tobytes() for row in np.where(inside, partner, -1)}


def _coordinate(axis: int, dimensions: int) -> str:
    """Formula of the coordinate of a rank along a dimension."""
    stride = _stride(axis, dimensions)
    over = "rank" if stride == "1" else f"rank // {_in_brackets(stride)}"
    return over if axis == 0 else f"{over} % P{axis}"
