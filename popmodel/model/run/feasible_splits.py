"""What can be run instead of a split that cannot: the nearest numbers of processes, or of threads.

Conditions of a signature are formulas, so nothing tells where they hold but trying. Numbers next to
the one that was asked for are tried one by one; farther away only such that programs ask for:
powers of two, squares, cubes. The search ends after a number of trials, whatever is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

import numpy as np

from popmodel.base.units import plural
from popmodel.machines.quantity import Topology
from popmodel.model.run.process_placement import MOST_PROCESSES, Allocation, ImpossibleSplit

Possible = Callable[[int, int], bool]

_NEAR = 256  # numbers on each side that are tried one by one
_TRIALS = 4096  # in all


def nearest(
    processes: int,
    threads: int,
    possible: Possible,
    topology: Topology,
    allocation: Allocation,
    only: int | None = None,
) -> list[tuple[int, int]]:
    """Return splits near one that is not possible.

    With as many threads the nearest numbers of processes below and above; if there are none, with
    as many processes the nearest numbers of threads; if there are none either, the nearest number
    of threads for which some number of processes is possible.
    """
    left = _TRIALS

    def first(candidates: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
        nonlocal left
        for split in islice(candidates, left):
            left -= 1
            if possible(*split):
                return [split]
        return []

    def with_threads(count: int) -> list[tuple[int, int]]:
        nodes, cores = allocation.available(topology)
        most = min(MOST_PROCESSES, nodes * (cores // count))
        numbers = _numbers(processes, most, allocation.nodes, only)
        below = sorted((n for n in numbers if n < processes), reverse=True)
        above = sorted(n for n in numbers if n > processes)
        here = [processes] if count != threads and processes <= most else []
        return first((n, count) for n in here) or [
            *first((n, count) for n in below),
            *first((n, count) for n in above),
        ]

    cores = topology.cores_per_node
    found = with_threads(threads) if threads <= cores else []
    if not found:
        fewer = ((processes, n) for n in range(min(threads - 1, cores), 0, -1))
        more = ((processes, n) for n in range(threads + 1, cores + 1))
        found = [*first(fewer), *first(more)]
    others = iter(sorted(range(1, cores + 1), key=lambda count: abs(count - threads)))
    while not found and left > 0:
        count = next(others, None)
        if count is None:
            break
        found = with_threads(count)
    return found


def more_nodes(
    processes: int, threads: int, topology: Topology, allocation: Allocation
) -> Iterator[int]:
    """Return rising numbers of nodes, more than the run may use now, that leave it more room."""
    room = allocation.available(topology)[1] // threads
    previous = allocation.nodes or 0
    for per_node in range(min(room, processes), 0, -1):
        nodes = math.ceil(processes / per_node)
        if nodes > previous:
            yield nodes
            previous = nodes


def hint(splits: Sequence[tuple[int, int]], nodes: int | None, topology: Topology) -> str | None:
    """Name possible choices; None without any."""
    found = []
    if splits:
        text = " or ".join(f"{processes} x {threads}" for processes, threads in splits)
        found.append(f"{text} (processes x threads)")
    if nodes is not None:
        found.append(on_nodes(nodes, topology))
    return f"possible: {', or '.join(found)}" if found else None


def on_nodes(nodes: int, topology: Topology) -> str:
    """Return the option for a number of nodes, with a condition if the profile has fewer."""
    condition = " if the machine has as many" if nodes > topology.nodes else ""
    return f"--nodes {nodes}{condition}"


def _numbers(near: int, most: int, nodes: int | None, only: int | None) -> set[int]:
    """Numbers of processes from 1 to ``most`` that are worth a trial."""
    centre = min(near, most)
    found = set(range(max(1, centre - _NEAR), min(most, centre + _NEAR) + 1))
    found |= {2**power for power in range(most.bit_length())}
    for power, root in ((2, math.isqrt(centre)), (3, round(centre ** (1 / 3)))):
        found |= {base**power for base in range(max(1, root - _NEAR), root + _NEAR)}
    if nodes is not None:  # as many on every node
        found |= {nodes * (centre // nodes + more) for more in range(-1, 3)}
    found |= {number for number in (most, only) if number is not None}
    return {number for number in found if 1 <= number <= most}


# The grid of processes with the least surface between its blocks.


@lru_cache(maxsize=64)  # evaluations of a run ask again and again
def best_grid(
    processes: int, cells: tuple[float, ...], periodic: tuple[bool, ...]
) -> tuple[int, ...]:
    """Return the factorisation of P whose blocks have the least surface to their neighbours."""
    extents = np.array(_factorisations(processes, len(cells)), dtype=np.float64)
    extents = extents[(extents <= np.array(cells)).all(axis=1)]
    if not len(extents):
        shown = " x ".join(f"{size:g}" for size in cells)
        raise ImpossibleSplit(
            f"no grid of {plural(processes, 'process', 'processes')} fits {shown} cells: "
            "each process needs at least one"
        )
    local = np.array(cells) / extents
    # two processes in a line are neighbours on one side only
    sides = np.where(np.array(periodic) & (extents > 1), 2, np.minimum(2, extents - 1))
    # of a block, as a part of its volume, which is the same for all
    surface = (sides / local).sum(axis=1)
    # rounding must not decide between grids that are the same in another order
    best = extents[surface <= surface.min() * (1 + 1e-12)]
    return min(tuple(int(size) for size in extent) for extent in best)


def divisors(number: int) -> list[int]:
    """Return all divisors of a number from 1, rising."""
    found = [1]
    left, prime = number, 2
    while left > 1:
        if prime * prime > left:
            prime = left
        powers = [1]
        while left % prime == 0:
            left //= prime
            powers.append(powers[-1] * prime)
        if len(powers) > 1:
            found = [one * power for one in found for power in powers]
        prime += 1
    return sorted(found)


def _factorisations(number: int, parts: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(number,)]
    return [
        (first, *rest)
        for first in divisors(number)
        for rest in _factorisations(number // first, parts - 1)
    ]
