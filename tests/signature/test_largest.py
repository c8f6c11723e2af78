"""Blocks that cannot be divided: told from unequal processes, bound the prediction, or may."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic import Network, programs, run

import popmodel
from popmodel.signature import signature_from
from popmodel.signature.from_runs import LearntSignature
from popmodel.trace import Trace

BLOCKS = [12e-3, 6e-3, 5e-3, 4e-3, 4e-3, 3e-3, 3e-3, 2e-3, 2e-3, 2e-3, *[1e-3] * 12]
"""Of a step, s: the first is a bit more than a fifth of all."""
GRADED = [1e-3 * 1.3**one for one in range(20)]


def traced(folder: Path, processes: int, blocks: Sequence[float] = BLOCKS) -> Trace:
    done = run(programs.multi_block(processes, blocks), transient=0.02, seed=3, network=Network())
    return done.read(folder, f"{processes}.prv")


def found(
    folder: Path, processes: Sequence[int], blocks: Sequence[float] = BLOCKS
) -> LearntSignature:
    return signature_from([traced(folder, one, blocks) for one in processes])


def imbalance(one: LearntSignature) -> dict[str, Any]:
    table = tomllib.loads(one.text)["imbalance"]
    assert isinstance(table, dict)
    return table


def replayed(one: LearntSignature, folder: Path, processes: int) -> float:
    path = folder / "app.toml"
    path.write_text(one.text)
    again = popmodel.replay(str(path), "alpha-beta", latency=2.5e-6, procs=processes, threads=1)
    return float(again.to_dict()["runs"][0]["runtime"])


@pytest.mark.long(after=1)
@pytest.mark.parametrize("blocks", [BLOCKS, GRADED])
@pytest.mark.parametrize("runs", [(2, 4, 8), (2, 8), (8,)])
def test_a_block_that_more_processes_wait_for_is_foreseen(
    runs: Sequence[int], blocks: Sequence[float], tmp_path: Path
) -> None:
    one = found(tmp_path, runs, blocks)
    table = imbalance(one)["largest"]
    assert table["value"] == pytest.approx(max(blocks) / sum(blocks), rel=0.03)
    assert table["low"] <= max(blocks) / sum(blocks) <= table["high"]
    assert table["origin"] == ("fit" if len(runs) > 1 else "assumed")
    truth = popmodel.metrics(traced(tmp_path, 16, blocks).path).to_dict()["runs"][0]["runtime"]
    assert replayed(one, tmp_path, 16) == pytest.approx(truth, rel=0.04)


def test_one_that_cannot_be_told_is_in_the_interval(tmp_path: Path) -> None:
    blocks = [9e-3, *BLOCKS[1:]]
    one = found(tmp_path, (2, 4), blocks)
    table = imbalance(one)["largest"]
    assert table["value"] == 0
    assert max(blocks) / sum(blocks) <= table["high"] < 1 / 4
    assert any("a run on more of them would tell" in note for note in one.notes)
    (tmp_path / "app.toml").write_text(one.text)
    document = popmodel.predict(str(tmp_path / "app.toml"), "sandybridge-fdr", 16, 1).to_dict()
    truth = popmodel.metrics(traced(tmp_path, 16, blocks).path).to_dict()["runs"][0]["runtime"]
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
    assert "largest" not in imbalance(signature_from(runs))


@pytest.mark.parametrize("dims", [(2, 2), (4, 4)])
def test_a_grid_divides_anything(dims: tuple[int, int], tmp_path: Path) -> None:
    factors = [4.0, *[1.0] * (int(np.prod(dims)) - 1)]
    program = programs.jacobi(dims, 10, cells=(1024, 1024), factors=factors)
    one = run(program, transient=0.02, seed=9).read(tmp_path, "one.prv")
    assert "largest" not in imbalance(signature_from([one]))


def test_a_master_that_does_nothing_is_no_yardstick(tmp_path: Path) -> None:
    """All but the master have more than twice its work."""
    program = programs.master_worker(8)
    one = run(program, transient=0.02, seed=9).read(tmp_path, "one.prv")
    table = tomllib.loads(signature_from([one]).text).get("imbalance", {})
    assert table.get("largest", {"value": 0})["value"] == 0
