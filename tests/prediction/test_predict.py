"""Predictions: identities in every draw, limits, monotonicity, what is reported, refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import machine, program

from popmodel.base.errors import UsageError
from popmodel.efficiency.hierarchy import load_families
from popmodel.machines.profile import Profile, measuring
from popmodel.machines.quantity import Cache, Topology
from popmodel.machines.register import part_of
from popmodel.model import signatures as signature
from popmodel.model.predictor import Study
from popmodel.model.run.process_placement import place
from popmodel.model.run.work import RunWork, closed_form, observe
from popmodel.model.signature.application import Signature
from popmodel.model.symbols import LAWS
from popmodel.model.uncertainty import drawn_only
from popmodel.prediction.prediction import PredictedRun, predict

BALANCED = """
[[program]]
loop = { count = 50, body = [
  { parallel = { trip = 1000, inner = 1000, flops = 2, bytes.MEM = 8 } },
  { serial = { trip = 1000, flops = 2 } },
  { collective = { op = "allreduce", bytes = 80000 } },
] }
"""
UNEVEN = "persistent_cv = 0.05\ntransient_cv = 0.1\n"


def values(prediction: PredictedRun, family: str) -> dict[str, float]:
    return {id: estimate.value for id, estimate in prediction.metrics[family].items()}


# -- what comes out of the bundled example


@pytest.fixture(scope="module")
def cannon_run(cannon: Signature, preset: Profile) -> PredictedRun:
    # A size at which a block is as large as the usable cache.
    return predict(cannon, preset, 16, 4, {"N": 4096})


def test_metrics_without_a_value_have_a_reason(preset: Profile) -> None:
    text = "parallel = { trip = 64, inner = 1e5, flops = 2 }"
    run = predict(program(f"[[program]]\n{text}\n"), preset, 16, 4)
    absent = run.absent
    assert absent["scaling"]["instruction_scaling"] == (
        "the signature does not count all instructions (key instructions)"
    )
    for family, definition in load_families().items():
        if definition.requires:
            assert family not in run.metrics
            continue
        assert set(run.metrics[family]) | set(absent[family]) == set(definition.metrics)


# -- identities and limits


@pytest.mark.parametrize("imbalance", ["", UNEVEN])
def test_identities_hold_in_every_draw(imbalance: str, preset: Profile) -> None:
    demo = program(BALANCED, imbalance=imbalance) if imbalance else program(BALANCED)
    # evaluate_samples of a family raises if a decomposition fails in any draw
    run = predict(demo, preset, 16, 4, draws=100)
    for family in ("hybrid-additive", "hybrid-multiplicative", "mpi", "mpi-additive", "talp"):
        assert 0 < values(run, family)[load_families()[family].top] <= 1
    additive, multiplicative = values(run, "hybrid-additive"), values(run, "hybrid-multiplicative")
    assert additive["parallel_efficiency"] == pytest.approx(
        multiplicative["hybrid_parallel_efficiency"]
    )
    assert additive["parallel_efficiency"] == pytest.approx(
        additive["process_efficiency"] + additive["thread_efficiency"] - 1
    )
    assert additive["process_transfer_efficiency"] <= 1
    assert additive["process_serialisation_efficiency"] <= 1


LARGE = Topology(64, 8, 2, 2, (Cache("L3", 2**20, 4),))
works = st.builds(
    RunWork,
    serial=st.floats(0, 10),
    share=st.floats(0.1, 10),
    overhead=st.floats(0, 1),
    transfer=st.floats(0, 5),
    steps=st.floats(1, 1000),
)


@given(
    works,
    st.floats(0, 3),
    st.integers(1, 64),
    st.integers(1, 8),
    st.floats(0, 0.3),
    st.floats(0, 0.3),
)
def test_thread_time_is_useful_in_mpi_or_idle(
    work: RunWork, uneven: float, processes: int, threads: int, persistent: float, transient: float
) -> None:
    work = work._replace(stretched=work.share + (uneven if threads > 1 else 0.0))
    placement = place(processes, threads, LARGE)
    spread = {"persistent_cv": persistent, "transient_cv": transient}
    course = closed_form(work, processes, spread, has_mpi=True)
    modelled = observe(work, placement, course, has_mpi=True)
    a = modelled.aggregates
    everything = a["threads"] * a["runtime"]
    idle = a["idle_serial"] + a["idle_imbalance"] + a["idle_scheduling"]
    parts = a["useful_sum"] + a["threads"] * a["mpi_mean"] + idle
    assert parts == pytest.approx(everything)
    assert sum(modelled.time.values()) == pytest.approx(a["runtime"])
    assert a["outside_mpi_max"] <= a["ideal_runtime"] * (1 + 1e-12)
    assert a["useful_max"] <= a["runtime"] * (1 + 1e-12)
    for family in load_families().values():
        family.evaluate({name: float(value) for name, value in a.items()}, modelled.absent)


def test_a_perfect_network_transfers_in_no_time() -> None:
    free = {
        f"net__{tier}__classes__0__{name}": 1e-30
        for tier in ("intra", "inter")
        for name in ("alpha", "beta")
    }
    run = predict(program(BALANCED), machine(**free, net__nic_G=0.0, net__reduce_gamma=0.0), 16, 4)
    assert values(run, "hybrid-additive")["process_transfer_efficiency"] == pytest.approx(1.0)


def test_free_openmp_and_even_shares_make_regions_perfect() -> None:
    free = {"openmp__parallel_for__seconds__0": 0.0, "openmp__parallel_for__seconds__1": 0.0}
    run = predict(program(BALANCED), machine(**free), 16, 4)
    assert values(run, "hybrid-additive")["openmp_region_efficiency"] == pytest.approx(1.0)


@pytest.mark.long
def test_intervals_hold_nine_in_ten_of_runs_that_are_drawn_anew(preset: Profile) -> None:
    stencil = signature.load("stencil3d")
    for split in ((16, 4), (64, 1), (1, 8)):
        known = predict(stencil, preset, *split).runtime
        other = Study(stencil, preset, {}, 1000, seed=7)
        run = other.outcome(other.admit(*split), other.sources())
        drawn = drawn_only(run.modelled.runtime)
        assert known.low is not None and known.high is not None
        assert 0.86 < np.mean((known.low <= drawn) & (drawn <= known.high)) < 0.94


def test_a_law_is_an_input_with_its_error_and_where_that_comes_from() -> None:
    run = predict(program(BALANCED), machine(), 1, 1)
    assert {path for path in run.inputs if path in LAWS} == {
        "law.loops",
        "law.serial",
        "law.openmp",
    }
    law = run.inputs["law.loops"]
    assert (law.value, law.origin, law.source) == (1.0, "model", LAWS["law.loops"].source)
    assert law.low is not None and law.high is not None
    assert (law.low, law.high) == pytest.approx((0.8767, 1.1406), abs=1e-4)


def test_what_was_counted_in_source_code_is_uncertain_by_a_factor_of_four_either_way() -> None:
    by_hand = program(BALANCED)
    counted = predict(replace(by_hand, basis="source"), machine(), 2, 2)
    assert counted.inputs["law.source"].source == LAWS["law.source"].source
    assert "law.source" not in predict(by_hand, machine(), 2, 2).inputs
    runtime = counted.runtime
    assert runtime.value == predict(by_hand, machine(), 2, 2).runtime.value
    assert runtime.low is not None and runtime.high is not None
    assert 3.5 < runtime.high / runtime.value < 5.5
    assert 3.5 < runtime.value / runtime.low < 5.5


def test_what_is_to_be_measured_is_the_first_input_that_a_benchmark_measures(
    preset: Profile,
) -> None:
    run = predict(signature.load("stencil3d"), preset, 16, 4)
    paths = list(run.doubtful)
    assert paths[0].startswith("law.")
    first = next(path for path in paths if part_of(path))
    assert run.measure == measuring(preset, first)


FASTER = {
    "memory__b1": 1.5,
    "memory__bsat": 1.5,
    "core__flop_per_cycle": 2.0,
    "core__freq__1": 1.3,
    "net__inter__classes__0__alpha": 0.5,
    "net__inter__classes__0__beta": 0.5,
    "net__intra__classes__0__beta": 0.5,
    "net__nic_G": 0.5,
    "openmp__parallel_for__seconds__1": 0.5,
}


@pytest.mark.long(after=2)
@pytest.mark.parametrize("path", FASTER)
def test_a_better_part_never_slows_the_run(path: str) -> None:
    reference = machine()
    entry: Any = reference.document
    for key in path.split("__"):
        entry = entry[int(key)] if isinstance(entry, list) else entry[key]
    better = machine(**{path: entry["value"] * FASTER[path]})
    demo = program(BALANCED, imbalance=UNEVEN)
    before, after = (predict(demo, m, 16, 4, draws=0).runtime.value for m in (reference, better))
    assert after <= before * (1 + 1e-12)


def test_imbalance_is_load_balance_or_serialisation() -> None:
    always = program(BALANCED, imbalance="persistent_cv = 0.1")
    in_turns = program(BALANCED, imbalance="transient_cv = 0.1")
    slow, noisy = (
        values(predict(demo, machine(), 16, 4), "hybrid-additive") for demo in (always, in_turns)
    )
    assert slow["process_load_balance"] < 0.9
    assert slow["process_serialisation_efficiency"] == pytest.approx(1.0)
    assert noisy["process_load_balance"] > 0.97
    assert noisy["process_serialisation_efficiency"] < 0.9


# -- notes and refusals


def test_threads_without_speed_up_are_noted() -> None:
    # one core fills the memory interface of its domain, and each process has one domain
    heavy = program("[[program]]\nparallel = { trip = 800, inner = 1000, bytes.MEM = 640 }\n")
    run = predict(heavy, machine(memory__bsat=1.0001e10), 2, 4)
    assert run.multithreading_efficiency is not None
    # what a core does beside its transfers is hidden while it waits for the memory
    iteration = 640 / 1e10
    expected = (iteration + 1 / 2e9) / (4 * iteration)
    assert run.multithreading_efficiency.value == pytest.approx(expected, rel=0.01)
    assert any("the threads bring no speed-up" in note for note in run.notes)


def test_no_comparison_with_pure_mpi_where_it_cannot_run(
    cannon: Signature, preset: Profile
) -> None:
    run = predict(cannon, preset, 4, 2, draws=0)  # 8 processes are no square
    assert run.message_passing_ratio is None
    assert run.message_passing_absent is not None
    assert run.message_passing_absent.startswith("no comparison with one process per core: ")


@pytest.mark.parametrize(
    ("processes", "threads", "changes", "words", "hint"),
    [
        (12, 4, {}, "cannon cannot run with 12 processes", "possible: 9 x 4 or 16 x 4 ("),
        (4, 32, {}, "a node has 16 cores", "possible: 4 x 16 ("),
        (16, 4, {"M": 3.0}, "cannon has no parameter 'M'", "its parameters: N, w"),
        (16, 4, {"NN": 3.0}, "cannon has no parameter 'NN'", "did you mean N?"),
        (16, 4, {"N": -1.0}, "parameter N must be a number above 0, not -1", None),
        (
            16,
            4,
            {"N": 1e6},
            r"cannon needs 9\.09 TiB on a node .4 processes., a node has 32 GiB",
            "use a smaller problem or fewer processes per node",
        ),
    ],
)
def test_refusals(
    cannon: Signature,
    preset: Profile,
    processes: int,
    threads: int,
    changes: Mapping[str, float],
    words: str,
    hint: str | None,
) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        predict(cannon, preset, processes, threads, changes)
    assert (caught.value.hint or "").startswith(hint or "")


@pytest.mark.long
def test_a_prediction_needs_neither_sympy_nor_scipy() -> None:
    code = """
import sys
from popmodel.machines import profile
from popmodel.model import signatures as signature
from popmodel.prediction.prediction import predict
predict(signature.load("cannon"), profile.load(profile.DEFAULT_PRESET), 16, 4)
print(sorted({"sympy", "scipy", "pandas"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
