"""The structure of real traces of programs whose structure is known."""

from pathlib import Path

import pytest

from popmodel.structure import find
from popmodel.trace import read

DATA = Path(__file__).parent.parent / "data"


@pytest.mark.parametrize(
    ("name", "iterations"),
    [("cg.S.2", 15), ("ft.S.4", 6), ("bt-mz.S.2x2", 60), ("is.S.4", 11)],
)
def test_iterations(name, iterations):
    found = find(read(DATA / f"{name}.prv.gz"))
    assert found.loop is not None
    assert found.loop.counts == (iterations,)
    assert len(found.iterations) == iterations + 1
