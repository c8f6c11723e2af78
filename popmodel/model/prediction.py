"""What a prediction says: numbers with intervals, reasons, provenance: all that a report shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from popmodel.machine.quantity import Quantity
from popmodel.model.agreement import Agreement
from popmodel.model.placement import Placement, launch_line, mpirun_line

SCHEMA = "popmodel/predict/1"
MAIN_FAMILY = "hybrid-additive"


@dataclass(frozen=True)
class Estimate:
    """A predicted number with its 90 % interval.

    Attributes
    ----------
    value : float
        Best estimate.
    low, high : float or None
        5 % and 95 % quantiles over the uncertain inputs; None if no uncertain input acts on it.
    """

    value: float
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give value, low, high, and why there is no interval where there is none."""
        entry: dict[str, Any] = {"value": self.value, "low": self.low, "high": self.high}
        if self.low is None:
            entry["why"] = "no uncertain input acts on it"
        return entry


@dataclass(frozen=True)
class Prediction:
    """Everything that a report says about one predicted run; made by `predict`.

    Attributes
    ----------
    application, machine : str
        Names of signature and profile.
    application_path, machine_path : str
        Files they were read from.
    application_is_bundled, machine_is_preset : bool
        Whether they came with popmodel.
    machine_origin : str
        ``measured``, ``preset`` or ``user``.
    settings : dict of str to float
        Value of every parameter of the application.
    placement : Placement
        Processes, threads, processes per node, nodes.
    grid : tuple of int
        Processes along each grid dimension; empty without a grid.
    memory_per_process : float or None
        Bytes, if the signature says.
    runtime : Estimate
        Seconds.
    metrics : dict of str to dict of str to Estimate
        By family and metric id.
    absent : dict of str to dict of str to str
        Why a metric has no value, by family and id.
    limits : str or None
        Metric of `MAIN_FAMILY` with the largest loss that no other explains.
    time : dict of str to Estimate
        Parts of the runtime in seconds; their values add up to it.
    remedies : dict of str to float
        Relative change of the runtime under each remedy, the best first.
    doubtful : dict of str to float
        Share of each uncertain input in the variance of the runtime, the largest first.
    model_form : tuple of float
        Runtime if transfers hide behind arithmetic entirely, and if nothing overlaps, s.
    agreement : Agreement or None
        Closed form and replay side by side; None if there is nothing to replay, or too much.
    not_replayed : str or None
        Why there is no replay.
    multithreading_efficiency : Estimate or None
        e_mt of the parallel loops; None without any.
    message_passing_ratio : Estimate or None
        e_mp: communication against one process per core; larger is worse.
    message_passing_absent : str or None
        Why there is no e_mp.
    inputs : dict of str to Quantity
        Every quantity that entered, by path; those of the signature begin with ``params.`` and
        ``imbalance.``.
    left_out : tuple of str
        Quantities that the profile does not know and whose effect is not in the prediction.
    notes : tuple of str
        Remarks for the reader.
    draws, seed : int
        Number of draws behind the intervals, and the seed.
    """

    application: str
    machine: str
    application_path: str
    machine_path: str
    application_is_bundled: bool
    machine_is_preset: bool
    machine_origin: str
    settings: dict[str, float]
    placement: Placement
    grid: tuple[int, ...]
    memory_per_process: float | None
    runtime: Estimate
    metrics: dict[str, dict[str, Estimate]]
    absent: dict[str, dict[str, str]]
    limits: str | None
    time: dict[str, Estimate]
    remedies: dict[str, float]
    doubtful: dict[str, float]
    model_form: tuple[float, float]
    agreement: Agreement | None
    not_replayed: str | None
    multithreading_efficiency: Estimate | None
    message_passing_ratio: Estimate | None
    message_passing_absent: str | None
    inputs: dict[str, Quantity] = field(repr=False)
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    draws: int
    seed: int

    @property
    def launch(self) -> str:
        """Commands that start this run under Slurm."""
        return launch_line(self.placement, f"./{self.application}")

    @property
    def launch_mpirun(self) -> str:
        """Commands that start this run with mpirun of Open MPI."""
        return mpirun_line(self.placement, f"./{self.application}")

    def to_dict(self) -> dict[str, Any]:
        """Give the prediction as JSON types, schema ``popmodel/predict/1``."""
        return {
            "schema": SCHEMA,
            "application": {
                "name": self.application,
                "path": self.application_path,
                "bundled": self.application_is_bundled,
                "settings": self.settings,
            },
            "machine": {
                "name": self.machine,
                "path": self.machine_path,
                "preset": self.machine_is_preset,
                "origin": self.machine_origin,
            },
            "processes": self.placement.processes,
            "threads": self.placement.threads,
            "placement": {
                "nodes": self.placement.nodes,
                "processes_per_node": self.placement.per_node,
                "grid": list(self.grid),
            },
            "memory_per_process": self.memory_per_process,
            "runtime": self.runtime.to_dict(),
            "metrics": {
                family: {id: value.to_dict() for id, value in values.items()}
                for family, values in self.metrics.items()
            },
            "absent": self.absent,
            "limits": self.limits,
            "time": {part: value.to_dict() for part, value in self.time.items()},
            "remedies": self.remedies,
            "doubtful": self.doubtful,
            "model_form": dict(zip(("full_overlap", "no_overlap"), self.model_form, strict=True)),
            "replay": {"why": self.not_replayed}
            if self.agreement is None
            else self.agreement.to_dict(),
            "e_mt": _optional(self.multithreading_efficiency),
            "e_mp": _optional(self.message_passing_ratio, self.message_passing_absent),
            "launch": self.launch,
            "launch_mpirun": self.launch_mpirun,
            "inputs": {path: value.to_dict() for path, value in self.inputs.items()},
            "left_out": list(self.left_out),
            "notes": list(self.notes),
            "draws": self.draws,
            "seed": self.seed,
        }


def _optional(value: Estimate | None, why: str | None = None) -> dict[str, Any]:
    if value is not None:
        return value.to_dict()
    return {"value": None, "low": None, "high": None, "why": why or "no parallel loops"}
