"""What an average process does in a part of its program: the vector that a region tree adds up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.expressions.elementary import Value, maximum
from popmodel.base.values import NamedTuple


class RunWork(NamedTuple):
    """Times and amounts of one process; times in seconds."""

    serial: Value = 0.0  # Master outside parallel regions
    # The part of ``serial`` whose time the signature states: no counts, and no law of them.
    stated: Value = 0.0
    share: Value = 0.0  # Useful time in parallel regions, average over the threads
    stretched: Value = 0.0  # Useful time in parallel regions of the busiest thread
    overhead: Value = 0.0  # OpenMP constructs
    synchronising: Value = 0.0  # The part of ``overhead`` in which threads wait for each other
    # The part of ``stretched`` beyond ``share`` in which threads wait for the busiest one in
    # barriers and locks; an average over them, as ``share`` is.
    awaiting: Value = 0.0
    # What the parallel loops would take with one thread and without OpenMP.
    single_thread: Value = 0.0
    # Waiting for other processes that no network removes, such as the start of a pipeline.
    waiting: Value = 0.0
    transfer: Value = 0.0  # Messages and collectives, no waiting included
    # The part of ``transfer`` that follows from measured times, not from those of messages.
    measured: Value = 0.0
    steps: Value = 0.0  # How often processes meet in communication
    # Processor cycles of ``serial``, and of ``share`` per thread.
    serial_cycles: Value = 0.0
    region_cycles: Value = 0.0
    # Operations and memory traffic of all threads.
    flops: Value = 0.0
    memory_bytes: Value = 0.0
    # Instructions of all threads in useful time; None if some part does not count them.
    instructions: Value | None = 0.0

    def plus(self, other: RunWork) -> RunWork:
        """Return one part after the other in the same step, whose meetings are counted once."""
        # what one part does not know, the whole does not know
        sums: list[Any] = [
            None if mine is None or others is None else mine + others
            for mine, others in zip(self, other, strict=True)
        ]
        return RunWork(*sums)._replace(steps=maximum(self.steps, other.steps))

    def times(self, count: Value) -> RunWork:
        """Return the part executed ``count`` times."""
        scaled: list[Any] = [None if mine is None else mine * count for mine in self]
        return RunWork(*scaled)

    def computed(self, factor: Value) -> RunWork:
        """Return the part with all that its threads compute taking ``factor`` times as long.

        One thread would take as much longer.
        """
        times = ("serial", "stated", "share", "stretched", "awaiting", "single_thread")
        changed: dict[str, Any] = {
            name: getattr(self, name) * factor
            for name in (*times, "serial_cycles", "region_cycles")
        }
        return self._replace(**changed)

    @property
    def parallel(self) -> Value:
        """Wall time in parallel regions."""
        return self.stretched + self.overhead


# Work whose differences between processes, or between steps, are known one by one.


Array = NDArray[np.float64]


class UnevenWork(NamedTuple):
    """A part of the work of an item, and how it differs."""

    share: float  # Its part of the work of an average process
    # float64[P] or None: Work of every process over that of an average one; None where it is not
    # known, and processes differ by a persistent coefficient of variation.
    ranks: Array | None = None
    # float64[n] or None: Values, each as likely as the others, of the factor by which a process has
    # more to do in a step; None where it is normal.
    turns: Array | None = None
    # float64[P, n] or None: That factor of each process in each of n executions, one after the
    # other, where these were recorded: a replay takes them in place of `turns`.
    sequence: Array | None = None


def relative(values: Sequence[float] | Array, factor: float = 1.0) -> Array:
    """Return values over their mean, their differences from it times a factor; none below 0."""
    found = np.asarray(values, dtype=np.float64)
    mean = found.mean()
    whole: Array = np.maximum(1 + factor * (found / mean - 1), 0.0)
    return whole
