"""Ideal scenarios of a run: what each kind of loss costs, found by replay.

They are the ideals behind the POP efficiencies (transfer, serialisation, load balance), here as
runtimes on the network in question instead of factors of a product.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.network.point_to_point import SizeClass
from popmodel.simulator.program import at_once
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.program import Program

    RunOn = Callable[[Program, Network], float]

_NS = 1e9


@dataclass(frozen=True)
class Scenario:
    """A run in which something is ideal."""

    name: str
    meaning: str  # What is ideal in it
    runtime: float  # s
    gain: float  # How much shorter than the run as it is, s; negative if longer


def scenarios(program: Program, network: Network, run: RunOn) -> tuple[Scenario, ...]:
    """Find the potential gains of a run, the highest first."""
    runtime = run(program, network)
    compute = program.compute() / (speeds(program, network) * _NS)
    even, ideal = balanced(program, network), network.ideal()
    found = {
        "no transfer": ("no latency, infinite bandwidth", run(program, ideal)),
        "balanced": ("equal computing on all ranks", run(even, network)),
        "balanced, no transfer": ("equal computing, ideal network", run(even, ideal)),
        "no waiting": ("no rank ever waits: the longest computing", compute.max(initial=0.0)),
        "all ideal": ("no transfer, no waiting, balanced: the mean computing", _mean(compute)),
    }
    if (exchanging := at_once(program)) is not None:
        meaning = "no blocking send holds up the receives beside it (MPI_Sendrecv)"
        found["sends and receives at once"] = meaning, run(exchanging, network)
    if (tiers := network.tiers) is not None and tiers.within is not None and tiers.between:
        free = replace(tiers.within, classes=(SizeClass(None, 0.0, 0.0),))
        free = replace(free, send_overhead=0.0, receive_overhead=0.0)
        inside = network.with_(tiers=replace(tiers, within=free))
        found["no transfer within nodes"] = "messages inside a node for free", run(program, inside)
    gains = [
        Scenario(name, meaning, float(time), float(runtime - time))
        for name, (meaning, time) in found.items()
    ]
    return tuple(sorted(gains, key=lambda one: -one.gain))


def balanced(program: Program, network: Network) -> Program:
    """Return the program with its bursts scaled by process so that all compute equally long.

    Each takes the mean of all. One that computes nothing has no bursts to scale, and stays so.
    """
    compute = program.compute() / speeds(program, network)
    factor = np.ones_like(compute)
    some = compute > 0
    factor[some] = _mean(compute) / compute[some]
    burst = program.burst * np.repeat(factor, np.diff(program.offsets))
    return replace(program, burst=burst, tail=program.tail * factor)


def speeds(program: Program, network: Network) -> NDArray[np.float64]:
    """CPU speed of what is computed in each sequence of operations, against the traced run."""
    return network.cpu(program.processes)[program.owner]


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0
