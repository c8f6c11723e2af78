"""What is wrong with where a run was placed, what that costs, and how to launch it instead.

Whether threads must share cores follows from the CPUs that each may use: as many threads can run at
once as a matching of threads to cores has pairs. What it cost is what the kernel counted that they
waited for a CPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.machines.host import hardware
from popmodel.machines.host.hardware import cpu_list, parse_cpu_list
from popmodel.studies.launch_line import RIVALS, VARIABLES, Line, is_by_hardware_thread, line_with
from popmodel.tracer.commands import TracedCommand
from popmodel.tracer.library import launcher_of_program
from popmodel.tracer.meta import Cpu, Meta
from popmodel.tracer.summaries import ProcessSums, topologies

NOTHING = 0.005
"""Share of the time of all threads below which a loss is none."""
# Findings that another launch line cures.
_PLACING = {"share", "overlap", "oversubscribed", "hyperthreads", "idle", "unset"}
_FOREIGN = 0.05  # share of the CPUs' time that others took, from which on that is told
_BUSY = 0.05  # share of the time that a thread which is not recorded works, so that it needs a core
_MASTERS = 0.9  # share of a team's page faults that its master had, if the memory is taken as its
_FOLLOWS = ("idle", "foreign_load")
_PAGES = 2000  # page faults of a process below which nothing is said of first touch
_SHORTEST = 0.5  # seconds; the kernel counts the load of CPUs in ticks of 10 ms
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NS = 1e-9

_Masks: TypeAlias = tuple[frozenset[int], ...]


class Finding(NamedTuple):
    """Something that is wrong with a launch."""

    id: str
    text: str
    core_hours: float | None = None  # Lost
    cost: float | None = None  # The same as a share of the time of all threads (idle: of all cores)

    def to_dict(self) -> dict[str, Any]:
        """The finding for JSON."""
        return {"id": self.id, "cost": self.cost, "core_hours": self.core_hours, "text": self.text}


@dataclass(frozen=True, eq=False)
class PlacedNode:
    """The processes of a node, and its cores that the job may use."""

    host: str
    processes: tuple[ProcessSums, ...]
    cpus: Mapping[int, Cpu]  # Of the node; empty where its system does not tell
    allowed: frozenset[int]  # CPUs that the job may use
    limit: float | None = None  # CPUs' worth of time that its control group grants

    @property
    def cores(self) -> int:
        """Cores that the job may keep busy at once."""
        cores = len({self.core(cpu) for cpu in self.allowed})
        return cores if self.limit is None else max(1, min(cores, int(self.limit + 0.01)))

    @property
    def threads(self) -> int:
        """Threads of all processes."""
        return sum(len(process.rows) for process in self.processes)

    def core(self, cpu: int) -> int:
        """The core that a CPU is of; the CPU itself where the system does not tell."""
        return self.cpus[cpu].core if cpu in self.cpus else cpu

    def cores_of(self, process: ProcessSums) -> set[int]:
        """Cores that threads of a process may use."""
        return {self.core(cpu) for mask in self.masks((process,)) for cpu in mask}

    def masks(self, processes: Iterable[ProcessSums]) -> list[frozenset[int]]:
        """CPUs that each thread may use."""
        return [
            process.meta.cpus.get(number) or self.allowed
            for process in processes
            for number in process.numbers
        ]

    def busy(self, processes: Iterable[ProcessSums], *, cores: bool = True) -> int:
        """The most cores (or CPUs) that threads of some processes can keep busy at once."""
        masks = [set(mask) for mask in self.masks(processes)]
        return most_pairs([{self.core(cpu) for cpu in mask} for mask in masks] if cores else masks)


def most_pairs(choices: Sequence[set[int]]) -> int:
    """Pairs of a largest matching of threads to what each may use."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    columns = {value: at for at, value in enumerate(sorted(set[int]().union(*choices)))}
    rows = [at for at, chosen in enumerate(choices) for _ in chosen]
    into = [columns[value] for chosen in choices for value in sorted(chosen)]
    graph = csr_matrix((np.ones(len(rows)), (rows, into)), (len(choices), len(columns)))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


