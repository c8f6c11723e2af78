"""What a thread is doing: the numbers of `popmodel.trace.trace.States`, those of Paraver."""

from __future__ import annotations

from collections.abc import Mapping

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
