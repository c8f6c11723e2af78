"""A program in some of whose regions processors are faster or slower: ``solve=2``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import UsageError, did_you_mean
from popmodel.whatif.regions import regions_of, scaled

if TYPE_CHECKING:
    from popmodel.simulator.program import Program
    from popmodel.trace import Trace

_HINT = "write solve=2 for a region that computes twice as fast as traced"


def parse_region_speeds(texts: Iterable[str]) -> dict[str, float]:
    """Read speeds of regions, ``NAME=SPEED`` each."""
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            speed = float(number)
        except ValueError:
            speed = math.nan
        if not name or not 0 < speed < math.inf:
            raise UsageError(f"region speed: {text!r} is no speed of a region", _HINT)
        if name in found:
            raise UsageError(f"region speed: {name} has two speeds", "give it one")
        found[name] = speed
    return found


def at_speeds(program: Program, trace: Trace, speeds: Mapping[str, float]) -> Program:
    """Return the program with other CPU speeds in some regions, on all processes."""
    regions = regions_of(program, trace)
    factor = np.ones(len(regions))
    for name, speed in speeds.items():
        mine = [number for number, known in enumerate(regions.names) if known == name]
        if not mine:
            raise UsageError(
                f"region speed: nothing is computed in a region {name!r}",
                did_you_mean(name, regions.names, "popmodel sensitivity lists the regions"),
            )
        factor[mine] = 1 / speed
    sequences = len(program.offsets) - 1
    return scaled(program, regions, np.repeat(factor[:, None], sequences, axis=1))
