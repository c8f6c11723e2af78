"""All results of several launches, by what was measured, and which batches were undisturbed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from popmodel.machines.bench.sample_files import Array, Launch, SampleResult

# Batches during which the cores that measured were left to them.
#
# Beside every batch the programs time an empty loop on each core that takes part (``pace.h`` of
# ``microbench``). Another hardware thread that has work slows it down by more than a clock that
# follows the load, and where it belongs to another machine of the host no counter of this one
# tells. No placement does that: what a launch decides stays in the spread between launches, what
# others take does not.


_SHARED = 1.4  # times the best: more than clocks change, less than another thread of the core takes
_BUSIER = 1.2  # times the best of fewer cores: what clocks lose where more are busy
_FEWEST = 3  # batches of a result

Team = tuple[tuple[str, ...], int]  # hosts; cores that measure


def left_alone(launches: Sequence[Launch]) -> list[Launch]:
    """Return launches whose results have only batches with cores of their own.

    A result with fewer than three of them keeps all it has; `SampleResult.alone` tells which it is.
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


def _paces(launches: Sequence[Launch]) -> Iterator[tuple[Launch, SampleResult, Array]]:
    for launch in launches:
        for result in launch.results:
            for pace in (result.pace, result.arithmetic_pace):
                if pace is not None:
                    yield launch, result, pace


def _team(launch: Launch, result: SampleResult) -> Team:
    return launch.hosts, result.params.get("threads", 1)


def _of_own_cores(
    result: SampleResult, launch: Launch, limits: Mapping[Team, float]
) -> SampleResult:
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


# All results of several launches, by what was measured.


Placement = tuple[object, ...]
"""Ranks, nodes and threads of a rank: the same where launches place their ranks alike."""

_ENOUGH = 3  # launches, to tell which of them is the odd one
_FEW = 5  # times fewer batches than another launch: its budget went elsewhere
_FAR = 3.0  # times the median of the launches: no placement or connection does that


class MeasuredResults:
    """Finds the results of a job over all launches.

    Batches during which others had a part of the cores are not used where there are others
    (`left_alone`). A result that is out of all proportion to those of the other launches says
    what else ran, not what was measured: it is not used, and `left_out` names it.
    """

    def __init__(self, launches: Sequence[Launch]) -> None:
        self.launches = launches = left_alone(launches)
        # Header of a launch by what its results have in ``launch``; one that was interrupted and
        # resumed is one.
        self.headers: dict[Hashable, Mapping[str, Any]] = {}
        # Share of the processors' time that others used during a launch, where it is known.
        self.foreign: dict[Hashable, float] = {}
        self._found: dict[str, list[tuple[Launch, SampleResult]]] = {}
        self._shared: dict[str, list[tuple[Launch, SampleResult]]] = {}
        alike = _alike(launches)
        shared = {id(result) for results in alike for result in _on_shared_cores(results)}
        self.disturbed = frozenset(
            id(result)
            for results in alike
            for result in _disturbed([one for one in results if id(one) not in shared])
        )
        for launch in launches:
            number = _number(launch)
            self.headers.setdefault(number, launch.header)
            if launch.foreign is not None:
                self.foreign[number] = max(launch.foreign, self.foreign.get(number, 0.0))
            for result in launch.results:
                if id(result) not in self.disturbed:
                    found = self._shared if id(result) in shared else self._found
                    marked = replace(result, launch=number)
                    found.setdefault(result.job, []).append((launch, marked))

    def left_out(self, jobs: Sequence[str]) -> list[SampleResult]:
        """Results of some jobs that are not used: another program ran instead."""
        return [
            result
            for launch in self.launches
            for result in launch.results
            if id(result) in self.disturbed and result.job in jobs
        ]

    def beside(self, jobs: Sequence[str]) -> list[SampleResult]:
        """Results of some jobs, with those that had no cores of their own."""
        found = []
        for job in jobs:
            found += [result for _, result in self._found.get(job, ())]
            found += [result for _, result in self._shared.get(job, ())]
        return found

    def results(self, job: str, **wanted: Any) -> list[SampleResult]:
        """Measured results of a job with these parameters; one per launch as a rule."""
        return [
            result
            for _, result in self._found.get(job, ())
            if result.absent is None and _has(result, wanted)
        ]

    def all_of(self, job: str) -> list[SampleResult]:
        """Results of a job, those that are absent as well."""
        return [result for _, result in self._found.get(job, ())]

    def together(self, *jobs: tuple[str, Mapping[str, Any]]) -> list[tuple[SampleResult, ...]]:
        """Results of several jobs, for every launch that has measured them all.

        What is computed from several times has to take them from one launch: what slows the whole
        launch then cancels from a ratio, and the spread between launches is that of the result.
        Where no launch had its cores to itself in all of them, those count that had not.
        """
        return self._together(jobs, self._found) or self._together(jobs, self._found, self._shared)

    def _together(
        self,
        jobs: Sequence[tuple[str, Mapping[str, Any]]],
        *sources: Mapping[str, Sequence[tuple[Launch, SampleResult]]],
    ) -> list[tuple[SampleResult, ...]]:
        each: dict[Hashable, dict[int, SampleResult]] = {}
        for launch in self.launches:
            each.setdefault(_number(launch), {})
        for index, (job, wanted) in enumerate(jobs):
            for source in sources:
                for _, result in source.get(job, ()):
                    if result.absent is None and _has(result, wanted):
                        each[result.launch].setdefault(index, result)
        return [
            tuple(results[index] for index in range(len(jobs)))
            for results in each.values()
            if len(results) == len(jobs)
        ]

    def by_placement(
        self, job: str, *, multiple: bool = False, **wanted: Any
    ) -> dict[Placement, list[SampleResult]]:
        """The same of launches with or without full thread support, by how ranks are placed.

        Where a rank has more cores, or fewer neighbours, a message may take another time.
        """
        found: dict[Placement, list[SampleResult]] = {}
        for launch, result in self._found.get(job, ()):
            level = launch.header.get("mpi", {}).get("thread_level")
            wants = result.absent is None and _has(result, wanted)
            if wants and (level == "multiple") == multiple:
                found.setdefault(_placement(launch), []).append(result)
        return found

    def reason(self, job: str, **wanted: Any) -> str | None:
        """Why a job with these parameters is absent; None if it was not tried or was measured."""
        reasons = [result.absent for _, result in self._found.get(job, ()) if _has(result, wanted)]
        return reasons[0] if reasons and all(reasons) else None

    def values(self, job: str, key: str, **wanted: Any) -> list[Any]:
        """Values that a parameter takes in the measured results of a job, in order."""
        found = {
            result.params[key] for result in self.results(job, **wanted) if key in result.params
        }
        return sorted(found)

    def __iter__(self) -> Iterator[SampleResult]:
        for found in self._found.values():
            yield from (result for _, result in found)


