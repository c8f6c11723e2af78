"""Which processes in a raw directory are of one run.

A script can start a program several times, and a program can start others (MPI_Comm_spawn): each
has a MPI_COMM_WORLD of its own. Launchers name their runs to the processes; where they do not, a
run is as many processes of different ranks as were there at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from popmodel.errors import TraceError
from popmodel.tracer.meta import Meta
from popmodel.values import dataclass

_APART = 10**9  # ns by which clocks of hosts may differ
_ONE_EACH = "trace each run into a separate directory"


@dataclass(frozen=True)
class Candidate:
    """A process with records."""

    meta: Meta
    files: dict[int, Path]  # Of its threads
    last: int  # Its last sign of life, on the clock of its host

    @property
    def begin(self) -> int:
        """When it began, ns since 1970."""
        return self.meta.realtime

    @property
    def end(self) -> int:
        """When it was last there, ns since 1970."""
        return self.meta.realtime + max(self.last - self.meta.begin, 0)


@dataclass
class _Run:
    by_rank: dict[int, Candidate] = field(default_factory=dict)

    def may_have(self, one: Candidate) -> bool:
        """Whether a process was there while all others were."""
        return all(
            one.begin <= other.end + _APART and other.begin <= one.end + _APART
            for other in self.by_rank.values()
        )


def split(folder: Path, found: Sequence[Candidate]) -> list[list[Candidate]]:
    """Processes of each run by rank, the runs in the order of their start."""
    worlds: dict[tuple[str, int | None, bool], list[_Run]] = {}
    for one in sorted(found, key=lambda each: (each.begin, each.meta.host, each.meta.pid)):
        meta = one.meta
        rank = meta.rank
        assert rank is not None
        runs = worlds.setdefault((meta.job, meta.size, meta.spawned), [])
        for run in runs:
            if rank not in run.by_rank and (meta.job or run.may_have(one)):
                run.by_rank[rank] = one
                break
        else:
            for run in runs:
                other = run.by_rank.get(rank)
                if other is not None and one.begin < other.end:
                    raise _at_a_time(folder, other.meta, meta)
            runs.append(_Run({rank: one}))
    made = [run for runs in worlds.values() for run in runs]
    made.sort(key=lambda run: min(each.begin for each in run.by_rank.values()))
    return [[run.by_rank[rank] for rank in sorted(run.by_rank)] for run in made]


def _at_a_time(folder: Path, one: Meta, other: Meta) -> TraceError:
    who = f"process {one.pid} on {one.host} and process {other.pid} on {other.host}"
    if one.size == 1:
        return TraceError(
            folder,
            f"{who} were each alone in MPI_COMM_WORLD",
            hint=f"if one launcher started them, use the mpirun of the program's MPI "
            f"({_short(other.library)}); otherwise {_ONE_EACH}",
        )
    return TraceError(
        folder,
        f"{who} were both rank {one.rank} at the same time",
        hint=f"they belong to two runs: {_ONE_EACH}",
    )


def _short(library: str) -> str:
    """The beginning of what an MPI says of itself, which can be pages long."""
    return " ".join(library.replace("\n", " ").partition(",")[0].split()[:4]) or "unknown"
