"""Collectives of a place as items of a signature."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from popmodel.extraction.outline import Meeting
from popmodel.patterns.formulas import colour
from popmodel.simulator.program import COLLECTIVES, Op
from popmodel.units import format_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.patterns.table import Table
    from popmodel.simulator import Program
    from popmodel.structure.structure import Structure

_ROOTED = ("bcast", "reduce", "gather", "scatter")


def meetings(
    structure: Structure, table: Table, place: int, which: NDArray[np.int64], name: str
) -> tuple[tuple[Meeting, ...], tuple[str, ...]]:
    """Return the collectives that processes call at a place, and what they do not say."""
    program = structure.program
    event = table.event[place][:, which]
    rows = _collectives(structure, np.unique(event[event >= 0]))
    notes: list[str] = []
    if (program.kind[_operations(structure, event)] == Op.ARRIVE).any():
        notes.append(f"{name} does not wait: written as if it did")
    found = []
    kinds = program.collectives.kind[rows]
    for kind in np.unique(kinds).tolist():
        mine = rows[kinds == kind]
        found.append(replace(_meeting(program, mine, name, notes), place=place))
    return tuple(found), tuple(notes)


def sizes_at(
    structure: Structure, home: NDArray[np.int64] | None = None
) -> dict[tuple[int, str], float]:
    """Return the bytes of a process in collectives by place and kind, means over executions."""
    program = structure.program
    operation = np.flatnonzero(np.isin(program.kind, (Op.COLLECTIVE, Op.ARRIVE)))
    event = np.searchsorted(structure.events.first, operation, side="right") - 1
    place = structure.place[event].astype(np.int64)
    place = place if home is None else home[place]
    pairs = np.unique(np.stack([place, program.target[operation].astype(np.int64)]), axis=1)
    kind, part = program.collectives.kind[pairs[1]].astype(np.int64), program.collectives.part()
    found = {}
    for one, number in np.unique(np.stack([pairs[0], kind]), axis=1).T.tolist():
        rows = pairs[1][(pairs[0] == one) & (kind == number)]
        found[one, COLLECTIVES[number]] = float(part[rows].mean())
    return found


def _operations(structure: Structure, event: NDArray[np.int64]) -> NDArray[np.int64]:
    """Operations of some events."""
    first = structure.events.first
    some = np.unique(event[event >= 0])
    count = first[some + 1] - first[some]
    starts = np.repeat(first[some] - (np.cumsum(count) - count), count)
    return np.asarray(starts + np.arange(count.sum()), dtype=np.int64)


def _collectives(structure: Structure, event: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the collectives that events arrive at, in order."""
    program = structure.program
    operation = _operations(structure, event)
    arrives = np.isin(program.kind[operation], (Op.COLLECTIVE, Op.ARRIVE))
    return np.unique(program.target[operation[arrives]]).astype(np.int64)


def _meeting(program: Program, rows: NDArray[np.int64], name: str, notes: list[str]) -> Meeting:
    """One item for collectives of one kind, in all communicators."""
    many = program.collectives
    op = COLLECTIVES[int(many.kind[rows[0]])]
    sizes = many.part(rows)
    least, most = format_size(float(sizes.min())), format_size(float(sizes.max()))
    if least != most:
        notes.append(f"{name} moves {least} to {most}: the mean is kept")
    numbers = np.unique(many.communicator[rows])
    members = [_members(program, rows, int(number)) for number in numbers.tolist()]
    comm, note = _communicator(members, program.processes, name)
    notes += note
    root = -1
    if op in _ROOTED:
        roots = {
            int(np.flatnonzero(ranks == many.root[row])[0])
            if (ranks == many.root[row]).any()
            else 0
            for ranks, number in zip(members, numbers.tolist(), strict=True)
            for row in rows[many.communicator[rows] == number].tolist()
        }
        root = min(roots)
        if len(roots) > 1:
            notes.append(f"{name} has {len(roots)} roots: rank {root} is kept")
    return Meeting(name, "barrier" if op == "init" else op, float(sizes.mean()), comm, root)


def _members(program: Program, rows: NDArray[np.int64], number: int) -> NDArray[np.int32]:
    """Ranks of a communicator: as listed, else those that take part."""
    mine = rows[program.collectives.communicator[rows] == number]
    size = int(program.collectives.members[mine[0]])
    listed = program.communicators.get(number)
    if listed is not None:
        return listed  # at the edge of a window not all of them call it
    if size == program.processes or not number:
        return np.arange(program.processes, dtype=np.int32)
    about = np.flatnonzero((program.kind >= Op.COLLECTIVE) & (program.target == mine[0]))
    ranks = np.searchsorted(program.offsets, about, side="right") - 1
    return np.unique(ranks).astype(np.int32)


def _communicator(
    members: list[NDArray[np.int32]], processes: int, name: str
) -> tuple[str, list[str]]:
    if len(members) == 1 and len(members[0]) == processes:
        return "world", []
    formula = colour(members, processes)
    if formula is not None:
        return formula, []
    # Every rank by itself: who takes part, by the number of the communicator.
    of = np.full(processes, -1, dtype=np.int64)
    for number, ranks in enumerate(members):
        of[ranks] = number
    if (of < 0).any():
        return _chain(of), [f"only some processes call {name}: the others are a team of their own"]
    return _chain(of), []


def _chain(of: NDArray[np.int64]) -> str:
    """A formula that gives each rank its number, by stretches of equal ones."""
    edges = [0, *(np.flatnonzero(np.diff(of)) + 1).tolist(), len(of)]
    text = str(int(of[-1]) + 1)
    for begin, end in list(pairwise(edges))[-2::-1]:
        text = f"{int(of[begin]) + 1} if rank < {end} else {text}"
    return text
