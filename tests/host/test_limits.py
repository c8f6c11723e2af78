"""Limits of control groups."""

from __future__ import annotations

import pytest
from host.machines import GIB, vm, xeon

from popmodel.host.hardware import read

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
