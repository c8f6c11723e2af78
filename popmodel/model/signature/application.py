"""A signature: parameters, limits, grid, and the program as a tree of items."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import cached_property
from typing import Any, TypeAlias

from popmodel.base import shell
from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.expressions import Expression
from popmodel.base.expressions.elementary import Value, numbers
from popmodel.base.units import plural
from popmodel.base.values import NamedTuple, cut, dataclass
from popmodel.machines.quantity import Quantity
from popmodel.model.kinds import key_of
from popmodel.model.kinds.item import Item
from popmodel.model.run.context import checked_value, formula_value
from popmodel.model.run.feasible_splits import best_grid
from popmodel.model.run.process_placement import ImpossibleSplit
from popmodel.model.signature.reading import OPEN
from popmodel.model.symbols import SPREADS
from popmodel.model.uncertainty import Calibration

MAX_DIMENSIONS = 3
EXTENTS = frozenset(f"{letter}{dim}" for letter in "Pn" for dim in range(MAX_DIMENSIONS))
"""Names that a decomposition defines: processes and local cells along each dimension."""

SET = "set for this prediction"
"""Source of what was set instead of what the file says."""


class SignatureGrid(NamedTuple):
    """A Cartesian decomposition."""

    # Processes along each dimension; None asks for the grid with the least surface.
    dims: tuple[Expression, ...] | None
    cells: tuple[Expression, ...] | None  # Global extent along each dimension
    periodic: tuple[bool, ...]  # Whether neighbours wrap around, by dimension


class SignatureLimits(NamedTuple):
    """What must hold for the application to run."""

    require: tuple[Expression, ...] = ()  # Conditions
    memory_per_rank: Expression | None = None  # Bytes of memory of a process


class Unknown(NamedTuple):
    """What a signature writes as ``"?"``: known to be unknown."""

    label: str  # What it is, such as ``constants.c3`` or ``serial.trip``
    line: int | None  # Where it stands

    @property
    def is_name(self) -> bool:
        """Whether it is a parameter or a constant, which a prediction can set."""
        return self.label.startswith(("params.", "constants."))

    def __str__(self) -> str:
        return self.label if self.line is None else f"{self.label} (line {self.line})"


@dataclass(frozen=True)
class LearntRun:
    """A run that a signature was learnt from."""

    processes: int
    threads: int
    ideal: float  # Replay of its trace on the ideal network, s
    written: float  # Replay of the signature with as many processes and threads, s
    parameters: Mapping[str, float] = field(default_factory=dict)
    runtime: float | None = None  # As measured, s; None where the trace has no times
    waited: float = 0.0  # Share of the time ready to run that threads waited for a CPU
    # Replay of the signature that is learnt without runs of this configuration, over `ideal`; None
    # with fewer than three configurations, or where what is learnt from the others cannot run.
    left_out: float | None = None

    @property
    def configuration(self) -> tuple[Any, ...]:
        """P, T and parameters: what makes runs repeats of each other."""
        return self.processes, self.threads, *sorted(self.parameters.items())

    @property
    def cores(self) -> int:
        return self.processes * self.threads

    @property
    def name(self) -> str:
        """The run in words: ``8 x 2, N = 100``."""
        values = "".join(f", {name} = {value:g}" for name, value in self.parameters.items())
        return f"{self.processes} x {self.threads}{values}"

    def entries(self) -> dict[str, Any]:
        found: dict[str, Any] = {"P": self.processes, "T": self.threads}
        found |= {"parameters": dict(self.parameters)} if self.parameters else {}
        for name in ("runtime", "waited", "ideal", "written", "left_out"):
            if value := getattr(self, name):
                found[name] = float(f"{value:.6g}")
        return found


@dataclass(frozen=True)
class LearntRuns:
    """All runs that a signature was learnt from."""

    openmp: bool  # Whether some run had parallel regions or several threads in a process
    runs: tuple[LearntRun, ...]

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of every parameter."""
        values = {
            name: [run.parameters[name] for run in self.runs] for name in self.runs[0].parameters
        }
        return {name: (min(seen), max(seen)) for name, seen in values.items()}

    def entries(self) -> dict[str, Any]:
        return {"openmp": self.openmp, "runs": [run.entries() for run in self.runs]}


