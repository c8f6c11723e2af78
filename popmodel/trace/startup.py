"""How much of a run went by before MPI was initialised: time that every metric counts as lost."""

from __future__ import annotations

import numpy as np

from popmodel.trace.trace import Trace, TraceWarning
from popmodel.units import format_time

__all__ = ["startup"]

MUCH = 0.25
"""Share of a run from which on its efficiencies say more of the start than of the program."""
_INIT = ("MPI_Init", "MPI_Init_thread")
_OTHER = 50000003  # type of the event of calls that are neither messages nor collective
_NS = 1e9


def startup(trace: Trace) -> tuple[TraceWarning, ...]:
    """Warn of a trace that is for a good part the start of MPI.

    A launcher needs a second, a small example milliseconds: its transfer efficiency then speaks of
    the launcher, and what one reads about it ("send fewer messages") leads astray.
    """
    calls = trace.calls()
    values, exits = (column[calls.type == _OTHER] for column in (calls.value, calls.exit))
    inits = [int(v) for v in np.unique(values) if trace.mpi_name(_OTHER, int(v)) in _INIT]
    ended = exits[np.isin(values, inits)]
    end = int(ended.max(initial=trace.begin)) - trace.begin
    if end <= MUCH * trace.duration:
        return ()
    share = f"{100 * end / trace.duration:.0f} % of the run"
    text = (
        f"MPI_Init had not ended before {format_time(end / _NS)}, {share}. Efficiencies count "
        "that as lost, to transfer most of all: trace a longer run, or switch tracing off until "
        "then (popmodel_trace_off)"
    )
    return (TraceWarning(text),)
