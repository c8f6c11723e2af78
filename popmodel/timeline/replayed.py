"""The replay of a run, and when things happen in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from popmodel.efficiency.aggregates import NO_MPI
from popmodel.errors import ReplayError
from popmodel.simulator import from_trace
from popmodel.simulator.replayer import Replayer
from popmodel.timeline.clock import Clock, clock_of

if TYPE_CHECKING:
    from popmodel.network.network import Network
    from popmodel.simulator import Program
    from popmodel.simulator.replayer import Moments
    from popmodel.trace import Trace

_THREADS = "not only masters call MPI: threads have no clock of their own in a replay"


class Replayed(NamedTuple):
    """A replay."""

    program: Program
    replayer: Replayer  # Of the program
    moments: Moments  # When its operations begin and end
    clock: Clock  # From times of the measured run to those of the replay


def replay_of(trace: Trace, network: Network) -> tuple[Replayed | None, str]:
    """Replay a run, or say why that cannot be shown over time."""
    try:
        program = from_trace(trace)
        if len(program.threads):
            return None, _THREADS
        if not program.operations:
            return None, NO_MPI
        replayer = Replayer(program)
        moments = replayer.moments(network)
    except ReplayError as error:
        return None, error.message
    return Replayed(program, replayer, moments, clock_of(trace, program, moments)), ""
