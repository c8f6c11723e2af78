"""Machines as the kernel describes them, for tests of what is read of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from popmodel.machines.host.hardware import CPU, NODE, cpu_list

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass
class Machine:
    """A node as the kernel describes it, from which its files are made.

    `sharing` gives for each cache (level, type, size as sysfs writes it) the groups of CPUs.
    """

    cpuinfo: str
    package_of: dict[int, int]
    siblings: Sequence[Sequence[int]]
    domains: Sequence[Sequence[int]]
    sharing: dict[tuple[int, str, str], Sequence[Sequence[int]]]
    memory: int = 64 * GIB
    line: int = 64

    def files(self, allowed: str | None = None) -> dict[str, str]:
        """Files of sysfs and procfs, and the CPUs that the process may use."""
        cpus = sorted(self.package_of)
        files = {
            "/proc/cpuinfo": self.cpuinfo,
            "/proc/meminfo": f"MemTotal:       {self.memory // KIB} kB\n",
            f"{CPU}/online": cpu_list(cpus) + "\n",
            f"{CPU}/present": cpu_list(cpus) + "\n",
            "affinity": (allowed or cpu_list(cpus)) + "\n",
        }
        for core, group in enumerate(self.siblings):
            for cpu in group:
                topology = f"{CPU}/cpu{cpu}/topology"
                files[f"{topology}/core_id"] = f"{core}\n"
                files[f"{topology}/physical_package_id"] = f"{self.package_of[cpu]}\n"
                files[f"{topology}/thread_siblings_list"] = cpu_list(group) + "\n"
                files[f"{topology}/core_cpus_list"] = cpu_list(group) + "\n"
        for index, ((level, kind, size), groups) in enumerate(self.sharing.items()):
            for group in groups:
                for cpu in group:
                    cache = f"{CPU}/cpu{cpu}/cache/index{index}"
                    files[f"{cache}/level"] = f"{level}\n"
                    files[f"{cache}/type"] = f"{kind}\n"
                    files[f"{cache}/size"] = f"{size}\n"
                    files[f"{cache}/coherency_line_size"] = f"{self.line}\n"
                    files[f"{cache}/shared_cpu_list"] = cpu_list(group) + "\n"
        for node, group in enumerate(self.domains):
            files[f"{NODE}/node{node}/cpulist"] = cpu_list(group) + "\n"
        return files


def groups(count: int, size: int, start: int = 0) -> list[list[int]]:
    """Consecutive groups of numbers."""
    return [list(range(start + i * size, start + (i + 1) * size)) for i in range(count)]


def with_siblings(cores: Sequence[Sequence[int]], offset: int) -> list[list[int]]:
    """The same groups with the second hardware thread of each core, numbered `offset` higher."""
    return [[*group, *(cpu + offset for cpu in group)] for group in cores]


def vm() -> Machine:
    """A virtual machine of two cores."""
    single = groups(2, 1)
    return Machine(
        "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Processor\n"
        "flags\t\t: fpu vme sse2 hypervisor avx512f\n",
        dict.fromkeys(range(2), 0),
        single,
        [[0, 1]],
        {
            (1, "Data", "48K"): single,
            (1, "Instruction", "64K"): single,
            (2, "Unified", "2048K"): single,
            (3, "Unified", "491520K"): [[0, 1]],
        },
    )


def xeon() -> Machine:
    """Two sockets of 8 cores with two hardware threads each: CPU n and n + 16 are one core."""
    cores = with_siblings(groups(16, 1), 16)
    sockets = with_siblings(groups(2, 8), 16)
    return Machine(
        "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz\nflags\t: fpu ht\n",
        {cpu: cpu % 16 // 8 for cpu in range(32)},
        cores,
        sockets,
        {
            (1, "Data", "32K"): cores,
            (1, "Instruction", "32K"): cores,
            (2, "Unified", "256K"): cores,
            (3, "Unified", "20480K"): sockets,
        },
    )


def epyc() -> Machine:
    """Two sockets of 64 cores: 8 cores to an L3 and four memory domains to a socket (NPS4)."""
    cores = with_siblings(groups(128, 1), 128)
    return Machine(
        "processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\nflags\t: fpu ht\n",
        {cpu: cpu % 128 // 64 for cpu in range(256)},
        cores,
        with_siblings(groups(8, 16), 128),
        {
            (1, "Data", "32K"): cores,
            (1, "Instruction", "32K"): cores,
            (2, "Unified", "512K"): cores,
            (3, "Unified", "32768K"): with_siblings(groups(16, 8), 128),
        },
        memory=512 * GIB,
    )


def arm() -> Machine:
    """An aarch64 server of 8 cores: no name in cpuinfo, package ids of -1, lines of 64 bytes."""
    single = groups(8, 1)
    return Machine(
        "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\n"
        "CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd0c\nCPU revision\t: 1\n",
        dict.fromkeys(range(8), -1),
        single,
        [list(range(8))],
        {
            (1, "Data", "64K"): single,
            (1, "Instruction", "64K"): single,
            (2, "Unified", "1M"): single,
            (3, "Unified", "32M"): [list(range(8))],
        },
    )


def table(*caches: tuple[str, int, int]) -> list[dict[str, object]]:
    return [{"level": level, "bytes": size, "shared_by": by} for level, size, by in caches]
