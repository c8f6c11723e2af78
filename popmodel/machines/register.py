"""The register of machine parameters: rows of their page, from which all tables of them follow.

What a profile may contain (`popmodel.machines.profile_schema`), what each quantity means and how
formulas write it, what changes together in a what-if (`popmodel.model.symbols`), which part of the
measurement gives it, what predictions need and what they leave unused
(`popmodel.machines.profile_findings`), and what the page of a profile calls it derive from here. A
new parameter is a row of ``docs/parameters.md`` and the term that uses it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from popmodel.base import shell
from popmodel.base.values import dataclass
from popmodel.machines.quantity import Quantity

PLAIN = (
    *("parallel", "for", "parallel_for", "barrier", "single", "master", "critical", "lock"),
    *("atomic", "ordered", "reduction", "sections", "task", "taskwait"),
)
"""Those that copy no array."""

COPYING = ("private", "firstprivate", "lastprivate", "copyprivate", "copyin", "threadprivate")
"""Those that copy an array into every thread or out of it: their cost is per byte as well."""

CONSTRUCTS = (*PLAIN, *COPYING, "static")
"""All that a signature may count; a profile may know others. ``static`` is a schedule."""


# What is said of a parameter of machines, once: an entry of the register.


PARTS = ("core", "memory", "loops", "openmp", "p2p", "collectives", "overlap", "threads", "noise")
"""Parts of the measurement, in the order in which they are listed."""

NODE_PARTS = frozenset({"core", "memory", "loops", "openmp", "noise"})
"""Parts that need no MPI."""

TIERS: Mapping[str, str] = {
    "intra": "within a node",
    "inter": "between nodes",
    "socket": "within a socket",
}
"""Distances between processes, and where the messages go in words."""

DISTANCES = ("near", "far")
"""Of two cores: the nearest there are, and those farthest from each other."""

OPERATIONS: Mapping[str, str] = {
    "add": "addition",
    "multiply": "multiplication",
    "divide": "division",
}
"""Floating-point operations whose latency is known, and their nouns."""

_NOT_USED_TIERS = {"socket": "messages within a socket cost the same as within a node"}


@dataclass(frozen=True)
class Parameter:
    """A number that a machine profile may contain, or all numbers of one table."""

    # Where it is. Words in capitals stand for names (``TIER`` for one of `TIERS`, ``CORES`` for
    # numbers of active cores), ``[]`` for every entry of a list.
    path: str
    unit: str  # SI unit; empty where entries have several
    part: str  # Part of the measurement that gives it, one of `PARTS`
    meaning: str  # What it is
    short: str = ""  # Its name in formulas; the last name of the path by default
    zero: bool = False  # Whether it may be 0
    # Its smallest value, if it may be below 0, and its largest, if there is one.
    least: float | None = None
    most: float | None = None
    plain: bool = False  # Whether it is written without interval and origin
    # Group of `popmodel.model.symbols` that it changes with, ``_TIER`` for one of each tier;
    # empty for shapes and thresholds, which no factor suits.
    changes: str = ""
    # Which predictions cannot do without it, by the path that is missed.
    needed: Mapping[str, str] = field(default_factory=dict)
    instead_of: tuple[str, ...] = ()  # What is not needed where this is known
    # What the model takes, within bounds that leave nothing out, where a profile does not know it;
    # None if there is no such value.
    assumed: Quantity | None = None
    unused: str = ""  # Why the model does not use it; empty if it does

    @property
    def section(self) -> str:
        """First name of the path."""
        return self.path.partition(".")[0]

    @property
    def has_tiers(self) -> bool:
        """Whether there is one for each of `TIERS`."""
        return self.path.startswith("net.TIER.")

    @cached_property
    def stem(self) -> str:
        """The path up to the names of entries, ``TIER`` and lists left out: ``net.TIER.alpha``."""
        names = self.path.replace(".classes[]", "").partition("[]")[0].split(".")
        kept = itertools.takewhile(lambda name: name == "TIER" or not is_free(name), names)
        return ".".join(kept)

    @property
    def name(self) -> str:
        """How people call it: by its path, what messages cost by the name in formulas."""
        used = self.has_tiers and not self.unused
        return self.stem.removeprefix("net.TIER.") if used else self.stem.replace(".TIER", "")

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Beginnings of paths in a profile, for each tier."""
        if not self.has_tiers:
            return (self.stem,)
        return tuple(self.stem.replace("TIER", tier) for tier in TIERS)

    @property
    def groups(self) -> tuple[str, ...]:
        """The group that it changes with at each of `stems`; that between nodes has no tier."""
        if not self.has_tiers:
            return (self.changes,)
        return tuple(
            self.changes.replace("_TIER", "" if tier == "inter" else f"_{tier}") for tier in TIERS
        )

    def bounded(self, quantity: Quantity) -> Quantity:
        """Return a quantity with the bounds of the parameter."""
        least = -math.inf if self.least is None else self.least
        return replace(quantity, least=least, most=math.inf if self.most is None else self.most)

    def in_tier(self, tier: str) -> str:
        """Return the path for messages of a tier."""
        return self.path.replace("TIER", tier)

    def reason(self, tier: str) -> str:
        """Why the model does not use it for messages of a tier; empty if it does."""
        return (self.has_tiers and _NOT_USED_TIERS.get(tier)) or self.unused


