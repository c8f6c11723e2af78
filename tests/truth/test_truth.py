"""The generator of truths itself: repeatable, consistent, as far from the model as it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import Observables
from popmodel.model.predictor import Study
from popmodel.model.run.process_placement import place
from popmodel.prediction.split_choice import evaluate
from truth import FAMILIES, Truth, memory, truth
from truth.given import observables
from truth.judged import read

MAIN = "hybrid-additive"


def errors(one: Truth, folder: Path, sizes: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """Errors of predictions: of the runtime, relative, and of the parallel efficiency."""
    found = []
    study = Study(*read(one, folder), {}, 0, 0)
    for size in sizes:
        said = evaluate(study, study.sources(), *size)
        true = one.expected(*size)
        gap = said.parallel_efficiency.value - true.metrics[MAIN]["parallel_efficiency"]
        found.append((said.runtime.value / true.runtime - 1, gap))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_same_seed_gives_the_same_truth(family: str) -> None:
    one, other = truth(family, 4), truth(family, 4)

    assert one.signature == other.signature
    assert one.profile == other.profile
    assert one.run(16, 2).aggregates == other.run(16, 2).aggregates
    assert truth(family, 5).signature != one.signature


@pytest.mark.parametrize("family", FAMILIES)
def test_metrics_are_those_of_the_observables(family: str) -> None:
    truths = [truth(family, seed) for seed in range(4)]
    sizes = [(one, size) for one in truths for size in (*one.training(), *one.beyond8(), (1, 1))]
    for drawn, size in sizes:
        run = drawn.run(*size)
        observed = Observables(**observables(run))  # type: ignore[arg-type]
        aggregates = observed.aggregates()
        for name, values in run.metrics.items():
            whole = load_families()[name].evaluate(aggregates, observed.absent).values
            assert set(values) <= set(whole)
            for metric, value in values.items():
                assert value == pytest.approx(whole[metric], abs=4e-4), (size, metric)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("seed", [0, 2, 4, 8])
def test_signature_with_known_constants_predicts_what_it_describes(
    seed: int, tmp_path: Path
) -> None:
    one = truth("shared", seed).informed()

    near = errors(one, tmp_path, [*one.training(), *one.inside()[3:]])
    far = errors(one, tmp_path, [*one.beyond4(), one.beyond8()[1]])

    assert max(abs(time) for time, _ in near) < 0.04
    assert max(abs(gap) for _, gap in near) < 0.04
    assert max(abs(time) for time, _ in far) < 0.15


@pytest.mark.long
def test_terms_that_nobody_stated_are_missed(tmp_path: Path) -> None:
    missed: dict[str, list[float]] = {}
    for family in ("moderate", "hard"):
        for seed in range(6):
            one = truth(family, seed).informed()
            missed.setdefault(family, []).extend(
                abs(gap) for gap, _ in errors(one, tmp_path, one.beyond8()[1:])
            )

    assert np.median(missed["moderate"]) > 0.1
    assert np.quantile(missed["hard"], 0.9) > 0.2


def test_hard_truths_have_every_term_somewhere() -> None:
    found = {name for seed in range(20) for name in truth("hard", seed).terms.names}

    assert found == {"boundary", "socket", "root", "cache", "clock", "serial"}
    assert all(2 <= len(truth("hard", seed).terms.names) <= 4 for seed in range(20))


def test_memory_laws_have_the_limits_of_all() -> None:
    for shared in memory.OTHERS.values():
        assert shared(1, 3.0, 1.0) == pytest.approx(3.0)
        assert shared(400, 3.0, 1.0) == pytest.approx(400.0, rel=0.03)
        assert shared(8, 1e3, 1.0) == pytest.approx(1e3, rel=0.01)


def test_busy_cores_are_those_of_the_placement(tmp_path: Path) -> None:
    from truth.simulation import _active

    one = truth("shared", 4)
    for size in ((1, 1), (4, 1), (16, 1), (2, 8), (1, 16), (4, 3), (32, 1)):
        placed = place(*size, read(one, tmp_path)[1].topology)
        assert _active(one.machine, placed.per_node, size[1]) == placed.active, size


def test_grids_are_those_that_the_package_chooses(tmp_path: Path) -> None:
    for seed in range(6):
        one = truth("shared", seed)
        study = Study(*read(one, tmp_path), {}, 0, 0)
        for processes in (1, 2, 8, one.machine.cores, 8 * one.machine.cores):
            said = evaluate(study, study.sources(), processes, 1, replayed=False)
            assert said.grid == one.program.grid(processes), (seed, processes)


def test_poisoned_run_is_twice_as_long() -> None:
    one = truth("moderate", 2)
    clean = [one.run(*size) for size in one.training()]
    runs, where = one.poisoned(clean)

    assert runs[where].runtime == 2 * clean[where].runtime
    assert runs[where].metrics[MAIN] == pytest.approx(clean[where].metrics[MAIN], abs=1e-3)
    assert [run for k, run in enumerate(runs) if k != where] == [
        run for k, run in enumerate(clean) if k != where
    ]


def test_at_most_six_configurations_on_two_nodes_are_for_training() -> None:
    for family in FAMILIES:
        for seed in range(6):
            one = truth(family, seed)
            sizes = one.training()
            assert len(set(sizes)) == 6
            assert all(p * t <= 2 * one.machine.cores for p, t in sizes)
            assert not set(sizes) & {*one.inside(), *one.beyond4(), *one.beyond8()}


def test_splits_use_all_cores_and_begin_with_processes_alone() -> None:
    one = truth("moderate", 0)
    found = one.splits(8 * one.machine.cores)

    assert found[0] == (8 * one.machine.cores, 1)
    assert all(p * t == 8 * one.machine.cores for p, t in found)


def test_irregular_truths_have_what_their_signatures_do_not_name() -> None:
    one = truth("irregular", 1)
    plain = replace(one, terms=replace(one.terms, phase=0.0, tasks=0.0))
    many = 16 * one.machine.cores
    share = [
        found.expected(many, 1).metrics[MAIN]["process_load_balance"] for found in (plain, one)
    ]

    assert one.program.growth.true == 0.5
    assert "growth_exponent" not in one.signature
    assert one.terms.names == ("cache", "tasks", "phase", "adapter")
    assert share[1] < share[0] - 0.05
