"""Laws of what several runs compute."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from synthetic import programs, run

from popmodel.expressions import parse
from popmodel.signature.from_runs import LearntSignature, signature_from

GRIDS = ((2, 2), (2, 4), (4, 4))
PER_CELL, CELLS, STEPS = 1e-8, (512, 512), 6


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> LearntSignature:
    """A signature from three runs of a Jacobi solver whose set-up and closing stay."""
    traces = []
    for dims in GRIDS:
        done = run(
            programs.jacobi(dims, STEPS, cells=CELLS, per_cell=PER_CELL), transient=0.01, seed=3
        )
        folder: Path = tmp_path_factory.mktemp("runs")
        traces.append(done.read(folder, f"jacobi{dims[0]}x{dims[1]}.prv"))
    return signature_from(traces)


def computed(extracted: LearntSignature, processes: int) -> float:
    """Seconds that an average process computes at some P, by the formulas of the signature."""
    text = tomllib.loads(extracted.text)
    values = {name: float(one["value"]) for name, one in text["constants"].items()}
    values |= {"P": float(processes), "T": 1.0}
    for name, formula in text["let"].items():
        values[name] = float(parse(str(formula)).evaluate(values))
    return sum(
        float(parse(str(extracted.amounts["seconds", point].formula)).evaluate(values))
        * one.executions
        for point, one in enumerate(extracted.fidelity.descriptions)
    )


def truth(processes: int) -> float:
    return 1.05 * PER_CELL * CELLS[0] * CELLS[1] * STEPS / processes + 1.6e-3


@pytest.mark.parametrize(("processes", "within"), [(4, 0.02), (16, 0.02), (64, 0.1)])
def test_what_is_computed_follows_the_program_beyond_its_runs(
    extracted: LearntSignature, processes: int, within: float
) -> None:
    assert computed(extracted, processes) == pytest.approx(truth(processes), rel=within)


def test_phases_that_grow_alike_share_the_constants_of_their_law(
    extracted: LearntSignature,
) -> None:
    text = tomllib.loads(extracted.text)
    assert "P" in text["let"]["work"]
    sweeps = [
        amount.formula
        for point, amount in (
            (p, extracted.amounts["seconds", p]) for p in range(_count(extracted))
        )
        if extracted.fidelity.descriptions[point].executions == STEPS
    ]
    assert {str(formula).partition("*")[2] for formula in sweeps} == {"work"}
    assert [law["form"] for law in extracted.laws if law["unit"] == "s"] == ["1/P", "1"]


def _count(extracted: LearntSignature) -> int:
    return len(extracted.outline.points)
