"""Runs programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from synthetic.data import Counters, Network, Run, spread
from synthetic.engine import Engine
from synthetic.program import Program


def run(
    program: Program,
    *,
    network: Network | None = None,
    counters: Counters | None = None,
    persistent: float | Sequence[float] = 0.0,
    transient: float = 0.0,
    seed: int = 0,
    fork: float = 1e-6,
    startup: float = 1e-4,
) -> Run:
    """Run a program.

    Parameters
    ----------
    program : Program
        What is run.
    network : Network, optional
        What messages cost.
    counters : Counters, optional
        Instructions and cycles; by default none are in the trace.
    persistent : float or sequence of float
        How much longer each process computes: factors, or their coefficient of variation.
    transient : float
        Coefficient of variation of each execution (log-normal, of mean 1).
    seed : int
        Of what is drawn.
    fork, startup : float
        Seconds for a fork and for a join; before MPI_Init.
    """
    if isinstance(persistent, int | float):
        persistent = spread(program.processes, persistent, seed)
    if len(persistent) != program.processes:
        raise ValueError(f"{len(persistent)} factors for {program.processes} processes")
    engine = Engine(program, network or Network(), counters, fork)
    sigma = math.sqrt(math.log1p(transient**2))
    for rank, factor in enumerate(persistent):
        noise = np.random.default_rng((seed, rank)) if transient else None
        engine.start(factor, noise, sigma, startup)
    return engine.finish()
