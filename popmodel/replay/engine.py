"""Replaying a program on a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.errors import ReplayError
from popmodel.kernel import _kernel
from popmodel.network.fan import collective_time
from popmodel.network.point_to_point import transfer_time
from popmodel.replay.algorithms import carry_out
from popmodel.replay.program import COLLECTIVES, Op, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network

__all__ = ["Execution", "replay"]

# Who waits for whom; the compiled engine uses the same numbers.
_SYNCHRONISING, _FROM_ROOT, _TO_ROOT, _TO_ROOT_PAID = range(4)

_RULES = {
    "dimemas": {"reduce": _TO_ROOT_PAID},
    "synchronising": {},
    "rooted": {
        "bcast": _FROM_ROOT,
        "scatter": _FROM_ROOT,
        "reduce": _TO_ROOT,
        "gather": _TO_ROOT,
    },
}

_NS = 1e9


@dataclass(frozen=True)
class Execution:
    """What a replay found.

    Attributes
    ----------
    network : Network
        On what.
    end : float64[P]
        When each process ends, s.
    compute : float64[P]
        Sum of its compute bursts, s.
    operations : int
        MPI operations replayed, over all processes.
    """

    network: Network
    end: NDArray[np.float64]
    compute: NDArray[np.float64]
    operations: int

    @property
    def runtime(self) -> float:
        """When the last process ends, s."""
        return float(self.end.max(initial=0.0))


def replay(program: Program, network: Network) -> Execution:
    """Replay a program on a network without shared resources.

    Parameters
    ----------
    program : Program
        What every process does.
    network : Network
        What communication costs.

    Returns
    -------
    Execution
        With the end of every process.

    Raises
    ------
    ReplayError
        On a deadlock or an unmatched message; names ranks, operations and times.
    """
    if network.collectives == "algorithm":
        program = carry_out(program)
    cpu = 1 / network.cpu_factor
    end, stuck_at = _kernel.replay(
        offsets=program.offsets,
        kind=program.kind,
        target=program.target,
        burst=program.burst,
        tail=program.tail,
        members=program.collectives.members,
        root=program.collectives.root,
        cpu=cpu,
        **_message_costs(program, network),
        **_collective_costs(program, network),
    )
    stuck = np.flatnonzero(stuck_at < program.offsets[1:])
    if len(stuck):
        raise _deadlock(program, stuck, stuck_at, end)
    return Execution(network, end / _NS, program.compute() * cpu / _NS, program.operations)


def _message_costs(program: Program, network: Network) -> dict[str, Any]:
    messages = program.messages
    remote = messages.sender != messages.receiver
    nothing = np.zeros(len(messages))
    dimemas = network.rules == "dimemas"
    latency = 0.0 if dimemas else network.latency
    transfer = transfer_time(messages.size, latency, network.bandwidth) * _NS
    overhead = np.where(remote, network.latency * _NS, 0.0) if dimemas else nothing
    rendezvous = (messages.size >= network.eager_threshold) & (messages.mode == 0)
    return {
        "transfer": np.where(remote, transfer, 0.0),
        "rendezvous": rendezvous.astype(np.uint8),
        "send_overhead": overhead,
        "receive_before": overhead,
        "receive_after": nothing,
        "sender_waits_for_transfer": not dimemas,
    }


def _collective_costs(program: Program, network: Network) -> dict[str, Any]:
    collectives = program.collectives
    cost = np.zeros(len(collectives))
    member_cost = np.zeros(len(collectives))
    rule = np.zeros(len(collectives), dtype=np.uint8)
    if network.collectives != "algorithm":
        rules = _RULES[network.collectives]
        sent = collectives.sent
        for code in np.unique(collectives.kind).tolist():
            kind = COLLECTIVES[code]
            mine = collectives.kind == code
            at_root = collectives.root_sent if kind == "reduce" else sent
            for target, sends, receives in (
                (cost, at_root, collectives.received),
                (member_cost, sent, sent),
            ):
                target[mine] = _NS * collective_time(
                    kind,
                    collectives.members[mine],
                    sends[mine],
                    receives[mine],
                    network.latency,
                    network.bandwidth,
                    network.collective_cost,
                )
            rule[mine] = rules.get(kind, _SYNCHRONISING)
        # Where nobody is known to be the root, nobody can go on early or be waited for.
        rule[collectives.root < 0] = _SYNCHRONISING
    return {"collective_cost": cost, "member_cost": member_cost, "collective_rule": rule}


def _deadlock(
    program: Program,
    stuck: NDArray[np.int64],
    stuck_at: NDArray[np.int64],
    clock: NDArray[np.float64],
) -> ReplayError:
    """Name the first ranks that wait, for what, and since when."""
    named = [_waiting(program, p, int(stuck_at[p]), float(clock[p])) for p in stuck[:4].tolist()]
    more = f"; and {len(stuck) - 4} more ranks" if len(stuck) > 4 else ""
    return ReplayError(
        f"the replay stops: {len(stuck)} of {program.processes} ranks wait for ever: "
        + "; ".join(named)
        + more,
        "records of these operations are missing from the trace, or the program relies on "
        "buffering beyond the eager threshold",
    )


def _waiting(program: Program, process: int, operation: int, clock: float) -> str:
    call = int(program.call[operation])
    name = program.call_name[program.call_code[call]]
    target = int(program.target[operation])
    text = (
        f"rank {process} in {name} at {program.call_time[call] / _NS:.9f} s of the trace "
        f"(replayed {clock / _NS:.9f} s)"
    )
    kind = Op(program.kind[operation])
    if kind >= Op.COLLECTIVE:
        c = program.collectives
        where = f"communicator {c.communicator[target]}" if c.communicator[target] else "all ranks"
        return f"{text}, {COLLECTIVES[c.kind[target]]} of {c.members[target]} members on {where}"
    m = program.messages
    what = f"{m.size[target]} B, tag {m.tag[target]}"
    if kind in (Op.SEND, Op.ISEND, Op.WAIT_SEND):
        return f"{text}, for rank {m.receiver[target]} to receive {what}"
    return f"{text}, for {what} from rank {m.sender[target]}"
