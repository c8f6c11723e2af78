"""The computing of a run by where it stands: its phases.

A *burst* is what a sequence computes between two calls of MPI or parallel regions. Bursts before
the same place of the program are executions of one *phase*; each parallel region is one as well.
Rows are kept sparse: a place that few processes pass often costs what it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from popmodel.base.arrays import distinct, quantiles
from popmodel.base.units import count, plural
from popmodel.base.values import dataclass
from popmodel.efficiency.measure import UsefulTimes, useful_times
from popmodel.structure.bursts import (
    PhaseTeam,
    Stretches,
    bursts,
    counted,
    regions,
    settled,
    teams,
)
from popmodel.structure.phase_variation import Imbalance, imbalance
from popmodel.structure.program_events import locations_of
from popmodel.structure.structure import leaves
from popmodel.traces.caveats import delays
from popmodel.traces.codes import TRACING_DISABLED
from popmodel.traces.intervals import alone

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure
    from popmodel.traces import Trace

Kind: TypeAlias = Literal["serial", "parallel"]
Limits: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int64]]"
"""Begin and end of what is analysed, on each sequence, ns."""
Columns: TypeAlias = "dict[str, NDArray[np.float64]]"
SMALL = 1e-3
"""Share of all computing below which a phase does not matter by itself."""
SEVERAL = -2
"""Place of small phases that are summed up as one."""
_NS = 1e9


@dataclass(frozen=True, eq=False)
class Phase:
    """Executions of one burst or parallel region, by sequence and in order."""

    name: str  # What tells it apart: the calls around a burst, or the region
    kind: Kind  # A burst of one thread, or a parallel region
    # The place that the burst is before, or that the region is; -1: the end of the run; `SEVERAL`:
    # see `places`.
    place: int
    # Part of the run that it is in: initialisation, iterations or finalisation; empty where no
    # iterations were found.
    part: str
    sequences: int  # How many sequences the run has
    # int32[k]: Process of each execution, or further sequence of a thread that calls MPI on its
    # own.
    sequence: NDArray[np.int32]
    execution: NDArray[np.int64]  # int64[k]: How many times the sequence passed the place before
    # float64[k]: Time of a burst outside MPI and of a region on its master, s.
    wall: NDArray[np.float64]
    useful: NDArray[np.float64]  # float64[k]: Useful time, of a region summed over its threads, s
    # float64[k] or None: Counted in the useful time; None without such a counter.
    instructions: NDArray[np.float64] | None
    cycles: NDArray[np.float64] | None
    # bool[k]: Executions that the analysed window cuts: only the part inside is counted.
    cut: NDArray[np.bool_]
    team: PhaseTeam | None = None  # Threads of a parallel region
    # Whether it is less than a thousandth of all computing (`SMALL`), each that is summed up.
    small: bool = False
    # int32[k] or None: Place of each execution where small phases are summed up as one; its
    # executions are numbered by place, so that it has no imbalance.
    places: NDArray[np.int32] | None = None

    @property
    def executions(self) -> int:
        """How often the sequence that does so most often executes it."""
        return int(np.bincount(self.sequence).max(initial=0))

    @property
    def imbalance(self) -> Imbalance:
        """How its time differs over sequences and executions, cut ones left out."""
        if self.places is not None:
            return Imbalance(None, None, None, np.full(self.sequences, np.nan))
        rows = self._whole
        return imbalance(self.sequence[rows], self.execution[rows], self.wall[rows], self.sequences)

    @property
    def overhead(self) -> float:
        """Mean time of a region in which no thread is busy (fork, join, scheduling), s."""
        if self.team is None or not len(self.wall):
            return 0.0
        return float(np.maximum(self.wall - self.team.busy(), 0.0).mean())

    @property
    def _whole(self) -> NDArray[np.bool_]:
        """Executions that are not cut, where there are such; else all."""
        return self.cut if self.cut.all() else ~self.cut

    def quantiles(self, shares: tuple[float, ...]) -> tuple[float, ...]:
        """Quantiles of the time of executions, s; cut ones are left out where there are others."""
        return tuple(quantiles(self.wall[self._whole], shares))


@dataclass(frozen=True, eq=False)
class Phases:
    """The phases of a run or of a part of it, in the order of the program."""

    phases: tuple[Phase, ...]
    processes: int
    sequences: int
    # int64[S]: Begin and end of what is analysed on each sequence, ns.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    notes: tuple[str, ...] = ()  # What has to be known about them, a sentence each

    def __len__(self) -> int:
        return len(self.phases)

    @cached_property
    def seconds(self) -> float:
        """Computing of all sequences, s: bursts, and regions by their time on the master."""
        return float(sum(phase.wall.sum() for phase in self.phases))

    def of(self, kind: Kind) -> tuple[Phase, ...]:
        """The phases of one kind."""
        return tuple(phase for phase in self.phases if phase.kind == kind)

    def share(self, phase: Phase) -> float:
        """Part of all computing that a phase is."""
        return float(phase.wall.sum()) / self.seconds if self.seconds else 0.0


def phases(
    structure: Structure,
    trace: Trace,
    window: Trace | None = None,
    limits: Limits | None = None,
    most: int | None = None,
) -> Phases:
    """Find the phases of a run; small ones are summed up if there are more than `most`."""
    part = trace if window is None or limits is not None else window
    sequences = structure.program.sequences
    whole = np.full(sequences, part.begin, np.int64), np.full(sequences, part.end, np.int64)
    begin, end = whole if limits is None else limits
    serial, parallel = settled(structure, bursts(structure, trace)), regions(structure)
    if limits is not None or window is not None:
        serial, parallel = (rows.within(begin, end) for rows in (serial, parallel))
        if trace.timed:
            serial = _recounted(structure, trace, serial)
    useful = useful_times(part) if trace.timed else None
    serial_places, parallel_places, summed_up = _summed_up(serial, parallel, most)
    columns, notes = _measured_bursts(structure, part, serial, useful)
    kinds: list[tuple[Kind, Stretches, NDArray[np.int32], Columns, PhaseTeam | None]]
    kinds = [("serial", serial, serial_places, columns, None)]
    if useful is not None and len(parallel):
        owner = structure.program.owner.astype(np.int64)[parallel.sequence]
        of_regions, columns, more = teams(part, parallel, owner, useful)
        kinds.append(("parallel", parallel, parallel_places, columns, of_regions))
        notes += more
    homes = _homes(structure)
    found: list[tuple[int, Kind, Stretches, Columns, PhaseTeam | None]] = []
    for kind, rows, places, columns, team in kinds:
        # Phases are parts of columns in this order, which need no memory of their own.
        order = np.argsort(places, kind="stable")
        rows, columns = rows.at(order), {name: values[order] for name, values in columns.items()}
        present, first = np.unique(places[order], return_index=True)
        for place, begins, ends in zip(present, first, [*first[1:], len(order)], strict=False):
            mine = slice(int(begins), int(ends))
            own = {name: values[mine] for name, values in columns.items()}
            threads = None if team is None else team.at(order[mine])
            found.append((int(place), kind, rows.at(mine), own, threads))
    found.sort(key=lambda each: (homes[each[0]][0], each[0], each[1] == "parallel"))
    names = _told_apart(
        [_name(structure, rows, kind, place) for place, kind, rows, *_ in found],
        [structure.places[place].inside if place >= 0 else "" for place, *_ in found],
    )
    least = SMALL * sum(float(rows.wall.sum()) for _, _, rows, *_ in found)
    made = [
        Phase(
            name=name,
            kind=kind,
            place=place,
            part=homes[place][1],
            sequences=sequences,
            sequence=rows.sequence,
            execution=rows.execution,
            wall=rows.wall,
            useful=values["useful"],
            instructions=values.get("instructions"),
            cycles=values.get("cycles"),
            cut=rows.cut,
            team=team,
            small=place == SEVERAL or float(rows.wall.sum()) < least,
            places=rows.place if place == SEVERAL else None,
        )
        for name, (place, kind, rows, values, team) in zip(names, found, strict=True)
    ]
    notes = tuple(dict.fromkeys((*notes, *summed_up)))
    return Phases(tuple(made), structure.program.processes, sequences, begin, end, notes)


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
    outside, disabled = trace.calls().intervals(), trace.records.in_state(TRACING_DISABLED)
    if len(disabled):
        outside = alone([outside, disabled], [])
    begin, end = rows.begin[cut], rows.end[cut]
    held = outside.inside(locations_of(structure.program, trace)[rows.sequence[cut]], begin, end)
    wall = rows.wall.copy()
    wall[cut] = (end - begin - held) / _NS
    return replace(rows, wall=wall)


def _measured_bursts(
    structure: Structure, trace: Trace, rows: Stretches, useful: UsefulTimes | None
) -> tuple[dict[str, NDArray[np.float64]], tuple[str, ...]]:
    """Useful time of bursts, what is counted in them, and notes."""
    if useful is None:
        return {"useful": rows.wall}, ()
    location = locations_of(structure.program, trace)[rows.sequence]
    waited = delays(trace).inside(location, rows.begin, rows.end)
    running = useful.running.inside(location, rows.begin, rows.end)
    counts, notes = counted(trace, useful.running, location, rows.begin, rows.end)
    return {"useful": np.maximum(running - waited, 0) / _NS, **counts}, notes


# Where phases are in the nest of a program, and what they are called.


def _homes(structure: Structure) -> dict[int, tuple[int, str]]:
    """The leaf of each place, in order, and the part of the run that it is in.

    As -1 of the end of the run, and after it of what is of several places.
    """
    found: dict[int, tuple[int, str]] = {}
    loop, number = structure.loop, 0
    repeated = set() if loop is None else set(map(id, leaves(loop.body)))
    part, last = ("", "") if loop is None else ("initialisation", "finalisation")
    for number, leaf in enumerate(leaves(structure.nest), start=1):
        if id(leaf) in repeated:
            part = "iterations"
        elif part == "iterations":
            part = last
        found |= dict.fromkeys(leaf.places, (number, part))
    return {**found, -1: (number + 1, last), SEVERAL: (number + 2, "")}


def _name(structure: Structure, rows: Stretches, kind: Kind, place: int) -> str:
    """What a phase is called: a burst after what, and before what, it mostly stands."""
    if place == SEVERAL:
        noun = "region" if kind == "parallel" else "burst"
        return plural(len(distinct(rows.place)), f"smaller {noun}")
    if kind == "parallel":
        return structure.places[place].name
    before = int(np.bincount(rows.previous + 1).argmax()) - 1
    first = "start" if before < 0 else structure.places[before].name
    return f"{first} to {'end' if place < 0 else structure.places[place].name}"


def _told_apart(names: Sequence[str], inside: Sequence[str]) -> list[str]:
    """Names of which no two are equal: with the user region or call site, else numbered."""
    often = Counter(names)
    longer = [
        f"{name} in {where}" if often[name] > 1 and where else name
        for name, where in zip(names, inside, strict=True)
    ]
    often, seen = Counter(longer), Counter[str]()
    unique = []
    for name in longer:
        seen[name] += 1
        unique.append(f"{name} ({seen[name]})" if often[name] > 1 else name)
    return unique
