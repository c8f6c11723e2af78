"""Imbalance of several runs: its growth is found again, as are blocks that cannot be divided."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model.demo import machine
from synthetic import Network, programs, run, spread

import popmodel
from popmodel.fit.samples import Sample
from popmodel.model.predictor import Study
from popmodel.model.signatures import from_text
from popmodel.signatures import signature_from
from popmodel.signatures.from_runs import LearntSignature
from popmodel.signatures.imbalance import work_shares
from popmodel.structure.iterations import find
from popmodel.structure.structure import Structure
from popmodel.traces import Trace

STEPS = 10


def traced(folder: Path, dims: Sequence[int], cv: float, transient: float = 0.02) -> Trace:
    processes = int(np.prod(dims))
    factors = spread(processes, cv, seed=5)
    program = programs.jacobi(dims, STEPS, cells=(2048, 2048), factors=factors)
    name = f"{'x'.join(map(str, dims))}.prv"
    return run(program, transient=transient, seed=9).read(folder, name)


def variation(structure: Structure) -> Sample | None:
    shares = work_shares(structure, 1, {})
    return None if shares is None else shares.variation()


def document(runs: Sequence[Trace]) -> Mapping[str, Any]:
    return tomllib.loads(signature_from(runs).text)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("exponent", [0.1, 0.45])
def test_the_growth_of_imbalance_is_within_its_interval(exponent: float, tmp_path: Path) -> None:
    runs = [
        traced(tmp_path, dims, 0.04 * (np.prod(dims) / 4) ** exponent)
        for dims in ((2, 2), (4, 4), (8, 8))
    ]
    grows = document(runs)["imbalance"]["growth_exponent"]
    assert grows["origin"] == "fit"
    assert grows["low"] <= exponent <= grows["high"]
    assert grows["high"] - grows["low"] < 0.5


def test_imbalance_at_other_processes_is_predicted_by_its_law(tmp_path: Path) -> None:
    runs = [
        traced(tmp_path, dims, 0.04 * np.sqrt(np.prod(dims) / 4))
        for dims in ((2, 2), (4, 4), (8, 8))
    ]
    found = signature_from(runs)
    study = Study(from_text(found.text), machine(), {}, 0, 0)
    done = study.run(study.admit(64, 1), study.sources())
    balance = float(np.ravel(done.modelled.aggregates["useful_mean"])[0]) / float(
        np.ravel(done.modelled.aggregates["useful_max"])[0]
    )
    truth = 1 / (1 + 0.04 * 4 * 2.4)  # the largest of 64 lies 2.4 deviations above the mean
    assert balance == pytest.approx(truth, abs=0.06)


def test_one_run_assumes_the_growth_and_says_so(tmp_path: Path) -> None:
    table = document([traced(tmp_path, (2, 2), 0.05)])["imbalance"]
    assert table["reference_processes"] == 4
    grows = table["growth_exponent"]
    assert (grows["low"], grows["high"], grows["origin"]) == (0, 0.5, "assumed")


def test_processes_that_do_not_differ_have_no_table(tmp_path: Path) -> None:
    assert "imbalance" not in document([traced(tmp_path, (2, 2), 0.0, transient=0.0)])


def test_what_differs_by_chance_only_is_no_imbalance(tmp_path: Path) -> None:
    lasting = variation(find(traced(tmp_path, (4, 4), 0.06, transient=0.1)))
    assert lasting is not None
    assert lasting.value == pytest.approx(0.06, rel=0.35)
    chance = variation(find(traced(tmp_path, (4, 4), 0.0, transient=0.1)))
    assert chance is not None
    assert chance.value < lasting.value / 2


def test_one_process_has_no_imbalance(tmp_path: Path) -> None:
    assert variation(find(traced(tmp_path, (1, 1), 0.0))) is None


def test_processes_that_do_different_things_have_no_law(tmp_path: Path) -> None:
    done = run(programs.master_worker(4, 12, rounds=4), seed=1).read(tmp_path)
    assert variation(find(done)) is None


BLOCKS = [12e-3, 6e-3, 5e-3, 4e-3, 4e-3, 3e-3, 3e-3, 2e-3, 2e-3, 2e-3, *[1e-3] * 12]
"""Of a step, s: the first is a bit more than a fifth of all."""
GRADED = [1e-3 * 1.3**one for one in range(20)]


def with_blocks(folder: Path, processes: int, blocks: Sequence[float] = BLOCKS) -> Trace:
    done = run(programs.multi_block(processes, blocks), transient=0.02, seed=3, network=Network())
    return done.read(folder, f"{processes}.prv")


def found(
    folder: Path, processes: Sequence[int], blocks: Sequence[float] = BLOCKS
) -> LearntSignature:
    return signature_from([with_blocks(folder, one, blocks) for one in processes])


def table_of(one: LearntSignature) -> dict[str, Any]:
    table = tomllib.loads(one.text)["imbalance"]
    assert isinstance(table, dict)
    return table


def replayed(one: LearntSignature, folder: Path, processes: int) -> float:
    path = folder / "app.toml"
    path.write_text(one.text)
    again = popmodel.whatif(str(path), "alpha-beta", latency=2.5e-6, procs=processes, threads=1)
    return float(again.to_dict()["runs"][0]["runtime"])


@pytest.mark.long(after=1)
@pytest.mark.parametrize("blocks", [BLOCKS, GRADED])
@pytest.mark.parametrize("runs", [(2, 4, 8), (2, 8), (8,)])
def test_a_block_that_more_processes_wait_for_is_foreseen(
    runs: Sequence[int], blocks: Sequence[float], tmp_path: Path
) -> None:
    one = found(tmp_path, runs, blocks)
    table = table_of(one)["largest"]
    assert table["value"] == pytest.approx(max(blocks) / sum(blocks), rel=0.03)
    assert table["low"] <= max(blocks) / sum(blocks) <= table["high"]
    assert table["origin"] == ("fit" if len(runs) > 1 else "assumed")
    truth = popmodel.metrics(with_blocks(tmp_path, 16, blocks).path).to_dict()["runs"][0]["runtime"]
    assert replayed(one, tmp_path, 16) == pytest.approx(truth, rel=0.04)


def test_one_that_cannot_be_told_is_in_the_interval(tmp_path: Path) -> None:
    blocks = [9e-3, *BLOCKS[1:]]
    one = found(tmp_path, (2, 4), blocks)
    table = table_of(one)["largest"]
    assert table["value"] == 0
    assert max(blocks) / sum(blocks) <= table["high"] < 1 / 4
    assert any("a run on more of them would tell" in note for note in one.notes)
    (tmp_path / "app.toml").write_text(one.text)
    document = popmodel.predict(str(tmp_path / "app.toml"), procs=16).to_dict()
    truth = popmodel.metrics(with_blocks(tmp_path, 16, blocks).path).to_dict()["runs"][0]["runtime"]
    assert document["runtime"]["low"] <= truth <= document["runtime"]["high"]


def test_more_processes_that_divide_the_slowest_speak_against_a_block(tmp_path: Path) -> None:
    """A dense corner of a grid, whose work goes with 1/P as that of all."""
    factors = [5.0, 1.0, 1.0, 1.0]
    runs = [
        run(
            programs.jacobi(dims, 10, cells=(1024, 1024), factors=list(np.repeat(factors, times))),
            transient=0.02,
            seed=9,
        ).read(tmp_path, f"{times}.prv")
        for times, dims in ((1, (2, 2)), (2, (2, 4)))
    ]
    assert "largest" not in table_of(signature_from(runs))


@pytest.mark.parametrize("dims", [(2, 2), (4, 4)])
def test_a_grid_divides_anything(dims: tuple[int, int], tmp_path: Path) -> None:
    factors = [4.0, *[1.0] * (int(np.prod(dims)) - 1)]
    program = programs.jacobi(dims, 10, cells=(1024, 1024), factors=factors)
    one = run(program, transient=0.02, seed=9).read(tmp_path, "one.prv")
    assert "largest" not in table_of(signature_from([one]))


def test_a_master_that_does_nothing_is_no_yardstick(tmp_path: Path) -> None:
    """All but the master have more than twice its work."""
    program = programs.master_worker(8)
    one = run(program, transient=0.02, seed=9).read(tmp_path, "one.prv")
    table = tomllib.loads(signature_from([one]).text).get("imbalance", {})
    assert table.get("largest", {"value": 0})["value"] == 0
