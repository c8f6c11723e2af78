"""A second opinion on the period of a run: how many sequences are in MPI, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.structure.items import ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.events import Events

_STEPS = 1 << 13
"""Instants at which sequences in MPI are counted."""
_LEAST = 0.3
"""Correlation of the signal with itself from which on it has a period."""
_FEWEST = 3
"""Periods that a run has to hold for one to be told."""


class Rhythm(NamedTuple):
    """A period of a run."""

    period: float  # Nanoseconds
    strength: float  # Correlation with itself one period later, 0 to 1


def rhythm_of(events: Events, begin: int, end: int) -> Rhythm | None:
    """Period of the number of sequences in MPI; None where there is none.

    The first maximum of its autocorrelation behind the first fall below zero, as in the analysis
    of iterative parts by signal processing (Casas, Badia, Labarta: Automatic phase detection and
    structure extraction of MPI applications, IJHPCA 24, 2010).
    """
    calls = ~events.is_region & (events.end > begin) & (events.begin < end)
    if end - begin < _STEPS or not calls.any():
        return None
    step = (end - begin) / _STEPS
    signal = _signal(
        (np.clip(events.begin[calls], begin, end) - begin) / step,
        (np.clip(events.end[calls], begin, end) - begin) / step,
    )
    signal -= signal.mean()
    power = np.abs(np.fft.rfft(signal, 2 * _STEPS)) ** 2
    correlation = np.fft.irfft(power)[: _STEPS // _FEWEST]
    if correlation[0] <= 0:
        return None
    # Of ever fewer pairs: what is left of a constant correlation falls with the distance.
    correlation /= correlation[0] * (1 - np.arange(len(correlation)) / _STEPS)
    below = np.flatnonzero(correlation < 0)
    if not len(below):
        return None
    best = int(below[0]) + int(np.argmax(correlation[below[0] :]))
    strength = float(min(correlation[best], 1.0))
    near = correlation[below[0] :] >= 0.9 * correlation[best]
    best = int(below[0]) + int(np.argmax(near))
    while best + 1 < len(correlation) and correlation[best + 1] > correlation[best]:
        best += 1
    return Rhythm(best * step, strength) if strength >= _LEAST else None


def _signal(begin: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many intervals hold each unit of time, those in part with that part."""
    first = np.minimum(begin.astype(np.int64), _STEPS - 1)
    count = np.minimum(np.ceil(end).astype(np.int64), _STEPS) - first
    count = np.maximum(count, 1)
    cell = np.repeat(first, count) + ranges(count)
    share = np.minimum(np.repeat(end, count), cell + 1) - np.maximum(np.repeat(begin, count), cell)
    return np.bincount(cell, np.maximum(share, 0.0), _STEPS)[:_STEPS].astype(np.float64)