@dataclass(frozen=True)
class Signature:
    """A checked signature."""

    name: str  # Name of the application
    path: str  # File it was read from
    is_bundled: bool  # Whether it came with popmodel
    params: Mapping[str, Quantity]  # Problem parameters with their defaults
    constants: Mapping[str, Quantity]  # What was measured or fitted of the program
    # Names derived from params, P, T and the grid, each after those that it needs.
    let: tuple[tuple[str, Expression], ...]
    limits: SignatureLimits  # What must hold
    grid: SignatureGrid | None  # How processes are arranged
    # ``persistent_cv``, ``transient_cv``, ``reference_processes``, ``growth_exponent``, those that
    # were given.
    imbalance: Mapping[str, Quantity]
    program: tuple[Item, ...]  # The region tree
    # Units that were stated for parameters and constants: ``B``, ``s``, ``1`` or what is counted.
    units: Mapping[str, str] = field(default_factory=dict)
    first_touch: str = "threads"  # Who touched the data of loops first that do not say it
    unknown: tuple[Unknown, ...] = ()  # What is written as ``"?"`` and was not set
    # MPI calls of the program that it does not contain, with their share of the time; empty
    # without.
    not_modelled: str = ""
    # What measured runs have taught of it; None if it was not calibrated.
    calibration: Calibration | None = None
    command: tuple[str, ...] = ()  # The program and its arguments, with placeholders
    learnt: LearntRuns | None = None  # The runs that it was learnt from; None if no runs were
    basis: str = "none"  # ``source`` if its work was counted there, and no time was measured

    def started(self, processes: int, threads: int, settings: Mapping[str, float]) -> str:
        """The program with its arguments, as a shell takes it."""
        defaults = {name: one.value for name, one in self.params.items()}
        values = {**defaults, **settings, "P": processes, "T": threads}
        return shell.join(shell.filled(self.command or (f"./{self.name}",), values))

    @cached_property
    def of_grid(self) -> frozenset[str]:
        """The names of ``let`` that need the grid, and are computed after it."""
        found: set[str] = set()
        for name, expression in self.let:
            if expression.names & (EXTENTS | found):
                found.add(name)
        return frozenset(found)

    @property
    def communicates(self) -> bool:
        return any(item.communicates for item in items(self.program))

    @property
    def inputs(self) -> dict[str, Quantity]:
        return {**self.params, **self.constants}

    @property
    def paths(self) -> dict[str, str]:
        """Path of each of these among the quantities of a prediction, such as ``params.N``."""
        return {
            **{name: f"params.{name}" for name in self.params},
            **{name: f"constants.{name}" for name in self.constants},
        }

    def with_settings(self, settings: Mapping[str, float]) -> Signature:
        """Return the signature with values that were set instead of its parameters and
        constants.
        """
        params, constants = dict(self.params), dict(self.constants)
        for name, value in settings.items():
            if name in params:
                table, least, holds = params, "above 0", value > 0
            elif name in constants:
                is_open = self.paths[name] in {one.label for one in self.unknown}
                table, least = constants, "of at least 0"
                holds = value >= 0 or is_open  # such as the rank of no neighbour
            else:
                known = f"its parameters: {', '.join(params) or 'none'}"
                if constants:
                    known += f"; its constants: {', '.join(constants)}"
                raise UsageError(
                    f"{self.name} has no parameter {name!r}",
                    did_you_mean(name, self.inputs, known),
                )
            if not (math.isfinite(value) and holds):
                noun = "parameter" if table is params else "constant"
                raise UsageError(f"{noun} {name} must be a number {least}, not {value:g}")
            table[name] = Quantity(float(value), origin="user", source=SET)
        return self._now_known(
            replace(self, params=params, constants=constants),
            {self.paths[name] for name in settings},
        )

    def _now_known(self, changed: Signature, labels: Set[str]) -> Signature:
        """Return a changed signature in which some names have a value now."""
        left = tuple(one for one in self.unknown if one.label not in labels)
        return replace(changed, unknown=left)

    def require_known(self) -> None:
        """Refuse to go on with what is unknown."""
        if self.unknown:
            names = [one.label.partition(".")[2] for one in self.unknown if one.is_name]
            hint = "write values instead of the question marks"
            raise UsageError(
                f"{self.name} has unknown values: {', '.join(map(str, self.unknown))}",
                f"{hint}, or set some: --set {names[0]}=VALUE" if names else hint,
            )

    def with_imbalance(self, spreads: Mapping[str, float]) -> Signature:
        """Return the signature with spreads that were set instead of those of ``[imbalance]``."""
        imbalance = dict(self.imbalance)
        for name, value in spreads.items():
            if name not in SPREADS:
                known = f"known: {', '.join(SPREADS)}"
                raise UsageError(
                    f"imbalance has no part {name!r}", did_you_mean(name, SPREADS, known)
                )
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"imbalance {name} must be a number, at least 0, not {value:g}")
            imbalance[SPREADS[name]] = Quantity(float(value), origin="user", source=SET)
        labels = {f"imbalance.{SPREADS[name]}" for name in spreads}
        return self._now_known(replace(self, imbalance=imbalance), labels)

    @property
    def set_imbalance(self) -> dict[str, float]:
        """The spreads that were set instead of those of the file."""
        return {name: one.value for name, one in self.imbalance.items() if one.source == SET}

    def __repr__(self) -> str:
        params = " ".join(f"{name}={value.value:g}" for name, value in self.params.items())
        where = "bundled" if self.is_bundled else self.path
        size = plural(len(items(self.program)), "item")
        return cut(f"<Signature {self.name} ({where}): {size}, {params or 'no parameters'}>")