def nodes_of(processes: Sequence[ProcessSums]) -> list[PlacedNode]:
    """The nodes of a run.

    What the job may use is what this process may use, on its own node; elsewhere what the control
    groups of its processes hold, of that what Slurm says, else all CPUs.
    """
    cpus_of = topologies([process.meta for process in processes])
    here = _BOOT.read_text(encoding="ascii").strip() if _BOOT.exists() else None
    nodes = []
    for boot, cpus in cpus_of.items():
        mine = tuple(process for process in processes if process.meta.boot == boot)
        used = frozenset(
            cpu for process in mine for mask in process.meta.cpus.values() for cpu in mask
        )
        groups = [parse_cpu_list(process.meta.variables.get("cpuset", "")) for process in mine]
        limit: float | None = None
        allowed = (frozenset(cpus) & set().union(*groups) or frozenset(cpus)) | used
        if boot == here:
            machine = hardware.here()
            allowed, limit = frozenset(machine.cpus) | used, machine.cpu_limit
        elif (given := mine[0].meta.variables.get("SLURM_CPUS_ON_NODE", "")).isdigit():
            # Cores or hardware threads; a thread that is bound to a core was given all of it.
            threads = max(1, len(cpus) // max(1, len({cpu.core for cpu in cpus.values()})))
            places = (mask for process in mine for mask in process.meta.cpus.values())
            cores = ({cpus[cpu].core for cpu in mask & cpus.keys()} for mask in places)
            own = {core.pop() for core in cores if len(core) == 1}
            limit = max(1.0, int(given) / threads, min(int(given), len(own)))
        nodes.append(PlacedNode(mine[0].meta.host, mine, cpus, allowed, limit))
    return nodes


@dataclass(frozen=True, eq=False)
class LaunchCheck:
    """A checked launch."""

    processes: tuple[ProcessSums, ...]
    nodes: tuple[PlacedNode, ...]
    findings: tuple[Finding, ...] = field(default=())
    better: Line | None = None
    why_none: str | None = None  # Why there is no better line although something is wrong


def check_launch(
    processes: Sequence[ProcessSums],
    command: TracedCommand | None,
    environment: Mapping[str, str] | None = None,
) -> LaunchCheck:
    """Find what is wrong with a launch, the costliest first, and a better line.

    `environment` is that of the command, where it is known.
    """
    nodes = nodes_of(processes)
    words = () if command is None else command.words
    findings = [finding for node in nodes for finding in _of_node(node, words)]
    findings += [*_foreign(nodes, findings), *_of_processes(nodes)]
    merged = _merged(findings, nodes)
    ids = {finding.id for finding in merged} & _PLACING
    better, why = _better(nodes, command, ids, environment)
    if command is not None and (apart := _without_world(processes, command)):
        merged.insert(0, apart)
        own = launcher_of_program(command)
        better, why = None, f"use the launcher of the program's MPI{f': {own}' if own else ''}"
    return LaunchCheck(tuple(processes), tuple(nodes), tuple(merged), better, why)


def _merged(findings: Iterable[Finding], nodes: Sequence[PlacedNode]) -> list[Finding]:
    """Findings of several nodes: of each kind the first, with what all cost of the whole run."""
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.id, []).append(finding)
    threads = sum(_thread_seconds(node.processes) for node in nodes) / 3600
    cores = sum(node.cores * _seconds(node.processes) for node in nodes) / 3600
    merged = []
    for id, alike in kinds.items():
        others = len(alike) - 1
        more = f" (and on {plural(others, 'other node')})" if others else ""
        known = [finding.core_hours for finding in alike if finding.core_hours is not None]
        hours = sum(known) if known else None
        whole = cores if id == "idle" else threads
        cost = None if hours is None or not whole else min(1.0, hours / whole)
        merged.append(Finding(id, alike[0].text + more, hours, cost))
    # What follows from the others stands behind them.
    return sorted(merged, key=lambda finding: (finding.id in _FOLLOWS, -(finding.cost or 0)))


