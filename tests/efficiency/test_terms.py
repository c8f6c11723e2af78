"""The runtime as a sum of useful time and losses."""

from pathlib import Path

import numpy as np
import pytest

from popmodel.efficiency.evaluation import TERMS, leaves, terms
from popmodel.efficiency.evaluation import TERMS_FAMILY as FAMILY
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse
from popmodel.traces import read

HYBRID = Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz"


def test_by_hand() -> None:
    found = terms(2.0, {"parallel_efficiency": 0.5, "process_load_balance": 0.75})
    assert found == {"useful": 1.0, "imbalance": 0.5}


def test_over_draws() -> None:
    found = terms(np.array([2.0, 4.0]), {"openmp_region_efficiency": np.array([0.5, 0.75])})
    assert np.array_equal(found["regions"], [1.0, 1.0])


def test_those_of_a_traced_run_add_up_to_its_runtime() -> None:
    observed = analyse(read(HYBRID)).observables
    aggregates = observed.aggregates()
    metrics = load_families()[FAMILY].evaluate(aggregates, observed.absent).values
    found = terms(aggregates["runtime"], metrics)
    assert [term.name for term in leaves(found)] == [
        *("useful", "imbalance", "transfer", "serialisation", "regions", "serial")
    ]
    total = sum(found[term.name] for term in leaves(found))
    assert total == pytest.approx(aggregates["runtime"], rel=1e-9)


def test_without_a_replay_communication_is_one_term() -> None:
    found = terms(1.0, {"process_communication_efficiency": 0.9, "parallel_efficiency": 0.8})
    assert [term.name for term in leaves(found)] == ["useful", "communication"]
    both = {"process_transfer_efficiency": 0.95, "process_serialisation_efficiency": 0.95}
    parted = terms(1.0, {**both, "process_communication_efficiency": 0.9})
    assert [term.name for term in leaves(parted)] == ["transfer", "serialisation"]


def test_every_term_is_a_leaf_of_the_family_or_above_two() -> None:
    assert {term.metric for term in TERMS} <= set(load_families()[FAMILY].metrics)
