"""The lanes of a timeline: a thread each, or several neighbours where there are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace import Trace


@dataclass(frozen=True, eq=False)
class Rows:
    """Which threads are in which lane, process-major."""

    # int64[R + 1]: First location of each lane, and the number of locations.
    first: NDArray[np.int64]
    labels: tuple[str, ...]  # ``rank 3``, ``rank 3, thread 1``, ``ranks 4-5``
    # What a lane is where it is not one thread, such as ``2 neighbouring ranks to a row``; else
    # empty.
    shared: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def threads(self) -> NDArray[np.int64]:
        """How many threads are in each lane: int64[R]."""
        return np.diff(self.first)

    @property
    def of_location(self) -> NDArray[np.int64]:
        """Lane of each location: int64[L]."""
        return np.repeat(np.arange(len(self)), self.threads)


def rows_of(trace: Trace, most: int) -> Rows:
    """Arrange the threads of a run in at most so many lanes.

    Threads of a process share lanes first; only where there are more processes than lanes do
    neighbouring processes, with all their threads.
    """
    bounds = np.asarray(trace.process_offsets, np.int64)
    threads, processes = np.diff(bounds), trace.processes
    if processes > most:
        together = -(-processes // most)
        first = np.append(bounds[:-1][::together], bounds[-1])
        ranks = [
            (begin, min(begin + together, processes) - 1) for begin in range(0, processes, together)
        ]
        labels = tuple(_span("rank", *pair) for pair in ranks)
        return Rows(first, labels, f"up to {plural(together, 'neighbouring rank')} to a row")
    together = 1 if bounds[-1] <= most else -(-int(threads.max()) // (most // processes))
    starts, labels_of = [], []
    for rank, (begin, count) in enumerate(zip(bounds.tolist(), threads.tolist(), strict=False)):
        for thread in range(0, count, together):
            starts.append(begin + thread)
            last = min(thread + together, count) - 1
            alone = count == 1 or last - thread + 1 == count
            labels_of.append(
                f"rank {rank}" if alone else f"rank {rank}, {_span('thread', thread, last)}"
            )
    shared = "" if together == 1 else f"up to {plural(together, 'thread')} of a rank to a row"
    return Rows(np.array([*starts, bounds[-1]], np.int64), tuple(labels_of), shared)


def _span(noun: str, first: int, last: int) -> str:
    return f"{noun} {first}" if first == last else f"{noun}s {first}-{last}"
