"""Residual terms before anything was measured: which there are, and how large they may be."""

import copy

import pytest
from fit.small import program
from model.demo import machine

from popmodel.fit.problem import POSSIBLE, MissingTerm, missing_terms
from popmodel.machines.profile import Profile, from_document
from popmodel.model.model_error import RESIDUALS
from popmodel.model.predictor import Study
from popmodel.model.uncertainty import nominal

LOOPS = program(
    """
[[program]]
loop = { count = 50 }
[[program.body]]
parallel = { trip = "N / P", seconds = "rate" }
[[program.body]]
collective = { op = "allreduce", bytes = 8 }
""",
    rate=2e-7,
)


def found(
    splits: tuple[tuple[int, int], ...], profile: Profile | None = None
) -> dict[str, MissingTerm]:
    study = Study(LOOPS, profile or machine(), {}, 0, 0)
    placements = [study.admit(*split) for split in splits]
    runs = [study.run(one, study.sources()) for one in placements]
    return missing_terms(placements, runs, study.profile.topology)


def share(name: str, split: tuple[int, int], unit: float) -> float:
    """Part of the runtime that a term takes in a run with one standard deviation of its score."""
    study = Study(LOOPS, machine(), {}, 0, 0)
    placement = study.admit(*split)
    run = study.run(placement, study.sources())
    work = RESIDUALS[name].added(run.work, RESIDUALS[name].shape(placement) * unit)
    more = nominal(work.transfer + work.stretched) - nominal(run.work.transfer + run.work.stretched)
    return more / nominal(run.modelled.runtime)


def test_a_term_that_no_run_has_is_possible_all_the_same() -> None:
    for splits, unseen in (
        (((1, 1), (4, 1), (8, 1), (2, 4), (1, 8), (16, 2)), set()),
        (((1, 1), (4, 1), (8, 1), (2, 4)), {"residual.nodes", "residual.domains"}),
        (((4, 1), (8, 1), (16, 1)), {"residual.domains", "residual.serial"}),
    ):
        terms = found(splits)
        assert tuple(terms) == tuple(RESIDUALS)
        assert {name for name, one in terms.items() if not one.is_seen} == unseen
        for name, one in terms.items():
            assert one.prior == (1 if name in unseen else POSSIBLE)


def test_what_no_run_on_the_machine_can_have_is_no_term() -> None:
    document = copy.deepcopy(dict(machine().document))
    document["topology"]["domains"] = 1
    assert "residual.domains" not in found(((1, 1), (4, 1), (1, 8)), from_document(document))


def test_a_term_may_take_a_tenth_of_the_run_where_it_is_looked_at() -> None:
    for splits, name, split in (
        (((1, 1), (4, 1), (8, 1), (2, 4)), "residual.domains", (1, 8)),
        (((4, 1), (8, 1), (16, 1)), "residual.serial", (4, 4)),
        (((1, 1), (4, 1), (8, 1)), "residual.nodes", (32, 1)),
    ):
        unit = found(splits)[name].unit
        assert share(name, split, unit) == pytest.approx(0.1, rel=0.1), name
