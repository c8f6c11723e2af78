"""A predicted run: runtime and efficiencies with intervals, their reach, and a reference run."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import field, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.expressions.elementary import Value
from popmodel.base.values import NamedTuple, dataclass, document, fields_of
from popmodel.efficiency.evaluation import TERMS_FAMILY as FAMILY
from popmodel.efficiency.evaluation import terms
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import Mode, against, of_masters
from popmodel.machines.profile import Profile, measuring_first
from popmodel.machines.quantity import Quantity
from popmodel.model.model_error import MEASURED, RUNS, Reach, measured_ranges, reaches
from popmodel.model.predictor import RUN_TO_RUN, ModelEvaluation, Study, multithreading
from popmodel.model.replayed_run import ReplayAgreement
from popmodel.model.run.feasible_splits import divisors
from popmodel.model.run.parameters import ParameterUse
from popmodel.model.run.process_placement import (
    WHOLE,
    Allocation,
    Placement,
    launch_line,
    mpirun_line,
)
from popmodel.model.run.work import ModelledObservables
from popmodel.model.signature.application import Signature
from popmodel.model.uncertainty import DEFAULT_COUNT, LEVEL, Estimate, estimate, nominal, shares
from popmodel.prediction.causes import Elasticity, causes, elasticities, remedies
from popmodel.simulator.program import unmodelled_calls

SCHEMA = "popmodel/predict/1"
MAIN_FAMILY = FAMILY
DEFAULT_REFERENCE = "default"
"""Why 1 x 1 is the reference: nothing else was asked for or needed."""
INSIDE, EXTRAPOLATED, OUTSIDE = "inside", "extrapolated", "outside"


def subject(
    signature: Signature, profile: Profile, settings: Mapping[str, float]
) -> dict[str, dict[str, Any]]:
    """What a document is about: the keys ``application`` and ``machine``."""
    known = signature.calibration
    return {
        "application": {
            "name": signature.name,
            "path": signature.path,
            "bundled": signature.is_bundled,
            "not_modelled": signature.not_modelled,
            "settings": dict(settings),
            "imbalance": signature.set_imbalance,
            "calibration": None
            if known is None
            else {
                "runs": len(known.runs),
                "noise": known.noise,
                "machine": known.machine,
                "same_machine": known.machine_digest == profile.digest,
                "changed": list(known.changed),
            },
        },
        "machine": {
            "name": profile.name,
            "path": profile.path,
            "preset": profile.is_preset,
            "origin": profile.origin,
            "noisy": list(profile.noisy),
        },
    }


def trust(doubts: Sequence[str], basis: str = "") -> dict[str, Any]:
    """Whether a result is to be trusted, for a document: why not, else what it rests on."""
    return {"ok": not doubts, "why": "; ".join(doubts) or basis}


def doubts_of(signature: Signature, learnt: Mapping[str, Any] | None) -> list[str]:
    """Why predictions from a signature are not to be trusted."""
    return [*(learnt or {"doubts": ()})["doubts"], *unmodelled_calls(signature.not_modelled)]


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


# How far a prediction goes beyond what was measured of the machine: what the model asked of every
# table is held against the range that was measured.


@dataclass(frozen=True)
class Validity:
    """Whether a prediction stays within what was measured."""

    # `INSIDE`, `EXTRAPOLATED` or `OUTSIDE`; for a machine that was not measured the origin of its
    # quantities, ``preset`` or ``user``.
    status: str
    # Largest factor by which an argument is beyond its measured range; None if nothing is measured.
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
    of_machine = list(reaches(measured_ranges(profile), used, placement.nodes))
    beyond: dict[tuple[float, str, str, float], list[str]] = defaultdict(list)
    for reach in (*of_machine, *runs):
        if reach.is_beyond:
            key = reach.factor, reach.argument, reach.limit, reach.trusted
            beyond[key] += [reach.subject] if reach.section != RUNS else []
    order = sorted(beyond, key=lambda key: -key[0] / key[3])
    reasons = []
    for key in order:
        named = beyond[key] and key[1] != "nodes"
        subjects = f": {', '.join(beyond[key])}" if named else ""
        reasons.append(f"{key[1]} a factor of {key[0]:.3g} {key[2]}{subjects}")
    factor = max((key[0] for key in order), default=1.0)
    is_measured = any(reach.argument != "nodes" for reach in of_machine)
    # values of a preset have no range; runs that calibrated a signature have one on any machine
    if any(key[0] > key[3] for key in order if is_measured or not beyond[key]):
        return Validity(OUTSIDE, factor, (*reasons, *_not_measured(profile, used)))
    if not is_measured:
        return Validity(profile.origin, None, tuple(reasons))
    reasons += _not_measured(profile, used)
    return Validity(EXTRAPOLATED if order else INSIDE, factor, tuple(reasons))


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


class ReferenceRun(NamedTuple):
    """A run that is asked for as the reference."""

    processes: int
    threads: int  # Of each process
    # Parameters of the application that differ from those of the run: weak scaling.
    settings: Mapping[str, float] | None = None


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
    # Useful time and the losses of `MAIN_FAMILY` in seconds, `popmodel.efficiency.evaluation`, as
    # measured runs have them too.
    terms: dict[str, Estimate]
    remedies: dict[str, float]  # Relative change of the runtime under each remedy, the best first
    # Works out `elasticities`, which no screen shows.
    of_inputs: Callable[[], tuple[Elasticity, ...]] = field(repr=False, compare=False)
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

    @cached_property
    def elasticities(self) -> tuple[Elasticity, ...]:
        """By how many per cent the runtime changes if an input grows by one, the largest first."""
        return self.of_inputs()

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

    @property
    def _doubts(self) -> list[str]:
        outside = [] if self.validity.has_interval else [self.validity.text]
        return [*doubts_of(self.signature, self.learnt), *outside]

    def without_intervals(self, why: str) -> PredictedRun:
        """Return the same prediction with best estimates only."""
        return replace(
            self,
            **{one.name: _without_intervals(getattr(self, one.name), why) for one in fields(self)}
            | {"included": ()},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the prediction as JSON types, schema ``popmodel/predict/1``."""
        return {**self.shown_document(), **fields_of(self, "elasticities")}

    def shown_document(self) -> dict[str, Any]:
        """Return what of it screens show."""
        at = self.placement
        new_run = {key: end for key, end in self.new_run.to_dict().items() if key != "value"}
        run_to_run = (RUN_TO_RUN,) if self.new_run.low is not None else ()
        return document(
            SCHEMA,
            **subject(self.signature, self.profile, self.settings),
            **fields_of(at, "processes", "threads"),
            placement={
                "nodes": at.nodes,
                "processes_per_node": at.per_node,
                "grid": self.grid,
                **fields_of(at, "bind", "cores_per_process", "active", "active_serial"),
                **fields_of(at, "sockets_spanned", "domains_spanned"),
            },
            **fields_of(self, "memory_per_process", "validity"),
            runtime={**self.runtime.to_dict(), "new_run": new_run},
            **fields_of(self, "source", "metrics", "absent", "reference", "limits", "causes"),
            **fields_of(self, "time", "terms", "remedies"),
            elasticities=(),
            **fields_of(self, "doubtful", "measure"),
            model_form=dict(zip(("full_overlap", "no_overlap"), self.model_form, strict=True)),
            replay=self.agreement or {"why": self.not_replayed},
            e_mt=_optional(self.multithreading_efficiency, "no parallel loops"),
            e_mp=_optional(self.message_passing_ratio, self.message_passing_absent),
            launch=self.launch,
            launch_mpirun=self.launch_mpirun,
            trust=trust(self._doubts, self.validity.text),
            **fields_of(self, "inputs", "left_out", "notes"),
            **({} if self.learnt is None else {"learnt": self.learnt}),
            intervals={"level": LEVEL, "include": (*self.included, *run_to_run)},
            **fields_of(self, "draws", "seed"),
        )


