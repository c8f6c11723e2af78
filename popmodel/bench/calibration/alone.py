"""Batches during which the cores that measured were left to them.

Beside every batch the programs time an empty loop on each core that takes part (``pace.h`` of
``microbench``). Another hardware thread that has work slows it down by more than a clock that
follows the load, and where it belongs to another machine of the host no counter of this one tells.
No placement does that: what a launch decides stays in the spread between launches, what others take
does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from popmodel.bench.samples import Array, Launch, Result

_SHARED = 1.4  # times the best: more than clocks change, less than another thread of the core takes
_BUSIER = 1.2  # times the best of fewer cores: what clocks lose where more are busy
_FEWEST = 3  # batches of a result

Team = tuple[tuple[str, ...], int]  # hosts; cores that measure


def left_alone(launches: Sequence[Launch]) -> list[Launch]:
    """Return launches whose results have only batches with cores of their own.

    A result with fewer than three of them keeps all it has; `Result.alone` tells which it is.
    """
    limits = _limits(launches)
    return [
        replace(
            launch,
            results=tuple(_of_own_cores(result, launch, limits) for result in launch.results),
        )
        for launch in launches
    ]


def _limits(launches: Sequence[Launch]) -> dict[Team, float]:
    """Slowest turn of a core of one's own, s, by team."""
    best: dict[Team, float] = {}
    for launch, result, pace in _paces(launches):
        team = _team(launch, result)
        best[team] = min(best.get(team, np.inf), float(pace.min()))
    limits = {}
    for (hosts, cores), least in best.items():
        fewer = [one for (where, count), one in best.items() if where == hosts and count < cores]
        limits[hosts, cores] = _SHARED * min(least, _BUSIER * min(fewer, default=np.inf))
    return limits


def _paces(launches: Sequence[Launch]) -> Iterator[tuple[Launch, Result, Array]]:
    for launch in launches:
        for result in launch.results:
            for pace in (result.pace, result.arithmetic_pace):
                if pace is not None:
                    yield launch, result, pace


def _team(launch: Launch, result: Result) -> Team:
    return launch.hosts, result.params.get("threads", 1)


def _of_own_cores(result: Result, launch: Launch, limits: Mapping[Team, float]) -> Result:
    if result.pace is None:
        return result
    limit = limits[_team(launch, result)]
    own, enough = _chosen(result.pace, limit)
    kept = {"seconds": result.seconds[own], "pace": result.pace[own]}
    if result.reference is not None:
        kept["reference"] = result.reference[own]
    if result.arithmetic is not None and result.arithmetic_pace is not None:
        # its batches are their own, and next to them the others decide
        some, _ = _chosen(result.arithmetic_pace, limit)
        kept["arithmetic"] = result.arithmetic[some]
        kept["arithmetic_pace"] = result.arithmetic_pace[some]
    return replace(result, alone=float(np.mean(result.pace <= limit)) if enough else 0.0, **kept)


def _chosen(pace: Array, limit: float) -> tuple[Any, bool]:
    """Which batches are used, and whether these had cores of their own."""
    own = pace <= limit
    enough = int(own.sum()) >= min(_FEWEST, pace.size)
    return (own if enough else np.ones_like(own)), enough
