"""The computing of a run by where it stands, as data.

A *burst* is what a sequence computes between two calls of MPI or parallel regions. Bursts before
the same place of the program are executions of one *phase*; each parallel region is one as well.
Rows are kept sparse: a place that few processes pass often costs what it holds.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from popmodel.arrays import quantiles
from popmodel.phases.imbalance import Imbalance, split
from popmodel.trace.pieces import spread
from popmodel.trace.tables import offsets_of
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind: TypeAlias = Literal["serial", "parallel"]
SMALL = 1e-3
"""Share of all computing below which a phase does not matter by itself."""
SEVERAL = -2
"""Place of small phases that are summed up as one."""


@dataclass(frozen=True, eq=False)
class PhaseTeam:
    """What the threads of a process do in each execution of a parallel region."""

    # int64[k + 1]: Threads of execution e: rows ``offsets[e] .. offsets[e + 1]``, the master first.
    offsets: NDArray[np.int64]
    useful: NDArray[np.float64]  # float64[m]: Useful time of each, s
    in_mpi: NDArray[np.float64]  # float64[m]: Its time in MPI calls inside, s

    def at(self, rows: NDArray[np.int64]) -> PhaseTeam:
        """Some of the executions."""
        which, row = spread(self.offsets[rows], self.threads[rows])
        counts = np.bincount(which, minlength=len(rows))
        return PhaseTeam(offsets_of(counts), self.useful[row], self.in_mpi[row])

    @property
    def threads(self) -> NDArray[np.int64]:
        """Threads of each execution: int64[k]."""
        return np.diff(self.offsets)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean useful time of the threads of each execution, s: float64[k]."""
        return np.add.reduceat(self.useful, self.offsets[:-1]) / self.threads

    @property
    def busiest(self) -> NDArray[np.float64]:
        """Useful time of the busiest thread of each execution, s: float64[k]."""
        return np.maximum.reduceat(self.useful, self.offsets[:-1])

    @property
    def worst(self) -> int:
        """The thread that is the busiest in most of the time, from 0."""
        lead = np.flatnonzero(self.useful == np.repeat(self.busiest, self.threads))
        thread = lead - np.repeat(self.offsets[:-1], self.threads)[lead]
        return int(np.bincount(thread, self.useful[lead]).argmax())

    @property
    def imbalance(self) -> float:
        """Useful time of busiest threads over that of mean ones, minus 1."""
        mean = self.mean.sum()
        return float(self.busiest.sum() / mean - 1) if mean else 0.0

    @property
    def by_thread(self) -> NDArray[np.float64]:
        """Useful time of each thread number relative to the mean of the team, over executions."""
        thread = np.arange(len(self.useful)) - np.repeat(self.offsets[:-1], self.threads)
        mean = np.bincount(thread, np.repeat(self.mean, self.threads))
        own = np.bincount(thread, self.useful)
        return np.divide(own, mean, out=np.zeros_like(own), where=mean > 0)

    def busy(self) -> NDArray[np.float64]:
        """Longest time of a thread in useful code and MPI of each execution, s: float64[k]."""
        return np.maximum.reduceat(self.useful + self.in_mpi, self.offsets[:-1])


@dataclass(frozen=True, eq=False)
class Phase:
    """Executions of one burst or parallel region, by sequence and in order."""

    name: str  # What tells it apart: the calls around a burst, or the region
    kind: Kind  # A burst of one thread, or a parallel region
    # The place that the burst is before, or that the region is; -1: the end of the run; `SEVERAL`:
    # see `places`.
    place: int
    path: tuple[int, ...]  # Where its leaf is in the nest: an index for each level
    # Part of the run that it is in: initialisation, iterations or finalisation; empty where no
    # iterations were found.
    part: str
    sequences: int  # How many sequences the run has
    # int32[k]: Process of each execution, or further sequence of a thread that calls MPI on its
    # own.
    sequence: NDArray[np.int32]
    execution: NDArray[np.int64]  # int64[k]: How many times the sequence passed the place before
    begin: NDArray[np.int64]  # int64[k]: When it begins, ns
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
    # executions are numbered by place, so that it has no matrix of times and no imbalance.
    places: NDArray[np.int32] | None = None

    @property
    def executions(self) -> int:
        """How often the sequence that does so most often executes it."""
        return int(np.bincount(self.sequence).max(initial=0))

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Time of each execution: float64[S, n], s; NaN where a sequence has none."""
        return self.matrix(self.wall)

    def matrix(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of executions by sequence and number of the execution: float64[S, n]."""
        if self.places is not None:
            raise ValueError(f"{self.name} are of several places, which have no common executions")
        first = int(self.execution.min(initial=0)) if len(self.execution) else 0
        width = int(self.execution.max(initial=-1)) + 1 - first
        made = np.full((self.sequences, max(width, 0)), np.nan)
        made[self.sequence, self.execution - first] = values
        return made

    def by_sequence(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of values of executions by sequence: float64[S]."""
        sums: NDArray[np.float64] = np.bincount(self.sequence, values, self.sequences).astype(
            np.float64
        )
        return sums

    @property
    def imbalance(self) -> Imbalance:
        """How its time differs over sequences and executions, cut ones left out."""
        if self.places is not None:
            return Imbalance(None, None, None, np.full(self.sequences, np.nan))
        if self.cut.any() and not self.cut.all():
            mine = ~self.cut
            return split(self.sequence[mine], self.execution[mine], self.wall[mine], self.sequences)
        return split(self.sequence, self.execution, self.wall, self.sequences)

    @property
    def persistent_cv(self) -> float | None:
        """Coefficient of variation of what the same sequences keep; see `Imbalance.persistent`."""
        return self.imbalance.persistent

    @property
    def transient_cv(self) -> float | None:
        """Coefficient of variation of what changes; see `Imbalance.transient`."""
        return self.imbalance.transient

    @property
    def by_rank(self) -> NDArray[np.float64]:
        """Mean time of each sequence relative to their mean; NaN where one has no execution."""
        return self.imbalance.by_rank

    @property
    def overhead(self) -> float:
        """Mean time of a region in which no thread is busy (fork, join, scheduling), s."""
        if self.team is None or not len(self.wall):
            return 0.0
        return float(np.maximum(self.wall - self.team.busy(), 0.0).mean())

    @property
    def thread_imbalance(self) -> float:
        """Useful time of the busiest threads over that of mean ones, minus 1."""
        return 0.0 if self.team is None else self.team.imbalance

    @property
    def uncut(self) -> NDArray[np.float64]:
        """Time of executions, s; cut ones are left out where there are others."""
        if self.cut.any() and not self.cut.all():
            return self.wall[~self.cut]
        return self.wall

    def quantiles(self, shares: tuple[float, ...]) -> tuple[float, ...]:
        """Quantiles of the time of executions, s; cut ones are left out where there are others."""
        return tuple(quantiles(self.uncut, shares))


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
