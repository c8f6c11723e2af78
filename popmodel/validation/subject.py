"""What measured runs are compared with: a prediction, or an application that is predicted anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from popmodel.errors import FileError, PopmodelError
from popmodel.machine.profile import Profile
from popmodel.model.run.placement import Allocation
from popmodel.model.signature.program import Signature
from popmodel.prediction.predict import predict
from popmodel.prediction.prediction import Prediction
from popmodel.validation.measurement import Measurement
from popmodel.validation.predicted import Predicted, from_document, from_prediction
from popmodel.values import dataclass


@dataclass(frozen=True)
class Subject:
    """What measured runs are compared with.

    Attributes
    ----------
    application, machine : str
        Their names.
    preset : bool
        Whether the machine comes with popmodel.
    noisy : tuple of str
        Sections of its profile that were measured beside noise.
    files : tuple of str
        The files that say what they are.
    parameters : mapping of str to float
        Parameters of the application, where a run does not say otherwise.
    defaults : mapping of str to float
        Those of them that nobody set.
    predict : callable
        From runs to predictions for them.
    available : tuple of int, or None
        Nodes of the machine and cores of each that may be used; None of a saved prediction.
    """

    application: str
    machine: str
    preset: bool
    noisy: tuple[str, ...]
    files: tuple[str, ...]
    parameters: Mapping[str, float]
    defaults: Mapping[str, float]
    predict: Callable[[Sequence[Measurement]], list[Predicted]]
    available: tuple[int, int] | None = None


def prediction(made: Prediction) -> Subject:
    """Compare with a prediction."""
    return _saved(made.to_dict(), (), from_prediction(made))


def saved(document: Mapping[str, Any], path: str) -> Subject:
    """Compare with a prediction that was read from a file, and is one (`PREDICTION`)."""
    return _saved(document, (path,), from_document(document))


def _saved(document: Mapping[str, Any], files: tuple[str, ...], one: Predicted) -> Subject:
    name, machine = document["application"]["name"], document["machine"]
    preset, noisy = machine.get("preset") is True, tuple(machine.get("noisy", ()))
    return Subject(name, machine["name"], preset, noisy, files, one.parameters, {}, lambda _: [one])


def application(
    signature: Signature, profile: Profile, changes: Mapping[str, float], allocation: Allocation
) -> Subject:
    """Compare with predictions of every measured run.

    Parameters
    ----------
    signature, profile : Signature, Profile
        Application and machine.
    changes : mapping of str to float
        Parameters of the application that are set for all runs.
    allocation : Allocation
        What of the machine may be used.
    """

    def one_of(run: Measurement) -> Predicted:
        settings = {**changes, **run.parameters}
        try:
            made = predict(
                signature, profile, run.processes, run.threads, settings, allocation=allocation
            )
        except PopmodelError as error:
            if run.line is None:
                raise
            raise FileError(run.source, error.message, line=run.line, hint=error.hint) from error
        return from_prediction(made)

    def predictions(runs: Sequence[Measurement]) -> list[Predicted]:
        different = {
            (run.processes, run.threads, *sorted(run.parameters.items())): run for run in runs
        }
        return [one_of(run) for run in different.values()]

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
    )
