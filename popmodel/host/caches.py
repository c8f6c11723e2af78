"""Data caches of the cores that a process may use, from sysfs or else from lstopo."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from popmodel.host.system_files import CPU, LSTOPO, Files, number_of, parse_cpu_list, text_of
from popmodel.values import dataclass

_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class CacheLevel:
    """A level of data or unified cache."""

    level: str  # ``L1``, ``L2`` and so on
    bytes: int  # Size of one instance
    shared_by: int  # Cores that the process may use, of those that share one instance
    line: int | None = None  # Bytes of a cache line


def read_caches(files: Files, cores: Sequence[Sequence[int]]) -> tuple[CacheLevel, ...]:
    """Tell the data caches."""
    return _of_sysfs(files, cores) or _of_lstopo(files, cores)


def _of_sysfs(files: Files, cores: Sequence[Sequence[int]]) -> tuple[CacheLevel, ...]:
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
    return _commonest(levels)


def _commonest(
    levels: Mapping[int, Counter[tuple[int, int, int | None]]],
) -> tuple[CacheLevel, ...]:
    """One cache per level: that of most cores, where a node has cores of several kinds."""
    return tuple(
        CacheLevel(f"L{level}", *max(kinds, key=lambda kind: (kinds[kind], kind[1], kind[0])))
        for level, kinds in sorted(levels.items())
    )


def _of_lstopo(files: Files, cores: Sequence[Sequence[int]]) -> tuple[CacheLevel, ...]:
    from xml.etree import ElementTree

    try:
        root = ElementTree.fromstring(files.get(LSTOPO, ""))
    except ElementTree.ParseError:
        return ()
    core_of = {cpu: index for index, cpus in enumerate(cores) for cpu in cpus}
    levels: dict[int, Counter[tuple[int, int, int | None]]] = {}
    for item in root.iter("object"):
        if not re.fullmatch(r"L\dCache|Cache", item.get("type", "")):
            continue
        units = {unit.get("os_index", "") for unit in item.iter("object") if _is_cpu(unit)}
        sharing = {core_of[int(unit)] for unit in units if unit.isdigit() and int(unit) in core_of}
        level, size, line = (
            int(text) if (text := item.get(key, "")).isdigit() else 0
            for key in ("depth", "cache_size", "cache_linesize")
        )
        # cache_type: 0 unified, 1 data, 2 instruction
        if level and size and sharing and item.get("cache_type") != "2":
            shared = (size, len(sharing), line or None)
            levels.setdefault(level, Counter())[shared] += len(sharing)
    return _commonest(levels)


def _is_cpu(item: Any) -> bool:
    return bool(item.get("type") == "PU")


def _size(text: str) -> int | None:
    match = re.fullmatch(r"(\d+)([KMGT]?)i?B?", text.strip())
    return int(match[1]) * _SCALE[match[2]] if match else None
