"""What the texts of the system's files say of the hardware."""

from __future__ import annotations

import json
import os

import pytest
from machines.host.machines import GIB, KIB, MIB, arm, epyc, groups, table, vm, xeon

from popmodel.machines.host import hardware
from popmodel.machines.host.hardware import NODE, cpu_list, parse_cpu_list, read


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


# What is missing


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


def test_without_caches_the_topology_has_none_and_says_so() -> None:
    files = {path: text for path, text in vm().files().items() if "/cache/" not in path}
    told = read(files)
    assert told.caches == ()
    assert told.line is None
    assert "caches" not in told.topology()
    assert told.absent == {"topology.caches": "sysfs does not report the caches"}


def test_sysfs_without_sizes() -> None:
    # some boards describe their caches without their sizes
    files = {path: text for path, text in arm().files().items() if not path.endswith("/size")}
    assert read(files).caches == ()


# Limits of control groups


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


# Lists of CPUs


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
