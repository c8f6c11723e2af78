"""The parts of a signature: parameters, limits, grid, and the region tree of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, TypeAlias

from popmodel.expressions import Expression
from popmodel.machine.quantity import Quantity
from popmodel.units import plural
from popmodel.values import cut, dataclass


@dataclass(frozen=True)
class Costs:
    """What one innermost iteration of a loop does.

    Attributes
    ----------
    flops, loads, stores : Expression
        Floating-point operations, and loads and stores of 8 bytes that reach the first cache.
    bytes : mapping of str to Expression
        Bytes that cross the level of that name: a cache level, or ``MEM`` for main memory.
    chain : Expression
        Cycles of the longest chain of operations that wait for each other.
    instructions : Expression or None
        Instructions; None where nobody counted them.
    mode : {'sum', 'ecm', 'roofline'} or None
        How arithmetic and transfers overlap in this loop; None is as the machine profile says.
    seconds : Expression or None
        Measured time of the iteration on one core, in place of all of these but instructions; None
        where the time follows from them.
    """

    flops: Expression
    loads: Expression
    stores: Expression
    bytes: Mapping[str, Expression]
    chain: Expression
    instructions: Expression | None
    mode: str | None
    seconds: Expression | None = None


@dataclass(frozen=True)
class Loop:
    """A body that is executed ``count`` times."""

    kind: ClassVar[str] = "loop"

    name: str
    count: Expression
    body: tuple[Item, ...]
    every: Expression


@dataclass(frozen=True)
class Serial:
    """A loop of ``trip`` iterations that only the master thread executes."""

    kind: ClassVar[str] = "serial"

    name: str
    trip: Expression
    costs: Costs
    every: Expression


@dataclass(frozen=True)
class Parallel:
    """A loop whose ``trip`` iterations are shared by the threads, ``inner`` iterations in each.

    Attributes
    ----------
    constructs : mapping of str to Expression
        How often each OpenMP construct is entered per execution.
    schedule : {'static', 'dynamic', 'guided'}
        How iterations are handed out.
    chunk : Expression or None
        Chunk of the schedule; None is one block per thread if static, else 1.
    iteration_cv : Expression
        Coefficient of variation of the cost of a shared iteration.
    critical : Critical or None
        Critical section that the threads enter meanwhile.
    shared_writes : SharedWrites or None
        Writes to cache lines that threads share.
    """

    kind: ClassVar[str] = "parallel"

    name: str
    trip: Expression
    inner: Expression
    costs: Costs
    constructs: Mapping[str, Expression]
    schedule: str
    chunk: Expression | None
    iteration_cv: Expression
    critical: Critical | None
    shared_writes: SharedWrites | None
    every: Expression


@dataclass(frozen=True)
class Critical:
    """A section that one thread at a time executes: entries of each thread, seconds of each."""

    entries: Expression
    seconds: Expression


@dataclass(frozen=True)
class SharedWrites:
    """Writes of threads to elements that lie so near to each other that they share cache lines.

    Attributes
    ----------
    count : Expression
        Writes of a process per execution of the loop.
    bytes : Expression
        Size of an element.
    chunk : Expression
        Elements next to each other that the same thread writes.
    """

    count: Expression
    bytes: Expression
    chunk: Expression


@dataclass(frozen=True)
class Task:
    """Explicit tasks in a parallel region.

    Attributes
    ----------
    count, seconds : Expression
        Tasks of a process, and the time of one.
    span : Expression or None
        Longest chain of tasks that wait for each other, s; None if they are independent.
    """

    kind: ClassVar[str] = "task"

    name: str
    count: Expression
    seconds: Expression
    span: Expression | None
    every: Expression


@dataclass(frozen=True)
class Halo:
    """Every process exchanges layers of cells with its neighbours in the grid.

    Attributes
    ----------
    width, bytes_per_cell : Expression
        Layers of cells, and bytes of all fields of a cell.
    mode : {'nonblocking', 'blocking'}
        All messages at once, or one dimension and side after the other.
    pack : {'serial', 'parallel', 'none'}
        Who copies the cells to and from messages.
    overlap : Expression
        Share of the transfer hidden behind computation, 0 to 1.
    comm_threads : Expression
        Threads of a process that send its messages.
    """

    kind: ClassVar[str] = "halo"

    name: str
    width: Expression
    bytes_per_cell: Expression
    mode: str
    pack: str
    overlap: Expression
    comm_threads: Expression
    every: Expression


@dataclass(frozen=True)
class Pipeline:
    """A wavefront that runs through grid dimensions block by block.

    Attributes
    ----------
    dims : tuple of int
        Grid dimensions.
    blocks, seconds : Expression
        Blocks of the sweep of a process, and the time of its whole sweep.
    bytes : Expression
        Message to the next process after each block.
    """

    kind: ClassVar[str] = "pipeline"

    name: str
    dims: tuple[int, ...]
    blocks: Expression
    seconds: Expression
    bytes: Expression
    every: Expression


@dataclass(frozen=True)
class Shift:
    """Every process exchanges ``bytes`` with the one ``by`` steps along a grid dimension.

    Its ``comm_threads`` threads send a part of the message each.
    """

    kind: ClassVar[str] = "shift"

    name: str
    dim: int
    by: Expression
    bytes: Expression
    comm_threads: Expression
    every: Expression


@dataclass(frozen=True)
class PointToPoint:
    """Every process sends ``bytes`` to the rank ``to``; a rank outside 0..P-1 is no message.

    Attributes
    ----------
    mode : {'send', 'sendrecv'}
        A blocking send before the receive, or both at once.
    comm_threads : Expression
        Threads of a process, each of which sends a part of the message.
    """

    kind: ClassVar[str] = "p2p"

    name: str
    to: Expression
    bytes: Expression
    mode: str
    comm_threads: Expression
    every: Expression


Communicator: TypeAlias = str | tuple[int, ...]


@dataclass(frozen=True)
class Collective:
    """The processes of each communicator take part in operation ``op``.

    Attributes
    ----------
    bytes : Expression
        Bytes per process.
    comm : str or tuple of int
        Who takes part together: ``world``, all; ``node``, the processes of a node; ``leaders``, the
        first process of every node; grid dimensions, the processes that differ in these only.
    root : Expression
        Rank in the communicator of the process that has or gets the data.
    """

    kind: ClassVar[str] = "collective"

    name: str
    op: str
    bytes: Expression
    comm: Communicator
    root: Expression
    every: Expression


Item: TypeAlias = (
    Loop | Serial | Parallel | Task | Halo | Pipeline | Shift | PointToPoint | Collective
)

COMMUNICATION = (Halo, Pipeline, Shift, PointToPoint, Collective)


@dataclass(frozen=True)
class Grid:
    """A Cartesian decomposition.

    Attributes
    ----------
    dims : tuple of Expression, or None
        Processes along each dimension; None asks for the grid with the least surface.
    cells : tuple of Expression, or None
        Global extent along each dimension.
    periodic : tuple of bool
        Whether neighbours wrap around, by dimension.
    """

    dims: tuple[Expression, ...] | None
    cells: tuple[Expression, ...] | None
    periodic: tuple[bool, ...]


@dataclass(frozen=True)
class Limits:
    """What must hold for the application to run.

    Attributes
    ----------
    require : tuple of Expression
        Conditions.
    memory_per_rank : Expression or None
        Bytes of memory of a process.
    """

    require: tuple[Expression, ...] = ()
    memory_per_rank: Expression | None = None


@dataclass(frozen=True)
class Signature:
    """A checked signature.

    Attributes
    ----------
    name : str
        Name of the application.
    path : str
        File it was read from.
    is_bundled : bool
        Whether it came with popmodel.
    params : mapping of str to Quantity
        Problem parameters with their defaults.
    let : tuple of (str, Expression)
        Names derived from params, P and T, in the order in which they are computed.
    limits : Limits
        What must hold.
    grid : Grid or None
        How processes are arranged.
    imbalance : mapping of str to Quantity
        ``persistent_cv``, ``transient_cv``, ``reference_processes``, ``growth_exponent``, those
        that were given.
    program : tuple of Item
        The region tree.
    units : mapping of str to str
        Units that were stated for parameters: ``B``, ``s``, ``1`` or what is counted.
    """

    name: str
    path: str
    is_bundled: bool
    params: Mapping[str, Quantity]
    let: tuple[tuple[str, Expression], ...]
    limits: Limits
    grid: Grid | None
    imbalance: Mapping[str, Quantity]
    program: tuple[Item, ...]
    units: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        params = " ".join(f"{name}={value.value:g}" for name, value in self.params.items())
        where = "bundled" if self.is_bundled else self.path
        size = plural(len(items(self.program)), "item")
        return cut(f"<Signature {self.name} ({where}): {size}, {params or 'no parameters'}>")


def items(program: tuple[Item, ...]) -> list[Item]:
    """Return every item of a program, loops and what is in them included."""
    found: list[Item] = []
    for item in program:
        found.append(item)
        if isinstance(item, Loop):
            found.extend(items(item.body))
    return found
