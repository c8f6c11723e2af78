"""What a measured run is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.efficiency.aggregates import AGGREGATES
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse
from popmodel.runs.measurement import MeasuredRow, from_run
from popmodel.trace import read

HYBRID = Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz"
RUN = MeasuredRow("runs.csv", 4, 2, 1.5, {}, parameters={"N": 128.0, "steps": 10.0}, line=2)


def test_a_trace_gives_what_its_metrics_are_computed_from() -> None:
    run = from_run(analyse(read(HYBRID)))
    assert run.aggregates.keys() <= AGGREGATES.keys()
    assert run.aggregates["runtime"] == run.runtime
    family = load_families()["hybrid-additive"]
    assert family.evaluate(run.aggregates).values == run.metrics["hybrid-additive"]


def test_a_digest_is_of_what_was_measured_and_not_of_where_it_is_written() -> None:
    elsewhere = replace(
        RUN,
        source="other.json",
        line=None,
        runtime=1.5 * (1 + 1e-9),
        parameters={"steps": 10.0, "N": 128.0},
        metrics={"mpi": {"parallel_efficiency": 0.9}},
        aggregates={"runtime": 1.5},
    )
    assert elsewhere.digest == RUN.digest


@pytest.mark.parametrize(
    "change",
    [
        {"processes": 2, "threads": 4},
        {"threads": 1},
        {"runtime": 1.5001},
        {"parameters": {"N": 256.0, "steps": 10.0}},
        {"parameters": {"N": 128.0}},
    ],
)
def test_another_run_has_another_digest(change: dict[str, object]) -> None:
    assert replace(RUN, **change).digest != RUN.digest  # type: ignore[arg-type]


@given(st.floats(1e-6, 1e6))
def test_a_runtime_of_six_digits_is_known_again(runtime: float) -> None:
    assert (
        replace(RUN, runtime=float(f"{runtime:.6g}")).digest == replace(RUN, runtime=runtime).digest
    )
