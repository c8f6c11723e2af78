"""What a machine profile may contain: keys with shapes and units, and what shapes cannot say.

Quantities stand where the register of parameters says, with its units; what else there is, is here.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from popmodel.base.documents import (
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
from popmodel.base.errors import FileError
from popmodel.base.values import cut, dataclass
from popmodel.machines.quantity import Quantity, read_quantity
from popmodel.machines.register import BY_CORES, REGISTER, TIERS, is_free


@dataclass(frozen=True)
class Number:
    """A quantity with an interval, in `unit`; whether it may be 0, its least and largest value."""

    unit: str
    zero: bool = False
    least: float | None = None
    most: float | None = None

    def read(self, value: Any) -> Quantity:
        """Return the quantity; see `Shape`."""
        return read_quantity(value, self.unit, zero=self.zero, least=self.least, most=self.most)


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
    "correct it, or measure again: popmodel machine measure",
)


# What the shapes cannot say.


# by what part, and what factor, the time may fall and rise from a size class to the next
CLASS_STEP = 0.25
CLASS_JUMP = 3.0

_PAIR = re.compile(r"(\d{1,4})-(\d{1,4})", re.ASCII)
_NUMBER = re.compile(r"[1-9]\d{0,8}", re.ASCII)


class ProfileError(FileError):
    """A machine profile is damaged or incomplete; without a hint it is told how to get another."""

    remedy = "correct it, or measure again: popmodel machine measure"

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: str,
        *,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(path, problem, line=line, hint=hint or self.remedy)


class UnreadableProfile(ProfileError):
    """There is no machine profile, or none that may be read."""

    remedy = "give a profile that popmodel machine measure wrote, or the name of a preset"


def check_document(document: Mapping[str, Any], path: str) -> dict[str, Quantity]:
    """Check a profile given as JSON types."""
    read = KIND.read(document, path, ProfileError)
    quantities = dict(_quantities(read))
    for table in BY_CORES:
        _check_counts(document, table, path)
    _check_pairs(document, path)
    _check_constructs(document, path)
    for tier in TIERS:
        if "classes" in document.get("net", {}).get(tier, {}):
            _check_tier(document["net"][tier], quantities, f"net.{tier}", path)
    one, all_ = (quantities.get(f"memory.{key}") for key in ("b1", "bsat"))
    if one is not None and all_ is not None and all_.value < one.value:
        raise ProfileError(path, "memory.bsat must not be below memory.b1")
    return quantities


def _quantities(entry: object, key: str = "") -> Iterator[tuple[str, Quantity]]:
    """The quantities in what was read of a profile, by their paths."""
    if isinstance(entry, Quantity):
        yield key, entry
    elif isinstance(entry, dict):
        for name, item in entry.items():
            yield from _quantities(item, f"{key}.{name}" if key else name)
    elif isinstance(entry, list):
        for index, item in enumerate(entry):
            yield from _quantities(item, f"{key}[{index}]")


def _check_counts(document: Mapping[str, Any], name: str, path: str) -> None:
    section, _, key = name.partition(".")
    table = document.get(section, {}).get(key)
    if table is None:
        return
    for entry in table:
        if not _NUMBER.fullmatch(entry):
            raise ProfileError(
                path,
                f"{name}.{cut(entry, 40)}: the key must be a number of active cores, such as 1",
            )
    if not table:
        raise ProfileError(path, f"{name} must not be empty")


def _check_pairs(document: Mapping[str, Any], path: str) -> None:
    """Pairs of memory domains must be two that the node has."""
    topology = document["topology"]
    domains = topology.get("domains", topology.get("sockets", 1))
    for name in document.get("memory", {}).get("remote", {}):
        pair = _PAIR.fullmatch(name)
        if pair is None or pair[1] == pair[2] or max(map(int, pair.groups())) >= domains:
            raise ProfileError(
                path,
                f"memory.remote.{cut(name, 40)}: the key must be two memory domains of a node, "
                f"such as 0-1 (topology.domains is {domains})",
            )


def _check_constructs(document: Mapping[str, Any], path: str) -> None:
    for name, entry in document.get("openmp", {}).items():
        threads, seconds = entry["T"], entry["seconds"]
        if len(threads) != len(seconds):
            raise ProfileError(
                path,
                f"openmp.{cut(name, 40)} has {len(threads)} entries in T but {len(seconds)} in "
                "seconds",
            )
        if any(b <= a for a, b in itertools.pairwise(threads)):
            raise ProfileError(path, f"openmp.{cut(name, 40)}.T must increase")


def _check_tier(
    tier: Mapping[str, Any], quantities: Mapping[str, Quantity], key: str, path: str
) -> None:
    """Size classes must rise, end without a bound, and meet at their bounds.

    Where messages cease to be eager, the protocol changes and the time may jump up.
    """
    classes: list[dict[str, Any]] = tier["classes"]
    switch = quantities.get(f"{key}.eager_threshold")
    bounds: list[Any] = [entry.get("upto") for entry in classes]
    if bounds[-1] is not None:
        raise ProfileError(path, f"{key}.classes: the last class must not have upto")
    if any(bound is None for bound in bounds[:-1]):
        raise ProfileError(path, f"{key}.classes: every class but the last must have upto")
    for index, bound in enumerate(bounds[:-1]):
        if index and bound <= bounds[index - 1]:
            raise ProfileError(
                path, f"{key}.classes[{index}].upto must be above that of the class before"
            )
        here, above = (
            quantities[f"{key}.classes[{i}].alpha"].value
            + quantities[f"{key}.classes[{i}].beta"].value * bound
            for i in (index, index + 1)
        )
        if not may_follow(here, above, at_switch=switch is not None and bound == switch.value):
            raise ProfileError(
                path,
                f"{key}.classes[{index}] and [{index + 1}] do not match at {bound} B: "
                f"{here:.3g} s and {above:.3g} s",
                hint="from one class to the next the time may fall by a quarter or rise threefold, "
                "at the eager threshold by any factor",
            )


def may_follow(here: float, above: float, *, at_switch: bool) -> bool:
    """Tell whether a size class may begin with a time, given that with which the one below ends.

    The time of a message does not fall with its size: what falls by more than the error of two
    fits is a mistake. It rises in a step where the protocol changes and, by less, where messages
    outgrow a cache or a buffer.
    """
    if above < here:
        return above >= (1 - CLASS_STEP) * here
    return at_switch or above <= CLASS_JUMP * here
