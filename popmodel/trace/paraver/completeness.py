"""Whether a trace seems to lack records at its end, as a file does that was cut at a line's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import distinct
from popmodel.units import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from popmodel.kernel import _kernel

END_TOLERANCE = 0.01
"""Part of the run that may lack records at its end: Extrae states the end of the last record."""
PROCESS_TOLERANCE = 0.1
"""Part of the run by which processes may end before others: they do not end at the same time."""
_NS = 1e9


def lacking(
    duration: int, threads: Sequence[int], scanner: _kernel.Scanner
) -> tuple[str, int] | None:
    """Say what speaks for records that are lacking, and how often; None where nothing does.

    Parameters
    ----------
    duration : int
        What the header states, ns.
    threads : sequence of int
        Threads of each process.
    scanner : Scanner
        Which has scanned the whole text.

    Notes
    -----
    The records of all applications together must reach to the end that the header states; one
    application may end before another. Processes are judged by their first threads, for the others
    have no records after their last parallel region; one without any record says nothing.
    """
    ends = scanner.ends()
    states, events, _ = scanner.disordered()
    # There the last record in the file need not be the last in time.
    unknown = distinct(np.concatenate([states, events]))
    ends[unknown] = 0
    last = max(int(ends.max(initial=0)), scanner.end_elsewhere)
    if not len(unknown) and last < (1 - END_TOLERANCE) * duration:
        found = f"the records end at {format_time(last / _NS)}" if last else "there are no records"
        stated = format_time(duration / _NS)
        return f"{found}, the header states {stated}: the file may be truncated", 1
    ends = ends[np.cumsum(threads) - threads]
    early = (ends > 0) & (ends < (1 - PROCESS_TOLERANCE) * ends.max(initial=0))
    if count := int(np.count_nonzero(early)):
        text = "processes whose records end long before those of others: the file may be truncated"
        return text, count
    return None
