"""Runs of one program side by side: a table of runs and sites.

A site is a place in the code: the function that calls and the kind of call, or a parallel region.
Where several places have these in common, as all have where nobody knows who calls, their order in
the program tells them apart: the places of each run are laid beside those of the reference run by
the alignment of two sequences that holds most of the time. What one run has and another one has
not was executed there zero times. Where the order of places with a known function says something
else in some run (its loops were found in another shape), all of them are one site.

What a process computes before a call is known together with what it computes before the next ones
that some run lacks: such bursts are taken together in all runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.base.arrays import spread
from popmodel.base.errors import PopmodelError
from popmodel.base.values import dataclass
from popmodel.fit.samples import Sample, described
from popmodel.signatures.imbalance import work_shares
from popmodel.signatures.layout import laid_out
from popmodel.signatures.outline import OutlinePoint, instructions, team, timing
from popmodel.signatures.place_calls import collective_bytes, operations_of
from popmodel.signatures.recorded_times import kept
from popmodel.signatures.summary import LINES
from popmodel.simulator.mpi_calls import ANYWHERE
from popmodel.simulator.program import Op
from popmodel.structure.iterations import find
from popmodel.structure.structure import Leaf, with_common_places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.fit.law import Law
    from popmodel.signatures.imbalance import WorkShares
    from popmodel.signatures.outline import Outline, OutlineCalls, OutlineTeam, Timing
    from popmodel.signatures.recorded_times import Fidelity
    from popmodel.structure.structure import FoundLoop, Structure
    from popmodel.traces import Trace

    Floats = NDArray[np.float64]
    Whole = NDArray[np.int64]

_NS = 1e9
_NONE = -1
_ADDRESS = re.compile(r" \([^()]*\)$")
_COMMON = 0.5  # share of the computing time at common sites; below it programs are different
_STRAY = 0.02  # share of executions of a function's calls that may lie elsewhere than in order
_ANY_PROGRAM = ANYWHERE | {"MPI_Init", "MPI_Init_thread", "MPI_Finalize"}
_SHOWN = 8


class Site(NamedTuple):
    """What a place is known by: a call and the function around it, or a region."""

    name: str
    function: str  # Without the address, which differs from build to build; empty if unknown
    is_region: bool

    def __str__(self) -> str:
        return f"{self.name} in {self.function}" if self.function else self.name


class Sent(NamedTuple):
    """Messages of a run: where each is sent, by whom, to whom, and how large, B."""

    place: Whole
    sender: Whole
    receiver: Whole
    size: Whole

    def chosen(self, rows: NDArray[np.bool_]) -> Sent:
        """Return some of them."""
        return Sent(*(column[rows] for column in self))


@dataclass(frozen=True, eq=False)
class Run:
    """A run that was traced, and what is found in its trace: each of it once, when asked for.

    Signatures of several choices among the same runs cost little more than one.
    """

    trace: Trace  # The trace, or the part of it that is meant
    parameters: Mapping[str, float] = field(default_factory=dict)  # Problem parameters of the run
    # Which part of the run the trace is, in words; None for the program as a whole.
    part: str | None = None
    limit: int = LINES  # Lines of a signature of it, where summaries can do that
    # By run, the place of that run that each of its places is, where it was asked for.
    homes: dict[int, Whole] = field(default_factory=dict, repr=False)

    @property
    def processes(self) -> int:
        """P."""
        return self.trace.processes

    @property
    def threads(self) -> int:
        """Threads of a process; the most if they differ."""
        return int(max(self.trace.threads))

    @property
    def configuration(self) -> dict[str, float]:
        """P, T and the parameters."""
        given = {name: float(value) for name, value in self.parameters.items()}
        return {"P": float(self.processes), "T": float(self.threads), **given}

    def to_dict(self) -> dict[str, Any]:
        """Return what it is as JSON types."""
        return {
            "trace": self.trace.path,
            "processes": self.trace.processes,
            "threads": self.threads,
            "part": self.part,
            "parameters": dict(self.parameters),
        }

    @cached_property
    def structure(self) -> Structure:
        """Its loops and places."""
        return with_common_places(find(self.trace))

    @cached_property
    def layout(self) -> Outline:
        """Its outline."""
        return laid_out(self.structure, self.trace, self.parameters, self.limit)

    @cached_property
    def fidelity(self) -> Fidelity:
        """What of its times a signature keeps."""
        return kept(self.structure, self.layout.points)

    @cached_property
    def sites(self) -> list[Site]:
        """What each of its places is known by."""
        return [
            Site(one.name, _ADDRESS.sub("", one.inside), one.is_region)
            for one in self.structure.places
        ]

    @cached_property
    def passes(self) -> Whole:
        """How often each process passes each place: int64[places, P]."""
        places, processes = len(self.structure.places), self.structure.program.sequences
        key = self.structure.place.astype(np.int64) * processes + self.structure.events.sequence
        return np.bincount(key, minlength=places * processes).reshape(places, processes)

    @cached_property
    def computing(self) -> tuple[Floats, Floats]:
        """Seconds of all processes before each place and behind the last; and in each region."""
        before, inside = self._by_place(timing(self.structure.events))
        return before / _NS, inside / _NS

    @cached_property
    def counted(self) -> tuple[Floats, Floats] | None:
        """Instructions, as `computing` has seconds; None where nobody counted them."""
        counts = instructions(self.trace, self.structure)
        return None if counts is None else self._by_place(counts)

    def _by_place(self, times: Timing) -> tuple[Floats, Floats]:
        place, places = self.structure.place, len(self.structure.places)
        before = np.bincount(place, times.before, places + 1).astype(np.float64)
        before[places] = times.after.sum()
        return before, np.bincount(place, times.inside, places + 1).astype(np.float64)

    @cached_property
    def sent(self) -> Sent:
        """Its messages, by its own places."""
        program, messages = self.structure.program, self.structure.program.messages
        operation, event = operations_of(self.structure, (Op.SEND, Op.ISEND))
        row = program.target[operation]
        columns = messages.sender[row], messages.receiver[row], messages.size[row]
        place = self.structure.place[event].astype(np.int64)
        return Sent(place, *(np.asarray(column, dtype=np.int64) for column in columns))

    @cached_property
    def received(self) -> dict[tuple[int, str], float]:
        """Bytes of a process in its collectives, by place and kind."""
        return collective_bytes(self.structure)

    @cached_property
    def shares(self) -> WorkShares | None:
        """How its work is shared by its processes."""
        return work_shares(self.structure, self.threads, self.parameters)

    @cached_property
    def features(self) -> Floats:
        """What likens places of equal sites: float64[places, 4].

        Share of the time, loops around, logarithm of executions, messages of a process in each.
        """
        before, inside = self.computing
        spent = before[:-1] + inside[:-1]
        depth = np.zeros(len(self.sites))

        def walk(nodes: Sequence[FoundLoop | Leaf], level: int) -> None:
            for node in nodes:
                if isinstance(node, Leaf):
                    depth[list(node.places)] = level
                else:
                    walk(node.body, level + 1)

        walk(self.structure.nest, 0)
        often = self.passes.max(axis=1).astype(np.float64)
        messages = np.bincount(self.sent.place, minlength=len(often)) / self.processes
        each = messages / np.maximum(often, 1.0)
        return np.stack(
            [spent / (before.sum() + inside.sum() or 1.0), depth, np.log(often + 1), each], axis=1
        )

    def home(self, first: Run) -> Whole:
        """The place of the first run that each of its places is, -1 for none."""
        if id(first) not in self.homes:
            self.homes[id(first)] = aligned(first, self)
        return self.homes[id(first)].copy()

    def regions(self, places: NDArray[np.bool_]) -> OutlinePoint | None:
        """The executions of the regions of some places; None if there are none."""
        structure, events = self.structure, self.structure.events
        rows = np.flatnonzero(places[structure.place] & events.is_region)
        if not len(rows):
            return None
        sequence = events.sequence[rows].astype(np.int64)
        often = np.bincount(sequence, minlength=structure.program.sequences)
        number = spread(np.zeros_like(often), often)[1]
        event = np.full((len(often), int(often.max())), _NONE, dtype=np.int32)
        event[sequence, number] = rows
        length = (events.end - events.begin - events.delayed)[event] / _NS
        seconds = np.where(event >= 0, length, np.nan)
        return OutlinePoint(int(structure.place[rows[0]]), True, event, seconds)


def aligned(first: Run, other: Run) -> Whole:
    """Return the place of the first run that each place of another one is, -1 for none.

    The order of both is kept, and as much of the time as can be lies at places that are in both:
    Needleman and Wunsch's alignment, in which gaps cost what is not gained there.
    """
    rows, columns = len(first.sites), len(other.sites)
    numbers: dict[Site, int] = {}
    mine, theirs = (
        np.array([numbers.setdefault(site, len(numbers)) for site in run.sites], dtype=np.int64)
        for run in (first, other)
    )
    best = np.zeros((rows + 1, columns + 1))
    few = 1.0 / max(rows, columns, 1)
    for row in range(rows):
        a, b = first.features[row], other.features
        apart = 0.1 * np.abs(a[1] - b[:, 1]) + 0.1 * np.abs(a[2] - b[:, 2]) + np.abs(a[3] - b[:, 3])
        likeness = (few + np.minimum(a[0], b[:, 0])) / (1.0 + apart)
        gain = np.where(mine[row] == theirs, likeness, 0.0)
        taken = np.maximum(best[row, 1:], best[row, :-1] + gain)
        best[row + 1, 1:] = np.maximum.accumulate(taken)
    home = np.full(columns, _NONE, dtype=np.int64)
    row, column = rows, columns
    while row and column:
        here = best[row, column]
        if here == best[row - 1, column]:
            row -= 1
        elif here == best[row, column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            home[column] = row
    return home


@dataclass(frozen=True, eq=False)
class AlignedRun:
    """What a run did at the places of the reference run, and at the end behind them (the last)."""

    processes: int
    threads: int
    parameters: Mapping[str, float]  # Of the problem
    # float64[places + 1]: Seconds of all processes before each place.
    before: Floats
    # The same of instructions, and those in each place, if it is a region; None where nobody
    # counted them.
    instructions: tuple[Floats, Floats] | None
    # int64[places + 1]: How often the busiest process passes the site of each place.
    executions: Whole
    sent: Sent  # Its messages, by places of the reference run
    # Bytes of a process in its collectives, by place of the reference run and kind.
    received: Mapping[tuple[int, str], float]
    # By point that is a parallel region of the reference run, what threads do in it.
    teams: Mapping[int, OutlineTeam]
    active: int  # Threads on the node that has the most of them
    cores: int  # CPUs of the largest node, as the header of the trace states; 0 where it does not

    def sample(
        self, value: float, error: float | None = None, more: Mapping[str, float] | None = None
    ) -> Sample:
        """A value of this run, by its parameters and more of them."""
        parameters = {**self.parameters, **(more or {})}
        return Sample(self.processes, self.threads, value, parameters, error)

    def value_of(self, law: Law) -> float:
        """The best estimate of a law for this run."""
        return law.at(self.processes, self.threads, self.parameters).value

    def turns(self, places: Sequence[int], first: AlignedRun) -> float:
        """How often a body is executed for each time that it is in the reference run.

        As its sites are that this run has, in their middle; 0 where it has none.
        """
        mine, base = self.executions[list(places)], first.executions[list(places)]
        there = (mine > 0) & (base > 0)
        return float(np.median(mine[there] / base[there])) if there.any() else 0.0


class RunTable:
    """Runs of one program by the sites of the first one, which is the reference.

    Refuses runs that have less than half of their computing time at common sites.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        first = runs[0]
        self.outline = first.layout
        self.notes: list[str] = []
        places = len(first.sites)
        homes = [np.arange(places), *(run.home(first) for run in runs[1:])]
        self.site = np.arange(places + 1)  # Of each place of the reference run
        for site in _out_of_order(runs, homes):
            mine = [place for place, one in enumerate(first.sites) if one == site]
            self.site[mine] = mine[0]
            for run, home in zip(runs, homes, strict=True):
                strays = [p for p, one in enumerate(run.sites) if one == site and home[p] == _NONE]
                home[strays] = mine[0]
        passes = [self._passes(run, home) for run, home in zip(runs, homes, strict=True)]
        for run, home, here in zip(runs[1:], homes[1:], passes[1:], strict=True):
            self._require_common(first, run, home, here)
        # bursts before places that some process of some run does not pass belong to the next ones
        self.burst = self.site.copy()
        for here in passes:
            behind = places
            for place in range(places - 1, -1, -1):
                if here[self.site[place]].all():
                    behind = place
                else:
                    self._join(place, behind)
        for point in self.outline.points:
            for place in point.along if point.team is None else ():
                self._join(place, point.place)
        self.rows = [self._row(*each) for each in zip(runs, homes, passes, strict=True)]

    def _join(self, place: int, other: int) -> None:
        self.burst[self.burst == self.burst[place]] = self.burst[other]

    def at(self, row: AlignedRun, places: Iterable[int]) -> Sent:
        """Return the messages that a run sent at the sites of some places."""
        wanted = np.unique(self.site[list(places)])
        return row.sent.chosen(np.isin(self.site[row.sent.place], wanted))

    def messages(self, row: AlignedRun, node: OutlineCalls) -> tuple[float, Whole]:
        """How many messages are sent in an execution of a list, and sizes of all, B."""
        sizes = self.at(row, node.places).size
        base = len(self.at(self.rows[0], node.places).size) * row.turns(node.places, self.rows[0])
        return node.messages * len(sizes) / base if base else 0.0, sizes

    def _passes(self, run: Run, home: Whole) -> Whole:
        """How often each process passes each site: int64[places + 1, P]."""
        found = np.zeros((len(self.site), run.structure.program.sequences), dtype=np.int64)
        known = home >= 0
        np.add.at(found, self.site[home[known]], run.passes[known])
        found[-1] = 1  # the end
        return found

    def _require_common(self, first: Run, run: Run, home: Whole, passes: Whole) -> None:
        lacks = passes[self.site[:-1]].max(axis=1) == 0, home < 0
        told = _tell(first), _tell(run)
        if not (told[0].any() and told[1].any()):  # what any program has is all that one has
            told = np.ones(len(told[0]), dtype=bool), np.ones(len(told[1]), dtype=bool)
        ours, theirs = (
            float(one.features[own & lacking, 0].sum() / (one.features[own, 0].sum() or 1.0))
            for one, own, lacking in zip((first, run), told, lacks, strict=True)
        )
        if 1 - (ours + theirs) / 2 < _COMMON:
            raise PopmodelError(
                f"{run.trace.path}: not the program of {first.trace.path}: what both do holds "
                f"{100 * (1 - ours):.0f} % of the time of the one and {100 * (1 - theirs):.0f} % "
                f"of the other; only there: {_listed(first, lacks[0])}; only here: "
                f"{_listed(run, lacks[1])}",
                "give runs of one program",
            )
        theirs = float(run.features[lacks[1], 0].sum())
        if theirs > _STRAY:
            self.notes.append(
                f"{100 * theirs:.0f} % of what the run at {described(run.configuration)} computes "
                "is where the first run does nothing: counted with what follows"
            )

    def _row(self, run: Run, home: Whole, passes: Whole) -> AlignedRun:
        places, sites = len(self.site) - 1, self.site
        until = np.append(home, places)  # what the reference lacks counts with what follows
        for place in range(len(home) - 1, -1, -1):
            until[place] = until[place + 1] if home[place] == _NONE else home[place]
        known = home >= 0
        before = np.bincount(until, run.computing[0], places + 1).astype(np.float64)
        counts = None
        if run.counted is not None:
            counts = (
                np.bincount(until, run.counted[0], places + 1).astype(np.float64),
                np.bincount(home[known], run.counted[1][:-1][known], places + 1).astype(np.float64),
            )
        teams = {}
        for number, point in enumerate(self.outline.points):
            if point.team is not None:
                regions = run.regions(known & np.isin(sites[home], sites[point.places]))
                if regions is not None:
                    turns = round(point.turns * regions.most / point.most)
                    teams[number] = team(run.trace, run.structure, replace(regions, turns=turns))
        at = home[run.sent.place]
        received: dict[tuple[int, str], list[float]] = {}
        for (own, kind), size in run.received.items():
            for place in np.flatnonzero(sites == sites[home[own]]).tolist() if known[own] else ():
                received.setdefault((place, kind), []).append(size)
        return AlignedRun(
            run.processes,
            run.threads,
            {name: float(value) for name, value in run.parameters.items()},
            before,
            counts,
            passes.max(axis=1)[sites],
            Sent(at, *run.sent[1:]).chosen(at >= 0),
            {key: float(np.mean(sizes)) for key, sizes in received.items()},
            teams,
            int(np.bincount(run.trace.node_of_location).max(initial=1)),
            max(run.trace.nodes, default=0),
        )


