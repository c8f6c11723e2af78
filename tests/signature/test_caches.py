"""Traces of problems that leave a cache: the signature foretells a size on more processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic import programs, run

import popmodel
from popmodel.signature import Run, signature_from

CACHE = 150**3


def per_cell(size: int) -> float:
    """Seconds of a cell: of what a cache of random replacement lacks, two and a half times."""
    return 1e-8 * (1 + 1.5 * max(0.0, 1 - CACHE / size**3))


def traced(folder: Path, processes: int, size: int) -> Run:
    program = programs.jacobi((processes, 1, 1), 5, cells=[size] * 3, per_cell=per_cell(size))
    done = run(program, transient=0.02, seed=size + processes)
    one = done.read(folder, f"{processes}-{size}.prv")
    return Run(one, {"N": float(size)})


@pytest.mark.parametrize(("processes", "size"), [(2, 224), (4, 192)])
def test_a_size_beyond_a_cache_is_foretold(processes: int, size: int, tmp_path: Path) -> None:
    known = [(1, one) for one in (96, 128, 160, 192, 224)] + [(2, one) for one in (96, 160, 192)]
    found = signature_from([traced(tmp_path, *one) for one in known])
    assert any("/(1 + (" in law["form"] for law in found.laws)
    path = tmp_path / "app.toml"
    path.write_text(found.text)
    whole = popmodel.replay(
        str(path), "ideal", procs=processes, threads=1, settings={"N": size}
    ).to_dict()["runs"][0]
    truth = popmodel.metrics(traced(tmp_path, processes, size).trace.path).to_dict()["runs"][0]
    assert whole["runtime"] == pytest.approx(truth["runtime"], rel=0.1)
