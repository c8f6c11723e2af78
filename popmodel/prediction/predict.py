"""Predict one run: runtime, efficiencies with intervals, where the time goes, what would help."""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.terms import terms
from popmodel.machine import remeasure
from popmodel.machine.profile import Profile
from popmodel.model.run.observe import ModelledObservables
from popmodel.model.run.placement import WHOLE, Allocation
from popmodel.model.signature.program import Signature
from popmodel.model.study import multithreading
from popmodel.model.uncertainty import DEFAULT_COUNT, Estimate, estimate, nominal, shares
from popmodel.prediction.causes import causes, elasticities, remedies
from popmodel.prediction.prediction import MAIN_FAMILY, PredictedRun, study_of, validity_of
from popmodel.prediction.scaling import ReferenceRun, compare


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
    outcome = study.outcome(placement, drawn)
    run, agreement = outcome.run, outcome.agreement
    compared = compare(study, placement, run, reference)
    metrics, absent, limits, notes, parts = _metrics(compared.modelled)
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
        source=outcome.source,
        metrics=metrics,
        absent=absent,
        reference=compared.reference,
        limits=limits,
        causes=lost,
        time={part: estimate(value) for part, value in run.modelled.time.items()},
        terms=parts,
        remedies=remedies(study, placement, lost, agreement) if advice else {},
        elasticities=elasticities(study, placement, agreement=agreement) if advice else (),
        doubtful=doubtful,
        measure=remeasure.first_command(profile, doubtful),
        model_form=study.model_form(placement, agreement),
        agreement=agreement,
        not_replayed=outcome.why_not,
        multithreading_efficiency=multithreading(run.work, placement),
        message_passing_ratio=e_mp,
        message_passing_absent=e_mp_absent,
        inputs={path: study.quantities[path] for path in sorted({*drawn.used, *compared.inputs})}
        | dict(run.form.quantities),
        left_out=tuple(sorted(run.machine.left_out)),
        notes=(*notes, *study.notes(placement, run)),
        learnt=study.learnt(placement),
        included=study.included,
        draws=draws,
        seed=seed,
    )
    return prediction if validity.has_interval else prediction.without_intervals(validity.text)


def _metrics(
    modelled: ModelledObservables,
) -> tuple[
    dict[str, dict[str, Estimate]],
    dict[str, dict[str, str]],
    str | None,
    tuple[str, ...],
    dict[str, Estimate],
]:
    """Evaluate all families in every draw; then what is lowest, notes, and losses in seconds."""
    metrics: dict[str, dict[str, Estimate]] = {}
    parts: dict[str, Estimate] = {}
    absent: dict[str, dict[str, str]] = {}
    limits: str | None = None
    notes: tuple[str, ...] = ()
    best = {name: nominal(value) for name, value in modelled.aggregates.items()}
    for id, family in load_families().items():
        sampled = family.evaluate_samples(modelled.aggregates, modelled.absent)
        metrics[id] = {name: estimate(values) for name, values in sampled.values.items()}
        absent[id] = dict(sampled.absent)
        if id == MAIN_FAMILY:
            evaluation = family.evaluate(best, modelled.absent)
            lowest = family.lowest_leaf(evaluation)
            limits = None if lowest is None else lowest.id
            notes = evaluation.notes
            lost = terms(modelled.runtime, sampled.values)
            parts = {name: estimate(value) for name, value in lost.items()}
    return metrics, absent, limits, notes, parts
