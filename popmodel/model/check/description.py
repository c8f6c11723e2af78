"""A signature as plain data, with formulas, values and units, from which a report makes words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from popmodel.expressions import Expression
from popmodel.model.check.constraints import Possible, closure
from popmodel.model.check.dimensions import Dimensions
from popmodel.model.signature.keys import key_of
from popmodel.model.signature.program import (
    Costs,
    Critical,
    Grid,
    Halo,
    Item,
    SharedWrites,
    Signature,
)

SHOWN = 8
"""Smallest possible numbers of processes that are listed."""


def described(
    signature: Signature, dimensions: Dimensions, runs: Possible, description: str | None
) -> dict[str, Any]:
    """Return what a signature says as JSON types.

    A formula is ``{formula, value, unit}``. The value is null where it depends on processes,
    threads or the machine; the unit of a name is null where the signature would be sound with any.

    Parameters
    ----------
    signature : Signature
        Without mistakes.
    dimensions : Dimensions
        Its units.
    runs : Possible
        What its conditions allow.
    description : str or None
        What it says about itself.
    """
    writer = _Writer(signature)
    limits, grid = signature.limits, signature.grid
    return {
        "description": description,
        "params": [
            {"name": name, **quantity.to_dict(), "unit": _name_unit(signature, dimensions, name)}
            for name, quantity in signature.params.items()
        ],
        "let": [
            {"name": name, **writer.formula(one, _name_unit(signature, dimensions, name))}
            for name, one in signature.let
        ],
        "decomposition": None if grid is None else writer.grid(grid),
        "limits": {
            "require": [one.text for one in limits.require],
            "memory_per_rank": (
                None
                if limits.memory_per_rank is None
                else writer.formula(limits.memory_per_rank, "B")
            ),
            "possible": runs.smallest(SHOWN),
            "excludes": not bool(runs.allowed.all()),
        },
        "imbalance": {name: one.to_dict() for name, one in signature.imbalance.items()},
        "program": [writer.item(item) for item in signature.program],
        "depends": {name: writer.depending(name) for name in "PT"},
    }


def _name_unit(signature: Signature, dimensions: Dimensions, name: str) -> str | None:
    """Return the unit that is stated for a name, or else that was inferred."""
    if name in signature.units:
        return signature.units[name]
    return str(dimensions.decisions[name].unit) if name in dimensions.decisions else None


class _Writer:
    """Knows the values of a signature's names that depend on parameters only."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.values: dict[str, Any] = {
            name: quantity.value for name, quantity in signature.params.items()
        }
        for name, expression in signature.let:
            value = self._value(expression)
            if value is not None:
                self.values[name] = value

    def formula(self, expression: Expression, unit: str | None) -> dict[str, Any]:
        return {"formula": expression.text, "value": self._value(expression), "unit": unit}

    def grid(self, grid: Grid) -> dict[str, Any]:
        return {
            "global": None
            if grid.cells is None
            else [self.formula(one, "1") for one in grid.cells],
            "grid": "auto" if grid.dims is None else [self.formula(one, "1") for one in grid.dims],
            "periodic": list(grid.periodic),
        }

    def item(self, item: Item) -> dict[str, Any]:
        """Return an item with all that its kind knows, and for a loop its body."""
        return {"kind": item.kind, **self._fields(item.kind, item)}

    def depending(self, name: str) -> list[str]:
        """Name the items, each once, in which a formula depends on a name."""
        found: dict[str, None] = {}
        pending = list(self.signature.program)
        while pending:
            item = pending.pop(0)
            expressions = list(_expressions(item))
            used = closure(self.signature, expressions)
            if name in used or (name == "P" and isinstance(item, Halo)):  # layers of local cells
                found[item.name] = None
            pending = [*getattr(item, "body", ()), *pending]
        return list(found)

    def _fields(self, table: str, part: Item | Costs | Critical | SharedWrites) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, Costs):  # their keys are those of the loop
                entries |= self._fields(table, value)
            else:
                entries[field.name] = self._entry(table, field.name, value)
        return entries

    def _entry(self, table: str, name: str, value: Any) -> Any:
        match value:
            case Expression():
                return self.formula(value, key_of(table, name).unit)
            case Critical() | SharedWrites():
                return self._fields(name, value)
            case Mapping():
                unit = key_of(table, name).unit
                return {key: self.formula(one, unit) for key, one in value.items()}
            case tuple() if name == "body":
                return [self.item(one) for one in value]
            case tuple():
                return list(value)
            case str() | int() | None:
                return value
        raise AssertionError(f"{type(value).__name__} has no form in JSON")

    def _value(self, expression: Expression) -> float | None:
        if expression.names <= self.values.keys() and "if_fits" not in expression.calls:
            return float(expression.evaluate(self.values))
        return None


def _expressions(part: Any) -> list[Expression]:
    """Return the formulas of an item without those of its body."""
    found: list[Expression] = []
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, Expression):
            found.append(value)
        elif isinstance(value, Mapping):
            found += value.values()
        elif isinstance(value, Costs | Critical | SharedWrites):
            found += _expressions(value)
    return found
