"""The reference of a prediction: which run it is, what it is compared by, refusals."""

from __future__ import annotations

import pytest
from model.demo import exact, machine, program

from popmodel.base.errors import UsageError
from popmodel.machines import profile as profiles
from popmodel.machines.profile import MissingQuantity, Profile
from popmodel.model.signature.application import Signature
from popmodel.prediction.prediction import PredictedRun, ReferenceRun, predict

BODY = """
[[program]]
loop = { count = 50, body = [
  { parallel = { trip = "N", inner = 1000, flops = 2, bytes.MEM = 8 } },
  { serial = { trip = 1000, flops = 2 } },
  { collective = { op = "allreduce", bytes = 80000 } },
] }
"""
# a process has its share of the iterations; the serial code is repeated by all
SHARED = BODY.replace('"N"', '"N/P"').replace("trip = 1000,", 'trip = "1000/P",')
ARITHMETIC = SHARED.replace(", bytes.MEM = 8", "")


def demo(body: str = SHARED, **sections: str) -> Signature:
    return program(body, params="N = 1000\n", **sections)


def scaling(run: PredictedRun) -> dict[str, float]:
    return {id: estimate.value for id, estimate in run.metrics["scaling"].items()}


def reference(run: PredictedRun) -> tuple[int, int]:
    return run.reference.processes, run.reference.threads


# -- which run


def test_the_reference_is_one_thread_alone() -> None:
    run = predict(demo(), machine(), 4, 4)
    assert reference(run) == (1, 1)
    assert run.reference.why == "default"
    assert (run.reference.mode, run.reference.work_ratio.value) == ("strong", 1.0)
    alone = predict(demo(), machine(), 1, 1)
    assert run.reference.runtime == alone.runtime
    assert scaling(run)["speedup"] == pytest.approx(alone.runtime.value / run.runtime.value)


def test_what_the_application_requires_holds_for_the_reference() -> None:
    run = predict(demo(limits='require = ["P >= 3"]'), machine(), 12, 2)
    assert reference(run) == (3, 1)
    assert run.reference.why == (
        "smallest possible part of the run: demo cannot run with 1 process: it requires P >= 3"
    )


def test_a_reference_that_the_machine_is_not_known_for_is_not_taken() -> None:
    document = dict(machine().document)
    document["openmp"] = {"parallel_for": {"T": [2, 8], "seconds": [exact(1e-7), exact(4e-7)]}}
    known_from_two = profiles.from_document(document)
    run = predict(demo(), known_from_two, 2, 4)
    assert reference(run) == (1, 2)
    assert "openmp.parallel_for at 1 threads" in run.reference.why
    with pytest.raises(MissingQuantity, match="parallel_for at 1 threads"):
        predict(demo(), known_from_two, 2, 4, reference=ReferenceRun(1, 1))


def test_a_reference_can_be_asked_for() -> None:
    run = predict(demo(), machine(), 4, 4, reference=ReferenceRun(4, 1))
    assert reference(run) == (4, 1)
    assert run.reference.why == "asked for"
    document = run.to_dict()["reference"]
    assert (document["processes"], document["threads"], document["settings"]) == (4, 1, {})
    assert document["runtime"]["value"] == run.reference.runtime.value


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        (
            ReferenceRun(0, 1),
            "reference: processes: must be at least 1, not 0",
            "ask for at least 1",
        ),
        (
            ReferenceRun(1, 16),
            "reference: 1 x 16 is not possible: a node has 8 cores, fewer than 16 threads",
            "possible: 1 x 8 (processes x threads)",
        ),
        (
            ReferenceRun(1, 1, {"M": 2.0}),
            "reference: demo has no parameter 'M'",
            "its parameters: N",
        ),
        (
            ReferenceRun(3, 1),
            "reference: demo cannot run with 3 processes: it requires is_square(P)",
            "possible: 1 x 1 or 4 x 1 (processes x threads)",
        ),
        (
            ReferenceRun(1, 1, {"N": 1e6}),
            "reference: demo needs 7.28 TiB on a node (1 process), a node has 16 GiB",
            "use a smaller problem or fewer processes per node",
        ),
    ],
)
def test_refusals(wanted: ReferenceRun, message: str, hint: str) -> None:
    limits = 'require = ["is_square(P)"]\nmemory_per_rank = "8*N**2/P"'
    with pytest.raises(UsageError) as caught:
        predict(demo(limits=limits), machine(), 4, 1, reference=wanted)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_the_reference_is_replayed_like_the_run() -> None:
    # neighbours wait for each other, not all for the slowest: the closed form is too pessimistic
    ring = """
[[program]]
loop = { count = 100, body = [
  { parallel = { trip = 1000, inner = 100, flops = 2 } },
  { shift = { dim = 0, by = 1, bytes = 1000 } },
] }
"""
    waiting = program(
        ring, decomp='grid = ["P"]\nperiodic = [true]\n', imbalance="transient_cv = 0.1\n"
    )
    run = predict(waiting, machine(), 32, 1, reference=ReferenceRun(16, 1))
    smaller = predict(waiting, machine(), 16, 1)
    assert smaller.source == "replay"
    assert run.reference.runtime == smaller.runtime


