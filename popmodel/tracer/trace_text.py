"""What the numbers in a merged trace are called."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from popmodel.trace.calls import FOUND_NOTHING
from popmodel.trace.codes import Event
from popmodel.trace.paraver.render import Renderer
from popmodel.trace.paraver.writer import header_lines, packed
from popmodel.tracer.conversion import Conversion
from popmodel.tracer.events import PAIR, STATE
from popmodel.tracer.messages import MESSAGE
from popmodel.tracer.records import INCOMPLETE, known_calls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from popmodel.tracer.identities import Functions, Names, Sites


def names_of_values(
    called: NDArray[np.int64], functions: Functions, names: Names, sites: Sites
) -> Mapping[Event, Mapping[int, str]]:
    """Names of the values of events that are others in every run."""
    values: dict[Event, dict[int, str]] = {}
    for number in np.flatnonzero(called).tolist():
        call = known_calls()[number]
        of_group = values.setdefault(call.event, {0: "Outside MPI"})
        # Two calls share a number where Extrae has one for both: the plain name is kept.
        of_group.setdefault(call.value, f"MPI_{call.name}")
        if call.may_miss:
            of_group[call.value + INCOMPLETE] = f"MPI_{call.name}{FOUND_NOTHING}"
    running = {0: "End", **dict(enumerate(functions.names, start=1))}
    for event in (Event.OUTLINED, Event.TASK, Event.NEW_TASK):
        values[event] = running
    if any(functions.lines):
        lines = enumerate(zip(functions.lines, functions.names, strict=True), start=1)
        values[Event.OUTLINED_LINE] = {0: "End"} | {
            number: f"{line or '?:0'} ({name})" for number, (line, name) in lines
        }
    if sites.lines:
        values[Event.CALLER] = {0: "End", **dict(enumerate(sites.functions, start=1))}
        values[Event.CALLER_LINE] = {0: "End", **dict(enumerate(sites.lines, start=1))}
    values[Event.USER_REGION] = {0: "End"} | {
        number: text for text, number in names.numbers.items()
    }
    return values


# The text of a merged trace: window by window of time, what all threads have in it.


WINDOW = 1 << 18
"""Rows that are written at a time."""


def write_text(
    done: Conversion, file: BinaryIO, messages: list[tuple[str, int]], *, compressed: bool
) -> None:
    """Write what was converted as a Paraver trace."""
    where, cpus, node_of = _places(done)
    first = done.raw.processes[0].meta
    date = time.strftime("%d/%m/%Y at %H:%M", time.gmtime(first.realtime // 10**9))
    header = header_lines(
        date, f"{done.duration}_ns", cpus, done.threads, node_of, done.communicators.members
    )
    with packed(file) if compressed else nullcontext(file) as out:
        for line in header:
            out.write(line.encode() + b"\n")
        for text in _windows(done, Renderer(where), messages):
            out.write(text)


def _windows(
    done: Conversion, renderer: Renderer, messages: list[tuple[str, int]]
) -> Iterator[bytes]:
    locations = range(int(done.first[-1]))
    of_states = [("states", each) for each in locations if done.spool.count(("states", each))]
    of_events = [("events", each) for each in locations if done.spool.count(("events", each))]
    edges = done.spool.edges([*of_states, *of_events, *messages], WINDOW)
    for number, edge in enumerate(edges, start=1):
        parts = {
            kind: [done.spool.take_before(key, edge) for key in keys]
            for kind, keys in (("s", of_states), ("e", of_events), ("m", messages))
        }
        where = {
            kind: np.repeat([key[1] for key in keys], [len(part) for part in parts[kind]])
            for kind, keys in (("s", of_states), ("e", of_events))
        }
        yield renderer.render(
            np.concatenate([np.empty(0, STATE), *parts["s"]]),
            np.concatenate([np.empty(0, PAIR), *parts["e"]]),
            np.concatenate([np.empty(0, MESSAGE), *parts["m"]]),
            where["s"].astype(np.int64),
            where["e"].astype(np.int64),
        )
        done.tell(0.5 + 0.5 * number / len(edges))


def _places(done: Conversion) -> tuple[list[tuple[int, int, int]], list[int], list[int]]:
    """CPU, process and thread of each location; CPUs of each node; node of each process."""
    hosts: dict[str, int] = {}
    meta_of = {p.rank: p.meta for p in done.raw.processes}
    node_of = [
        hosts.setdefault(meta_of[rank].host, len(hosts)) if rank in meta_of else 0
        for rank in range(done.raw.size)
    ]
    cpus = [0] * len(hosts)
    for rank, node in enumerate(node_of):
        cpus[node] += done.threads[rank]
    free = np.concatenate([[0], np.cumsum(cpus)]).tolist()
    where = []
    for rank, node in enumerate(node_of):
        for thread in range(done.threads[rank]):
            free[node] += 1
            where.append((free[node], rank + 1, thread + 1))
    return where, cpus, node_of


def names_of_rows(done: Conversion) -> list[str]:
    """Names of the threads, for the ``.row`` file."""
    return [
        f"THREAD 1.{rank + 1}.{thread + 1}"
        for rank, count in enumerate(done.threads)
        for thread in range(count)
    ]
