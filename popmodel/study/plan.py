"""Which small runs a study makes: few, on the cores at hand, that tell the most about large ones.

What a run depends on is learnt from runs that differ in it: in the processes P, in the threads T,
and in every parameter of the program. All splits are run at the largest size, which is nearest to
what is predicted, and the ends of both axes at the smaller ones. Every configuration is run several
times, in turn, so that what disturbs the machine for a while disturbs all alike. One configuration
is left out of what the signature is made from, and predicted with it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from popmodel.errors import UsageError
from popmodel.values import dataclass

PROCESSES, THREADS = "P", "T"
LEAST = 2
"""Configurations that a study plans: one to learn from, and one to predict."""
REPEATS = 3
"""How often every configuration is run, as far as the budget allows."""
MOST_REPEATS = 9
SETTLED = 0.03
"""Half the 90 % interval of a configuration's mean time, from which it need not be repeated."""
_MOST_OF_AXIS = 4
"""Numbers of processes, or of threads, that are tried."""

Admits = Callable[["PlannedRun"], bool]


@dataclass(frozen=True)
class PlannedRun:
    """A small run; without its number among the repeats it is a configuration."""

    processes: int
    threads: int  # Of each process
    # Values of the parameters, by name in the order of the command line.
    settings: tuple[tuple[str, float], ...] = ()
    repeat: int = 1  # The how manyth of its configuration it is

    @property
    def cores(self) -> int:
        """Threads in all."""
        return self.processes * self.threads

    @property
    def size(self) -> float:
        """How large the problem is: the product of its parameters, as far as they are above 0."""
        return math.prod(value for _, value in self.settings if value > 0)

    @property
    def configuration(self) -> PlannedRun:
        """The first of its repeats."""
        return replace(self, repeat=1)

    @property
    def split(self) -> str:
        """``2 x 1``, as screens write it."""
        return f"{self.processes} x {self.threads}"

    @property
    def name(self) -> str:
        """What its files are called: ``2x1``, ``2x1-N=96``, or ``2x1-N=96.r2`` the second time."""
        values = [f"-{name}={value:.15g}" for name, value in self.settings]
        again = f".r{self.repeat}" if self.repeat > 1 else ""
        return f"{self.processes}x{self.threads}{''.join(values)}{again}"

    @property
    def values(self) -> dict[str, float]:
        """What the placeholders of the command stand for."""
        return {PROCESSES: self.processes, THREADS: self.threads, **dict(self.settings)}

    def to_dict(self) -> dict[str, Any]:
        """Return the run as JSON types."""
        return {
            "processes": self.processes,
            "threads": self.threads,
            "settings": dict(self.settings),
            "repeat": self.repeat,
        }


