"""What threads are doing and what they tell: numbers of states, kinds of events."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, auto

# What a thread is doing: the numbers of `popmodel.traces.tables.States`, those of Paraver.


(
    IDLE,
    RUNNING,
    NOT_CREATED,
    WAITING,
    SENDING,
    SYNCHRONISING,
    LOOKING,
    SCHEDULING,
    COMPLETING,
    BLOCKED,
    SENDING_ON,
    RECEIVING_ON,
    INPUT_OUTPUT,
    TOGETHER,
    TRACING_DISABLED,
    OTHER,
    BOTH_WAYS,
    MOVING,
) = range(18)
"""In user code is `RUNNING`; in a barrier, critical section or lock `SYNCHRONISING`; nothing is
recorded of a thread that is `TRACING_DISABLED`."""

STATES: Mapping[int, str] = {
    IDLE: "Idle",
    RUNNING: "Running",
    NOT_CREATED: "Not created",
    WAITING: "Waiting a message",
    SENDING: "Blocking Send",
    SYNCHRONISING: "Synchronization",
    LOOKING: "Test/Probe",
    SCHEDULING: "Scheduling and Fork/Join",
    COMPLETING: "Wait/WaitAll",
    BLOCKED: "Blocked",
    SENDING_ON: "Immediate Send",
    RECEIVING_ON: "Immediate Receive",
    INPUT_OUTPUT: "I/O",
    TOGETHER: "Group Communication",
    TRACING_DISABLED: "Tracing Disabled",
    OTHER: "Others",
    BOTH_WAYS: "Send Receive",
}
"""What they are called, by Paraver; `MOVING` (one-sided communication) has no name there."""


# What threads tell at instants, for those who write traces; a format gives each its number.


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
    MPI_FILE_BYTES = auto()  #: bytes that a call of MPI-IO moves
    # Calls of POSIX and of C that open, read or write files.
    FILE_CALL = auto()
    FILE_BYTES = auto()  #: bytes that it moves
    FILE_CALLS = auto()  #: how many calls in a row it stands for
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
    LOST = auto()  #: the thread's records end; why is a key of `popmodel.traces.caveats.REASONS`
    CPUS = auto()  #: processors that the thread may use
    SHARING = auto()  #: threads of the run that may use no others
    USED = auto()  #: ns that it was on a processor
    WAITED = auto()  #: ns that it waited for one
    DELAYED = auto()  #: ns that it waited for one in the computing that ends here
    WOKEN = auto()  #: ns that it waited for one at the end of a wait for its team
    LEFT_OUT = auto()  #: calls of a kind are not recorded anymore (`popmodel.traces.caveats`)
    CRITICAL_PATH = auto()  #: whether the process is on the critical path of a replay


MARKS = (Event.LOST, Event.CPUS, Event.SHARING, Event.USED, Event.WAITED, Event.LEFT_OUT)
"""What popmodel's tracer tells about a trace."""

FILE_CALLS: Mapping[int, str] = dict(
    enumerate(
        (
            *("read", "write", "fread", "fwrite", "pread", "pwrite", "readv", "writev"),
            *("preadv", "pwritev", "open", "fopen"),
        ),
        start=1,
    )
) | dict(enumerate(("close", "fclose", "fsync", "fdatasync", "fflush"), start=101))
"""Names of calls for files by the value of their event; Extrae has those up to 100."""
