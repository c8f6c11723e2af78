"""Replaying a program on a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.costs import core, costs
from popmodel.simulator.execution import stopped
from popmodel.simulator.replayer import Replayer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.costs import Charges
    from popmodel.simulator.execution import Execution
    from popmodel.simulator.program import Program

_NS = 1e9


def replay(
    program: Program, network: Network, *, places: NDArray[np.int32] | None = None
) -> Execution:
    """Replay a program on a network.

    Who replays it on several networks, or asks for more, makes a `Replayer` of it.
    """
    return Replayer(program).run(network, places=places)


def ends(program: Program, charges: Charges, cpu: float = 1.0) -> NDArray[np.float64]:
    """Replay a program each of whose messages and collectives has its own cost."""
    messages = np.arange(len(program.messages), dtype=np.int32)
    collectives = np.arange(len(program.collectives), dtype=np.int32)
    speed = np.full(program.sequences, cpu)
    end, stuck_at = core(program, messages, collectives).run(costs([charges], [speed]), None)
    if (error := stopped(program, stuck_at, end)) is not None:
        raise error
    return end / _NS
