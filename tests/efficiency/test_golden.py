"""Worked examples of the documents that define the metrics."""

import pytest
from efficiency.builders import observables

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import Observables


def evaluate(family: str, run: Observables) -> dict[str, float]:
    return load_families()[family].evaluate(run.aggregates(), run.absent).values


def exactly(**expected: float) -> dict[str, object]:
    return {name: pytest.approx(value, rel=1e-14) for name, value in expected.items()}


def chosen(values: dict[str, float], names: dict[str, object]) -> dict[str, float]:
    return {name: values[name] for name in names}


def check(family: str, run: Observables, **expected: float) -> None:
    values = evaluate(family, run)
    assert chosen(values, exactly(**expected)) == exactly(**expected)


def test_two_processes_additive() -> None:
    run = observables([[8], [6]], 12, ideal_runtime=9.0)
    check(
        "hybrid-additive",
        run,
        process_efficiency=7 / 12,
        process_communication_efficiency=8 / 12,
        process_load_balance=11 / 12,
        process_transfer_efficiency=9 / 12,
        process_serialisation_efficiency=11 / 12,
    )
    check(
        "mpi-additive",
        run,
        parallel_efficiency=7 / 12,
        communication_efficiency=8 / 12,
        load_balance=11 / 12,
        transfer_efficiency=9 / 12,
        serialisation_efficiency=11 / 12,
    )


def test_one_process_with_three_threads() -> None:
    run = observables(
        [[13, 9, 6]], 16, omp_useful=[[9, 9, 6]], in_openmp=[12], openmp_imbalance=1.0
    )
    check(
        "hybrid-additive",
        run,
        openmp_region_efficiency=0.75,
        serial_region_efficiency=5 / 6,
        thread_efficiency=7 / 12,
    )


def test_three_processes_multiplicative() -> None:
    check(
        "mpi",
        observables([[10], [8], [6]], 12, ideal_runtime=10.0),
        parallel_efficiency=2 / 3,
        load_balance=0.8,
        communication_efficiency=5 / 6,
        transfer_efficiency=5 / 6,
        serialisation_efficiency=1.0,
    )


def test_three_processes_with_two_threads_multiplicative() -> None:
    useful = [[10, 9], [8, 7], [6, 5]]
    check(
        "hybrid-multiplicative",
        observables(useful, 12, omp_useful=useful, in_openmp=[10, 8, 6]),
        hybrid_parallel_efficiency=0.625,
        hybrid_load_balance=0.75,
        hybrid_communication_efficiency=5 / 6,
        openmp_parallel_efficiency=0.9375,
        openmp_communication_efficiency=1.0,
        openmp_load_balance=0.9375,
    )


def test_guide_figure_5_regions_that_are_unbalanced_one_by_one() -> None:
    """Two regions of 20 s, two threads: 10 and 20 s useful, then 20 and 10 s."""
    imbalance = (20 - 15) + (20 - 15)
    check(
        "hybrid-additive",
        observables(
            [[30, 30]],
            40,
            omp_useful=[[30, 30]],
            in_openmp=[40],
            openmp_imbalance=float(imbalance),
        ),
        parallel_efficiency=0.75,
        serial_region_efficiency=1.0,
        openmp_load_balance=0.75,
    )


def test_guide_figure_6_region_then_serial_code() -> None:
    """As figure 5, but the last 20 s are a balanced region of 10 s and 10 s of serial code."""
    check(
        "hybrid-additive",
        observables(
            [[30, 30]],
            40,
            omp_useful=[[20, 30]],
            in_openmp=[30],
            openmp_imbalance=float(20 - 15),
        ),
        parallel_efficiency=0.75,
        serial_region_efficiency=0.875,
        openmp_load_balance=0.875,
    )


def test_guide_figure_4_as_two_processes() -> None:
    """10 + 20 s and 20 + 10 s with a synchronisation between: balanced, but serialised."""
    check(
        "hybrid-additive",
        observables([[30], [30]], 40, ideal_runtime=40.0),
        process_load_balance=1.0,
        process_serialisation_efficiency=0.75,
        process_transfer_efficiency=1.0,
    )


def test_audit_slides_communication_efficiency() -> None:
    check("mpi", observables([[1], [4], [5]], 6), communication_efficiency=5 / 6)


def test_audit_slides_serialisation_and_transfer() -> None:
    check(
        "mpi",
        observables([[6], [3]], 12, ideal_runtime=8.0),
        serialisation_efficiency=0.75,
        transfer_efficiency=2 / 3,
    )


@pytest.mark.parametrize(
    ("useful", "load_balance"), [((2, 1, 1, 1, 1), 0.6), ((2, 2, 2, 2, 1), 0.9)]
)
def test_methodology_slides_load_balance(useful: tuple[float, ...], load_balance: float) -> None:
    check("mpi", observables([[each] for each in useful], 2), load_balance=load_balance)


def test_talp_worked_by_hand() -> None:
    """Two processes with two threads, 10 s: every second of the 40 s of thread time is known.

    ========  ======================================  ======================================
    process   master                                  worker
    ========  ======================================  ======================================
    0         2 s serial, region 6 s useful, 2 s MPI  idle 2, useful 4 idle 2 (region), idle 2
    1         4 s serial, region 3 s useful 1 s idle,  idle 4, useful 3 idle 1 (region), idle 2
              2 s MPI
    ========  ======================================  ======================================
    """
    run = observables(
        [[8, 4], [7, 3]],
        10,
        omp_useful=[[6, 4], [3, 3]],
        in_openmp=[6, 4],
        in_mpi=[2, 0, 2, 0],
        serial_mpi=[2, 2],
        idle_serial=10.0,
        idle_imbalance=2.0,
        idle_scheduling=2.0,
    )
    check(
        "talp",
        run,
        parallel_efficiency=22 / 40,
        openmp_serialisation_efficiency=30 / 40,
        openmp_load_balance=28 / 30,
        openmp_scheduling_efficiency=26 / 28,
        openmp_parallel_efficiency=26 / 40,
        mpi_parallel_efficiency=0.9,
        mpi_load_balance=1.0,
        mpi_communication_efficiency=0.9,
    )


def test_talp_load_balance_in_and_between_nodes() -> None:
    """9 and 7 s outside MPI on one node, 6 s on the other."""
    check(
        "talp",
        observables([[9], [7], [6]], 10, in_mpi=[1, 3, 4], node=[5, 5, 2]),
        mpi_load_balance_in=8 / 9,
        mpi_load_balance_out=11 / 12,
        mpi_load_balance=22 / 27,
        mpi_communication_efficiency=0.9,
    )


def test_averages_weigh_processes_by_their_threads() -> None:
    """A process with 3 threads counts three times: (3 * 6 + 1 * 2) / 4 = 5, not 4."""
    run = observables(
        [[6, 6, 6], [2]], 10, omp_useful=[[6, 6, 6], [0]], in_openmp=[6, 0], in_mpi=[3, 0, 0, 7]
    )
    values = evaluate("hybrid-additive", run)
    assert values["process_efficiency"] == pytest.approx(0.5, rel=1e-14)
    assert values["parallel_efficiency"] == pytest.approx(0.5, rel=1e-14)
    assert values["thread_efficiency"] == pytest.approx(1.0, rel=1e-14)
    assert run.aggregates()["mpi_mean"] == pytest.approx(10 / 4, rel=1e-14)
