"""Metrics of the run that projected factors make."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING, Mode, against, of_masters
from popmodel.fit.samples import Array
from popmodel.projection.factors import rebuilt

RUNTIME = ("", "runtime")
"""Family and id of the runtime, s, which is in no family."""
FAMILIES: Mapping[bool, tuple[str, ...]] = {
    False: ("mpi", "mpi-additive"),
    True: ("hybrid-multiplicative", "hybrid-additive"),
}
"""By whether there are threads: the families that are projected, the one that is shown first."""


def metrics_of(
    factors: Mapping[str, Array],
    reference: Mapping[str, float],
    processes: int,
    threads: int,
    mode: Mode,
) -> dict[tuple[str, str], Array]:
    """Return the metrics that factors make, by family and id; those of no value are left out."""
    aggregates = rebuilt(factors, reference, processes, threads, mode)
    cores, home = float(processes * threads), float(reference["threads"])
    ratio = cores / home if mode == "weak" else 1.0
    families = load_families()
    scaled = families[SCALING].evaluate_samples(against(aggregates, reference, ratio))
    threaded = "team" in factors
    others = of_masters(scaled.values, scaled.absent, threaded=threaded or threads > 1)
    found: dict[tuple[str, str], Array] = {RUNTIME: np.asarray(aggregates["runtime"])}
    evaluated = [
        families[name].evaluate_samples({**aggregates, **others[0]}, others[1])
        for name in FAMILIES[threaded]
    ]
    for one in (*evaluated, scaled):
        found |= {(one.family.id, metric): value for metric, value in one.values.items()}
    return found
