"""Predicted metrics fit together: any program, machine and split, all families, in every draw."""

from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from model.strategies import machines, programs

from popmodel.efficiency.family import Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.machines.profile import Profile
from popmodel.model.predictor import Study, as_replayed
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.run.process_placement import place
from popmodel.model.run.work import PARTS, ModelledObservables
from popmodel.model.signature.application import Signature
from popmodel.model.uncertainty import FIRST, nominal
from popmodel.prediction.prediction import ReferenceRun, compare

DRAWS = 20
CLOSE = 1e-9


def check_family(family: Family, modelled: ModelledObservables) -> dict[str, Any]:
    """Every identity and bound of a family, in every draw."""
    sampled = family.evaluate_samples(modelled.aggregates, modelled.absent)
    assert sampled.values.keys() | sampled.absent.keys() == family.metrics.keys()
    assert not sampled.values.keys() & sampled.absent.keys()
    known = {**modelled.aggregates, **sampled.values}
    for each in family.decompositions:
        if all(part in known for part in (each.parent, *each.parts)):
            np.testing.assert_allclose(
                known[each.parent], each.combine(known), rtol=CLOSE, atol=CLOSE
            )
    for id, values in sampled.values.items():
        metric = family.metrics[id]
        assert np.all(np.isfinite(values)), id
        assert metric.at_least is None or np.all(values >= metric.at_least - CLOSE), id
        assert metric.at_most is None or np.all(values <= metric.at_most + CLOSE), id
    return dict(sampled.values)


@pytest.mark.long
@given(
    programs(),
    machines(),
    st.integers(1, 32),
    st.integers(1, 8),
    st.sampled_from([None, ReferenceRun(2, 1), ReferenceRun(1, 2, {"N": 100.0})]),
    st.integers(0, 3),
)
def test_metrics_of_any_prediction_fit_together_in_every_draw(
    signature: Signature,
    profile: Profile,
    processes: int,
    threads: int,
    reference: ReferenceRun | None,
    seed: int,
) -> None:
    study = Study(signature, profile, {}, DRAWS, seed)
    placement = place(processes, threads, profile.topology)
    run = study.run(placement, study.sources())
    modelled = compare(study, placement, run, reference)[0]
    assert np.shape(modelled.runtime) == (FIRST + DRAWS,)
    check_everything(modelled)


@given(programs(most_steps=20, talks=True), machines(), st.integers(2, 12), st.integers(1, 4))
def test_they_fit_together_in_what_a_replay_says(
    signature: Signature, profile: Profile, processes: int, threads: int
) -> None:
    study = Study(signature, profile, {}, DRAWS, seed=0)
    placement = place(processes, threads, profile.topology)
    run = study.run(placement, study.sources())
    try:
        agreement = study.replay(placement)
    except NotUnrolled as reason:
        event(str(reason))
        return
    shown = as_replayed(placement, run, agreement.correction)
    assert nominal(shown.modelled.runtime) == pytest.approx(agreement.replay.runtime)
    check_everything(compare(study, placement, shown)[0])


def check_everything(modelled: ModelledObservables) -> None:
    metrics = {id: check_family(one, modelled) for id, one in load_families().items()}
    check_times(modelled)
    check_losses(metrics)
    check_scaling(metrics["scaling"], metrics["mpi"], modelled)


def check_times(modelled: ModelledObservables) -> None:
    """Every second of a process, and every second of a thread, is accounted for once."""
    a = modelled.aggregates
    total = sum(modelled.time[part] for part in PARTS)
    np.testing.assert_allclose(total, a["runtime"], rtol=CLOSE)
    outside = a["serial_useful_mean"] + a["in_openmp_mean"]
    np.testing.assert_allclose(outside, a["outside_mpi_mean"], rtol=CLOSE)
    idle = a["idle_serial"] + a["idle_imbalance"] + a["idle_scheduling"]
    spent = a["useful_sum"] + a["threads"] * a["mpi_mean"] + idle
    np.testing.assert_allclose(spent, a["threads"] * a["runtime"], rtol=CLOSE)


def check_losses(metrics: dict[str, dict[str, Any]]) -> None:
    """What families have in common, and that a slower network never makes a run faster."""
    additive, multiplicative = metrics["hybrid-additive"], metrics["hybrid-multiplicative"]
    np.testing.assert_allclose(
        additive["parallel_efficiency"],
        multiplicative["hybrid_parallel_efficiency"],
        rtol=CLOSE,
    )
    np.testing.assert_allclose(
        additive["parallel_efficiency"], metrics["talp"]["parallel_efficiency"], rtol=CLOSE
    )
    waits = {
        "hybrid-additive": ("process_transfer_efficiency", "process_serialisation_efficiency"),
        "hybrid-multiplicative": ("mpi_transfer_efficiency", "mpi_serialisation_efficiency"),
        "mpi": ("transfer_efficiency", "serialisation_efficiency"),
        "mpi-additive": ("transfer_efficiency", "serialisation_efficiency"),
    }
    for family, names in waits.items():
        for name in names:
            if name in metrics[family]:
                assert np.all(metrics[family][name] <= 1 + CLOSE), (family, name)
                assert np.all(metrics[family][name] > 0), (family, name)


def check_scaling(
    scaling: dict[str, Any], mpi: dict[str, Any], modelled: ModelledObservables
) -> None:
    a = modelled.aggregates
    np.testing.assert_allclose(
        scaling["global_efficiency"],
        a["useful_sum"] / a["threads"] / a["runtime"] * scaling["computation_scaling"],
        rtol=CLOSE,
    )
    np.testing.assert_allclose(
        scaling["computation_scaling"] * a["useful_sum"],
        a["work_ratio"] * a["reference_useful_sum"],
        rtol=CLOSE,
    )
    np.testing.assert_allclose(
        scaling["speedup"] * a["runtime"], a["work_ratio"] * a["reference_runtime"], rtol=CLOSE
    )
    if "instruction_scaling" in scaling:
        event("instructions are counted")
        np.testing.assert_allclose(
            scaling["computation_scaling"],
            scaling["instruction_scaling"] * scaling["ipc_scaling"] * scaling["frequency_scaling"],
            rtol=CLOSE,
        )
    if "global_efficiency" in mpi:
        np.testing.assert_allclose(
            mpi["global_efficiency"],
            mpi["parallel_efficiency"] * scaling["computation_scaling"],
            rtol=CLOSE,
        )
