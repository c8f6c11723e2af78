"""A signature: parameters, limits, grid, and the program as a tree of items."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import field, replace
from functools import cached_property

from popmodel import shell
from popmodel.errors import UsageError, did_you_mean
from popmodel.expressions import Expression
from popmodel.machine.quantity import Quantity
from popmodel.model.calibration import Calibration
from popmodel.model.changes import SPREADS
from popmodel.model.kinds.item import Item
from popmodel.model.signature.learnt_runs import LearntRuns
from popmodel.units import plural
from popmodel.values import cut, dataclass

MAX_DIMENSIONS = 3
EXTENTS = frozenset(f"{letter}{dim}" for letter in "Pn" for dim in range(MAX_DIMENSIONS))
"""Names that a decomposition defines: processes and local cells along each dimension."""

SET = "set for this prediction"
"""Source of what was set instead of what the file says."""


@dataclass(frozen=True)
class SignatureGrid:
    """A Cartesian decomposition."""

    # Processes along each dimension; None asks for the grid with the least surface.
    dims: tuple[Expression, ...] | None
    cells: tuple[Expression, ...] | None  # Global extent along each dimension
    periodic: tuple[bool, ...]  # Whether neighbours wrap around, by dimension


@dataclass(frozen=True)
class SignatureLimits:
    """What must hold for the application to run."""

    require: tuple[Expression, ...] = ()  # Conditions
    memory_per_rank: Expression | None = None  # Bytes of memory of a process


@dataclass(frozen=True)
class Unknown:
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
        """Whether processes exchange messages in the program."""
        return any(item.communicates for item in items(self.program))

    @property
    def inputs(self) -> dict[str, Quantity]:
        """Every name that has a number of its own: parameters and constants."""
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
                table, least, holds = constants, "of at least 0", value >= 0
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