def _without_intervals(value: Any, why: str) -> Any:
    """A field of a prediction whose estimates have lost their intervals."""
    if isinstance(value, Estimate):
        return Estimate(value.value, why=why)
    if isinstance(value, dict):
        return {key: _without_intervals(entry, why) for key, entry in value.items()}
    return value


def _optional(value: Estimate | None, why: str | None) -> dict[str, Any]:
    if value is not None:
        return value.to_dict()
    return {"value": None, "low": None, "high": None, "why": why}


def predict(
    signature: Signature,
    profile: Profile,
    processes: int,
    threads: int,
    settings: Mapping[str, float] | None = None,
    *,
    reference: ReferenceRun | None = None,
    allocation: Allocation = WHOLE,
    draws: int = DEFAULT_COUNT,
    seed: int = 0,
    advice: bool = True,
) -> PredictedRun:
    """Predict a run of an application on a machine."""
    study = study_of(signature, profile, settings or {}, draws, seed, allocation=allocation)
    placement = study.admit_or_advise(processes, threads)
    drawn = study.sources()
    run = study.outcome(placement, drawn)
    agreement = run.agreement
    modelled, compared, reference_inputs = compare(study, placement, run, reference)
    best = {name: nominal(value) for name, value in modelled.aggregates.items()}
    sampled = {
        id: family.evaluate_samples(modelled.aggregates, modelled.absent)
        for id, family in load_families().items()
        if family.fits(modelled.aggregates)
    }
    main = load_families()[MAIN_FAMILY]
    evaluation = main.evaluate(best, modelled.absent)
    lowest = main.lowest_leaf(evaluation)
    parts = terms(modelled.runtime, sampled[MAIN_FAMILY].values)
    e_mp, e_mp_absent = study.message_passing(placement, run)
    validity = validity_of(study, placement, run.machine.used)
    lost = causes(study, placement, run)
    scores = {**study.scores(drawn), **run.form.scores, **study.terms(placement, drawn)}
    doubtful = shares(scores, run.modelled.runtime)
    prediction = PredictedRun(
        signature=signature,
        profile=profile,
        settings=study.values,
        placement=placement,
        grid=run.extent,
        memory_per_process=run.memory,
        validity=validity,
        runtime=estimate(run.modelled.runtime),
        new_run=study.new_run(run.modelled.runtime, drawn),
        source=run.source,
        metrics={
            id: {name: estimate(values) for name, values in family.values.items()}
            for id, family in sampled.items()
        },
        absent={id: dict(family.absent) for id, family in sampled.items()},
        reference=compared,
        limits=None if lowest is None else lowest.id,
        causes=lost,
        time={part: estimate(value) for part, value in run.modelled.time.items()},
        terms={part: estimate(value) for part, value in parts.items()},
        remedies=remedies(study, placement, lost, agreement) if advice else {},
        of_inputs=partial(elasticities, study, placement, agreement=agreement) if advice else tuple,
        doubtful=doubtful,
        measure=measuring_first(profile, doubtful),
        model_form=study.model_form(placement, agreement),
        agreement=agreement,
        not_replayed=run.why_not,
        multithreading_efficiency=multithreading(run.work, placement),
        message_passing_ratio=e_mp,
        message_passing_absent=e_mp_absent,
        inputs={path: study.quantities[path] for path in sorted({*drawn.used, *reference_inputs})}
        | dict(run.form.quantities),
        left_out=tuple(sorted(run.machine.left_out)),
        notes=(*evaluation.notes, *study.notes(placement, run)),
        learnt=study.learnt(placement),
        included=study.included,
        draws=draws,
        seed=seed,
    )
    return prediction if validity.has_interval else prediction.without_intervals(validity.text)