def plan(
    cores: int, parameters: Mapping[str, Sequence[float]], *, admits: Admits = lambda _: True
) -> tuple[PlannedRun, ...]:
    """Plan the configurations, the most telling first: a smaller budget drops those at the end."""
    largest = tuple((name, max(values)) for name, values in parameters.items())
    smaller = [
        tuple((name, value if name == changed else most) for name, most in largest)
        for changed, values in parameters.items()
        for value in sorted(set(values))[:-1]
    ]
    smaller.sort(key=lambda settings: PlannedRun(1, 1, settings).size)
    few = next((p for p in range(1, cores + 1) if admits(PlannedRun(p, 1, largest))), None)
    if few is None:
        return ()
    of_processes = _axis([p for p in range(few, cores + 1) if admits(PlannedRun(p, 1, largest))])
    of_threads = _axis(
        [t for t in range(1, cores // few + 1) if admits(PlannedRun(few, t, largest))]
    )
    ends = [(few, 1), (of_processes[-1], 1), (few, of_threads[-1])]
    # of values that are tried apart as well, so that it can be left out and predicted
    combined = max(
        ((p, t) for p in of_processes[1:] for t in of_threads[1:] if p * t <= cores),
        key=lambda split: (split[0] * split[1], -abs(split[0] - split[1]), split[0]),
        default=(few, 1),
    )
    between = [*((p, 1) for p in of_processes[1:-1]), *((few, t) for t in of_threads[1:-1])]
    runs = [
        *(PlannedRun(*split, settings) for settings in smaller[:1] for split in ends),
        *(PlannedRun(*split, largest) for split in (*ends, combined)),
        *(PlannedRun(*split, settings) for settings in smaller[1:] for split in ends),
        *(PlannedRun(*split, largest) for split in between),
    ]
    return tuple(run for run in dict.fromkeys(runs) if admits(run))


def named_runs(text: str, parameters: Mapping[str, Sequence[float]]) -> tuple[PlannedRun, ...]:
    """Return the runs that a user names, each with all values of the parameters.

    ``1x1,2x1,2x1`` names the last one twice: so often it is run at least.
    """
    splits = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*([1-9][0-9]{0,8})\s*x\s*([1-9][0-9]{0,8})\s*", word)
        if match is None:
            raise UsageError(
                f"--runs {text}: '{word.strip()}' must be PROCESSESxTHREADS",
                "try --runs 1x1,2x1,1x2",
            )
        splits.append((int(match[1]), int(match[2])))
    settings = itertools.product(
        *([(name, value) for value in values] for name, values in parameters.items())
    )
    often: Counter[PlannedRun] = Counter()
    runs = []
    for run in (PlannedRun(*split, values) for values in settings for split in splits):
        often[run] += 1
        runs.append(replace(run, repeat=often[run]))
    if len(often) < LEAST:
        raise UsageError(
            f"--runs {text}: a study needs two different runs: one to learn from, one to predict",
            "try --runs 1x1,2x1,1x2",
        )
    return tuple(runs)


def left_out(configurations: Sequence[PlannedRun]) -> PlannedRun | None:
    """Return the configuration to be predicted from the others; None if there is but one.

    That nearest to what the study is for: the largest problem on the most cores, of several cores
    and of what others show, number of processes, of threads and, of every parameter, the value or
    two others. Where there is none such, one that leaves another with several processes, since
    only those have messages.
    """
    if len(configurations) < LEAST:
        return None

    def merit(run: PlannedRun) -> tuple[Any, ...]:
        others = [other for other in configurations if other != run]
        messages = any(other.processes > 1 for other in others)
        return (run.cores > 1, _is_shown(run, others), messages, run.size, run.cores, run.processes)

    return max(configurations, key=merit)


def _is_shown(run: PlannedRun, others: Sequence[PlannedRun]) -> bool:
    """Whether others show what a run does, as far as it matters for large runs."""
    seen = [
        {value for _, value in column} for column in zip(*(o.settings for o in others), strict=True)
    ]
    return (
        run.processes in {other.processes for other in others}
        and run.threads in {other.threads for other in others}
        and all(
            value in values or len(values) >= LEAST
            for (_, value), values in zip(run.settings, seen, strict=True)
        )
    )


def next_configuration(
    planned: Sequence[PlannedRun],
    runtimes: Mapping[PlannedRun, Sequence[float]],
    counts: Mapping[PlannedRun, int],
    ended: Collection[PlannedRun],
) -> PlannedRun | None:
    """Return the configuration to run next, round robin; None when nothing more is to be learnt.

    Parameters
    ----------
    planned : sequence of Run
        Configurations, with the repeats that are wanted in any case.
    runtimes : mapping of Run to sequence of float
        Times of the repeats that count, s, by configuration.
    counts : mapping of Run to int
        How often each configuration was run.
    ended : collection of Run
        Configurations that are not run (again): refused, or too long for the budget.
    """
    wanted = Counter(run.configuration for run in planned)

    def is_open(run: PlannedRun) -> bool:
        count = counts.get(run, 0)
        if run in ended:
            return False
        if count < max(wanted[run], REPEATS):
            return True
        return count < MOST_REPEATS and half_width(runtimes[run]) > SETTLED

    return min(filter(is_open, wanted), key=lambda run: counts.get(run, 0), default=None)


def in_turn(planned: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Return all repeats of a plan that are wanted in any case, round robin."""
    wanted = Counter(run.configuration for run in planned)
    return [
        replace(run, repeat=repeat)
        for repeat in range(1, max(REPEATS, *wanted.values()) + 1)
        for run in wanted
        if repeat <= max(REPEATS, wanted[run])
    ]


def half_width(times: Sequence[float]) -> float:
    """Half the 90 % interval of the mean of repeats, relative, by Student; infinite for one."""
    if len(times) < LEAST:
        return math.inf
    spread = float(np.std(np.log(times), ddof=1))
    return float(stdtrit(len(times) - 1, 0.95)) * spread / math.sqrt(len(times))


def expected(run: PlannedRun, timed: Mapping[PlannedRun, float]) -> float | None:
    """Return the seconds that a run will take at most; None if no run has been timed.

    A run of a configuration that was timed takes as long again; one with as large a problem as
    long as that on fewest cores. What a larger problem takes follows from two sizes by a power law;
    from one size in proportion, which is the least.
    """
    if not timed:
        return None
    if run.configuration in timed:
        return timed[run.configuration]
    slowest = {one.settings: timed[one] for one in sorted(timed, key=lambda one: -one.cores)}
    if run.settings in slowest:
        return slowest[run.settings]
    known = sorted((PlannedRun(1, 1, settings).size, time) for settings, time in slowest.items())
    (small, least), (large, most) = known[0], known[-1]
    power = math.log(most / least) / math.log(large / small) if large > small and least > 0 else 1.0
    return float(most * (run.size / large) ** max(power, 0.0))


def _axis(able: Sequence[int]) -> list[int]:
    """Some of the numbers that are possible, evenly spaced as powers, up to the last one."""
    powers = [number for number in able[:-1] if number.bit_count() == 1]
    every = [*powers, able[-1]] if len(powers) > 1 else list(able)
    if len(every) <= _MOST_OF_AXIS:
        return every
    step = (len(every) - 1) / (_MOST_OF_AXIS - 1)
    return [every[round(k * step)] for k in range(_MOST_OF_AXIS)]
