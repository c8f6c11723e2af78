"""How much communication there is: messages by pair and size, calls, and what stays on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.simulator.program import COLLECTIVES, Op
from popmodel.structure.structure import loops_around
from popmodel.traces.calls import by_call, calls_made, lengths_in
from popmodel.traces.tables import walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.structure import Structure
    from popmodel.traces import Trace

MOST_PAIRS = 1 << 14
"""Pairs of a document: that of a thousand processes with a dozen partners each has them all."""

_NS = 1e9
_SENDS = Op.SEND, Op.ISEND
_ARRIVALS = Op.COLLECTIVE, Op.ARRIVE
_HANDS_OUT = COLLECTIVES.index("bcast"), COLLECTIVES.index("scatter")


class Pairs(NamedTuple):
    """Messages from one process to another, added up."""

    # int64[K]: Ranks; ascending by sender, then receiver.
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    # int64[K]: How many, and how much.
    messages: NDArray[np.int64]
    bytes: NDArray[np.int64]
    within: NDArray[np.bool_]  # bool[K]: Whether both are on the same node


def send_operations(program: Program) -> NDArray[np.int64]:
    """Operations that send a message, of a program that is a part of a run too: ascending.

    What forks and joins threads that call MPI (`popmodel.simulator.program_calls`) is none.
    """
    found = np.flatnonzero(np.isin(program.kind, _SENDS))
    if len(program.threads):
        messages, rows = program.messages, program.target[found]
        real = (messages.sender[rows] != messages.receiver[rows]) | (messages.size[rows] > 0)
        found = found[real]
    return found


def sent(program: Program) -> NDArray[np.int64]:
    """Rows of the messages that are sent."""
    rows: NDArray[np.int64] = program.target[send_operations(program)].astype(np.int64)
    return rows


def pairs(program: Program, rows: NDArray[np.int64]) -> Pairs:
    """Add up messages by sender and receiver; threads count as their process."""
    owner = program.owner.astype(np.int64)
    sender = owner[program.messages.sender[rows]]
    receiver = owner[program.messages.receiver[rows]]
    keys, where = np.unique(sender * program.processes + receiver, return_inverse=True)
    messages = np.bincount(where, minlength=len(keys))
    size = np.zeros(len(keys), np.int64)
    np.add.at(size, where, program.messages.size[rows])
    first, second = keys // program.processes, keys % program.processes
    return Pairs(first, second, messages, size, program.nodes[first] == program.nodes[second])


def gathered(found: Pairs, processes: int, most: int = MOST_PAIRS) -> tuple[int, Pairs]:
    """Take neighbouring ranks together until there are at most so many pairs."""
    each = 1
    made = found
    while len(made.sender) > most and each < processes:
        each *= 2
        groups = -(-processes // each)
        keys = (found.sender // each * groups + found.receiver // each) * 2 + found.within
        keys, where = np.unique(keys, return_inverse=True)
        messages, size = np.zeros((2, len(keys)), np.int64)
        np.add.at(messages, where, found.messages)
        np.add.at(size, where, found.bytes)
        first, second = keys // 2 // groups * each, keys // 2 % groups * each
        made = Pairs(first, second, messages, size, keys % 2 == 1)
    return each, made


def by_size(program: Program, rows: NDArray[np.int64]) -> list[dict[str, int]]:
    """Messages by size: from, below (powers of two; 0 is a class of its own), messages, bytes."""
    sizes = program.messages.size[rows].astype(np.int64)
    power = np.frexp(sizes.astype(np.float64))[1]  # 2**(power - 1) <= size < 2**power
    found = []
    for number in np.unique(power).tolist():
        mine = sizes[power == number]
        edges = {"from": (1 << number) >> 1, "below": 1 << number}
        found.append({**edges, "messages": len(mine), "bytes": int(mine.sum())})
    return found


def given(program: Program) -> NDArray[np.int64]:
    """Bytes that each operation puts in: its message, or its part of a collective: int64[N].

    Of a rooted collective that hands out, the root gives all; else every member gives its own.
    """
    found = np.zeros(program.operations, np.int64)
    sends = np.isin(program.kind, _SENDS)
    found[sends] = program.messages.size[program.target[sends]]
    arrives = np.flatnonzero(np.isin(program.kind, _ARRIVALS))
    if not len(arrives):
        return found
    every = program.collectives
    rows = program.target[arrives]
    sequence = np.searchsorted(program.offsets, arrives, side="right") - 1
    is_root = every.root[rows] == sequence
    hands_out = np.isin(every.kind[rows], _HANDS_OUT) & (every.root[rows] >= 0)
    others = np.where(hands_out, 0, every.sent[rows])
    found[arrives] = np.where(is_root, every.root_sent[rows], others)
    if len(program.uneven.operation):
        found[program.uneven.operation] = program.uneven.sent
    return found


def uses(
    program: Program, made: Mapping[str, int], time_in: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Calls by name, those that send most first: how many, bytes and time (s) of all processes."""
    amount = given(program)
    code = program.call_code[program.call]
    arrives = np.isin(program.kind, (*_ARRIVALS, Op.WAIT_COLLECTIVE))
    numbers = {name: number for number, name in enumerate(program.call_name)}
    found = []
    for name, calls in made.items():
        mine = code == numbers.get(name, -1)
        collective = np.isin(program.kind[mine], _ARRIVALS).any() and arrives[mine].all()
        sums = {"calls": calls, "bytes": int(amount[mine].sum()), "time": time_in.get(name)}
        found.append({"name": name, **sums, "collective": bool(collective)})
    return sorted(found, key=lambda use: (-use["bytes"], -use["calls"], use["name"]))


