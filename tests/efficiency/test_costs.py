"""What metrics cost: shares of the loss of global efficiency."""

import math

import pytest
from efficiency.builders import observables, runs
from hypothesis import given

from popmodel.efficiency.evaluation import costs, shares
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import Observables
from popmodel.efficiency.scaling import Comparable, scale

FAMILIES = [id for id, one in load_families().items() if id != "scaling" and not one.requires]


@given(runs(), runs())
def test_costs_add_up_to_the_loss_of_global_efficiency(
    one: Observables, other: Observables
) -> None:
    for name in FAMILIES:
        family = load_families()[name]
        evaluation = family.evaluate(one.aggregates(), one.absent)
        compared = [Comparable(n, r.aggregates(), r.absent) for n, r in (("a", one), ("b", other))]
        scaling = scale(compared, mode="strong", reference=1).evaluations[0]
        factors = [evaluation.values[family.top]]
        if family.top not in family.search and not any(
            evaluation.values[id] < 1 for id in family.search
        ):
            continue  # times that TALP does not account for
        factors.append(scaling.values["computation_scaling"])
        if min(factors) < 1e-6:
            continue
        both = costs(evaluation, scaling)
        for found, whole in ((costs(evaluation), factors[:-1]), (both, factors)):
            size = sum(abs(each.cost) for each in found)
            lost = 1 - math.prod(whole)
            assert sum(each.cost for each in found) == pytest.approx(lost, abs=1e-9 * size + 1e-15)
        assert [each.cost for each in both] == sorted((each.cost for each in both), reverse=True)


def test_parts_of_a_sum_cost_what_they_lack_to_one() -> None:
    run = observables([[8], [6]], 12.0, ideal_runtime=9.0)
    evaluation = load_families()["hybrid-additive"].evaluate(run.aggregates(), run.absent)
    found = {each.metric: each.cost for each in costs(evaluation)}
    assert found == pytest.approx(
        {
            "process_load_balance": 1 / 12,
            "process_transfer_efficiency": 3 / 12,
            "process_serialisation_efficiency": 1 / 12,
            "openmp_region_efficiency": 0,
            "serial_region_efficiency": 0,
        }
    )


def test_factors_share_by_their_logarithms() -> None:
    run = observables([[8], [4]], 16.0, ideal_runtime=8.0)
    evaluation = load_families()["mpi"].evaluate(run.aggregates(), run.absent)
    found = {each.metric: each.cost for each in costs(evaluation)}
    loss = 1 - 12 / 32
    share = math.log(0.75) / math.log(12 / 32)
    assert found["load_balance"] == pytest.approx(loss * share)
    assert found["transfer_efficiency"] == pytest.approx(loss * (1 - share))
    assert found["serialisation_efficiency"] == 0


def test_a_metric_without_values_for_its_parts_costs_itself() -> None:
    run = observables([[8], [6]], 12.0)
    evaluation = load_families()["mpi"].evaluate(run.aggregates(), run.absent)
    assert {each.metric for each in costs(evaluation)} == {
        "load_balance",
        "communication_efficiency",
    }


def test_a_slower_computation_outweighs_a_little_serialisation() -> None:
    run = observables([[10]], 10.3, ideal_runtime=10.3)
    base = observables([[6.1]], 6.1, ideal_runtime=6.1)
    compared = [Comparable("a", run.aggregates()), Comparable("b", base.aggregates())]
    evaluation = load_families()["mpi"].evaluate(run.aggregates(), run.absent)
    first, second = costs(evaluation, scale(compared, reference=1).evaluations[0])[:2]
    assert (first.metric, round(first.value, 2)) == ("computation_scaling", 0.61)
    assert (second.metric, round(second.value, 2)) == ("serialisation_efficiency", 0.97)
    assert first.cost == pytest.approx(10 / 10.3 * 0.39)
    assert second.cost == pytest.approx(1 - 10 / 10.3)


@given(runs())
def test_shares_are_the_costs_of_what_nothing_explains_further(run: Observables) -> None:
    for name in FAMILIES:
        evaluation = load_families()[name].evaluate(run.aggregates(), run.absent)
        found = shares(evaluation)
        for each in costs(evaluation):
            assert found[each.metric] == pytest.approx(each.cost, abs=1e-12)


@given(runs())
def test_parts_cost_together_what_they_explain(run: Observables) -> None:
    for name in FAMILIES:
        family = load_families()[name]
        evaluation = family.evaluate(run.aggregates(), run.absent)
        found = shares(evaluation)
        assert found[family.top] == pytest.approx(1 - evaluation.values[family.top])
        for each in family.decompositions:
            if set(each.parts) | {each.parent} <= found.keys():
                parts = [found[part] for part in each.parts]
                size = 1 + sum(map(abs, parts))
                assert sum(parts) == pytest.approx(found[each.parent], abs=1e-9 * size)


@given(runs())
def test_in_an_additive_family_everything_costs_what_it_lacks_to_one(run: Observables) -> None:
    evaluation = load_families()["hybrid-additive"].evaluate(run.aggregates(), run.absent)
    lacks = {name: 1 - value for name, value in evaluation.values.items()}
    assert shares(evaluation) == pytest.approx(lacks, abs=1e-9)


def test_a_slower_computation_costs_a_share_of_what_is_useful() -> None:
    fast, slow = observables([[8]], 10.0), observables([[9]], 10.0)
    compared = [Comparable(n, r.aggregates(), r.absent) for n, r in (("a", fast), ("b", slow))]
    scaling = scale(compared, mode="strong", reference=0).evaluations[1]
    found = shares(scaling, seen=0.9)
    assert found["computation_scaling"] == pytest.approx(0.9 * (1 - 8 / 9))
    assert found["global_efficiency"] == pytest.approx(1 - 0.9 * 8 / 9)
    assert "speedup" not in found
