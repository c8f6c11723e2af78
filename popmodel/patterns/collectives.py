"""Collectives by place: which, how much, and who takes part together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.patterns.formulas import colour
from popmodel.patterns.pattern import Pattern
from popmodel.patterns.traffic import given
from popmodel.simulator.program import COLLECTIVES, Op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.structure import Structure


def collectives(structure: Structure) -> list[Pattern]:
    """One pattern for each place of collectives, in the order of the places.

    A collective that its members call at several places, such as both branches of a condition, is
    one of the first of these. Its `messages` are the collective operations, one for each
    communicator that carries it out; its `bytes` what all members give.
    """
    program, events = structure.program, structure.events
    arrives = np.flatnonzero(np.isin(program.kind, (Op.COLLECTIVE, Op.ARRIVE)))
    of = np.searchsorted(events.first, arrives, side="right") - 1
    called, row = structure.place[of], program.target[arrives]
    first = np.full(len(program.collectives), len(structure.places), called.dtype)
    np.minimum.at(first, row, called)
    place = first[row]
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(structure.places) + 1))
    amount = given(program)
    found = []
    for number in range(len(structure.places)):
        mine = order[bounds[number] : bounds[number + 1]]
        if len(mine):
            here = mine[called[mine] == number]
            passes = len(np.unique(structure.execution[of[here]]))
            places = tuple(np.unique(called[mine]).tolist())
            found.append(_pattern(structure, places, arrives[mine], row[mine], passes, amount))
    return found


def _pattern(
    structure: Structure,
    places: tuple[int, ...],
    operations: NDArray[np.int64],
    rows: NDArray[np.int32],
    passes: int,
    amount: NDArray[np.int64],
) -> Pattern:
    program = structure.program
    every = program.collectives
    used = np.unique(rows)
    kinds = [COLLECTIVES[kind] for kind in np.unique(every.kind[used])]
    sizes = np.maximum(every.sent[used], every.received[used])
    numbers = np.unique(every.communicator[used])
    members = [_members(program, int(number)) for number in numbers]
    roots = np.unique(every.root[used])
    facts: dict[str, Any] = {
        "op": ", ".join(kinds),
        "call": structure.places[places[0]].name,
        "blocking": bool(np.all(program.kind[operations] == Op.COLLECTIVE)),
        "bytes_min": int(sizes.min()),
        "bytes_max": int(sizes.max()),
        "members": sorted({len(each) for each in members}),
        "comm": _comm(members, program.processes),
    }
    if roots.max() >= 0:
        facts["roots"] = roots.tolist()
    # a member each time: no process is missing at one of the executions
    whole = len(operations) == passes * sum(map(len, members))
    checks = [
        (len(kinds) > 1, "different collectives"),
        (sizes.min() != sizes.max(), "sizes differ"),
        (len(roots) > 1 and len(members) == 1, "roots differ"),
        (not whole, "some processes are not always there"),
        (facts["comm"] is None, "no formula tells the communicators apart"),
        (_uneven(program, operations), "sizes differ between members"),
    ]
    why = [text for holds, text in checks if holds]
    return Pattern(
        kind="collective",
        places=places,
        executions=passes,
        messages=len(used),
        bytes=int(amount[operations].sum()),
        facts=facts,
        exact=not why,
        why=", ".join(why),
    )


def _members(program: Program, communicator: int) -> NDArray[np.int32]:
    if communicator in program.communicators:
        members = program.communicators[communicator]
        return members[members < program.processes]
    return np.arange(program.processes, dtype=np.int32)


def _comm(members: Sequence[NDArray[np.int32]], processes: int) -> str | list[list[int]] | None:
    """``all``, a formula of the rank whose value is the colour, or a list of single groups."""
    if len(members) == 1 and len(members[0]) == processes:
        return "all"
    held = np.concatenate(members)
    if len(np.unique(held)) == len(held) and (text := colour(members, processes)) is not None:
        return text
    return None


def _uneven(program: Program, operations: NDArray[np.int64]) -> bool:
    at = np.searchsorted(program.uneven.operation, operations)
    at = np.minimum(at, max(len(program.uneven.operation) - 1, 0))
    return bool(len(program.uneven.operation)) and bool(
        np.any(program.uneven.operation[at] == operations)
    )