def items(program: tuple[Item, ...]) -> list[Item]:
    """Return every item of a program, loops and what is in them included."""
    return [one for item in program for one in (item, *items(item.inside))]


def mapped(program: tuple[Item, ...], change: Callable[[Item], Item]) -> tuple[Item, ...]:
    """Return a program with other items in place of those without a body."""
    return tuple(
        item.around(mapped(item.inside, change)) if item.inside else change(item)
        for item in program
    )


# The names that formulas of a signature may use, with their values for some P and T.
#
# `derived` is the one place where ``let`` and the names of the grid are computed: for a run, for
# arrays of P and T, or as far as the parameters alone tell.


Evaluate: TypeAlias = "Callable[[Expression, Mapping[str, Value], str], Value | None]"
"""A formula, the names known so far, and whose formula it is -> its value; None if it has none."""
Extents = Callable[[SignatureGrid, Sequence[Value], Mapping[str, Value]], Sequence[Value]]
"""A grid, its cells along each dimension, and the names -> processes along each dimension."""


def derived(
    signature: Signature, given: Mapping[str, Value], evaluate: Evaluate, extents: Extents | None
) -> dict[str, Value]:
    """Compute ``let``, and the names of the grid."""
    values = dict(given)

    def define(*, with_grid: bool) -> None:
        for name, expression in signature.let:
            if (name in signature.of_grid) == with_grid:
                value = evaluate(expression, values, f"{name!r} of let")
                if value is not None:
                    values[name] = value

    define(with_grid=False)
    grid = signature.grid
    if grid is None or extents is None:
        return values
    every = [evaluate(one, values, "an extent of global") for one in grid.cells or ()]
    cells = [cell for cell in every if cell is not None]
    extent = extents(grid, cells, values)
    values |= {f"P{dim}": size for dim, size in enumerate(extent)}
    values |= {f"n{dim}": cell / extent[dim] for dim, cell in enumerate(cells)}
    define(with_grid=True)
    return values