# -- what it says


def test_computation_scaling_is_lost_to_the_shared_memory_and_the_clock() -> None:
    heavy = program("[[program]]\nparallel = { trip = 4000, inner = 1000, bytes.MEM = 64 }\n")
    run = predict(heavy, machine(), 1, 8)
    # 8 cores on 2 domains: 4 of them share 2 b1, so each has half of what one alone has, and what a
    # core does beside its transfers is hidden while it waits for them
    iteration = 64 / 1e10
    expected = (iteration + 1 / 2e9) / (2 * iteration)
    assert scaling(run)["computation_scaling"] == pytest.approx(expected, rel=0.01)
    assert scaling(run)["frequency_scaling"] == pytest.approx(1.0)


def test_instructions_that_all_processes_repeat_are_instruction_scaling() -> None:
    counted = ARITHMETIC.replace("flops = 2", "flops = 2, instructions = 10")
    repeated = counted.replace('trip = "1000/P"', "trip = 1e6")
    once, again = (scaling(predict(demo(body), machine(), 8, 1)) for body in (counted, repeated))
    assert once["instruction_scaling"] == pytest.approx(1.0)
    assert again["instruction_scaling"] == pytest.approx((1 + 1) / (1 + 8))
    assert again["ipc_scaling"] == pytest.approx(1.0)
    assert again["frequency_scaling"] == pytest.approx(1.0)


def test_waiting_for_memory_is_ipc_scaling() -> None:
    heavy = program(
        "[[program]]\nparallel = { trip = 4000, inner = 1000, bytes.MEM = 64, instructions = 10 }\n"
    )
    values = scaling(predict(heavy, machine(), 1, 8))
    assert values["instruction_scaling"] == pytest.approx(1.0)
    assert values["ipc_scaling"] == pytest.approx(values["computation_scaling"])
    assert values["ipc_scaling"] < 0.6


def test_what_is_common_to_both_runs_cancels(preset: Profile) -> None:
    run = predict(demo(), preset, 16, 1)
    width = {
        name: (estimate.high or estimate.value) / (estimate.low or estimate.value) - 1
        for name, estimate in {"runtime": run.runtime, **run.metrics["scaling"]}.items()
    }
    same_node = predict(demo(), preset, 16, 1, reference=ReferenceRun(16, 1))
    assert width["speedup"] > 0
    assert same_node.metrics["scaling"]["speedup"].low is None
    # the clock is uncertain, the part that a busy node loses of it is not
    assert width["frequency_scaling"] < width["runtime"] / 2


def test_another_problem_of_the_reference_is_weak_scaling() -> None:
    run = predict(
        demo(ARITHMETIC),
        machine(),
        8,
        1,
        {"N": 8000.0},
        reference=ReferenceRun(1, 1, {"N": 1000.0}),
    )
    assert run.reference.mode == "weak"
    assert run.reference.settings == {"N": 1000.0}
    assert run.reference.why == "asked for; work in operations"
    # 50 x (N x 1000 + 1000) x 2 operations
    ratio = (8000 * 1000 + 1000) / (1000 * 1000 + 1000)
    assert run.reference.work_ratio.value == pytest.approx(ratio)
    alone = predict(demo(ARITHMETIC), machine(), 1, 1, {"N": 1000.0})
    assert scaling(run)["speedup"] == pytest.approx(ratio * alone.runtime.value / run.runtime.value)
    assert scaling(run)["computation_scaling"] == pytest.approx(1.0)


def test_work_without_operations_is_taken_as_proportional_to_the_cores() -> None:
    body = '[[program]]\nparallel = { trip = "N/P", inner = 1000, bytes.MEM = 8 }\n'
    run = predict(
        demo(body), machine(), 8, 1, {"N": 8000.0}, reference=ReferenceRun(1, 1, {"N": 1})
    )
    assert run.reference.work_ratio.value == 8.0
    assert run.reference.why == (
        "asked for; work assumed proportional to the cores: "
        "the signature has no operation counts (flops)"
    )


# -- families of MPI alone


def test_masters_have_a_global_efficiency_if_they_are_all_threads() -> None:
    pure = predict(demo(), machine(), 8, 1)
    for family in ("mpi", "mpi-additive"):
        values = pure.metrics[family]
        assert values["global_efficiency"].value == pytest.approx(
            values["parallel_efficiency"].value * scaling(pure)["computation_scaling"]
        )
    for run in (
        predict(demo(), machine(), 8, 2),
        predict(demo(), machine(), 8, 1, reference=ReferenceRun(1, 2)),
    ):
        why = run.absent["mpi"]["global_efficiency"]
        assert why.startswith("processes have several threads: ")
