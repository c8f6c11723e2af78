"""Where a program is evaluated: its names, its processes on nodes, and the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import distinct
from popmodel.base.errors import UsageError
from popmodel.base.expressions import Expression, ExpressionError
from popmodel.base.expressions.elementary import TracedExpression, Value, choose, numbers
from popmodel.base.units import format_size
from popmodel.base.values import dataclass
from popmodel.model.run.collective_times import RunTeams
from popmodel.model.run.operations import RunMessages
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import Placement
from popmodel.model.signature.keys import (
    CLOCK,
    Domain,
    GrammarKey,
    is_of_machine,
    of_machine,
    path_of,
)
from popmodel.model.signature.reading import LAST_LEVEL
from popmodel.model.terms import compute
from popmodel.model.uncertainty import drawn_only, nominal


@dataclass(frozen=True)
class ModelPoint:
    """One evaluation of a program: what formulas and terms take their values from."""

    application: str  # Name of the application, for messages
    placement: Placement  # Processes, threads, nodes
    parameters: Parameters  # The machine
    values: Mapping[str, Value]  # Every name of the application's formulas
    # Processes along each grid dimension, and whether neighbours wrap around; empty without a grid.
    extent: tuple[int, ...] = ()
    periodic: tuple[bool, ...] = ()
    # How all loops overlap arithmetic and transfers; None is as loops and machine say.
    overlap: str | None = None
    # What the spreads of items, ``persistent_cv`` and ``transient_cv``, are multiplied by at this
    # number of processes; 1 where nothing is said.
    growth: Mapping[str, Value] = field(default_factory=dict)
    first_touch: str = "threads"  # Who touched the data of loops first that do not say it
    # Names that formulas of ranks take instead, where fewer processes are looked at than run.
    ranked: Mapping[str, Value] = field(default_factory=dict)
    # What-if factors on these spreads; 1 where nothing is said.
    changed: Mapping[str, Value] = field(default_factory=dict)
    # Which part of the data of a loop is looked at, 0 to 1: that of working sets of which a cache
    # loses more is lost, that of others stays. None: ``if_fits`` gives the mean.
    within: Value | None = None
    master_alone: bool = False  # Whether only masters work, whose data stay in one cache each
    # Takes the parts of working sets that caches lose, each once, as formulas ask for them.
    asked: dict[object, Value] | None = field(default=None, repr=False, compare=False)
    # Parts of working sets that caches lose, as far as they were asked for.
    lost: dict[object, Value] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        return f"P={self.placement.processes} T={self.placement.threads}"

    @property
    def team(self) -> Value:
        return self.values.get("T", self.placement.threads)

    @cached_property
    def messages(self) -> RunMessages:
        """What messages cost in this placement."""
        return RunMessages(self.parameters, self.placement)

    @cached_property
    def teams(self) -> RunTeams:
        """What collectives cost in this placement."""
        return RunTeams(self.messages, self.extent)

    def cells(self) -> list[Value]:
        return [self.values[f"n{dim}"] for dim in range(len(self.extent))]

    def amount(self, expression: Expression, key: GrammarKey, what: str) -> Value:
        """Evaluate a formula and check its domain."""
        values = self.values
        if machine := self._of_machine(expression):
            values = {**values, **machine}
        if key.of_ranks:
            ranks = np.arange(self.placement.processes, dtype=np.float64)
            values = {**values, **self.ranked, "rank": ranks}
        about = f"{self.application}: {what}"
        functions = {"if_fits": self._if_fits} if expression.calls else None
        value = formula_value(expression, values, about, functions)
        if type(value) is float and (key.domain is None or key.domain.holds(value)):
            return self._whole(value, expression, about) if key.is_whole else value

        def outside(domain: str, share: float) -> None:
            self.parameters.remarks.add(
                f"{what} is {domain}: its formula is not in {100 * share:.2g} % of the draws, "
                "which end there"
            )

        may_leave = self.parameters.are_drawn and "rank" not in expression.names
        told = outside if may_leave else None
        value = checked_value(value, key.domain, expression, values, about, told)
        return self._whole(value, expression, about) if key.is_whole else value

    def best(self, name: str) -> float:
        return nominal(self._machine(path_of(name)) if is_of_machine(name) else self._named(name))

    def _named(self, name: str) -> Value:
        return self.ranked[name] if name in self.ranked else self.values[name]

    def by_rank(self, expression: Expression, key: GrammarKey, what: str) -> NDArray[np.float64]:
        """Evaluate a formula of rank for every process, of the best estimate; shape (P,).

        Parameters and errors as in `amount`.
        """
        values: dict[str, Value] = {
            name: self.best(name) for name in (expression.names | {"P", "T"}) - {"rank"}
        }
        found = np.asarray(self._of_ranks(expression, key, what, values), dtype=np.float64)
        return np.broadcast_to(found, (self.placement.processes,))

    def mean_by_rank(
        self, expression: Expression, key: GrammarKey, what: str, weights: NDArray[np.float64]
    ) -> Value:
        """Return the mean over all processes of weights times a formula of rank."""
        values: dict[str, Value] = {}
        for name in (expression.names | {"P", "T"}) - {"rank"}:
            value = self._machine(path_of(name)) if is_of_machine(name) else self._named(name)
            values[name] = value[:, None] if isinstance(value, np.ndarray) else value
        if any(isinstance(value, TracedExpression) for value in values.values()):
            ranks = np.flatnonzero(weights).tolist()
            each = (expression.evaluate({**values, "rank": float(rank)}) for rank in ranks)
            total: Value = 0.0
            for rank, one in zip(ranks, each, strict=True):
                total = total + one * float(weights[rank])
            return total / len(weights)
        found = np.asarray(self._of_ranks(expression, key, what, values), dtype=np.float64)
        mean: Value = (np.broadcast_to(found, (*found.shape[:-1], weights.size)) * weights).mean(-1)
        return mean

    def _of_ranks(
        self, expression: Expression, key: GrammarKey, what: str, values: Mapping[str, Value]
    ) -> Value:
        about = f"{self.application}: {what}"
        known = {**values, "rank": np.arange(self.placement.processes, dtype=np.float64)}
        value = formula_value(expression, known, about)
        checked_value(value, key.domain, expression, known, about)
        return value

    def listed(self, given: Sequence[float], what: str) -> NDArray[np.float64]:
        """Return values that are given by rank; an error if there are too few or too many."""
        if len(given) != self.placement.processes:
            raise self.refuse(
                what,
                f": a list of {len(given)} values",
                "a list by rank has one value for each process",
            )
        return np.array(given)

    def _of_machine(self, expression: Expression) -> dict[str, Value]:
        """Return the quantities of the machine that a formula names."""
        return {name: self._machine(path_of(name)) for name in of_machine(expression.names)}

    def _machine(self, path: str) -> Value:
        if path == CLOCK:
            return self.parameters.frequency(self.placement.per_node * self.placement.threads)
        return self.parameters.get(path)

    def refuse(self, what: str, problem: str, hint: str) -> UsageError:
        """Return the error about a value that makes no sense at this point."""
        return UsageError(f"{self.application}: {what} at {self}{problem}", hint)

    def _whole(self, value: Value, expression: Expression, about: str) -> int:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        numbers = distinct(np.asarray(value, dtype=np.float64))
        if numbers.size != 1 or numbers[0] != round(float(numbers[0])):
            raise UsageError(
                f"{about} is {expression.text!r}, which must give a whole number at {self}, "
                f"not {numbers[0]:g}"
            )
        return int(numbers[0])

    def _if_fits(
        self, working_set: Value, hit: Value, miss: Value, level: str | None = None
    ) -> Value:
        """Choose by what a process has of the last caches, or a thread of a given one."""
        lost = self._lost(working_set, level)
        if self.asked is not None:
            self.asked.setdefault(_bytes(lost), lost)
        if self.within is not None:
            return choose(self.within < lost, miss, hit)
        return hit + (miss - hit) * lost

    def _lost(self, working_set: Value, level: str | None) -> Value:
        """Part of a working set that a cache loses until it is used again, 0 to 1."""
        if isinstance(working_set, TracedExpression):
            return self._lost_by(working_set, level)
        at, size = self.placement, _bytes(working_set)
        key = level, self.master_alone, at.threads, at.cache_threads, size
        if key not in self.lost:
            self.lost[key] = self._lost_by(working_set, level)
        return self.lost[key]

    def _lost_by(self, working_set: Value, level: str | None) -> Value:
        profile, at = self.parameters.profile, self.placement
        topology = profile.topology
        last = topology.last_level_cache
        if last is None:
            cores = at.threads if level is None else 1
            capacity = self.parameters.get("memory.cache_share") * cores
            return self._lost_of(working_set, capacity, "caches")
        cache = last if level in (None, LAST_LEVEL) else topology.cache_within(level)
        if cache is None:
            return 1.0
        sharing: float = at.cache_threads[topology.caches.index(cache)]
        if level is None:  # a team has as much of each thread's cache as the fullest one gives
            sharing /= at.threads
            sharing = max(1.0, sharing) if self.master_alone else sharing
        usable = self.parameters.usable(cache.level)
        capacity = compute.cache_capacity(usable, cache.bytes, sharing)
        return self._lost_of(working_set, capacity, cache.level)

    def _lost_of(self, working_set: Value, capacity: Value, name: str) -> Value:
        """Part of a working set that is lost, given that of which a cache keeps half."""
        named = self.parameters.named
        self._remark_threshold(working_set, capacity, name)
        capacity = named(f"c_{name}", capacity, "B", f"working set of which {name} keeps half")
        lost = compute.lost_share(working_set, capacity)
        return named(f"lost_{name}", lost, "1", f"part of a working set that {name} loses")

    def _remark_threshold(self, working_set: Value, capacity: Value, level: str) -> None:
        """Say so if the draws do not agree whether a working set stays in the cache."""
        fits = drawn_only(np.ravel(working_set <= capacity))
        if fits.any() and not fits.all():
            size = format_size(numbers(working_set)[0], digits=3)
            self.parameters.remarks.add(
                f"a working set of {size} fits {level} in {100 * fits.mean():.0f} % of the "
                "draws: intervals span both cases"
            )


def _bytes(value: Value) -> object:
    """A key for a value with or without draws."""
    return value.tobytes() if isinstance(value, np.ndarray) else float(value)


# Values of formulas at a point: evaluated, and refused in one line where they make no sense.


_SHOWN = 60  # characters of a formula in a message


def formula_value(
    expression: Expression,
    values: Mapping[str, Value],
    what: str,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Value:
    """Compute a formula."""
    try:
        found: Value = expression.evaluate(values, functions)
    except ExpressionError as error:
        raise UsageError(
            f"{what} is {_text(expression)}, which {error.problem} ({_point(values)})", error.hint
        ) from None
    return found


def checked_value(
    value: Value,
    domain: Domain | None,
    expression: Expression,
    values: Mapping[str, Value],
    what: str,
    outside: Callable[[str, float], None] | None = None,
) -> Value:
    """Refuse a value outside the domain of its formula, or leave draws of it at its ends."""
    if domain is None:
        return value
    holds = np.ravel(domain.holds(value))
    if holds.all():
        return value
    if outside is not None and holds[0]:
        outside(domain.text, float(1 - holds.mean()))
        return domain.nearest(numbers(value))
    bad = numbers(value).flat[np.flatnonzero(~holds)[0]]
    where = ", in a draw of the uncertain inputs"
    if "rank" in expression.names:
        where = ", on some ranks"
    raise UsageError(
        f"{what} is {_text(expression)} = {bad:g} at {_point(values)}{where * bool(holds[0])}; "
        f"must be {domain.text}",
        _advice(expression, values),
    )


def _advice(expression: Expression, values: Mapping[str, Value]) -> str:
    names = sorted(expression.names - {"P", "T"})
    known = ", ".join(f"{name} = {numbers(values[name]).flat[0]:.6g}" for name in names)
    return f"{known}: " * bool(known) + (
        "choose another split or other parameters, or correct the formula"
    )


def _text(expression: Expression) -> str:
    text = expression.text
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def _point(values: Mapping[str, Value]) -> str:
    return f"P={values['P']:g} T={values['T']:g}"
