"""What holds for the program in any real trace, and for the whole run."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse
from popmodel.traces import read
from popmodel.traces.run_parts import splice
from popmodel.traces.selection import TracePart

TRACES = [
    "bt-mz.S.2x2",
    "cg.S.2",
    "comd.4",
    "ft.S.4",
    "is.S.4",
    "mix.4",
    "mixnbc.4",
    "mixpers.4",
    "mixrma.4",
    "epoch_4proc",
    "imagemagick_omp2",
]


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("from_start", [False, True])
def test_the_numbers_of_a_run_agree(
    name: str, from_start: bool, real_trace: Callable[[str], Path]
) -> None:
    run = analyse(read(real_trace(name)), part=TracePart(from_start=from_start))
    observed = run.observables
    if observed.has_mpi:
        assert observed.ideal_runtime is not None
        assert observed.outside_mpi.max() <= observed.ideal_runtime <= observed.runtime
    costs = sum(region.cost for region in observed.regions)
    lost = observed.threads @ observed.in_openmp - observed.omp_useful.sum()
    assert costs == pytest.approx(lost, abs=1e-9 * len(observed.useful))
    for id, family in load_families().items():
        if id != "scaling":  # evaluation checks the identities
            evaluation = family.evaluate(observed.aggregates(), observed.absent)
            assert not [note for note in evaluation.notes if "contradict" in note]


@pytest.mark.parametrize("name", [name for name in TRACES if not name.startswith("image")])
def test_the_window_is_a_part_of_the_run(name: str, real_trace: Callable[[str], Path]) -> None:
    trace = read(real_trace(name))
    window = analyse(trace).window
    assert window is not None
    assert window.why == "MPI_Init to MPI_Finalize"
    assert window.before > 0
    assert window.after > 0
    assert window.before + (window.end - window.begin) + window.after == trace.duration


@pytest.mark.parametrize("name", ["bt-mz.S.2x2", "comd.4", "mixnbc.4", "epoch_4proc"])
def test_stretches_of_a_run_have_the_times_of_their_windows(
    name: str, real_trace: Callable[[str], Path]
) -> None:
    trace = read(real_trace(name))
    edges = np.linspace(trace.begin, trace.end, 23).astype(np.int64)[1:-1]
    part = splice(trace, edges[::3], edges[1::3])
    whole = analyse(part)
    alone = [analyse(trace.window(begin, end)) for begin, end in part.pieces or ()]
    for quantity in ("useful", "omp_useful", "in_mpi", "serial_useful", "in_openmp"):
        expected = np.sum([getattr(run.observables, quantity) for run in alone], axis=0)
        assert getattr(whole.observables, quantity) == pytest.approx(expected, abs=1e-9)
    sites = sum(site.time for run in alone for site in run.call_sites)
    assert sum(site.time for site in whole.call_sites) == pytest.approx(sites)
    assert "ideal_runtime" not in whole.observables.absent
