"""The document of the structure of a run, schema ``popmodel/structure/1``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.plain import document
from popmodel.structure.activities import ACTIVITIES, PhaseTimeline, timeline
from popmodel.structure.structure import Leaf, with_common_places
from popmodel.traces.selection import program_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.structure import FoundLoop, Structure, StructureFocus
    from popmodel.traces import Trace

_NS = 1e9
_BINS = 480
_ROWS = 64
"""Processes that are drawn; of more, every second, third, ... one."""
_ALIKE = 1.1
_AROUND = 0.25
"""Part of the focus that is drawn before it and after it."""
LETTERS = ".crpgo"
"""Of `ACTIVITIES`: nothing, computing, region, point to point, group, other."""


def described(
    path: str, structure: Structure, trace: Trace, focus: StructureFocus, caveats: Sequence[str]
) -> dict[str, Any]:
    """Describe the structure of a run as plain data."""
    count = len(structure.iterations) - 1
    has = structure.loop is not None and count > 0
    return document(
        "popmodel/structure/1",
        trace=path,
        processes=structure.program.processes,
        threads=int(trace.locations),
        timed=trace.timed,
        begin=trace.begin / _NS,
        end=trace.end / _NS,
        caveats=caveats,
        notes=structure.notes,
        parts=[
            {
                "kind": part.kind,
                "begin": part.begin / _NS,
                "end": part.end / _NS,
                "iterations": part.iterations,
            }
            for part in structure.parts
        ],
        period=structure.period,
        confidence=structure.confidence,
        foa={
            "begin": focus.begin / _NS,
            "end": focus.end / _NS,
            "first": focus.first + 1 if focus.last >= focus.first else None,
            "last": focus.last + 1 if focus.last >= focus.first else None,
            "why": focus.why,
        },
        iterations=_iterations(structure) if has else None,
        nest=_nest(structure, trace),
        timelines=_timelines(structure, trace, focus) if trace.timed else [],
    )


def _iterations(structure: Structure) -> dict[str, Any]:
    """When iterations begin (on the process that does so last) and how long they last."""
    begins = structure.iterations.max(axis=1)
    lasting = np.diff(structure.iterations, axis=0).mean(axis=1) / _NS
    return {
        "begins": (begins / _NS).tolist(),
        "kinds": structure.kinds,
        "duration": {
            "median": float(np.median(lasting)),
            "min": float(lasting.min()),
            "max": float(lasting.max()),
        },
    }


def _nest(structure: Structure, trace: Trace) -> list[dict[str, Any]]:
    """Loops, places and what part of the run's time they take; the body of a loop follows it."""
    events = structure.events
    lasting = events.before + (events.end - events.begin) * (
        events.is_region | np.full(len(events.begin), trace.timed)
    )
    # What comes before MPI is initialised is the launcher's doing.
    starts = [name.startswith(("MPI_Init", "MPI_Session_init")) for name in events.names]
    lasting = np.where(np.array(starts, bool)[events.name], 0.0, lasting)
    spent = np.bincount(structure.place, lasting, len(structure.places))
    total = float(spent.sum() + events.after.sum()) or 1.0
    # A collective that its members call at several places is one call of an iteration.
    called = np.bincount(with_common_places(structure).place, minlength=len(structure.places)) > 0

    def share(each: Leaf | FoundLoop) -> float:
        if isinstance(each, Leaf):
            return float(spent[list(each.places)].sum()) / total
        return sum(map(share, each.body))

    def lines(nest: Sequence[Leaf | FoundLoop], depth: int) -> Iterator[dict[str, Any]]:
        for each in nest:
            about = {"depth": depth, "share": share(each)}
            if isinstance(each, Leaf):
                names = [structure.places[place].name for place in each.places if called[place]]
                calls = [{"name": name, "number": len(list(same))} for name, same in groupby(names)]
                yield {"kind": "places", **about, "calls": calls}
                continue
            yield {
                "kind": "loop",
                **about,
                "iterative": each is structure.loop,
                "count": each.count,
                "least": min(each.counts, default=0),
                "most": max(each.counts, default=0),
            }
            yield from lines(each.body, depth + 1)

    return list(lines(structure.nest, 0))


def _timelines(structure: Structure, trace: Trace, focus: StructureFocus) -> list[dict[str, Any]]:
    """The program (MPI_Init to MPI_Finalize), and the focus with what is around it."""
    program = program_of(trace)
    processes = structure.program.processes
    shown = np.arange(0, processes, -(-processes // _ROWS))
    spans = [("run", program.begin, program.end)]
    if structure.loop is not None:
        around = round(_AROUND * (focus.end - focus.begin))
        begin, end = max(focus.begin - around, trace.begin), min(focus.end + around, trace.end)
        if begin < end and end - begin < (program.end - program.begin) / 2:
            spans.append(("focus", begin, end))
    return [
        _of_span(name, shown, timeline(structure, trace, begin, end, _BINS, shown))
        for name, begin, end in spans
        if begin < end
    ]


def _of_span(name: str, shown: NDArray[np.int64], found: PhaseTimeline) -> dict[str, Any]:
    letters = np.array(list(LETTERS))
    levels, steps = _levels(found.burst)
    return {
        "span": name,
        "begin": float(found.edges[0]),
        "end": float(found.edges[-1]),
        "in_mpi": [round(value, 4) for value in found.in_mpi.tolist()],
        "processes": shown.tolist(),
        "activities": dict(zip(LETTERS, ACTIVITIES, strict=True)),
        "activity": ["".join(row) for row in letters[found.activity].tolist()],
        "durations": levels,
        "duration": ["".join(map(str, row)) for row in steps.tolist()],
    }


def _levels(burst: NDArray[np.float64]) -> tuple[list[float], NDArray[np.int64]]:
    """Times between which bursts are, alike in ratio, and the number of each burst's level.

    Level 0 is no burst, 1 up to the first time, 9 above the eighth. Of bursts that are all about
    equal there is one time, which is theirs.
    """
    some = burst[burst > 0]
    if not some.size:
        return [], np.zeros(burst.shape, np.int64)
    low, high = np.quantile(some, (0.05, 0.99))
    if high < _ALIKE * low:
        return [float(np.median(some))], (burst > 0).astype(np.int64)
    levels = np.geomspace(max(low, high / 1e4), max(high, 1e-9), 8)
    return levels.tolist(), np.where(burst > 0, np.searchsorted(levels, burst) + 1, 0)