# The reference run: both runs see the same draws of the uncertain inputs, so what is common to them
# cancels in their ratios.


def compare(
    study: Study, placement: Placement, run: ModelEvaluation, wanted: ReferenceRun | None = None
) -> tuple[ModelledObservables, Reference, tuple[str, ...]]:
    """Evaluate the reference of a run and join it to the run.

    Comes with the run as families need it, the reference, and the paths of the quantities that it
    rests on.
    """
    base, lacking = study, run.machine.lacking
    if wanted is None:
        where, why = _smallest(study, placement, lacking)
    else:
        try:
            base = study.with_settings(wanted.settings) if wanted.settings else study
            as_many_nodes_as_needed = replace(study.allocation, nodes=None)
            where = base.admit_or_advise(*wanted[:2], as_many_nodes_as_needed)
            _require_known(base, where, lacking)
        except UsageError as error:
            raise UsageError(f"reference: {error.message}", error.hint) from error
        why = "asked for"
    drawn = base.sources()
    other = run
    if base is not study or where != placement:
        other = base.outcome(where, drawn)
    own = study.values
    changed = {name: value for name, value in base.values.items() if value != own[name]}
    ratio: Value = 1.0
    if changed:
        ratio, told = _work_ratio(run, placement, other, where)
        why = f"{why}; {told}"
    reference = Reference(
        where.processes,
        where.threads,
        changed,
        "weak" if changed else "strong",
        estimate(ratio),
        estimate(other.modelled.runtime),
        why,
    )
    known = run.modelled
    aggregates: dict[str, Value] = against(known.aggregates, other.modelled.aggregates, ratio)
    absent = {name: why for name, why in known.absent.items() if name != "reference"}
    # the reference is a run of the same signature and lacks the same counters
    absent |= {f"reference_{name}": why for name, why in absent.items()}
    scaled = load_families()["scaling"].evaluate_samples(aggregates, absent)
    values: dict[str, Value] = dict(scaled.values)
    threaded = max(placement.threads, where.threads) > 1
    more, reasons = of_masters(values, scaled.absent, threaded=threaded)
    modelled = replace(known, aggregates=aggregates | more, absent=absent | reasons)
    return modelled, reference, tuple(drawn.used)


