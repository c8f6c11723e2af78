"""What a family of metrics is.

A family is data: metrics with formulas, and decompositions that say which metrics explain which.
The decompositions form a directed acyclic graph, not always a tree: one metric may be explained in
two ways, and one metric may explain two others. `popmodel.efficiency.evaluation` computes values;
what only explains metrics does without it, and without NumPy.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from popmodel.base.expressions import Expression
from popmodel.base.units import plural
from popmodel.base.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from popmodel.base.expressions.elementary import Value


CAUSES = (
    "imbalance",
    "waiting",
    "transfer",
    "communication",
    "regions",
    "serial",
    "team",
    "outside regions",
    "computation",
    "instructions",
    "ipc",
    "frequency",
    "device imbalance",
    "device copies",
    "launch gaps",
)
"""What a low metric can be blamed on: `popmodel.efficiency.loss_causes` looks for it in the run."""


class IdentityError(AssertionError):
    """A metric differs from what its parts give: a formula or a decomposition is wrong."""


@dataclass(frozen=True)
class Metric:
    """One metric of a family."""

    id: str
    name: str
    formula: Expression  # Over names of `AGGREGATES` and ids of the same family
    # What it says, what to look at when it is low, and where it is defined.
    meaning: str
    advice: str
    source: str
    # Bounds that hold for every run whose times do not contradict each other.
    at_least: float | None = None
    at_most: float | None = None
    at_most_plus: Expression | None = None  # How far above `at_most` such a run may be nevertheless
    cause: str | None = None  # One of `CAUSES`; None of a metric that its parts explain
    # The metric that this one shows from another side without being a part of it.
    view_of: str | None = None


@dataclass(frozen=True)
class Decomposition:
    """A metric as the product of parts, or as their sum less (number of parts - 1).

    Parts are ids of the family or names of `AGGREGATES`. With ``proved`` the equation follows
    from the formulas whatever the values; otherwise it is only checked on values.
    """

    parent: str
    operation: Literal["product", "sum"]
    parts: tuple[str, ...]
    proved: bool

    def combine(self, values: Mapping[str, Any]) -> Any:
        """The right-hand side, for anything that adds and multiplies (numbers, symbols)."""
        parts = [values[part] for part in self.parts]
        result = parts[0]
        for part in parts[1:]:
            result = result * part if self.operation == "product" else result + part - 1
        return result


@dataclass(frozen=True)
class FamilyNote:
    """A remark that is due whenever a condition holds; always, if there is none."""

    text: str
    when: Expression | None = None


@dataclass(frozen=True)
class FamilyLine:
    """One line of a displayed tree."""

    depth: int
    metric: str
    view: bool = False


@dataclass(frozen=True)
class Walk:
    """A tree in display order. The first walk of a family has no heading."""

    heading: str | None
    rows: tuple[FamilyLine, ...]


@dataclass(frozen=True)
class FamilyEvaluation:
    """The metrics of one run."""

    family: Family  # Whose metrics they are
    values: dict[str, float]  # By metric id; finite numbers only
    absent: dict[str, str]  # The reason, for every metric without a value
    notes: tuple[str, ...]  # What a reader of these values should know


@dataclass(frozen=True)
class SampledEvaluation:
    """The metrics of many equally likely runs: as `FamilyEvaluation`, with one array per metric."""

    family: Family
    values: dict[str, NDArray[np.float64]]
    absent: dict[str, str]


@dataclass(frozen=True, eq=False)
class Family:
    """A set of metrics that explain one another; made by `popmodel.efficiency.hierarchy`."""

    id: str
    title: str
    # When to choose this family, and the document that defines it.
    use: str
    source: str
    top: str  # The parallel efficiency of the family (of ``scaling``: computation scaling)
    search: tuple[str, ...]  # Where the search for the largest loss begins, mostly at `top`
    metrics: Mapping[str, Metric]  # By id, in the order of the file
    # The first one of a metric is the one that the tree shows.
    decompositions: tuple[Decomposition, ...]
    notes: tuple[FamilyNote, ...]  # Remarks that depend on the values
    order: tuple[str, ...]  # The ids such that a formula comes after those it uses
    # A name of `AGGREGATES` that only some runs have, without which the family says nothing of a
    # run; empty for none.
    requires: str = ""

    def __repr__(self) -> str:
        return f"<Family {self.id}: {self.title}, {plural(len(self.metrics), 'metric')}>"

    def parts(self, metric: str) -> tuple[str, ...]:
        """Metrics of the family in the first decomposition of a metric; empty for a leaf."""
        for decomposition in self.decompositions:
            if decomposition.parent == metric:
                return tuple(part for part in decomposition.parts if part in self.metrics)
        return ()

    def fits(self, aggregates: Container[str]) -> bool:
        """Whether the family says anything of a run with these aggregates."""
        return not self.requires or self.requires in aggregates

    def needs(self, metric: str) -> tuple[str, ...]:
        """Names of `AGGREGATES` that a metric rests on, directly or through other metrics."""
        names: dict[str, None] = {}
        for name in sorted(self.metrics[metric].formula.names):
            names |= dict.fromkeys(self.needs(name) if name in self.metrics else (name,))
        return tuple(names)

    def evaluate(
        self, aggregates: Mapping[str, float], absent: Mapping[str, str] | None = None
    ) -> FamilyEvaluation:
        """Compute all metrics of one run."""
        from popmodel.efficiency.evaluation import evaluate

        return evaluate(self, aggregates, absent or {})

    def evaluate_samples(
        self, aggregates: Mapping[str, Value], absent: Mapping[str, str] | None = None
    ) -> SampledEvaluation:
        """Compute all metrics of many runs at once: as `evaluate`, elementwise.

        Values of `aggregates` are arrays of one shape (n,), or numbers common to all samples.
        A metric that is undefined in any sample is absent.
        """
        from popmodel.efficiency.evaluation import evaluate_samples

        return evaluate_samples(self, aggregates, absent or {})

    def tree(self) -> tuple[Walk, ...]:
        """The metrics in display order: the tree first, then every further decomposition.

        A metric whose parts were listed before is not expanded again.
        """
        expanded: set[str] = set()
        attached = {part for each in self.decompositions for part in each.parts}
        roots = [
            id for id, metric in self.metrics.items() if id not in attached and not metric.view_of
        ]
        rows = [row for root in roots for row in self._rows(root, 0, expanded)]
        walks = [Walk(None, tuple(rows))]
        explained: set[str] = set()
        for each in self.decompositions:
            if each.parent in explained:
                parts = [part for part in each.parts if part in self.metrics]
                below = [row for part in parts for row in self._rows(part, 1, expanded)]
                walks.append(Walk(equation(self, each), (FamilyLine(0, each.parent), *below)))
            explained.add(each.parent)
        return tuple(walks)

    def lowest_leaf(self, evaluation: FamilyEvaluation) -> Metric | None:
        """The lowest metric below `search` that no present metric explains further.

        Views are not considered. None if no metric has a value.
        """
        leaves = self.leaves(evaluation.values)
        lowest = min(leaves, key=lambda id: evaluation.values[id], default=None)
        return None if lowest is None else self.metrics[lowest]

    def leaves(self, values: Mapping[str, Any], above: str | None = None) -> list[str]:
        """The metrics below `search`, or a metric, that no metric with a value explains further."""
        found: list[str] = []
        for metric in self.search if above is None else self.parts(above):
            below = self.leaves(values, metric)
            found += below or ([metric] if metric in values else [])
        return found

    def _rows(self, metric: str, depth: int, expanded: set[str]) -> Iterator[FamilyLine]:
        yield FamilyLine(depth, metric)
        if metric in expanded:
            return
        expanded.add(metric)
        for part in self.parts(metric):
            yield from self._rows(part, depth + 1, expanded)
        for id, other in self.metrics.items():
            if other.view_of == metric:
                yield FamilyLine(depth + 1, id, view=True)


def label(family: Family, name: str) -> str:
    """What people call a metric of the family or an aggregate."""
    return family.metrics[name].name if name in family.metrics else AGGREGATES[name].symbol


def equation(family: Family, decomposition: Decomposition) -> str:
    """A decomposition as an equation between names."""
    names = [label(family, part) for part in decomposition.parts]
    parent = label(family, decomposition.parent)
    is_product = decomposition.operation == "product"
    sign, less = (" x ", "") if is_product else (" + ", f" - {len(names) - 1}")
    return f"{parent} = {sign.join(names)}{less}"


# The scalars that formulas of metrics use, and why one may be missing.
#
# Names follow the POP documents: POP Standard Metrics for hybrid applications (averages weigh a
# process by its threads), POP metric glossary (co-design.pop-coe.eu), DLB user guide (idle times).
# `popmodel.efficiency.observables` computes them from a run, and the model from a prediction.


NO_MPI = "no MPI calls"

REASONS: Mapping[str, tuple[str, ...]] = {
    "ideal_runtime": ("no replay on an ideal network", NO_MPI),
    "not_in_mpi": ("the time outside MPI calls was not measured",),
    "instructions": ("no hardware counter of instructions",),
    "cycles": ("no hardware counter of cycles",),
    "idle_serial": ("idle time of threads was not measured",),
    "idle_imbalance": ("idle time of threads was not measured",),
    "idle_scheduling": ("idle time of threads was not measured",),
    "openmp_imbalance": ("parallel regions were not analysed one by one",),
    "openmp_synchronisation": ("synchronisation inside parallel regions was not measured",),
    "openmp_scheduling": ("scheduling inside parallel regions was not measured",),
    "openmp_mpi": ("MPI inside parallel regions was not measured",),
    "vector_counts": (
        "no counters of floating-point instructions by width (FP_ARITH_INST_RETIRED)",
    ),
    "devices": ("no devices (streams of GPUs) in the trace",),
    "io": ("no I/O in the trace",),
    "mpi_io": ("no time in MPI-IO",),
    "posix_io": ("no time in POSIX I/O in the trace",),
    "reference": ("no reference run",),
    "reference_instructions": ("the reference run has no hardware counter of instructions",),
    "reference_cycles": ("the reference run has no hardware counter of cycles",),
}
"""Why a quantity may be missing; the first reason is the one if nothing else is known."""


@dataclass(frozen=True)
class Aggregate:
    """One scalar name that formulas may use."""

    name: str  # The name in formulas
    symbol: str  # How the name is written for people, after the notation of the POP documents
    unit: str  # ``s``, ``1`` or the thing that is counted
    meaning: str  # What the value is, as a noun phrase
    # The quantities of `Observables` without which the value is missing.
    needs: tuple[str, ...] = ()


# "weighted" below: the average over processes in which a process counts once per thread it has.
_TABLE = (
    Aggregate("processes", "P", "1", "number of processes"),
    Aggregate("threads", "T", "1", "number of threads of all processes"),
    Aggregate(
        "runtime",
        "runtime",
        "s",
        "runtime of the program; of a trace from the end of MPI_Init to the start of MPI_Finalize",
    ),
    Aggregate(
        "ideal_runtime",
        "ideal runtime",
        "s",
        "runtime of the same run replayed on an ideal network",
        ("ideal_runtime",),
    ),
    # Useful time, over threads.
    Aggregate("useful_mean", "Avg(useful)", "s", "useful time, average over all threads"),
    Aggregate("useful_max", "max(useful)", "s", "useful time of the busiest thread"),
    Aggregate("useful_sum", "sum(useful)", "s", "useful time, sum over all threads"),
    Aggregate(
        "omp_useful_mean",
        "Avg(useful in OpenMP)",
        "s",
        "useful time inside parallel regions, average over all threads",
    ),
    # The process as its master thread.
    Aggregate(
        "master_useful_mean",
        "Avg(useful of masters)",
        "s",
        "useful time of the master threads, average over processes",
    ),
    Aggregate(
        "master_useful_max",
        "max(useful of masters)",
        "s",
        "useful time of the busiest master thread",
    ),
    # Wall times of processes.
    Aggregate(
        "serial_useful_mean",
        "Avg(serial useful)",
        "s",
        "useful time of the masters outside parallel regions, weighted average",
    ),
    Aggregate(
        "in_openmp_mean",
        "Avg(in OpenMP)",
        "s",
        "wall time of the masters inside parallel regions, weighted average",
    ),
    Aggregate(
        "serial_openmp_max",
        "max(serial useful + in OpenMP)",
        "s",
        "longest time of a process in serial useful code and parallel regions together",
    ),
    Aggregate(
        "outside_mpi_mean",
        "Avg(outside MPI)",
        "s",
        "time of the processes outside MPI in the chosen reading, weighted average",
        ("not_in_mpi",),
    ),
    Aggregate(
        "outside_mpi_max",
        "max(outside MPI)",
        "s",
        "longest time of a process outside MPI in the chosen reading",
        ("not_in_mpi",),
    ),
    # Losses inside parallel regions, by kind.
    Aggregate(
        "openmp_imbalance",
        "OpenMP imbalance",
        "s",
        "busiest minus average useful time of the team, summed over region instances,"
        " weighted average",
        ("openmp_imbalance",),
    ),
    Aggregate(
        "openmp_synchronisation",
        "OpenMP synchronisation",
        "s",
        "time synchronising inside parallel regions, average over all threads",
        ("openmp_synchronisation",),
    ),
    Aggregate(
        "openmp_scheduling",
        "OpenMP scheduling",
        "s",
        "time in scheduling, fork and join of parallel regions, average over all threads",
        ("openmp_scheduling",),
    ),
    Aggregate(
        "openmp_mpi",
        "MPI in OpenMP",
        "s",
        "time in MPI calls inside parallel regions, average over all threads",
        ("openmp_mpi",),
    ),
    # MPI time of a process as the average over its threads, and idle threads, as TALP has them.
    Aggregate("mpi_mean", "Avg(MPI)", "s", "MPI time of the processes, weighted average"),
    Aggregate("mpi_min", "min(MPI)", "s", "smallest MPI time of a process"),
    Aggregate(
        "mpi_node_min",
        "min over nodes of Avg(MPI)",
        "s",
        "smallest MPI time of a node, weighted average over its processes",
    ),
    Aggregate(
        "idle_serial",
        "serial idle time",
        "s",
        "thread time idle outside the parallel region that runs, summed",
        ("idle_serial",),
    ),
    Aggregate(
        "idle_imbalance",
        "imbalance idle time",
        "s",
        "thread time idle in regions beyond the least idle thread of the team, summed",
        ("idle_imbalance",),
    ),
    Aggregate(
        "idle_scheduling",
        "scheduling idle time",
        "s",
        "thread time idle in regions that all threads of the team share, summed",
        ("idle_scheduling",),
    ),
    # Hardware counters over useful time.
    Aggregate(
        "instructions_sum",
        "sum(instructions)",
        "instructions",
        "instructions in useful time, sum over all threads",
        ("instructions",),
    ),
    Aggregate(
        "cycles_sum",
        "sum(cycles)",
        "cycles",
        "CPU cycles in useful time, sum over all threads",
        ("cycles",),
    ),
    # Floating-point instructions in useful time by width: where a trace has their counters.
    Aggregate(
        "flops",
        "sum(flops)",
        "flop",
        "floating-point operations, sum over all threads: an instruction counts once per element",
        ("vector_counts",),
    ),
    Aggregate(
        "vector_flops",
        "sum(flops in vectors)",
        "flop",
        "floating-point operations in instructions of several elements, sum over all threads",
        ("vector_counts",),
    ),
    Aggregate(
        "float_instructions",
        "sum(floating-point instructions)",
        "instructions",
        "floating-point instructions, sum over all threads",
        ("vector_counts",),
    ),
    Aggregate(
        "packed_instructions",
        "sum(packed instructions)",
        "instructions",
        "floating-point instructions of several elements, sum over all threads",
        ("vector_counts",),
    ),
    # I/O: where a run has any.
    Aggregate(
        "io_sum",
        "sum(I/O)",
        "s",
        "time in calls of MPI-IO, and in those of POSIX outside MPI, sum over all threads",
        ("io",),
    ),
    Aggregate(
        "io_max", "max(I/O)", "s", "longest time of the threads of a process in I/O", ("io",)
    ),
    Aggregate(
        "mpi_io_sum", "sum(MPI-IO)", "s", "time in MPI-IO, sum over all threads", ("mpi_io",)
    ),
    Aggregate(
        "posix_io_sum",
        "sum(POSIX I/O)",
        "s",
        "time in I/O calls of POSIX outside MPI, sum over all threads",
        ("posix_io",),
    ),
    # Devices: where a run has any.
    Aggregate("devices", "D", "1", "number of devices", ("devices",)),
    Aggregate(
        "device_useful_sum",
        "sum(kernels)",
        "s",
        "time with a kernel in any stream of the device, sum over all devices",
        ("devices",),
    ),
    Aggregate(
        "device_useful_max",
        "max(kernels)",
        "s",
        "time with a kernel in any stream of the busiest device",
        ("devices",),
    ),
    Aggregate(
        "device_active_max",
        "max(kernels + transfers)",
        "s",
        "longest time of a device with a kernel, copy, memset or collective in any stream",
        ("devices",),
    ),
    Aggregate(
        "in_device_calls_sum",
        "sum(in device calls)",
        "s",
        "time in calls of the runtime of devices outside MPI, sum over all threads",
        ("devices",),
    ),
    Aggregate(
        "host_outside_mpi_mean",
        "Avg(wall time outside MPI)",
        "s",
        "wall time of the masters outside MPI calls, calls of the runtime of devices included, "
        "weighted average",
        ("devices",),
    ),
    Aggregate(
        "device_work_ratio",
        "device work ratio",
        "1",
        "devices of this run over those of the reference run in weak scaling, 1 in strong scaling",
        ("devices",),
    ),
    Aggregate(
        "reference_device_useful_sum",
        "sum(kernels)_ref",
        "s",
        "time with kernels of the reference run, sum over all devices",
        ("devices",),
    ),
    # What a comparison with a reference run adds (popmodel.efficiency.scaling).
    Aggregate(
        "computation_scaling",
        "Computation scaling",
        "1",
        "useful time of the reference run over that of this run",
        ("reference",),
    ),
    Aggregate(
        "work_ratio",
        "work ratio",
        "1",
        "work of this run over work of the reference run (1 in strong scaling)",
        ("reference",),
    ),
    Aggregate(
        "reference_runtime", "runtime_ref", "s", "runtime of the reference run", ("reference",)
    ),
    Aggregate(
        "reference_useful_sum",
        "sum(useful)_ref",
        "s",
        "useful time of the reference run, sum over all threads",
        ("reference",),
    ),
    Aggregate(
        "reference_instructions_sum",
        "sum(instructions)_ref",
        "instructions",
        "instructions of the reference run",
        ("reference", "reference_instructions"),
    ),
    Aggregate(
        "reference_cycles_sum",
        "sum(cycles)_ref",
        "cycles",
        "CPU cycles of the reference run",
        ("reference", "reference_cycles"),
    ),
)

AGGREGATES: Mapping[str, Aggregate] = {aggregate.name: aggregate for aggregate in _TABLE}
"""Every name that a formula may use, with symbol, unit, meaning and what it needs."""
