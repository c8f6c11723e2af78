"""What a prediction says: what it is about, how far it reaches, numbers with intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field, fields, replace
from typing import Any

from popmodel.efficiency.scaling import Mode
from popmodel.efficiency.terms import FAMILY
from popmodel.expressions.elementary import Value
from popmodel.machine.profile import Profile
from popmodel.machine.quantity import Quantity
from popmodel.model.replayed.agreement import ReplayAgreement
from popmodel.model.run.launch import launch_line, mpirun_line
from popmodel.model.run.parameters import ParameterUse
from popmodel.model.run.placement import WHOLE, Allocation, Placement
from popmodel.model.run.reach import MEASURED, RUNS, Reach, measured_ranges, reaches
from popmodel.model.signature.program import Signature
from popmodel.model.study import RUN_TO_RUN, Study
from popmodel.model.uncertainty import LEVEL, Estimate
from popmodel.plain import document, fields_of
from popmodel.values import dataclass

# What a document of the model is about: the application and the machine, as JSON types.


def subject(
    signature: Signature, profile: Profile, settings: Mapping[str, float]
) -> dict[str, dict[str, Any]]:
    """Return the keys ``application`` and ``machine``."""
    return {
        "application": {
            "name": signature.name,
            "path": signature.path,
            "bundled": signature.is_bundled,
            "not_modelled": signature.not_modelled,
            "settings": dict(settings),
            "imbalance": signature.set_imbalance,
            "calibration": _calibration(signature, profile),
        },
        "machine": {
            "name": profile.name,
            "path": profile.path,
            "preset": profile.is_preset,
            "origin": profile.origin,
            "noisy": list(profile.noisy),
        },
    }


def _calibration(signature: Signature, profile: Profile) -> dict[str, Any] | None:
    """By what runs the signature was calibrated, and whether all of it holds on the machine."""
    known = signature.calibration
    if known is None:
        return None
    return {
        "runs": len(known.runs),
        "noise": known.noise,
        "machine": known.machine,
        "same_machine": known.machine_digest == profile.digest,
        "changed": list(known.changed),
    }


def study_of(
    signature: Signature,
    profile: Profile,
    settings: Mapping[str, float],
    draws: int,
    seed: int,
    factors: Mapping[str, Value] | None = None,
    allocation: Allocation = WHOLE,
) -> Study:
    """Return the study of a program: anchored at the runs that it was learnt from, if any were.

    Where constants or spreads were set by hand it is another program than that of the runs.
    """
    same = signature.learnt is not None and settings.keys() <= signature.params.keys()
    given = signature, profile, settings, draws, seed, factors, allocation
    if not same or signature.set_imbalance:
        return Study(*given)
    from popmodel.prediction.learnt_study import LearntStudy  # laws that other programs do not need

    return LearntStudy(*given)


# How far a prediction goes beyond what was measured of the machine.
#
# What the model asked of every table is held against the range that was measured: the errors of its
# laws grow with the distance (`popmodel.model.laws`), and a prediction that leaves the range far
# behind has no interval.


INSIDE, EXTRAPOLATED, OUTSIDE = "inside", "extrapolated", "outside"


@dataclass(frozen=True)
class Validity:
    """Whether a prediction stays within what was measured."""

    # ``inside``, ``extrapolated`` or ``outside``; for a machine that was not measured the origin of
    # its quantities, ``preset`` or ``user``.
    status: str
    # Largest factor by which an argument is beyond its measured range; 1 inside, None for a machine
    # that was not measured.
    factor: float | None
    # What goes how far beyond which range, the farthest first; then what was not measured.
    reasons: tuple[str, ...]

    @property
    def has_interval(self) -> bool:
        """Whether the spread of the parameters still says something about the result."""
        return self.status != OUTSIDE

    @property
    def text(self) -> str:
        """The status in a few words, and the reasons."""
        words = {INSIDE: "within the measured range", OUTSIDE: "too far outside the measured range"}
        said = words.get(self.status, self.status)
        if self.factor is None:
            said = f"no measured range ({self.status} values)"
        return f"{said}: {'; '.join(self.reasons)}" if self.reasons else said


def validity_of(study: Study, placement: Placement, used: Iterable[ParameterUse]) -> Validity:
    """Compare a run with what was measured of the machine, and with the runs behind its program."""
    found = assess(study.profile, placement, used, study.beyond(placement))
    if not (outside := study.outside):
        return found
    status = EXTRAPOLATED if found.status == INSIDE else found.status
    factor = max(found.factor or 1.0, *outside.values())
    return Validity(status, factor, (*outside, *found.reasons))


def assess(
    profile: Profile, placement: Placement, used: Iterable[ParameterUse], runs: Iterable[Reach] = ()
) -> Validity:
    """Compare what a prediction used with what was measured."""
    used = set(used)
    found = list(reaches(measured_ranges(profile), used, placement.nodes))
    beyond: dict[tuple[float, str, str, float], list[str]] = defaultdict(list)
    for one in (*found, *runs):
        if one.is_beyond:
            key = one.factor, one.argument, one.limit, one.trusted
            beyond[key] += [one.subject] if one.section != RUNS else []
    order = sorted(beyond, key=lambda key: -key[0] / key[3])
    reasons = [_reason(*key[:3], beyond[key]) for key in order]
    factor = max((key[0] for key in order), default=1.0)
    is_measured = any(one.argument != "nodes" for one in found)
    # values of a preset have no range; runs that calibrated a signature have one on any machine
    if any(key[0] > key[3] for key in order if is_measured or not beyond[key]):
        return Validity(OUTSIDE, factor, (*reasons, *_not_measured(profile, used)))
    if not is_measured:
        return Validity(profile.origin, None, tuple(reasons))
    reasons += _not_measured(profile, used)
    return Validity(EXTRAPOLATED if order else INSIDE, factor, tuple(reasons))


def _reason(factor: float, argument: str, limit: str, subjects: list[str]) -> str:
    text = f"{argument} a factor of {factor:.3g} {limit}"
    named = subjects and argument != "nodes"
    return f"{text}: {', '.join(subjects)}" if named else text


def _not_measured(profile: Profile, asked: Iterable[ParameterUse]) -> list[str]:
    """Tables of another origin in a profile that is otherwise measured."""
    subjects: dict[str, set[str]] = defaultdict(set)
    for use in asked:
        origins = {
            quantity.origin
            for path, quantity in profile.quantities.items()
            if path.startswith((f"{use.table}.", f"{use.table}["))
        }
        if origins and MEASURED not in origins:
            subjects[" and ".join(sorted(origins))].add(use.table)
    return [
        f"{', '.join(sorted(names))} not measured ({origin})"
        for origin, names in sorted(subjects.items())
    ]


# What a prediction says: numbers with intervals, reasons, provenance: all that a report shows.


SCHEMA = "popmodel/predict/1"
MAIN_FAMILY = FAMILY
DEFAULT_REFERENCE = "default"
"""Why 1 x 1 is the reference: nothing else was asked for or needed."""
SMOOTH = 0.02
"""Relative difference of the two sides of an elasticity that curvature may explain."""


@dataclass(frozen=True)
class Reference:
    """The predicted run that the scaling metrics compare with."""

    # P and T.
    processes: int
    threads: int
    # Parameters whose values differ from those of the run; empty in strong scaling.
    settings: dict[str, float]
    mode: Mode  # Whether both runs do the same work
    work_ratio: Estimate  # Work of the run over that of the reference; 1 in strong scaling
    runtime: Estimate  # Seconds
    why: str  # Why this one


@dataclass(frozen=True)
class Elasticity:
    """By how many per cent a result changes if an input grows by one."""

    name: str  # Group of `popmodel.model.changes.GROUPS`, or ``params.NAME``
    label: str  # What grows
    value: float  # ``d ln(result) / d ln(input)``
    # The same from the side below and from the side above.
    falling: float
    rising: float

    @property
    def largest(self) -> float:
        """The larger size of the two sides."""
        return max(abs(self.falling), abs(self.rising))

    @property
    def is_smooth(self) -> bool:
        """Whether the two sides agree; they do not at a maximum, a threshold or a rounding."""
        return abs(self.rising - self.falling) <= SMOOTH * max(1.0, self.largest)

    def to_dict(self) -> dict[str, Any]:
        """Return the elasticity as JSON types."""
        return {**fields_of(self), "smooth": self.is_smooth}


@dataclass(frozen=True)
class PredictedRun:
    """Everything that a report says about one predicted run; made by `predict`."""

    # Application and machine.
    signature: Signature = field(repr=False)
    profile: Profile = field(repr=False)
    settings: dict[str, float]  # Value of every parameter of the application
    placement: Placement  # Processes, threads, processes per node, nodes
    grid: tuple[int, ...]  # Processes along each grid dimension; empty without a grid
    memory_per_process: float | None  # Bytes, if the signature says
    validity: Validity  # How far the prediction goes beyond what was measured of the machine
    runtime: Estimate  # Seconds
    # Seconds of one more run, with what varies from run to run; without an interval where that is
    # not known.
    new_run: Estimate
    # Where runtime and metrics come from: ``replay``, or ``closed form`` without a replay.
    source: str
    metrics: dict[str, dict[str, Estimate]]  # By family and metric id
    absent: dict[str, dict[str, str]]  # Why a metric has no value, by family and id
    reference: Reference  # What the metrics of the family ``scaling`` compare with
    limits: str | None  # Metric of `MAIN_FAMILY` with the largest loss that no other explains
    # By leaf of `MAIN_FAMILY`: seconds that each item of the program, or the imbalance, costs.
    causes: dict[str, dict[str, float]]
    time: dict[str, Estimate]  # Parts of the runtime in seconds; their values add up to it
    # Useful time and the losses of `MAIN_FAMILY` in seconds, `popmodel.efficiency.terms`, as
    # measured runs have them too.
    terms: dict[str, Estimate]
    remedies: dict[str, float]  # Relative change of the runtime under each remedy, the best first
    # By how many per cent the runtime changes if an input grows by one, the largest first.
    elasticities: tuple[Elasticity, ...]
    # Share of each uncertain input in the variance of the runtime, the largest first.
    doubtful: dict[str, float]
    measure: str | None  # Command that measures the first of these; None where no benchmark does
    # Runtime if transfers hide behind arithmetic entirely, and if nothing overlaps, s.
    model_form: tuple[float, float]
    # Closed form and replay side by side; None if there is nothing to replay, or too much.
    agreement: ReplayAgreement | None
    not_replayed: str | None  # Why there is no replay
    multithreading_efficiency: Estimate | None  # e_mt of the parallel loops; None without any
    # e_mp: communication against one process per core; larger is worse.
    message_passing_ratio: Estimate | None
    message_passing_absent: str | None  # Why there is no e_mp
    # Every quantity that entered, by path; those of the signature begin with ``params.`` and
    # ``imbalance.``.
    inputs: dict[str, Quantity] = field(repr=False)
    # Quantities that the profile does not know and whose effect is not in the prediction.
    left_out: tuple[str, ...]
    notes: tuple[str, ...]  # Remarks for the reader
    # The runs that the signature was learnt from, `Study.learnt`; None without any.
    learnt: Mapping[str, Any] | None
    # What the intervals include, `Study.included`; empty if there are none.
    included: tuple[str, ...]
    # Number of draws behind the intervals, and the seed.
    draws: int
    seed: int

    @property
    def launch(self) -> str:
        """Commands that start this run under Slurm."""
        return launch_line(self.placement, self._started)

    @property
    def launch_mpirun(self) -> str:
        """Commands that start this run with mpirun of Open MPI."""
        return mpirun_line(self.placement, self._started)

    @property
    def _started(self) -> str:
        at = self.placement
        return self.signature.started(at.processes, at.threads, self.settings)

    def without_intervals(self, why: str) -> PredictedRun:
        """Return the same prediction with best estimates only."""
        return replace(
            self,
            **{one.name: _without_intervals(getattr(self, one.name), why) for one in fields(self)}
            | {"included": ()},
        )

    def _included(self) -> tuple[str, ...]:
        """What intervals include; what varies from run to run only that of a new run."""
        return (*self.included, *((RUN_TO_RUN,) if self.new_run.low is not None else ()))

    def to_dict(self) -> dict[str, Any]:
        """Return the prediction as JSON types, schema ``popmodel/predict/1``."""
        return document(
            SCHEMA,
            **subject(self.signature, self.profile, self.settings),
            **fields_of(self.placement, "processes", "threads"),
            placement={
                "nodes": self.placement.nodes,
                "processes_per_node": self.placement.per_node,
                "grid": self.grid,
                **fields_of(self.placement, *_LAYOUT),
            },
            **fields_of(self, "memory_per_process", "validity"),
            runtime={**self.runtime.to_dict(), "new_run": _ends(self.new_run)},
            **fields_of(self, *_BEFORE_REPLAY),
            model_form=dict(zip(("full_overlap", "no_overlap"), self.model_form, strict=True)),
            replay=self.agreement or {"why": self.not_replayed},
            e_mt=_optional(self.multithreading_efficiency),
            e_mp=_optional(self.message_passing_ratio, self.message_passing_absent),
            launch=self.launch,
            launch_mpirun=self.launch_mpirun,
            **fields_of(self, "inputs", "left_out", "notes"),
            **({} if self.learnt is None else {"learnt": self.learnt}),
            intervals={"level": LEVEL, "include": self._included()},
            **fields_of(self, "draws", "seed"),
        )


_LAYOUT = (
    *("bind", "cores_per_process", "active", "active_serial"),
    *("sockets_spanned", "domains_spanned"),
)
"""Fields of the placement that documents have as they are, in this order."""
_BEFORE_REPLAY = (
    *("source", "metrics", "absent", "reference"),
    *("limits", "causes", "time", "terms", "remedies", "elasticities", "doubtful", "measure"),
)
"""Fields that documents have as they are, in this order."""


def _without_intervals(value: Any, why: str) -> Any:
    """A field of a prediction whose estimates have lost their intervals."""
    if isinstance(value, Estimate):
        return Estimate(value.value, why=why)
    if isinstance(value, dict):
        return {key: _without_intervals(entry, why) for key, entry in value.items()}
    return value


def _optional(value: Estimate | None, why: str | None = None) -> dict[str, Any]:
    if value is not None:
        return value.to_dict()
    return {"value": None, "low": None, "high": None, "why": why or "no parallel loops"}


def _ends(value: Estimate) -> dict[str, Any]:
    """The interval of an estimate, or why there is none."""
    return {key: entry for key, entry in value.to_dict().items() if key != "value"}
