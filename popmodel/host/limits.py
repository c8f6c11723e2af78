"""Limits that control groups set to the CPU time and the memory of a process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from popmodel.host.system_files import Files

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
