"""How two machine profiles differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from popmodel.api.inputs import ProfileLike, profile_of
from popmodel.base.plain import document
from popmodel.machines.profile import Profile
from popmodel.machines.profile_comparison import diff
from popmodel.reports.machine_values import host_text, unit_of

_OF_THE_MOMENT = frozenset({"load", "measured"})  # differs from run to run


def compare(machine: ProfileLike, other: ProfileLike) -> dict[str, Any]:
    """Return how two profiles differ, ``popmodel/machine-diff/1``, without provenance.

    What differs most comes first; ``host`` is what differs in hardware and software, which may
    explain the rest.
    """
    first, second = profile_of(machine), profile_of(other)
    differences = diff(first, second)
    rows = [
        {
            "path": row.path,
            "unit": unit_of(row.path),
            "a": row.first,
            "b": row.second,
            "ratio": row.ratio,
            "within": row.within,
        }
        for row in differences
        if row.first is not None and row.second is not None
    ]
    rows.sort(key=lambda row: (row["within"], -_distance(row["ratio"])))
    return document(
        "popmodel/machine-diff/1",
        machines=[{"machine": each.name, "path": each.path} for each in (first, second)],
        host=_differing(first, second),
        rows=rows,
        only_a=[row.path for row in differences if row.second is None],
        only_b=[row.path for row in differences if row.first is None],
        summary={
            "compared": len(rows),
            "within": sum(row.within is True for row in differences),
        },
    )


def _differing(one: Profile, other: Profile) -> list[dict[str, str | None]]:
    """Processor, compiler, MPI, OpenMP and the like, where two profiles name others."""
    hosts = [_named(profile.document.get("host", {})) for profile in (one, other)]
    keys = dict.fromkeys([*hosts[0], *hosts[1]])
    found = [{"key": key, "a": hosts[0].get(key), "b": hosts[1].get(key)} for key in keys]
    return [row for row in found if row["a"] != row["b"]]


def _named(host: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: host_text(value)
        for key, value in host.items()
        if isinstance(value, str | int | float) and key not in _OF_THE_MOMENT
    }


def _distance(ratio: Any) -> float:
    """How far a ratio is from 1, whichever way; none at all is the farthest."""
    return abs(math.log(float(ratio))) if ratio else math.inf
