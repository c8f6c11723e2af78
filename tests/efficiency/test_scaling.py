"""Reference, mode and the reasons given for them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from efficiency.builders import observables

from popmodel.base.errors import UsageError
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import Comparable, scale


def run(
    name: str,
    processes: int,
    runtime: float,
    useful: float,
    threads: int = 1,
    instructions: float | None = None,
    cycles: float | None = None,
) -> Comparable:
    """A run whose threads each do the same; `useful` and counters are sums over all threads."""
    each = useful / (processes * threads)
    counts = {
        counter: [total / (processes * threads)] * (processes * threads)
        for counter, total in (("instructions", instructions), ("cycles", cycles))
        if total is not None
    }
    described = observables(
        [[each] * threads] * processes,
        runtime,
        omp_useful=[[each] * threads] * processes,
        in_openmp=[each] * processes,
        **counts,
    )
    return Comparable(name, described.aggregates(), described.absent)


STRONG = (
    run("b", 4, 3.0, 10.0, instructions=11e9, cycles=6e9),
    run("a", 1, 10.0, 8.0, instructions=10e9, cycles=5e9),
)
WEAK = (
    run("a", 1, 10.0, 8.0, instructions=10e9, cycles=5e9),
    run("b", 4, 12.5, 40.0, instructions=44e9, cycles=24e9),
)


def test_strong_scaling_against_the_fewest_cores() -> None:
    scaling = scale(STRONG)
    assert (scaling.mode, scaling.reference) == ("strong", 1)
    assert scaling.why == (
        "strong scaling: total instructions stay roughly constant (in 1 of 1 runs);"
        " reference a: fewest cores (1)"
    )
    values = scaling.evaluations[0].values
    assert values == pytest.approx(
        {
            "computation_scaling": 0.8,
            "instruction_scaling": 10 / 11,
            "ipc_scaling": (11 / 6) / (10 / 5),
            "frequency_scaling": (6 / 10) / (5 / 8),
            "global_efficiency": 10 / 4 / 3 * 0.8,
            "speedup": 10 / 3,
        }
    )
    assert scaling.evaluations[1].values["global_efficiency"] == pytest.approx(0.8)


def test_weak_scaling_is_recognised_by_the_instructions() -> None:
    scaling = scale(WEAK)
    assert scaling.mode == "weak"
    assert scaling.why == (
        "weak scaling: total instructions grow with the cores (in 1 of 1 runs);"
        " work assumed proportional to the cores; reference a: fewest cores (1)"
    )
    values = scaling.evaluations[1].values
    assert values["computation_scaling"] == pytest.approx(4 * 8 / 40)
    assert values["instruction_scaling"] == pytest.approx(4 * 10 / 44)
    assert values["speedup"] == pytest.approx(4 * 10 / 12.5)


def test_no_majority_means_weak() -> None:
    base = run("a", 1, 10.0, 8.0, instructions=1e9)
    same = run("b", 4, 3.0, 8.0, instructions=1e9)
    grown = run("c", 4, 10.0, 32.0, instructions=4e9)
    assert scale([base, same, grown]).mode == "weak"
    assert scale([base, same, same, grown]).mode == "strong"


def test_runs_on_the_same_cores_do_not_vote() -> None:
    base = run("4x1", 4, 3.0, 8.0, instructions=1e9)
    split = run("2x2", 2, 3.0, 8.0, threads=2, instructions=1.5e9)
    scaling = scale([split, base])
    assert scaling.mode == "strong"
    assert scaling.why == (
        "strong scaling assumed: all runs have the same number of cores;"
        " reference 4x1: fewest cores (4), then fewest threads per process (1)"
    )


def test_without_counters_strong_scaling_is_assumed_and_counters_are_absent() -> None:
    scaling = scale([run("a", 1, 10.0, 8.0), run("b", 4, 10.0, 32.0)])
    assert scaling.mode == "strong"
    assert scaling.why.startswith("strong scaling assumed: no instruction counters; reference a")
    evaluation = scaling.evaluations[1]
    assert evaluation.values["computation_scaling"] == pytest.approx(0.25)
    assert evaluation.absent == {
        "instruction_scaling": "no hardware counter of instructions",
        "ipc_scaling": "no hardware counter of cycles; no hardware counter of instructions",
        "frequency_scaling": "no hardware counter of cycles",
    }


def test_useful_time_that_grows_with_the_cores_makes_assumed_strong_scaling_doubtful() -> None:
    one, grown = run("a", 1, 10.0, 8.0), run("b", 4, 10.0, 31.0)
    assert scale([one, grown]).doubts == (
        "the total useful time grows with the cores: if the work does too, use --scaling weak",
    )
    assert scale([one, run("b", 4, 10.0, 10.0)]).doubts == ()
    assert scale([one, grown], mode="strong").doubts == ()
    assert scale([one, grown], mode="weak").doubts == ()


def test_runs_that_are_hardly_of_one_program_are_doubted() -> None:
    for useful, scaling in ((1.0, "8"), (64.0, "0.125")):
        doubts = scale([run("a", 1, 10.0, 8.0), run("b", 1, 70.0, useful)]).doubts
        assert doubts == (
            f"implausible computation scaling of {scaling}: check that all runs are of the same "
            "program and input",
        )


def test_counters_of_the_reference_only_are_not_enough_and_the_reason_says_whose() -> None:
    with_counters = run("a", 1, 10.0, 8.0, instructions=1e9)
    scaling = scale([with_counters, run("b", 4, 3.0, 8.0)])
    assert scaling.evaluations[1].absent["instruction_scaling"] == (
        "no hardware counter of instructions"
    )
    scaling = scale([run("a", 1, 10.0, 8.0), run("b", 4, 3.0, 8.0, instructions=1e9)])
    assert scaling.evaluations[1].absent["instruction_scaling"] == (
        "no hardware counter of instructions (reference run a)"
    )


def test_a_reference_without_useful_time_is_a_reason() -> None:
    evaluation = scale((run("idle", 1, 10.0, 0.0), run("a", 2, 5.0, 8.0))).evaluations[1]
    assert "computation_scaling" not in evaluation.values
    why = evaluation.absent["computation_scaling"]
    assert why == "no useful time in the reference run idle"
    assert evaluation.values["speedup"] == pytest.approx(2.0)


def test_runs_of_which_some_compute_on_devices_are_doubted() -> None:
    offload = replace(
        STRONG[0], aggregates=STRONG[0].aggregates | {"devices": 2.0, "device_useful_sum": 4.0}
    )
    said = "computation scaling is of threads alone: b computes on devices too"
    assert said in scale((offload, STRONG[1])).doubts
    assert said not in scale((offload, offload)).doubts


def test_mode_and_reference_can_be_forced() -> None:
    scaling = scale(WEAK, mode="strong", reference=1)
    assert scaling.evaluations[0].values["computation_scaling"] == pytest.approx(40 / 8)
    assert scaling.why == "strong scaling: as requested; reference b as requested"
    weak = scale(STRONG, mode="weak")
    assert weak.why.startswith("weak scaling: as requested; work assumed proportional")


def test_work_can_be_given() -> None:
    scaling = scale(WEAK, work=[2.0, 10.0])
    assert scaling.mode == "weak"
    assert scaling.why.startswith("weak scaling: work given for each run; reference a")
    assert scaling.evaluations[1].values["computation_scaling"] == pytest.approx(5 * 8 / 40)


def test_reference_by_name_of_the_run_or_of_its_file() -> None:
    runs = [
        Comparable(f"/data/{each.name}.prv.gz", each.aggregates, each.absent) for each in STRONG
    ]
    for name in ("/data/b.prv.gz", "b.prv.gz", "b.prv"):
        assert scale(runs, reference=name).reference == 0


def test_repeated_runs_are_compared_one_by_one() -> None:
    again = run("a2", 1, 11.0, 8.8, instructions=10e9, cycles=5e9)
    scaling = scale([*STRONG, again])
    assert scaling.reference == 1
    assert scaling.why.endswith(
        "reference a: fewest cores (1), then fewest threads per process (1),"
        " the first of 2 such runs"
    )
    assert scaling.evaluations[2].values["computation_scaling"] == pytest.approx(8 / 8.8)


def test_a_single_run_is_its_own_reference() -> None:
    scaling = scale(STRONG[:1])
    assert scaling.why == (
        "strong scaling: a single run; it is its own reference, so its scaling metrics are 1"
    )
    values = scaling.evaluations[0].values
    assert {id for id, value in values.items() if value == 1.0} == {
        "computation_scaling",
        "instruction_scaling",
        "ipc_scaling",
        "frequency_scaling",
        "speedup",
    }


def test_global_efficiency_of_other_families_comes_from_the_comparison() -> None:
    scaling = scale(STRONG)
    mpi = load_families()["mpi"]
    evaluation = mpi.evaluate({**STRONG[0].aggregates, **scaling.aggregates(0)})
    assert evaluation.values["global_efficiency"] == pytest.approx(
        evaluation.values["parallel_efficiency"] * 0.8
    )
    assert scaling.absent(0) == {}
    idle = scale([run("a", 1, 10.0, 8.0), run("b", 4, 3.0, 0.0)])
    assert idle.aggregates(1) == {}
    assert idle.absent(1) == {"computation_scaling": "undefined: sum(useful) is 0"}


def test_computation_scaling_of_all_threads_is_not_for_the_families_of_masters() -> None:
    pure = run("a", 2, 10.0, 8.0)
    hybrid = replace(pure, name="b", aggregates={**pure.aggregates, "processes": 1.0})
    scaling = scale([pure, hybrid])
    assert scaling.aggregates(0) == {"computation_scaling": 1.0}
    assert scaling.aggregates(1) == {}
    assert "processes have several threads" in scaling.absent(1)["computation_scaling"]
    assert "global_efficiency" in scaling.evaluations[1].values


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"mode": "string"}, "unknown kind of scaling 'string'", "choose strong or weak"),
        (
            {"mode": "strong", "work": [1.0, 2.0]},
            "work per run is given, but in strong scaling all runs do the same work",
            "ask for weak scaling, or leave out the work",
        ),
        ({"work": [1.0]}, "work is given for 1 runs, but there are 2", "give one number per run"),
        ({"work": [1.0, 0.0]}, "the work of run a is 0", "give a positive number per run"),
        (
            {"reference": 2},
            "reference 2 is not one of the 2 runs",
            "count from 0 to 1, or give the name of a run",
        ),
        ({"reference": "c"}, "reference 'c' is not the name of a run", "runs: b, a"),
        ({"reference": "aa"}, "reference 'aa' is not the name of a run", "did you mean 'a'?"),
    ],
)
def test_wrong_requests_are_refused(given: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        scale(STRONG, **given)
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.exit_status == 2


def test_a_name_of_several_runs_is_no_reference() -> None:
    twins: Sequence[Comparable] = [STRONG[0], STRONG[0]]
    with pytest.raises(UsageError, match="reference 'b' is the name of 2 runs") as caught:
        scale(twins, reference="b")
    assert caught.value.hint == "choose the reference by its position"


def test_nothing_to_compare_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="no runs"):
        scale([])
