"""Checks a signature as a whole: what is wrong with it, what is doubtful, and what it says."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import distinct
from popmodel.base.documents import parse_toml
from popmodel.base.errors import did_you_mean
from popmodel.base.expressions import Expression
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.quantity import Quantity
from popmodel.machines.register import CONSTRUCTS
from popmodel.model.constraints import Condition, ConstraintOutcome, Possible, outcomes, possible
from popmodel.model.kinds import key_at, label_of
from popmodel.model.kinds.item import CELLS, Item, ItemTable, ListedItem
from popmodel.model.kinds.spread import Recorded
from popmodel.model.run.process_placement import MOST_PROCESSES
from popmodel.model.signature.application import (
    EXTENTS,
    Signature,
    SignatureGrid,
    closure,
    derived,
    items,
    unknown,
)
from popmodel.model.signature.formula_units import FormulaUnit, units_of
from popmodel.model.signature.keys import GrammarKey
from popmodel.model.signature.reading import OPEN, Path, SignatureError, key_lines, line_of
from popmodel.model.signatures import SignatureReader, read
from popmodel.simulator.program import unmodelled_calls


@dataclass(frozen=True)
class CheckedSignature:
    """What is to be said about a signature."""

    path: str  # The file
    application: str | None  # Its name; None if it cannot be read
    mistakes: tuple[
        SignatureFinding, ...
    ]  # What keeps it from being used, or makes it wrong, by line
    remarks: tuple[SignatureFinding, ...] = ()  # What is doubtful, by line
    # What the signature says, as plain data; None if there are mistakes.
    explained: dict[str, Any] | None = None
    caveats: tuple[str, ...] = ()  # What of the program it does not contain

    def to_dict(self) -> dict[str, Any]:
        return {"schema": "popmodel/signature-check/1", **asdict(self)}


def check(
    source: str | os.PathLike[str], settings: Mapping[str, float] | None = None
) -> CheckedSignature:
    path, is_bundled, text = read(source)
    try:
        document = parse_toml(text, path, SignatureError)
        reader = SignatureReader(path, key_lines(text), mistakes=[])
        signature = reader.signature(document, is_bundled)
    except SignatureError as error:  # beyond reading as a whole
        return CheckedSignature(path, None, (of_error(error),))
    lines, formulas = reader.lines, reader.formulas
    units, clashes = units_of(signature, formulas, lines)
    mistakes = [of_error(error) for error in (*(reader.mistakes or ()), *clashes)]
    if reader.mistakes:  # what the formulas give would follow from what stands for those not read
        return CheckedSignature(path, signature.name or None, in_order(mistakes))
    signature = signature.with_settings(settings or {})
    params = {name: quantity.value for name, quantity in signature.inputs.items()}
    require = {path: one for path, one in formulas.items() if path[:2] == ("limits", "require")}
    runs = possible(signature, require, params)
    written = {path: one for path, one in formulas.items() if path in lines}
    results = outcomes(signature, written, params, runs)
    finder = Finder(signature, lines, formulas, runs, results)
    mistakes += finder.mistakes()
    remarks = in_order(finder.remarks())
    explained = None
    if not mistakes:
        explained = described(signature, units, runs, document["app"].get("description"))
    caveats = tuple(unmodelled_calls(signature.not_modelled))
    found = in_order(mistakes)
    return CheckedSignature(path, signature.name, found, remarks, explained, caveats)


# A signature as plain data, with formulas, values and units, from which a report makes words.


SHOWN = 8
"""Smallest possible numbers of processes that are listed."""


def described(
    signature: Signature,
    units: Mapping[str, FormulaUnit],
    runs: Possible,
    description: str | None,
) -> dict[str, Any]:
    """Return what a signature says as JSON types.

    A formula is ``{formula, value, unit}``. The value is null where it depends on processes,
    threads or the machine; the unit of a name is null where none is stated.
    """
    writer = _DescriptionWriter(signature)
    unit = {name: str(one) for name, one in units.items()} | dict(signature.units)
    limits, grid = signature.limits, signature.grid
    memory = limits.memory_per_rank
    return {
        "description": description,
        "params": [
            _named(name, quantity, unit.get(name)) for name, quantity in signature.params.items()
        ],
        "constants": [
            _named(name, quantity, unit.get(name)) for name, quantity in signature.constants.items()
        ],
        "let": [
            {"name": name, **writer.formula(one, unit.get(name))} for name, one in signature.let
        ],
        "decomposition": None if grid is None else writer.grid(grid),
        "limits": {
            "require": [one.text for one in limits.require],
            "memory_per_rank": None if memory is None else writer.formula(memory, "B"),
            "possible": runs.smallest(SHOWN),
            "excludes": not bool(runs.allowed.all()),
        },
        "imbalance": {name: _known(one) for name, one in signature.imbalance.items()},
        "first_touch": signature.first_touch,
        "program": [writer.item(item) for item in signature.program],
        "depends": {name: writer.depending(name) for name in "PT"},
    }


def _known(quantity: Quantity) -> dict[str, Any]:
    """Return a quantity as JSON types; the value is null where it is unknown."""
    entry = quantity.to_dict()
    return {**entry, "value": None} if math.isnan(quantity.value) else entry


def _named(name: str, quantity: Quantity, unit: str | None) -> dict[str, Any]:
    return {"name": name, **_known(quantity), "unit": unit}


class _DescriptionWriter:
    """Knows the values of a signature's names that depend on parameters only."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        without = unknown(signature)
        params = {
            name: quantity.value
            for name, quantity in signature.inputs.items()
            if name not in without
        }
        self.values = derived(signature, params, lambda one, values, _: _value(one, values), None)

    def formula(self, expression: Expression, unit: str | None) -> dict[str, Any]:
        return {"formula": expression.text, "value": _value(expression, self.values), "unit": unit}

    def counts(self, formulas: tuple[Expression, ...] | None, without: str | None) -> Any:
        return without if formulas is None else [self.formula(one, "1") for one in formulas]

    def grid(self, grid: SignatureGrid) -> dict[str, Any]:
        return {
            "global": self.counts(grid.cells, None),
            "grid": self.counts(grid.dims, "auto"),
            "periodic": list(grid.periodic),
        }

    def item(self, item: Item) -> dict[str, Any]:
        return {"kind": item.kind, **self._fields(item)}

    def depending(self, name: str) -> list[str]:
        """Name the items, each once, in which a formula depends on a name."""
        found: dict[str, None] = {}
        for item in items(self.signature.program):
            of_cells = name == "P" and item.needs == CELLS  # those of a process
            if of_cells or name in closure(self.signature, item.formulas()):
                found[item.name] = None
        return list(found)

    def _fields(self, table: ItemTable) -> dict[str, Any]:
        return {key.name: self._entry(key, value) for key, value in table.shown()}

    def _one(self, value: Any) -> Any:
        match value:
            case Item():
                return self.item(value)
            case ItemTable():
                return self._fields(value)
        return value

    def _entry(self, key: GrammarKey, value: Any) -> Any:
        match value:
            case Expression():
                return self.formula(value, key.unit)
            case ItemTable():
                return self._fields(value)
            case ListedItem():
                return {"by_rank": list(value.values)}
            case Mapping():
                return {name: self.formula(one, key.unit) for name, one in value.items()}
            case tuple():
                return [self._one(one) for one in value]
            case Recorded():
                return value.name
            case str() | int() | None:
                return value
        raise AssertionError(f"{type(value).__name__} has no form in JSON")


