"""Which burst is which where processes lack some calls.

A process at the edge of a grid sends to fewer neighbours: what it computes before its first call is
what the others compute before another one, which it does not have. Between two of its calls lie
then several places; its burst is of the one whose bursts elsewhere take as long.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import alike
from popmodel.structure.nest import leaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.phases.stretches import Stretches
    from popmodel.structure.structure import Structure

_LEAST = 1e-9
"""Seconds; shorter times are not told apart."""


def settled(structure: Structure, rows: Stretches) -> Stretches:
    """Bursts before the places that they are of.

    Only places of the same leaf are taken for each other: these a sequence passes equally often, so
    that the numbers of executions stay.
    """
    if not structure.places:
        return rows
    leaf, position, members = _leaves(structure)
    groups, which = alike(
        rows.sequence.astype(np.int64), rows.previous.astype(np.int64), rows.place.astype(np.int64)
    )
    _, before, place = groups.T
    mean = np.bincount(which, rows.wall) / np.bincount(which)
    since = np.where((before >= 0) & (leaf[before] == leaf[place]), position[before] + 1, 0)
    since = np.where(since <= position[place], since, 0)
    direct = (since == position[place]) | (place < 0)
    usual = _usual(rows, direct[which], len(leaf))
    chosen = place.copy()
    for group in np.flatnonzero(~direct).tolist():
        here = int(place[group])
        among = members[leaf[here]][since[group] : position[here] + 1]
        times = usual[among]
        if np.isnan(times).all():
            continue
        apart = np.abs(np.log(np.maximum(times, _LEAST) / max(mean[group], _LEAST)))
        chosen[group] = among[int(np.nanargmin(apart))]
    return replace(rows, place=chosen[which].astype(np.int32))


def _leaves(
    structure: Structure,
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[NDArray[np.int64]]]:
    """Leaf of each place, its position in it, and the places of each leaf."""
    members = [np.array(leaf.places, np.int64) for leaf in leaves(structure.nest)]
    leaf, position = np.zeros((2, len(structure.places)), np.int64)
    for number, places in enumerate(members):
        leaf[places], position[places] = number, np.arange(len(places))
    return leaf, position, members


def _usual(rows: Stretches, direct: NDArray[np.bool_], places: int) -> NDArray[np.float64]:
    """Mean time of the bursts that lie before each place without doubt, s; NaN without any."""
    mine = direct & (rows.place >= 0)
    count = np.bincount(rows.place[mine], minlength=places)
    total = np.bincount(rows.place[mine], rows.wall[mine], places)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
