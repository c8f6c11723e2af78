"""Sizes of messages in several runs: formulas of grids and parameters that give them, or laws."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from itertools import product as every
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.base.expressions import parse
from popmodel.fit.candidates import product_of
from popmodel.fit.counts import exact_law
from popmodel.fit.law import FIT, law
from popmodel.fit.samples import Sample
from popmodel.model.run.feasible_splits import best_grid, divisors
from popmodel.signatures.amounts import PARTS, SCALARS, LawSet, SignatureAmount, constants_of
from popmodel.signatures.document import number
from popmodel.signatures.outline import OutlineCalls, OutlineMeeting, paths, row_at
from popmodel.signatures.scaling_lists import messages_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.signatures.align_runs import AlignedRun, RunTable, Sent
    from popmodel.signatures.amounts import Key
    from popmodel.signatures.scaling_lists import ScalingGrid

Axes = tuple[bool, ...]  # Along which dimensions a message goes one step

# Rows and columns of a grid of P processes, for powers of two.
SIDES = ("2**floor(log2(P)/2)", "2**ceiling(log2(P)/2)")
_FEWEST = 3
_ROUNDED = 0.002  # relative difference of sizes that are whole numbers of cells of the same part
_MOST = 0.5  # share of the bytes below which messages of a run go to no neighbours of a grid
_SAME = 1e-6  # relative difference of numbers that are the same
_FAR = 1024.0
_OF_RUN = re.compile(r"P\d*|T")
_UNEVEN = 0.01  # relative error of sizes that are not all alike
_HIGHEST = 3  # power of a parameter of the problem in a size


# Whether runs divide a matrix into rows and columns of blocks, as their messages show.
#
# On powers of two of processes a grid of two dimensions grows in steps: rows and columns double in
# turns. What goes with a row of the matrix stays then, and halves with the next doubling, which no
# smooth law of P does. Messages have exact sizes: one that stays and halves in turns tells.


def likely_forms(runs: Sequence[AlignedRun], shared: str) -> tuple[str, ...]:
    """Return the forms that the work of a process likely has."""
    sizes = {run.processes: float(run.sent.size.max(initial=0)) for run in runs}
    processes = np.array(sorted(sizes))
    values = np.array([sizes[one] for one in processes.tolist()])
    if not any(_goes_with(side, processes, values) for side in _sides(runs)):
        return (shared,)
    return (shared, *(f"{shared} + 1/{side}" for side in SIDES))


def _sides(runs: Sequence[AlignedRun]) -> tuple[str, ...]:
    """Rows and columns that runs may have: of enough powers of two of processes, none of others."""
    processes = np.unique([run.processes for run in runs])
    alike = all((run.parameters, run.threads) == (runs[0].parameters, 1) for run in runs)
    powers_of_two = not (processes & (processes - 1)).any()
    return SIDES if alike and powers_of_two and len(processes) >= _FEWEST else ()


def _goes_with(side: str, processes: NDArray[np.int64], sizes: NDArray[np.float64]) -> bool:
    whole = sizes * np.asarray(parse(side).evaluate({"P": processes.astype(np.float64)}))
    steps = np.diff(sizes)
    return bool(
        sizes.min() > 0
        and np.ptp(whole) <= _ROUNDED * whole.max()
        and (steps == 0).any()
        and (steps < 0).any()
    )


# The grid that a run has, where another run of the program has one: by where its messages go.


def extents_like(
    grid: ScalingGrid, sent: Sent, processes: int, kinds: Collection[Axes]
) -> tuple[int, ...] | None:
    """Return the extents at which the messages of a run go as those of another one do."""
    taken = best_grid(processes, tuple(grid.cells), grid.periodic)
    if not len(sent.size):
        return taken
    best, most = None, 0.0
    for dims in (taken, *_extents(processes, len(grid.dims))):
        going = along(dims, grid.periodic, sent)
        known = (going[:, None] == np.array([*kinds])).all(axis=2).any(axis=1)
        moved = float((sent.size + 1)[known].sum())
        if moved > most * (1 + 1e-9):
            best, most = dims, moved
    return best if most > _MOST * float((sent.size + 1).sum()) else None


def along(dims: tuple[int, ...], periodic: tuple[bool, ...], sent: Sent) -> NDArray[np.int64]:
    """Return along which dimensions messages go: int64[M, dimensions]; -1 for more than a step."""
    receiver, sender = (
        np.stack(np.unravel_index(rank, dims), axis=1) for rank in (sent.receiver, sent.sender)
    )
    away, extents = receiver - sender, np.array(dims)
    around = (away + extents // 2) % extents - extents // 2
    steps = np.abs(np.where(periodic, around, away))
    return np.where(steps <= 1, steps, -1)


def _extents(processes: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    if dimensions == 1:
        yield (processes,)
        return
    for first in divisors(processes):
        for rest in _extents(processes // first, dimensions - 1):
            yield first, *rest


# -- laws of what several runs send: exact where one formula gives all runs, else with intervals


class Moved(NamedTuple):
    """A size, or a number of messages, in all runs that have it."""

    key: Key  # Its amount
    what: str  # What it is, for people
    unit: str
    # Of the runs, the first one first; extents of their grids are parameters, where it goes with
    # these.
    samples: tuple[Sample, ...]
    likely: tuple[str, ...]  # Formulas that it is likely to go with, the likeliest first


def size_laws(table: RunTable) -> LawSet:
    """Find how sizes and numbers of messages, and of collectives, go with P, T and parameters."""
    laws = LawSet()
    sizes = [*_of_neighbours(table, laws.notes), *_of_meetings(table), *_of_lists(table)]
    groups: dict[Any, list[Moved]] = {}
    for size in sizes:
        values = [(*sample.configuration.items(), sample.value) for sample in size.samples]
        groups.setdefault((tuple(values), size.likely), []).append(size)
    for members in groups.values():
        what = members[0].what + (f" and {len(members) - 1} alike" if len(members) > 1 else "")
        amount = _amount_of(laws, members[0], what)
        laws.amounts |= {size.key: amount for size in members}
    return laws


def _amount_of(laws: LawSet, size: Moved, what: str) -> SignatureAmount:
    values = [sample.value for sample in size.samples]
    if max(values) - min(values) <= _SAME * max(values):
        same = values[0]
        plain = int(same) if same == int(same) else number(same)
        return SignatureAmount(plain, note="the same in all runs")
    exact = exact_law(size.samples, likely=size.likely, rounded=size.unit == "B")
    if exact is not None:
        # A formula of P, T or an extent of the grid, not of parameters of the problem alone.
        is_of_run = any(_OF_RUN.fullmatch(name) for name in parse(exact.text).names)
        sure = exact.is_likely or not is_of_run or exact.checks > 1
        if exact.origin == FIT and sure and _stays_above_0(exact.text, size.samples):
            laws.add_exact(what, size.unit, exact, len(size.samples))
            return SignatureAmount(exact.text, note="fit: exact in all runs")
    samples = [
        replace(sample, relative_error=max(sample.relative_error or 0.0, _UNEVEN))
        for sample in size.samples
    ]
    found = law(samples, hints=size.likely[:1] if size.unit == "B" else ())
    if not found.constants:
        return SignatureAmount(0, note="0 in all runs")
    name = f"b{len(laws.laws) + 1}"
    laws.add_fit(what, size.unit, found)
    constants = constants_of(found, name, size.unit, what)
    return SignatureAmount(found.text(f"{name}_"), constants, f"{found.origin}: {found.form}")


def _stays_above_0(formula: str, samples: Sequence[Sample]) -> bool:
    """Whether a formula has no value below 0 far beyond the runs."""
    expression = parse(formula)
    return all(
        float(expression.evaluate({**one.configuration, name: value * _FAR})) >= 0
        for one in samples
        for name, value in one.configuration.items()
    )


def _of_neighbours(table: RunTable, notes: list[str]) -> list[Moved]:
    """Sizes of the rows that hold on a grid; notes say where runs differ in how many there are."""
    outline, runs = table.outline, table.rows
    grid = outline.grid
    lists = [(path, one) for path, one in paths(outline.body) if isinstance(one, OutlineCalls)]
    on_grid = [(path, one) for path, one in lists if one.moves is not None]
    if grid is None or not on_grid:
        return []
    kinds = {_axes(move) for _, one in on_grid for move in (one.moves or {}).values()}
    places = sorted({place for _, one in on_grid for place in one.places})
    dims = [
        grid.dims
        if run is runs[0]
        else extents_like(grid, table.at(run, places), run.processes, kinds)
        for run in runs
    ]
    found: list[Moved] = []
    for path, node in on_grid:
        there = [
            (run, own, table.at(run, node.places))
            for run, own in zip(runs, dims, strict=True)
            if own
        ]
        base = None  # what the calls of the first run lack
        for run, own, _ in there:
            counted, sizes = table.messages(run, node)
            beyond = counted - messages_of(node.rows, own)
            base = beyond if base is None else base
            if len(sizes) and abs(beyond - base) > 0.5:  # none: executed zero times
                notes.append(
                    f"{node.name}: {counted:.6g} messages with P = {run.processes}, where the "
                    f"calls of the first run make {counted - beyond:.6g}"
                )
        # both ends of a message have the same size: all rows of a list have laws, or none
        for rows in (_rows(node, path, grid, there), _rows_alike(node, path, table)):
            if all(len(one.samples) > 1 for one in rows):
                found += rows
                break
    return found


def _axes(move: Sequence[int]) -> Axes:
    return tuple(bool(step) for step in move)


def _rows(
    node: OutlineCalls,
    path: tuple[int, ...],
    grid: ScalingGrid,
    runs: Sequence[tuple[AlignedRun, tuple[int, ...], Sent]],
) -> list[Moved]:
    """Sizes of the rows of a list, in the order of sizes along the same dimensions."""
    kinds: dict[Axes, list[NDArray[np.int64]]] = {}
    found = []
    for row, move in (node.moves or {}).items():
        size, axes = row_at(node.rows, row).get("bytes", 0), _axes(move)
        if not isinstance(size, int) or not size:
            continue
        if axes not in kinds:
            kinds[axes] = [
                sent.size[(along(dims, grid.periodic, sent) == np.array(axes)).all(axis=1)]
                for _, dims, sent in runs
            ]
        samples = [
            run.sample(value, error, {f"P{axis}": float(one) for axis, one in enumerate(dims)})
            for (run, dims, _), sizes in zip(runs, kinds[axes], strict=True)
            for value, error in _like(size, kinds[axes][0], sizes)
        ]
        sides = [f"P{axis}" for axis, step in enumerate(axes) if not step]
        likely = _likely([dict.fromkeys(sides, -1)], runs[0][0].parameters)
        key = ("bytes", (*path, *row))
        ways = " and ".join(f"P{axis}" for axis, step in enumerate(axes) if step)
        what = f"bytes along {ways} of {node.name}"
        found.append(Moved(key, what, "B", tuple(samples), likely))
    return found


def _rows_alike(node: OutlineCalls, path: tuple[int, ...], table: RunTable) -> list[Moved]:
    """Sizes of the rows of a list whatever way they go, where every run has a single one."""
    runs = table.rows
    sizes = [(run, np.unique(table.at(run, node.places).size)) for run in runs]
    if len(sizes[0][1]) != 1:
        return []
    samples = tuple(run.sample(float(one[0]), 0.0) for run, one in sizes if len(one) == 1)
    likely = _likely([{}, {"P": -1}, {"P": Fraction(-1, 2)}], runs[0].parameters)
    return [
        Moved(("bytes", (*path, *row)), f"bytes of {node.name}", "B", samples, likely)
        for row in node.moves or {}
        if row_at(node.rows, row).get("bytes") == samples[0].value
    ]


def _like(
    size: int, first: NDArray[np.int64], other: NDArray[np.int64]
) -> list[tuple[float, float]]:
    """What a size of the first run is in another, and its relative error; none if it is not there.

    Where both have as many different sizes, they are taken in order; else as the means do.
    """
    if not other.sum() or not first.sum():
        return []
    mine, theirs = np.unique(first), np.unique(other)
    if len(mine) == len(theirs) and size in mine:
        return [(float(theirs[int(np.searchsorted(mine, size))]), 0.0)]
    return [(size * float(other.mean()) / float(first.mean()), _UNEVEN)]


def _of_meetings(table: RunTable) -> list[Moved]:
    """Sizes of collectives."""
    outline, runs = table.outline, table.rows
    found = []
    for path, node in paths(outline.body):
        if not isinstance(node, OutlineMeeting) or node.op == "barrier":
            continue
        base = runs[0].received.get((node.place, node.op), 0.0)
        there = [(run, run.received.get((node.place, node.op))) for run in runs]
        samples = [
            run.sample(node.bytes * (value / base if base else 1.0), 0.0)
            for run, value in there
            if value is not None
        ]
        part = PARTS.get(node.op, "1")
        stays = [{}, {"P": -1}, {"P": -2}]
        if part != "1" and node.bytes > SCALARS:
            stays.insert(0, {"P": -2 if part.endswith("2") else -1})
        likely = _likely(stays, runs[0].parameters)
        found.append(Moved(("bytes", path), f"bytes of {node.name}", "B", tuple(samples), likely))
    return [one for one in found if len(one.samples) > 1]


def _of_lists(table: RunTable) -> list[Moved]:
    """Messages of a process, and their size, in lists that hold for one number of processes."""
    outline, runs = table.outline, table.rows
    found = []
    for path, node in paths(outline.body):
        if not isinstance(node, OutlineCalls) or node.moves is not None or not node.offsets:
            continue
        some = [(run, *table.messages(run, node)) for run in runs]
        each = [
            run.sample(messages / run.processes, 0.0) for run, messages, sizes in some if len(sizes)
        ]
        mean = [
            run.sample(float(sizes.mean()), 0.0 if np.ptp(sizes) == 0 else _UNEVEN)
            for run, _, sizes in some
            if len(sizes)
        ]
        of_face = _likely([{"P": Fraction(-1, 2)}, {"P": -1}, {"P": -2}], runs[0].parameters)
        sides = _sides(runs)
        of_partners = ("P - 1", "log2(P)", "1 - 1/P", *(f"1 - 1/{side}" for side in sides))
        of_blocks = (*of_face, *(f"1/{side}" for side in sides))
        for what, label, unit, samples, likely in (
            ("messages", "messages of a process in", "1", each, of_partners),
            ("size", "bytes of a message in", "B", mean, of_blocks),
        ):
            key = (f"scaled {what}", path)
            found.append(Moved(key, f"{label} {node.name}", unit, tuple(samples), likely))
    return [one for one in found if len(one.samples) > 1]


def _likely(
    shapes: Sequence[Mapping[str, int | Fraction]], parameters: Mapping[str, float]
) -> tuple[str, ...]:
    """Texts of products of shapes and powers of the parameters, those of few parameters first."""
    names = list(parameters)
    powers = sorted(
        (one for one in every(range(_HIGHEST + 1), repeat=len(names)) if sum(one) <= _HIGHEST),
        key=sum,
    )
    texts = [
        product_of(
            {
                name: (Fraction(power), 0)
                for name, power in {**shape, **dict(zip(names, one, strict=True))}.items()
            }
        ).text
        for one in powers
        for shape in shapes
    ]
    return tuple(dict.fromkeys(texts))
