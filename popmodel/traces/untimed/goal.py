"""Reads schedules in GOAL, the language of LogGOPSim: operations of every rank and what they need.

``rank 0 { a: calc 1000`` computes for 1000 ns, ``b: send 8b to 1 tag 5`` sends, ``c: recv 8b from 1
tag 5`` receives; ``b requires a`` begins b when a is complete, ``b irequires a`` when a has begun.

A schedule is a graph, what a process does is a sequence: the operations of a rank are taken in an
order in which each comes after what it needs, those that need no message first, and else as they
are written. A receive is posted in its place and waited for where the first operation needs it, at
the latest at the end. Operations that GOAL leaves unordered, but that wait for different messages,
are ordered by this; how many is a warning. The operations of a rank on different processors
(``cpu``) are sequences of their own; the adapter (``nic``) is read past: it has no gap here.

The compiled core scans the text (``popmodel/kernel/goal.cpp``).

Source: T. Hoefler, C. Siebert, A. Lumsdaine, "Group Operation Assembly Language", ICPP 2009;
LogGOPSim (https://github.com/spcl/LogGOPSim), ``txt2bin.re``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.kernel import _kernel
from popmodel.traces.tables import TraceWarning
from popmodel.traces.untimed.untimed_trace import errors_of, feed_file, one_application, trace_of

if TYPE_CHECKING:
    from popmodel.traces.recorded_run import Trace

_SAID = "no measured times: computation takes as many ns as the schedule says, MPI calls take none"
_ORDERED = (
    "operations that begin later than the schedule asks for (they need fewer than those before "
    "them, whose order is kept)"
)
_ADVICE = "give a schedule as text, such as LogGOPSim's schedgen writes it"


def read(path: str | os.PathLike[str], application: int = 1) -> Trace:
    one_application(path, application, "schedule")
    scanner = _kernel.GoalScanner()
    with errors_of(path, _ADVICE):
        feed_file(Path(path), scanner)
        scanner.finish()
        columns = scanner.columns()
    held = [TraceWarning(_ORDERED, scanner.held)] if scanner.held else []
    return trace_of(path, columns, {}, (TraceWarning(_SAID), *held), _ADVICE, scanner.rank_of())
