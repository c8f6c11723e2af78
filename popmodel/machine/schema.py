"""What a machine profile may contain: every key with its shape and unit, as one table.

Quantities stand where the register of parameters says, with its units; what else there is, is here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from popmodel.documents import (
    DocumentKind,
    Flag,
    Items,
    NamedShape,
    OneOf,
    Optional,
    Plain,
    Real,
    Shape,
    ShapeError,
    TableShape,
    Text,
    WholeShape,
)
from popmodel.machine.parameter import TIERS, is_free
from popmodel.machine.parameters import REGISTER
from popmodel.machine.quantity import Quantity, read_quantity


class Number:
    """A quantity with an interval, in `unit`; whether it may be 0, its least and largest value."""

    def __init__(
        self,
        unit: str,
        zero: bool = False,
        least: float | None = None,
        most: float | None = None,
    ) -> None:
        self.unit = unit
        self.zero = zero
        self.least = least
        self.most = most

    def read(self, value: Any) -> Quantity:
        """Return the quantity; see `Shape`."""
        try:
            return read_quantity(value, self.unit, zero=self.zero, least=self.least, most=self.most)
        except ShapeError:
            raise
        except ValueError as error:
            raise ShapeError(str(error)) from None


class _SchemaWords(NamedShape):
    """A table whose keys are words: what has a dot or a bracket could not be found by its path."""

    def read(self, value: Any) -> dict[str, Any]:
        """Return the table; see `Shape`."""
        found = super().read(value)
        for name in found:
            if not re.fullmatch(r"[\w -]+", name):
                raise ShapeError("must be named by a word", name)
        return found


_COUNT = WholeShape(1, 10**9)
_PLAIN_QUANTITY = TableShape({"value": Real()}, ("value",), others=Plain())

_BESIDE: Mapping[str, Shape] = {
    "memory.line": WholeShape(1, 10**6),
    "openmp.CONSTRUCT.T[]": _COUNT,
    "net.TIER.classes[].upto": Optional(Real(above=0)),
    "net.TIER.table[].bytes": Real(least=0),
    "net.TIER.pairs[].pairs": _COUNT,
    "net.TIER.pairs[].bytes": Real(above=0),
    "coll.OP[].P": _COUNT,
    "coll.OP[].ppn": _COUNT,
    "coll.OP[].bytes": Real(least=0),
    "coll.OP[].algorithm": Text(),
    "noise.FACT": OneOf("a number or text", Real(), Text(), _PLAIN_QUANTITY),
}
"""What stands beside the quantities, or has no interval: paths as in the register."""

WORDS: Mapping[str, tuple[str, ...]] = {"core.overlap": ("none", "ecm", "full")}
"""Quantities in whose place a word may stand that says it exactly."""

_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "openmp.CONSTRUCT": ("T", "seconds"),
    "net.TIER.classes[]": ("alpha", "beta"),
    "net.TIER.table[]": ("bytes", "seconds"),
    "net.TIER.pairs[]": ("pairs", "bytes", "bandwidth"),
    "coll.OP[]": ("P", "ppn", "bytes", "seconds"),
}
"""What a table or the entries of a list must have."""


def _sections() -> dict[str, Shape]:
    """Shapes of the sections that hold parameters, from the register and what stands beside."""
    quantities: dict[str, Shape] = {
        one.path: Number(one.unit, one.zero, one.least, one.most)
        for one in REGISTER
        if not one.plain
    }
    for path, choices in WORDS.items():
        either = f"{', '.join(choices)} or a table with value, low, high, origin and source"
        quantities[path] = OneOf(either, Text(choices), quantities[path])
    return _keys("", {**quantities, **_BESIDE})


def _keys(above: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """Shapes of the keys of a table, given those of all that is below it by their paths."""
    inside: dict[str, dict[str, Shape]] = {}
    for path, shape in shapes.items():
        key, _, rest = path.partition(".")
        inside.setdefault(key, {})[rest] = shape
    found: dict[str, Shape] = {}
    for key, entries in inside.items():
        path = f"{above}.{key}".lstrip(".")
        one = entries.get("") or _table(path, entries)
        name = key.removesuffix("[]")
        found |= dict.fromkeys(
            TIERS if name == "TIER" else (name,), Items(one, 1) if key != name else one
        )
    return found


def _table(path: str, entries: Mapping[str, Shape]) -> Shape:
    """Shape of a table: with the keys that are known, or with free names."""
    keys = _keys(path, entries)
    for name, shape in keys.items():
        if is_free(name):
            return (NamedShape if name in ("CORES", "FACT") else _SchemaWords)(shape)
    return TableShape(keys, _REQUIRED.get(path, ()))


_QUALITY = TableShape(
    {
        "launches": WholeShape(0),
        "jobs": WholeShape(0),
        "converged": Real(least=0),
        "noisy": Flag(),
        "why": OneOf("text or a list of texts", Text(), Items(Text())),
    },
    others=Plain(),
)

_MEASUREMENT = TableShape(
    {
        "samples": Text(),
        "started": Text(),
        "parts": Items(Text()),
        "failures": Items(Text()),
        "shortfalls": Items(Text()),
    },
    others=Plain(),
)

_PROVENANCE = TableShape({"measurements": Items(_MEASUREMENT)}, others=Plain())

PROFILE = TableShape(
    {
        "schema": Text(("popmodel/machine/1",)),
        "name": Text(),
        "description": Text(),
        "host": TableShape({"load": Real(least=0), "measured": Text()}, others=Plain()),
        "topology": TableShape(
            {
                "nodes": _COUNT,
                "cores_per_node": _COUNT,
                "sockets": _COUNT,
                "domains": _COUNT,
                "caches": Items(
                    TableShape(
                        {"level": Text(), "bytes": WholeShape(1), "shared_by": _COUNT},
                        required=("level", "bytes", "shared_by"),
                    )
                ),
                "memory_per_node": WholeShape(1),
            },
            required=("cores_per_node",),
        ),
        **_sections(),
        "quality": NamedShape(OneOf("a table or text", Text(), _QUALITY)),
        "absent": NamedShape(Text()),
        "provenance": OneOf("a table or text", Text(), _PROVENANCE),
    },
    required=("schema", "topology"),
)

KIND = DocumentKind(
    "popmodel/machine/1",
    "machine profile",
    PROFILE,
    "correct it, or measure again: popmodel bench",
)
