"""What the texts of the system's files say of the hardware."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from popmodel.host import hardware
from popmodel.host.hardware import CPU, NODE, cpu_list, parse_cpu_list, read

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


def test_a_virtual_machine() -> None:
    told = read(vm().files())
    assert told.model == "Intel(R) Xeon(R) Processor"
    assert told.virtual
    assert (told.smt, told.line, told.governor, told.cpu_limit) == (1, 64, None, None)
    assert told.topology() == {
        "nodes": 1,
        "cores_per_node": 2,
        "sockets": 1,
        "domains": 1,
        "caches": table(("L1", 48 * KIB, 1), ("L2", 2 * MIB, 1), ("L3", 480 * MIB, 2)),
        "memory_per_node": 64 * GIB,
    }


def test_hardware_threads_of_a_core_are_one_core() -> None:
    told = read(xeon().files())
    assert told.smt == 2
    assert told.cores[3].cpus == (3, 19)
    assert told.cores[3].threads == 2
    assert not told.virtual
    assert told.topology(nodes=4) == {
        "nodes": 4,
        "cores_per_node": 16,
        "sockets": 2,
        "domains": 2,
        "caches": table(("L1", 32 * KIB, 1), ("L2", 256 * KIB, 1), ("L3", 20 * MIB, 8)),
        "memory_per_node": 64 * GIB,
    }


def test_several_last_level_caches_and_domains_per_socket() -> None:
    topology = read(epyc().files()).topology()
    assert topology["cores_per_node"] == 128
    assert (topology["sockets"], topology["domains"]) == (2, 8)
    assert topology["caches"][-1] == {"level": "L3", "bytes": 32 * MIB, "shared_by": 8}


def test_what_is_not_allowed_does_not_count() -> None:
    # half of an L3 of the first socket, and one hardware thread of two cores of the second
    told = read(epyc().files(allowed="0-3,128-131,64,65"))
    assert told.cpus == (0, 1, 2, 3, 64, 65, 128, 129, 130, 131)
    assert len(told.online) == 256
    topology = told.topology()
    assert topology["cores_per_node"] == 6
    assert (topology["sockets"], topology["domains"]) == (2, 2)
    assert topology["caches"][-1]["shared_by"] == 4
    assert told.host()["cpus_allowed"] == "0-3,64-65,128-131"
    assert told.host()["cpus_online"] == 256


def test_a_processor_of_arm() -> None:
    told = read(arm().files())
    assert told.model == "ARM implementer 0x41, part 0xd0c"
    topology = told.topology()
    assert (topology["cores_per_node"], topology["sockets"], topology["domains"]) == (8, 1, 1)
    assert topology["caches"] == table(("L1", 64 * KIB, 1), ("L2", MIB, 1), ("L3", 32 * MIB, 8))


@pytest.mark.parametrize(
    "entries",
    [
        [
            {"field": "Vendor ID:", "data": "ARM"},
            {"field": "Model name:", "data": "Neoverse-N1"},
        ],
        [
            {
                "field": "Vendor ID:",
                "data": "ARM",
                "children": [{"field": "Model name:", "data": "Neoverse-N1", "children": []}],
            }
        ],
    ],
    ids=["flat", "nested"],
)
def test_lscpu_names_a_processor_of_arm(entries: list[dict[str, object]]) -> None:
    files = {**arm().files(), "lscpu": json.dumps({"lscpu": entries})}
    assert read(files).model == "ARM Neoverse-N1"


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"lscpu": [{"data": 1}]}'])
def test_an_lscpu_that_says_nothing_is_passed_over(text: str) -> None:
    assert read({**arm().files(), "lscpu": text}).model == "ARM implementer 0x41, part 0xd0c"


def test_cores_of_two_kinds_count_as_the_commoner_one() -> None:
    machine = vm()
    machine.package_of = dict.fromkeys(range(6), 0)
    machine.siblings = groups(6, 1)
    machine.domains = [list(range(6))]
    machine.sharing = {
        (1, "Data", "48K"): groups(2, 1),
        (1, "Data", "32K"): groups(4, 1, start=2),
        (2, "Unified", "2M"): groups(2, 1),
        (2, "Unified", "4M"): [[2, 3, 4, 5]],
    }
    # Entries of one CPU have consecutive numbers in sysfs, whatever the others have.
    files = machine.files()
    assert [(cache.level, cache.bytes, cache.shared_by) for cache in read(files).caches] == [
        ("L1", 32 * KIB, 1),
        ("L2", 4 * MIB, 4),
    ]


# Control groups


V1 = "/sys/fs/cgroup/cpu,cpuacct/docker/abc"
V2 = "/sys/fs/cgroup"


def test_a_container_of_the_second_kind() -> None:
    files = xeon().files(allowed="0-7")
    files |= {f"{V2}/cpu.max": "400000 100000\n", f"{V2}/memory.max": f"{8 * GIB}\n"}
    told = read(files)
    assert told.cpu_limit == 4
    assert len(told.cores) == 8
    topology = told.topology()
    assert topology["cores_per_node"] == 4
    assert topology["memory_per_node"] == 8 * GIB
    assert topology["caches"][-1]["shared_by"] == 4
    assert told.host()["cpu_limit"] == 4
    assert told.host()["memory_limit"] == 8 * GIB


def test_a_container_of_the_first_kind() -> None:
    files = xeon().files()
    files |= {
        f"{V1}/cpu.cfs_quota_us": "250000\n",
        f"{V1}/cpu.cfs_period_us": "50000\n",
        "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": f"{16 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    told = read(files)
    assert told.cpu_limit == 5
    assert told.usable_cores == 5
    assert told.usable_memory == 16 * GIB


def test_the_tightest_group_around_the_process_counts() -> None:
    files = xeon().files()
    files |= {
        f"{V2}/user.slice/cpu.max": "200000 100000\n",
        f"{V2}/user.slice/job.scope/cpu.max": "800000 100000\n",
        f"{V2}/user.slice/memory.max": "max\n",
        f"{V2}/user.slice/job.scope/memory.high": f"{4 * GIB}\n",
    }
    assert read(files).cpu_limit == 2
    assert read(files).memory_limit == 4 * GIB


@pytest.mark.parametrize(
    "files",
    [
        {f"{V2}/cpu.max": "max 100000\n", f"{V2}/memory.max": "max\n"},
        {f"{V1}/cpu.cfs_quota_us": "-1\n", f"{V1}/cpu.cfs_period_us": "100000\n"},
        {f"{V2}/cpu.max": "", f"{V2}/memory.max": "lots"},
    ],
    ids=["second kind", "first kind", "damaged"],
)
def test_no_limit(files: dict[str, str]) -> None:
    told = read({**xeon().files(), **files})
    assert (told.cpu_limit, told.memory_limit) == (None, None)
    assert told.usable_cores == 16


def test_less_than_one_cpu_is_one_core() -> None:
    files = {**xeon().files(), f"{V2}/cpu.max": "50000 100000\n"}
    assert read(files).usable_cores == 1
    assert read(files).topology()["sockets"] == 1


def test_a_limit_above_the_cores_changes_nothing() -> None:
    files = {
        **vm().files(),
        f"{V2}/cpu.max": "6400000 100000\n",
        f"{V2}/memory.max": f"{GIB << 20}",
    }
    assert read(files).usable_cores == 2
    assert read(files).usable_memory == 64 * GIB


# What is missing


def test_without_caches_the_topology_has_none_and_says_so() -> None:
    files = {path: text for path, text in vm().files().items() if "/cache/" not in path}
    told = read(files)
    assert told.caches == ()
    assert told.line is None
    assert "caches" not in told.topology()
    assert told.absent == {"topology.caches": "neither sysfs nor lstopo reports the caches"}


LSTOPO = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine">
  <object type="Package" os_index="0">
   <object type="L3Cache" cache_size="33554432" depth="3" cache_linesize="64" cache_type="0">
    <object type="L2Cache" cache_size="524288" depth="2" cache_linesize="64" cache_type="0">
     <object type="L1Cache" cache_size="32768" depth="1" cache_linesize="64" cache_type="1">
      <object type="L1iCache" cache_size="32768" depth="1" cache_linesize="64" cache_type="2">
       <object type="Core" os_index="0"><object type="PU" os_index="0"/></object>
      </object>
     </object>
    </object>
    <object type="L2Cache" cache_size="524288" depth="2" cache_linesize="64" cache_type="0">
     <object type="L1Cache" cache_size="32768" depth="1" cache_linesize="64" cache_type="1">
      <object type="Core" os_index="1"><object type="PU" os_index="1"/></object>
     </object>
    </object>
   </object>
  </object>
 </object>
</topology>
"""