def _alike(launches: Sequence[Launch]) -> list[list[SampleResult]]:
    """Results of the same job under the same circumstances, one of each launch."""
    alike: dict[Any, list[SampleResult]] = {}
    for launch in launches:
        level = launch.header.get("mpi", {}).get("thread_level")
        for result in launch.results:
            if result.absent is None:
                nodes = result.facts.get("nodes")
                alike.setdefault((result.key, level, nodes, _placement(launch)), []).append(result)
    return list(alike.values())


def _on_shared_cores(results: Sequence[SampleResult]) -> list[SampleResult]:
    """Those whose cores others used as well, if there are some that had theirs to themselves."""
    shared = [result for result in results if result.alone == 0]
    return shared if len(shared) < len(results) else []


def _disturbed(results: Sequence[SampleResult]) -> list[SampleResult]:
    """Results whose time went on few batches where others have many, or far from all others.

    Apart from these two, launches that differ are the spread that intervals have to hold.
    """
    if len(results) < _ENOUGH:
        return []
    taken = [result.seconds.size / (result.alone or 1) for result in results]
    times = np.array([np.median(result.seconds) for result in results])
    middle = float(np.median(times))
    # what costs no more than the clock may even be negative, and tells no proportion
    ratios = times / middle if middle > 0 else np.ones_like(times)
    return [
        result
        for result, ratio, batches in zip(results, ratios, taken, strict=True)
        if (batches < max(taken) / _FEW and not result.converged) or not 1 / _FAR < ratio < _FAR
    ]


def _number(launch: Launch) -> tuple[str, str, str]:
    """What tells launches apart; one that was interrupted and resumed is one."""
    folder = str(Path(launch.path).parent)
    return launch.program, folder, str(launch.header.get("launch", launch.path))


def _placement(launch: Launch) -> Placement:
    header = launch.header
    return header.get("ranks"), len(launch.hosts), header.get("openmp", {}).get("max_threads")


def _has(result: SampleResult, wanted: Mapping[str, Any]) -> bool:
    return all(result.params.get(key) == value for key, value in wanted.items())