def _value(expression: Expression, values: Mapping[str, Any]) -> float | None:
    if expression.names <= values.keys() and "if_fits" not in expression.calls:
        return float(expression.evaluate(values))
    return None


# What is wrong with a signature or doubtful in it: each mistake and remark with its line.


Lines: TypeAlias = Mapping[Path, int]
Formulas: TypeAlias = Mapping[Path, Expression]

_LEVEL = re.compile(r"MEM|L[1-9]")


@dataclass(frozen=True)
class SignatureFinding:
    """A mistake or a remark."""

    message: str  # One line: what is wrong or doubtful
    # Where in the file, from 1.
    line: int | None = None
    column: int | None = None
    hint: str | None = None  # One line: what to do about it


def of_error(error: SignatureError) -> SignatureFinding:
    return SignatureFinding(error.problem, error.line, error.column, error.hint)


class Finder(NamedTuple):
    """Looks for what is wrong or doubtful in a signature that was read."""

    signature: Signature  # With the values of its parameters
    lines: Lines  # Where its keys stand
    formulas: Formulas  # All its formulas, defaults included
    runs: Possible  # What its conditions allow
    results: list[ConstraintOutcome]  # What the formulas that are written give there

    def mistakes(self) -> Iterator[SignatureFinding]:
        yield from self._unreachable()
        yield from self._out_of_range()

    def remarks(self) -> Iterator[SignatureFinding]:
        yield from self._excluding_nothing()
        yield from self._idle()
        yield from self._without_value()
        yield from self._sometimes_out_of_range()
        yield from self._too_rare()
        yield from self._unused()
        yield from self._unfamiliar()
        yield from self._unknown()

    def _at(self, path: Path, message: str, hint: str) -> SignatureFinding:
        return SignatureFinding(message, line_of(self.lines, path), hint=hint)

    def _text(self, path: Path) -> str:
        """A formula within its table or item."""
        return f"{_key(path)}: {self.formulas[path].text!r}"

    def _unreachable(self) -> Iterator[SignatureFinding]:
        """Conditions that no number of processes meets, alone or together."""
        tried = f"1 to {MOST_PROCESSES} processes"
        if not self.runs.is_complete:
            tried = "a selection of process counts"
        if self.runs.threads.size > 1:
            tried += f" and 1 to {int(self.runs.threads[-1])} threads"
        for condition in self.runs.conditions:
            if not condition.holds.any():
                never = f"{_never(condition)} (tried {tried})"
                yield self._at(condition.path, never, "no run is possible")
        conflict = self.runs.first_conflict()
        if conflict is not None:
            condition, other = conflict
            partner = "the conditions before it"
            if other is not None:
                partner = f"{_spoken(other)} in line {line_of(self.lines, other.path)}"
            yield self._at(
                condition.path,
                f"{_never(condition)} together with {partner}",
                f"no run is possible (tried {tried})",
            )

    def _excluding_nothing(self) -> Iterator[SignatureFinding]:
        """Conditions that every run meets."""
        for condition in self.runs.conditions:
            if condition.path[0] == "limits" and condition.holds.all():
                nothing = f"{_spoken(condition)} excludes nothing"
                yield self._at(condition.path, nothing, "remove or correct it")

    def _out_of_range(self) -> Iterator[SignatureFinding]:
        """Formulas that give nothing sensible for any possible run."""
        useless: set[str] = set()  # names that come from such a formula: their uses need no mention
        for result in self.results:
            fault = _fault(result)
            if (
                fault is None
                or self._is_idle(result)
                or useless & closure(self.signature, [self.formulas[result.path]])
            ):
                continue
            if result.path[0] == "let":
                useless.add(str(result.path[1]))
            elif result.path[0] == "decomp":
                useless |= EXTENTS
            problem, hint = fault
            yield self._at(result.path, f"{self._text(result.path)} {problem}", hint)

    def _is_idle(self, result: ConstraintOutcome) -> bool:
        """Whether a formula is 0 with the parameters that the source of a program presets."""
        finite = result.values[np.isfinite(result.values)]
        is_preset = self.signature.basis == "source" and bool(self.signature.params)
        return is_preset and bool(finite.size) and not finite.any()

    def _idle(self) -> Iterator[SignatureFinding]:
        """What a program does not do with the parameters that its source presets."""
        for result in self.results:
            fault = _fault(result)
            if fault is not None and self._is_idle(result):
                hint = "not executed with these; --set others"
                yield self._at(result.path, f"{self._text(result.path)} {fault[0]}", hint)

    def _without_value(self) -> Iterator[SignatureFinding]:
        """Formulas that have no value for some of the possible runs."""
        for result in self.results:
            missing = ~np.isfinite(result.values)
            if missing.any() and not missing.all():
                yield self._at(
                    result.path,
                    f"{self._text(result.path)} has no finite value for {_where(result, missing)}",
                    "for example a division by zero; limits.require can exclude these runs",
                )

    def _sometimes_out_of_range(self) -> Iterator[SignatureFinding]:
        """Formulas whose value makes no sense for some of the possible runs."""
        for result in self.results:
            key = key_at(result.path)
            if key is None or key.domain is None:
                continue
            finite = np.isfinite(result.values)
            outside = finite & ~np.asarray(key.domain.holds(result.values), dtype=bool)
            if outside.any() and (finite & ~outside).any():
                yield self._at(
                    result.path,
                    f"{self._text(result.path)} is {result.values[outside][0]:g} "
                    f"for {_where(result, outside)}; must be {key.domain.text}",
                    "limits.require can exclude these runs",
                )

    def _too_rare(self) -> Iterator[SignatureFinding]:
        """Items whose turn does not come in any execution of their loop."""
        by_path = {result.path: result.values for result in self.results}
        for path, every in by_path.items():
            if path[-1] != "every":
                continue
            around = path[: max(index for index, part in enumerate(path) if part == "body")]
            # an inline body is inside the table of its loop, another one beside it
            counts = (
                one for one in by_path if one[-1] == "count" and around in (one[:-1], one[:-2])
            )
            loop = next(counts, None)  # none if its count depends on the machine
            if loop is not None and (every > by_path[loop]).all():
                yield self._at(
                    path,
                    f"{self._text(path)} exceeds the {self.formulas[loop].text!r} iterations of "
                    "the loop with these parameters",
                    "the item is never executed",
                )

    def _unused(self) -> Iterator[SignatureFinding]:
        """Parameters, constants and names of let that no formula uses."""
        used = {name for expression in self.formulas.values() for name in expression.names}
        named = [("params", name) for name in self.signature.params]
        named += [("constants", name) for name in self.signature.constants]
        named += [("let", name) for name, _ in self.signature.let]
        for path in named:
            if path[1] not in used:
                yield self._at(
                    path, f"{path[1]} is never used", "remove it, or use it in a formula"
                )

    def _unknown(self) -> Iterator[SignatureFinding]:
        """What is written as unknown: predictions need a value of it."""
        for one in self.signature.unknown:
            hint = "no prediction without a value"
            if one.is_name:
                hint += f": write one, or --set {one.label.partition('.')[2]}=VALUE"
            yield SignatureFinding(f'{one.label} is unknown ("{OPEN}")', one.line, hint=hint)

    def _unfamiliar(self) -> Iterator[SignatureFinding]:
        """Names of constructs and cache levels that machine profiles do not have."""
        for path in self.formulas:
            table, _, name = _key(path).partition(".")
            if table == "constructs" and name not in CONSTRUCTS:
                yield self._at(
                    path,
                    f"constructs: popmodel does not measure the overhead of {name!r}",
                    did_you_mean(name, CONSTRUCTS, f"known: {', '.join(CONSTRUCTS)}"),
                )
            if table == "bytes" and name and not _LEVEL.fullmatch(name):
                yield self._at(
                    path,
                    f"bytes: {name!r} is not a usual memory level",
                    "levels are MEM and L1, L2, ... as in the machine profile",
                )


