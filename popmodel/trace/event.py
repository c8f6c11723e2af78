"""What threads tell at instants, for those who write traces; a format gives each its number."""

from __future__ import annotations

from enum import IntEnum, auto


class Event(IntEnum):
    """Kinds of events; a value of 0 ends what another value began, unless it is a number."""

    # A call of MPI; the value says which one.
    POINT_TO_POINT = auto()
    COLLECTIVE = auto()
    OTHER = auto()
    ONE_SIDED = auto()
    IO = auto()
    # What stands beside its entry, or (the last) its exit.
    BYTES_SENT = auto()
    BYTES_RECEIVED = auto()
    IS_ROOT = auto()
    COMMUNICATOR = auto()
    CALLER = auto()  #: the function that makes the call
    CALLER_LINE = auto()  #: the line of the call
    MISSES = auto()  #: calls in a row that found nothing
    # OpenMP.
    PARALLEL = auto()
    WORK_SHARING = auto()
    BARRIER = auto()
    JOIN = auto()
    NAMED_CRITICAL = auto()
    CRITICAL = auto()
    SET_LOCK = auto()
    OVERHEAD = auto()
    ORDERED = auto()
    OUTLINED = auto()  #: the function of a region that the thread executes
    OUTLINED_LINE = auto()
    TASKWAIT = auto()
    TASK = auto()
    NEW_TASK = auto()
    TASKGROUP = auto()
    # Numbers about locks that are summed up: four for each kind, in this order.
    LOCKS_TAKEN = auto()
    LOCKS_WAITS = auto()  #: how often the thread had to wait
    LOCKS_WAITED = auto()  #: ns that it waited in its running state
    LOCKS_HELD = auto()  #: ns that they were held
    CRITICALS_TAKEN = auto()
    CRITICALS_WAITS = auto()
    CRITICALS_WAITED = auto()
    CRITICALS_HELD = auto()
    ATOMICS_TAKEN = auto()
    ATOMICS_WAITS = auto()
    ATOMICS_WAITED = auto()
    ATOMICS_HELD = auto()
    # Everything else.
    USER_REGION = auto()
    INSTRUCTIONS = auto()
    CYCLES = auto()
    APPLICATION = auto()  #: 1 begins a process, 0 ends it
    FLUSH = auto()  #: the tracer writes its records
    TRACING = auto()  #: 0 switches it off
    LOST = auto()  #: the thread's records end; why is a key of `popmodel.trace.losses.REASONS`
    CPUS = auto()  #: processors that the thread may use
    SHARING = auto()  #: threads of the run that may use no others
    USED = auto()  #: ns that it was on a processor
    WAITED = auto()  #: ns that it waited for one
    DELAYED = auto()  #: ns that it waited for one in the computing that ends here
    WOKEN = auto()  #: ns that it waited for one at the end of a wait for its team
    LEFT_OUT = auto()  #: calls of a kind are not recorded anymore (`popmodel.trace.left_out`)
    CRITICAL_PATH = auto()  #: whether the process is on the critical path of a replay


MARKS = (Event.LOST, Event.CPUS, Event.SHARING, Event.USED, Event.WAITED, Event.LEFT_OUT)
"""What popmodel's tracer tells about a trace."""
