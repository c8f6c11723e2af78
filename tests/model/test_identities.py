"""Predicted metrics fit together: any program, machine and split, all families, in every draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from model.demo import machine, program

from popmodel.efficiency.family import Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.machine import profile as profiles
from popmodel.machine.profile import Profile
from popmodel.model.replayed.exchange import NotUnrolled
from popmodel.model.run.observe import PARTS, Modelled
from popmodel.model.run.placement import place
from popmodel.model.scaling import ReferenceRun, compare
from popmodel.model.signature.program import Signature
from popmodel.model.study import Study
from popmodel.model.uncertainty import nominal

DRAWS = 20
CLOSE = 1e-9

count = st.integers(1, 2000)
size = st.sampled_from([1, 8, 1000, 1e5, 1e7])
few = st.sampled_from([0, 1, 4])
duration = st.sampled_from([1e-7, 1e-5, 1e-3])


@st.composite
def costs(draw: st.DrawFn) -> str:
    kinds = ("flops", "loads", "stores", "bytes.MEM", "bytes.L3")
    given = {kind: draw(few) for kind in kinds if draw(st.booleans())} or {"flops": 2}
    return ", ".join(f"{kind} = {value}" for kind, value in given.items())


@st.composite
def parallel(draw: st.DrawFn) -> str:
    text = f'trip = "N/P", inner = {draw(count)}, {draw(costs())}'
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["static", "dynamic", "guided"]))
        text += f', schedule = "{kind}", chunk = {draw(st.integers(1, 50))}'
    if draw(st.booleans()):
        text += f", constructs = {{ parallel_for = {draw(few)}, barrier = {draw(few)} }}"
    if draw(st.booleans()):
        text += f", critical = {{ entries = {draw(count)}, seconds = {draw(duration)} }}"
    return f"parallel = {{ {text} }}"


@st.composite
def communication(draw: st.DrawFn) -> str:
    bytes_ = draw(size)
    kind = draw(st.sampled_from(["halo", "shift", "p2p", "collective", "pipeline"]))
    return {
        "halo": f"halo = {{ width = 1, bytes_per_cell = {draw(st.integers(1, 80))}, mode = "
        f'"{draw(st.sampled_from(["nonblocking", "blocking"]))}", '
        f'pack = "{draw(st.sampled_from(["serial", "parallel", "none"]))}", '
        f"overlap = {draw(st.floats(0, 1))} }}",
        "shift": f"shift = {{ dim = 0, by = 1, bytes = {bytes_} }}",
        "p2p": f'p2p = {{ to = "rank + 1", bytes = {bytes_}, '
        f'mode = "{draw(st.sampled_from(["send", "sendrecv"]))}" }}',
        "collective": f'collective = {{ op = "{draw(st.sampled_from(OPERATIONS))}", '
        f"bytes = {bytes_}, every = {draw(st.integers(1, 5))} }}",
        "pipeline": f"pipeline = {{ dims = [0, 1], blocks = {draw(st.integers(1, 20))}, "
        f"seconds = {draw(duration)}, bytes = {bytes_} }}",
    }[kind]


OPERATIONS = ["barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall"]
serial = costs().map(lambda text: f'serial = {{ trip = "N", {text} }}')
task = st.builds("task = {{ count = {}, seconds = {} }}".format, count, duration)
item = st.one_of(parallel(), parallel(), serial, task, communication(), communication())


@st.composite
def programs(draw: st.DrawFn, most_steps: int = 2000, *, talks: bool = False) -> Signature:
    """Any program that computes; half of them with imbalance, some without communication."""
    body = [draw(parallel()), *draw(st.lists(item, max_size=4))]
    body += [draw(communication())] if talks else []
    if draw(st.booleans()):
        body = [
            one.replace("trip = ", f"instructions = {draw(st.integers(1, 9))}, trip = ")
            for one in body
        ]
    spread = {name: draw(st.floats(0, 0.2)) for name in ("persistent_cv", "transient_cv")} | {
        "reference_processes": draw(st.integers(1, 16)),
        "growth_exponent": draw(st.floats(0, 0.5)),
    }
    imbalance = "\n".join(
        f"{name} = {{ value = {value}, low = {value / 2}, high = {1.5 * value} }}"
        if name.endswith("cv") and value
        else f"{name} = {value}"
        for name, value in spread.items()
    )
    sections = {"imbalance": imbalance} if draw(st.booleans()) else {}
    loop = f"[[program]]\nloop = {{ count = {draw(st.integers(1, most_steps))}, body = [\n"
    return program(
        loop + "".join(f"  {{ {one} }},\n" for one in body) + "] }\n",
        params=f"N = {draw(st.integers(64, 100000))}\n",
        decomp='global = ["N", "N"]\ngrid = "auto"\nperiodic = [false, true]\n',
        **sections,
    )


@st.composite
def machines(draw: st.DrawFn) -> Profile:
    """A machine whose quantities are some times larger or smaller, and uncertain."""
    document: dict[str, Any] = dict(machine().document)
    chunks = {
        f"{kind}_chunk": {"T": [1, 8], "seconds": [{"value": 2e-8}, {"value": 8e-8}]}
        for kind in ("dynamic", "guided")
    }
    others = {
        name: {"T": [1, 8], "seconds": [{"value": 1e-8}, {"value": 2e-7}]}
        for name in ("critical", "task", "parallel")
    }
    document["openmp"] = document["openmp"] | chunks | others
    document["core"] = document["core"] | {"freq": {"1": {"value": 2e9}, "8": {"value": 1.6e9}}}
    document["memory"] = document["memory"] | {"copy_bw": {"value": 5e9}}
    document["topology"] = document["topology"] | {"nodes": 32}
    factors = st.sampled_from([0.1, 0.5, 1.0, 3.0])

    def changed(entry: Any, factor: float) -> Any:
        if isinstance(entry, list):
            return [changed(each, factor) for each in entry]
        if not isinstance(entry, dict):
            return entry
        if "value" in entry:
            value = entry["value"] * factor
            return {"value": value, "low": value / 1.3, "high": value * 1.3}
        return {key: changed(each, factor) for key, each in entry.items()}

    for section in ("core", "openmp", "net"):
        document[section] = changed(document[section], draw(factors))
    memory = changed(document["memory"], 1.0)
    document["memory"] = memory | {"q": {"value": 8.0}}
    return profiles.from_document(document)


def check_family(family: Family, modelled: Modelled) -> dict[str, Any]:
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


@settings(max_examples=150, deadline=None)
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
    modelled = compare(study, placement, run, reference).modelled
    assert np.shape(modelled.runtime) == (DRAWS + 1,)
    check_everything(modelled)


@settings(max_examples=40, deadline=None)
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
    event(f"replay shown: {agreement.trusts_replay}")
    # whether it would be shown or not: what it says has to fit together
    shown = study.as_replayed(placement, run, agreement)
    assert nominal(shown.modelled.runtime) == pytest.approx(agreement.replay.runtime)
    check_everything(compare(study, placement, shown).modelled)


def check_everything(modelled: Modelled) -> None:
    metrics = {id: check_family(one, modelled) for id, one in load_families().items()}
    check_times(modelled)
    check_losses(metrics)
    check_scaling(metrics["scaling"], metrics["mpi"], modelled)


def check_times(modelled: Modelled) -> None:
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


def check_scaling(scaling: dict[str, Any], mpi: dict[str, Any], modelled: Modelled) -> None:
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