def _of_node(node: PlacedNode, words: Sequence[str]) -> Iterator[Finding]:
    """Threads that share cores, and cores without threads."""
    threads, cores = node.threads, node.cores
    apart = node.busy(node.processes)
    busy = min(apart, cores)  # a control group may grant less time than there are cores
    alone = [node.busy((process,)) for process in node.processes]
    crowded = [
        (process, pairs)
        for process, pairs in zip(node.processes, alone, strict=True)
        if pairs < min(len(process.rows), cores)
    ]
    on_cpus = node.busy(node.processes, cores=False)
    if threads > cores and busy == cores:
        if on_cpus < threads or apart > cores or on_cpus <= cores:
            text = f"{plural(threads, 'thread')} on {plural(cores, 'core')}: oversubscribed"
            yield _waited("oversubscribed", text, node, node.processes, threads - cores)
        elif not is_by_hardware_thread(words, node.processes[0].meta.variables):
            text = f"{threads} threads on {plural(cores, 'core')}: hardware threads share the cores"
            yield Finding("hyperthreads", text)
    elif crowded:
        yield _crowded(node, crowded, words)
    if sum(alone) > busy and busy < cores:
        together = _overlapping(node)
        where = _cpus(frozenset[int]().union(*node.masks(together)))
        text = f"{_ranks(together)} are bound to the same cores ({where})"
        yield _waited("overlap", text, node, together, sum(alone) - busy)
    if crowded or threads > cores or sum(alone) > busy:
        yield from _unset(node)
    yield from _unrecorded_threads(node)
    idle = cores - busy - sum(len(_unrecorded(process)) for process in node.processes)
    if idle > 0:
        text = f"{idle} of {plural(cores, 'core')} {'is' if idle == 1 else 'are'} idle"
        yield Finding("idle", text, idle * _seconds(node.processes) / 3600)


def _crowded(
    node: PlacedNode, crowded: Sequence[tuple[ProcessSums, int]], words: Sequence[str]
) -> Finding:
    """Threads of a process that share cores."""
    first, pairs = crowded[0]
    processes = [process for process, _ in crowded]
    size = len(first.rows)
    less = sum(len(process.rows) - pairs for process, pairs in crowded)
    if node.busy((first,), cores=False) >= size and not is_by_hardware_thread(
        words, first.meta.variables
    ):
        text = (
            f"{size} threads of {_ranks(processes)} use the hardware threads of "
            f"{plural(pairs, 'core')} while other cores are idle"
        )
        return Finding("hyperthreads", text)
    who = f"{'each of ' if len(processes) > 1 else ''}{_ranks(processes)}"
    where = _cpus(frozenset[int]().union(*node.masks(processes)))
    text = f"the {size} threads of {who} share {plural(pairs, 'core')} ({where})"
    return _waited("share", text, node, processes, less)


def _unset(node: PlacedNode) -> Iterator[Finding]:
    """Teams that share cores and whose size nobody asked for: it is that of their CPUs."""
    teams = [
        process
        for process in node.processes
        if "OMP_NUM_THREADS" not in process.meta.variables
        and process.rows["regions"].any()
        and not (process.meta.openmp == "gomp" and process.rows["asked"].any())
        and 1 < len(process.rows) == len(frozenset[int]().union(*node.masks((process,))))
    ]
    if teams:
        size = plural(len(teams[0].rows), "thread")
        text = f"{_ranks(teams)}: OMP_NUM_THREADS is not set: the runtime chose {size}"
        yield Finding("unset", text)


def _overlapping(node: PlacedNode) -> list[ProcessSums]:
    """Processes that find fewer cores beside some other one than both have alone."""
    cores = [node.cores_of(process) for process in node.processes]
    alone = [node.busy((process,)) for process in node.processes]
    overlapping = set[int]()
    for first, second in combinations(range(len(cores)), 2):
        if {first, second} <= overlapping or cores[first].isdisjoint(cores[second]):
            continue
        both = node.busy((node.processes[first], node.processes[second]))
        if both < alone[first] + alone[second]:
            overlapping |= {first, second}
    return [node.processes[at] for at in sorted(overlapping)]


