"""What a measured run is, and how much its efficiencies vary from run to run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.efficiency.family import AGGREGATES
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse
from popmodel.runs.measurement import (
    LEAST_NOISE,
    NOISE_OF_LOSS,
    MeasuredRow,
    deviation_of_loss,
    deviation_of_metric,
    from_run,
)
from popmodel.traces import read

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


def test_a_loss_varies_relative_to_itself_and_at_least_by_a_part_of_the_runtime() -> None:
    noise = 0.02
    assert deviation_of_loss(noise, 0.0) == pytest.approx(LEAST_NOISE * noise)
    assert deviation_of_loss(noise, 0.9) == pytest.approx(NOISE_OF_LOSS * noise * 0.9, rel=0.01)
    assert deviation_of_loss(0.0, 0.9) == 0.0


def test_an_efficiency_varies_as_its_known_leaves_and_a_ratio_of_runs_as_two_times() -> None:
    noise, families = 0.02, load_families()
    leaves = {
        "process_load_balance": 0.95,
        "process_transfer_efficiency": 0.97,
        "process_serialisation_efficiency": 0.99,
    }
    values = {**leaves, "process_communication_efficiency": 0.96, "process_efficiency": 0.91}
    family, together = families["hybrid-additive"], math.hypot(0.05, 0.03, 0.01)
    found = deviation_of_metric(noise, family, "process_efficiency", values)
    assert found == pytest.approx(deviation_of_loss(noise, together))
    del values["process_serialisation_efficiency"]  # the part is a leaf then
    found = deviation_of_metric(noise, family, "process_communication_efficiency", values)
    assert found == pytest.approx(deviation_of_loss(noise, 0.04))
    scaled = {"computation_scaling": 0.8}
    found = deviation_of_metric(noise, families["scaling"], "computation_scaling", scaled)
    assert found == pytest.approx(math.sqrt(2) * noise * 0.8)
