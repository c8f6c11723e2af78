"""Which state a thread is in, by what is open on it, as Extrae chooses them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from popmodel.trace.states import (
    BOTH_WAYS,
    COMPLETING,
    INPUT_OUTPUT,
    LOOKING,
    MOVING,
    OTHER,
    RECEIVING_ON,
    SCHEDULING,
    SENDING,
    SENDING_ON,
    SYNCHRONISING,
    TOGETHER,
    WAITING,
)
from popmodel.tracer.calls import Call, known_calls
from popmodel.tracer.records import Construct

_BY_NAME = {
    **dict.fromkeys(("Send", "Bsend", "Ssend", "Rsend"), SENDING),
    **dict.fromkeys(("Recv", "Mrecv"), WAITING),
    **dict.fromkeys(("Irecv", "Imrecv", "Recv_init"), RECEIVING_ON),
    **dict.fromkeys(("Sendrecv", "Sendrecv_replace"), BOTH_WAYS),
    **dict.fromkeys(("Isendrecv", "Isendrecv_replace"), SENDING_ON),
    **dict.fromkeys(("Request_get_status", "Request_free", "Cancel"), OTHER),
    **dict.fromkeys(("Start", "Startall"), OTHER),
    **dict.fromkeys(
        ("Win_create", "Win_allocate", "Win_allocate_shared", "Win_create_dynamic", "Win_attach",
         "Win_detach", "Win_free"),
        OTHER,
    ),
}  # fmt: skip
_BY_FAMILY = {
    "message": SENDING_ON,
    "probe": LOOKING,
    "completion": COMPLETING,
    "collective": TOGETHER,
    "icollective": TOGETHER,
    "neighbour": TOGETHER,
    "rma": MOVING,
    "io": INPUT_OUTPUT,
}

IN_CONSTRUCT: Mapping[Construct, int] = {
    Construct.BARRIER: SYNCHRONISING,
    Construct.IMPLICIT_BARRIER: SYNCHRONISING,
    Construct.CRITICAL_WAIT: SYNCHRONISING,
    Construct.LOCK_WAIT: SYNCHRONISING,
    Construct.SCHEDULING: SCHEDULING,
    Construct.ORDERED: SYNCHRONISING,
    Construct.TASKWAIT: SYNCHRONISING,
    Construct.TASKGROUP: SYNCHRONISING,
    Construct.JOIN: SCHEDULING,
}
"""States in constructs of OpenMP; in the others, user code runs."""


def state_of(call: Call) -> int:
    """State of a thread in an MPI call."""
    return _BY_NAME.get(call.name) or _BY_FAMILY.get(call.family, OTHER)


def states_of_calls() -> NDArray[np.int64]:
    """State in each call, by its number; `OTHER` for numbers that no call has."""
    states = np.full(1 << 16, OTHER, np.int64)
    for number, call in known_calls().items():
        states[number] = state_of(call)
    return states
