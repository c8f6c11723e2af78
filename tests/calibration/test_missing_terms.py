"""Residual terms before anything was measured: which there are, and how large they may be."""

from __future__ import annotations

import copy

import pytest
from calibration.small import program
from model.demo import machine

from popmodel.calibration.missing_terms import POSSIBLE, Lacking, lacking
from popmodel.machine.profile import Profile, from_document
from popmodel.model.residual import RESIDUALS
from popmodel.model.study import Study
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
SEEN = ((1, 1), (4, 1), (8, 1), (2, 4), (1, 8), (16, 2))
ALL = tuple(RESIDUALS)


def found(
    splits: tuple[tuple[int, int], ...], profile: Profile | None = None
) -> dict[str, Lacking]:
    study = Study(LOOPS, profile or machine(), {}, 0, 0)
    placements = [study.admit(*split) for split in splits]
    runs = [study.run(one, study.sources()) for one in placements]
    return lacking(placements, runs, study.profile.topology)


def share(name: str, split: tuple[int, int], unit: float) -> float:
    """Part of the runtime that a term takes in a run with one standard deviation of its score."""
    study = Study(LOOPS, machine(), {}, 0, 0)
    placement = study.admit(*split)
    run = study.run(placement, study.sources())
    work = RESIDUALS[name].added(run.work, RESIDUALS[name].shape(placement) * unit)
    more = nominal(work.transfer + work.stretched) - nominal(run.work.transfer + run.work.stretched)
    return more / nominal(run.modelled.runtime)


def test_runs_of_all_shapes_show_all_terms() -> None:
    terms = found(SEEN)
    assert tuple(terms) == ALL
    assert all(one.is_seen and one.prior == POSSIBLE for one in terms.values())


@pytest.mark.parametrize(
    ("splits", "unseen"),
    [
        (((1, 1), (4, 1), (8, 1), (2, 4)), {"residual.nodes", "residual.domains"}),
        (((4, 1), (8, 1), (16, 1)), {"residual.domains", "residual.serial"}),
        (((2, 2), (8, 2), (2, 8)), set()),
    ],
)
def test_a_term_that_no_run_has_is_possible_all_the_same(
    splits: tuple[tuple[int, int], ...], unseen: set[str]
) -> None:
    terms = found(splits)
    assert tuple(terms) == ALL
    assert {name for name, one in terms.items() if not one.is_seen} == unseen
    assert all(terms[name].prior == 1 for name in unseen)


def test_what_no_run_on_the_machine_can_have_is_no_term() -> None:
    document = copy.deepcopy(dict(machine().document))
    document["topology"]["domains"] = 1
    assert "residual.domains" not in found(((1, 1), (4, 1), (1, 8)), from_document(document))


def test_slower_teams_on_two_domains_may_take_a_tenth_of_the_loops() -> None:
    unit = found(((1, 1), (4, 1), (8, 1), (2, 4)))["residual.domains"].unit
    assert share("residual.domains", (1, 8), unit) == pytest.approx(0.1, rel=0.1)


def test_code_of_one_thread_may_take_a_tenth_of_a_run_with_a_few() -> None:
    unit = found(((4, 1), (8, 1), (16, 1)))["residual.serial"].unit
    assert share("residual.serial", (4, 4), unit) == pytest.approx(0.1, rel=0.1)


def test_times_of_nodes_may_take_a_tenth_of_a_run_of_four() -> None:
    unit = found(((1, 1), (4, 1), (8, 1)))["residual.nodes"].unit
    assert share("residual.nodes", (32, 1), unit) == pytest.approx(0.1, rel=0.1)
