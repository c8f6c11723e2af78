"""The runtime of a whole program from a few runs: what a model from its parts has to agree with.

An average over Amdahl's law, ideal scaling, pipelines, surfaces, trees and whatever else the forms
of laws (`popmodel.fit.candidates`) have, by how likely the runs make them (`popmodel.fit.mixture`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from popmodel.fit.candidates import physical
from popmodel.fit.mixture import Mixture, mixture
from popmodel.fit.samples import Interval, Sample, points_of
from popmodel.values import dataclass

DIVIDED = ("1/(P*T)",)
"""What runtimes follow that are shared out: the first guess."""
_SHOWN = 0.02  # weight of a form that is told


@dataclass(frozen=True)
class WholeRun:
    """Runtimes of a program by P, T and parameters, s."""

    mixture: Mixture

    @property
    def forms(self) -> dict[str, float]:
        """Forms with their weights, the likeliest first."""
        told = zip(self.mixture.forms, self.mixture.weights.tolist(), strict=True)
        likely = sorted(told, key=lambda pair: -pair[1])
        return {form.text: weight for form, weight in likely if weight >= _SHOWN}

    def at(
        self, processes: int, threads: int, parameters: Mapping[str, float] | None = None
    ) -> Interval:
        """Return the median at a configuration, with its 90 % interval, s."""
        points = self.mixture.points
        place = {"P": float(processes), "T": float(threads), **(parameters or {})}
        if missing := [name for name in points.varied if name not in place]:
            raise ValueError(f"runtimes depend on {', '.join(missing)}: give a value")
        home = points.configuration(0)
        known = set().union(*(term.names for form in self.mixture.forms for term in form.terms))
        for name in set(place) & set(home) - set(points.varied) - {"P", "T"} - known:
            if place[name] != home[name]:
                raise ValueError(f"{points.known_at(name)}: no law of the runtime tells of others")
        low, value, high = self.mixture.quantiles({**home, **place})[0].tolist()
        return Interval(math.exp(value), math.exp(low), math.exp(high))


def whole_run(samples: Sequence[Sample], hints: Sequence[str] = DIVIDED) -> WholeRun:
    """Average over the laws that runtimes of a whole program may follow.

    Parameters
    ----------
    samples
        Runtimes, s; repeats of a configuration tell their errors.
    hints
        Forms that are likely, such as ``N**3/(P*T)``, the likeliest first.

    Examples
    --------
    >>> runs = whole_run([Sample(p, 1, 10 / p + 0.1) for p in (1, 2, 4, 8, 16)])
    >>> there = runs.at(64, 1)
    >>> there.low < 10 / 64 + 0.1 < there.high
    True
    """
    points = points_of(samples)
    if not points.values.all():
        raise ValueError("a runtime must be above 0")
    middle = points.configuration(points.middle)
    return WholeRun(mixture(points, physical(points, hints), middle))
