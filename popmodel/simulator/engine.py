"""Replaying a program on a network."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import ReplayError
from popmodel.kernel import _kernel
from popmodel.simulator.algorithms import Carried, carry_out, not_carried_out
from popmodel.simulator.charges import Charges, charge
from popmodel.simulator.program import COLLECTIVES, Op, Program
from popmodel.units import count, format_time, plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network

__all__ = ["Execution", "deadlock", "ends", "replay"]

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
        MPI operations replayed, over all processes; the messages of a collective that is carried
        out as such are part of one.
    spent : float64[places, names] or None
        Time in the calls of each place and name, s; None if it was not asked for.
    """

    network: Network
    end: NDArray[np.float64]
    compute: NDArray[np.float64]
    operations: int
    spent: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        size = (
            f"{plural(len(self.end), 'process', 'processes')}, {count(self.operations)} operations"
        )
        return f"<Execution on {self.network.name}: {size}, runtime {format_time(self.runtime)}>"

    @property
    def runtime(self) -> float:
        """When the last process ends, s."""
        return float(self.end.max(initial=0.0))


def replay(
    program: Program, network: Network, *, places: NDArray[np.int32] | None = None
) -> Execution:
    """Replay a program on a network.

    Parameters
    ----------
    program : Program
        What every process does.
    network : Network
        What communication costs.
    places : int32[K], optional
        Place of each call, from 0; empty where there is one for all. Given that, the time in the
        calls is found as well.

    Returns
    -------
    Execution
        With the end of every process.

    Raises
    ------
    ReplayError
        On a deadlock or an unmatched message; names ranks, operations and times.
    """
    program = program.on(network.mapping)
    if network.contended:
        return _contended(program, network, places)
    carried, messages = None, None
    if network.collectives == "algorithm":
        tiers = network.tiers is not None
        carried, messages = carry_out(program, network.algorithms, tiers=tiers)
    program = program.at(network.speeds)
    cpu = 1 / network.cpu_factor
    charges = charge(program, network, messages)
    end, spent = _run(program, charges, cpu, carried, places)
    compute = program.compute() * cpu / _NS
    return Execution(network, end, compute, program.operations, spent)


def ends(
    program: Program, charges: Charges, cpu: float = 1.0, carried: Carried | None = None
) -> NDArray[np.float64]:
    """Replay a program whose messages and collectives have their costs already.

    Parameters
    ----------
    program : Program
        What every process does.
    charges : Charges
        What each of its messages and collectives costs.
    cpu : float
        Multiplies every compute burst.
    carried : Carried, optional
        How the collectives of `Rule.MESSAGES` are carried out.

    Returns
    -------
    float64[P]
        When each process ends, s.

    Raises
    ------
    ReplayError
        On a deadlock or an unmatched message; names ranks, operations and times.
    """
    return _run(program, charges, cpu, carried, None)[0]


def _run(
    program: Program,
    charges: Charges,
    cpu: float,
    carried: Carried | None,
    places: NDArray[np.int32] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """End of each process and, if asked for, time in the calls of each place and name, s."""
    names = len(program.call_name)
    number = 0 if places is None else int(places.max(initial=0)) + 1
    end, stuck_at, spent = _kernel.replay(
        offsets=program.offsets,
        kind=program.kind,
        target=program.target,
        burst=program.burst,
        tail=program.tail,
        members=program.collectives.members,
        root=program.collectives.root,
        cpu=cpu,
        messages=len(program.messages),
        **vars(charges),
        **vars(carried or not_carried_out(program)),
        call=program.call,
        call_name=program.call_code.astype(np.int16, copy=False),
        call_place=np.empty(0, np.int32) if places is None else places,
        names=names,
        places=number,
    )
    stuck = np.flatnonzero(stuck_at < program.offsets[1:])
    if len(stuck):
        raise deadlock(program, stuck, stuck_at, end)
    return end / _NS, None if places is None else spent.reshape(number, names) / _NS


def _contended(program: Program, network: Network, places: NDArray[np.int32] | None) -> Execution:
    from popmodel.simulator.contended import replay_contended, spent_in_calls

    execution, moments = replay_contended(program, network, moments=places is not None)
    if places is None or moments is None:
        return execution
    return replace(execution, spent=spent_in_calls(program, moments, places))


def deadlock(
    program: Program,
    stuck: NDArray[np.int64],
    stuck_at: NDArray[np.int64],
    clock: NDArray[np.float64],
) -> ReplayError:
    """Name the first ranks that wait, for what, and since when."""
    named = [_waiting(program, p, int(stuck_at[p]), float(clock[p])) for p in stuck[:4].tolist()]
    more = f"; and {len(stuck) - 4} more ranks" if len(stuck) > 4 else ""
    return ReplayError(
        f"deadlock in the replay: {len(stuck)} of {program.processes} ranks wait forever: "
        + "; ".join(named)
        + more
        + (f"; {program.lost}" if program.lost else ""),
        "analyse the part before the loss: leave out --from-start"
        if program.lost
        else "records of these operations are missing from the trace, or the program relies on "
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
