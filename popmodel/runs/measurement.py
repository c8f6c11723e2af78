"""One measured run, what is wrong with many together, and how much repeats of a run differ."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from popmodel.base.documents import MOST_EFFICIENCY
from popmodel.base.errors import FileError, PopmodelError
from popmodel.base.units import format_time, plural
from popmodel.base.values import dataclass
from popmodel.efficiency.family import Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import MeasuredRun
from popmodel.efficiency.observables import Observables
from popmodel.traces.caveats import contradictory_runs
from popmodel.traces.selection import TraceFocus

if TYPE_CHECKING:
    import pandas

AGGREGATE = "aggregates"
"""Stands before the name of a quantity that metrics are computed from, as a family does."""
MAIN_FAMILY = "hybrid-additive"
"""The family of metrics that are named without one."""
FACTS = ("nodes", "binding", "waited")
"""Columns that say how a run was made, beside what it did."""
COLUMNS = ("processes", "threads", "runtime")
"""Columns that every table has."""


@dataclass(frozen=True)
class MeasuredRow:
    """One run as measured."""

    source: str  # File that it comes from
    # P, and T of every process.
    processes: int
    threads: int
    runtime: float  # Seconds
    # By family and metric id; empty if only the runtime is known.
    metrics: Mapping[str, Mapping[str, float]]
    window: TraceFocus | None = None  # What of a trace was measured; None of one from a table
    caveats: tuple[str, ...] = ()  # What has to be known before the numbers are read
    # Whether threads had no CPU of their own: more of them than CPUs, or `waited` above
    # `popmodel.efficiency.evidence.WAITED`.
    disturbed: bool = False
    # Parameters of the application in this run, as far as they are known.
    parameters: Mapping[str, float] = field(default_factory=dict)
    line: int | None = None  # Line of a table
    # What the metrics are computed from, by the names of
    # `popmodel.efficiency.family.AGGREGATES`, in their units: of a trace all that it tells, of
    # a table what is in it, else empty.
    aggregates: Mapping[str, float] = field(default_factory=dict)
    # What tells it from other runs of its file, or of its line: ``runs[2]``, ``value 2``.
    entry: str = ""
    # As far as they are known: nodes, how threads were bound, and the share of the time in which
    # threads were ready to run that they waited for a CPU.
    nodes: int | None = None
    binding: str = ""
    waited: float | None = None

    @property
    def configuration(self) -> tuple[object, ...]:
        """Processes, threads and parameters, as far as it says them: equal of repeats."""
        return (self.processes, self.threads, *sorted(self.parameters.items()))

    @property
    def digest(self) -> str:
        """What tells this run from others, wherever it is read from: 16 hexadecimal digits.

        A hash of processes, threads, parameters and runtime, of neither paths nor metrics: a run
        is the same in a file of another name, and as a row of a table that its trace was converted
        to. Six digits of every number count, as tables seldom have more. Parameters that a file
        leaves open are to be filled in before, or a run that names them would be another one.
        """
        parameters = sorted(self.parameters.items())
        numbers = " ".join(f"{name}={value:.6g}" for name, value in parameters)
        text = f"{self.processes} x {self.threads}, {self.runtime:.6g} s; {numbers}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def place(self) -> str:
        """Where the run stands: the file, and the line or the entry of a table."""
        line = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{line} {self.entry}" if self.entry else line

    def to_dict(self) -> dict[str, Any]:
        """What was measured, for JSON; the values stand beside their predictions."""
        return {"source": self.source, "caveats": self.caveats, "window": self.window}


def from_run(run: MeasuredRun, parameters: Mapping[str, float] | None = None) -> MeasuredRow:
    """Evaluate all families for a traced run."""
    return from_observables(
        run.trace,
        run.observables,
        run.window,
        run.caveats,
        run.evidence.disturbed,
        parameters or {},
        run.evidence.waited or None,
    )


def require_plausible(metrics: Mapping[str, Mapping[str, float]]) -> None:
    """Refuse metrics, by family and id, that no run has, as of damaged quantities."""
    for family, values in metrics.items():
        for name, value in values.items():
            if abs(value) > MOST_EFFICIENCY:
                raise PopmodelError(f"{family}.{name} would be {value:.3g}")


def from_observables(
    source: str,
    observed: Observables,
    window: TraceFocus | None,
    caveats: tuple[str, ...],
    disturbed: bool,
    parameters: Mapping[str, float],
    waited: float | None = None,
) -> MeasuredRow:
    """Evaluate all families for what was observed of a run; raises as `from_run`."""
    threads = sorted(set(observed.threads.tolist()))
    if len(threads) > 1:
        raise FileError(
            source,
            f"its processes have {threads[0]} to {threads[-1]} threads each; predictions need the "
            "same number for all",
        )
    aggregates = observed.aggregates()
    metrics = {
        name: family.evaluate(aggregates, observed.absent).values
        for name, family in load_families().items()
        if family.fits(aggregates)
    }
    return MeasuredRow(
        source,
        len(observed.threads),
        int(threads[0]),
        float(aggregates["runtime"]),
        metrics,
        window,
        caveats,
        disturbed,
        parameters=parameters,
        aggregates=aggregates,
        nodes=len(set(observed.node.tolist())),
        waited=waited,
    )


# Runs as rows of a table.


def computed(aggregates: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Metrics of all families that follow from quantities, as far as these are known."""
    metrics = {
        name: dict(family.evaluate(aggregates).values)
        for name, family in load_families().items()
        if family.fits(aggregates)
    }
    require_plausible(metrics)
    return metrics


