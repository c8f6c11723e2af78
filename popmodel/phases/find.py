"""From the structure of a run to its phases."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from popmodel.arrays import distinct
from popmodel.efficiency.measure import UsefulTimes, useful_times
from popmodel.phases.bursts import Stretches, bursts, regions, settled
from popmodel.phases.counters import counted, measured
from popmodel.phases.phase import SEVERAL, SMALL, Phase, Phases, PhaseTeam
from popmodel.phases.places import homes, name_of_burst, told_apart
from popmodel.simulator.calls import sequence_calls
from popmodel.trace.intervals import Intervals, alone
from popmodel.trace.processors import delays
from popmodel.trace.states import TRACING_DISABLED
from popmodel.units import count, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace

_NS = 1e9
Limits: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int64]]"
"""Begin and end of what is analysed, on each sequence, ns."""


def limits_of(structure: Structure, trace: Trace) -> Limits:
    """Those of a whole trace, or of a window of one."""
    sequences = structure.program.sequences
    return np.full(sequences, trace.begin, np.int64), np.full(sequences, trace.end, np.int64)


def phases(
    structure: Structure,
    trace: Trace,
    window: Trace | None = None,
    limits: Limits | None = None,
    most: int | None = None,
) -> Phases:
    """Find the phases of a run."""
    part = trace if window is None or limits is not None else window
    serial, parallel = settled(structure, bursts(structure, trace)), regions(structure)
    begin, end = limits_of(structure, part) if limits is None else limits
    if limits is not None or window is not None:
        serial, parallel = (each.within(begin, end) for each in (serial, parallel))
        if trace.timed:
            serial = _recounted(structure, trace, serial)
    useful = useful_times(part) if trace.timed else None
    serial_places, parallel_places, small = _summed_up(serial, parallel, most)
    found, notes = _serial(structure, part, serial, serial_places, useful)
    others, more = _parallel(structure, part, parallel, parallel_places, useful)
    found = _in_order(structure, [*found, *others])
    total = sum(float(phase.wall.sum()) for phase in found)
    return Phases(
        tuple(_named(structure, found, total)),
        structure.program.processes,
        structure.program.sequences,
        begin,
        end,
        tuple(dict.fromkeys((*notes, *more, *small))),
    )


def _summed_up(
    serial: Stretches, parallel: Stretches, most: int | None
) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[str, ...]]:
    """Place of the phase that each row is told in, and a note where small ones are summed up."""
    rows = (serial, parallel)
    number = sum(len(distinct(each.place)) for each in rows)
    if most is None or number <= most:
        return serial.place, parallel.place, ()
    least = SMALL * sum(float(each.wall.sum()) for each in rows)
    places = [
        np.where(
            (np.bincount(each.place + 1, each.wall) < least)[each.place + 1], SEVERAL, each.place
        )
        for each in rows
    ]
    small = sum(
        len(distinct(each.place[place == SEVERAL]))
        for each, place in zip(rows, places, strict=True)
    )
    note = (
        f"of {count(number)} phases {count(small)} are below {100 * SMALL:g} % of all computing: "
        "they are summed up, bursts and regions apart"
    )
    return places[0], places[1], (note,)


def _recounted(structure: Structure, trace: Trace, rows: Stretches) -> Stretches:
    """Bursts of which those that are cut have what is computed inside: calls may lie in them."""
    cut = np.flatnonzero(rows.cut)
    calls, disabled = trace.calls(), trace.records.in_state(TRACING_DISABLED)
    outside = Intervals.of(calls.offsets, calls.entry, calls.exit)
    if len(disabled):
        outside = alone([outside, disabled], [])
    begin, end = rows.begin[cut], rows.end[cut]
    held = outside.inside(_locations(structure, trace)[rows.sequence[cut]], begin, end)
    wall = rows.wall.copy()
    wall[cut] = (end - begin - held) / _NS
    return replace(rows, wall=wall)


def _serial(
    structure: Structure,
    trace: Trace,
    rows: Stretches,
    places: NDArray[np.int32],
    useful: UsefulTimes | None,
) -> tuple[list[Phase], tuple[str, ...]]:
    """Phases of bursts."""
    columns: dict[str, NDArray[np.float64]] = {"useful": rows.wall}
    notes: tuple[str, ...] = ()
    if useful is not None:
        location = _locations(structure, trace)[rows.sequence]
        waited = delays(trace).inside(location, rows.begin, rows.end)
        running = useful.running.inside(location, rows.begin, rows.end)
        running = np.maximum(running - waited, 0) / _NS
        counts, notes = counted(trace, useful.running, location, rows.begin, rows.end)
        columns = {"useful": running, **counts}
    return [
        _phase(
            structure,
            rows.at(mine),
            "serial",
            _smaller(rows.place[mine], "burst")
            if place == SEVERAL
            else name_of_burst(structure, rows.previous[mine], place),
            place,
            {name: values[mine] for name, values in columns.items()},
        )
        for place, mine in _by_place(places)
    ], notes


def _parallel(
    structure: Structure,
    trace: Trace,
    rows: Stretches,
    places: NDArray[np.int32],
    useful: UsefulTimes | None,
) -> tuple[list[Phase], tuple[str, ...]]:
    """Phases of parallel regions."""
    if useful is None or not len(rows):
        return [], ()
    owner = structure.program.owner.astype(np.int64)[rows.sequence]
    found = measured(trace, rows, owner, useful)
    summed = np.add.reduceat(found.team.useful, found.team.offsets[:-1])
    columns = {"useful": summed, **found.counts}
    return [
        _phase(
            structure,
            rows.at(mine),
            "parallel",
            _smaller(rows.place[mine], "region")
            if place == SEVERAL
            else structure.places[place].name,
            place,
            {name: values[mine] for name, values in columns.items()},
            found.team.at(mine),
        )
        for place, mine in _by_place(places)
    ], found.notes


def _smaller(places: NDArray[np.int32], noun: str) -> str:
    return plural(len(distinct(places)), f"smaller {noun}")


def _phase(
    structure: Structure,
    rows: Stretches,
    kind: str,
    name: str,
    place: int,
    columns: dict[str, NDArray[np.float64]],
    team: PhaseTeam | None = None,
) -> Phase:
    return Phase(
        name=name,
        kind="parallel" if kind == "parallel" else "serial",
        place=place,
        path=(),
        part="",
        sequences=structure.program.sequences,
        sequence=rows.sequence,
        execution=rows.execution,
        begin=rows.begin,
        wall=rows.wall,
        useful=columns["useful"],
        instructions=columns.get("instructions"),
        cycles=columns.get("cycles"),
        cut=rows.cut,
        team=team,
        places=rows.place if place == SEVERAL else None,
    )


def _by_place(places: NDArray[np.int32]) -> list[tuple[int, NDArray[np.int64]]]:
    """Rows of each place, by its number."""
    order = np.argsort(places, kind="stable")
    found, first = np.unique(places[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, first[1:]), strict=True)) if len(order) else []


def _locations(structure: Structure, trace: Trace) -> NDArray[np.int64]:
    """Thread of each sequence."""
    if not len(structure.program.threads):
        return np.asarray(trace.process_offsets[:-1], np.int64)
    return np.asarray(sequence_calls(trace.whole or trace).location, np.int64)


def _in_order(structure: Structure, found: list[Phase]) -> list[Phase]:
    """Phases in the order of the program, with where they are in it."""
    known = homes(structure)
    placed = [
        replace(phase, path=known[phase.place].path, part=known[phase.place].part)
        for phase in found
    ]
    return sorted(placed, key=lambda phase: (phase.path, phase.place, phase.kind == "parallel"))


def _named(structure: Structure, found: list[Phase], total: float) -> list[Phase]:
    """Phases whose names are told apart; those that do not matter are marked."""
    inside = [structure.places[phase.place].inside if phase.place >= 0 else "" for phase in found]
    return [
        replace(
            phase,
            name=name,
            small=phase.place == SEVERAL or float(phase.wall.sum()) < SMALL * total,
        )
        for phase, name in zip(
            found, told_apart([phase.name for phase in found], inside), strict=True
        )
    ]
