"""Which small runs a study makes: few, on the cores at hand, that tell the most about large ones.

What a run depends on is learnt from runs that differ in it: in the processes P, in the threads T,
and in every parameter of the program. So there are runs along each of these axes, and one where
processes and threads are combined. One run is left out of what the signature is made from and
predicted with it: the largest whose values of P, T and parameters other runs have as well, for a
model should not be judged by what it has never seen any of.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from popmodel.errors import UsageError
from popmodel.study.command import PROCESSES, THREADS
from popmodel.values import dataclass

LEAST = 2
"""Runs that a study needs: one to learn from, and one to predict."""
_MOST_OF_AXIS = 4
"""Numbers of processes, or of threads, that are tried."""

Settings = Mapping[str, float]


@dataclass(frozen=True)
class Run:
    """A small run."""

    # P, and T of each.
    processes: int
    threads: int
    # Values of the parameters, by name in the order of the command line.
    settings: tuple[tuple[str, float], ...] = ()

    @property
    def cores(self) -> int:
        """Threads in all."""
        return self.processes * self.threads

    @property
    def split(self) -> str:
        """``2 x 1``, as screens write it."""
        return f"{self.processes} x {self.threads}"

    @property
    def name(self) -> str:
        """What its files are called: ``2x1`` or ``2x1-N=96``."""
        values = [f"-{name}={value:.15g}" for name, value in self.settings]
        return f"{self.processes}x{self.threads}{''.join(values)}"

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
        }


def plan(
    cores: int,
    parameters: Mapping[str, Sequence[float]],
    *,
    processes: bool = True,
    threads: bool = True,
    admits: Callable[[Run], bool] = lambda _: True,
) -> tuple[Run, ...]:
    """Plan the runs, the most telling first: a smaller budget drops those at the end."""
    first = tuple((name, values[0]) for name, values in parameters.items())
    few = next((p for p in range(1, cores + 1) if admits(Run(p, 1, first))), None)
    if few is None:
        return ()
    most = cores if processes else few
    of_processes = _axis([p for p in range(few, most + 1) if admits(Run(p, 1, first))])
    most = cores // few if threads else 1
    of_threads = _axis([t for t in range(1, most + 1) if admits(Run(few, t, first))])
    ends = [(few, 1), (of_processes[-1], 1), (few, of_threads[-1])]
    # of values that are tried apart as well, so that it can be left out and predicted
    combined = max(
        ((p, t) for p in of_processes[1:] for t in of_threads[1:] if p * t <= cores),
        key=lambda split: (split[0] * split[1], -abs(split[0] - split[1]), split[0]),
        default=(few, 1),
    )
    between = [*((p, 1) for p in of_processes[1:-1]), *((few, t) for t in of_threads[1:-1])]
    others = [
        tuple((name, value if name == changed else start) for name, start in first)
        for changed, values in parameters.items()
        for value in values[1:]
    ]
    largest = (of_processes[-1], 1) if processes else (few, of_threads[-1])
    runs = [
        *(Run(*split, first) for split in ends),
        *(Run(*split, settings) for settings in others for split in ((few, 1), largest)),
        *(Run(*split, first) for split in (combined, *between)),
    ]
    return tuple(run for run in dict.fromkeys(runs) if admits(run))


def named_runs(text: str, parameters: Mapping[str, Sequence[float]]) -> tuple[Run, ...]:
    """Return the runs that a user names, ``1x1,2x1,1x2``, each with all values of the
    parameters.
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
    runs = tuple(dict.fromkeys(Run(*split, one) for one in settings for split in splits))
    if len(runs) < LEAST:
        raise UsageError(
            f"--runs {text}: a study needs two runs: one to learn from, one to predict",
            "try --runs 1x1,2x1,1x2",
        )
    return runs


def left_out(runs: Sequence[Run]) -> Run | None:
    """Return the run to be predicted from the others; None if there are too few.

    The one with most cores, of those with the largest problem, of those without which the others
    still show what the signature needs: every number of processes and of threads, and, of every
    parameter, its value or two others (a law then tells), for messages too if the run sends any.
    Where there is none such, the smallest, as what is larger shows more.
    """
    if len(runs) < LEAST:
        return None
    able = [one for one in runs if _is_shown(one, [other for other in runs if other != one])]
    if not able:
        return min(runs, key=lambda one: one.cores)
    return max(
        able,
        key=lambda one: (
            one.cores,
            [value for _, value in one.settings],
            min(one.processes, one.threads),
        ),
    )


def expected(run: Run, timed: Mapping[Run, float]) -> float | None:
    """Return the seconds that a run will take at most; None if no run has been timed.

    A run with as large a problem takes as long as the one on fewest cores. What a larger problem
    takes follows from two sizes by a power law; from one size in proportion, which is the least.
    """
    if not timed:
        return None
    slowest: dict[tuple[tuple[str, float], ...], float] = {}
    for one in sorted(timed, key=lambda one: -one.cores):
        slowest[one.settings] = timed[one]
    if run.settings in slowest:
        return slowest[run.settings]
    size, known = _size(run.settings), sorted((_size(one), t) for one, t in slowest.items())
    (small, least), (large, most) = known[0], known[-1]
    power = math.log(most / least) / math.log(large / small) if large > small and least > 0 else 1.0
    return float(most * (size / large) ** max(power, 0.0))


def _axis(able: Sequence[int]) -> list[int]:
    """Some of the numbers that are possible, evenly spaced as powers, up to the last one."""
    powers = [number for number in able[:-1] if number.bit_count() == 1]
    every = [*powers, able[-1]] if len(powers) > 1 else list(able)
    if len(every) <= _MOST_OF_AXIS:
        return every
    step = (len(every) - 1) / (_MOST_OF_AXIS - 1)
    return [every[round(k * step)] for k in range(_MOST_OF_AXIS)]


def _is_shown(one: Run, others: Sequence[Run]) -> bool:
    """Whether others show what a run does, as far as it matters for large runs."""
    if one.processes not in {other.processes for other in others}:
        return False
    if one.threads not in {other.threads for other in others}:
        return False
    alike = [other for other in others if other.processes > 1 or one.processes == 1]
    seen = [dict(other.settings) for other in alike]
    return all(
        value in (there := {settings[name] for settings in seen}) or len(there) >= LEAST
        for name, value in one.settings
    )


def _size(settings: Sequence[tuple[str, float]]) -> float:
    """How large a problem is: the product of its parameters, as far as they are above 0."""
    return math.prod(value for _, value in settings if value > 0)
