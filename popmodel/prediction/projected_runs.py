"""Runs that were measured, carried to other numbers of processes and threads without a signature.

Each factor of the efficiency has a law along the processes, or along the threads
(`popmodel.fit.projection`); what it makes of a run, or of all splits of some cores, is a document
of the same shape as one that is predicted from a signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.units import plural
from popmodel.base.values import dataclass, document, fields_of
from popmodel.efficiency.family import FamilyEvaluation
from popmodel.efficiency.scaling import Comparable, Mode, Scaling, evaluate_all, scale
from popmodel.fit.efficiency_factors import completed
from popmodel.fit.efficiency_laws import TESTED, FittedFactor
from popmodel.fit.projection import (
    TIME,
    ProjectedLine,
    ProjectedRow,
    Projection,
    project,
    reach_of,
)
from popmodel.prediction import prediction, split_sweep
from popmodel.prediction.prediction import trust
from popmodel.prediction.split_choice import LIKELY, WITHIN, divisors
from popmodel.runs.measurement import MeasuredRow, require_plausible

CONFIDENCE = 0.9
"""Of the intervals."""
AUTO = "auto"
_RUNTIME_ONLY = "the efficiencies of some runs are not known: only the runtime is projected"
_SEED = 5


@dataclass(frozen=True)
class RunComparison:
    """Measured runs, compared with one of them."""

    runs: tuple[MeasuredRow, ...]
    warnings: tuple[str, ...]  # What is doubtful about them
    evaluations: tuple[Mapping[str, FamilyEvaluation], ...]  # For each run, its families by id
    scaling: Scaling  # The runs against their reference run

    @classmethod
    def of(
        cls,
        runs: tuple[MeasuredRow, ...],
        warnings: tuple[str, ...],
        names: Sequence[str],
        mode: Mode | None = None,
        reference: int | None = None,
    ) -> RunComparison:
        """Evaluate the families of runs and compare these with a reference run, from 0."""
        if mode is None:
            _check_problem(runs)
        comparable = [
            Comparable(name, completed(run)) for name, run in zip(names, runs, strict=True)
        ]
        scaled = scale(comparable, mode, reference)
        evaluated = tuple(evaluate_all(one, scaled, index) for index, one in enumerate(comparable))
        for run, families in zip(runs, evaluated, strict=True):
            try:
                require_plausible({name: one.values for name, one in families.items()})
            except PopmodelError as reason:
                raise UsageError(
                    f"{run.place}: against {runs[scaled.reference].place}, {reason}",
                    "give runs of one program and one unit of time, or another --reference",
                ) from None
        return cls(runs, warnings, evaluated, scaled)

    def project(self, sizes: Sequence[tuple[int, int]], law: str) -> Projection:
        """Carry the runs to other sizes."""
        chosen = None if law == AUTO else law
        return project(self.runs, sizes, self.scaling.mode, self.scaling.reference, chosen)


@dataclass(frozen=True)
class ProjectedRuns:
    """Measured runs carried to other sizes."""

    compared: RunComparison
    # The laws, the projected metrics, and plain extrapolations of the runtime.
    projection: Projection
    law: str  # The law that was asked for, or `AUTO`

    @property
    def runs(self) -> tuple[MeasuredRow, ...]:
        return self.compared.runs

    def of(self, processes: int, threads: int) -> dict[tuple[str, str], ProjectedRow]:
        """Return what is projected to one size, by family and metric."""
        return {
            (row.family, row.metric): row
            for row in self.projection.rows
            if (row.processes, row.threads) == (processes, threads)
        }

    def doubts(self, processes: int, threads: int) -> list[str]:
        """Return why the projection to a size is not to be trusted."""
        row = self.of(processes, threads)["", "runtime"]
        own = [line for line in self.projection.lines if _reaches(line, processes, threads)]
        single = [text for line in self._carried(own) for text in _assumed(line)]
        single = single if own and len(own[0].places) == 1 else []
        disturbed = [run.place.rpartition("/")[2] for run in self.runs if run.disturbed]
        others = f" and {len(disturbed) - 1} more" if len(disturbed) > 1 else ""
        crowded = [f"threads had no CPU of their own in {name}{others}" for name in disturbed[:1]]
        outliers = [run.text(self.runs) for line in own for run in line.outliers]
        if outliers:
            return [*outliers, *crowded]
        found = [*crowded, *([row.why] if row.why else []), *single]
        place = dict(zip(("processes", "threads"), (processes, threads), strict=True))
        if found and own and not own[0].lost:
            p, t = own[0].configuration(_next_place(own[0], place[own[0].axis]))
            found[-1] += f"; a run of {p} x {t} would tell most"
        return found

    def _carried(self, lines: Iterable[ProjectedLine]) -> list[ProjectedLine]:
        """Lines that are carried to sizes that no run has."""
        measured = {(run.processes, run.threads) for run in self.runs}
        asked = set(self.projection.sizes) - measured
        return [line for line in lines if any(_reaches(line, *size) for size in asked)]

    def facts(self) -> dict[str, Any]:
        """Return what the projection rests on, the laws, and other extrapolations."""
        lines = self.projection.lines
        rows = [row for row in self.projection.rows if row.family != TIME]
        named = {(row.processes, row.threads, row.metric): row.value for row in rows}
        shown = dict.fromkeys(row.family for row in rows if row.family)
        return {
            "law": self.law,
            "confidence": CONFIDENCE,
            "runs": [
                {
                    "source": run.place,
                    "processes": run.processes,
                    "threads": run.threads,
                    "runtime": run.runtime,
                    "metrics": {name: families[name].values for name in shown},
                    "caveats": run.caveats,
                }
                for run, families in zip(self.runs, self.compared.evaluations, strict=True)
            ],
            "scaling": {
                "mode": self.compared.scaling.mode,
                "reference": self.runs[self.compared.scaling.reference].place,
                "why": self.compared.scaling.why,
                "notes": self.compared.scaling.doubts,
            },
            "lines": [_line(line) for line in lines],
            "rows": rows,
            "baselines": [
                {
                    "processes": processes,
                    "threads": threads,
                    "name": name,
                    "runtime": value,
                    "speedup": _speedup(value, named, processes, threads),
                }
                for processes, threads, found in self.projection.baselines
                for name, value in found.items()
            ],
            "warnings": [
                *self.compared.warnings,
                *dict.fromkeys(text for line in self._carried(lines) for text in _assumed(line)),
                *([_RUNTIME_ONLY] if any(map(_is_runtime_only, lines)) else []),
            ],
        }


class ProjectedRun(ProjectedRuns):
    """Measured runs carried to one size."""

    @property
    def size(self) -> tuple[int, int]:
        row = self.projection.rows[0]
        return row.processes, row.threads

    def to_dict(self) -> dict[str, Any]:
        """Return the run as a document, schema ``popmodel/predict/1``, without provenance."""
        processes, threads = self.size
        metrics: dict[str, dict[str, Any]] = {}
        absent: dict[str, dict[str, str]] = {}
        time: dict[str, Any] = {}
        for (family, metric), row in self.of(*self.size).items():
            if family == TIME:
                time[metric] = _estimate(row)
            elif family:
                absent.setdefault(family, {})
                metrics.setdefault(family, {})
                if row.value is None:
                    absent[family][metric] = row.why
                else:
                    metrics[family][metric] = _estimate(row)
        return document(
            prediction.SCHEMA,
            processes=processes,
            threads=threads,
            runtime=_estimate(self.of(*self.size)["", "runtime"]),
            metrics=metrics,
            absent=absent,
            time=time,
            launch=_launch(processes, threads),
            trust=trust(self.doubts(*self.size)),
            projection=self.facts(),
        )


class SplitChance(NamedTuple):
    """What draws tell of a split beside the others of its cores."""

    best: float  # Share in which it is the fastest
    near: float  # and at most `WITHIN` slower
    loss: float  # By how much it is slower than the fastest, on average


@dataclass(frozen=True)
class ProjectedSplits(ProjectedRuns):
    """Measured runs carried to all splits of some cores that laws reach."""

    cores: tuple[int, ...]
    refused: tuple[tuple[int, int, str], ...]  # Splits that no law reaches, and why
    target: float | None = None  # The parallel efficiency that the cores were searched for

    def to_dict(self) -> dict[str, Any]:
        """Return the splits as a document, schema ``popmodel/splits/1``, without provenance."""
        candidates: list[dict[str, Any]] = []
        best: list[tuple[int, int]] = []
        doubts: dict[str, None] = {}
        for cores in self.cores:
            mine = [size for size in self.projection.sizes if size[0] * size[1] == cores]
            chances = self._chances(mine)
            # one without an interval may be the best
            is_known = all(self.of(*size)["", "runtime"].low is not None for size in mine)
            some = [self._candidate(size, chances if is_known else {}) for size in mine]
            candidates += some
            taken, unknown = _best(some, chances)
            best += taken
            doubts |= dict.fromkeys(unknown)
        lines = self.projection.lines
        doubts |= {run.text(self.runs): None for line in lines for run in line.outliers}
        for size in best:
            doubts |= dict.fromkeys(self.doubts(*size))
        return document(
            split_sweep.SCHEMA,
            candidates=candidates,
            refused=[
                {"processes": processes, "threads": threads, "why": why}
                for processes, threads, why in self.refused
            ],
            best=best,
            trust=trust([*doubts]),
            target=self.target,
            projection=self.facts(),
        )

    def _candidate(
        self, size: tuple[int, int], chances: Mapping[tuple[int, int], SplitChance]
    ) -> dict[str, Any]:
        processes, threads = size
        rows = self.of(*size)
        efficiency = next(
            (row for (_, metric), row in rows.items() if metric == "parallel_efficiency"), None
        )
        missing = {"value": None, "low": None, "high": None, "why": "only runtimes are known"}
        return {
            "processes": processes,
            "threads": threads,
            "cores": processes * threads,
            "runtime": _estimate(rows["", "runtime"]),
            "parallel_efficiency": missing if efficiency is None else _estimate(efficiency),
            "probability_best": chances[size].best if size in chances else None,
            "launch": _launch(processes, threads),
        }

    def _chances(self, sizes: Sequence[tuple[int, int]]) -> dict[tuple[int, int], SplitChance]:
        """What the draws tell of splits of the same cores, of those that have any.

        They are on lines of their own, whose laws know nothing of each other: draws are combined at
        random.
        """
        sizes = [size for size in sizes if size in self.projection.draws]
        if not sizes:
            return {}
        drawn = [self.projection.draws[size] for size in sizes]
        generator = np.random.default_rng(_SEED)
        number = min(map(len, drawn))
        times = np.array([generator.permutation(one)[:number] for one in drawn])
        longer = times / times.min(axis=0) - 1
        columns = ((longer <= 0).mean(1), (longer <= WITHIN).mean(1), longer.mean(1))
        rows = np.stack(columns, axis=1).tolist()
        return {size: SplitChance(*row) for size, row in zip(sizes, rows, strict=True)}


def _best(
    candidates: Sequence[Mapping[str, Any]], chances: Mapping[tuple[int, int], SplitChance]
) -> tuple[list[tuple[int, int]], list[str]]:
    """The split of the least expected loss and those that are likely as good; what is doubtful.

    Without intervals, the fastest.
    """
    times = {
        (one["processes"], one["threads"]): one["runtime"]["value"]
        for one in candidates
        if one["runtime"]["value"] is not None
    }
    if not chances:
        return sorted(times, key=lambda size: times[size])[:1], []
    first, *others = sorted(chances, key=lambda size: (chances[size].loss, times[size]))
    unknown = [size for size in times if size not in chances and times[size] < times[first]]
    names = ", ".join(f"{p} x {t}" for p, t in unknown)
    doubts = [f"{names} may be faster: nothing tells how it scales"] if unknown else []
    return [first, *(size for size in others if chances[size].near > LIKELY)], doubts


def _estimate(row: ProjectedRow) -> dict[str, Any]:
    why = {} if row.low is not None else {"why": row.why}
    return {"value": row.value, "low": row.low, "high": row.high, **why}


def _launch(processes: int, threads: int) -> str:
    """How to start a program whose name nobody said."""
    return f"OMP_NUM_THREADS={threads} srun -n {processes} -c {threads} PROGRAM"


def _next_place(line: ProjectedLine, target: int) -> int:
    """The next size to measure: twice the largest, or as large as intervals for a target need."""
    place = 2 * line.places[-1]
    while reach_of(place / line.places[0]) * place < target:
        place *= 2
    return place


def _reaches(line: ProjectedLine, processes: int, threads: int) -> bool:
    return line.fixed == (threads if line.axis == "processes" else processes)


def _assumed(line: ProjectedLine) -> list[str]:
    """What laws rest on that was not measured."""
    one, what = "process", "processes"
    if line.axis == "threads":
        one, what = ("thread per process", "threads per process")
    told = []
    if len(line.places) == 1:
        told.append(
            f"all runs used here have {plural(line.places[0], one, what)}: how factors change "
            "with them is assumed, not measured"
        )
    elif len(line.places) < TESTED:
        told.append(
            f"runs with {len(line.places)} different numbers of {what} cannot tell laws apart: "
            "structural laws are assumed, intervals allow for the others"
        )
    return told


def _is_runtime_only(line: ProjectedLine) -> bool:
    """Whether nothing but runtimes is known of the runs of a line."""
    return [fitted.factor.id for fitted in line.fitted] == ["runtime"]


def _speedup(
    value: float, named: Mapping[tuple[int, int, str], float | None], processes: int, threads: int
) -> float | None:
    """Speed-up of a baseline, in proportion to that of the projection."""
    mine = named.get((processes, threads, "speedup"))
    took = named.get((processes, threads, "runtime"))
    return None if mine is None or took is None else mine * took / value


def _line(line: ProjectedLine) -> dict[str, Any]:
    return {
        "axis": line.axis,
        "fixed": line.fixed,
        "runs": [number + 1 for number in line.runs],
        "measured": line.places,
        "reach": {"low": line.reach[0], "high": line.reach[1]},
        "laws": [_law(fitted) for fitted in line.fitted],
    }


def _law(fitted: FittedFactor) -> dict[str, Any]:
    return {
        "factor": fitted.factor.id,
        "name": fitted.factor.name,
        **fields_of(fitted, "law", "form", "constants", "origin", "points", "tried"),
    }


# From measured runs to projections.


def ask_run(compared: RunComparison, processes: int, threads: int | None, law: str) -> ProjectedRun:
    """Carry runs to one size; without threads those of most runs."""
    size = processes, threads or _usual_team(compared.runs)
    return ProjectedRun(compared, compared.project([size], law), law)


def ask_splits(
    compared: RunComparison, cores: Sequence[int] | None, target: float | None, law: str
) -> ProjectedSplits:
    """Carry runs to all splits of some cores; without these, of the most of an efficiency."""
    if cores is None:
        cores = [_largest_cores(compared, law, target or 0.0)]
    sizes, refused = _splits_of(compared.runs, cores)
    projection = compared.project(sizes, law)
    return ProjectedSplits(compared, projection, law, tuple(cores), tuple(refused), target)


def _splits_of(
    runs: Sequence[MeasuredRow], cores: Sequence[int]
) -> tuple[list[tuple[int, int]], list[tuple[int, int, str]]]:
    """Return the splits of some cores to which measured runs can be carried, and the others."""
    teams = {run.threads for run in runs}
    counts: dict[int, set[int]] = {}
    for run in runs:
        counts.setdefault(run.processes, set()).add(run.threads)
    possible: list[tuple[int, int]] = []
    refused: list[tuple[int, int, str]] = []
    for number in dict.fromkeys(cores):
        for threads in divisors(number):
            processes = number // threads
            if threads in teams or len(counts.get(processes, ())) > 1:
                possible.append((processes, threads))
            else:
                why = f"no run has {plural(threads, 'thread')} per process"
                if processes in counts:
                    why += f", and those of {plural(processes, 'process', 'processes')} have one T"
                else:
                    why += f", and none {plural(processes, 'process', 'processes')}"
                refused.append((processes, threads, why))
    if not possible:
        have = ", ".join(f"{p} x {t}" for p, t in sorted({(r.processes, r.threads) for r in runs}))
        raise UsageError(
            f"{plural(cores[0], 'core')}: {refused[0][2]}: laws change one of them at a time",
            f"measured: {have}",
        )
    return possible, refused


def _usual_team(runs: Sequence[MeasuredRow]) -> int:
    """T of most different numbers of processes, the largest of several."""
    teams = {run.threads for run in runs}
    return max(teams, key=lambda t: (len({r.processes for r in runs if r.threads == t}), t))


def _largest_cores(compared: RunComparison, law: str, target: float) -> int:
    """Return the largest number of cores with a parallel efficiency, as far as intervals reach."""
    runs = compared.runs
    best: tuple[float, int] | None = None
    keeping = 0
    for threads in sorted({run.threads for run in runs}):
        places = [run.processes for run in runs if run.threads == threads]
        asked = compared.project([(max(places), threads)], law)
        line = asked.lines[0]
        if line.axis != "processes":
            continue
        for place, efficiency in asked.efficiencies(line).items():
            cores = place * threads
            best = max(best or (efficiency, cores), (efficiency, cores))
            if efficiency >= target:
                keeping = max(keeping, cores)
    if keeping:
        return keeping
    if best is None:
        raise UsageError("the parallel efficiency of these runs is not known", "give traces")
    raise UsageError(
        f"no number of cores has a parallel efficiency of {100 * target:g} %",
        f"the highest is {100 * best[0]:.1f} %, on {plural(best[1], 'core')}",
    )


def _check_problem(runs: Sequence[MeasuredRow]) -> None:
    """Refuse runs of several problems, unless it is said how these scale."""
    names = dict.fromkeys(name for run in runs for name in run.parameters)
    for name in names:
        values = list(dict.fromkeys(run.parameters.get(name) for run in runs))
        if len(values) > 1:
            shown = ["not known" if each is None else f"{each:.12g}" for each in values[:3]]
            run = next(run for run in runs if name in run.parameters)
            of_one = "give runs of one problem size"
            if run.window is None:
                of_one = f"take those of one ({run.source}:{name}={run.parameters[name]:.12g})"
            raise UsageError(
                f"runs of different problems: {name} is {', '.join(shown)}",
                f"{of_one}, or say --scaling weak if the work grows with the cores",
            )