def _require_known(study: Study, where: Placement, lacking: Set[str]) -> None:
    """Refuse a reference run that takes no time, or needs more that the profile lacks."""
    run = study.best(where)
    study.require_time(where, run)
    more = run.machine.lacking - lacking
    if more:
        raise study.profile.missing(min(more))


def _smallest(study: Study, placement: Placement, lacking: Set[str]) -> tuple[Placement, str]:
    """Find the smallest part of a run that is possible, and say why it is this one.

    Parts have a divisor of its processes and of its threads, the fewest cores first, then the
    fewest threads: what a program requires of their number (a square, a multiple) holds rather for
    these than for the numbers between.
    """
    refused: str | None = None
    parts = itertools.product(divisors(placement.processes), divisors(placement.threads))
    for processes, threads in sorted(parts, key=lambda part: (part[0] * part[1], part[1]))[:-1]:
        try:
            where = study.admit(processes, threads, replace(study.allocation, nodes=None))
            _require_known(study, where, lacking)
        except PopmodelError as error:  # not possible, or the machine is not known there
            refused = refused or error.message
            continue
        if refused is None:
            return where, DEFAULT_REFERENCE
        return where, f"smallest possible part of the run: {refused}"
    if refused is None:
        return placement, "the run itself"
    return placement, f"the run itself, no part of it is possible: {refused}"


def _work_ratio(
    run: ModelEvaluation, placement: Placement, other: ModelEvaluation, where: Placement
) -> tuple[Value, str]:
    """Return the work of a run over that of its reference, and how it was counted."""
    work, base = placement.processes * run.work.flops, where.processes * other.work.flops
    if np.all(work) and np.all(base):
        return work / base, "work in operations"
    return placement.cores / where.cores, (
        "work assumed proportional to the cores: the signature has no operation counts (flops)"
    )
