"""Ready programs of known structure; work and sizes follow the laws that each states.

Ranks of a grid: the last dimension varies fastest. What a cell costs is in seconds, sizes are in
bytes; a `word` is what a cell sends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from synthetic.program import ANY, Program, Rank, Step, Steps

Dims = Sequence[int]


def neighbour(rank: int, dims: Dims, axis: int, way: int, periodic: bool = False) -> int | None:
    """Rank beside another along a dimension, None beyond the edge."""
    where = list(np.unravel_index(rank, tuple(dims)))
    where[axis] += way
    if periodic:
        where[axis] %= dims[axis]
    if not 0 <= where[axis] < dims[axis]:
        return None
    return int(np.ravel_multi_index(where, tuple(dims)))


def faces(dims: Dims, cells: Dims, width: int = 1, word: int = 8) -> list[int]:
    """Bytes of a halo along each dimension: width x word x cells of a process in the others."""
    local = [n / p for n, p in zip(cells, dims, strict=True)]
    return [round(width * word * math.prod(local) / mine) for mine in local]


def work(dims: Dims, cells: Dims, per_cell: float) -> float:
    """Seconds of a process for all of its cells: per_cell x cells / processes."""
    return per_cell * math.prod(cells) / math.prod(dims)


def _halo(me: Rank, dims: Dims, sizes: Sequence[int], periodic: Sequence[bool], how: str) -> Steps:
    """Exchange with the neighbours of all dimensions; periodic ones of size 1 have none."""
    rank = me.rank
    sides = [
        (axis, way, other)
        for axis, extent in enumerate(dims)
        for way in (-1, 1)
        if extent > 1 and (other := neighbour(rank, dims, axis, way, periodic[axis])) is not None
    ]
    if how == "nonblocking":
        begun = [me.irecv(other, sizes[axis], 2 * axis + (way < 0)) for axis, way, other in sides]
        begun += [me.isend(other, sizes[axis], 2 * axis + (way > 0)) for axis, way, other in sides]
        yield from _waited_for(me, begun)
    elif how == "blocking":  # sends and receives, eager
        for axis, way, other in sides:
            yield me.send(other, sizes[axis], 2 * axis + (way > 0))
        for axis, way, other in sides:
            yield me.recv(other, sizes[axis], 2 * axis + (way < 0))
    else:  # sendrecv: both shifts of each dimension, which must be periodic
        for axis, extent in enumerate(dims):
            if extent > 1:
                for way in (-1, 1):
                    to, source = (neighbour(rank, dims, axis, w, True) for w in (way, -way))
                    assert to is not None and source is not None
                    yield me.sendrecv(to, sizes[axis], source, 2 * axis + (way > 0))


def _waited_for(me: Rank, begun: Sequence[Step]) -> Steps:
    requests: list[Any] = []
    for step in begun:
        requests += [(yield step)]
    yield me.waitall(requests)


def jacobi(
    dims: Dims,
    steps: int = 20,
    *,
    cells: Dims | None = None,
    periodic: bool | Sequence[bool] = False,
    width: int = 1,
    word: int = 8,
    per_cell: float = 1e-8,
    residual: int = 1,
    how: str = "nonblocking",
    setup: float = 1e-3,
    closing: float = 5e-4,
    threads: int = 1,
    uneven: float = 0.0,
    serial: float = 0.0,
    factors: Sequence[float] | None = None,
) -> Program:
    """A stencil on a grid of 1 to 3 dimensions: sweep, halos, and an Allreduce now and then.

    Work is `work(dims, cells, per_cell)`, halos `faces(dims, cells, width, word)`. Before the
    steps parameters are broadcast (64 bytes), behind them a Gather of 8 bytes and a barrier.

    Parameters
    ----------
    dims, cells
        Processes and cells along each dimension; by default 256 cells.
    residual : int
        Every how many steps an Allreduce of 8 bytes follows; 0: never, so that nothing
        synchronises all processes.
    how : {"nonblocking", "blocking", "sendrecv"}
        Of the halos.
    threads : int
        Above 1 the sweep is a parallel region "sweep" (and its work shared by the threads), of
        which thread t takes 1 + uneven (2 t / (T - 1) - 1) times the mean; `serial` is what the
        master then computes before it, as a share of the work of one thread.
    factors : sequence of float, optional
        How much more each rank computes in the sweeps, beside what `run` spreads over everything.
    """
    cells = [256] * len(dims) if cells is None else cells
    wraps = [periodic] * len(dims) if isinstance(periodic, bool) else list(periodic)
    sizes, seconds = faces(dims, cells, width, word), work(dims, cells, per_cell)

    def body(me: Rank) -> Steps:
        mine = seconds * (factors[me.rank] if factors else 1.0)
        yield me.compute(setup, "setup")
        yield me.collective("Bcast", 64)
        for step in range(steps):
            yield me.iteration()
            if threads > 1:
                if serial:
                    yield me.compute(serial * mine / threads, "serial")
                yield me.region("sweep", shares(mine, threads, uneven))
            else:
                yield me.compute(mine, "sweep")
            yield from _halo(me, dims, sizes, wraps, how)
            if residual and (step + 1) % residual == 0:
                yield me.compute(0.05 * mine / threads, "residual")
                yield me.collective("Allreduce", 8)
        yield me.iteration()
        yield me.compute(closing, "closing")
        yield me.collective("Gather", 8)
        yield me.collective("Barrier")

    return Program(math.prod(dims), body, threads)


def shares(total: float, threads: int, uneven: float) -> list[float]:
    """Seconds of the threads that share some, in a straight line about their mean."""
    if threads == 1:
        return [total]
    return [total / threads * (1 + uneven * (2 * t / (threads - 1) - 1)) for t in range(threads)]


def pipeline(
    dims: Dims,
    steps: int = 10,
    *,
    cells: Dims | None = None,
    blocks: int = 8,
    word: int = 8,
    per_cell: float = 1e-8,
    backward: bool = True,
    norm: int = 5,
) -> Program:
    """Wavefronts over a grid of processes, forward and (LU's) backward, block after block.

    Each block computes work(dims, cells, per_cell) / blocks and sends faces(...) / blocks; an
    Allreduce of 40 bytes every `norm` steps.
    """
    cells = [256] * len(dims) if cells is None else cells
    seconds = work(dims, cells, per_cell) / blocks
    sizes = [max(size // blocks, 1) for size in faces(dims, cells, 1, word)]

    def sweep(me: Rank, way: int) -> Steps:
        axes = range(len(dims))
        behind = [(a, neighbour(me.rank, dims, a, -way)) for a in axes]
        ahead = [(a, neighbour(me.rank, dims, a, way)) for a in axes]
        for _ in range(blocks):
            for axis, other in behind:
                if other is not None:
                    yield me.recv(other, sizes[axis], 10 + axis)
            yield me.compute(seconds, "forward" if way > 0 else "backward")
            for axis, other in ahead:
                if other is not None:
                    yield me.send(other, sizes[axis], 10 + axis)

    def body(me: Rank) -> Steps:
        for step in range(steps):
            yield me.iteration()
            yield me.compute(seconds, "right-hand side")
            yield from sweep(me, 1)
            if backward:
                yield from sweep(me, -1)
            if norm and (step + 1) % norm == 0:
                yield me.collective("Allreduce", 40)
        yield me.iteration()

    return Program(math.prod(dims), body)


def butterfly(
    processes: int, steps: int = 10, *, size: int = 1024, seconds: float = 1e-3
) -> Program:
    """An Allreduce by hand: log2 P exchanges with rank XOR 2^k, sums between them."""

    def body(me: Rank) -> Steps:
        for _ in range(steps):
            yield me.iteration()
            yield me.compute(seconds, "work")
            for stage in range((me.size - 1).bit_length()):
                other = me.rank ^ (1 << stage)
                yield me.sendrecv(other, size, other, stage)
                yield me.compute(size * 1e-10, "sum")
        yield me.iteration()

    if processes & (processes - 1):
        raise ValueError(f"{processes} is no power of two")
    return Program(processes, body)


def rows_and_transposes(
    rows: int,
    columns: int,
    outer: int = 15,
    inner: int = 25,
    *,
    unknowns: int = 14000,
    per_unknown: float = 1e-6,
    per_row: float = 0.0,
) -> Program:
    """Like NAS CG: products, sums over rows by XOR exchanges, a transpose, dot products.

    Columns are as many as the rows, or twice. An inner step computes per_unknown x unknowns / P,
    and per_row for each of the unknowns / rows of a process, exchanges 8 unknowns / columns bytes
    log2(columns) times within its row, the same with its transposed partner, and 8 bytes
    log2(columns) times twice for dot products.
    """
    size, processes = 8 * unknowns // columns, rows * columns

    def swap(me: Rank, other: int, bytes_: int, tag: int) -> Steps:
        request = yield me.irecv(other, bytes_, tag)
        yield me.send(other, bytes_, tag)
        yield me.wait(request)

    def along(me: Rank, bytes_: int, tag: int) -> Steps:
        row, column = divmod(me.rank, columns)
        for stage in range((columns - 1).bit_length()):
            yield from swap(me, row * columns + (column ^ (1 << stage)), bytes_, tag)

    def body(me: Rank) -> Steps:
        row, column = divmod(me.rank, columns)
        half = columns // rows  # 1 or 2
        other = (column // half) * columns + row * half + column % half
        for _ in range(outer):
            yield me.iteration()
            yield from along(me, 8, 3)
            for _ in range(inner):
                product = per_unknown * unknowns / processes + per_row * unknowns / rows
                yield me.compute(product, "product")
                yield from along(me, size, 1)
                if other != me.rank:
                    yield from swap(me, other, size, 2)
                yield me.compute(per_unknown / 10 * unknowns / processes, "update")
                yield from along(me, 8, 3)
                yield from along(me, 8, 3)
            yield me.collective("Reduce", 8)
        yield me.iteration()

    if columns not in (rows, 2 * rows) or columns & (columns - 1):
        raise ValueError(
            f"{rows} x {columns}: columns are a power of two, as many as rows or twice"
        )
    return Program(processes, body)


def transposes(
    processes: int, steps: int = 6, *, points: int = 1 << 18, per_point: float = 5e-8, how: str = ""
) -> Program:
    """Like NAS FT: transforms and transposes of 16 points / P^2 bytes per pair of processes.

    `how`: "" by Alltoall, "pairwise" by hand (to rank + k, from rank - k).
    """
    size = 16 * points // processes**2

    def body(me: Rank) -> Steps:
        for _ in range(steps):
            yield me.iteration()
            yield me.compute(per_point * points / me.size, "transform")
            if how == "pairwise":
                for k in range(1, me.size):
                    to, source = (me.rank + k) % me.size, (me.rank - k) % me.size
                    yield me.sendrecv(to, size, source, k)
            else:
                yield me.collective("Alltoall", size)
            yield me.compute(per_point / 10 * points / me.size, "checksum")
            yield me.collective("Reduce", 16)
        yield me.iteration()

    return Program(processes, body)


def levels(dims: Dims, cycles: int = 4, *, depth: int = 4, cells: int = 256) -> Program:
    """Like NAS MG: periodic halos on grids that halve their cells per dimension, down and up."""
    wraps = [True] * len(dims)

    def level(me: Rank, number: int, name: str) -> Steps:
        extent = [max(cells >> number, 2 * max(dims))] * len(dims)
        yield me.compute(work(dims, extent, 1e-8), f"{name} {number}")
        yield from _halo(me, dims, faces(dims, extent), wraps, "nonblocking")

    def body(me: Rank) -> Steps:
        for _ in range(cycles):
            yield me.iteration()
            for number in range(depth):
                yield from level(me, number, "restrict")
            for number in reversed(range(depth)):
                yield from level(me, number, "smooth")
            yield me.collective("Allreduce", 8)
        yield me.iteration()

    return Program(math.prod(dims), body)


def master_worker(
    processes: int,
    tasks: int = 60,
    *,
    seconds: Callable[[int], float] = lambda task: 1e-3 * (1 + task % 3),
    size: int = 4096,
    rounds: int = 1,
) -> Program:
    """Rank 0 hands out tasks (16 bytes) to whoever has sent a result; 0 bytes end a worker."""

    def master(me: Rank) -> Steps:
        left = iter(range(tasks))
        for worker in range(1, me.size):
            yield me.send(worker, 16, 1, data=next(left))
        busy = me.size - 1
        while busy:
            worker, _ = yield me.recv(ANY, size, 2)
            yield me.compute(2e-5, "collect")
            task = next(left, None)
            busy -= task is None
            yield me.send(worker, 16 if task is not None else 0, 1, data=task)

    def worker(me: Rank) -> Steps:
        while True:
            _, task = yield me.recv(0, 16, 1)
            if task is None:
                return
            yield me.compute(seconds(task), "task")
            yield me.send(0, size, 2)

    def body(me: Rank) -> Steps:
        for _ in range(rounds):
            yield me.iteration()
            yield from master(me) if me.rank == 0 else worker(me)
            yield me.collective("Barrier")
        yield me.iteration()

    if tasks < processes - 1:
        raise ValueError(f"{tasks} tasks do not keep {processes - 1} workers busy")
    return Program(processes, body)


def drifting(
    dims: Dims,
    inner: Sequence[int],
    *,
    every: int = 5,
    cells: int = 128,
    per_cell: float = 1e-8,
    regions: bool = False,
) -> Program:
    """Nested loops whose inner counts are given for each outer step, as of a solver that converges.

    An inner step is a sweep, a halo and an Allreduce of 8 bytes (its test); every `every` outer
    steps a Reduce of 64 bytes follows. With `regions` users' regions "step" and "solve" are marked.
    """
    extent = [cells] * len(dims)
    sizes, seconds = faces(dims, extent), work(dims, extent, per_cell)

    def body(me: Rank) -> Steps:
        for step, count in enumerate(inner):
            yield me.iteration()
            if regions:
                yield me.enter("step")
            yield me.compute(2 * seconds, "assemble")
            if regions:
                yield me.enter("solve")
            for _ in range(count):
                yield me.compute(seconds, "sweep")
                yield from _halo(me, dims, sizes, [False] * len(dims), "nonblocking")
                yield me.collective("Allreduce", 8)
            if regions:
                yield me.leave()
            if (step + 1) % every == 0:
                yield me.compute(seconds / 2, "output")
                yield me.collective("Reduce", 64)
            if regions:
                yield me.leave()
        yield me.iteration()

    return Program(math.prod(dims), body)


def random_graph(
    processes: int, steps: int = 20, *, degree: int = 3, seed: int = 0, seconds: float = 1e-3
) -> Program:
    """Exchanges on a connected random graph, with a size of its own from each to each neighbour."""
    sizes = edges(processes, degree, seed)

    def body(me: Rank) -> Steps:
        mine = sorted(other for other in range(me.size) if (me.rank, other) in sizes)
        for _ in range(steps):
            yield me.iteration()
            yield me.compute(seconds, "work")
            begun = [me.irecv(other, sizes[other, me.rank]) for other in mine]
            begun += [me.isend(other, sizes[me.rank, other]) for other in mine]
            yield from _waited_for(me, begun)
        yield me.iteration()

    return Program(processes, body)


def edges(processes: int, degree: int, seed: int) -> dict[tuple[int, int], int]:
    """Bytes that each rank sends to each neighbour: a ring, and further pairs at random."""
    generator = np.random.default_rng(seed)
    pairs = {(rank, (rank + 1) % processes) for rank in range(processes)}
    while len(pairs) < processes * min(degree, processes - 1) // 2:
        one, other = generator.choice(processes, 2, replace=False).tolist()
        if (other, one) not in pairs:
            pairs.add((one, other))
    both = sorted({*pairs, *((other, one) for one, other in pairs)} - {(0, 0)})
    return {pair: int(generator.integers(64, 16384)) for pair in both}


def dealt_blocks(blocks: Sequence[float], processes: int) -> list[list[int]]:
    """Deal out blocks, the largest first, each to the process with the least work so far."""
    mine: list[list[int]] = [[] for _ in range(processes)]
    load = [0.0] * processes
    for block in sorted(range(len(blocks)), key=lambda one: -blocks[one]):
        rank = load.index(min(load))
        mine[rank].append(block)
        load[rank] += blocks[block]
    return mine


def multi_block(
    processes: int, blocks: Sequence[float], steps: int = 20, *, word: int = 8, cells: float = 1e8
) -> Program:
    """Blocks of unequal size, as seconds of a step, on a ring: faces are sent to the neighbours.

    A face has the square root of the block's cells, of which there are ``cells`` in a second;
    processes send all faces for one other process at once.
    """
    mine = dealt_blocks(blocks, processes)
    owner = {block: rank for rank, some in enumerate(mine) for block in some}
    sizes: dict[tuple[int, int], int] = {}
    for block, seconds in enumerate(blocks):
        for way in (-1, 1):
            other = owner[(block + way) % len(blocks)]
            if other != owner[block]:
                pair = owner[block], other
                sizes[pair] = sizes.get(pair, 0) + word * round(math.sqrt(seconds * cells))

    def body(me: Rank) -> Steps:
        yield me.compute(1e-3, "setup")
        yield me.collective("Bcast", 64)
        others = sorted({one for pair in sizes for one in pair if me.rank in pair} - {me.rank})
        for _ in range(steps):
            yield me.iteration()
            yield me.compute(sum(blocks[one] for one in mine[me.rank]), "blocks")
            begun = [me.irecv(one, sizes[one, me.rank]) for one in others]
            begun += [me.isend(one, sizes[me.rank, one]) for one in others]
            yield from _waited_for(me, begun)
        yield me.iteration()
        yield me.compute(5e-4, "closing")
        yield me.collective("Barrier")

    return Program(processes, body)
