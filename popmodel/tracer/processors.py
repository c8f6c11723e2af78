"""How many threads of a run have how many processors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

Cpus = frozenset[int]
"""Processors of a host that a thread may use."""

_RANGES = re.compile(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*")


def parse(text: str) -> Cpus:
    """Read processors such as ``0-3,8``; none where the text is none of the kind."""
    if not _RANGES.fullmatch(text):
        return frozenset()
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def sharing(threads: Iterable[tuple[str, Cpus]]) -> dict[tuple[str, Cpus], int]:
    """How many threads may use no other processors than these, by host and processors."""
    numbers = Counter(threads)
    return {
        (host, cpus): sum(
            number
            for (other, theirs), number in numbers.items()
            if other == host and theirs and theirs <= cpus
        )
        for host, cpus in numbers
    }
