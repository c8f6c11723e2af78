"""Residual terms: nothing with one process or thread, never negative, as large as their shape."""

from dataclasses import replace

import numpy as np
import pytest
from model.demo import machine
from model.test_model_error import WORK

from popmodel.model.model_error import RESIDUALS, with_residuals
from popmodel.model.run.process_placement import Placement, place
from popmodel.model.run.work import RunWork
from popmodel.model.uncertainty import Calibration, Draws

TOPOLOGY = machine().topology
SHAPES = {
    "residual.log_processes": (4.0, 16, 1),
    "residual.processes": (15.0, 16, 1),
    "residual.nodes": (3.0, 32, 1),
    "residual.domains": (1.0, 1, 8),
    "residual.serial": (0.75, 1, 4),
}
UNIT = 0.01


def drawn(name: str, mean: float, count: int = 0) -> Draws:
    known = Calibration("m", "d", (name,), np.array([mean]), np.eye(1), residuals={name: UNIT})
    return Draws({}, count, calibration=known)


def with_term(name: str, mean: float, placement: Placement) -> RunWork:
    return with_residuals(WORK, placement, drawn(name, mean), {name: UNIT})


@pytest.mark.parametrize("name", RESIDUALS)
def test_shapes_are_those_that_are_stated(name: str) -> None:
    expected, processes, threads = SHAPES[name]
    assert RESIDUALS[name].shape(place(processes, threads, TOPOLOGY)) == expected


@pytest.mark.parametrize("name", ["residual.log_processes", "residual.processes", "residual.nodes"])
def test_a_time_is_added_to_the_transfer_of_every_step(name: str) -> None:
    shape, processes, threads = SHAPES[name]
    work = with_term(name, 2.0, place(processes, threads, TOPOLOGY))
    assert work.transfer == pytest.approx(WORK.transfer + WORK.steps * 2 * UNIT * shape)
    assert work.stretched == WORK.stretched


@pytest.mark.parametrize("name", RESIDUALS)
def test_a_score_below_0_adds_nothing(name: str) -> None:
    _, processes, threads = SHAPES[name]
    work = with_term(name, -1.0, place(processes, threads, TOPOLOGY))
    assert work.transfer == WORK.transfer
    assert work.stretched == WORK.stretched


def test_draws_are_never_shorter_than_without() -> None:
    name = "residual.processes"
    work = with_residuals(WORK, place(16, 1, TOPOLOGY), drawn(name, 0.0, 200), {name: UNIT})
    assert (np.asarray(work.transfer) >= WORK.transfer).all()
    assert np.ptp(np.asarray(work.transfer)) > 0


@pytest.mark.parametrize(
    ("name", "shape"),
    [("residual.nodes", 3.0), ("residual.domains", 1.0), ("residual.serial", 0.75)],
)
def test_four_times_the_nodes_or_threads_have_a_shape_that_none_has(
    name: str, shape: float
) -> None:
    assert RESIDUALS[name].grown(0.0, 4.0) == shape


def test_domains_and_nodes_need_a_machine_that_has_several() -> None:
    one = replace(TOPOLOGY, nodes=1, domains=1)
    assert [term.is_possible(one) for term in RESIDUALS.values()] == [
        True,
        True,
        False,
        False,
        True,
    ]
    alone = replace(one, cores_per_node=1)
    assert not any(term.is_possible(alone) for term in RESIDUALS.values())
    assert all(term.is_possible(TOPOLOGY) for term in RESIDUALS.values())


@pytest.mark.parametrize("name", ["residual.log_processes", "residual.processes"])
def test_shapes_grow_with_processes_as_they_say(name: str) -> None:
    term = RESIDUALS[name]
    small, large = (term.shape(place(count, 1, TOPOLOGY)) for count in (8, 32))
    assert term.grown(small, 4.0) == pytest.approx(large)
