"""Two profiles side by side, and several profiles as one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from popmodel.errors import PopmodelError
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity

_IDENTITY = ("cpu", "mpi", "openmp")
_FREE = ("schema", "name", "description", "host", "topology", "absent", "quality", "provenance")


class DifferentMachines(PopmodelError):
    """Profiles of different machines cannot become one."""


@dataclass(frozen=True)
class Difference:
    """One quantity of two profiles.

    Attributes
    ----------
    path : str
        Such as ``memory.b1``.
    first, second : Quantity or None
        None where a profile does not have it.
    """

    path: str
    first: Quantity | None
    second: Quantity | None

    @property
    def ratio(self) -> float | None:
        """Second over first; None if one is missing or the first is 0."""
        if self.first is None or self.second is None or self.first.value == 0:
            return None
        return self.second.value / self.first.value

    @property
    def within(self) -> bool | None:
        """Whether they differ by no more than both 90 % intervals together allow.

        The half widths towards each other add up as independent errors do. None if one is missing.
        """
        if self.first is None or self.second is None:
            return None
        low, high = sorted((self.first, self.second), key=lambda quantity: quantity.value)
        gap = high.value - low.value
        up = (low.value if low.high is None else low.high) - low.value
        down = high.value - (high.value if high.low is None else high.low)
        return gap <= math.hypot(up, down) * (1 + 1e-12)


def diff(first: Profile, second: Profile) -> list[Difference]:
    """Compare every quantity of two profiles.

    Returns
    -------
    list of Difference
        In the order of the first profile, then what only the second has.
    """
    paths = dict.fromkeys([*first.quantities, *second.quantities])
    return [
        Difference(path, first.quantities.get(path), second.quantities.get(path)) for path in paths
    ]


def merge(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Make one profile of several of the same machine; what a later one has replaces the earlier.

    Tiers of the network are merged one by one, other sections as a whole, since their entries were
    measured together.

    Parameters
    ----------
    documents : sequence of mapping
        At least one, as `popmodel.machine.calibration.calibrate` makes them.

    Raises
    ------
    DifferentMachines
        If processor, MPI or OpenMP runtime differ.
    """
    merged: dict[str, Any] = dict(documents[0])
    for document in documents[1:]:
        _check_identity(merged, document)
        measured = {key for key in document if key not in _FREE}
        kept = {
            path: why
            for path, why in merged.get("absent", {}).items()
            if path.split(".")[0] not in measured - {"net"}
        }
        for key in measured - {"net"}:
            merged[key] = document[key]
        net = merged.get("net", {}) | document.get("net", {})
        if net:
            merged["net"] = net
        absent = {
            path: why
            for path, why in (kept | document.get("absent", {})).items()
            if not _known(merged, path)
        }
        for key, value in (
            ("absent", absent),
            ("quality", merged.get("quality", {}) | document.get("quality", {})),
            ("host", merged.get("host", {}) | document.get("host", {})),
        ):
            if value:
                merged[key] = value
            else:
                merged.pop(key, None)
        merged["topology"] = _larger(merged["topology"], document["topology"])
    return merged


def _known(document: Mapping[str, Any], path: str) -> bool:
    entry: Any = document
    for name in path.split("."):
        if not isinstance(entry, Mapping) or name not in entry:
            return False
        entry = entry[name]
    return True


def _larger(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Topology of the later profile, with the nodes of the larger measurement."""
    nodes = max(first.get("nodes", 1), second.get("nodes", 1))
    return {**second, "nodes": nodes}


def _check_identity(first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    for key in _IDENTITY:
        one, other = (document.get("host", {}).get(key) for document in (first, second))
        if one is not None and other is not None and one != other:
            raise DifferentMachines(
                f"profiles of different machines cannot be merged: host.{key} is {one!r} in one "
                f"and {other!r} in another",
                "measure with the same processor, MPI and compiler, or keep the profiles apart",
            )
    one, other = (document["topology"].get("cores_per_node") for document in (first, second))
    if one != other:
        raise DifferentMachines(
            f"profiles of different machines cannot be merged: nodes of {one} and of {other} cores",
            "measure with the same number of cores, or keep the profiles apart",
        )
