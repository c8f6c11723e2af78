"""A run by process."""

import numpy as np

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


def columns(run: Observables) -> dict[str, list[float | None]]:
    rows = by_process(run)
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_every_quantity_of_a_process() -> None:
    assert columns(observed()) == {
        "process": [0, 1, 2],
        "node": [0, 0, 1],
        "threads": [2, 2, 1],
        "useful": [3.0, 6.0, 9.0],
        "mpi": [1.0, 2.0, 1.0],
        "in_openmp": [7.0, 6.5, 0.0],
        "serial_useful": [1.0, 1.0, 9.0],
        "instructions": [12.0, 12.0, 9.0],
        "ipc": [2.0, 1.0, 3.0],
    }


def test_what_the_run_does_not_have_is_not_there() -> None:
    def absent(**changes: object) -> set[str]:
        return {name for name, values in columns(observed(**changes)).items() if None in values}

    serial = absent(has_mpi=False, has_openmp=False, instructions=None, cycles=None)
    assert serial == set(UNITS) - {"useful"}
    assert absent(cycles=None) == {"ipc"}
    assert absent(absent={"instructions": "below zero"}) == {"instructions", "ipc"}


def test_a_process_that_counted_no_cycles_has_no_ipc() -> None:
    run = observed(
        useful=[4.0, 2.0, 6.0, 6.0, 0.0],
        omp_useful=[3.0, 2.0, 5.0, 6.0, 0.0],
        serial_useful=[1.0, 1.0, 0.0],
        instructions=[8.0, 4.0, 6.0, 6.0, 0.0],
        cycles=[4.0, 2.0, 6.0, 6.0, 0.0],
    )
    assert columns(run)["ipc"] == [2.0, 1.0, None]
