"""What the system writes below ``/sys`` and ``/proc``: texts by path, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

Files = Mapping[str, str]

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
AFFINITY = "affinity"
"""Pseudo path: the list of CPUs that the process may run on."""
LSCPU = "lscpu"
"""Pseudo path: what ``lscpu -J`` printed."""
LSTOPO = "lstopo"
"""Pseudo path: what ``lstopo --of xml`` printed."""


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
