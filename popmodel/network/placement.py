"""Which rank runs on which node, and how fast: as traced, or another way."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.errors import UsageError
from popmodel.base.units import plural
from popmodel.base.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Which rank runs on which node: as traced, or another way.


TRACED = "traced"
"""The name of the mapping that changes nothing."""
RULES = ("block", "cyclic")

_HINT = (
    "block:4 puts 4 consecutive ranks on each node, cyclic:4 deals ranks out to nodes of 4 in turn"
)


@dataclass(frozen=True)
class RankMapping:
    """Nodes of ranks."""

    name: str  # How it is written: ``block:4``, ``cyclic:4``, or the path of a file
    rule: str  # One of `RULES`, or ``listed``
    per_node: int = 0  # Ranks of a node, by rule
    nodes: tuple[int, ...] = ()  # Node of each rank, where they are listed

    def nodes_of(self, processes: int) -> NDArray[np.int32]:
        """Return the node of each process."""
        ranks = np.arange(processes, dtype=np.int32)
        if self.rule == "block":
            return ranks // np.int32(self.per_node)
        if self.rule == "cyclic":
            return ranks % np.int32(-(-processes // self.per_node))
        if len(self.nodes) != processes:
            raise UsageError(
                f"mapping {self.name}: lists {plural(len(self.nodes), 'rank')}, the run has "
                f"{processes}",
                "write one node per rank, each on a line of its own",
            )
        return np.array(self.nodes, dtype=np.int32)


def parse_mapping(text: str) -> RankMapping | None:
    """Read a mapping by rule; None for ``traced``."""
    if text.strip() == TRACED:
        return None
    rule, _, number = text.strip().partition(":")
    if rule not in RULES or not number.isdecimal() or int(number) < 1:
        raise UsageError(f"'{text}': must be traced, block:N, cyclic:N or a file", _HINT)
    return RankMapping(f"{rule}:{int(number)}", rule, int(number))


def listed(name: str, lines: Sequence[str]) -> RankMapping:
    """Return the mapping of a file with the node of one rank per line."""
    numbers: dict[str, int] = {}
    nodes = []
    for count, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if len(words) > 1:
            raise UsageError(
                f"{name}, line {count}: one node expected, not {' '.join(words)!r}",
                "write one node per rank, each on a line of its own",
            )
        if words:
            nodes.append(numbers.setdefault(words[0], len(numbers)))
    if not nodes:
        raise UsageError(f"{name}: names no node", "write the node of rank 0 on the first line")
    return RankMapping(name, "listed", nodes=tuple(nodes))


# CPU speeds that differ between processes: ``0=2,4-7=0.5`` of ranks, the same of nodes.


_SPEED_HINT = "write 0=2 for one twice as fast as traced, 4-7=0.5 for four of half the speed"


@dataclass(frozen=True)
class Speeds:
    """Speeds of some ranks or nodes, relative to the traced run."""

    name: str  # How they are written
    # First and last of some that follow one another, and their speed; the last part that names one
    # counts.
    parts: tuple[tuple[int, int, float], ...]

    def of(self, count: int, what: str = "rank") -> NDArray[np.float64]:
        """Return the speed of each of `count` ranks or nodes: 1 where none is given."""
        speeds = np.ones(count)
        for first, last, speed in self.parts:
            if last >= count:
                raise UsageError(
                    f"speed of {what} {last}: there are {count} {what}s, from 0 to {count - 1}",
                    _SPEED_HINT,
                )
            speeds[first : last + 1] = speed
        return speeds


def parse_speeds(text: str) -> Speeds:
    """Read speeds of ranks or nodes."""
    parts = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*=\s*([^\s=]+)\s*", part)
        speed = _number(match[3]) if match else math.nan
        if match is None or not 0 < speed < math.inf:
            raise UsageError(f"'{part.strip()}' is no speed of ranks or nodes", _SPEED_HINT)
        first = int(match[1])
        last = int(match[2] or first)
        if last < first:
            raise UsageError(f"'{part.strip()}': {last} comes before {first}", _SPEED_HINT)
        parts.append((first, last, speed))
    return Speeds(text.replace(" ", ""), tuple(parts))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
