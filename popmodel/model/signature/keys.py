"""Every key of a signature: its unit, its default, the values that it may have, what it means.

The reader refuses what is not in this table, the model refuses values outside the domains here, and
the page bundled/README.md shows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from popmodel.expressions.elementary import Value
from popmodel.model.signature.toml_lines import Path
from popmodel.values import dataclass


@dataclass(frozen=True)
class Domain:
    """The values that make sense for a number.

    Attributes
    ----------
    text : str
        In words that follow "must be".
    least, most : float
        Ends of the range.
    is_open : bool
        Whether ``least`` itself is left out.
    """

    text: str
    least: float
    most: float = math.inf
    is_open: bool = False

    def holds(self, value: Value) -> Value:
        """Tell whether a number, or each element of an array, is in the domain."""
        above = value > self.least if self.is_open else value >= self.least
        return np.logical_and(above, value <= self.most)


POSITIVE = Domain("above 0", 0.0, is_open=True)
NOT_NEGATIVE = Domain("at least 0", 0.0)
ONE_OR_MORE = Domain("at least 1", 1.0)
SHARE = Domain("between 0 and 1", 0.0, 1.0)
EXPONENT = Domain("between 0 (smooth) and 0.5 (independent cells)", 0.0, 0.5)


@dataclass(frozen=True)
class Key:
    """One key of a table.

    Attributes
    ----------
    name : str
        As it is written.
    unit : str
        SI unit of its number; empty if it is no number, ``1`` for a count or ratio.
    default : str or None
        What holds if it is not there, in words where it is no number; None if it has to be there.
    meaning : str
        What it says.
    domain : Domain or None
        Values that its formula may have; None if any.
    constant : Domain or None
        Values that a formula without names may have, if fewer: what happens to be zero for some
        number of processes is nothing to do, what is written as zero is a mistake.
    """

    name: str
    unit: str
    default: str | None
    meaning: str
    domain: Domain | None = None
    constant: Domain | None = None

    def domain_of(self, *, is_constant: bool) -> Domain | None:
        """Return the values allowed for a formula without names, or for one with names."""
        return self.constant or self.domain if is_constant else self.domain


_COMMON = (
    Key("name", "", "the kind", "name in reports"),
    Key(
        "every",
        "1",
        "1",
        "inside a loop: executed only in every n-th iteration",
        POSITIVE,
    ),
)
_THREADS = Key(
    "comm_threads",
    "1",
    "1",
    "threads of a process that send its messages at the same time; whole, at most T",
    ONE_OR_MORE,
)
_COSTS = (
    Key("flops", "1", "0", "floating-point operations per innermost iteration", NOT_NEGATIVE),
    Key("loads", "1", "0", "8-byte loads per innermost iteration", NOT_NEGATIVE),
    Key("stores", "1", "0", "8-byte stores per innermost iteration", NOT_NEGATIVE),
    Key(
        "chain",
        "cycle",
        "0",
        "cycles per innermost iteration that a wider core would not shorten: a chain of dependent "
        "operations, or of operations that share a slow unit",
        NOT_NEGATIVE,
    ),
    Key(
        "bytes",
        "B",
        "none",
        "bytes.LEVEL: traffic per innermost iteration through a cache level of the machine "
        "profile, or through MEM, main memory",
        NOT_NEGATIVE,
    ),
    Key("instructions", "1", "unknown", "instructions per innermost iteration", NOT_NEGATIVE),
    Key(
        "mode",
        "",
        "from the machine profile",
        "how arithmetic and transfers overlap: sum, ecm or roofline",
    ),
    Key(
        "seconds",
        "s",
        "none",
        "measured time of an innermost iteration on one core, instead of flops, loads, stores, "
        "chain, bytes and mode; not scaled to the machine profile",
        NOT_NEGATIVE,
    ),
)

KEYS: Mapping[str, tuple[Key, ...]] = {
    "": (
        Key("schema", "", None, "popmodel/signature/1"),
        Key("app", "", None, "table: the application"),
        Key("params", "", "none", "table: parameters of the problem, numbers above 0"),
        Key("let", "", "none", "table: names for formulas, evaluated in order"),
        Key("limits", "", "none", "table: what a run must satisfy"),
        Key("decomp", "", "none", "table: how the cells of a grid are divided among processes"),
        Key("imbalance", "", "none", "table: how the work of the processes varies"),
        Key("program", "", None, "list of items, executed in order"),
    ),
    "app": (
        Key("name", "", None, "name of the application"),
        Key("description", "", "none", "what it does"),
        Key("source", "", "none", "reference"),
    ),
    "limits": (
        Key("require", "", "none", "list of conditions on P, T and parameters"),
        Key("memory_per_rank", "B", "unknown", "memory per process", NOT_NEGATIVE),
    ),
    "decomp": (
        Key("global", "1", "none", "list: cells along each dimension, at most three", POSITIVE),
        Key(
            "grid",
            "1",
            "auto",
            "list: processes along each dimension; auto chooses the grid with the smallest surface",
            ONE_OR_MORE,
        ),
        Key(
            "periodic",
            "",
            "false",
            "whether boundaries are periodic, for all dimensions or for each",
        ),
    ),
    "imbalance": (
        Key(
            "persistent_cv",
            "1",
            "0",
            "coefficient of variation of the work per process, the same in every step",
            NOT_NEGATIVE,
        ),
        Key(
            "transient_cv",
            "1",
            "0",
            "coefficient of variation of the work per process, drawn anew in every step",
            NOT_NEGATIVE,
        ),
        Key(
            "reference_processes",
            "1",
            "1",
            "number of processes for which both are given",
            POSITIVE,
        ),
        Key("growth_exponent", "1", "0", "H: both grow as (P/reference_processes)**H", EXPONENT),
    ),
    "loop": (
        Key("count", "1", None, "executions of the body", NOT_NEGATIVE, POSITIVE),
        Key("body", "", None, "list of items"),
        *_COMMON,
    ),
    "serial": (
        Key("trip", "1", None, "iterations, executed by the master thread", NOT_NEGATIVE, POSITIVE),
        *_COSTS,
        *_COMMON,
    ),
    "parallel": (
        Key("trip", "1", None, "iterations shared by the threads", POSITIVE),
        Key("inner", "1", "1", "innermost iterations in each of them", POSITIVE),
        Key("schedule", "", "static", "static, dynamic or guided"),
        Key(
            "chunk",
            "1",
            "one block per thread if static, else 1",
            "chunk size of the schedule, in iterations",
            ONE_OR_MORE,
        ),
        Key(
            "iteration_cv",
            "1",
            "0",
            "coefficient of variation of the cost of a shared iteration, at random",
            NOT_NEGATIVE,
        ),
        Key(
            "constructs",
            "1",
            "{ parallel_for = 1 }",
            "table: how often each OpenMP construct of the machine profile is executed",
            NOT_NEGATIVE,
        ),
        Key("critical", "", "none", "table: a critical section inside the loop"),
        Key(
            "shared_writes",
            "",
            "none",
            "table: writes to cache lines shared by threads (false sharing)",
        ),
        *_COSTS,
        *_COMMON,
    ),
    "critical": (
        Key("entries", "1", None, "entries per thread", NOT_NEGATIVE),
        Key("seconds", "s", None, "time inside, without the cost of the lock", NOT_NEGATIVE),
    ),
    "shared_writes": (
        Key("count", "1", None, "writes per process and execution", NOT_NEGATIVE),
        Key("bytes", "B", None, "size of an element", POSITIVE),
        Key(
            "chunk",
            "1",
            None,
            "adjacent elements written by the same thread",
            ONE_OR_MORE,
        ),
    ),
    "task": (
        Key("count", "1", None, "tasks per process", POSITIVE),
        Key("seconds", "s", None, "time of one task", NOT_NEGATIVE),
        Key(
            "span",
            "s",
            "seconds",
            "time of the longest chain of dependent tasks",
            NOT_NEGATIVE,
        ),
        *_COMMON,
    ),
    "halo": (
        Key("width", "1", None, "layers of cells", POSITIVE),
        Key("bytes_per_cell", "B", None, "bytes per cell, all fields together", NOT_NEGATIVE),
        Key(
            "mode",
            "",
            "nonblocking",
            "nonblocking: all messages at once; blocking: one after the other",
        ),
        Key(
            "pack",
            "",
            "serial",
            "who packs and unpacks messages: serial (the master), parallel (all threads) or none",
        ),
        Key("overlap", "1", "0", "share of the transfer hidden behind computation", SHARE),
        _THREADS,
        *_COMMON,
    ),
    "shift": (
        Key("dim", "", None, "grid dimension, counted from 0"),
        Key("by", "1", None, "steps along it, whole"),
        Key("bytes", "B", None, "message size", NOT_NEGATIVE),
        _THREADS,
        *_COMMON,
    ),
    "p2p": (
        Key("to", "1", None, "destination, a formula of rank; no message if outside 0..P-1"),
        Key("bytes", "B", None, "message size", NOT_NEGATIVE),
        Key("mode", "", "send", "send: blocking, before the receive; sendrecv: both at once"),
        _THREADS,
        *_COMMON,
    ),
    "collective": (
        Key(
            "op",
            "",
            None,
            "barrier, bcast, reduce, allreduce, reduce_scatter, allgather, gather, scatter, "
            "alltoall or scan",
        ),
        Key(
            "bytes", "B", "0 for a barrier, else required", "message size per process", NOT_NEGATIVE
        ),
        Key(
            "comm",
            "",
            "world",
            "communicator: world, node, leaders (one process per node), or grid dimensions such as "
            "dim0 or [dim0, dim1] (processes that differ only in these)",
        ),
        Key(
            "root",
            "1",
            "0",
            "root of bcast, reduce, gather and scatter: rank in the communicator, whole",
            NOT_NEGATIVE,
        ),
        *_COMMON,
    ),
    "pipeline": (
        Key("dims", "", None, "list of the grid dimensions that the wavefront crosses"),
        Key("blocks", "1", None, "blocks per process and sweep", ONE_OR_MORE),
        Key(
            "seconds",
            "s",
            None,
            "time of the whole sweep on one process, executed by the master thread",
            NOT_NEGATIVE,
        ),
        Key("bytes", "B", None, "message to the next process after each block", NOT_NEGATIVE),
        *_COMMON,
    ),
}
"""The keys of every table of a signature, by its name; the document itself has none."""

TABLES: Mapping[str, str] = {
    "": "the document",
    "app": "the application",
    "limits": "what a run must satisfy",
    "decomp": "how the cells of a grid are divided among processes",
    "imbalance": "how the work of the processes varies",
    "loop": "a body that is repeated",
    "serial": "a loop that the master thread of each process executes alone",
    "parallel": "an OpenMP loop, whose iterations the threads of a process share",
    "critical": "a critical section inside a parallel loop",
    "shared_writes": "writes to cache lines shared by threads (false sharing)",
    "task": "explicit OpenMP tasks",
    "halo": "an exchange of boundary layers with the neighbours in the grid",
    "shift": "a message to the process some steps along a grid dimension",
    "p2p": "a message to a rank that a formula gives",
    "collective": "a collective operation",
    "pipeline": "a wavefront through grid dimensions, block by block",
}
"""What each table describes."""


def key_of(table: str, name: str) -> Key:
    """Return the entry of a key."""
    return next(key for key in KEYS[table] if key.name == name)


def key_at(path: Path) -> Key | None:
    """Return the entry of the formula at a place; None for a name that ``let`` defines.

    Parameters
    ----------
    path : path
        Such as ``("program", 0, "body", 2, "parallel", "bytes", "MEM")``, a level of ``bytes``.
    """
    if path[0] == "let":
        return None
    *_, outer, table, name = ("", *(part for part in path if isinstance(part, str)))
    return key_of(table, name) if table in KEYS else key_of(outer, table)


def label_of(path: Path) -> str:
    """Name a place as it is written, such as ``parallel.bytes.MEM`` or ``limits.require``."""
    numbers = [index for index, part in enumerate(path) if isinstance(part, int)]
    inside = path[numbers[-1] + 1 :] if path[0] == "program" else path
    return ".".join(part for part in inside if isinstance(part, str))