def times(trace: Trace) -> dict[str, float]:
    """Time of all threads in the calls of each name, s; empty where no times were measured."""
    if not trace.timed:
        return {}
    calls = (trace.whole or trace).calls()
    total = np.zeros(len(calls.names))
    for rows in walk(rows=len(calls)):
        spent = lengths_in(trace, rows).time
        total += np.bincount(calls.name[rows], spent, len(calls.names))
    return by_call(calls.names, (total / _NS).tolist())


def sent_in_iterations(structure: Structure) -> dict[str, float] | None:
    """Iterations of a run, and messages and bytes that are sent in each; None without any."""
    if structure.loop is None or len(structure.iterations) < 2:
        return None
    program, events = structure.program, structure.events
    around = loops_around(structure.nest)
    inside = np.array([bool(path) and path[0] is structure.loop for path in around])
    operations = send_operations(program)
    mine = operations[inside[structure.place[events.of_operation[operations]]]]
    size, number = program.messages.size[program.target[mine]], len(structure.iterations) - 1
    each = {"messages": len(mine) / number, "bytes": int(size.sum()) / number}
    return {"iterations": number, **each}


# How many MPI calls a part of a run makes, and how much it computes between them.


def calls_in_part(
    structure: Structure,
    trace: Trace,
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    iterations: float | None = None,
) -> list[dict[str, Any]]:
    """Sum up the MPI calls of which something lies in a part of a run, and their time in it.

    Of those that act also the mean computing before each (s): how granular communication is; and
    the mean bytes that it sends, of a collective what a member contributes at most.
    """
    found = trace.calls()
    number, processes = len(found.names), structure.program.processes
    acts = _acts(structure, begin, end)
    process = np.repeat(trace.process_of_location(), np.diff(found.offsets))
    begin, end = begin[process], end[process]
    held = np.minimum(found.exit, end) - np.maximum(found.entry, begin)
    lengths = np.bincount(found.name, np.maximum(held, 0), number) / _NS
    inside = (found.entry < end) & ((found.exit > begin) | (found.entry >= begin))
    made = calls_made(trace, inside) if trace.whole is None else calls_made(trace)
    time_in = by_call(found.names, lengths.tolist())
    uses = [
        {
            "name": name,
            "calls": calls,
            "per_process": calls / processes,
            "per_iteration": calls / (processes * iterations) if iterations else None,
            "time": time_in.get(name, 0.0) if trace.timed else None,
            **dict(zip(("computing_before", "bytes"), acts.get(name, (None, None)), strict=True)),
        }
        for name, calls in made.items()
    ]
    return sorted(uses, key=lambda use: (-(use["time"] or 0.0), -use["calls"], use["name"]))


def _acts(
    structure: Structure, begin: NDArray[np.int64], end: NDArray[np.int64]
) -> dict[str, tuple[float, float | None]]:
    """Mean computing before the calls that act, and mean bytes that they send, by name."""
    events = structure.events
    begin, end = begin[events.sequence], end[events.sequence]
    inside = (events.begin >= begin) & (events.begin < end) & ~np.asarray(events.is_region)
    names, number = np.asarray(events.name), len(events.names)
    counts = np.bincount(names[inside], minlength=number)
    before = np.bincount(names[inside], events.before[inside], number) / _NS
    event = events.of_operation
    sends = np.isin(structure.program.kind, (*_SENDS, *_ARRIVALS)) & inside[event]
    sending = np.bincount(names[event[sends]], minlength=number)
    sizes = np.bincount(names[event[sends]], given(structure.program)[sends], number)
    return {
        events.names[name]: (
            float(before[name] / counts[name]),
            float(sizes[name] / counts[name]) if sending[name] else None,
        )
        for name in np.flatnonzero(counts).tolist()
    }
