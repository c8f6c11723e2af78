"""What each MPI call does to a program: the readable statement of what the replay understands."""

from __future__ import annotations

from enum import IntEnum

from popmodel.simulator.program import COLLECTIVES
from popmodel.traces import codes as states
from popmodel.traces.calls import FOUND_NOTHING, CallGroup


class Action(IntEnum):
    """What a call does."""

    LOCAL = 0  #: nothing that others can notice
    SEND = 1
    ISEND = 2
    RECEIVE = 3
    IRECEIVE = 4
    SENDRECEIVE = 5  #: posts its receive, sends blocking, waits for the receive
    START = 6  #: starts sends and receives at once
    WAIT = 7  #: completes the receives that the trace shows, else the oldest open request
    WAITALL = 8  #: completes the receives that the trace shows, and all open requests
    COLLECTIVE = 9
    ICOLLECTIVE = 10
    EXCHANGE = 11  #: sends and receives messages at once, and waits for all of them
    IEXCHANGE = 12  #: the same without waiting; one request completes all of it
    IGNORED = 13  #: others do notice it, but it is not modelled


_BETWEEN_NEIGHBOURS = ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")

# The modes of sending differ in nothing but this: a buffered send never waits. A synchronous one
# (Ssend) is not held either unless its size asks for it, as in Dimemas.
_BY_NAME = {
    "MPI_Send": Action.SEND,
    "MPI_Ssend": Action.SEND,
    "MPI_Bsend": Action.SEND,
    "MPI_Rsend": Action.SEND,
    "MPI_Isend": Action.ISEND,
    "MPI_Issend": Action.ISEND,
    "MPI_Ibsend": Action.ISEND,
    "MPI_Irsend": Action.ISEND,
    "MPI_Recv": Action.RECEIVE,
    "MPI_Mrecv": Action.RECEIVE,
    "MPI_Irecv": Action.IRECEIVE,
    "MPI_Imrecv": Action.IRECEIVE,
    "MPI_Sendrecv": Action.SENDRECEIVE,
    "MPI_Sendrecv_replace": Action.SENDRECEIVE,
    "MPI_Start": Action.START,
    "MPI_Startall": Action.START,
    "MPI_Isendrecv": Action.IEXCHANGE,
    "MPI_Isendrecv_replace": Action.IEXCHANGE,
    # Each process sends to its neighbours in a topology, and receives from them.
    **{f"MPI_Neighbor_{kind}": Action.EXCHANGE for kind in _BETWEEN_NEIGHBOURS},
    **{f"MPI_Ineighbor_{kind}": Action.IEXCHANGE for kind in _BETWEEN_NEIGHBOURS},
    "MPI_Wait": Action.WAIT,
    "MPI_Waitany": Action.WAIT,
    "MPI_Waitsome": Action.WAIT,
    "MPI_Waitall": Action.WAITALL,
    # A trace holds the tests that succeeded; the misses before are only counted.
    "MPI_Test": Action.WAIT,
    "MPI_Testany": Action.WAIT,
    "MPI_Testsome": Action.WAIT,
    "MPI_Testall": Action.WAITALL,
    "MPI_Init": Action.COLLECTIVE,
    "MPI_Init_thread": Action.COLLECTIVE,
}

_LOOKS = ("MPI_Probe", "MPI_Iprobe", "MPI_Mprobe", "MPI_Improbe", "MPI_Request_get_status")

ANYWHERE = frozenset({"MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Allreduce"})
"""Communication that most programs have, which tells none from another."""
BUFFERED = ("MPI_Bsend", "MPI_Ibsend")
"""Sends that never wait for their receive."""

_VARIANTS = {
    "alltoallv": "alltoall",
    "alltoallw": "alltoall",
    "gatherv": "gather",
    "scatterv": "scatter",
    "allgatherv": "allgather",
    "exscan": "scan",
    "reduce_scatter_block": "reduce_scatter",
    "reducescat": "reduce_scatter",
}


def action_of(group: CallGroup, name: str) -> Action:
    """What a call does."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if group is CallGroup.COLLECTIVE:
        _, blocking = _split(name)
        if collective_of(name) is None:
            return Action.IGNORED
        return Action.COLLECTIVE if blocking else Action.ICOLLECTIVE
    return Action.IGNORED if group in (CallGroup.ONE_SIDED, CallGroup.IO) else Action.LOCAL


_STATES = {
    Action.SEND: states.SENDING,
    Action.ISEND: states.SENDING_ON,
    Action.RECEIVE: states.WAITING,
    Action.IRECEIVE: states.RECEIVING_ON,
    Action.SENDRECEIVE: states.BOTH_WAYS,
    Action.WAIT: states.COMPLETING,
    Action.WAITALL: states.COMPLETING,
}
_STATES_OF_GROUPS = {
    CallGroup.COLLECTIVE: states.TOGETHER,
    CallGroup.ONE_SIDED: states.MOVING,
    CallGroup.IO: states.INPUT_OUTPUT,
}


def state_of(group: CallGroup, name: str) -> int:
    """State of a thread in a call (`popmodel.traces.codes`), as tracers write it."""
    return _STATES.get(action_of(group, name)) or _STATES_OF_GROUPS.get(group, states.OTHER)


def looks(name: str) -> bool:
    """Whether a call waits for what the next one then completes: in the replay that one waits."""
    return name.endswith(FOUND_NOTHING) or name in _LOOKS


def collective_of(name: str) -> str | None:
    """Kind of the collective that a call carries out; None if it is none that is modelled."""
    if name in ("MPI_Init", "MPI_Init_thread"):
        return "init"
    base, _ = _split(name)
    kind = _VARIANTS.get(base, base)
    return kind if kind in COLLECTIVES else None


def is_by_peer(name: str) -> bool:
    """Whether a call takes amounts for each peer, as those do whose names end with v or w."""
    base, _ = _split(name)
    return base in _VARIANTS and base[-1] in "vw"


def _split(name: str) -> tuple[str, bool]:
    """Name without prefix and without the mark of nonblocking ones, and whether it blocks."""
    base = name.removeprefix("MPI_").lower()
    kinds = (*COLLECTIVES, *_VARIANTS)
    if base not in kinds and base[:1] == "i" and base[1:] in kinds:
        return base[1:], False
    return base, True
