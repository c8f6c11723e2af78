"""Measured runs: a file goes in, a `Trace` with its `Records` comes out.

`formats` finds the reader (`paraver`, or `untimed` for SMPI, Dimemas and GOAL), which gives
`records` in `tables`, `calls` and `intervals`; `selection` says which part of a run is analysed,
`run_parts` cuts it; `regions`, `runtime` and `caveats` are made of any of them, `info` is the
summary.
"""

from popmodel.traces.calls import CallTable
from popmodel.traces.recorded_run import Trace
from popmodel.traces.tables import EventTable, MessageTable, States, TraceWarning
from popmodel.traces.trace_formats import read

__all__ = ["CallTable", "EventTable", "MessageTable", "States", "Trace", "TraceWarning", "read"]
