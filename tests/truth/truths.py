"""Truths: everything that belongs to a seed."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from truth import machine as machines
from truth import program as programs
from truth import simulation, terms
from truth.drawn import known
from truth.machine import Machine
from truth.measured import TruthRun, observe
from truth.program import STEPS, Program
from truth.simulation import Noise, Size
from truth.terms import Terms

Configuration = tuple[int, int]
"""Processes, and threads of each."""

SPIKES = 0.03
"""Part of the runs that something stops for a while."""
_MEAN_OF = 4  # runs with other transient imbalance


@dataclass(frozen=True)
class Truth:
    """A program on a machine, as it is and as people know it."""

    family: str  # One of `FAMILIES`
    seed: int  # Of everything that is random
    # As it is.
    machine: Machine
    program: Program
    terms: Terms
    run_cv: float  # Coefficient of variation of the time from run to run

    @property
    def name(self) -> str:
        """Name of the program: the family, and the seed."""
        return f"{self.family}-{self.seed}"

    @cached_property
    def signature(self) -> str:
        """What an analyst writes: TOML text."""
        return self.program.signature(self.name)

    @cached_property
    def profile(self) -> dict[str, Any]:
        """What a benchmark has measured: a JSON object."""
        return self.machine.profile(f"cluster-{self.name}")

    def run(
        self,
        processes: int,
        threads: int,
        parameters: Mapping[str, float] | None = None,
        repeat: int = 0,
    ) -> TruthRun:
        """Carry out a run; another `repeat` is another run of the same configuration."""
        size = self._size(processes, threads, parameters)
        rng = self._rng("run", size, repeat)
        computing = math.exp(self.run_cv * rng.standard_normal())
        messages = computing * math.exp(3 * self.run_cv * rng.standard_normal())
        pause = rng.uniform(0.04, 0.15) if rng.random() < SPIKES else 0.0
        noise = Noise(computing, messages, pause, rng.random())
        return self._carry_out(size, noise, self._rng("transient", size, repeat))

    def expected(
        self, processes: int, threads: int, parameters: Mapping[str, float] | None = None
    ) -> TruthRun:
        """Return the mean run: without noise from run to run, of several transient imbalances."""
        size = self._size(processes, threads, parameters)
        runs = [
            self._carry_out(size, Noise(), self._rng("transient", size, -1 - number))
            for number in range(_MEAN_OF)
        ]
        names = (
            *("runtime", "ideal_runtime", "useful", "omp_useful", "serial_useful"),
            *("in_openmp", "in_mpi", "imbalance"),
        )
        means = {name: sum(getattr(run, name) for run in runs) / len(runs) for name in names}
        return replace(runs[0], **means)

    def training(self) -> list[Configuration]:
        """Six configurations that a person would measure, on one node and on two."""
        c = self.machine.cores
        teams = (1, c) if self.seed % 3 == 0 else (2, c // 2)
        return [(c // 8, 1), (c, 1), teams, (c // 4, 4), (2 * c, 1), (c // 2, 4)]

    def inside(self) -> list[Configuration]:
        """Configurations between those."""
        c = self.machine.cores
        return [(c // 4, 1), (c // 2, 1), (c // 2, 2), (c, 2), (c // 8, 4), (c // 4, 2)]

    def beyond4(self) -> list[Configuration]:
        """Configurations with four times as many processes, on eight nodes."""
        c = self.machine.cores
        return [(8 * c, 1), (2 * c, 4)]

    def beyond8(self) -> list[Configuration]:
        """Configurations with eight times as many processes, on sixteen nodes."""
        c = self.machine.cores
        return [(16 * c, 1), (4 * c, 4)]

    def splits(self, cores: int) -> list[Configuration]:
        """Ways to use so many cores, processes alone first."""
        counts = [n for n in range(1, self.machine.cores + 1) if self.machine.cores % n == 0]
        return [(cores // n, n) for n in counts if cores % n == 0]

    def informed(self) -> Truth:
        """Return the same truth, of which people know every constant that they state."""
        found: Truth = known(self)
        return found

    def poisoned(self, runs: Iterable[TruthRun]) -> tuple[list[TruthRun], int]:
        """Return runs of which one took twice as long, and its number: it had to share cores."""
        given = list(runs)
        where = int(self._rng("poison", Size(1, 1, 1), 0).integers(len(given)))
        given[where] = given[where].slowed(2.0)
        return given, where

    def _size(self, processes: int, threads: int, parameters: Mapping[str, float] | None) -> Size:
        given = {"N": self.program.cells, "steps": STEPS, **(parameters or {})}
        return Size(processes, threads, int(given["N"]), int(given["steps"]))

    def _carry_out(self, size: Size, noise: Noise, transient: np.random.Generator) -> TruthRun:
        one = simulation.step(self.machine, self.program, self.terms, size)
        # who has more to do depends on how the cells are divided only
        persistent = self._rng("persistent", replace(size, threads=1), 0)
        happened = simulation.simulate(
            self.machine, self.program, self.terms, size, persistent, transient, noise
        )
        per_node = min(size.processes, self.machine.cores // size.threads)
        return observe(one, happened, size, per_node, noise.computing, size.cells)

    def _rng(self, use: str, size: Size, number: int) -> np.random.Generator:
        key = f"{self.name} {use} {size} {number}"
        return np.random.default_rng(zlib.crc32(key.encode()))


def truth(family: str, seed: int) -> Truth:
    """Draw a truth."""
    rng = np.random.default_rng([terms.FAMILIES.index(family), seed])
    law = "power" if family == "shared" else str(rng.choice(["queue", "requests"]))
    machine = machines.draw(rng, law)
    program = programs.draw(rng, machine, family)
    return Truth(
        family, seed, machine, program, terms.draw(rng, family), float(rng.uniform(0.01, 0.03))
    )
