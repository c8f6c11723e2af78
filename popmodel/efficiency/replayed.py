"""Observables of a run that was replayed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from popmodel.efficiency.observables import Observables
    from popmodel.simulator import Execution

OTHER_SPEEDS = "ranks have other CPU speeds than in the trace"
NO_REGIONS = "no OpenMP parallel regions"
FAMILIES = ("mpi", "hybrid-additive")
"""Families whose quantities a replay gives."""


def of_execution(measured: Observables, execution: Execution, ideal: Execution) -> Observables:
    """Return what was measured of a run as it would be on another network.

    Time outside MPI is as measured, divided by the CPU speed; the time in MPI, the runtime and the
    ideal runtime are those of the replays. Workers of a team wait while their master is in MPI.
    """
    speed = execution.network.cpu(len(measured.threads))
    of_thread = np.repeat(speed, measured.threads)
    outside = {
        **{name: getattr(measured, name) / of_thread for name in ("useful", "omp_useful")},
        **{name: getattr(measured, name) / speed for name in ("serial_useful", "in_openmp")},
    }
    # What is known of all processes together says nothing of those that become faster.
    alike = bool((speed == speed[0]).all())
    inside_regions: dict[str, Any] = {
        name: getattr(measured, name) / speed[0] if alike else None
        for name in ("openmp_imbalance", "openmp_synchronisation", "openmp_scheduling")
        if getattr(measured, name) is not None
    }
    in_mpi = np.maximum(execution.end - execution.compute, 0.0)
    of_threads = np.zeros(measured.in_mpi.shape)
    of_threads[measured.masters] = in_mpi
    kept = {key: why for key, why in measured.absent.items() if key not in ("ideal_runtime",)}
    kept |= {name: OTHER_SPEEDS for name, value in inside_regions.items() if value is None}
    return replace(
        measured,
        runtime=execution.runtime,
        in_mpi=of_threads,
        serial_mpi=in_mpi,
        not_in_mpi=execution.compute,
        ideal_runtime=ideal.runtime,
        # how idle time is divided is known of the measured run only
        idle_serial=None,
        idle_imbalance=None,
        idle_scheduling=None,
        regions=(),
        absent=kept,
        **outside,
        **inside_regions,
    )


def unknown_families(measured: Observables) -> dict[str, str]:
    """Families that a replay of a run does not give, each with the reason."""
    if not measured.has_openmp:
        return {"hybrid-additive": NO_REGIONS}
    if measured.openmp_mpi:
        return {
            "hybrid-additive": "MPI is called inside parallel regions, whose time on another "
            "network is not known"
        }
    return {}
