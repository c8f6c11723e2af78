"""Measured runs and predictions that tests write down in a line."""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.model.uncertainty import Estimate
from popmodel.runs.measurement import MeasuredRow
from popmodel.validation.comparison import ComparedRun, ComparedValue, FitRegion
from popmodel.validation.predictions import Predicted

FAMILY = "hybrid-additive"
TEST = FitRegion("inside")


def run(p: int, t: int, time: float, *, n: float = 8.0, **efficiencies: float) -> MeasuredRow:
    """A run of P x T with its runtime and efficiencies of the main family."""
    metrics = {FAMILY: efficiencies} if efficiencies else {}
    return MeasuredRow("x.csv", p, t, time, metrics, parameters={"N": n})


def predicted(
    p: int,
    t: int,
    time: float,
    width: float | None = None,
    *,
    n: float = 8.0,
    terms: Mapping[str, float] | None = None,
    nodes: int | None = None,
) -> Predicted:
    """A prediction for it, with a relative half width of the interval of the runtime."""
    ends = () if width is None else (time * (1 - width), time * (1 + width))
    parts = {name: Estimate(value) for name, value in (terms or {}).items()}
    return Predicted(p, t, Estimate(time, *ends), {}, {"N": n}, parts, nodes)


def row(
    measured: float,
    of: float = 1.0,
    width: float | None = 0.1,
    *,
    p: int = 2,
    family: str = "",
    metric: str = "runtime",
    region: FitRegion = TEST,
) -> ComparedValue:
    """A quantity with a prediction and a half width around it."""
    estimate = Estimate(of) if width is None else Estimate(of, of - width, of + width)
    compared = ComparedRun(run(p, 1, 1.0), predicted(p, 1, 1.0), region)
    return ComparedValue(compared, family, metric, estimate, measured)