def row_of(run: MeasuredRow) -> dict[str, Any]:
    """What is known of a run by what stands above the columns of a table."""
    return {
        "processes": run.processes,
        "threads": run.threads,
        "runtime": run.runtime,
        **{name: whole(value) for name, value in run.parameters.items()},
        **facts_of(run),
        **values_of(run),
    }


def runs_frame(runs: Sequence[MeasuredRow]) -> pandas.DataFrame:
    """Return runs as a table, a row each, with the columns of CSV (``popmodel docs runs``).

    Besides these ``place`` (file and line), ``digest`` (equal of copies), ``repeat`` (0 for the
    first run of a configuration) and ``disturbed``. What is not known of a run is missing.
    """
    import pandas

    often: Counter[tuple[object, ...]] = Counter()
    rows = []
    for run in runs:
        flags = {name: getattr(run, name) for name in ("place", "digest", "disturbed")}
        rows.append({**row_of(run), **flags, "repeat": often[run.configuration]})
        often[run.configuration] += 1
    return pandas.DataFrame(rows)


def facts_of(run: MeasuredRow) -> dict[str, Any]:
    """How a run was made, as far as that is known."""
    return {name: fact for name in FACTS if (fact := getattr(run, name)) not in (None, "")}


def values_of(run: MeasuredRow) -> dict[str, float]:
    """Metrics of the main family, those that do not follow from quantities, and the quantities."""
    amounts = {name: value for name, value in run.aggregates.items() if name not in COLUMNS}
    follow = computed(run.aggregates) if amounts else {}
    return {
        **run.metrics.get(MAIN_FAMILY, {}),
        **{
            f"{family}.{name}": value
            for family, values in run.metrics.items()
            for name, value in values.items()
            if family != MAIN_FAMILY and follow.get(family, {}).get(name) != value
        },
        **{f"{AGGREGATE}.{name}": value for name, value in amounts.items()},
    }


def whole(value: float) -> float:
    """A number, a whole one without a fraction."""
    return int(value) if float(value).is_integer() and abs(value) < 1 << 53 else value


# What is wrong with measured runs as a whole.


_DIGITS = 6
"""Digits of a runtime from which on no other run has the same by chance; those of a digest."""
_OTHER_UNIT = 300.0
"""Ratio of runtimes, beyond that of the cores, that no program has: units differ."""
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
        if before is not run:
            if min(_digits(before.runtime), _digits(run.runtime)) >= _DIGITS:
                copies.append(run)
                continue
            traced = before.window is not None and run.window is not None
            if before.source == run.source and not traced and before.runtime == run.runtime:
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
    disturbed = [run for run in kept if run.disturbed]
    if disturbed:
        most = max((run.waited or 0.0) for run in disturbed)
        share = f" up to {100 * most:.2g} % of the time" if most else ""
        warnings.append(
            f"{plural(len(disturbed), 'run')}, first {disturbed[0].place}: threads waited for "
            f"CPUs{share}; these times and efficiencies are not those of the program"
        )
    warnings += contradictory_runs([(run.place, text) for run in kept for text in run.caveats])
    by_configuration: dict[tuple[object, ...], list[MeasuredRow]] = defaultdict(list)
    for run in kept:
        by_configuration[run.configuration].append(run)
    warnings += list(_units(kept)) or _sizes(by_configuration.values())
    warnings += _gaps(kept, settled)
    return tuple(kept), tuple(warnings)


