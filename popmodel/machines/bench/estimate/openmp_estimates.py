"""Overheads of OpenMP constructs by thread count, and the law behind them where it can be told.

The overhead of a construct is the time with it less that of the same work without it (J. M. Bull,
EWOMP 1999). The law is ``O(T) = a + b log2 T + d T + s [T > cores of a socket]``, all at least 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.machines.bench.estimate.launch_intervals import (
    Series,
    aligned,
    criterion,
    fitted,
    median,
    of_results,
    p10,
    quantities,
)
from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.machines.bench.sample_files import SampleResult
from popmodel.machines.register import COPYING

Array = NDArray[np.float64]

# threads get in each other's way: the minimum would show those that happened to be alone
CONTENDED = ("critical", "lock", "atomic", "ordered")
_SCHEDULES = ("schedule_static", "schedule_dynamic", "schedule_guided")
_LEAST_COUNTS = 4  # thread counts of two or more that a law needs


def calibrate(
    measured: MeasuredResults, topology: Mapping[str, Any], absent: dict[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the section ``openmp`` and remarks on its quality; notes why parts are absent."""
    series: dict[tuple[str, int], Series] = {}
    for name in measured.values("construct", "name"):
        for key, wanted in _variants(measured, name):
            for count in measured.values("construct", "threads", name=name, **wanted):
                results = measured.results("construct", name=name, threads=count, **wanted)
                series[key, count] = _overhead(results, name)
    series |= _per_chunk(measured)
    if not series:
        return {}, []
    found = quantities(
        {f"{key}:{count}": one for (key, count), one in series.items()},
        zero=frozenset(f"{key}:{count}" for key, count in series),
    )
    section: dict[str, Any] = {}
    for key in dict.fromkeys(key for key, _ in series):
        counts = sorted(count for name, count in series if name == key)
        section[key] = {"T": counts, "seconds": [found[f"{key}:{count}"] for count in counts]}
    per_socket = math.ceil(topology["cores_per_node"] / topology.get("sockets", 1))
    _laws(section, series, per_socket, absent)
    negative = sorted({key for (key, _), one in series.items() if float(np.mean(one.values)) < 0})
    return section, [
        f"no measurable overhead (set to 0): {', '.join(negative)}"
    ] if negative else []


def _variants(measured: MeasuredResults, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Keys of the section that a construct fills, with the parameters that select its results."""
    if name in COPYING:
        return [(name, {"bytes": measured.values("construct", "bytes", name=name)[0]})]
    if name in _SCHEDULES:
        plain = [r for r in measured.results("construct", name=name) if "chunk" not in r.params]
        return [(name.removeprefix("schedule_"), {"chunk": None})] if plain else []
    return [(name, {})]


def _overhead(results: Sequence[SampleResult], name: str) -> Series:
    statistic, how = (median, "median") if name in CONTENDED else (p10, "p10")

    def difference(result: SampleResult) -> float:
        assert result.reference is not None
        return statistic(result.seconds) - statistic(result.reference)

    whole = float(np.mean([statistic(result.seconds) for result in results]))
    source = f"time with the construct minus time without, {how}"
    return of_results(results, difference, source, scale=whole)


def _per_chunk(measured: MeasuredResults) -> dict[tuple[str, int], Series]:
    """Cost of a chunk: the overhead per iteration of loops whose chunk is one iteration."""
    found = {}
    for name in _SCHEDULES:
        kind = name.removeprefix("schedule_")
        chunks = [c for c in measured.values("construct", "chunk", name=name) if c]
        if not chunks:
            continue
        for count in measured.values("construct", "threads", name=name, chunk=chunks[0]):
            results = measured.results("construct", name=name, threads=count, chunk=chunks[0])
            found[f"{kind}_chunk", count] = _overhead(results, name)
    return found


# -- the law


def _laws(
    section: dict[str, Any],
    series: Mapping[tuple[str, int], Series],
    per_socket: int,
    absent: dict[str, str],
) -> None:
    """Fit the law to every construct that has enough thread counts."""
    fits: dict[str, Series] = {}
    reason = None
    for key, entry in section.items():
        counts = [count for count in entry["T"] if count > 1]
        if len(counts) < _LEAST_COUNTS:
            reason = (
                f"the scaling law needs {_LEAST_COUNTS} thread counts above 1; "
                f"{len(counts)} {'was' if len(counts) == 1 else 'were'} measured"
            )
            continue
        points = aligned([series[key, count] for count in counts], _LEAST_COUNTS)
        if points is None:
            reason = f"no launch measured {_LEAST_COUNTS} thread counts above 1"
            continue
        counts = [counts[i] for i in points.kept]
        terms = choose_terms(counts, points.values.mean(axis=0), per_socket)
        parameters, errors = fitted(points, partial(fit_law, counts, per_socket, terms))
        scale = float(np.abs(points.values).mean())
        for term in terms:
            column = "abds".index(term)
            fits[f"{key}:{term}"] = Series(
                tuple(parameters[:, column].tolist()),
                f"fit to {counts[0]} to {counts[-1]} threads",
                points.batches,
                scale,
                float(errors[column]) / scale,
                points.launches,
            )
    found = quantities(fits, zero=frozenset(fits))
    for name, entry in found.items():
        key, _, term = name.rpartition(":")
        section[key].setdefault("fit", {})[term] = entry
    if reason is not None:
        absent["openmp.*.fit.a"] = reason


def _design(counts: Sequence[int], per_socket: int) -> Array:
    threads = np.asarray(counts, dtype=np.float64)
    return np.column_stack(
        [np.ones_like(threads), np.log2(threads), threads, (threads > per_socket).astype(float)]
    )


def fit_law(counts: Sequence[int], per_socket: int, terms: str, seconds: Array) -> Array:
    """Fit the terms of the law by least squares of relative errors, no coefficient below 0."""
    from scipy.optimize import nnls

    design = _design(counts, per_socket)[:, ["abds".index(term) for term in terms]]
    found = np.zeros(len(terms))
    around = seconds
    # the second time relative to the law: relative to the measured, low values would count more
    for _ in range(2):
        unit = np.maximum(np.abs(around), 1e-3 * np.abs(seconds).max() + 1e-300)
        found, _ = nnls(design / unit[:, None], seconds / unit)
        around = design @ found
    coefficients = np.zeros(4)
    coefficients[["abds".index(term) for term in terms]] = found
    return coefficients


def choose_terms(counts: Sequence[int], seconds: Array, per_socket: int) -> str:
    """Choose the terms with the least corrected Akaike information criterion.

    Parameters and shapes as in `fit_law`.
    """
    possible = "abds" if max(counts) > per_socket >= min(counts) else "abd"
    n = len(counts)
    best, chosen = math.inf, "a"
    for size in range(1, min(len(possible), n - 2) + 1):
        for terms in itertools.combinations(possible, size):
            law = _design(counts, per_socket) @ fit_law(counts, per_socket, "".join(terms), seconds)
            error = float(np.mean((law / np.where(seconds == 0, 1e-300, seconds) - 1) ** 2))
            # overheads are not known better than to a percent
            score = criterion(n, error + 1e-4, size)
            if score < best - 1e-9:
                best, chosen = score, "".join(terms)
    return chosen