def _cpus(cpus: Iterable[int]) -> str:
    text = cpu_list(cpus)
    return f"CPU {text}" if text.isdigit() else f"CPUs {text}"


def _ranks(processes: Sequence[ProcessSums]) -> str:
    """``rank 3``, ``ranks 0-3``, or processes without MPI by their number."""
    ranks = [process.meta.rank for process in processes]
    known = [rank for rank in ranks if rank is not None]
    if len(known) < len(ranks):
        return "the process" if len(ranks) == 1 else f"{len(ranks)} processes"
    return f"rank{'s' if len(known) > 1 else ''} {cpu_list(known)}"


def _waited(
    id: str, text: str, node: PlacedNode, processes: Sequence[ProcessSums], surplus: float
) -> Finding:
    """A finding whose cost is what threads waited, at most what a surplus of them explains.

    Where the system does not tell how long they waited, it is all of that.
    """
    lost = surplus * _seconds(node.processes)
    if any(process.rows["used"].any() for process in processes):
        lost = min(lost, sum(float(process.rows["waited"].sum()) * _NS for process in processes))
    return Finding(id, text, lost / 3600)


def _thread_seconds(processes: Sequence[ProcessSums]) -> float:
    return sum(len(process.rows) for process in processes) * _seconds(processes)


def _seconds(processes: Sequence[ProcessSums]) -> float:
    return max(process.seconds for process in processes)


def _foreign(nodes: Sequence[PlacedNode], findings: Sequence[Finding]) -> Iterator[Finding]:
    """What others took of the CPUs that the run used."""
    for node in nodes:
        loads = [
            (process.meta.begin_load, process.meta.end_load)
            for process in node.processes
            if process.meta.begin_load is not None and process.meta.end_load is not None
        ]
        taken: dict[int, tuple[float, float]] = {}
        own = 0.0
        for begin, end in loads:
            wall = (end.time - begin.time) * _NS
            if wall < _SHORTEST:
                continue
            own += (end.used - begin.used) * _NS / wall
            for cpu, now in end.cpus.items():
                then = begin.cpus.get(cpu, now)
                busy, stolen = ((a - b) / end.ticks / wall for a, b in zip(now, then, strict=True))
                taken[cpu] = max(taken.get(cpu, (0.0, 0.0)), (busy, stolen))
        if not taken:
            continue
        others = max(0.0, sum(busy for busy, _ in taken.values()) - own) / len(taken)
        elsewhere = sum(part for _, part in taken.values()) / len(taken)
        if others + elsewhere < _FOREIGN:
            continue
        waited = sum(float(process.rows["waited"].sum()) * _NS for process in node.processes)
        known = sum(f.core_hours or 0 for f in findings if f.id not in ("idle", "unset")) * 3600
        who = "other programs" if others >= elsewhere else "other virtual machines"
        text = f"{who} took {100 * (others + elsewhere):.0f} % of the CPUs of this run"
        text += f" on {node.host}" if len(nodes) > 1 else ""
        yield Finding("foreign_load", text, max(0.0, waited - known) / 3600)


def _of_processes(nodes: Sequence[PlacedNode]) -> Iterator[Finding]:
    """What does not depend on who else is on the node."""
    for name, check in (("domains", _domains), ("thread_level", _thread_level)):
        told = {
            process: text
            for node in nodes
            for process in node.processes
            if (text := check(process, node))
        }
        if told:
            yield Finding(name, f"{_ranks([*told])}: {next(iter(told.values()))}")


