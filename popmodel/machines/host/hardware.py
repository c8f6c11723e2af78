"""What hardware a process may use: cores, caches, memory, and limits of control groups."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Any

from popmodel.base.values import NamedTuple, dataclass

# What the system writes below ``/sys`` and ``/proc``: texts by path, and how they are read.


Files = Mapping[str, str]

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
AFFINITY = "affinity"
"""Pseudo path: the list of CPUs that the process may run on."""


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Read a list of CPUs as the system writes it, such as ``0-3,8``; empty if it is none."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        match = re.fullmatch(r"\s*(\d{1,7})(?:-(\d{1,7}))?\s*", part)
        if match is None:
            return ()
        cpus.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(cpus))


def cpu_list(cpus: Iterable[int]) -> str:
    """Write CPUs as the system does: ``0-3,8``."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in ranges)


def text_of(files: Files, path: str) -> str | None:
    """Return the text of a file of one line; None if there is none."""
    return files.get(path, "").strip() or None


def number_of(files: Files, path: str, otherwise: int) -> int:
    """Return the number in a file; ``otherwise`` if there is none."""
    text = files.get(path, "").strip()
    return int(text) if re.fullmatch(r"-?\d{1,9}", text) else otherwise


# Limits that control groups set to the CPU time and the memory of a process.


_PERIOD = 100_000  # microseconds: the kernel's own period of CPU quotas
_NO_LIMIT = 1 << 60  # cgroup v1 writes "no limit" as a number near 2**63


def limit_paths() -> Iterator[Path]:
    """Give the files of limits of this process's control groups and of the groups around them."""
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # a system without control groups
        return
    for group in groups:
        _, controllers, inside = group.split(":", 2)
        root = _mounted(mounts, controllers)
        if root is None:
            continue
        place, top = root
        # In a container the group's path may be the host's, of which only the end is mounted.
        relative = inside.removeprefix(top if top != "/" else "").lstrip("/")
        below = place / relative
        for folder in [below, *below.parents]:
            for name in _LIMITS:
                yield folder / name
            if folder == place:
                break


_LIMITS = (
    *("cpu.max", "memory.max", "memory.high"),
    *("cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes"),
)


def _mounted(mounts: Iterable[str], controllers: str) -> tuple[Path, str] | None:
    """Where a hierarchy of control groups is mounted, and which of its groups that place shows."""
    for mount in mounts:
        before, _, after = mount.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if controllers:
            fits = kind[0] == "cgroup" and set(controllers.split(",")) <= set(kind[2].split(","))
        else:
            fits = kind[0] == "cgroup2"
        if fits:
            return Path(fields[4]), fields[3]
    return None


def cpu_limit(files: Files) -> float | None:
    """Return the CPUs' worth of time of the tightest control group around the process."""
    limits = []
    for path, text in files.items():
        name = PurePosixPath(path).name
        if name == "cpu.max":
            quota, _, period = text.strip().partition(" ")
            limits.append(_ratio(quota, period or str(_PERIOD)))
        elif name == "cpu.cfs_quota_us":
            other = str(PurePosixPath(path).with_name("cpu.cfs_period_us"))
            limits.append(_ratio(text.strip(), files.get(other, str(_PERIOD)).strip()))
    return min((limit for limit in limits if limit is not None), default=None)


def _ratio(quota: str, period: str) -> float | None:
    """Quota over period, or None for ``max``, -1 and what is not a number."""
    if not quota.isdigit() or not period.isdigit() or int(quota) == 0 or int(period) == 0:
        return None
    return int(quota) / int(period)


def memory_limit(files: Files) -> int | None:
    """Return the bytes of the tightest control group around the process."""
    limits = []
    for path, text in files.items():
        value = text.strip()
        known = PurePosixPath(path).name in ("memory.max", "memory.high", "memory.limit_in_bytes")
        if known and value.isdigit() and 0 < int(value) < _NO_LIMIT:
            limits.append(int(value))
    return min(limits, default=None)


# Data caches of the cores that a process may use.


_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class CacheLevel(NamedTuple):
    """A level of data or unified cache."""

    level: str  # ``L1``, ``L2`` and so on
    bytes: int  # Size of one instance
    shared_by: int  # Cores that the process may use, of those that share one instance
    line: int | None = None  # Bytes of a cache line


