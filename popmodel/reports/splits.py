"""Splits of cores as a document has them: in order, named, refused ones by reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.reports.views import Document

LONG_RUN = 3  # so many splits refused for one reason are told together

Entry = Mapping[str, Any]


def name(split: Entry | Sequence[int]) -> str:
    """Processes and threads: ``16 x 4``."""
    if isinstance(split, Mapping):
        return f"{split['processes']} x {split['threads']}"
    processes, threads = split
    return f"{processes} x {threads}"


def varied(splits: Sequence[Entry]) -> list[str]:
    """Parameters in which measured runs differ."""
    first = splits[0]["parameters"]
    return [key for key in first if any(one["parameters"][key] != first[key] for one in splits)]


def described(split: Entry, differing: Sequence[str]) -> str:
    """A split with the parameters that tell it apart: ``16 x 4 N=512``."""
    return " ".join([name(split), *(f"{key}={split['parameters'][key]:g}" for key in differing)])


def cores(one: Entry) -> int:
    """Cores of a split."""
    return int(one["processes"] * one["threads"])


def ordered(document: Document) -> list[Entry]:
    """Possible and refused splits, by cores and threads."""
    return sorted(
        [*document["candidates"], *document["refused"]],
        key=lambda one: (cores(one), one["threads"]),
    )


def runs(splits: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """First and last of splits that follow each other and are refused for one reason."""
    groups: list[list[Entry]] = []
    for one in splits:
        if groups and _same_reason(groups[-1][-1], one):
            groups[-1].append(one)
        else:
            groups.append([one])
    for group in groups:
        if len(group) < LONG_RUN:
            yield from ((one, one) for one in group)
        else:
            yield group[0], group[-1]


def _same_reason(one: Entry, other: Entry) -> bool:
    """Whether two splits are refused in the same words, their own numbers aside."""
    if "why" not in one or "why" not in other:
        return False
    words, others = one["why"].split(), other["why"].split()
    own = {(str(one[key]), str(other[key])) for key in ("processes", "threads")}
    return len(words) == len(others) and all(
        pair[0] == pair[1] or pair in own for pair in zip(words, others, strict=True)
    )
