"""Reports of TALP, the profiler of the library DLB (``--talp-output-file=NAME.json``).

A report has sums over the run for each region that TALP monitors, and efficiencies with two
decimals: no course of time, nothing to replay. Releases from 3.5 on have the table ``Application``
(a region each, times in ns), those before ``popMetrics`` (a list with names, or a table; of MPI
alone). The efficiencies are kept as TALP writes them: what it divides by is not in every report.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from popmodel.base.documents import parse_json, read_text, shown
from popmodel.base.errors import FileError, did_you_mean
from popmodel.efficiency.hierarchy import load_families
from popmodel.traces.source import HEAD, foreign_file

TALP, OF_DEVICES = "talp", "gpu-talp"
"""The families whose metrics a report has."""
_IDS: dict[str, tuple[str, str]] = {
    "parallelEfficiency": (TALP, "parallel_efficiency"),
    "mpiParallelEfficiency": (TALP, "mpi_parallel_efficiency"),
    "mpiLoadBalance": (TALP, "mpi_load_balance"),
    "mpiLoadBalanceIn": (TALP, "mpi_load_balance_in"),
    "mpiLoadBalanceOut": (TALP, "mpi_load_balance_out"),
    "mpiCommunicationEfficiency": (TALP, "mpi_communication_efficiency"),
    "ompParallelEfficiency": (TALP, "openmp_parallel_efficiency"),
    "ompSerializationEfficiency": (TALP, "openmp_serialisation_efficiency"),
    "ompLoadBalance": (TALP, "openmp_load_balance"),
    "ompSchedulingEfficiency": (TALP, "openmp_scheduling_efficiency"),
    # before 3.5
    "communicationEfficiency": (TALP, "mpi_communication_efficiency"),
    "loadBalance": (TALP, "mpi_load_balance"),
    "lbIn": (TALP, "mpi_load_balance_in"),
    "lbOut": (TALP, "mpi_load_balance_out"),
}
_DEVICE_IDS: dict[str, tuple[str, str]] = {
    "deviceOffloadEfficiency": (OF_DEVICES, "device_offload_efficiency"),
    "gpuParallelEfficiency": (OF_DEVICES, "device_parallel_efficiency"),
    "gpuLoadBalance": (OF_DEVICES, "device_load_balance"),
    "gpuCommunicationEfficiency": (OF_DEVICES, "device_communication_efficiency"),
    "gpuOrchestrationEfficiency": (OF_DEVICES, "device_orchestration_efficiency"),
}
_WHOLE = ("Global", "Application", "MPI Execution")
"""Names of the region that is the whole program, in several releases."""
_AGAIN = "run it again: DLB_ARGS='--talp --talp-output-file=talp.json'"
_NS = 1e9
_LARGEST = 1e18  # of times in ns and of counts
_MOST = 1 << 24  # processes, CPUs or GPUs


class TalpRegion(NamedTuple):
    """A region that TALP monitors."""

    name: str
    processes: int
    has_mpi: bool
    cpus: int  # Of all processes
    runtime: float  # Elapsed in the region, s
    metrics: Mapping[str, Mapping[str, float]]  # Efficiencies by family and id
    # Sums over all CPUs in useful time, by the names of aggregates: s and counts.
    sums: Mapping[str, float]


class TalpReport(NamedTuple):
    """A report."""

    path: str
    version: str  # Of DLB; empty where it is not said
    regions: tuple[TalpRegion, ...]  # The whole program first

    @property
    def by(self) -> str:
        """Who wrote it, in words."""
        return f"TALP {self.version}".strip()

    def region(self, name: str | None) -> TalpRegion:
        """A region by its name; the whole program without one."""
        for region in self.regions:
            if name in (None, region.name):
                return region
        names = [region.name for region in self.regions]
        hint = did_you_mean(str(name), names, f"its regions: {', '.join(names)}")
        raise FileError(self.path, f"has no region {name!r}", hint=hint)


def is_talp(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a report of TALP, by its name and how it begins."""
    if not os.fspath(path).lower().endswith(".json"):
        return False
    try:
        with Path(path).open("rb") as file:
            found = foreign_file(Path(path), file.read(HEAD))
    except OSError:
        return False  # who reads it says so
    return found is not None and "TALP" in found.name


def read_talp(path: str | os.PathLike[str]) -> TalpReport:
    """Read a report; raises `FileError` where it has no region with times."""
    document = parse_json(read_text(path), path)
    document = document if isinstance(document, dict) else {}
    tables = document.get("Application", document.get("popMetrics", {}))
    if isinstance(tables, list):  # each says its name
        tables = {str(one.get("name")): one for one in tables if isinstance(one, dict)}
    resources = document.get("resources")
    shared = resources if isinstance(resources, dict) else {}
    regions = [
        region
        for name, table in (tables.items() if isinstance(tables, dict) else ())
        if isinstance(table, dict) and (region := _region(path, name, table, shared)) is not None
    ]
    if not regions:
        raise FileError(path, "is a report of TALP without a region that ran", hint=_AGAIN)
    order = [name for name in _WHOLE if name in {region.name for region in regions}]
    longest = max(regions, key=lambda region: region.runtime).name
    whole = [*order, longest][0]
    regions.sort(key=lambda region: region.name != whole)
    return TalpReport(os.fspath(path), str(document.get("dlbVersion", "")), tuple(regions))


def _region(
    path: str | os.PathLike[str], name: str, table: Mapping[str, Any], shared: Mapping[str, Any]
) -> TalpRegion | None:
    """A region of a report; None for one that never ran."""

    def number(key: str, of: Mapping[str, Any] = table) -> float | None:
        value = of.get(key)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= _LARGEST
        ):
            problem = f"{name}.{key} must be a number up to 1e18, not {shown(value)}"
            raise FileError(path, problem, hint=_AGAIN)
        return value

    def count(key: str) -> int:
        found = number(key) or number(key, shared) or 0
        if not 0 <= found <= _MOST:
            problem = f"{name}.{key} must be a number from 0 to {_MOST}, not {shown(found)}"
            raise FileError(path, problem, hint=_AGAIN)
        return int(found)

    elapsed = number("elapsedTime")
    if not elapsed or elapsed < 0:
        return None
    ranks = count("numMpiRanks")
    processes = max(ranks, 1)
    cpus = count("numCpus")
    ids = _IDS | (_DEVICE_IDS if count("numGpus") else {})
    metrics: dict[str, dict[str, float]] = {TALP: {}}
    for key, (family, id) in ids.items():
        if (
            family in load_families() and (value := number(key)) is not None and value >= 0
        ):  # -1 is TALP's "not known"
            metrics.setdefault(family, {})[id] = value
    if not metrics[TALP]:
        return None
    useful = number("usefulTime")
    sums = {
        "useful_sum": None if useful is None else useful / _NS,
        "instructions_sum": number("instructions"),
        "cycles_sum": number("cycles"),
    }
    known = {id: float(value) for id, value in sums.items() if value is not None and value > 0}
    cores = max(cpus, processes)
    return TalpRegion(name, processes, ranks > 0, cores, elapsed / _NS, metrics, known)
