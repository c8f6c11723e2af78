"""What can be changed of a machine and a program: the quantities that change together, by name.

What-if factors, remedies and elasticities all change quantities of the profile and the signature.
They take from here which of them belong together, so that "memory bandwidth" means the same
wherever it is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from popmodel.base.values import NamedTuple
from popmodel.machines.register import REGISTER


class ChangeGroup(NamedTuple):
    """Quantities that change together."""

    name: str  # Short name
    label: str  # What grows if the factor is above 1
    # By the beginning of a path, the power of the factor on that quantity: -1 where the profile has
    # the inverse of what the label names, such as a time per byte for a bandwidth.
    powers: Mapping[str, int]
    # 1 if the label is a time, -1 if it is a rate, 0 if time is not in its unit. A model is
    # consistent only if all times halved, and all rates doubled, halve the runtime.
    degree: int


_LABELS: Mapping[str, str] = {
    "clock": "clock",
    "arithmetic": "arithmetic per cycle",
    "operations": "latency of arithmetic",
    "data": "loads and stores per cycle",
    "loops": "loop-control cycles",
    "memory": "memory bandwidth",
    "caches": "cache bandwidth",
    "write_backs": "time of write-backs",
    "copy": "copy bandwidth",
    "cache": "cache",
    "lines": "cache-line transfer time",
    "sharing": "exposed false sharing",
    "openmp": "OpenMP overhead",
    "latency": "network latency",
    "latency_intra": "latency within a node",
    "latency_socket": "latency within a socket",
    "bandwidth": "network bandwidth",
    "bandwidth_intra": "bandwidth within a node",
    "bandwidth_socket": "bandwidth within a socket",
    "adapter": "network adapter bandwidth",
    "crowding": "undisturbed messages per node",
    "sending": "CPU time per message",
    "threads_in_mpi": "cost of additional threads in MPI",
    "reduction": "reduction speed",
}
"""What grows in each group of parameters of a machine."""

_DEGREES = {"s": 1, "s/B": -1, "B/s": -1, "Hz": -1}  # a time per byte is changed as a rate


def _groups() -> Iterator[ChangeGroup]:
    """The parameters of the register that change together."""
    powers: dict[str, dict[str, int]] = {name: {} for name in _LABELS}
    degrees = dict.fromkeys(_LABELS, 0)
    for one in REGISTER:
        for stem, name in zip(one.stems, one.groups, strict=True):
            if name:
                powers[name][stem] = -1 if one.unit == "s/B" else 1
                degrees[name] = _DEGREES.get(one.unit, 0)
    for name, label in _LABELS.items():
        yield ChangeGroup(name, label, powers[name], degrees[name])


_TABLE = (
    *_groups(),
    ChangeGroup(
        "persistent",
        "persistent imbalance",
        {"imbalance.persistent_cv": 1, "imbalance.largest": 1},
        0,
    ),
    ChangeGroup("transient", "transient imbalance", {"imbalance.transient_cv": 1}, 0),
)

GROUPS: Mapping[str, ChangeGroup] = {group.name: group for group in _TABLE}
"""All groups by name. Quantities of no group are shapes and thresholds, which no factor suits."""

WHAT_IF: Mapping[str, tuple[str, ...]] = {
    "latency": ("latency_intra", "latency", "latency_socket"),
    "bandwidth": ("bandwidth_intra", "bandwidth", "bandwidth_socket", "adapter"),
    "memory": ("memory",),
    "clock": ("clock",),
    "openmp": ("openmp",),
    "imbalance": ("persistent", "transient"),
}
"""What a user may change by a factor: groups by the word on the command line."""

REMEDIES: Mapping[str, tuple[float, tuple[str, ...]]] = {
    "+10 % memory bandwidth": (1.1, ("memory",)),
    "+10 % clock": (1.1, ("clock",)),
    "+10 % cache": (1.1, ("cache",)),
    "+10 % network bandwidth": (1.1, ("bandwidth", "adapter")),
    "half the network latency": (0.5, ("latency",)),
    "+10 % bandwidth within a node": (1.1, ("bandwidth_intra", "bandwidth_socket")),
    "half the latency within a node": (0.5, ("latency_intra", "latency_socket")),
    "half the OpenMP overhead": (0.5, ("openmp",)),
    "half the imbalance": (0.5, ("persistent", "transient")),
}
"""What may help a run: factor and groups by label."""


SPREADS: Mapping[str, str] = {"persistent": "persistent_cv", "transient": "transient_cv"}
"""The spreads of ``[imbalance]`` that a user may set for a prediction, by the word for each."""


@cache
def beginnings(path: str) -> tuple[str, ...]:
    """Return the paths whose factors change a quantity: its own, then those of what it is in."""
    ends = [index for index, letter in enumerate(path) if letter in ".["]
    return path, *(path[:end] for end in reversed(ends))


def factors(groups: Iterable[str], factor: float) -> dict[str, float]:
    """Return the factors on quantities, by the beginning of their path, if groups change by one."""
    return {path: factor**power for name in groups for path, power in GROUPS[name].powers.items()}


def factors_of(what_if: Mapping[str, float]) -> dict[str, float]:
    """Return the factors on quantities that what-if changes, by the words of `WHAT_IF`, mean."""
    return {
        path: part
        for word, factor in what_if.items()
        for path, part in factors(WHAT_IF[word], factor).items()
    }
