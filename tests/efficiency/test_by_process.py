"""A run by process."""

from __future__ import annotations

import numpy as np
import pytest

from popmodel.efficiency.measure import UNITS, by_process
from popmodel.efficiency.observables import Observables


def observed(**changes: object) -> Observables:
    """Two processes of two threads and one of one, 10 s long."""
    facts: dict[str, object] = {
        "runtime": 10.0,
        "threads": np.array([2, 2, 1]),
        "node": np.array([0, 0, 1]),
        "useful": [4.0, 2.0, 6.0, 6.0, 9.0],
        "omp_useful": [3.0, 2.0, 5.0, 6.0, 0.0],
        "in_mpi": [1.0, 0.5, 2.0, 0.0, 1.0],
        "serial_useful": [1.0, 1.0, 9.0],
        "in_openmp": [7.0, 6.5, 0.0],
        "serial_mpi": [1.0, 2.0, 1.0],
        "has_mpi": True,
        "has_openmp": True,
        "instructions": [8.0, 4.0, 6.0, 6.0, 9.0],
        "cycles": [4.0, 2.0, 6.0, 6.0, 3.0],
        **changes,
    }
    return Observables(**facts)  # type: ignore[arg-type]


def test_every_quantity_of_a_process() -> None:
    found = by_process(observed())
    assert (found.node.tolist(), found.threads.tolist()) == ([0, 0, 1], [2, 2, 1])
    assert {name: values.tolist() for name, values in found.values.items()} == {
        "useful": [3.0, 6.0, 9.0],
        "mpi": [1.0, 2.0, 1.0],
        "in_openmp": [7.0, 6.5, 0.0],
        "serial_useful": [1.0, 1.0, 9.0],
        "instructions": [12.0, 12.0, 9.0],
        "ipc": [2.0, 1.0, 3.0],
    }
    assert set(found.values) == set(UNITS)


def test_what_the_run_does_not_have_is_not_there() -> None:
    serial = by_process(observed(has_mpi=False, has_openmp=False, instructions=None, cycles=None))
    assert set(serial.values) == {"useful"}
    assert "ipc" not in by_process(observed(cycles=None)).values
    broken = by_process(observed(absent={"instructions": "below zero"}))
    assert not {"instructions", "ipc"} & set(broken.values)


def test_a_process_that_counted_no_cycles_has_no_ipc() -> None:
    run = observed(
        useful=[4.0, 2.0, 6.0, 6.0, 0.0],
        omp_useful=[3.0, 2.0, 5.0, 6.0, 0.0],
        serial_useful=[1.0, 1.0, 0.0],
        instructions=[8.0, 4.0, 6.0, 6.0, 0.0],
        cycles=[4.0, 2.0, 6.0, 6.0, 0.0],
    )
    assert by_process(run).values["ipc"] == pytest.approx([2.0, 1.0, np.nan], nan_ok=True)
