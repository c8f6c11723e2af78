"""Collectives of a place as items of a signature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.expressions import parse
from popmodel.signature.outline import OutlineMeeting
from popmodel.simulator.program import COLLECTIVES, Op
from popmodel.structure.rank_formulas import colour
from popmodel.units import format_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Program
    from popmodel.structure.message_rows import PlaceTable
    from popmodel.structure.structure import Structure


_ROOTED = ("bcast", "reduce", "gather", "scatter")


def meetings(
    structure: Structure, table: PlaceTable, place: int, which: NDArray[np.int64], name: str
) -> tuple[tuple[OutlineMeeting, ...], tuple[str, ...]]:
    """Return the collectives that processes call at a place, and what they do not say."""
    program = structure.program
    event = table.event[place][:, which]
    rows = _collectives(structure, np.unique(event[event >= 0]))
    notes: list[str] = []
    if (program.kind[_operations(structure, event)] == Op.ARRIVE).any():
        notes.append(f"{name} does not wait: written as if it did")
    found: list[OutlineMeeting] = []
    kinds = program.collectives.kind[rows]
    for kind in np.unique(kinds).tolist():
        parts = _partitions(program, rows[kinds == kind])
        found += [_meeting(program, *part, name, notes, place) for part in parts]
    return tuple(found), tuple(notes)


def _partitions(
    program: Program, rows: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], list[NDArray[np.int32]]]]:
    """Divide collectives by who takes part: rows with teams that have no process in common."""
    number = program.collectives.communicator[rows]
    teams: dict[bytes, tuple[NDArray[np.int32], list[NDArray[np.int64]]]] = {}
    for one in np.unique(number).tolist():
        mine = rows[number == one]
        ranks = _members(program, mine)
        teams.setdefault(ranks.tobytes(), (ranks, []))[1].append(mine)
    partitions: list[list[tuple[NDArray[np.int32], NDArray[np.int64]]]] = []
    joined = [(ranks, np.concatenate(several)) for ranks, several in teams.values()]
    for ranks, mine in sorted(joined, key=lambda team: -len(team[1])):
        for partition in partitions:
            if all(np.intersect1d(ranks, other).size == 0 for other, _ in partition):
                partition.append((ranks, mine))
                break
        else:
            partitions.append([(ranks, mine)])
    return [
        (np.concatenate([mine for _, mine in each]), [ranks for ranks, _ in each])
        for each in partitions
    ]


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


def _meeting(
    program: Program,
    rows: NDArray[np.int64],
    teams: list[NDArray[np.int32]],
    name: str,
    notes: list[str],
    place: int,
) -> OutlineMeeting:
    """One item for collectives of one kind, in teams without a process in common."""
    many = program.collectives
    op = COLLECTIVES[int(many.kind[rows[0]])]
    sizes = many.part(rows)
    least, most = format_size(float(sizes.min())), format_size(float(sizes.max()))
    if least != most:
        notes.append(f"{name} moves {least} to {most}: the mean is kept")
    root = -1
    if op in _ROOTED:
        of_rank = {int(rank): turn for ranks in teams for turn, rank in enumerate(ranks)}
        roots, often = np.unique(
            [of_rank.get(int(rank), 0) for rank in many.root[rows]], return_counts=True
        )
        root = min(int(roots[often.argmax()]), min(map(len, teams)) - 1)
        if len(roots) > 1:
            notes.append(f"{name} has {len(roots)} roots: rank {root} is kept")
    comm = _communicator(teams, program.processes)
    op = "barrier" if op == "init" else op
    times = -(-len(rows) // len(teams))  # every team as often
    return OutlineMeeting(name, op, float(sizes.mean()), comm, root, times, place)


def _members(program: Program, rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """Ranks of the communicator of some collectives: as listed, else those that take part."""
    number = int(program.collectives.communicator[rows[0]])
    size = int(program.collectives.members[rows[0]])
    listed = program.communicators.get(number)
    if listed is not None:
        return listed  # at the edge of a window not all of them call it
    if size == program.processes or not number:
        return np.arange(program.processes, dtype=np.int32)
    about = np.flatnonzero((program.kind >= Op.COLLECTIVE) & (program.target == rows[0]))
    ranks = np.searchsorted(program.offsets, about, side="right") - 1
    return np.unique(ranks).astype(np.int32)


def _communicator(teams: list[NDArray[np.int32]], processes: int) -> str:
    """Who takes part together: all, or a formula of the rank that gives each team a number."""
    if len(teams[0]) == processes:
        return "world"
    formula = colour(teams, processes)
    if formula is not None:
        return formula
    of = np.full(processes, -1, dtype=np.int64)
    for number, ranks in enumerate(teams):
        of[ranks] = number
    edges = [0, *(np.flatnonzero(np.diff(of)) + 1).tolist(), len(of)]
    text = str(int(of[-1]))
    for begin, end in list(pairwise(edges))[-2::-1]:
        text = f"{int(of[begin])} if rank < {end} else {text}"
    return text


# One place for a collective whose members call it at several.
#
# A root that calls MPI_Bcast in one line and the others that call it in another one pass two places
# of the program, but it is one collective: a signature has one item for it.


def met(structure: Structure) -> Structure:
    """Return a structure in which members of a collective pass the same place, where they can.

    They can where these places are in one leaf, and the order of all events of a process stays.
    """
    program, events = structure.program, structure.events
    arrives = np.flatnonzero(np.isin(program.kind, (Op.COLLECTIVE, Op.ARRIVE)))
    if not len(arrives):
        return structure
    event = np.searchsorted(events.first, arrives, side="right") - 1
    place = structure.place[event].astype(np.int64)
    leaf = np.array([one.leaf for one in structure.places], dtype=np.int64)
    goal = np.full(len(program.collectives), len(leaf), dtype=np.int64)
    np.minimum.at(goal, program.target[arrives], place)
    wanted = goal[program.target[arrives]]
    same = (wanted != place) & (leaf[wanted] == leaf[place])
    moved = structure.place.copy()
    for one in np.unique(place[same]).tolist():
        mine = place == one
        goals = np.unique(wanted[mine])
        if len(goals) == 1 and same[mine].all():
            moved[event[mine]] = goals[0]
    return replace(structure, place=moved) if _in_order(structure, moved, leaf) else structure


def _in_order(structure: Structure, place: NDArray[np.int32], leaf: NDArray[np.int64]) -> bool:
    """Whether every process passes the places of each execution of a leaf in order."""
    sequence = structure.events.sequence
    together = (
        (sequence[1:] == sequence[:-1])
        & (leaf[place[1:]] == leaf[place[:-1]])
        & (structure.execution[1:] == structure.execution[:-1])
    )
    return bool((place[1:] > place[:-1])[together].all())


# Whether every message of a list has both ends, on a grid of any size.
#
# Rows that name neighbours are read off one number of processes, where two neighbours may be the
# same
# process. On a larger grid they are not, and what is sent to one may be awaited from the other.


_SENDS, _RECEIVES = ("send", "isend", "sendrecv"), ("recv", "irecv", "sendrecv")
_OPENS = ("isend", "irecv")
_REPEATED = 3  # repetitions that show how rows go on


def all_meet(rows: Sequence[Mapping[str, Any]], dims: Sequence[int]) -> bool:
    """Whether every message has both ends, of the same size, and every request one."""
    processes = int(np.prod(dims))
    names = _names(dims)
    sides = _CollectiveSide({}, {}), _CollectiveSide({}, {})
    opened = np.zeros(processes, dtype=np.int64)
    for row in _flat(rows):
        on = _on(row, names)
        if row["do"] in _OPENS:
            opened += on
        elif row["do"] == "waitall":
            opened[on] = 0
        elif row["do"] == "wait":
            opened[on] -= 1
            if (opened < 0).any():
                return False
        for do, key, side in ((_SENDS, "to", sides[0]), (_RECEIVES, "from", sides[1])):
            if row["do"] in do:
                rank, partner = _pairs(row[key], on, names)
                ends = (rank, partner) if key == "to" else (partner, rank)
                side.add(row, ends[0] * processes + ends[1])
    return not opened.any() and sides[0].meets(sides[1])


def messages_of(rows: Sequence[Mapping[str, Any]], dims: Sequence[int]) -> int:
    """Return how many messages all processes send with some extents of the grid."""
    names = _names(dims)
    found = 0
    for row in rows:
        if "calls" in row:
            found += round(float(row["repeat"])) * messages_of(row["calls"], dims)
        elif row["do"] in _SENDS:
            found += len(_pairs(row["to"], _on(row, names), names)[0])
    return found


def _names(dims: Sequence[int]) -> dict[str, Any]:
    processes = int(np.prod(dims))
    names: dict[str, Any] = {f"P{axis}": float(extent) for axis, extent in enumerate(dims)}
    return names | {"rank": np.arange(processes, dtype=np.float64), "P": float(processes)}


class _CollectiveSide(NamedTuple):
    """Ends of messages by tag: pairs of ranks, and sizes as they are written, in order."""

    pairs: dict[str, list[NDArray[np.int64]]]
    sizes: dict[str, list[str]]

    def add(self, row: Mapping[str, Any], pairs: NDArray[np.int64]) -> None:
        tag = str(row.get("tag", 0))
        self.pairs.setdefault(tag, []).append(pairs)
        self.sizes.setdefault(tag, []).append(str(row["bytes"]) if "bytes" in row else "")

    def meets(self, other: _CollectiveSide) -> bool:
        """Whether the k-th message of a pair is sent and received, and as large where both say."""
        if self.pairs.keys() != other.pairs.keys():
            return False
        known = {"": 0}
        for tag in self.pairs:
            columns = []
            for side in (self, other):
                each = side.pairs[tag]
                codes = [known.setdefault(size, len(known)) for size in side.sizes[tag]]
                size = np.repeat(codes, [len(one) for one in each])
                pair = np.concatenate(each)
                order = np.argsort(pair, kind="stable")
                columns.append((pair[order], size[order]))
            (sent, one), (received, two) = columns
            if not np.array_equal(sent, received):
                return False
            if ((one != two) & (one > 0) & (two > 0)).any():
                return False
        return True


def at_once(rows: Sequence[dict[str, Any]], processes: int) -> list[dict[str, Any]] | None:
    """Write waits for the only open request as waits for all; None if there is another one.

    Then a list may open more requests for larger grids.
    """
    opened = np.zeros(processes, dtype=np.int64)
    found = []
    for row in rows:
        if "calls" in row:
            inner = at_once(row["calls"], processes)
            if inner is None or opened.any():
                return None
            found.append({**row, "calls": inner})
            continue
        on = _on(row, {"rank": np.arange(processes, dtype=np.float64), "P": float(processes)})
        if row["do"] in _OPENS:
            opened += on
        elif row["do"] == "waitall":
            opened[on] = 0
        elif row["do"] == "wait":
            if "request" in row or (opened[on] != 1).any():
                return None
            opened[on] = 0
            row = {**row, "do": "waitall"}
        found.append(row)
    return None if opened.any() else found


def _flat(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Rows in the order in which they are carried out; many repetitions as a few of them."""
    for row in rows:
        if "calls" in row:
            for _ in range(min(round(float(row["repeat"])), _REPEATED)):
                yield from _flat(row["calls"])
        else:
            yield row


def _on(row: Mapping[str, Any], names: Mapping[str, Any]) -> NDArray[np.bool_]:
    processes = len(names["rank"])
    on = row.get("on")
    found = np.ones(processes, dtype=bool)
    if isinstance(on, list):
        found[:] = False
        found[on] = True
    elif on is not None:
        found &= np.asarray(parse(str(on)).evaluate(names), dtype=np.float64) != 0
    return found


def _pairs(
    value: Any, on: NDArray[np.bool_], names: Mapping[str, Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ranks that have a partner, and these."""
    processes = len(on)
    listed = isinstance(value, list)
    found = np.asarray(value if listed else parse(str(value)).evaluate(names), dtype=np.float64)
    partner = np.rint(np.broadcast_to(found, processes)).astype(np.int64)
    inside = np.flatnonzero(on & (partner >= 0) & (partner < processes))
    return inside, partner[inside]