def _out_of_order(runs: Sequence[Run], homes: Sequence[Whole]) -> list[Site]:
    """Sites of known functions or regions whose places are in another order in some run."""
    first = runs[0]
    found: dict[Site, None] = {}
    for run, home in zip(runs[1:], homes[1:], strict=True):
        taken = np.zeros(len(first.sites), dtype=bool)
        taken[home[home >= 0]] = True
        of_first = _executions(first, taken)
        of_run = _executions(run, home >= 0)
        for site in of_first.keys() & of_run.keys():
            if (site.function or site.is_region) and any(
                beside > _STRAY * whole for beside, whole in (of_first[site], of_run[site])
            ):
                found[site] = None
    return list(found)


def _executions(run: Run, in_both: NDArray[np.bool_]) -> dict[Site, tuple[float, float]]:
    """Executions of each site at places that another run lacks, and at all of its places."""
    found: dict[Site, tuple[float, float]] = {}
    for site, both, often in zip(run.sites, in_both, run.passes.sum(axis=1), strict=True):
        beside, whole = found.get(site, (0.0, 0.0))
        found[site] = beside + (0.0 if both else float(often)), whole + float(often)
    return found


def _tell(run: Run) -> NDArray[np.bool_]:
    """Which places tell a program from others, that all start and reduce."""
    return np.array(
        [
            bool(site.function or site.is_region) or site.name not in _ANY_PROGRAM
            for site in run.sites
        ],
        dtype=bool,
    )


def _listed(run: Run, which: NDArray[np.bool_]) -> str:
    """Names of sites, those that hold the most time first."""
    order = np.argsort(-run.features[:, 0], kind="stable")
    names = list(dict.fromkeys(str(run.sites[place]) for place in order.tolist() if which[place]))
    more = len(names) - _SHOWN
    return (", ".join(names[:_SHOWN]) or "nothing") + (f" and {more} more" if more > 0 else "")
