"""Options and results of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synthetic.program import Program
from synthetic.written import Lines

if TYPE_CHECKING:
    from popmodel.traces import Trace


@dataclass(frozen=True)
class Network:
    """Seconds and bytes per second; messages above `eager` bytes wait for their receive."""

    latency: float = 2e-6
    bandwidth: float = 10e9
    overhead: float = 0.5e-6
    eager: int = 65536


@dataclass(frozen=True)
class Counters:
    """What is counted, and why some processes compute longer than others.

    With the cause "instructions" those execute more, with "ipc" they take more cycles for as many,
    with "frequency" more time for as many cycles. Noise takes cycles.
    """

    frequency: float = 2e9
    ipc: float = 1.5
    cause: str = "instructions"


@dataclass
class Run:
    """A simulated run.

    Attributes
    ----------
    end : int
        Duration, ns.
    iterations : list of list of int
        When each rank began each iteration, and ended the last if the program says so, ns.
    bursts : dict of str to list of list of float
        Seconds of the executions of each named burst on each rank.
    regions : dict of str to list of list of list of float
        Seconds that each thread computed in the executions of each region on each rank.
    calls : list of int
        Calls of MPI on each rank, MPI_Init and MPI_Finalize among them.
    messages : list of (int, int, int, int)
        Sender, receiver, bytes and tag, in the order in which they were sent.
    """

    program: Program
    lines: Lines
    iterations: list[list[int]]
    calls: list[int]
    bursts: dict[str, list[list[float]]] = field(default_factory=dict)
    regions: dict[str, list[list[list[float]]]] = field(default_factory=dict)
    messages: list[tuple[int, int, int, int]] = field(default_factory=list)
    end: int = 0

    def write(self, path: Path) -> Path:
        """Write the trace with its labels."""
        self.lines.write(path, self.end)
        return path

    def read(self, folder: Path, name: str = "synthetic.prv") -> Trace:
        """Write the trace into a folder, and read it."""
        from popmodel.traces import read

        return read(self.write(folder / name))


def spread(count: int, cv: float, seed: int = 0) -> list[float]:
    """Factors of mean 1 and of exactly this coefficient of variation (of the population)."""
    drawn = np.random.default_rng(seed).standard_normal(count)
    deviation = float(drawn.std())
    if not cv or not deviation:
        return [1.0] * count
    factors = 1 + cv * (drawn - drawn.mean()) / deviation
    if factors.min() <= 0:
        raise ValueError(f"{count} factors of variation {cv} are not all positive")
    return factors.tolist()
