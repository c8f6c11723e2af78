"""Rows and columns of a matrix: told by sizes of messages, taken for work that goes in steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from synthetic import Network, programs, run

import popmodel
from popmodel.signature import signature_from
from popmodel.signature.align_runs import Run, RunTable
from popmodel.signature.message_sizes import likely_forms
from popmodel.trace import Trace

GRIDS = ((1, 2), (2, 2), (2, 4))
OF_ROWS = "1/P + 1/2**floor(log2(P)/2)"


def traced(folder: Path, grid: tuple[int, int], per_row: float) -> Trace:
    program = programs.rows_and_transposes(*grid, 5, 10, per_row=per_row)
    done = run(program, persistent=0.01, transient=0.02, seed=4, network=Network())
    return done.read(folder, f"{grid[0]}x{grid[1]}.prv")


def likely(traces: Sequence[Trace]) -> tuple[str, ...]:
    return likely_forms(RunTable([Run(trace) for trace in traces]).rows, "1/P")


@pytest.mark.long(after=1)
@pytest.mark.parametrize("per_row", [2e-7, 1e-6, 4e-6])
def test_work_of_rows_halves_with_every_other_doubling(per_row: float, tmp_path: Path) -> None:
    found = signature_from([traced(tmp_path, grid, per_row) for grid in GRIDS])
    assert any("floor(log2(P) / 2)" in law["form"] for law in found.laws)
    (tmp_path / "app.toml").write_text(found.text)
    again = popmodel.replay(
        str(tmp_path / "app.toml"), "alpha-beta", latency=2.5e-6, procs=16, threads=1
    )
    truth = popmodel.metrics(traced(tmp_path, (4, 4), per_row).path).to_dict()["runs"][0]
    assert again.to_dict()["runs"][0]["runtime"] == pytest.approx(truth["runtime"], rel=0.06)


def test_work_that_is_shared_out_stays_so(tmp_path: Path) -> None:
    found = signature_from([traced(tmp_path, grid, 0.0) for grid in GRIDS])
    assert all("floor" not in law["form"] for law in found.laws)


def test_sizes_that_stay_and_halve_in_turns_tell(tmp_path: Path) -> None:
    traces = [traced(tmp_path, grid, 0.0) for grid in reversed(GRIDS)]
    assert likely(traces)[:2] == ("1/P", OF_ROWS)


def test_two_runs_do_not_tell(tmp_path: Path) -> None:
    assert likely([traced(tmp_path, grid, 0.0) for grid in GRIDS[:2]]) == ("1/P",)


@pytest.mark.parametrize(
    "grids",
    [((2, 2), (4, 4), (8, 8)), ((2, 2, 2), (2, 2, 4), (4, 4, 4)), ((2, 3), (3, 4), (4, 6))],
)
def test_other_sizes_do_not_tell(grids: Sequence[tuple[int, ...]], tmp_path: Path) -> None:
    runs = [
        run(programs.jacobi(dims, 4, cells=[960] * len(dims))).read(
            tmp_path, f"{'x'.join(map(str, dims))}.prv"
        )
        for dims in grids
    ]
    assert likely(runs) == ("1/P",)
