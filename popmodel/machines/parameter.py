"""OpenMP constructs whose overhead is measured, by the names that profiles and signatures use."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

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
    # Group of `popmodel.model.scale_factors` that it changes with, ``_TIER`` for one of each tier;
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
