"""Runs for the tests of the metrics: made by hand, or at random but free of contradictions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from popmodel.efficiency.observables import Observables


def observables(useful: Sequence[Sequence[float]], runtime: float, **given: Any) -> Observables:
    """A run from its useful time per process and thread; without OpenMP unless told so.

    The master's useful time is serial, up to what `omp_useful` (same nesting) says.
    """
    omp_useful = given.pop("omp_useful", [[0.0] * len(process) for process in useful])
    masters = [process[0] - omp[0] for process, omp in zip(useful, omp_useful, strict=True)]
    total = sum(map(len, useful))
    defaults: dict[str, Any] = {
        "threads": [len(process) for process in useful],
        "node": [0] * len(useful),
        "useful": np.concatenate([np.asarray(process, float) for process in useful]),
        "omp_useful": np.concatenate([np.asarray(process, float) for process in omp_useful]),
        "in_mpi": np.zeros(total),
        "serial_useful": np.asarray(masters, float),
        "in_openmp": np.zeros(len(useful)),
        "serial_mpi": np.zeros(len(useful)),
        "has_mpi": True,
        "has_openmp": any(map(any, omp_useful)),
    }
    return Observables(runtime=runtime, **{**defaults, **given})


@st.composite
def runs(draw: st.DrawFn) -> Observables:
    """Any run whose times do not contradict one another, with everything measured."""
    share = st.floats(0.0, 1.0, allow_subnormal=False)
    runtime = draw(st.floats(1e-3, 1e4))
    threads = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    processes = []
    for count in threads:
        in_openmp = runtime * draw(share)
        serial = (runtime - in_openmp) * draw(share)
        serial_mpi = (runtime - in_openmp - serial) * draw(share)
        omp = [in_openmp * draw(share) for _ in range(count)]
        mpi = [(in_openmp - busy) * draw(share) for busy in omp]
        processes.append((in_openmp, serial, serial_mpi, omp, mpi))
    # some useful time, so that load balance is defined
    in_openmp, serial, serial_mpi, omp, mpi = processes[0]
    if serial + sum(omp) < 1e-6 * runtime:
        processes[0] = (0.0, runtime / 2, 0.0, [0.0] * threads[0], [0.0] * threads[0])
    # what workers run outside of regions, whatever their master does meanwhile
    apart = [
        [0.0, *((runtime - a - b) * draw(share) for a, b in zip(omp[1:], mpi[1:], strict=True))]
        for *_, omp, mpi in processes
    ]
    useful = [
        [a + b for a, b in zip([serial + omp[0], *omp[1:]], more, strict=True)]
        for (_, serial, _, omp, _), more in zip(processes, apart, strict=True)
    ]
    in_mpi = [[serial_mpi + mpi[0], *mpi[1:]] for _, _, serial_mpi, _, mpi in processes]
    outside = [in_openmp + serial for in_openmp, serial, *_ in processes]
    idle = sum(threads) * runtime - sum(map(sum, useful)) - sum(map(sum, in_mpi))
    parts = [max(idle, 0.0) / 4 * draw(share) for _ in range(3)]
    counts = st.floats(1e6, 1e12)
    return observables(
        useful,
        runtime,
        omp_useful=[omp for *_, omp, _ in processes],
        in_mpi=np.concatenate([np.asarray(each) for each in in_mpi]),
        in_openmp=[in_openmp for in_openmp, *_ in processes],
        serial_mpi=[serial_mpi for _, _, serial_mpi, *_ in processes],
        node=draw(st.lists(st.integers(0, 2), min_size=len(threads), max_size=len(threads))),
        not_in_mpi=[each + (runtime - each) * draw(share) for each in outside],
        ideal_runtime=max(outside) + (runtime - max(outside)) * draw(share),
        instructions=[draw(counts) for _ in range(sum(threads))],
        cycles=[draw(counts) for _ in range(sum(threads))],
        idle_serial=parts[0],
        idle_imbalance=parts[1],
        idle_scheduling=parts[2],
        openmp_imbalance=max(outside) * draw(share),
        openmp_synchronisation=runtime * draw(share),
        openmp_scheduling=runtime * draw(share),
        openmp_mpi=runtime * draw(share),
        has_openmp=True,
    )