def _digits(value: float) -> int:
    """Digits of a number as it is written in the shortest way."""
    return len(re.sub(r"e.*|\.", "", repr(value)).strip("0"))


def _units(runs: Sequence[MeasuredRow]) -> Iterator[str]:
    """Runs of one problem whose times can only be in different units."""
    problems: dict[object, list[MeasuredRow]] = defaultdict(list)
    for run in runs:
        problems[run.configuration[2:]].append(run)
    for same in problems.values():
        long = max(same, key=lambda run: run.runtime)
        short = min(same, key=lambda run: run.runtime * run.processes * run.threads)
        cores = short.processes * short.threads / (long.processes * long.threads)
        if long.runtime > _OTHER_UNIT * max(cores, 1) * short.runtime:
            told = (
                f"{run.processes} x {run.threads} takes {format_time(run.runtime, digits=3)} in "
                f"{run.place}"
                for run in (short, long)
            )
            yield f"{' and '.join(told)}: check the units"
            return


def _sizes(configurations: Collection[Sequence[MeasuredRow]]) -> list[str]:
    """Runs of one configuration, as far as is said, that did not do the same."""
    ordered = [sorted(repeats, key=lambda run: run.runtime) for repeats in configurations]
    apart = [(runs[0], runs[-1]) for runs in ordered]
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


def _gaps(runs: Sequence[MeasuredRow], settled: Collection[str]) -> Iterator[str]:
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


# How much what is measured of a run varies from run to run, beside its runtime.
#
# Runtimes vary by a factor, whose logarithm has a standard deviation that repeats tell: the noise.
# Useful times vary by the same, times of losses by more: each is what a few processes wait or send,
# a difference of long times. What that is in terms of the noise is assumed. Relative to itself a
# loss varies by 2 to 12 times the noise in repeats of simulated programs (`tests/truth`), and by 1
# to 10 times in those of `examples/validation/runs`; waiting and imbalance of a few per cent vary
# by up to 36 times as much there, about half a point: `LEAST_NOISE` is there for them.


NOISE_OF_LOSS = 5.0
"""Standard deviation of a loss from run to run, relative to itself, over the noise."""
LEAST_NOISE = 0.3
"""The same as a part of the runtime: below that, nothing is said of a loss."""
_REFERENCE = "reference_"


def deviation_of_loss(noise: float, loss: float) -> float:
    """Return the standard deviation of a loss from run to run, as a part of the runtime."""
    return noise * math.hypot(NOISE_OF_LOSS * loss, LEAST_NOISE)


def deviation_of_metric(
    noise: float, family: Family, metric: str, values: Mapping[str, float]
) -> float:
    """Return the standard deviation of an efficiency from run to run.

    Notes
    -----
    The losses of its leaves vary independently of each other. A metric that compares with a
    reference run is a ratio of times of two runs.
    """
    if has_reference(family, metric):
        return noise * math.sqrt(2) * abs(values[metric])
    losses = (1 - values[leaf] for leaf in _leaves(family, metric, values))
    return deviation_of_loss(noise, math.hypot(*losses))


def has_reference(family: Family, metric: str) -> bool:
    """Whether a metric compares with a reference run; else it is a share of what one run has."""
    return any(name.startswith(_REFERENCE) for name in family.needs(metric))


def _leaves(family: Family, metric: str, values: Mapping[str, float]) -> Iterator[str]:
    """The metrics that explain a metric and that no others explain, as far as they are known."""
    parts = family.parts(metric)
    if parts and all(part in values for part in parts):
        for part in parts:
            yield from _leaves(family, part, values)
    else:
        yield metric


def oversubscribed(run: MeasuredRow, nodes: int, cores: int) -> str | None:
    """Say that a run had more threads than cores; None if it need not have had."""
    threads = math.ceil(run.processes / nodes) * run.threads  # of the fullest node at least
    if threads <= cores:
        return None
    return f"more threads ({threads}) than cores ({cores}) on a node of the machine"
