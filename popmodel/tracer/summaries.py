"""Sums of a run, as the tracer keeps them in place of records (``microbench/tracer/summary.h``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import TraceError
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.efficiency.family import REASONS
from popmodel.efficiency.observables import Observables
from popmodel.machines.host.hardware import cpu_list
from popmodel.tracer.meta import AGAIN, Cpu, Meta, read_meta
from popmodel.tracer.raw_records import HEADER, MAGIC, Construct

FAMILIES = (
    *("message", "probe", "completion", "collective", "icollective", "neighbour", "process"),
    *("communicator", "buffer", "persistent", "rma", "io"),
)
"""Kinds of MPI calls, in the order of the file."""
NEEDS_TRACE = "not in the sums of a run: record a trace (popmodel trace)"

_PLACES = 8
SUMS = np.dtype(
    [
        *((name, "<u8") for name in ("begin", "end", "is_worker", "has_ended")),
        *((name, "<u8", 2) for name in ("useful", "mpi")),  # outside of parallel regions, inside
        *((name, "<u8") for name in ("fork", "idle")),
        ("waits", "<u8", max(Construct) + 1),
        *((name, "<u8") for name in ("in_regions", "regions", "parts", "asked")),
        *((name, "<u8") for name in ("used", "waited", "voluntary", "involuntary")),
        *((name, "<u8") for name in ("migrations", "minor", "major", "knows_migrations")),
        ("families", [(name, "<u8") for name in ("calls", "time", "sent", "received")], 12),
        ("places", [("cpu", "<u8"), ("times", "<u8")], _PLACES),
    ]
)
"""A file of sums behind its header: times in ns, numbers."""
_NS = 1e-9


@dataclass(frozen=True, eq=False)
class ProcessSums:
    """The sums of a process."""

    meta: Meta
    # One row for each thread, the first one begins MPI or regions; threads that follow each other
    # (a team that was made anew) are one.
    rows: NDArray[np.void]
    numbers: tuple[int, ...]  # Of the thread in its process that a row holds last

    @property
    def seconds(self) -> float:
        """From the end of MPI_Init to the begin of MPI_Finalize, or to the last that is known."""
        begin = int(self.rows["begin"].min())
        return max(0.0, (int(self.rows["end"].max()) - begin) * _NS)

    @property
    def last(self) -> int:
        """The last that is known of it, ns since 1970."""
        return self.meta.realtime + int(self.rows["end"].max()) - self.meta.begin

    @property
    def is_complete(self) -> bool:
        """Whether the process came to its end."""
        return self.meta.end is not None


class RunSums(NamedTuple):
    """The sums of a run."""

    processes: tuple[ProcessSums, ...]
    notes: tuple[str, ...] = ()  # What is missing


def read_sums(folder: Path) -> RunSums:
    """Read the sums of the run in a directory; of several runs the one with most thread time.

    Raises `TraceError` where there are none, or where a file is damaged.
    """
    notes: list[str] = []
    blank = 0  # threads that were killed before their first sum, or for which there was no room
    found: list[ProcessSums] = []
    for path in sorted(folder.glob("*.meta")):
        meta, warnings = read_meta(path)
        notes += [warning.text for warning in warnings]
        files = folder.glob(f"{path.stem}.t*.sums")
        rows = {int(file.stem.rpartition(".t")[2]): _row(file) for file in files}
        named = {number: row for number, row in rows.items() if row["begin"]}
        blank += len(rows) - len(named)
        if meta is None or not named:
            continue
        found.append(_process(meta, dict(sorted(named.items()))))
    if not found:
        problem = "contains no sums of a run" if folder.is_dir() else "directory not found"
        raise TraceError(
            folder,
            problem,
            hint="run popmodel check again, where there is room for temporary files (TMPDIR)",
        )
    runs = sorted(
        _runs(found), key=lambda run: sum(process.seconds * len(process.rows) for process in run)
    )
    if len(runs) > 1:
        notes.append(f"{plural(len(runs) - 1, 'shorter run')} of the same command (not shown)")
    processes = sorted(
        runs[-1], key=lambda process: (process.meta.rank or 0, process.meta.host, process.meta.pid)
    )
    size = processes[0].meta.size or len(processes)
    if len(processes) < size:
        notes.append(f"sums of {size - len(processes)} of {size} processes are missing")
    if broken := sum(not process.is_complete for process in processes):
        who = plural(broken, "process", "processes")
        notes.append(f"{who} did not come to an end: sums up to the last MPI call or region")
    if blank:
        notes.append(f"{plural(blank, 'thread')} without sums (killed at once, or disk full?)")
    whole = [process for process in processes if process.is_complete]  # all of these have looked
    if whole and not any(process.rows["used"].any() for process in processes):
        notes.append("/proc is hidden: how long threads waited for CPUs is not known")
    return RunSums(tuple(processes), tuple(dict.fromkeys(notes)))


def _runs(processes: Sequence[ProcessSums]) -> list[list[ProcessSums]]:
    """Processes of each run: each rank once, and without ranks all that were there at a time."""
    runs: list[list[ProcessSums]] = []
    for process in sorted(processes, key=lambda process: process.meta.realtime):
        world = _world(process.meta)
        for run in runs:
            alike = [of_run for of_run in run if _rank(of_run.meta) == _rank(process.meta)]
            together = (process.meta.realtime < of_run.last for of_run in alike)
            if _world(run[0].meta) == world and (not alike or any(together)):
                run.append(process)
                break
        else:
            runs.append([process])
    return runs


def _world(meta: Meta) -> tuple[str, int | None, bool]:
    return meta.job, meta.size, meta.spawned


_OF_LAUNCHERS = ("PMIX_RANK", "PMI_RANK", "SLURM_PROCID")


def _rank(meta: Meta) -> str | None:
    """Its rank in MPI_COMM_WORLD, or if it is alone there that of its launcher."""
    if (meta.size or 1) > 1:
        return str(meta.rank)
    return next((meta.variables[name] for name in _OF_LAUNCHERS if name in meta.variables), None)


def _row(path: Path) -> NDArray[np.void]:
    """The sums of a thread; zeros where the tracer has only made room for them."""
    data = path.read_bytes()
    # The magic number of a header is written last.
    if not any(data[: len(MAGIC)]) and not any(data[HEADER.size :]):
        return np.zeros(1, SUMS)
    if len(data) < HEADER.size + SUMS.itemsize or not data.startswith(MAGIC):
        raise TraceError(path, "is damaged: it is no file of sums", hint=AGAIN)
    return np.frombuffer(data, SUMS, 1, HEADER.size).copy()


def _process(meta: Meta, named: Mapping[int, NDArray[np.void]]) -> ProcessSums:
    rows: list[NDArray[np.void]] = []
    numbers: list[int] = []
    for number, row in named.items():
        before = next(
            (at for at, old in enumerate(rows) if old["has_ended"] and old["end"] <= row["begin"]),
            None,
        )
        if before is None or not row["is_worker"]:
            rows.append(row)
            numbers.append(number)
        else:
            rows[before] = _joined(rows[before], row)
            numbers[before] = number
    meta.cpus = {number: meta.cpus[number] for number in numbers if number in meta.cpus}
    return ProcessSums(meta, np.concatenate(rows), tuple(numbers))


_KEPT = ("begin", "is_worker", "places")


def _joined(first: NDArray[np.void], second: NDArray[np.void]) -> NDArray[np.void]:
    """Two threads, one after the other, as one."""
    both = second.copy()
    for name in SUMS.names or ():
        if name in _KEPT:
            both[name] = first[name]
        elif name == "families":
            for part in ("calls", "time", "sent", "received"):
                both[name][part] += first[name][part]
        elif name not in ("end", "has_ended", "asked", "knows_migrations"):
            both[name] += first[name]
    return both


def observables_of(processes: Sequence[ProcessSums]) -> Observables:
    """What the families of metrics are computed from.

    The runtime is that of the longest process. What only records tell (an ideal network, the
    instances of a region) is absent.
    """
    rows = np.concatenate([process.rows for process in processes])
    counts = np.array([len(process.rows) for process in processes])
    first = rows[np.cumsum(counts) - counts]
    boots = {name: number for number, name in enumerate(dict.fromkeys(_nodes(processes)))}
    seconds = np.array([process.seconds for process in processes])
    in_openmp = first["in_regions"] * _NS
    serial = first["useful"][:, 0] * _NS
    # Where there is no MPI, nothing is lost between processes; the first thread may end early.
    alone = np.array([process.meta.rank is None for process in processes])
    in_openmp = np.where(alone, np.maximum(in_openmp, seconds - serial), in_openmp)
    return Observables(
        runtime=float(seconds.max()),
        threads=counts,
        node=np.array([boots[name] for name in _nodes(processes)], dtype=np.int32),
        useful=rows["useful"].sum(axis=1) * _NS,
        omp_useful=rows["useful"][:, 1] * _NS,
        in_mpi=rows["mpi"].sum(axis=1) * _NS,
        serial_useful=serial,
        in_openmp=in_openmp,
        serial_mpi=first["mpi"][:, 0] * _NS,
        has_mpi=any(process.meta.rank is not None for process in processes),
        has_openmp=bool(rows["regions"].any()),
        not_in_mpi=np.maximum(0.0, seconds - first["mpi"].sum(axis=1) * _NS),
        absent=dict.fromkeys((name for name in REASONS if name not in _KNOWN), NEEDS_TRACE),
    )


_KNOWN = ("not_in_mpi",)


def _nodes(processes: Sequence[ProcessSums]) -> list[str]:
    return [process.meta.boot for process in processes]


def calls_of(processes: Sequence[ProcessSums]) -> dict[str, dict[str, float]]:
    """Calls of MPI by kind: how many, seconds of all threads, bytes sent and received."""
    rows = np.concatenate([process.rows for process in processes])["families"]
    kinds = {}
    for at, name in enumerate(FAMILIES):
        if rows["calls"][:, at].any():
            sums: dict[str, Any] = {
                part: int(rows[part][:, at].sum()) for part in ("calls", "time", "sent", "received")
            }
            kinds[name] = {**sums, "time": sums["time"] * _NS}
    return kinds


def placement_of(metas: Sequence[Meta], sums: Sequence[ProcessSums] = ()) -> list[dict[str, Any]]:
    """Where processes and their threads were allowed to run, and with sums where they ran.

    One entry for each process. Lists of CPUs are as the system writes them: ``0-3,8``.
    """
    rows_of = {id(process.meta): process for process in sums}
    entries = []
    for meta in metas:
        process = rows_of.get(id(meta))
        numbers = sorted(meta.cpus) if process is None else process.numbers
        threads = []
        for at, number in enumerate(numbers):
            thread = {"thread": at, "cpus": cpu_list(meta.cpus.get(number, ()))}
            if process is not None:
                row = process.rows[at]
                seen = {int(cpu) - 1 for cpu in row["places"]["cpu"] if cpu}
                known = bool(row["knows_migrations"])
                thread |= {
                    "seen": cpu_list(seen),
                    "cpu_time": int(row["used"]) * _NS,
                    "waited": int(row["waited"]) * _NS,
                    "migrations": int(row["migrations"]) if known else None,
                    "switches": [int(row["voluntary"]), int(row["involuntary"])],
                    "page_faults": [int(row["minor"]), int(row["major"])],
                }
            threads.append(thread)
        entries.append({"rank": meta.rank, "host": meta.host, "pid": meta.pid, "threads": threads})
    return entries


def topologies(metas: Sequence[Meta]) -> dict[str, dict[int, Cpu]]:
    """The CPUs of each node, by what its clock belongs to; empty where its system does not tell."""
    cpus_of: dict[str, dict[int, Cpu]] = {meta.boot: {} for meta in metas}
    for meta in metas:
        cpus_of[meta.boot] |= meta.topology
    return cpus_of
