"""Remarks on several runs, each told once.

The same remark on several runs mostly differs in its numbers only. It is told once then, with the
numbers of the runs in their order: ``704 / 2992 calls lack a record``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from popmodel.units import count

Run = Mapping[str, Any]
Remark = TypeVar("Remark")

# Digits may stand in groups of three, as `popmodel.units.count` writes them.
_NUMBER = re.compile(
    r"(?<![\w.])(?<!\d,)(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w)"
)


def joint_caveats(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """What has to be known before the numbers of the runs are read, as `joint_notes` are told."""
    return _told([run["caveats"] for run in runs], names)


def joint_notes(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """Notes on the runs; one that holds for all runs is told without their names."""
    families = [[note for one in run["family_notes"].values() for note in one] for run in runs]
    return _told([[*run["notes"], *more] for run, more in zip(runs, families, strict=True)], names)


def _told(remarks: Sequence[Sequence[str]], names: Sequence[str]) -> list[str]:
    """The remarks on each run, those that differ in numbers only as one."""
    said = [
        (name, remark)
        for name, mine in zip(names, remarks, strict=True)
        for remark in dict.fromkeys(mine)
    ]
    return [
        _about([name for name, _ in group], names, join([note for _, note in group]))
        for group in _alike(said, str)
    ]


def joint_warnings(runs: Sequence[Run], names: Sequence[str]) -> list[dict[str, Any]]:
    """Warnings about the traces, ``{"text", "count", "line"}``.

    One about a single trace keeps its count and line; of one about several the counts are told in
    its text.
    """
    warned = [
        (name, warning)
        for run, name in zip(runs, names, strict=True)
        for warning in run["warnings"]
    ]
    return [_joint_warning(group, names) for group in _alike(warned, lambda one: str(one["text"]))]


def join(texts: Sequence[str]) -> str:
    """One text for several that differ in numbers only; a number that differs is told for each."""
    numbers = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    told = iter([" / ".join(each if len(set(each)) > 1 else each[:1]) for each in numbers])
    return _NUMBER.sub(lambda _: next(told), texts[0])


def _joint_warning(
    group: Sequence[tuple[str, Mapping[str, Any]]], names: Sequence[str]
) -> dict[str, Any]:
    warnings = [warning for _, warning in group]
    where = [name for name, _ in group]
    text = _about(where, names, join([warning["text"] for warning in warnings]))
    if len(group) == 1:
        return {**warnings[0], "text": text}
    times = [warning.get("count", 1) for warning in warnings]
    if max(times) > 1:
        text += f" ({' / '.join(count(each) for each in times)} times)"
    return {"text": text}


def _about(where: Sequence[str], names: Sequence[str], text: str) -> str:
    return text if len(where) == len(names) else f"{', '.join(where)}: {text}"


def _alike(
    said: Iterable[tuple[str, Remark]], text_of: Callable[[Remark], str]
) -> list[list[tuple[str, Remark]]]:
    """Remarks with their runs, in groups whose texts differ in numbers only.

    A group has at most one remark of each run: a second one like it begins the next group.
    """
    groups: dict[tuple[str, int], list[tuple[str, Remark]]] = {}
    told: dict[tuple[str, str], int] = {}
    for name, remark in said:
        pattern = _NUMBER.sub("#", text_of(remark))
        turn = told.get((name, pattern), 0)
        told[name, pattern] = turn + 1
        groups.setdefault((pattern, turn), []).append((name, remark))
    return list(groups.values())
