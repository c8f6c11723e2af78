"""CPU speeds that differ between processes: ``0=2,4-7=0.5`` of ranks, the same of nodes."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import UsageError
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HINT = "write 0=2 for one twice as fast as traced, 4-7=0.5 for four of half the speed"


@dataclass(frozen=True)
class Speeds:
    """Speeds of some ranks or nodes, relative to the traced run."""

    name: str  # How they are written
    # First and last of some that follow one another, and their speed; the last part that names one
    # counts.
    parts: tuple[tuple[int, int, float], ...]

    def of(self, count: int, what: str = "rank") -> NDArray[np.float64]:
        """Return the speed of each of `count` ranks or nodes: 1 where none is given."""
        found = np.ones(count)
        for first, last, speed in self.parts:
            if last >= count:
                raise UsageError(
                    f"speed of {what} {last}: there are {count} {what}s, from 0 to {count - 1}",
                    _HINT,
                )
            found[first : last + 1] = speed
        return found


def parse_speeds(text: str) -> Speeds:
    """Read speeds of ranks or nodes."""
    parts = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*=\s*([^\s=]+)\s*", part)
        speed = _number(match[3]) if match else math.nan
        if match is None or not 0 < speed < math.inf:
            raise UsageError(f"'{part.strip()}' is no speed of ranks or nodes", _HINT)
        first = int(match[1])
        last = int(match[2] or first)
        if last < first:
            raise UsageError(f"'{part.strip()}': {last} comes before {first}", _HINT)
        parts.append((first, last, speed))
    return Speeds(text.replace(" ", ""), tuple(parts))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
