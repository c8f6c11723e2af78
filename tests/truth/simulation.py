"""A run, rank by rank and step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truth.machine import Machine
from truth.program import STEPS, WORD, Program
from truth.terms import Terms

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Size:
    """A configuration: P processes of T threads, N cells along each dimension, so many steps."""

    processes: int
    threads: int
    cells: int
    steps: int = STEPS


@dataclass(frozen=True)
class Noise:
    """What differs from run to run."""

    # Factors on times.
    computing: float = 1.0
    messages: float = 1.0
    pause: float = 0.0  # Part of the run for which one process is stopped
    at: float = 0.5  # When in the run, and where among the processes, from 0 to 1


@dataclass(frozen=True)
class Step:
    """What a process with average work does in a step."""

    serial: float  # Seconds of its master outside of parallel regions
    useful: Times  # Seconds of each thread in each region
    overhead: float  # Seconds of OpenMP, all regions together

    @property
    def busiest(self) -> float:
        """Seconds of computing in regions, as the busiest thread of each has them."""
        return float(self.useful.max(axis=1).sum())

    @property
    def wall(self) -> float:
        """Seconds of the whole."""
        return self.serial + self.busiest + self.overhead


@dataclass(frozen=True)
class Exchange:
    """Messages with the neighbours in the grid, all at once."""

    partners: NDArray[np.int64]  # Ranks; the process itself where there is none
    seconds: Times  # From the last partner's begin to the end
    needs_receiver: bool  # Whether messages wait until the receiver has come


@dataclass(frozen=True)
class Happened:
    """What happened."""

    # Seconds, and those with a network that costs nothing.
    runtime: float
    ideal: float
    factors: Times  # Sum over all steps of the relative work of each process
    paused: Times  # Seconds for which processes were stopped, or did what the others waited for


def step(machine: Machine, program: Program, terms: Terms, size: Size) -> Step:
    """Return what a process with average work does in a step."""
    per_node = min(size.processes, machine.cores // size.threads)
    busy = per_node * size.threads
    masters = math.ceil(per_node / 2) if per_node > 1 else 1
    spans = size.threads > machine.domain
    active = _active(machine, per_node, size.threads)
    grid = program.grid(size.processes)
    extents = [size.cells / count for count in grid]
    mine = math.prod(extents) * program.depth
    trip = round(math.prod(extents[: program.shared]))
    if terms.tasks:
        trip = min(trip, max(round(tasks(machine, terms) / size.processes), 1))
    kept = 0.0
    if terms.cache:
        fits = terms.nodes_to_fit * machine.cores
        kept = terms.cache / (1 + (fits / (size.processes * size.threads)) ** 3)
    slower = 1 + (terms.socket if spans else 0.0)
    clock = machine.frequency(busy) * (1 - terms.clock * (busy - 1) / (machine.cores - 1))
    shares = _shares(trip, size.threads)
    useful = np.empty((len(program.loops), size.threads))
    for row, loop in zip(useful, program.loops, strict=True):
        arithmetic = loop.cycles.true / clock
        moving = loop.traffic.true * (1 - kept)
        transfers = moving / machine.alone.true
        both = arithmetic + transfers
        alone = both - machine.overlap.true * (both - max(arithmetic, transfers))
        service = moving / machine.full.true
        cell = slower * machine.shared(active, max(alone, service), service)
        row[:] = (1 - terms.serial) * cell * mine * shares
        row[0] += terms.serial * cell * mine if size.threads > 1 else 0.0
        if size.threads == 1:
            row[:] = cell * mine
    plane = math.prod(extents[1:]) * program.depth
    serial = program.serial.true * plane / machine.frequency(masters * (2 if per_node > 1 else 1))
    overhead = machine.overhead(size.threads) * len(program.loops)
    return Step(serial, useful, overhead * (2 if spans and terms.socket else 1))


def tasks(machine: Machine, terms: Terms) -> int:
    """Tasks of all processes."""
    return round(terms.tasks * 16 * machine.cores)


def _active(machine: Machine, per_node: int, threads: int) -> int:
    """Busy cores of the fullest domain; processes own equal parts of a node, in order."""
    if threads > machine.domain:
        return math.ceil(threads / 2)
    own = machine.cores // per_node
    domains = [process * own // machine.domain for process in range(per_node)]
    return max(domains.count(0), domains.count(1)) * threads


def _shares(trip: int, threads: int) -> Times:
    """Part of a loop of each thread, in blocks as equal as can be."""
    counts: Times = np.full(threads, trip // threads, dtype=np.float64)
    counts[: trip % threads] += 1
    return counts / trip


def exchange(
    machine: Machine, program: Program, terms: Terms, size: Size, delay: float
) -> Exchange:
    """Return the messages with the neighbours in the grid; `delay` is that of the boundary, s."""
    grid = program.grid(size.processes)
    extents = [size.cells / count for count in grid]
    places = np.array(np.unravel_index(np.arange(size.processes), grid))
    node = np.arange(size.processes) // min(size.processes, machine.cores // size.threads)
    own = np.arange(size.processes)
    partners, port, largest = [], np.zeros(size.processes), 0.0
    latency = np.zeros(size.processes)
    adapter = np.zeros(int(node.max()) + 1)
    for axis, count in enumerate(grid):
        size_of = math.prod(extents) / extents[axis] * program.variables * WORD * program.depth
        for way in (-1, 1):
            if count == 1:
                continue
            moved = places.copy()
            moved[axis] += way
            there = np.ones(size.processes, dtype=bool)
            if program.periodic:
                moved[axis] %= count
            else:
                there = (moved[axis] >= 0) & (moved[axis] < count)
                moved[axis] = np.clip(moved[axis], 0, count - 1)
            partner = np.where(there, np.ravel_multi_index(tuple(moved), grid), own)
            partners.append(partner)
            far = (node[partner] != node) & there
            near = there & ~far
            largest = max(largest, size_of)
            beta = np.where(
                far,
                machine.per_byte["inter"].true * (1 + terms.crossing),
                machine.per_byte["intra"].true,
            )
            port += np.where(there, beta * size_of, 0.0)
            alpha = np.where(
                far,
                machine.latency["inter"].true + delay,
                np.where(near, machine.latency["intra"].true, 0.0),
            )
            latency = np.maximum(latency, alpha)
            adapter += np.bincount(node[far], minlength=len(adapter)) * size_of
    others = min(size.processes, machine.cores // size.threads) - 1
    shared = adapter[node] * machine.adapter.true * (1 + terms.crossing)
    shared *= 1 + terms.adapter * others / (machine.cores - 1)
    seconds = latency + np.maximum(port, np.where(latency > 0, shared, 0.0))
    lines = np.array(partners) if partners else own[None]
    return Exchange(lines, seconds, largest > machine.eager)


def meeting(machine: Machine, size: Size) -> float:
    """Return the time of a sum of one word over all processes, s."""
    per_node = min(size.processes, machine.cores // size.threads)
    nodes = math.ceil(size.processes / per_node)
    rounds = {"intra": math.ceil(math.log2(per_node)), "inter": math.ceil(math.log2(nodes))}
    return sum(
        count
        * (
            machine.latency[tier].true
            + WORD * (machine.per_byte[tier].true + machine.reduction.true)
        )
        for tier, count in rounds.items()
    )


def simulate(
    machine: Machine,
    program: Program,
    terms: Terms,
    size: Size,
    persistent: np.random.Generator,
    transient: np.random.Generator,
    noise: Noise,
) -> Happened:
    """Carry out all steps.

    Two clocks run side by side, one with what messages cost and one without.
    """
    processes = size.processes
    one = step(machine, program, terms, size)
    unit = _unit(machine, program)
    growth = (processes / program.reference) ** program.growth.true
    own = _mean_one(1 + program.persistent.true * growth * persistent.standard_normal(processes))
    cv = program.transient.true * growth
    drawn = _transient(transient, (size.steps, processes), cv, terms.shape)
    if terms.tasks:
        own *= processes * _shares(tasks(machine, terms), processes)
    factors = own * drawn
    computing = noise.computing * (factors * (one.wall - one.overhead) + one.overhead)
    paused = np.zeros(processes)
    if noise.pause:
        where = min(int(noise.at * processes), processes - 1)
        paused[where] = noise.pause * one.wall * size.steps
        computing[int(noise.at * size.steps), where] += paused[where]
    doubled = math.log2(processes) / math.log2(2 * machine.cores) if processes > 1 else 0.0
    rooted = processes / (2 * machine.cores) if processes > 1 else 0.0
    with_messages = noise.messages
    delay = terms.boundary * unit
    beside = exchange(machine, program, terms, size, delay)
    costs = np.array([beside.seconds * with_messages, np.zeros(processes)])
    summed = np.array([[meeting(machine, size) * with_messages], [0.0]])
    collective = np.array([[terms.collective * unit * doubled * with_messages], [0.0]])
    phase = terms.phase * unit * rooted
    paused[0] += phase * size.steps * noise.computing
    root = np.array([terms.root * unit * rooted * with_messages, 0.0])
    now = np.zeros((2, processes))
    for number in range(size.steps):
        now += computing[number]
        if processes == 1:
            continue
        others = now[:, beside.partners].max(axis=1)
        if beside.needs_receiver:
            others = np.maximum(others, now)
        now = np.maximum(now, others + costs)
        now[:, 0] += root
        if phase:
            now[:, 0] += phase * noise.computing
            now[:] = now.max(axis=1, keepdims=True)
        if terms.collective:
            if terms.meets:
                now[:] = now.max(axis=1, keepdims=True)
            now += collective
        if (number + 1) % program.every == 0:
            now[:] = now.max(axis=1, keepdims=True) + summed
    ends = now.max(axis=1)
    return Happened(float(ends[0]), float(ends[1]), factors.sum(axis=0), paused)


def _unit(machine: Machine, program: Program) -> float:
    """Time of a step on two full nodes with one thread each, s: what shares are parts of."""
    size = Size(2 * machine.cores, 1, program.cells)
    return step(machine, program, Terms(), size).wall


def _mean_one(values: Times) -> Times:
    positive = np.maximum(values, 0.2)
    return positive / positive.mean()


def _transient(rng: np.random.Generator, shape: tuple[int, int], cv: float, gamma: float) -> Times:
    """Relative work with mean 1 and coefficient of variation cv."""
    if not gamma:
        return np.maximum(1 + cv * rng.standard_normal(shape), 0.2)
    deviation = (rng.standard_gamma(gamma, shape) - gamma) / math.sqrt(gamma)
    return np.maximum(1 + cv * deviation, 0.2)