def _spoken(condition: Condition) -> str:
    of_grid = condition.path[0] == "decomp"
    return f"the grid {condition.text}" if of_grid else f"require: {condition.text!r}"


def _never(condition: Condition) -> str:
    of_grid = condition.path[0] == "decomp"
    return f"{_spoken(condition)} {'never has P processes' if of_grid else 'never holds'}"


def _fault(result: ConstraintOutcome) -> tuple[str, str] | None:
    """Say what is wrong with all values of a formula, and what to do; None if some are right."""
    values = result.values[np.isfinite(result.values)]
    if not values.size:
        return (
            "has no finite value with these parameters",
            "look for a division by zero, the root or logarithm of a negative number, or a power "
            "that is too large",
        )
    key = key_at(result.path)
    domain = None if key is None else key.domain_of(is_constant=True)
    if domain is None or np.any(domain.holds(values)):
        return None
    least, most = values.min(), values.max()
    given = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    return (
        f"is {given} with these parameters, for every P and T; must be {domain.text}",
        "check the parameters in it",
    )


def _where(result: ConstraintOutcome, those: NDArray[np.bool_]) -> str:
    """Name the runs by their threads if these alone decide, else by their processes."""
    threads = distinct(result.threads[those])
    decide = np.array_equal(np.isin(result.threads, threads), those)
    numbers = threads if decide else distinct(result.processes[those])
    some = ", ".join(f"{count:g}" for count in numbers[:3])
    return f"{'T' if decide else 'P'} = {some}{', ...' if numbers.size > 3 else ''}"


def in_order(findings: Iterable[SignatureFinding]) -> tuple[SignatureFinding, ...]:
    """Sort findings by line, each once: the two branches of ``if_fits`` may give the same one."""
    once = dict.fromkeys(findings)
    return tuple(sorted(once, key=lambda finding: (finding.line or 0, finding.column or 0)))


def _key(path: Path) -> str:
    """Name a formula within its table or item."""
    return label_of(path).partition(".")[2]
