"""The generator of truths itself: repeatable, consistent, as far from the model as it says."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import Observables
from popmodel.model.run.placement import place
from popmodel.model.study import Study
from popmodel.prediction.split_choice import evaluate
from popmodel.runs.files import read_csv
from truth import FAMILIES, Truth, memory, truth
from truth.given import observables, table
from truth.judged import read
from truth.simulation import Size, step

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


def test_repeats_differ_by_noise_only() -> None:
    one = truth("moderate", 1)
    times = np.array([one.run(16, 2, repeat=k).runtime for k in range(60)])

    logs = np.log(times / one.expected(16, 2).runtime)
    assert abs(np.median(logs)) < 0.01
    assert 0.5 * one.run_cv < logs.std() < 4 * one.run_cv


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(6))
def test_metrics_are_those_of_the_observables(family: str, seed: int) -> None:
    one = truth(family, seed)
    for size in (*one.training(), *one.beyond8(), (1, 1)):
        run = one.run(*size)
        observed = Observables(**observables(run))  # type: ignore[arg-type]
        aggregates = observed.aggregates()
        for name, values in run.metrics.items():
            whole = load_families()[name].evaluate(aggregates, observed.absent).values
            assert set(values) <= set(whole)
            for metric, value in values.items():
                assert value == pytest.approx(whole[metric], abs=4e-4), (size, metric)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(8))
def test_identities_hold_of_rounded_values(family: str, seed: int) -> None:
    one = truth(family, seed)
    for size in one.training():
        found = one.run(*size).metrics[MAIN]

        def lost(name: str, among: dict[str, float] = found) -> float:
            return 1 - among[name]

        assert lost("parallel_efficiency") == pytest.approx(
            lost("process_efficiency") + lost("thread_efficiency")
        )
        assert lost("process_efficiency") == pytest.approx(
            lost("process_load_balance") + lost("process_communication_efficiency")
        )
        assert lost("thread_efficiency") == pytest.approx(
            lost("openmp_region_efficiency") + lost("serial_region_efficiency")
        )
        assert all(0 < value <= 1 + 2e-4 for value in found.values())  # sums of rounded times
        if size[0] > 1:
            assert lost("process_communication_efficiency") == pytest.approx(
                lost("process_transfer_efficiency") + lost("process_serialisation_efficiency")
            )


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


def test_stated_intervals_hold_most_true_values() -> None:
    inside = []
    for seed in range(150):
        program = truth("moderate", seed).program
        inside += [
            one.low <= one.true <= one.high
            for one in (program.serial, program.loops[0].cycles, program.loops[0].traffic)
        ]

    assert 0.78 < np.mean(inside) < 0.92  # stated as 0.9, and not quite that good


@pytest.mark.parametrize("law", memory.OTHERS)
def test_memory_laws_have_the_limits_of_all(law: str) -> None:
    shared = memory.OTHERS[law]

    assert shared(1, 3.0, 1.0) == pytest.approx(3.0)
    assert shared(400, 3.0, 1.0) == pytest.approx(400.0, rel=0.03)
    assert shared(8, 1e3, 1.0) == pytest.approx(1e3, rel=0.01)


def test_memory_laws_differ_at_the_knee() -> None:
    powers = [memory.power(n, 4.0, 1.0, 3.0) for n in range(1, 17)]
    for law in memory.OTHERS.values():
        times = [law(n, 4.0, 1.0) for n in range(1, 17)]
        assert np.abs(np.log(np.divide(times, powers))).max() > 0.01


@pytest.mark.parametrize("size", [(1, 1), (4, 1), (16, 1), (2, 8), (1, 16), (4, 3), (32, 1)])
def test_busy_cores_are_those_of_the_placement(size: tuple[int, int], tmp_path: Path) -> None:
    from truth.simulation import _active

    one = truth("shared", 4)
    placed = place(*size, read(one, tmp_path)[1].topology)

    assert _active(one.machine, placed.per_node, size[1]) == placed.active


@pytest.mark.parametrize("seed", range(10))
def test_grids_are_those_that_the_package_chooses(seed: int, tmp_path: Path) -> None:
    one = truth("shared", seed)
    study = Study(*read(one, tmp_path), {}, 0, 0)
    for processes in (1, 2, 8, one.machine.cores, 8 * one.machine.cores):
        said = evaluate(study, study.sources(), processes, 1, replayed=False)
        assert said.grid == one.program.grid(processes)


def test_threads_share_whole_iterations() -> None:
    one = truth("shared", 0)
    useful = step(one.machine, one.program, one.terms, Size(1, 3, 100)).useful

    assert useful.shape == (len(one.program.loops), 3)
    assert useful.max() > useful.min()


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


def test_large_runs_are_cheap() -> None:
    one = truth("hard", 1)
    began = time.process_time()
    one.run(1024, 1)

    assert time.process_time() - began < 1.0  # 0.02 s, on a machine that does other things


@pytest.mark.parametrize("metrics", [False, True])
def test_tables_are_read(metrics: bool, tmp_path: Path) -> None:
    one = truth("hard", 3)
    made = [one.run(*size) for size in one.training()]
    path = tmp_path / "runs.csv"
    path.write_text(table(made, metrics))

    found = read_csv(path, ("N", "steps")).runs

    assert [run.runtime for run in found] == pytest.approx([run.runtime for run in made], rel=1e-3)
    for one_read, run in zip(found, made, strict=True):
        assert one_read.metrics.get(MAIN, {}) == (
            pytest.approx(run.metrics[MAIN], rel=1e-6) if metrics else {}
        )


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