def read_caches(files: Files, cores: Sequence[Sequence[int]]) -> tuple[CacheLevel, ...]:
    """Tell the data caches; one per level: that of most cores, where these are of several kinds."""
    levels: dict[int, Counter[tuple[int, int, int | None]]] = {}
    core_of = {cpu: index for index, cpus in enumerate(cores) for cpu in cpus}
    # A few dozen entries per CPU and thousands of CPUs: each CPU's own are picked in one pass.
    pattern = re.compile(rf"{CPU}/cpu(\d+)/cache/(index\d+)/level")
    firsts = {cpus[0] for cpus in cores}
    for path in files:
        match = pattern.fullmatch(path)
        if match is None or int(match[1]) not in firsts:
            continue
        folder = str(PurePosixPath(path).parent)
        size = _size(files.get(f"{folder}/size", ""))
        kind = text_of(files, f"{folder}/type")
        level = number_of(files, path, 0)
        if not level or not size or kind == "Instruction":
            continue
        sharing = parse_cpu_list(files.get(f"{folder}/shared_cpu_list", "")) or (int(match[1]),)
        shared_by = len({core_of[cpu] for cpu in sharing if cpu in core_of})
        line = number_of(files, f"{folder}/coherency_line_size", 0) or None
        levels.setdefault(level, Counter())[size, max(1, shared_by), line] += 1
    return tuple(
        CacheLevel(f"L{level}", *max(kinds, key=lambda kind: (kinds[kind], kind[1], kind[0])))
        for level, kinds in sorted(levels.items())
    )


def _size(text: str) -> int | None:
    match = re.fullmatch(r"(\d+)([KMGT]?)i?B?", text.strip())
    return int(match[1]) * _SCALE[match[2]] if match else None


# What hardware a process may use: cores, sockets, memory domains, caches, memory and limits.
#
# The facts come from the texts of files below ``/sys`` and ``/proc``, given as a mapping from path
# to text. So what the measuring program noted on a compute node, what this machine says, and what a
# test writes down are read in the same way.
#
# What counts is what the process may use: a job that was given 4 of 64 cores, or a container
# limited to them, is on a machine of 4 cores. Hardware threads of one core are one core.


_NO_CACHES = "sysfs does not report the caches"


class Core(NamedTuple):
    """A core that the process may use."""

    cpus: tuple[int, ...]  # Its hardware threads that the process may use
    threads: int  # All its hardware threads that are online
    socket: int  # Number of its socket; -1 where the system does not number sockets
    domain: int  # Number of its memory domain (NUMA node); -1 where the system does not tell


@dataclass(frozen=True)
class Hardware:
    """The part of a node that a process may use."""

    model: str | None  # Name of the processor
    cores: tuple[Core, ...]  # In the order of their first CPU
    online: tuple[int, ...]  # CPUs of the node that are online, allowed or not
    caches: tuple[CacheLevel, ...] = ()  # From the innermost outwards; empty where nothing tells
    memory: int | None = None  # Bytes of memory of the node
    cpu_limit: float | None = None  # CPUs' worth of time that the control group grants
    memory_limit: int | None = None  # Bytes that the control group grants
    governor: str | None = None  # How the system chooses the clock
    virtual: bool = False  # Whether the processor says that it is a virtual machine's
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def cpus(self) -> tuple[int, ...]:
        """CPUs (hardware threads) that the process may use."""
        return tuple(sorted(cpu for core in self.cores for cpu in core.cpus))

    @property
    def usable_cores(self) -> int:
        """Cores that can be busy at once: those allowed, or fewer if their time is limited."""
        if self.cpu_limit is None:
            return len(self.cores)
        return max(1, min(len(self.cores), int(self.cpu_limit + 0.01)))

    @property
    def sockets(self) -> int:
        """Sockets that the usable cores span."""
        return min(len({core.socket for core in self.cores}), self.usable_cores)

    @property
    def domains(self) -> int:
        """Memory domains that the usable cores span."""
        return min(len({core.domain for core in self.cores}), self.usable_cores)

    @property
    def smt(self) -> int:
        """The most hardware threads of one core that the process may use."""
        return max(len(core.cpus) for core in self.cores)

    @property
    def line(self) -> int | None:
        """Bytes of a cache line, of the outermost cache that tells."""
        return next((cache.line for cache in reversed(self.caches) if cache.line), None)

    @property
    def usable_memory(self) -> int | None:
        """Bytes of memory of the node, or fewer if they are limited."""
        return min(filter(None, (self.memory, self.memory_limit)), default=None)

    def topology(self, nodes: int = 1) -> dict[str, Any]:
        """Return the table ``topology`` of a machine profile; what is not known is left out."""
        cores = self.usable_cores
        table: dict[str, Any] = {
            "nodes": nodes,
            "cores_per_node": cores,
            "sockets": self.sockets,
            "domains": self.domains,
            "caches": [
                {
                    "level": cache.level,
                    "bytes": cache.bytes,
                    "shared_by": min(cache.shared_by, cores),
                }
                for cache in self.caches
            ],
            "memory_per_node": self.usable_memory,
        }
        return {key: value for key, value in table.items() if value not in (None, [])}

    def host(self) -> dict[str, Any]:
        """Return what the table ``host`` of a machine profile says of the hardware.

        It informs only. Limits stand here because the topology counts what is left after them.
        """
        facts = {
            "cpu": self.model,
            "cpus_online": len(self.online),
            "cpus_allowed": cpu_list(self.cpus),
            "threads_per_core": max(core.threads for core in self.cores),
            "governor": self.governor,
            "virtual": self.virtual or None,
            "cpu_limit": self.cpu_limit,
            "memory_limit": self.memory_limit,
        }
        return {key: value for key, value in facts.items() if value is not None}


