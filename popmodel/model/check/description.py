"""A signature as plain data, with formulas, values and units, from which a report makes words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from popmodel.expressions import Expression
from popmodel.machine.quantity import Quantity
from popmodel.model.check.constraints import Possible
from popmodel.model.check.dimensions import Dimensions
from popmodel.model.grammar.keys import GrammarKey
from popmodel.model.kinds.item import CELLS, Item, ItemTable, ListedItem
from popmodel.model.kinds.spread import Recorded
from popmodel.model.signature.names import closure, derived, unknown
from popmodel.model.signature.program import Signature, SignatureGrid, items

SHOWN = 8
"""Smallest possible numbers of processes that are listed."""


def described(
    signature: Signature, dimensions: Dimensions, runs: Possible, description: str | None
) -> dict[str, Any]:
    """Return what a signature says as JSON types.

    A formula is ``{formula, value, unit}``. The value is null where it depends on processes,
    threads or the machine; the unit of a name is null where the signature would be sound with any.
    """
    writer = _DescriptionWriter(signature)
    limits, grid = signature.limits, signature.grid
    memory = limits.memory_per_rank
    return {
        "description": description,
        "params": [
            _named(name, quantity, _name_unit(signature, dimensions, name))
            for name, quantity in signature.params.items()
        ],
        "constants": [
            _named(name, quantity, _name_unit(signature, dimensions, name))
            for name, quantity in signature.constants.items()
        ],
        "let": [
            {"name": name, **writer.formula(one, _name_unit(signature, dimensions, name))}
            for name, one in signature.let
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


def _name_unit(signature: Signature, dimensions: Dimensions, name: str) -> str | None:
    """Return the unit that is stated for a name, or else that was inferred."""
    if name in signature.units:
        return signature.units[name]
    return str(dimensions.decisions[name].unit) if name in dimensions.decisions else None


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
        """Return an item with all that its kind knows, and for a loop its body."""
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
        """Return an entry of a list."""
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
