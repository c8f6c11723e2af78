"""Calls of MPI in source code: what they say of the processes, and the messages that they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from popmodel.source.formula_text import compared, expanded, sum_over_turns
from popmodel.source.intermediate_form import INTEGER, Invocation
from popmodel.source.source_events import MessageCall
from popmodel.source.symbolic_memory import (
    EACH,
    PROCESSES,
    RANK,
    LiteralText,
    Pointer,
    UnfollowedReal,
)

if TYPE_CHECKING:
    from popmodel.source.symbolic_evaluation import SymbolicEvaluation

NOBODY = sympy.Integer(-2)
"""MPI_PROC_NULL."""
ANYBODY = sympy.Integer(-3)
"""MPI_ANY_SOURCE."""


class SourceCommunicator(NamedTuple):
    """A communicator; of a grid with its processes along each dimension."""

    name: str
    extents: tuple[sympy.Expr, ...] = ()
    periodic: tuple[bool, ...] = ()


WORLD = SourceCommunicator("world")
SIZES = {
    1: "CHAR SIGNED_CHAR UNSIGNED_CHAR BYTE C_BOOL CXX_BOOL INT8_T UINT8_T PACKED CHARACTER",
    2: "SHORT UNSIGNED_SHORT INT16_T UINT16_T",
    4: "INT UNSIGNED FLOAT INT32_T UINT32_T WCHAR INTEGER REAL LOGICAL INTEGER4 REAL4",
    8: "LONG UNSIGNED_LONG LONG_LONG LONG_LONG_INT UNSIGNED_LONG_LONG DOUBLE INT64_T UINT64_T AINT "
    "OFFSET COUNT C_COMPLEX C_FLOAT_COMPLEX DOUBLE_PRECISION COMPLEX FLOAT_INT 2INT INTEGER8 REAL8",
    12: "DOUBLE_INT LONG_INT",
    16: "LONG_DOUBLE C_DOUBLE_COMPLEX CXX_DOUBLE_COMPLEX DOUBLE_COMPLEX",
}
TYPES = {f"MPI_{name}": size for size, names in SIZES.items() for name in names.split()}
"""Bytes of the types that MPI defines, as of common 64-bit systems."""


class CallArguments(NamedTuple):
    """Which argument of a call is what, counted from 0."""

    number: int | None = None
    type: int | None = None
    partner: int | None = None
    source: int | None = None
    root: int | None = None
    communicator: int | None = None


_SEND = CallArguments(1, 2, 3, None, None, 5)
_REDUCE = CallArguments(2, 3, communicator=5)
SHAPES = {
    **dict.fromkeys(("send", "ssend", "bsend", "rsend", "isend", "issend", "irsend"), _SEND),
    **dict.fromkeys(("recv", "irecv", "send_init", "recv_init"), _SEND),
    "sendrecv": CallArguments(1, 2, 3, 8, None, 10),
    "sendrecv_replace": CallArguments(1, 2, 3, 5, None, 7),
    **dict.fromkeys(("wait", "waitall", "waitany", "waitsome"), CallArguments()),
    **dict.fromkeys(("start", "startall"), CallArguments()),
    "barrier": CallArguments(communicator=0),
    "ibarrier": CallArguments(communicator=0),
    "bcast": CallArguments(1, 2, root=3, communicator=4),
    "ibcast": CallArguments(1, 2, root=3, communicator=4),
    "reduce": CallArguments(2, 3, root=5, communicator=6),
    "allreduce": _REDUCE,
    "iallreduce": _REDUCE,
    "scan": _REDUCE,
    "exscan": _REDUCE,
    "reduce_scatter_block": _REDUCE,
    "reduce_scatter": CallArguments(None, 3, communicator=5),
    "gather": CallArguments(1, 2, root=6, communicator=7),
    "gatherv": CallArguments(1, 2, root=7, communicator=8),
    "scatter": CallArguments(4, 5, root=6, communicator=7),
    "scatterv": CallArguments(5, 6, root=7, communicator=8),
    "allgather": CallArguments(1, 2, communicator=6),
    "allgatherv": CallArguments(1, 2, communicator=7),
    "alltoall": CallArguments(1, 2, communicator=6),
    "alltoallv": CallArguments(None, 3, communicator=8),
}
"""Calls that transfer or wait."""
_QUIET_NAMES = (
    "init init_thread finalize wtick get_processor_name comm_free comm_set_errhandler "
    "errhandler_set errhandler_create errhandler_free comm_create_errhandler error_string "
    "error_class type_commit type_free op_create op_free request_free info_create info_set "
    "info_free pcontrol status_set_error comm_set_name type_set_name comm_group group_incl "
    "group_excl group_range_incl group_free buffer_attach buffer_detach free_mem "
    "get_version get_library_version"
)
_ANSWERING_NAMES = (
    "initialized finalized query_thread is_thread_main get_count get_elements comm_compare "
    "group_size group_rank group_translate_ranks type_extent type_get_extent comm_get_attr "
    "attr_get topo_test get_address address"
)
_ANSWERING = frozenset(_ANSWERING_NAMES.split())
"""Calls that cost nothing worth naming, whose answers are not known."""
QUIET = frozenset(_QUIET_NAMES.split()) | _ANSWERING
"""Calls that cost nothing worth naming."""


_RECEIVED = {
    **dict.fromkeys(("recv", "irecv", "recv_init", "sendrecv_replace"), 0),
    **dict.fromkeys(("reduce", "allreduce", "iallreduce", "scan", "exscan"), 1),
    **dict.fromkeys(("reduce_scatter", "reduce_scatter_block"), 1),
    **dict.fromkeys(("gather", "gatherv", "scatter", "allgather", "allgatherv", "alltoall"), 3),
    **{"sendrecv": 5, "alltoallv": 4, "scatterv": 4},
}
"""Which argument of a call points to what comes from elsewhere; what bcast brings is known."""


_IN_PLACE = {
    "allgather": (4, 5),
    "alltoall": (4, 5),
    "allgatherv": (None, 6),
    "alltoallv": (None, 7),
}
"""Where count and type are of a call whose buffer is MPI_IN_PLACE, which leaves the others out."""
_MOST_BLOCKS = 100
"""Blocks of a derived type that are counted one by one."""
_COUNTS = {"allgatherv": 4, "alltoallv": 1, "reduce_scatter": 2}
"""Arrays of counts by process."""


class MpiCalls:
    """Carries out calls of MPI for an interpreter."""

    def __init__(self, interpreter: SymbolicEvaluation) -> None:
        self.interpreter = interpreter
        self.grids: list[SourceCommunicator] = []
        self.neighbours: dict[sympy.Symbol, tuple[SourceCommunicator, int, sympy.Expr]] = {}
        self.places: dict[
            sympy.Symbol, tuple[SourceCommunicator, int]
        ] = {}  # Coordinates of a process
        self.types: dict[str, sympy.Expr] = {}  # Bytes of derived types
        self.left_out: set[tuple[str, str]] = set()  # Calls that a note names, and their places
        self.dims = 0  # Of what MPI_Dims_create was asked for

    def call(self, invocation: Invocation) -> Any:
        """Carry out a call."""
        name = invocation.name.removeprefix("P").removeprefix("MPI_").lower()
        values = [self.interpreter.value(argument) for argument in invocation.arguments]
        own = getattr(self, f"_{name}", None)
        if own is not None:
            own(values, invocation)
        elif name in SHAPES:
            self._message(name, values, invocation)
        elif name == "wtime":
            return UnfollowedReal()
        elif name in _ANSWERING:
            self._forget(values)
        elif name not in QUIET:
            text = f"{invocation.name} is not followed: left out"
            self.interpreter.note(f"{invocation.place}: {text}")
            self.left_out.add((name, str(invocation.place)))
            self._forget(values)
        if name == "init_thread" and len(values) > 3:
            self._set(values[3], values[2])
        return sympy.Integer(0)

    def _message(self, name: str, values: list[Any], invocation: Invocation) -> None:
        shape = SHAPES[name]

        def at(number: int | None) -> Any:
            return values[number] if number is not None and number < len(values) else None

        def exact(number: int | None, what: str) -> sympy.Expr | None:
            value = at(number)
            if number is None or isinstance(value, sympy.Expr):
                return value
            if getattr(value, "text", "") == "MPI_ANY_SOURCE":
                return ANYBODY
            return self.interpreter.symbol(f"{what}_{invocation.place.line}", invocation.place)

        size = None
        if shape.type is not None:
            number, kind = shape.number, shape.type
            is_in_place = name in _IN_PLACE and getattr(at(0), "text", "") == "MPI_IN_PLACE"
            if is_in_place:
                number, kind = _IN_PLACE[name]
            count = at(number) if number is not None else None
            if isinstance(at(_COUNTS.get(name)), Pointer) and (is_in_place or number is None):
                count = self._own_count(at(_COUNTS.get(name)), name, invocation)
            elif not isinstance(count, sympy.Expr):
                count = self.interpreter.symbol(f"count_{invocation.place.line}", invocation.place)
            size = expanded(count * self._bytes(at(kind), invocation))
        communicator = at(shape.communicator)
        call = MessageCall(
            name,
            invocation.place,
            communicator.name if isinstance(communicator, SourceCommunicator) else "world",
            size,
            exact(shape.partner, "partner"),
            exact(shape.source, "source"),
            exact(shape.root, "root"),
        )
        self.interpreter.events.append(call)
        if name.endswith("_init"):
            self._set(values[-1], replace(call, name=f"i{name.removesuffix('_init')}"))
        elif name in ("start", "startall"):
            self._begin(values, invocation)
        if name in ("bcast", "ibcast") and isinstance(values[0], Pointer):
            self._broadcast(values[0], at(shape.root))
        received = at(_RECEIVED.get(name))
        if isinstance(received, Pointer):
            self.interpreter.forget(received)

    def _begin(self, values: list[Any], invocation: Invocation) -> None:
        """Messages of requests that are begun again."""
        count = values[0] if len(values) > 1 else sympy.Integer(1)
        is_known = isinstance(count, sympy.Integer) and isinstance(values[-1], Pointer)
        for number in range(int(count)) if is_known else (0,):
            call = self._get(values[-1], number, invocation)
            if isinstance(call, MessageCall):
                self.interpreter.events.append(replace(call, place=invocation.place))
            else:
                text = f"{invocation.name} of a request that is not known: left out"
                self.interpreter.note(f"{invocation.place}: {text}")

    def _own_count(self, counts: Pointer, name: str, invocation: Invocation) -> sympy.Expr:
        """Of counts by process, that of the process itself; of an exchange the mean of all."""
        index = EACH if name == "alltoallv" else RANK
        where = self.interpreter.at(counts, index)
        count: sympy.Expr = self.interpreter.load(*where, INTEGER, invocation.place)
        total = sum_over_turns(count, EACH, PROCESSES) if count.has(EACH) else None
        return count if total is None else expanded(total / PROCESSES)

    def _broadcast(self, buffer: Pointer, root: Any) -> None:
        """All processes have from here on what the root has."""
        if not isinstance(root, sympy.Integer):
            return
        way, contents = buffer.path, self.interpreter.state.get(buffer.memory, {})
        self.interpreter.state[buffer.memory] = {
            path: value.xreplace({RANK: root})
            if isinstance(value, sympy.Expr) and path[: len(way)] == way
            else value
            for path, value in contents.items()
        }

    def decided(self, condition: sympy.Basic) -> sympy.Basic:
        """A condition, with what is known of neighbours: each is a rank, or nobody."""
        if self.neighbours.keys().isdisjoint(condition.free_symbols):
            return condition
        known = {}
        for relation in condition.atoms(sympy.Eq, sympy.Ne):
            numbers = [part for part in relation.args if part.is_Integer and part != NOBODY]
            if numbers and numbers[0] < 0 and not self.neighbours.keys().isdisjoint(relation.args):
                known[relation] = sympy.true if isinstance(relation, sympy.Ne) else sympy.false
        return condition.xreplace(known)

    def by_rank(self, value: Any) -> Any:
        """A formula with neighbours and places in a grid of MPI by the rank of a process."""
        known: dict[sympy.Basic, sympy.Basic] = {}
        for symbol in value.free_symbols & (self.neighbours.keys() | self.places.keys()):
            grid, dim = (self.neighbours.get(symbol) or self.places[symbol])[:2]
            extent, behind = grid.extents[dim], sympy.Mul(*grid.extents[dim + 1 :])
            here = sympy.Mod(sympy.floor(RANK / behind), extent)
            known[symbol] = here
            if symbol in self.neighbours:
                there = here + self.neighbours[symbol][2]
                known[symbol] = RANK + (sympy.Mod(there, extent) - here) * behind
                if not grid.periodic[dim]:
                    is_inside = sympy.And(there >= 0, there < extent)
                    known[symbol] = sympy.Piecewise((known[symbol], is_inside), (NOBODY, True))
        for relation in value.atoms(sympy.Eq, sympy.Ne):
            if known.keys() & relation.free_symbols:
                one, other = (part.xreplace(known) for part in relation.args)
                known[relation] = compared(relation.func, one, other)
        return value.xreplace(known)

    def _bytes(self, kind: Any, invocation: Invocation) -> sympy.Expr:
        text = getattr(kind, "text", "")
        if text in TYPES:
            return sympy.Integer(TYPES[text])
        if text in self.types:
            return self.types[text]
        if isinstance(kind, sympy.Expr) and kind in self.interpreter.unknown:
            return kind
        return self.interpreter.symbol(f"bytes_of_type_{invocation.place.line}", invocation.place)

    def _set(self, pointer: Any, value: Any, index: int = 0) -> None:
        """Put a value where a pointer points to."""
        if not isinstance(pointer, Pointer):
            return
        memory, path = self.interpreter.at(pointer, sympy.Integer(index))
        self.interpreter.state[memory] = {**self.interpreter.state.get(memory, {}), path: value}

    def _get(self, pointer: Any, index: int, invocation: Invocation) -> Any:
        if not isinstance(pointer, Pointer):
            return None
        memory, path = self.interpreter.at(pointer, sympy.Integer(index))
        return self.interpreter.load(memory, path, INTEGER, invocation.place)

    def _forget(self, values: list[Any]) -> None:
        for value in values:
            if isinstance(value, Pointer):
                memory, path = self.interpreter.at(value, sympy.Integer(0))
                contents = dict(self.interpreter.state.get(memory, {}))
                contents.pop(path, None)
                self.interpreter.memories[memory].is_open = True
                self.interpreter.state[memory] = contents

    # Communicators

    def _comm_size(self, values: list[Any], invocation: Invocation) -> None:
        known = isinstance(values[0], SourceCommunicator) and (
            values[0].name == "world" or values[0].extents
        )
        size = PROCESSES
        if not known and not _is_world(values[0]):
            size = self.interpreter.symbol(f"size_{invocation.place.line}", invocation.place)
        self._set(values[1], size)

    def _comm_rank(self, values: list[Any], invocation: Invocation) -> None:
        known = isinstance(values[0], SourceCommunicator) and (
            values[0].name == "world" or values[0].extents
        )
        rank = RANK
        if not known and not _is_world(values[0]):
            rank = self.interpreter.symbol(f"rank_{invocation.place.line}", invocation.place)
        self._set(values[1], rank)

    def _comm_dup(self, values: list[Any], _: Invocation) -> None:
        given = values[0] if isinstance(values[0], SourceCommunicator) else WORLD
        self._set(values[1], given)

    def _comm_split(self, values: list[Any], invocation: Invocation) -> None:
        self._set(values[3], SourceCommunicator(f"split {invocation.place}"))

    def _comm_create(self, values: list[Any], invocation: Invocation) -> None:
        self._set(values[2], SourceCommunicator(f"group {invocation.place}"))

    def _comm_create_group(self, values: list[Any], invocation: Invocation) -> None:
        self._set(values[3], SourceCommunicator(f"group {invocation.place}"))

    def _comm_split_type(self, values: list[Any], _: Invocation) -> None:
        self._set(values[4], SourceCommunicator("node"))

    def _cart_create(self, values: list[Any], invocation: Invocation) -> None:
        dims = int(values[1]) if isinstance(values[1], sympy.Integer) else 0
        extents = [self._get(values[2], index, invocation) for index in range(dims)]
        periodic = [self._get(values[3], index, invocation) for index in range(dims)]
        number = len(self.grids)
        shown = []
        for index, extent in enumerate(extents):
            if isinstance(extent, sympy.Expr) and not extent.free_symbols & set(
                self.interpreter.unknown
            ):
                shown.append(extent)
                continue
            # how many there are along a dimension is found by a search that nobody follows
            symbol = sympy.Symbol(f"P{index}", integer=True, positive=True)
            shown.append(symbol)
            self._set(values[2], symbol, index)
        grid = SourceCommunicator(
            f"grid {number}", tuple(shown), tuple(bool(one == 1) for one in periodic)
        )
        if not self.interpreter.is_dry:
            self.grids.append(grid)
        self._set(values[5], grid)

    def _dims_create(self, values: list[Any], _: Invocation) -> None:
        dims = int(values[1]) if isinstance(values[1], sympy.Integer) else 0
        self.dims = max(self.dims, dims)
        for index in range(dims):
            symbol = sympy.Symbol(f"P{index}", integer=True, positive=True)
            self._set(values[2], symbol, index)

    def _cart_coords(self, values: list[Any], _: Invocation) -> None:
        grid = values[0]
        if not isinstance(grid, SourceCommunicator):
            return
        for index in range(len(grid.extents)):
            self._set(values[3], self._place_in(grid, index), index)

    def _place_in(self, grid: SourceCommunicator, dim: int) -> sympy.Symbol:
        symbol = sympy.Symbol(f"place{dim}", integer=True, nonnegative=True)
        self.places[symbol] = grid, dim
        return symbol

    def _cart_get(self, values: list[Any], _: Invocation) -> None:
        grid = values[0]
        if isinstance(grid, SourceCommunicator):
            for index, extent in enumerate(grid.extents):
                self._set(values[2], extent, index)
                self._set(values[3], sympy.Integer(grid.periodic[index]), index)
                self._set(values[4], self._place_in(grid, index), index)

    def _cart_rank(self, values: list[Any], invocation: Invocation) -> None:
        self._set(values[2], self.interpreter.symbol("rank in the grid", invocation.place))

    def _cart_shift(self, values: list[Any], _: Invocation) -> None:
        grid, dim, by = values[:3]
        if (
            not isinstance(grid, SourceCommunicator)
            or not isinstance(dim, sympy.Integer)
            or not isinstance(by, sympy.Integer)
        ):
            self._forget(values[3:])
            return
        for pointer, steps in ((values[3], -by), (values[4], by)):
            sign = "up" if steps > 0 else "down"
            symbol = sympy.Symbol(f"{sign}{abs(int(steps))}_dim{dim}", integer=True)
            self.neighbours[symbol] = grid, int(dim), steps
            self._set(pointer, symbol)

    def _cart_sub(self, values: list[Any], invocation: Invocation) -> None:
        grid = values[0]
        if not isinstance(grid, SourceCommunicator):
            return
        kept = [
            index
            for index in range(len(grid.extents))
            if self._get(values[1], index, invocation) != 0
        ]
        name = "dims " + " ".join(map(str, kept))
        self._set(values[2], SourceCommunicator(name))

    def _type_contiguous(self, values: list[Any], invocation: Invocation) -> None:
        self._derive(values[2], (values[0],), values[1], invocation)

    def _type_vector(self, values: list[Any], invocation: Invocation) -> None:
        self._derive(values[4], values[:2], values[3], invocation)

    _type_hvector = _type_create_hvector = _type_vector

    def _type_create_indexed_block(self, values: list[Any], invocation: Invocation) -> None:
        self._derive(values[4], values[:2], values[3], invocation)

    def _type_create_resized(self, values: list[Any], invocation: Invocation) -> None:
        self._derive(values[3], (), values[0], invocation)

    def _type_size(self, values: list[Any], invocation: Invocation) -> None:
        self._set(values[1], self._bytes(values[0], invocation))

    def _type_dup(self, values: list[Any], invocation: Invocation) -> None:
        self._derive(values[1], (), values[0], invocation)

    def _type_create_subarray(self, values: list[Any], invocation: Invocation) -> None:
        sizes = self._elements(values[2], values[0], invocation)
        self._derive(values[6], sizes or (None,), values[5], invocation)

    def _type_indexed(self, values: list[Any], invocation: Invocation) -> None:
        lengths = self._elements(values[1], values[0], invocation)
        number = sympy.Add(*lengths) if lengths else None
        self._derive(values[4], (number,), values[3], invocation)

    _type_hindexed = _type_create_hindexed = _type_indexed

    def _type_create_struct(self, values: list[Any], invocation: Invocation) -> None:
        lengths = self._elements(values[1], values[0], invocation)
        kinds = [self._get(values[3], index, invocation) for index in range(len(lengths))]
        sizes = [self._bytes(kind, invocation) for kind in kinds]
        total = sympy.Add(*(map(sympy.Mul, lengths, sizes))) if lengths else None
        self._derive(values[4], (total,), LiteralText("MPI_BYTE", "mpi"), invocation)

    _type_struct = _type_create_struct

    def _elements(self, array: Any, count: Any, invocation: Invocation) -> list[Any]:
        """The numbers in an array of a known length; none if one of them is not known."""
        if not isinstance(count, sympy.Integer) or count > _MOST_BLOCKS:
            return []
        found = [self._get(array, index, invocation) for index in range(int(count))]
        return found if all(isinstance(one, sympy.Expr) for one in found) else []

    def _derive(
        self, pointer: Any, numbers: Sequence[Any], kind: Any, invocation: Invocation
    ) -> None:
        """A type of so many of another one, if that is known."""
        if all(isinstance(number, sympy.Expr) for number in numbers):
            name = f"type of {invocation.place}"
            self.types[name] = expanded(sympy.Mul(*numbers, self._bytes(kind, invocation)))
            self._set(pointer, LiteralText(name, "mpi"))


def _is_world(value: Any) -> bool:
    return getattr(value, "text", "") == "MPI_COMM_WORLD"
