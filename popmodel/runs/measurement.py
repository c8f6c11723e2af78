"""One measured run: what models are fitted to and compared with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import MeasuredRun
from popmodel.efficiency.observables import Observables
from popmodel.errors import FileError, PopmodelError
from popmodel.shapes import MOST_EFFICIENCY
from popmodel.trace.focus import TraceFocus
from popmodel.values import dataclass


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
    window: TraceFocus | None = (
        None  # What of a trace was measured; None of a run time from a table
    )
    caveats: tuple[str, ...] = ()  # What has to be known before the numbers are read
    # Whether threads had no CPU of their own: more of them than CPUs, or `waited` above
    # `popmodel.efficiency.evidence.WAITED`.
    disturbed: bool = False
    # Parameters of the application in this run, as far as they are known.
    parameters: Mapping[str, float] = field(default_factory=dict)
    line: int | None = None  # Line of a table
    # What the metrics are computed from, by the names of
    # `popmodel.efficiency.aggregates.AGGREGATES`, in their units: of a trace all that it tells, of
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
