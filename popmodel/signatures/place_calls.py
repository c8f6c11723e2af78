"""What processes call at places of a program: collectives, and stretches of messages.

A stretch of point-to-point calls can be listed where its messages begin and end in it. Collectives
of one kind become one item for all teams of processes that have none in common.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import spread
from popmodel.base.units import format_size
from popmodel.signatures.outline import OutlineMeeting
from popmodel.simulator.program import COLLECTIVES, Op
from popmodel.structure.rank_formulas import colour
from popmodel.structure.structure import leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.simulator import Program
    from popmodel.structure.message_rows import PlaceTable
    from popmodel.structure.structure import Structure

    Team = NDArray[np.int32]

_NOTHING = -1
_ROOTED = ("bcast", "reduce", "gather", "scatter")
_SENDS = (Op.SEND, Op.ISEND)
_MEETS = (Op.COLLECTIVE, Op.ARRIVE)


def operations_of(
    structure: Structure, kinds: Sequence[Op]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the operations of some kinds, and their events."""
    operation = np.flatnonzero(np.isin(structure.program.kind, kinds))
    return operation, structure.events.of_operation[operation]


def _operations_in(structure: Structure, event: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the operations of some events; -1 is none."""
    first, event = structure.events.first, event[event >= 0]
    return spread(first[event], first[event + 1] - first[event])[1]


# -- collectives


def meetings(
    structure: Structure, table: PlaceTable, place: int, which: NDArray[np.int64], name: str
) -> tuple[list[OutlineMeeting], list[str]]:
    """Return the collectives that processes call at a place, and what they do not say."""
    program = structure.program
    operation = _operations_in(structure, np.unique(table.event[place][:, which]))
    kind = program.kind[operation]
    rows = np.unique(program.target[operation[np.isin(kind, _MEETS)]]).astype(np.int64)
    notes: list[str] = []
    if (kind == Op.ARRIVE).any():
        notes.append(f"{name} does not wait: written as if it did")
    found = []
    kinds = program.collectives.kind[rows]
    for number in np.unique(kinds).tolist():
        for mine, teams in partitions(program, rows[kinds == number]):
            found.append(_meeting(program, mine, teams, name, notes, place))
    return found, notes


def partitions(
    program: Program, rows: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], list[Team]]]:
    """Divide collectives by who takes part: rows with teams that have no process in common."""
    communicator = program.collectives.communicator[rows]
    teams: dict[bytes, tuple[Team, list[NDArray[np.int64]]]] = {}
    for number in np.unique(communicator).tolist():
        mine = rows[communicator == number]
        ranks = _members(program, mine)
        teams.setdefault(ranks.tobytes(), (ranks, []))[1].append(mine)
    parts: list[list[tuple[Team, NDArray[np.int64]]]] = []
    joined = [(ranks, np.concatenate(several)) for ranks, several in teams.values()]
    for ranks, mine in sorted(joined, key=lambda team: -len(team[1])):
        for part in parts:
            if all(np.intersect1d(ranks, other).size == 0 for other, _ in part):
                part.append((ranks, mine))
                break
        else:
            parts.append([(ranks, mine)])
    return [
        (np.concatenate([mine for _, mine in part]), [ranks for ranks, _ in part]) for part in parts
    ]


def _members(program: Program, rows: NDArray[np.int64]) -> Team:
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


def _meeting(
    program: Program,
    rows: NDArray[np.int64],
    teams: list[Team],
    name: str,
    notes: list[str],
    place: int,
) -> OutlineMeeting:
    """One item for collectives of one kind, in teams without a process in common."""
    collectives = program.collectives
    op = COLLECTIVES[int(collectives.kind[rows[0]])]
    sizes = collectives.part(rows)
    least, most = format_size(float(sizes.min())), format_size(float(sizes.max()))
    if least != most:
        notes.append(f"{name} moves {least} to {most}: the mean is kept")
    root = -1
    if op in _ROOTED:
        of_rank = {int(rank): turn for ranks in teams for turn, rank in enumerate(ranks)}
        roots, often = np.unique(
            [of_rank.get(int(rank), 0) for rank in collectives.root[rows]], return_counts=True
        )
        root = min(int(roots[often.argmax()]), min(map(len, teams)) - 1)
        if len(roots) > 1:
            notes.append(f"{name} has {len(roots)} roots: rank {root} is kept")
    comm = communicator_text(teams, program.processes)
    op = "barrier" if op == "init" else op
    times = -(-len(rows) // len(teams))  # every team as often
    return OutlineMeeting(name, op, float(sizes.mean()), comm, root, times, place)


def communicator_text(teams: Sequence[Team], processes: int) -> str:
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


def collective_bytes(structure: Structure) -> dict[tuple[int, str], float]:
    """Return the bytes of a process in collectives by place and kind, means over executions."""
    program = structure.program
    operation, event = operations_of(structure, _MEETS)
    place = structure.place[event].astype(np.int64)
    pairs = np.unique(np.stack([place, program.target[operation].astype(np.int64)]), axis=1)
    kind, part = program.collectives.kind[pairs[1]].astype(np.int64), program.collectives.part()
    found = {}
    for number, of_kind in np.unique(np.stack([pairs[0], kind]), axis=1).T.tolist():
        rows = pairs[1][(pairs[0] == number) & (kind == of_kind)]
        found[number, COLLECTIVES[of_kind]] = float(part[rows].mean())
    return found


# -- messages


def segments(structure: Structure) -> NDArray[np.int64]:
    """Number the stretches of point-to-point calls of a leaf: int64[places]; -1 for other places.

    Collectives and regions end them.
    """
    program, events = structure.program, structure.events
    other = np.zeros(len(structure.places), dtype=bool)  # whether there is more than messages
    other[structure.place[events.of_operation[program.kind >= Op.COLLECTIVE]]] = True
    other[structure.place[events.is_region]] = True
    found = np.full(len(other), _NOTHING, dtype=np.int64)
    number = 0
    for leaf in leaves(structure.nest):
        number += 1
        for place in leaf.places:
            if other[place]:
                number += 1
            else:
                found[place] = number
    return found


def messages_at(structure: Structure, events: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return the messages sent in events, which are given for each place, -1 for none."""
    operation = _operations_in(structure, np.concatenate([each.ravel() for each in events]))
    sends = np.isin(structure.program.kind[operation], _SENDS)
    return structure.program.target[operation[sends]]


def within_stretches(structure: Structure) -> tuple[Structure, NDArray[np.bool_]]:
    """Leave out messages that begin in one stretch and end in another: bool[M] says which."""
    program, events = structure.program, structure.events
    segment = segments(structure)
    executions = int(structure.execution.max(initial=0)) + 1

    def stretch(*kinds: Op) -> NDArray[np.int64]:
        event = events.of_messages(program, *kinds)
        number = np.full(len(event), _NOTHING, dtype=np.int64)
        known = event >= 0
        at = event[known]
        number[known] = segment[structure.place[at]] * executions + structure.execution[at]
        return number

    sent, begun = stretch(*_SENDS), stretch(Op.ISEND)
    crossing = (sent != stretch(Op.POST, Op.RECEIVE)) | (begun != stretch(Op.WAIT_SEND))
    crossing |= sent != stretch(Op.WAIT_RECEIVE, Op.RECEIVE)
    rows = np.flatnonzero(program.kind < Op.COLLECTIVE)
    kept = np.ones(program.operations, dtype=bool)
    kept[rows[crossing[program.target[rows]]]] = False
    passed = np.concatenate([[0], np.cumsum(kept)])
    whole = replace(
        program,
        offsets=passed[program.offsets],
        kind=program.kind[kept],
        target=program.target[kept],
        burst=program.burst[kept],  # of what is computed the events know
        call=program.call[kept],
    )
    first = passed[events.first]
    return replace(structure, program=whole, events=replace(events, first=first)), crossing


def open_before(structure: Structure) -> NDArray[np.bool_]:
    """Whether a request is open before a place, or a message on its way: bool[places].

    A list must not be cut there: it would hold one end of a message only.
    """
    program, events = structure.program, structure.events
    index = np.zeros(len(structure.places), dtype=np.int64)
    total = 0
    for leaf in leaves(structure.nest):
        index[list(leaf.places)] = np.arange(total, total + len(leaf.places))
        total += len(leaf.places) + 1
    change = np.zeros(total + 2, dtype=np.int64)
    for first, last in (
        ((Op.POST,), (Op.WAIT_RECEIVE,)),
        ((Op.ISEND,), (Op.WAIT_SEND,)),
        (_SENDS, (Op.POST, Op.RECEIVE)),
        (_SENDS, (Op.WAIT_RECEIVE, Op.RECEIVE)),
    ):
        begin, end = (events.of_messages(program, *kinds) for kinds in (first, last))
        both = (begin >= 0) & (end >= 0)
        here, there = index[structure.place[begin[both]]], index[structure.place[end[both]]]
        np.add.at(change, np.minimum(here, there) + 1, 1)
        np.add.at(change, np.maximum(here, there) + 1, -1)
    return np.asarray((np.cumsum(change) > 0)[index])