def _without_world(processes: Sequence[ProcessSums], command: TracedCommand) -> Finding | None:
    """Processes that the launcher of another MPI has started: each is alone, or MPI_Init fails."""
    size = len(processes)
    failed = [
        process.meta.rank is None and bool(process.rows["mpi"].any()) for process in processes
    ]
    if command.is_launcher and all(failed):
        return Finding("launcher", "MPI_Init did not return")
    if not command.is_launcher or size == 1 or any(one.meta.size != 1 for one in processes):
        return None
    library = " ".join(processes[0].meta.library.partition(",")[0].split()[:4])
    text = f"the {size} processes are separate runs, each rank 0 of 1, of the program ({library})"
    lost = (1 - 1 / size) * _thread_seconds(processes) / 3600
    return Finding("launcher", text, lost, 1 - 1 / size)


def _domains(process: ProcessSums, node: PlacedNode) -> str | None:
    """A team over several memory domains whose master touched the memory first."""
    seen = [
        {int(cpu) - 1 for cpu in row["places"]["cpu"] if cpu} or set(node.allowed)
        for row in process.rows
    ]
    domains = {node.cpus[cpu].domain for cpus in seen for cpu in cpus if cpu in node.cpus} - {-1}
    faults = process.rows["minor"].astype(np.float64)
    if len(process.rows) < 2 or len(domains) < 2 or faults.sum() < _PAGES:
        return None
    share = float(faults[0] / faults.sum())
    if share < _MASTERS:
        return None
    return (
        f"a team over {len(domains)} memory domains, and its master touched {100 * share:.0f} % of "
        "the pages first: most are in one domain. Initialise data in parallel, or use a process "
        "per domain"
    )


def _thread_level(process: ProcessSums, node: PlacedNode) -> str | None:  # noqa: ARG001
    """Calls of MPI by threads that may not make them."""
    calls = process.rows["families"]["calls"].sum(axis=1)
    callers = int(np.count_nonzero(calls[1:]))
    names = ("MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED")
    if process.meta.rank is None or not callers or process.meta.thread_level >= len(names):
        return None
    who = plural(callers, "thread")
    return (
        f"{who} beside the first call MPI, but MPI provides {names[process.meta.thread_level]}: "
        "ask for MPI_THREAD_MULTIPLE (MPI_Init_thread)"
    )


def _unrecorded(process: ProcessSums) -> list[tuple[float, str]]:
    """Threads that are not recorded and were busy: share of the time, and name."""
    return [
        (used * _NS / process.seconds, name)
        for used, name in process.meta.others
        if used * _NS >= _BUSY * max(process.seconds, 1.0)
    ]


def _unrecorded_threads(node: PlacedNode) -> Iterator[Finding]:
    """Threads that are not recorded, were busy, and made others wait for a core."""
    busy = {process: _unrecorded(process) for process in node.processes}
    is_full = node.threads + sum(map(len, busy.values())) > node.cores
    processes = [
        process
        for process, threads in busy.items()
        if threads and (is_full or len(process.rows) + len(threads) > len(node.cores_of(process)))
    ]
    if not processes:
        return
    shares = [thread for process in processes for thread in busy[process]]
    share, name = max(shares)
    text = (
        f"{_ranks(processes)}: {plural(len(shares), 'further thread')} ('{name}') busy "
        f"{100 * share:.0f} % of the time: progress threads of MPI, or threads of the program's "
        "own, need cores as well"
    )
    made = _waited("progress_threads", text, node, processes, sum(share for share, _ in shares))
    if (made.core_hours or 0) * 3600 >= NOTHING * _thread_seconds(node.processes):
        yield made


