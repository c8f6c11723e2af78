"""Runs that ask for numbers beyond what their keys allow leave signatures that predictions take."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fit.small import MACHINE, SPLITS, runs

import popmodel
from popmodel.machines.quantity import Quantity
from popmodel.model import signatures
from popmodel.model.signature.application import Signature
from popmodel.model.uncertainty import END, score_bounds, spread
from popmodel.runs.measurement import MeasuredRow

BOUNDED = """
schema = "popmodel/signature/1"
[app]
name = "demo"
[params]
N = 1e6
hidden = {{ value = {hidden}, low = {low}, high = {high} }}
[decomp]
global = ["N"]
[imbalance]
persistent_cv = 0.01
growth_exponent = {{ value = 0.25, low = 0.0, high = 0.5 }}
[[program]]
loop = {{ count = 50 }}
[[program.body]]
parallel = {{ trip = "n0", seconds = 2e-9 }}
[[program.body]]
halo = {{ width = 1, bytes_per_cell = {bytes}, overlap = {overlap} }}
"""


def signature(
    hidden: tuple[float, float, float] = (0.5, 0.05, 0.95), overlap: str = '"hidden"', size: int = 0
) -> Signature:
    value, low, high = hidden
    text = BOUNDED.format(hidden=value, low=low, high=high, bytes=size or 200_000, overlap=overlap)
    return signatures.from_text(text)


def measured(cv: Mapping[int, float], size: int) -> list[MeasuredRow]:
    """Runs whose imbalance is as said of each number of processes, and their messages."""
    found = []
    for split in SPLITS:
        own = signature((1e-9, 0, 1e-9), size=size).with_imbalance({"persistent": cv[split[0]]})
        own = replace(own, imbalance={"persistent_cv": own.imbalance["persistent_cv"]})
        found += runs(own, {"hidden": 1e-9}, [split], metrics=True)
    return [replace(run, source=f"run-{k}.prv") for k, run in enumerate(found)]


@pytest.mark.long
@pytest.mark.parametrize("faster", [1e4, 1])
def test_numbers_end_where_their_keys_do(faster: float, tmp_path: Path) -> None:
    given = measured({p: 0.01 * p for p, _ in SPLITS}, int(200_000 / faster))
    before = tmp_path / "before.toml"
    text = BOUNDED.format(hidden=0.5, low=0.05, high=0.95, bytes=200_000, overlap='"hidden"')
    before.write_text(text)
    table = tmp_path / "runs.csv"
    names = ["load_balance", "transfer_efficiency", "communication_efficiency"]
    rows = [
        [run.processes, run.threads, run.runtime]
        + [run.metrics["hybrid-additive"].get(f"process_{name}", "") for name in names]
        for run in given
    ]
    head = ["processes", "threads", "runtime", *(f"process_{name}" for name in names)]
    table.write_text("\n".join(",".join(map(str, row)) for row in [head, *rows]) + "\n")
    MACHINE.save(tmp_path / "m.json")
    machine = tmp_path / "m.json"
    found = popmodel.signature([before, table], machine=machine)
    growth = found.signature.imbalance["growth_exponent"]
    assert growth.value == 0.5  # the runs ask for 1
    assert growth.low is not None
    assert growth.low < growth.high == 0.5
    found.save(tmp_path / "after.toml")
    for processes, threads in ((2, 1), (64, 4)):
        there = popmodel.predict(
            tmp_path / "after.toml", machine=machine, procs=processes, threads=threads
        )
        assert there.runtime.low is not None
    again = popmodel.signature([tmp_path / "after.toml", slower(table)], machine=machine)
    assert again.signature.imbalance["growth_exponent"].value == 0.5


def slower(table: Path) -> Path:
    """The same runs a little slower: other ones."""
    lines = table.read_text().splitlines()
    other = table.with_name("others.csv")
    rows = [line.split(",") for line in lines[1:]]
    rows = [[*row[:2], str(float(row[2]) * 1.001), *row[3:]] for row in rows]
    other.write_text("\n".join([lines[0], *map(",".join, rows)]) + "\n")
    return other


@pytest.mark.parametrize(
    "quantity",
    [
        Quantity(0.5, 0.05, 0.95, least=0, most=1),
        Quantity(0.25, 0.0, 0.5, least=0, most=0.5),
        Quantity(0.5, 0.4, 0.5, least=0, most=0.5),
        Quantity(2.0, 1.5, 4.0, least=1),
        Quantity(-0.2, -0.5, 0.1, least=-1, most=1),
    ],
)
def test_scores_reach_the_bounds_and_no_farther(quantity: Quantity) -> None:
    low, high = score_bounds(quantity)
    least = max(quantity.least, min(quantity.low or 0, 0)) if low > -np.inf else quantity.least
    for bound, end in ((least, low), (quantity.most, high)):
        if np.isfinite(end):
            at = spread(quantity, np.array([end, end * 0.999, end * 2]))
            assert at[0] == pytest.approx(bound)
            assert end == 0 or at[1] != at[0]
            assert at[2] == pytest.approx(bound)
    drawn = spread(quantity, np.linspace(-4, 4, 99) * END)
    assert quantity.least <= drawn.min()
    assert drawn.max() <= quantity.most
