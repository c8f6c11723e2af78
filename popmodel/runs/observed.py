"""Runs that were analysed elsewhere: documents of ``popmodel metrics``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from popmodel.documents import Kind
from popmodel.efficiency.observables import Observables, Region
from popmodel.errors import PopmodelError
from popmodel.runs.measurement import Measurement, from_observables, require_plausible
from popmodel.runs.place import Place, TableError
from popmodel.shapes import Flag, Items, Named, Optional, Plain, Real, Shape, Table, Text, Whole
from popmodel.trace.focus import Focus

_NS = 1e9
_TIME = Real(least=0)
_TIMES = Items(_TIME)
_SCALARS = (
    "ideal_runtime",
    "idle_serial",
    "idle_imbalance",
    "idle_scheduling",
    "openmp_imbalance",
    "openmp_synchronisation",
    "openmp_scheduling",
    "openmp_mpi",
)
_ALWAYS = ("useful", "omp_useful", "in_mpi", "serial_useful", "in_openmp", "serial_mpi")
_OFTEN = ("not_in_mpi", "instructions", "cycles")
_OF_REGIONS: dict[str, Shape] = {one.name: Real() for one in fields(Region)}
_REGION = Table(
    {**_OF_REGIONS, "name": Text(), "count": Whole(0)},
    ("name", "count", "wall", "parallel_efficiency", "load_balance", "cost"),
)
_OBSERVABLES = Table(
    {
        "runtime": Real(above=0),
        "threads": Items(Whole(1), 1),
        "node": Items(Whole(0), 1),
        **dict.fromkeys(_ALWAYS, _TIMES),
        **dict.fromkeys(_OFTEN, Optional(_TIMES)),
        **dict.fromkeys(_SCALARS, Optional(_TIME)),
        "ideal_runtime": Optional(Real(above=0)),
        "has_mpi": Flag(),
        "has_openmp": Flag(),
        "regions": Items(_REGION),
        "absent": Named(Text()),
    },
    ("runtime", "threads", "node", *_ALWAYS, "has_mpi", "has_openmp"),
)
WINDOW = Table(
    {
        "begin": Real(),
        "end": Real(),
        "left_out": Table(dict.fromkeys(("before", "between", "after"), _TIME)),
        "region": Optional(Text()),
        "occurrences": Whole(0),
        "why": Text(),
    },
    ("begin", "end", "left_out", "region", "occurrences", "why"),
    others=Plain(),
)
"""Shape of the part of a trace that was measured."""
_RUN = Table(
    {
        "trace": Text(),
        "caveats": Items(Text()),
        "window": Optional(WINDOW),
        "disturbed": Flag(),
        "observables": _OBSERVABLES,
    },
    ("trace", "observables"),
    others=Plain(),
)
METRICS = Kind(
    "popmodel/metrics/1",
    "document of metrics",
    Table({"runs": Items(_RUN, 1)}, ("runs",), others=Plain()),
    "popmodel metrics TRACE... -o metrics.json writes one",
)
"""What ``popmodel metrics --format json`` writes."""


def window_of(table: Mapping[str, Any] | None) -> Focus | None:
    """The part of a trace that a document names, in nanoseconds."""
    if table is None:
        return None

    def ns(seconds: float) -> int:
        return round(seconds * _NS)

    left = {"before": 0.0, "between": 0.0, "after": 0.0, **table["left_out"]}
    return Focus(
        ns(table["begin"]),
        ns(table["end"]),
        ns(left["before"]),
        ns(left["after"]),
        table["why"],
        between=ns(left["between"]),
        region=table["region"],
        occurrences=table["occurrences"],
    )


def analysed(document: Any, path: str, parameters: Mapping[str, float]) -> tuple[Measurement, ...]:
    """Runs of a document of ``popmodel metrics``."""
    read = METRICS.read(document, path, TableError)
    return tuple(
        _run(one, Place(path, entry=f"runs[{number}]"), parameters)
        for number, one in enumerate(read["runs"])
    )


def _run(one: Mapping[str, Any], place: Place, parameters: Mapping[str, float]) -> Measurement:
    seen = dict(one["observables"])
    seen["regions"] = tuple(Region(**each) for each in seen.get("regions", ()))
    try:
        run = from_observables(
            one["trace"],
            Observables(**seen),
            window_of(one.get("window")),
            tuple(one.get("caveats", ())),
            one.get("disturbed", False),
            parameters,
        )
        require_plausible(run.metrics)
    except (PopmodelError, ValueError) as reason:
        text = reason.message if isinstance(reason, PopmodelError) else str(reason)
        raise place.error(text) from None
    return run
