"""Runs projected from smaller ones: ``python tests/benchmarks/projection.py [NAME...]``.

For each case of ``scaling.py`` what `popmodel.project` says of the run that is left out, beside
that run: runtime and parallel efficiency with their intervals, and plain extrapolations of the
runtimes. Then, of the runs of one team size in series drawn from ``tests/truth``, how far off
projections to twice and four times the largest number of processes are, and how often intervals
hold. NAME chooses cases that contain it; ``truth`` the drawn series.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from benchmarks.scaling import Case, made, names  # noqa: E402
from truth import FAMILIES, truth  # noqa: E402

import popmodel  # noqa: E402
from popmodel.fit.projection import ProjectedRow, project  # noqa: E402
from popmodel.runs.measurement import MeasuredRow  # noqa: E402

SEEDS = range(20)
FARTHER = (2, 4)
PARALLEL = (("hybrid-additive", "parallel_efficiency"), ("mpi", "parallel_efficiency"))
SHOWN = {
    "runtime": "runtime",
    "parallel_efficiency": "parallel",
}


@dataclass(frozen=True)
class Compared:
    """A projected value beside the measured one."""

    metric: str
    value: float
    low: float | None
    high: float | None
    measured: float

    @property
    def covered(self) -> bool:
        """Whether the interval holds the measured value."""
        return (
            self.low is not None
            and self.high is not None
            and (self.low <= self.measured <= self.high)
        )


def compared(case: Case) -> tuple[list[Compared], dict[str, float]]:
    """Runtime and efficiencies of the large run of a case, and the plain extrapolations."""
    large = popmodel.metrics(case.large)
    run, families = large.runs[0], large.evaluations[0]
    processes, threads = len(run.observables.threads), int(run.observables.threads[0])
    found = popmodel.predict(case.small, procs=processes, threads=threads)
    rows = found.projection.rows
    known = {("", "runtime"): float(run.observables.runtime)}
    for name, evaluation in families.items():
        if name != "scaling":
            known |= {(name, metric): value for metric, value in evaluation.values.items()}
    return [
        Compared(row.metric, row.value, row.low, row.high, known[row.family, row.metric])
        for row in rows
        if row.value is not None and (row.family, row.metric) in known
    ], dict(found.projection.baselines[0][2])


def drawn(family: str) -> Iterator[tuple[int, ProjectedRow, float]]:
    """By seed and size of the series of a family: how far out, the projected row, what it is."""
    for seed in SEEDS:
        one = truth(family, seed=seed)
        sizes = list(dict.fromkeys(one.training()))
        threads = max({t for _, t in sizes}, key=lambda t: len({p for p, own in sizes if own == t}))
        own = sorted({p for p, t in sizes if t == threads})
        runs = [_measurement(one.run(p, threads), p, threads) for p in own]
        targets = [(own[-1] * each, threads) for each in FARTHER]
        rows = project(runs, targets, "strong", 0).rows
        for farther, (p, t) in zip(FARTHER, targets, strict=True):
            there = one.run(p, t)
            for row in rows:
                if (row.processes, row.threads) != (p, t) or row.value is None:
                    continue
                if row.metric == "runtime":
                    yield farther, row, there.runtime
                elif (row.family, row.metric) in PARALLEL:
                    yield farther, row, there.metrics["hybrid-additive"]["parallel_efficiency"]


def _measurement(run, processes: int, threads: int) -> MeasuredRow:  # type: ignore[no-untyped-def]
    return MeasuredRow("truth", processes, threads, run.runtime, run.metrics)


def main(wanted: list[str]) -> int:
    """Print a line for each case, then for each family of truths."""
    chosen = [name for name in names() if not wanted or any(each in name for each in wanted)]
    print(f"{'case':28}{'':12}{'projected':>10} {'90 %':>20}{'measured':>10}{'off':>8}  held")
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            found, plain = compared(made(name, Path(folder)))
        shown = {one.metric: one for one in found if one.metric in SHOWN}
        for one in shown.values():
            ends = "none" if one.low is None else f"{one.low:.4g} .. {one.high:.4g}"
            print(
                f"{name:28}{SHOWN[one.metric]:12}{one.value:10.4g} {ends:>20}"
                f"{one.measured:10.4g}{100 * (one.value / one.measured - 1):+7.1f}%"
                f"  {'yes' if one.covered else 'no'}"
            )
        took = shown["runtime"].measured
        others = (f"{key} {100 * (value / took - 1):+.1f}%" for key, value in plain.items())
        print(f"{'':28}plain       {', '.join(others)}")
    for family in FAMILIES if not wanted or "truth" in wanted else ():
        _print_drawn(family)
    return 0


def _print_drawn(family: str) -> None:
    found: dict[tuple[int, str], list[Compared]] = {}
    for farther, row, value in drawn(family):
        one = Compared(row.metric, row.value or 0.0, row.low, row.high, value)
        found.setdefault((farther, row.metric), []).append(one)
    for (farther, metric), own in found.items():
        known = [one for one in own if one.low is not None]
        off = median(abs(one.value / one.measured - 1) for one in own)
        held = sum(one.covered for one in known)
        print(
            f"truth {family:10} {farther} times P  {SHOWN[metric]:12}"
            f"off {100 * off:5.1f} % (median of {len(own)}), inside the interval {held} of "
            f"{len(known)}"
        )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