def read(files: Files) -> Hardware:
    """Tell the hardware from the texts of the system's files."""
    cpuinfo = _colon_table(files.get("/proc/cpuinfo", ""))
    allowed = parse_cpu_list(files.get(AFFINITY, ""))
    online = parse_cpu_list(files.get(f"{CPU}/online", "")) or allowed or (0,)
    usable = tuple(sorted(set(online) & set(allowed))) or online
    cores = _cores(files, usable, online)
    caches = read_caches(files, [core.cpus for core in cores])
    memory = re.search(r"MemTotal:\s*(\d+) kB", files.get("/proc/meminfo", ""))
    return Hardware(
        model=_model(cpuinfo),
        cores=cores,
        online=online,
        caches=caches,
        memory=int(memory[1]) * 1024 if memory else None,
        cpu_limit=cpu_limit(files),
        memory_limit=memory_limit(files),
        governor=text_of(files, f"{CPU}/cpu0/cpufreq/scaling_governor"),
        virtual="hypervisor" in cpuinfo.get("flags", "").split(),
        absent={} if caches else {"topology.caches": _NO_CACHES},
    )


def here() -> Hardware:
    """Tell the hardware of this machine, as this process may use it."""
    return read(snapshot())


def snapshot() -> dict[str, str]:
    """Read the files of this machine that tell its hardware."""
    files = {AFFINITY: cpu_list(os.sched_getaffinity(0)) + "\n"}
    for path in _paths():
        # Much of sysfs is absent on some machines, and a few files refuse to be read.
        with suppress(OSError):
            files[str(path)] = path.read_text(encoding="utf-8", errors="replace")
    if cpuinfo := files.get("/proc/cpuinfo"):
        files["/proc/cpuinfo"] = cpuinfo.split("\n\n", 1)[0] + "\n"
    return files


def _paths() -> Iterator[Path]:
    yield from map(Path, ("/proc/cpuinfo", "/proc/meminfo", f"{CPU}/online", f"{CPU}/present"))
    yield Path(f"{CPU}/cpu0/cpufreq/scaling_governor")
    for cpu in sorted(Path(CPU).glob("cpu[0-9]*")):
        for name in _TOPOLOGY:
            yield cpu / "topology" / name
        for index in sorted(cpu.glob("cache/index[0-9]*")):
            for name in ("level", "type", "size", "coherency_line_size", "shared_cpu_list"):
                yield index / name
    for node in sorted(Path(NODE).glob("node[0-9]*")):
        yield node / "cpulist"
        yield node / "meminfo"
    yield from limit_paths()


_TOPOLOGY = ("core_id", "physical_package_id", "thread_siblings_list", "core_cpus_list")


def _model(cpuinfo: Mapping[str, str]) -> str | None:
    """Name of the processor, which x86 and POWER write into cpuinfo; ARM its numbers."""
    for key in ("model name", "cpu", "cpu model"):
        if name := cpuinfo.get(key):
            return name
    if (part := cpuinfo.get("CPU part")) is not None:
        return f"ARM implementer {cpuinfo.get('CPU implementer', '?')}, part {part}"
    return None


def _colon_table(text: str) -> dict[str, str]:
    """First block of lines ``key : value``."""
    table: dict[str, str] = {}
    for line in text.split("\n\n", 1)[0].splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            table.setdefault(key.strip(), value.strip())
    return table


def _cores(files: Files, usable: tuple[int, ...], online: tuple[int, ...]) -> tuple[Core, ...]:
    """Gather CPUs into cores. Without topology every CPU counts as a core of its own."""
    domain_of = _domains(files)
    together: dict[tuple[int, ...], list[int]] = {}
    for cpu in usable:
        together.setdefault(_siblings(files, cpu), []).append(cpu)
    return tuple(
        Core(
            cpus=tuple(cpus),
            threads=len(set(siblings) & set(online)) or len(cpus),
            socket=number_of(files, f"{CPU}/cpu{cpus[0]}/topology/physical_package_id", -1),
            domain=domain_of.get(cpus[0], -1),
        )
        for siblings, cpus in together.items()
    )


def _siblings(files: Files, cpu: int) -> tuple[int, ...]:
    """Hardware threads of the core that a CPU belongs to."""
    folder = f"{CPU}/cpu{cpu}/topology"
    # core_cpus_list is the name since Linux 5.4, thread_siblings_list the older one.
    for name in ("core_cpus_list", "thread_siblings_list"):
        siblings = parse_cpu_list(files.get(f"{folder}/{name}", ""))
        if cpu in siblings:
            return siblings
    return (cpu,)


def _domains(files: Files) -> dict[int, int]:
    """Memory domain of each CPU. Domains without CPUs (memory of another kind) do not appear."""
    domains = {}
    for path, text in files.items():
        if match := re.fullmatch(rf"{NODE}/node(\d+)/cpulist", path):
            domains.update(dict.fromkeys(parse_cpu_list(text), int(match[1])))
    return domains
