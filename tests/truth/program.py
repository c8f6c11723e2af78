"""Programs: steps of loops over the cells of a grid, an exchange with neighbours, a sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from truth.drawn import Stated, between, stated
from truth.machine import Machine

STEPS = 50
WORD = 8


@dataclass(frozen=True)
class Loop:
    """A parallel loop: cycles of arithmetic, and bytes to and from memory, per cell."""

    cycles: Stated
    traffic: Stated


@dataclass(frozen=True)
class Program:
    """A program, and what an analyst says of it."""

    dimensions: int  # Of the grid that processes share
    cells: int  # Cells along each of them, N
    depth: int  # Cells behind each of those, which no process shares
    shared: int  # Leading dimensions whose cells threads share
    periodic: bool  # Whether there are neighbours beyond the ends
    loops: tuple[Loop, ...]  # Parallel loops of a step
    serial: Stated  # Cycles of the master for each cell of a plane of its block, in every step
    variables: int  # Values of a cell that neighbours need
    every: int  # Steps from one sum over all processes to the next
    # Coefficients of variation of the work of processes, at `reference` processes.
    persistent: Stated
    transient: Stated
    reference: int  # A number of processes
    growth: Stated  # Exponent with which both grow with P

    def grid(self, processes: int) -> tuple[int, ...]:
        """Return the processes along each dimension: smallest surface, most along the last."""
        counts = [n for n in range(1, processes + 1) if processes % n == 0]
        grids = (
            one for one in product(counts, repeat=self.dimensions) if math.prod(one) == processes
        )

        def surface(grid: tuple[int, ...]) -> int:
            return sum(n if self.periodic and n > 1 else n - 1 for n in grid)

        return min(grids, key=lambda one: (surface(one), one))

    def signature(self, name: str) -> str:
        """What an analyst writes: TOML text."""
        d = self.dimensions
        trip = "*".join(f"n{i}" for i in range(self.shared))
        inner = "*".join([*(f"n{i}" for i in range(self.shared, d)), "depth"])
        plane = "*".join([*(f"n{i}" for i in range(1, d)), "depth"])
        lines = [
            'schema = "popmodel/signature/1"',
            f'[app]\nname = "{name}"',
            f"[params]\nN = {self.cells}\nsteps = {STEPS}",
            f"[let]\ndepth = {self.depth}\nw = {WORD}",
            "[constants]",
            *(f"cycles_{i} = {one.cycles.toml()}" for i, one in enumerate(self.loops)),
            *(f"traffic_{i} = {one.traffic.toml('B')}" for i, one in enumerate(self.loops)),
            f"serial_cycles = {self.serial.toml()}",
            "[decomp]\nglobal = " + str(["N"] * d).replace("'", '"'),
            f'grid = "auto"\nperiodic = {str(self.periodic).lower()}',
            "[imbalance]",
            f"persistent_cv = {self.persistent.toml()}",
            f"transient_cv = {self.transient.toml()}",
            *(
                [f"reference_processes = {self.reference}\ngrowth_exponent = {said:.3g}"]
                if (said := self.growth.value)
                else []  # nobody knows that it grows
            ),
            '[[program]]\nloop = { name = "step", count = "steps" }',
        ]
        for i in range(len(self.loops)):
            lines += [
                "[[program.body]]\n[program.body.parallel]",
                f'name = "loop {i}"\ntrip = "{trip}"\ninner = "{inner}"',
                f'chain = "cycles_{i}"\nbytes.MEM = "traffic_{i}"',
            ]
        lines += [
            "[[program.body]]\n[program.body.serial]",
            f'name = "border"\ntrip = "{plane}"\nchain = "serial_cycles"',
            '[[program.body]]\nhalo = { name = "halo", width = 1, '
            f'bytes_per_cell = "{self.variables}*w*depth", pack = "none" }}',
            '[[program.body]]\ncollective = { name = "sum", op = "allreduce", '
            f'bytes = "w", every = {self.every} }}',
        ]
        return "\n".join(lines) + "\n"


def draw(rng: np.random.Generator, machine: Machine, family: str) -> Program:
    """Draw a program at random whose step takes some milliseconds on two nodes."""
    dimensions = int(rng.integers(1, 4))
    cells = {1: 1 << 13, 2: 1 << int(rng.integers(10, 12)), 3: 256}[dimensions]
    count = int(rng.integers(1, 4))
    weights = rng.dirichlet(np.full(count, 3.0))
    # the time of all cells on one core that has the memory for itself
    whole = between(rng, 0.8e-3, 8e-3) * 2 * machine.cores / 1.5
    depth = max(1, round(whole / (between(rng, 4e-9, 4e-8) * cells**dimensions)))
    per_cell = whole / (depth * cells**dimensions)
    loops = []
    for weight in weights:
        bound = rng.uniform(0.1, 0.9)  # part of its time in transfers
        traffic = weight * per_cell * bound * machine.alone.true
        cycles = weight * per_cell * (1 - bound) * machine.frequency(machine.cores)
        loops.append(Loop(stated(rng, cycles, 1.5), stated(rng, traffic, 1.4)))
    share = between(rng, 0.001, 0.01)
    planes = cells / max(1, round((2 * machine.cores) ** (1 / dimensions)))
    if dimensions == 1:
        share /= 4
    serial = share * per_cell * planes * machine.frequency(machine.cores)
    reference = machine.cores
    growth = rng.uniform(0.0, 0.4)
    said = float(np.clip(growth + rng.normal(0, 0.08), 0, 0.5))
    if family == "irregular":
        growth, said = 0.5, 0.0
    return Program(
        dimensions,
        cells,
        depth,
        int(rng.integers(1, max(2, dimensions))),
        bool(rng.random() < 0.5),
        tuple(loops),
        stated(rng, serial, 1.6),
        int(rng.integers(1, 4)),
        int(rng.choice({"shared": (1, 5, 10), "moderate": (10, 25, 50)}.get(family, (1, 5, 10)))),
        stated(rng, between(rng, 0.003, 0.04), 1.6),
        stated(rng, between(rng, 0.005, 0.05), 1.6),
        reference,
        Stated(said, said, said, growth),
    )
