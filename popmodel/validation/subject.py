"""What measured runs are compared with, a prediction or an application, and comparing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.errors import FileError, PopmodelError, UsageError
from popmodel.machine.profile import Profile
from popmodel.model.calibration import Calibration
from popmodel.model.run.placement import Allocation, place
from popmodel.model.signature.program import Signature
from popmodel.model.uncertainty import DEFAULT_COUNT
from popmodel.prediction import split_choice
from popmodel.prediction.prediction import PredictedRun, predict, study_of
from popmodel.prediction.split_choice import SplitChoice, evaluate, judge
from popmodel.runs.measurement import MeasuredRow
from popmodel.validation import training
from popmodel.validation.comparison import ComparedRun, by_machine, compare, splits
from popmodel.validation.decision import Choose, Pair, SplitDecision, decisions
from popmodel.validation.oversubscribed import ExcludedRuns, excluded, oversubscribed, suspicious
from popmodel.validation.predictions import Predicted, from_document, from_prediction
from popmodel.validation.training import FitRegion, NodesOf, Training
from popmodel.values import dataclass


def nothing(*_: Any) -> Any:
    """What a saved prediction, which is of one split, tells of others."""


@dataclass(frozen=True)
class Subject:
    """What measured runs are compared with."""

    # Their names.
    application: str
    machine: str
    preset: bool  # Whether the machine comes with popmodel
    noisy: tuple[str, ...]  # Sections of its profile that were measured beside noise
    files: tuple[str, ...]  # The files that say what they are
    # Parameters of the application, where a run does not say otherwise.
    parameters: Mapping[str, float]
    defaults: Mapping[str, float]  # Those of them that nobody set
    predict: Callable[[Sequence[MeasuredRow]], list[Predicted]]  # From runs to predictions for them
    # Nodes of the machine and cores of each that may be used; None of a saved prediction.
    available: tuple[int, int] | None = None
    # From parameters and splits to which of them is recommended; to None of a saved prediction.
    choose: Choose = nothing
    # From P and T to the nodes that they take, to None where that is not known.
    nodes_of: NodesOf = nothing
    calibration: Calibration | None = None  # What measured runs have taught of the application
    unnamed: int = 0  # Runs that a saved prediction was calibrated by, which its file does not name
    # MPI calls of the program that the signature does not contain, with their share of the time.
    not_modelled: str = ""


def prediction(made: PredictedRun) -> Subject:
    """Compare with a prediction."""
    known = made.signature.calibration
    one = from_prediction(made, 0.0 if known is None else known.noise)
    return replace(_saved(made.to_dict(), (), one), calibration=known, unnamed=0)


def saved(document: Mapping[str, Any], path: str) -> Subject:
    """Compare with a prediction that was read from a file, and is one (`PREDICTION`)."""
    return _saved(document, (path,), from_document(document))


def _saved(document: Mapping[str, Any], files: tuple[str, ...], one: Predicted) -> Subject:
    name, machine = document["application"]["name"], document["machine"]
    preset, noisy = machine.get("preset") is True, tuple(machine.get("noisy", ()))
    calibrated = document["application"].get("calibration") or {}
    return Subject(
        name,
        machine["name"],
        preset,
        noisy,
        files,
        one.parameters,
        {},
        lambda _: [one],
        nodes_of=lambda p, t: one.nodes if (p, t) == (one.processes, one.threads) else None,
        unnamed=calibrated.get("runs", 0),
        not_modelled=document["application"].get("not_modelled", ""),
    )


def application(
    signature: Signature, profile: Profile, changes: Mapping[str, float], allocation: Allocation
) -> Subject:
    """Compare with predictions of every measured run."""
    noise = 0.0 if signature.calibration is None else signature.calibration.noise

    def one_of(run: MeasuredRow) -> Predicted:
        settings = {**changes, **run.parameters}
        try:
            made = predict(
                signature,
                profile,
                run.processes,
                run.threads,
                settings,
                allocation=allocation,
                advice=False,
            )
        except PopmodelError as error:
            if run.line is None:
                raise
            raise FileError(run.source, error.message, line=run.line, hint=error.hint) from error
        return from_prediction(made, noise)

    def predictions(runs: Sequence[MeasuredRow]) -> list[Predicted]:
        different = {run.configuration: run for run in runs}
        return [one_of(run) for run in different.values()]

    def choose(parameters: Mapping[str, float], splits: Sequence[Pair]) -> SplitChoice | None:
        settings = {**changes, **parameters}
        study = study_of(signature, profile, settings, DEFAULT_COUNT, 0, allocation=allocation)
        drawn = study.sources()
        found = judge([evaluate(study, drawn, *split) for split in splits], study.surest)
        if all(one.regret is None for one in found):
            return None
        scores, trusted = study.scores(drawn), not study.doubts
        return split_choice.choose(found, profile.topology, scores, trusted=trusted)

    def nodes_of(processes: int, threads: int) -> int | None:
        try:
            return place(processes, threads, profile.topology, allocation).nodes
        except UsageError:
            return None  # of a run on another machine: nobody knows

    params = signature.with_settings(changes).params
    values = {name: one.value for name, one in params.items()}
    return Subject(
        signature.name,
        profile.name,
        profile.is_preset,
        profile.noisy,
        (signature.path, profile.path),
        values,
        {name: value for name, value in values.items() if name not in changes},
        predictions,
        allocation.available(profile.topology),
        choose,
        nodes_of,
        signature.calibration,
        not_modelled=signature.not_modelled,
    )


@dataclass(frozen=True)
class Comparison:
    """What came of it."""

    # All runs; what a run leaves open of its parameters is as predicted.
    measured: tuple[MeasuredRow, ...]
    pairs: tuple[ComparedRun, ...]  # Those that are compared, with their predictions
    training: Training | None  # The runs that the model was fitted to, if any are known
    decisions: tuple[SplitDecision, ...]  # Whether the right split would have been chosen
    left_out: tuple[ExcludedRuns, ...]  # Runs that are not compared
    defaults: Mapping[str, float]  # Parameters of the application left at their defaults


def compare_runs(
    about: Subject,
    runs: Sequence[MeasuredRow],
    fitted: Sequence[MeasuredRow] = (),
    *,
    all_runs: bool = False,
) -> Comparison:
    """Compare runs with what is predicted of them."""

    def filled(some: Sequence[MeasuredRow]) -> tuple[MeasuredRow, ...]:
        return tuple(
            replace(run, parameters={**about.parameters, **run.parameters}) for run in some
        )

    measured = filled(runs)
    read = (*fitted, *runs)
    known = _trained(about, list(zip(read, filled(read), strict=True)), filled(fitted))

    def placed(run: MeasuredRow, one: Predicted) -> FitRegion:
        return by_machine(run, one) if known is None else training.region_of(run, one.nodes, known)

    able, crowded = (list(runs), []) if all_runs else _parted(runs, about)
    pairs = compare(about.predict(able), filled(able), placed)
    left = excluded((one, why) for run, why in crowded for one in filled([run]))
    kept = splits(pairs)
    if not all_runs:
        kept, disturbed = suspicious(kept)
        left += disturbed
        of_kept = {id(pair) for split in kept for pair in split.runs}
        pairs = tuple(pair for pair in pairs if id(pair) in of_kept)
    defaults = {
        name: value
        for name, value in about.defaults.items()
        if not all(name in run.parameters for run in runs)
    }
    return Comparison(measured, pairs, known, decisions(kept, about.choose), left, defaults)


def _trained(
    about: Subject,
    runs: Sequence[tuple[MeasuredRow, MeasuredRow]],
    fitted: Sequence[MeasuredRow],
) -> Training | None:
    """The runs that the model was fitted to, as the signature knows and as they were named."""
    found = []
    if about.calibration is not None:
        found.append(training.of_calibration(about.calibration, runs))
    if fitted:
        found.append(training.of_runs(fitted, about.nodes_of))
    return training.joined(found)


def _parted(
    runs: Sequence[MeasuredRow], about: Subject
) -> tuple[list[MeasuredRow], list[tuple[MeasuredRow, str]]]:
    """Runs whose threads had cores, and the others with the reason; all if there are no others."""
    able: list[MeasuredRow] = []
    crowded: list[tuple[MeasuredRow, str]] = []
    for run in runs:
        why = None if about.available is None else oversubscribed(run, *about.available)
        if why is None and run.disturbed:
            why = "their threads waited for CPUs"
        if why is None:
            able.append(run)
        else:
            crowded.append((run, why))
    # where none is left, prediction and verdict say what the machine has, and what disturbed
    return (able, crowded) if able else (list(runs), [])
