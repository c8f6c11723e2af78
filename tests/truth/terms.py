"""What truths have that their signatures do not say, by family."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from truth.drawn import between

FAMILIES = ("shared", "moderate", "hard", "irregular")
HARD = ("boundary", "socket", "root", "cache", "clock", "serial")
IRREGULAR = ("cache", "tasks", "phase", "adapter")


@dataclass(frozen=True)
class Terms:
    """Sizes of the terms; 0 where there is none.

    Those called shares are parts of the time of a step on two full nodes with one thread each.
    """

    # Share of a collective in every step, at twice the cores of a node; grows with log2 P.
    collective: float = 0.0
    meets: bool = False  # Whether all wait for each other in it
    shape: float = 0.0  # Of the gamma distribution of transient imbalance; 0 for a normal one
    boundary: float = 0.0  # Share of a delay of exchanges across the node boundary
    # By how much a byte takes longer there than measured with one pair of nodes.
    crossing: float = 0.0
    socket: float = 0.0  # By how much a team on two sockets computes more slowly
    # Share of the work of rank 0 for all others in every step, at twice the cores of a node; grows
    # with P.
    root: float = 0.0
    cache: float = 0.0  # Part of the traffic that stays in the cache once blocks are small
    nodes_to_fit: float = 1.0  # On how many full nodes half of that does
    # Part of the clock that is lost with all cores busy, beyond what was measured.
    clock: float = 0.0
    serial: float = 0.0  # Part of the work of each parallel region that the master does alone
    # Tasks of all processes, which nobody divides further, for each core of sixteen nodes.
    tasks: float = 0.0
    # Share of a phase of rank 0 in every step, for which all others wait, at twice the cores of a
    # node; grows with P.
    phase: float = 0.0
    # By how much a byte takes longer through the adapter when all cores of a node send.
    adapter: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the terms that there are."""
        among = [one.name for one in fields(self) if one.name in ("collective", *HARD, *IRREGULAR)]
        return tuple(name for name in among if getattr(self, name) > 0)


def draw(rng: np.random.Generator, family: str) -> Terms:
    """Draw the terms of a family at random."""
    if family == "shared":
        return Terms()
    shape = rng.uniform(1.0, 4.0)
    if family == "moderate":
        return Terms(
            collective=between(rng, 0.005, 0.03), meets=bool(rng.random() < 0.5), shape=shape
        )
    if family == "irregular":
        return Terms(
            shape=shape,
            cache=rng.uniform(0.2, 0.5),
            nodes_to_fit=between(rng, 1.0, 8.0),
            tasks=between(rng, 1.5, 8.0),
            phase=between(rng, 0.002, 0.01),
            adapter=rng.uniform(0.5, 3.0),
        )
    chosen = rng.choice(HARD, size=int(rng.integers(2, 5)), replace=False)
    drawn = {
        "boundary": between(rng, 0.01, 0.05),
        "socket": rng.uniform(0.05, 0.3),
        "root": between(rng, 0.003, 0.02),
        "cache": rng.uniform(0.1, 0.4),
        "clock": rng.uniform(0.05, 0.2),
        "serial": between(rng, 0.002, 0.02),
    }
    return Terms(
        shape=shape,
        crossing=rng.uniform(0.1, 1.0) if "boundary" in chosen else 0.0,
        nodes_to_fit=between(rng, 1.0, 8.0),
        **{str(name): float(drawn[str(name)]) for name in chosen},
    )
