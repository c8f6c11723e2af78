"""Which further measurement would tell forms apart that fit as well."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from popmodel.fit.intervals import logarithms
from popmodel.fit.model_selection import Choice
from popmodel.fit.samples import Points, described

_DIFFERENT = 0.05  # of predictions, relative, from which a measurement tells
_FURTHER = 2


def would_tell(
    points: Points, choice: Choice, reference: int
) -> tuple[Mapping[str, float] | None, list[str]]:
    """Return the configuration at which forms that are as good differ most, and say so."""
    rivals = choice.alike
    if not rivals:
        return None, []
    places = list(_places(points))
    columns = {name: np.array([place[name] for place in places]) for name in places[0]}
    value = logarithms(choice.best, points, reference, columns)
    most, where, other = _DIFFERENT, None, ""
    for one in rivals:
        gaps = np.abs(logarithms(one, points, reference, columns) - value)
        at = int(np.argmax(np.where(np.isnan(gaps), 0.0, gaps)))
        if gaps[at] > most + 1e-9:
            most, where, other = float(gaps[at]), places[at], one.form.text
    if where is None:
        return None, []
    shown = {name: where[name] for name in where if name in points.varied}
    form = choice.best.form.text
    return where, [
        f"{other} fits as well as {form}: a run at {described(shown)} would tell "
        f"({100 * math.expm1(most):.0f} % apart)"
    ]


def _places(points: Points) -> Iterator[dict[str, float]]:
    """Configurations near those measured: corners of their ranges, and one step further each."""
    names = [name for name in points.varied if name in ("P", "T") or name not in _derived(points)]
    home = points.configuration(0)
    grids = [np.unique(points.configurations[name]) for name in names]
    further = [
        sorted({*grid.tolist(), grid[-1] * _FURTHER, max(grid[0] / _FURTHER, 1.0)})
        for grid in grids
    ]
    for corner in np.array(np.meshgrid(*further)).reshape(len(names), -1).T.tolist():
        yield {**home, **dict(zip(names, corner, strict=True))}


def _derived(points: Points) -> set[str]:
    """Parameters that change with P or T: they are no choice of their own."""
    derived = set()
    for name in points.varied:
        if name in ("P", "T"):
            continue
        for given in ("P", "T"):
            column, own = points.configurations[given], points.configurations[name]
            if np.ptp(column) > 0 and len({*column.tolist()}) == len(
                {*zip(column.tolist(), own.tolist(), strict=True)}
            ):
                derived.add(name)
    return derived
