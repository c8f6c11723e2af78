"""What is wrong with measured runs as a whole: runs given twice, contradicting units, gaps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from statistics import median

from popmodel.runs.measurement import Measurement
from popmodel.units import format_time, plural
from popmodel.values import dataclass

_DIGITS = 6
"""Digits of a runtime from which on no other run has the same by chance; those of a digest."""
_OTHER_UNIT = 300.0
"""Ratio of the runtimes of one configuration in two files that is more than noise: units differ."""
_OTHER_SIZE = 2.5
"""The same of two runs that did not the same: one that waited for a core takes twice as long."""


@dataclass(frozen=True)
class Checked:
    """Measured runs, each once."""

    runs: tuple[Measurement, ...]  # The runs, in their order
    warnings: tuple[str, ...]  # What was wrong, one line each, with how often


def checked(runs: Sequence[Measurement], settled: Collection[str] = ()) -> Checked:
    """Take every run once, and say what is doubtful about them as a whole.

    A run that another file holds, too, or that was traced, is a copy, if its runtime has so many
    digits that no second measurement would give the same. Equal rows of one table are repeats: a
    clock that is read in tenths of a second gives the same for many.
    """
    kept: list[Measurement] = []
    first: dict[str, Measurement] = {}
    copies: list[Measurement] = []
    equal: list[Measurement] = []
    for run in runs:
        before = first.setdefault(run.digest, run)
        if before is not run:
            traced = before.window is not None and run.window is not None
            elsewhere = before.source != run.source or traced
            if elsewhere and min(_digits(before.runtime), _digits(run.runtime)) >= _DIGITS:
                copies.append(run)
                continue
            if not elsewhere and before.runtime == run.runtime:
                equal.append(run)
        kept.append(run)
    return Checked(
        tuple(kept),
        (
            *_said_copies(copies, first),
            *_said_equal(equal),
            *(_units(kept) or _sizes(kept)),
            *_gaps(kept, settled),
        ),
    )


def _digits(value: float) -> int:
    """Digits of a number as it is written in the shortest way."""
    return len(re.sub(r"e.*|\.", "", repr(value)).strip("0"))


def _said_copies(copies: Sequence[Measurement], first: dict[str, Measurement]) -> Iterable[str]:
    if copies:
        one = copies[0]
        other = first[one.digest].place
        others = f"; so are {len(copies) - 1} more" if len(copies) > 1 else ""
        same = "given twice" if other == one.place else f"the run of {other}"
        yield f"{one.place} is {same}: counted once{others}"


def _said_equal(equal: Sequence[Measurement]) -> Iterable[str]:
    if equal:
        one = equal[0]
        rows = plural(len(equal), "run equals", "runs equal")
        yield (
            f"{rows} another of the same file, first {one.place}: taken for repeats; delete what "
            "is a copy"
        )


def _units(runs: Sequence[Measurement]) -> list[str]:
    """Runs of one configuration that take times of another unit in another file."""
    by_file: dict[tuple[object, ...], dict[str, list[Measurement]]] = defaultdict(dict)
    for run in runs:
        by_file[run.configuration].setdefault(run.source, []).append(run)
    for files in by_file.values():
        times = {source: median(run.runtime for run in same) for source, same in files.items()}
        short, long = min(times, key=lambda one: times[one]), max(times, key=lambda one: times[one])
        if times[long] > _OTHER_UNIT * times[short]:
            run = files[long][0]
            return [
                f"{run.processes} x {run.threads} takes {format_time(times[short], digits=3)} in "
                f"{short} and {format_time(times[long], digits=3)} in {long}: check the units"
            ]
    return []


def _sizes(runs: Sequence[Measurement]) -> list[str]:
    """Runs of one configuration, as far as is said, that did not do the same."""
    by_configuration: dict[tuple[object, ...], list[Measurement]] = defaultdict(list)
    for run in runs:
        by_configuration[run.configuration].append(run)
    apart = []
    for same in by_configuration.values():
        short, long = (end(same, key=lambda one: one.runtime) for end in (min, max))
        if long.runtime > _OTHER_SIZE * short.runtime:
            apart.append((short, long))
    if not apart:
        return []
    short, long = max(apart, key=lambda pair: pair[1].runtime / pair[0].runtime)
    others = f" ({plural(len(apart) - 1, 'other split')} as well)" if len(apart) > 1 else ""
    return [
        f"{short.processes} x {short.threads} takes {format_time(short.runtime, digits=3)} in "
        f"{short.place} and {format_time(long.runtime, digits=3)} in {long.place}{others}: is one "
        "of another problem size (say so: FILE:NAME=VALUE, or a column), or was it disturbed?"
    ]


def _gaps(runs: Sequence[Measurement], settled: Collection[str]) -> Iterable[str]:
    """Parameters that files know of some runs and others leave open."""
    files = list(dict.fromkeys(run.source for run in runs))
    for name in dict.fromkeys(name for run in runs for name in run.parameters):
        having = {run.source for run in runs if name in run.parameters}
        without = [source for source in files if source not in having]
        if without and name not in settled:
            more = f" and {len(without) - 1} more" if len(without) > 1 else ""
            yield (
                f"{name} is given for some runs, and not for {without[0]}{more}: "
                f"{without[0]}:{name}=VALUE sets it"
            )
