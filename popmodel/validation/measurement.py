"""Measured runs to compare predictions with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import Run
from popmodel.errors import FileError
from popmodel.trace.focus import Focus
from popmodel.values import dataclass


@dataclass(frozen=True)
class Measurement:
    """One run as measured.

    Attributes
    ----------
    source : str
        File that it comes from.
    processes, threads : int
        P, and T of every process.
    runtime : float
        Seconds.
    metrics : mapping of str to mapping of str to float
        By family and metric id; empty if only the runtime is known.
    window : Focus or None
        What of a trace was measured; None of a run time from a table.
    caveats : tuple of str
        What has to be known before the numbers are read.
    disturbed : bool
        Whether its threads waited for CPUs, as far as that is known.
    parameters : mapping of str to float
        Parameters of the application in this run, as far as they are known.
    line : int or None
        Line of a table.
    """

    source: str
    processes: int
    threads: int
    runtime: float
    metrics: Mapping[str, Mapping[str, float]]
    window: Focus | None = None
    caveats: tuple[str, ...] = ()
    disturbed: bool = False
    parameters: Mapping[str, float] = field(default_factory=dict)
    line: int | None = None

    @property
    def place(self) -> str:
        """Where the run stands: the file, and the line of a table."""
        return self.source if self.line is None else f"{self.source}:{self.line}"

    def to_dict(self) -> dict[str, Any]:
        """What was measured, for JSON; the values stand beside their predictions."""
        return {"source": self.source, "caveats": self.caveats, "window": self.window}


def from_run(run: Run) -> Measurement:
    """Evaluate all families for a traced run.

    Raises
    ------
    FileError
        If its processes have different numbers of threads: a prediction has one.
    """
    observed = run.observables
    threads = sorted(set(observed.threads.tolist()))
    if len(threads) > 1:
        raise FileError(
            run.trace,
            f"its processes have {threads[0]} to {threads[-1]} threads each; predictions need the "
            "same number for all",
        )
    aggregates = observed.aggregates()
    metrics = {
        name: family.evaluate(aggregates, observed.absent).values
        for name, family in load_families().items()
    }
    return Measurement(
        run.trace,
        len(observed.threads),
        int(threads[0]),
        float(aggregates["runtime"]),
        metrics,
        run.window,
        run.caveats,
        run.evidence.crowd is not None or run.evidence.delayed,
    )
