"""What a projection needs of a run, from its aggregates or, of a table, from its metrics."""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.runs.measurement import MeasuredRow

_NEEDED = (
    "useful_sum",
    "useful_mean",
    "useful_max",
    "omp_useful_mean",
    "serial_useful_mean",
    "in_openmp_mean",
    "serial_openmp_max",
)


def completed(run: MeasuredRow) -> dict[str, float]:
    """Return the aggregates of a run, computed from its metrics where only these are known.

    Without the parallel efficiency, and what of it is lost between processes, only sizes and the
    runtime are known. Threads of which no time in parallel regions is told count as if all code
    were serial, with a constant use of threads.
    """
    sizes = {
        "processes": float(run.processes),
        "threads": float(run.processes * run.threads),
        "runtime": run.runtime,
    }
    given = {**sizes, **run.aggregates}
    if all(name in given for name in _NEEDED):
        return given
    shares = _shares(run)
    if shares is None:
        return sizes
    useful, outside, longest = (share * run.runtime for share in shares[:3])
    busiest, ideal = (None if share is None else share * run.runtime for share in shares[3:])
    counted = {name: given[name] for name in ("instructions_sum", "cycles_sum") if name in given}
    busy = longest if busiest is None else busiest
    masters = {"master_useful_mean": useful, "master_useful_max": busy}
    return {
        **sizes,
        **counted,
        **(masters if run.threads == 1 else {}),
        **({} if ideal is None else {"ideal_runtime": ideal}),
        "useful_sum": useful * sizes["threads"],
        "useful_mean": useful,
        "useful_max": busy,
        "omp_useful_mean": 0.0,
        "serial_useful_mean": outside,
        "in_openmp_mean": 0.0,
        "serial_openmp_max": longest,
        "outside_mpi_mean": outside,
        "outside_mpi_max": longest,
    }


Shares = tuple[float, float, float, "float | None", "float | None"]


_NAMES = {
    "hybrid-multiplicative": (
        "hybrid_parallel_efficiency", "mpi_parallel_efficiency", "mpi_communication_efficiency",
        "hybrid_communication_efficiency", "mpi_transfer_efficiency",
    ),
    "hybrid-additive": (
        "parallel_efficiency", "process_efficiency", "process_communication_efficiency",
        "", "process_transfer_efficiency",
    ),
}  # fmt: skip
"""Metrics of a family that are the shares; the last two may be missing."""


def _shares(run: MeasuredRow) -> Shares | None:
    """Shares of the runtime: useful time, time outside MPI and its longest, busiest, ideal."""
    for family, names in _NAMES.items():
        metrics = run.metrics.get(family, {})
        useful, outside, longest, busiest, ideal = (metrics.get(name) for name in names)
        if useful is not None and outside is not None and longest is not None:
            return useful, outside, longest, busiest, ideal
    return _mpi(run.metrics.get("mpi", {})) if run.threads == 1 else None


def _mpi(metrics: Mapping[str, float]) -> Shares | None:
    useful, balance, longest, waiting, ideal = (
        metrics.get(name)
        for name in (
            "parallel_efficiency",
            "load_balance",
            "communication_efficiency",
            "serialisation_efficiency",
            "transfer_efficiency",
        )
    )
    if longest is None and waiting is not None and ideal is not None:
        longest = waiting * ideal
    if useful is None and longest is not None and balance is not None:
        useful = longest * balance
    if longest is None and useful is not None and balance:
        longest = useful / balance
    if useful is None or longest is None:
        return None
    return useful, useful, longest, longest, ideal