def is_free(name: str) -> bool:
    """Whether a name in the path of a parameter stands for names."""
    return len(name) > 1 and name.isupper()


# The rows of the page.


_PAGE = Path(__file__).parents[1] / "docs" / "parameters.md"
_ASSUMED = re.compile(r"(\S+) \((\S+) \.\. (\S+)\): (.+)")
_INSTEAD = "in place of "


def _parameter(row: str) -> Parameter:
    """The entry of a row of the page."""
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    path, unit, part, meaning, short, values, changes, assumed, needed, unused = cells
    low, is_range, high = values.partition(" .. ")
    is_instead = needed.startswith(_INSTEAD)
    return Parameter(
        path.strip("`"),
        unit,
        part,
        meaning,
        short,
        zero=values == "at least 0" or low == "0",
        least=float(low) if is_range and float(low) < 0 else None,
        most=float(high) if is_range else None,
        plain=values == "plain",
        changes=changes,
        needed=dict(one.split(": ", 1) for one in needed.split("; ") if ": " in one),
        instead_of=tuple(needed.removeprefix(_INSTEAD).split(", ")) if is_instead else (),
        assumed=_assumed(assumed),
        unused=unused,
    )


def _assumed(text: str) -> Quantity | None:
    """What is taken of a parameter that a profile lacks: value, 90 % interval, and why."""
    if not text:
        return None
    found = _ASSUMED.fullmatch(text)
    assert found is not None, f"{_PAGE}: not VALUE (LOW .. HIGH): WHY: {text}"
    value, low, high = map(float, found.groups()[:3])
    return Quantity(value, low, high, "assumed", source=found[4])


REGISTER: tuple[Parameter, ...] = tuple(
    _parameter(row)
    for row in _PAGE.read_text(encoding="utf-8").splitlines()
    if row.startswith("| `")
)
"""All parameters, in the order of the page."""


# Looking up parameters by their paths.


BY_CORES = tuple(one.stem for one in REGISTER if one.path.endswith(".CORES"))
"""Tables by numbers of active cores."""


def _names(path: str) -> list[str]:
    """Names in a path, without entries of lists and the list of size classes."""
    return [name for name in re.split(r"\.|\[[^\]]*\]", path) if name not in ("", "classes")]


def _tree() -> dict[str, Any]:
    """All parameters by the names of their paths; ``*`` for names that are free."""
    tree: dict[str, Any] = {}
    for one in REGISTER:
        for tier in TIERS if one.has_tiers else ("",):
            *above, last = ("*" if is_free(name) else name for name in _names(one.in_tier(tier)))
            node = tree
            for name in above:
                node = node.setdefault(name, {})
            node[last] = one
    return tree


_TREE = _tree()


def _leaves(node: Any) -> list[Parameter]:
    if isinstance(node, Parameter):
        return [node]
    found = (one for inner in node.values() for one in _leaves(inner))
    return list({one.path: one for one in found}.values())  # once for all tiers


def below(path: str) -> list[Parameter]:
    """Return the parameters at a path and below it."""
    node: Any = _TREE
    for name in _names(path):
        node = node.get(name, node.get("*")) if isinstance(node, dict) else None
    if node is None:
        return [one for one in REGISTER if one.stem.replace(".TIER", "") == path]
    return _leaves(node)


def find(path: str) -> Parameter | None:
    """Return the parameter at a path, or that of all entries of the table there."""
    found = below(path)
    return found[0] if len({one.name for one in found}) == 1 else None


def unused(path: str) -> str:
    """Return the reason why the model does not use a quantity; empty if it does."""
    parameter = find(path)
    return "" if parameter is None else parameter.reason("".join(_names(path)[1:2]))


def part_of(path: str) -> str | None:
    """Name the part of the measurement that gives a quantity; None if none does."""
    found = below(path.partition(" (")[0])
    return found[0].part if found else None


def filled_by(part: str) -> tuple[str, ...]:
    """Return what a part of the measurement fills, and no other one: beginnings of paths.

    Whole sections of a profile come first, then quantities and tiers of the network.
    """
    parts: dict[str, set[str]] = {}
    for one in REGISTER:
        parts.setdefault(one.section, set()).add(one.part)
    filled = {
        one.section if len(parts[one.section]) == 1 else ".".join(stem.split(".")[:2]): None
        for one in REGISTER
        if one.part == part
        for stem in one.stems
    }
    return tuple(sorted(filled, key=lambda path: "." in path))


OWN = "machine.json"
"""Where the profile of the user's own machine is written."""

BETWEEN_NODES = ("net.inter", "net.nic_G")


def measuring_anew(path: str) -> str | None:
    """Return the command that measures a quantity in a profile of one's own, with all parts."""
    if part_of(path) is None:
        return None
    nodes = ["--script", "slurm", "--nodes", "2"] if path.startswith(BETWEEN_NODES) else []
    return shell.join(["popmodel", "machine", "measure", *nodes, "-o", OWN])