def _better(
    nodes: Sequence[PlacedNode],
    command: TracedCommand | None,
    ids: set[str],
    environment: Mapping[str, str] | None,
) -> tuple[Line | None, str | None]:
    """The line that cures what is wrong with the placement, or why there is none."""
    if not ids:
        return None, None
    if command is None:
        return None, "the command is not known"
    openmp = any(
        bool(process.rows["regions"].any()) for node in nodes for process in node.processes
    )
    processes = sum(len(node.processes) for node in nodes)
    cores = min(node.cores // len(node.processes) for node in nodes)
    ranks = sum(node.cores for node in nodes) if cores < 1 else None
    cores = max(cores, 1) if openmp else 1
    if not command.is_launcher and processes > 1:
        return None, "a script starts the processes: change the launcher's options in it"
    teams = [int(np.count_nonzero(one.rows["regions"])) for node in nodes for one in node.processes]
    if max(teams) > 1 and ids & {"share", "oversubscribed"}:
        return None, (
            "several threads start teams (nested regions, or threads of the program's own): set "
            "OMP_NUM_THREADS so that all teams together have a core for each thread"
        )
    if any(_unrecorded(process) for node in nodes for process in node.processes):
        return None, "threads that are not recorded need cores as well, of a number not known"
    if ids == {"idle"} and not openmp:
        return None, "use more ranks where the program can: it has no OpenMP"
    if command.is_launcher and ":" in command.words:
        return None, "the line starts several programs: place the ranks of each in its own part"
    given = {} if environment is None else environment
    inside = {
        name
        for node in nodes
        for process in node.processes
        for name, value in process.meta.variables.items()
        if name in (*VARIABLES, *RIVALS) and given.get(name) != value
    } - set(re.findall(r"\w+(?=[= ])", " ".join(command.words)))
    if environment is not None and inside:
        return None, f"a script, or the program, sets {', '.join(sorted(inside))}: change it there"
    line = line_with(command, cores, ranks=ranks, openmp=openmp, several_nodes=len(nodes) > 1)
    return line, None if line else "the options of this launcher that place ranks are not known"


def bound_in_words(metas: Sequence[Meta]) -> list[tuple[str, str]]:
    """Where ranks may run: a line for each distinct placement, who and where.

    Ranks with the same CPUs stand together, so do ranks of a node that each have as many of their
    own, and nodes that are alike.
    """
    nodes: dict[str, list[Meta]] = {}
    for meta in metas:
        nodes.setdefault(meta.host, []).append(meta)
    alike: dict[tuple[str, int], list[Meta]] = {}
    for members in nodes.values():
        for where, placed in _placements(members):
            alike.setdefault((where, len(placed)), []).extend(placed)
    return [(_who(members), where) for (where, _), members in alike.items()]


def _who(members: Sequence[Meta]) -> str:
    hosts = list(dict.fromkeys(meta.host for meta in members))
    where = hosts[0] if len(hosts) == 1 else f"{len(hosts)} nodes ({hosts[0]} ... {hosts[-1]})"
    ranks = [meta.rank for meta in members if meta.rank is not None]
    if not ranks:
        return f"{where} {plural(len(members), 'process', 'processes')}"
    return f"{where} rank{'s' if len(ranks) > 1 else ''} {cpu_list(ranks)}"


def _placements(members: Sequence[Meta]) -> Iterator[tuple[str, list[Meta]]]:
    """The distinct placements on a node, and the processes that have them."""
    exact: dict[_Masks, list[Meta]] = {}
    for meta in members:
        exact.setdefault(tuple(meta.cpus[at] for at in sorted(meta.cpus)), []).append(meta)
    shapes: dict[tuple[tuple[int, ...], int, _Masks | None], list[_Masks]] = {}
    for masks, placed in exact.items():
        own = len(frozenset[int]().union(*masks))
        shape = (tuple(map(len, masks)), own, masks if len(placed) > 1 else None)
        shapes.setdefault(shape, []).append(masks)
    for (_, own, _), groups in shapes.items():
        placed = [meta for masks in groups for meta in exact[masks]]
        cpus = _cpus(frozenset[int]().union(*(mask for masks in groups for mask in masks)))
        size = len(groups[0])
        text = plural(size, "thread") + (" each" if len(placed) > 1 else "")
        apart = own == size and (len(groups) > 1 or len(placed) == 1)
        if any(len(mask) > 1 for mask in groups[0]):
            their = f"{plural(own, 'CPU')} of their own: " if len(groups) > 1 else ""
            yield f"{text} on {their}{cpus}", placed
        elif apart:
            yield f"{text}, bound to a CPU of its own: {cpus}", placed
        else:
            yield f"{text} bound to {cpus}", placed
