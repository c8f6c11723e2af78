"""Laws of what several runs compute: divided work, caches that it leaves, rows of a matrix."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from synthetic import Network, programs, run

import popmodel
from popmodel.base.expressions import parse
from popmodel.signatures.align_runs import Run, RunTable
from popmodel.signatures.from_runs import LearntSignature, signature_from
from popmodel.signatures.message_sizes import likely_forms
from popmodel.traces import Trace

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


def test_what_is_computed_follows_the_program_beyond_its_runs(extracted: LearntSignature) -> None:
    for processes, within in ((4, 0.02), (16, 0.02), (64, 0.1)):
        assert computed(extracted, processes) == pytest.approx(truth(processes), rel=within)


def test_phases_that_grow_alike_share_the_constants_of_their_law(
    extracted: LearntSignature,
) -> None:
    text = tomllib.loads(extracted.text)
    assert "P" in text["let"]["work"]
    sweeps = [
        extracted.amounts["seconds", point].formula
        for point, times in enumerate(extracted.fidelity.descriptions)
        if times.executions == STEPS
    ]
    assert {str(formula).partition("*")[2] for formula in sweeps} == {"work"}
    assert [law["form"] for law in extracted.laws if law["unit"] == "s"] == ["1/P", "1"]


CACHE = 150**3


def per_cell(size: int) -> float:
    """Seconds of a cell: of what a cache of random replacement lacks, two and a half times."""
    return 1e-8 * (1 + 1.5 * max(0.0, 1 - CACHE / size**3))


def beyond_cache(folder: Path, processes: int, size: int) -> Run:
    program = programs.jacobi((processes, 1, 1), 5, cells=[size] * 3, per_cell=per_cell(size))
    done = run(program, transient=0.02, seed=size + processes)
    one = done.read(folder, f"{processes}-{size}.prv")
    return Run(one, {"N": float(size)})


@pytest.mark.parametrize(("processes", "size"), [(2, 224), (4, 192)])
def test_a_size_beyond_a_cache_is_foretold(processes: int, size: int, tmp_path: Path) -> None:
    known = [(1, one) for one in (96, 128, 160, 192, 224)] + [(2, one) for one in (96, 160, 192)]
    found = signature_from([beyond_cache(tmp_path, *one) for one in known])
    assert any("/(1 + (" in law["form"] for law in found.laws)
    path = tmp_path / "app.toml"
    path.write_text(found.text)
    whole = popmodel.whatif(
        str(path), "ideal", procs=processes, threads=1, settings={"N": size}
    ).to_dict()["runs"][0]
    truth = popmodel.metrics(beyond_cache(tmp_path, processes, size).trace.path).to_dict()["runs"][
        0
    ]
    assert whole["runtime"] == pytest.approx(truth["runtime"], rel=0.1)


SIDES = ((1, 2), (2, 2), (2, 4))
OF_ROWS = "1/P + 1/2**floor(log2(P)/2)"


def of_rows(folder: Path, grid: tuple[int, int], per_row: float) -> Trace:
    program = programs.rows_and_transposes(*grid, 5, 10, per_row=per_row)
    done = run(program, persistent=0.01, transient=0.02, seed=4, network=Network())
    return done.read(folder, f"{grid[0]}x{grid[1]}.prv")


def likely(traces: Sequence[Trace]) -> tuple[str, ...]:
    return likely_forms(RunTable([Run(trace) for trace in traces]).rows, "1/P")


@pytest.mark.long(after=1)
@pytest.mark.parametrize("per_row", [2e-7, 1e-6, 4e-6])
def test_work_of_rows_halves_with_every_other_doubling(per_row: float, tmp_path: Path) -> None:
    found = signature_from([of_rows(tmp_path, grid, per_row) for grid in SIDES])
    assert any("floor(log2(P) / 2)" in law["form"] for law in found.laws)
    (tmp_path / "app.toml").write_text(found.text)
    again = popmodel.whatif(
        str(tmp_path / "app.toml"), "alpha-beta", latency=2.5e-6, procs=16, threads=1
    )
    truth = popmodel.metrics(of_rows(tmp_path, (4, 4), per_row).path).to_dict()["runs"][0]
    assert again.to_dict()["runs"][0]["runtime"] == pytest.approx(truth["runtime"], rel=0.06)


def test_work_that_is_shared_out_stays_so(tmp_path: Path) -> None:
    found = signature_from([of_rows(tmp_path, grid, 0.0) for grid in SIDES])
    assert all("floor" not in law["form"] for law in found.laws)


def test_sizes_that_stay_and_halve_in_turns_tell(tmp_path: Path) -> None:
    traces = [of_rows(tmp_path, grid, 0.0) for grid in reversed(SIDES)]
    assert likely(traces)[:2] == ("1/P", OF_ROWS)


def test_two_runs_and_other_sizes_do_not_tell(tmp_path: Path) -> None:
    assert likely([of_rows(tmp_path, grid, 0.0) for grid in SIDES[:2]]) == ("1/P",)
    for grids in (
        ((2, 2), (4, 4), (8, 8)),
        ((2, 2, 2), (2, 2, 4), (4, 4, 4)),
        ((2, 3), (3, 4), (4, 6)),
    ):
        runs = [
            run(programs.jacobi(dims, 4, cells=[960] * len(dims))).read(
                tmp_path, f"{'x'.join(map(str, dims))}.prv"
            )
            for dims in grids
        ]
        assert likely(runs) == ("1/P",), grids
