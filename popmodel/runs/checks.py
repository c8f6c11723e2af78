"""What is wrong with measured runs as a whole: given twice, disturbed, in other units, gaps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from statistics import median

from popmodel.runs.measurement import MeasuredRow
from popmodel.units import format_time, plural

_DIGITS = 6
"""Digits of a runtime from which on no other run has the same by chance; those of a digest."""
_OTHER_UNIT = 300.0
"""Ratio of the runtimes of one configuration in two files that is more than noise: units differ."""
_OTHER_SIZE = 2.5
"""The same of two runs that did not the same: one that waited for a core takes twice as long."""


def checked(
    runs: Sequence[MeasuredRow], settled: Collection[str] = ()
) -> tuple[tuple[MeasuredRow, ...], tuple[str, ...]]:
    """Take every run once, and say what is doubtful about them as a whole, a sentence each.

    A run whose runtime has so many digits that no second measurement would give the same is a copy.
    Equal rows of one table with fewer are repeats: a clock that is read in tenths of a second gives
    the same for many.
    """
    kept: list[MeasuredRow] = []
    first: dict[str, MeasuredRow] = {}
    copies: list[MeasuredRow] = []
    equal: list[MeasuredRow] = []
    for run in runs:
        before = first.setdefault(run.digest, run)
        traced = before.window is not None and run.window is not None
        again = before is not run
        elsewhere = again and (before.source != run.source or traced)
        if again and min(_digits(before.runtime), _digits(run.runtime)) >= _DIGITS:
            copies.append(run)
            continue
        if again and not elsewhere and before.runtime == run.runtime:
            equal.append(run)
        kept.append(run)
    warnings = []
    if copies:
        place, other = copies[0].place, first[copies[0].digest].place
        others = f"; so are {len(copies) - 1} more" if len(copies) > 1 else ""
        same = "given twice" if other == place else f"the run of {other}"
        warnings.append(f"{place} is {same}: counted once{others}")
    if equal:
        rows = plural(len(equal), "run equals", "runs equal")
        warnings.append(
            f"{rows} another of the same file, first {equal[0].place}: taken for repeats; delete "
            "what is a copy"
        )
    warnings += _disturbed(kept)
    warnings += _units(kept) or _sizes(kept)
    warnings += _gaps(kept, settled)
    return tuple(kept), tuple(warnings)


def _digits(value: float) -> int:
    """Digits of a number as it is written in the shortest way."""
    return len(re.sub(r"e.*|\.", "", repr(value)).strip("0"))


def _disturbed(runs: Sequence[MeasuredRow]) -> Iterable[str]:
    disturbed = [run for run in runs if run.disturbed]
    if disturbed:
        most = max((run.waited or 0.0) for run in disturbed)
        share = f" up to {100 * most:.2g} % of the time" if most else ""
        yield (
            f"{plural(len(disturbed), 'run')}, first {disturbed[0].place}: threads waited for "
            f"CPUs{share}; these times and efficiencies are not those of the program"
        )


def _units(runs: Sequence[MeasuredRow]) -> list[str]:
    """Runs of one configuration that take times of another unit in another file."""
    by_file: dict[tuple[object, ...], dict[str, list[MeasuredRow]]] = defaultdict(dict)
    for run in runs:
        by_file[run.configuration].setdefault(run.source, []).append(run)
    for files in by_file.values():
        times = {source: median(run.runtime for run in same) for source, same in files.items()}
        ordered = sorted(times.items(), key=lambda pair: pair[1])
        (short, least), (long, most) = ordered[0], ordered[-1]
        if most > _OTHER_UNIT * least:
            run = files[long][0]
            return [
                f"{run.processes} x {run.threads} takes {format_time(least, digits=3)} in {short} "
                f"and {format_time(most, digits=3)} in {long}: check the units"
            ]
    return []


def _sizes(runs: Sequence[MeasuredRow]) -> list[str]:
    """Runs of one configuration, as far as is said, that did not do the same."""
    by_configuration: dict[tuple[object, ...], list[MeasuredRow]] = defaultdict(list)
    for run in runs:
        by_configuration[run.configuration].append(run)
    ordered = [sorted(same, key=lambda run: run.runtime) for same in by_configuration.values()]
    apart = [(same[0], same[-1]) for same in ordered]
    apart = [pair for pair in apart if pair[1].runtime > _OTHER_SIZE * pair[0].runtime]
    if not apart:
        return []
    short, long = max(apart, key=lambda pair: pair[1].runtime / pair[0].runtime)
    others = f" ({plural(len(apart) - 1, 'other split')} as well)" if len(apart) > 1 else ""
    return [
        f"{short.processes} x {short.threads} takes {format_time(short.runtime, digits=3)} in "
        f"{short.place} and {format_time(long.runtime, digits=3)} in {long.place}{others}: is one "
        "of another problem size (say so: FILE:NAME=VALUE, or a column), or was it disturbed?"
    ]


def _gaps(runs: Sequence[MeasuredRow], settled: Collection[str]) -> Iterable[str]:
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