def test_lstopo_tells_the_caches_that_sysfs_lacks() -> None:
    files = {path: text for path, text in vm().files().items() if "/cache/" not in path}
    told = read({**files, "lstopo": LSTOPO})
    assert told.topology()["caches"] == table(
        ("L1", 32 * KIB, 1), ("L2", 512 * KIB, 1), ("L3", 32 * MIB, 2)
    )
    assert told.line == 64
    assert told.absent == {}


def test_a_damaged_lstopo_is_passed_over() -> None:
    files = {path: text for path, text in vm().files().items() if "/cache/" not in path}
    assert read({**files, "lstopo": "<topology"}).caches == ()


def test_sysfs_without_sizes() -> None:
    # some boards describe their caches without their sizes
    files = {path: text for path, text in arm().files().items() if not path.endswith("/size")}
    assert read(files).caches == ()


def test_old_kernels_name_the_siblings_differently() -> None:
    files = {p: text for p, text in xeon().files().items() if not p.endswith("core_cpus_list")}
    assert len(read(files).cores) == 16


def test_without_any_topology_each_cpu_is_a_core() -> None:
    told = read({"affinity": "0-3\n"})
    assert told.topology() == {"nodes": 1, "cores_per_node": 4, "sockets": 1, "domains": 1}
    assert told.model is None


def test_nothing_at_all_is_one_core() -> None:
    assert read({}).topology()["cores_per_node"] == 1


def test_memory_without_cpus_is_no_domain() -> None:
    files = {**xeon().files(), f"{NODE}/node2/cpulist": "\n"}
    assert read(files).domains == 2


# This machine


def test_this_machine_agrees_with_the_system() -> None:
    told = hardware.here()
    assert set(told.cpus) == os.sched_getaffinity(0)
    assert 1 <= told.usable_cores <= len(told.cpus)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert told.memory == pytest.approx(pages, rel=0.01)


def test_the_snapshot_is_enough_to_tell_it_again() -> None:
    files = hardware.snapshot()
    assert "/proc/cpuinfo" in files
    assert files["/proc/cpuinfo"].count("processor") <= 1
    assert read(json.loads(json.dumps(files))) == hardware.here()


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3,8\n", (0, 1, 2, 3, 8)),
        ("5", (5,)),
        ("", ()),
        ("0-1,2-3", (0, 1, 2, 3)),
        ("all", ()),
    ],
)
def test_lists_of_cpus(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


def test_lists_of_cpus_are_written_as_the_system_does() -> None:
    assert cpu_list({8, 1, 0, 2}) == "0-2,8"
    assert cpu_list([]) == ""