def names(
    signature: Signature, processes: int, threads: int, params: Mapping[str, Value]
) -> tuple[dict[str, Value], tuple[int, ...]]:
    """Compute let and the decomposition for a run."""
    found: tuple[int, ...] = ()

    def extents(
        grid: SignatureGrid, cells: Sequence[Value], values: Mapping[str, Value]
    ) -> Sequence[float]:
        nonlocal found
        domain = key_of("decomp", "global").domain
        for cell, expression in zip(cells, grid.cells or (), strict=True):
            what = f"{signature.name}: an extent of global"
            checked_value(cell, domain, expression, values, what)
        typical = tuple(float(numbers(cell)[0]) for cell in cells)
        if grid.dims is None:
            found = best_grid(processes, typical, grid.periodic)
        else:
            found = tuple(_whole(signature, one, values) for one in grid.dims)
            _check_grid(signature, found, typical, processes)
        return [float(size) for size in found]

    given = {"P": float(processes), "T": float(threads), **params}
    return derived(signature, given, _evaluate_for(signature), extents), found


def _evaluate_for(signature: Signature) -> Evaluate:
    def evaluate(expression: Expression, values: Mapping[str, Value], what: str) -> Value:
        return formula_value(expression, values, f"{signature.name}: {what}")

    return evaluate


def _check_grid(
    signature: Signature, extent: tuple[int, ...], cells: Sequence[float], processes: int
) -> None:
    shown = " x ".join(str(size) for size in extent)
    if math.prod(extent) != processes:
        raise ImpossibleSplit(
            f"{signature.name}: its grid is {shown} = {math.prod(extent)} processes, "
            f"not {processes}",
            processes=math.prod(extent),
        )
    if any(size > count for size, count in zip(extent, cells, strict=False)):
        raise ImpossibleSplit(
            f"{signature.name}: its grid of {shown} processes has more processes than cells: "
            f"{' x '.join(f'{count:g}' for count in cells)}"
        )


def _whole(signature: Signature, expression: Expression, values: Mapping[str, Value]) -> int:
    found = formula_value(expression, values, f"{signature.name}: an extent of grid")
    value = float(numbers(found)[0])
    if value != round(value) or value < 1:
        raise ImpossibleSplit(
            f"{signature.name}: a grid extent is {expression.text!r} = {value:g}, "
            "which is not a number of processes"
        )
    return int(value)


def check_requirements(
    signature: Signature, processes: int, threads: int, params: Mapping[str, float]
) -> None:
    """Refuse a number of processes that the application cannot run with."""

    def require(condition: Expression, values: Mapping[str, Value]) -> None:
        if not formula_value(condition, values, f"{signature.name}: a condition of require"):
            split = plural(processes, "process", "processes")
            if "T" in condition.names:
                split += f" of {plural(threads, 'thread')}"
            raise ImpossibleSplit(
                f"{signature.name} cannot run with {split}: it requires {condition.text}"
            )

    if threads > 1 and signature.learnt is not None and not signature.learnt.openmp:
        raise ImpossibleSplit(
            f"{signature.name} cannot run with {plural(threads, 'thread')}: none of the runs that "
            "it was learnt from has a parallel region"
        )
    given = {"P": float(processes), "T": float(threads), **params}
    values = derived(signature, given, _evaluate_for(signature), extents=None)
    # those on the extents last: without the others there may be no grid
    of_grid = [one for one in signature.limits.require if not one.names <= values.keys()]
    for condition in signature.limits.require:
        if condition not in of_grid:
            require(condition, values)
    if of_grid:
        values, _ = names(signature, processes, threads, params)
        for condition in of_grid:
            require(condition, values)


def unknown(signature: Signature) -> set[str]:
    open_ = {name for name, one in signature.inputs.items() if math.isnan(one.value)}
    return {OPEN, *open_}


def closure(signature: Signature, expressions: Sequence[Expression]) -> set[str]:
    """Return the names that formulas depend on, also by way of ``let`` and of the grid."""
    let = dict(signature.let)
    grid = signature.grid
    sources = [] if grid is None else [*(grid.dims or ()), *(grid.cells or ())]
    of_grid = {"P", *(name for one in sources for name in one.names)}
    used: set[str] = set()
    waiting = [name for expression in expressions for name in expression.names]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += let[name].names if name in let else of_grid if name in EXTENTS else ()
    return used
