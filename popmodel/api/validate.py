"""Predictions beside measured runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.documents import parse_json, read_text
from popmodel.efficiency.measure import analyse
from popmodel.errors import FileError, PopmodelError, UsageError
from popmodel.machine import profile as profiles
from popmodel.model.measured import Measurement, from_run
from popmodel.model.predict import predict
from popmodel.model.repeats import Split, splits
from popmodel.model.run.placement import WHOLE, Allocation
from popmodel.model.run_times import RunTimes, read_table
from popmodel.model.signature import files as signatures
from popmodel.model.study import with_settings
from popmodel.model.validate import (
    PREDICTION,
    SCHEMA,
    Predicted,
    Row,
    compare,
    from_document,
    summary,
)
from popmodel.model.verdict import verdict
from popmodel.trace import read
from popmodel.values import dataclass

__all__ = ["Validation", "validate"]


@dataclass(frozen=True)
class Validation:
    """Predicted beside measured; made by `validate`.

    Attributes
    ----------
    application, machine : str
        What was predicted.
    measured : tuple of Measurement
        The measured runs.
    rows : tuple of Row
        Every quantity of every run.
    defaults : mapping of str to float
        Parameters of the application that nobody set.
    tables : tuple of RunTimes
        The tables that were read.
    inputs : tuple of str
        The files that were read.
    """

    application: str
    machine: str
    measured: tuple[Measurement, ...]
    rows: tuple[Row, ...]
    defaults: Mapping[str, float]
    tables: tuple[RunTimes, ...]
    inputs: tuple[str, ...]

    @property
    def splits(self) -> tuple[Split, ...]:
        """Runs of the same split and parameters, taken together."""
        return splits(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Give the document, schema ``popmodel/validate/1``, without provenance."""
        found = self.splits
        return {
            "schema": SCHEMA,
            "verdict": list(verdict(found, self.defaults)),
            "application": self.application,
            "machine": self.machine,
            "measured": [run.to_dict() for run in self.measured if run.window is not None],
            "ignored": [
                {"file": table.path, "columns": list(table.ignored)}
                for table in self.tables
                if table.ignored
            ],
            "splits": [split.to_dict() for split in found],
            "rows": [row.to_dict() for row in self.rows],
            "summary": summary(self.rows),
        }


def validate(
    prediction: str | os.PathLike[str],
    measured: Sequence[str | os.PathLike[str]],
    *,
    machine: str | None = None,
    settings: Mapping[str, float] | None = None,
    allocation: Allocation = WHOLE,
    from_start: bool = False,
    cache: bool = True,
) -> Validation:
    """Compare predictions with measured runs.

    Parameters
    ----------
    prediction : path or str
        A prediction that was saved (``.json``), or an application that is predicted now.
    measured : sequence of path
        Traces, or tables of run times (``.csv``); columns of a table that are named like a
        parameter of the application set it for each run.
    machine : str, optional
        A profile's file or the name of a preset.
    settings : mapping of str to float, optional
        Parameters of the application.
    allocation : Allocation
        Nodes and cores that the runs may use.
    from_start : bool
        Take whole traces, not from the end of MPI_Init to MPI_Finalize.
    cache : bool
        Whether to keep parsed traces, and to use those that are kept.

    Raises
    ------
    FileError
        If something cannot be read.
    UsageError
        If a run was measured for whose size there is no prediction, or options contradict.
    """
    source, paths = os.fspath(prediction), [os.fspath(path) for path in measured]
    changes = settings or {}
    if source.lower().endswith(".json"):
        if machine is not None or changes or allocation != WHOLE:
            raise UsageError(
                "--machine, --set, --nodes and --cores-per-node do not go with a saved prediction",
                "name the application instead, to predict anew",
            )
        subject = _saved(source)
    else:
        subject = _application(source, machine, changes, allocation)
    runs: list[Measurement] = []
    tables: list[RunTimes] = []
    for path in paths:
        if path.lower().endswith(".csv"):
            tables.append(read_table(path, subject.parameters))
            runs += tables[-1].runs
        else:
            runs.append(from_run(analyse(read(path, cache=cache), from_start=from_start)))
    _refuse_conflicts(runs, changes)
    predictions = subject.predict(runs)
    runs = [replace(run, parameters={**subject.parameters, **run.parameters}) for run in runs]
    in_tables = {name for table in tables for name in table.parameters}
    return Validation(
        subject.application,
        subject.machine,
        tuple(runs),
        compare(predictions, runs),
        {name: value for name, value in subject.defaults.items() if name not in in_tables},
        tuple(tables),
        (*subject.inputs, *paths),
    )


@dataclass(frozen=True)
class _Subject:
    """What measured runs are compared with.

    Attributes
    ----------
    application, machine : str
        Their names.
    inputs : tuple of str
        The files that say what they are.
    parameters : mapping of str to float
        Parameters of the application, where a run does not say otherwise.
    defaults : mapping of str to float
        Those of them that nobody set.
    predict : callable
        From runs to predictions for them.
    """

    application: str
    machine: str
    inputs: tuple[str, ...]
    parameters: Mapping[str, float]
    defaults: Mapping[str, float]
    predict: Callable[[Sequence[Measurement]], list[Predicted]]


def _saved(source: str) -> _Subject:
    document = PREDICTION.read(parse_json(read_text(source), source), source)
    saved = from_document(document)
    names = document["application"]["name"], document["machine"]["name"]
    return _Subject(*names, (source,), saved.parameters, {}, lambda _: [saved])


def _application(
    source: str, machine: str | None, changes: Mapping[str, float], allocation: Allocation
) -> _Subject:
    signature = signatures.load(source)
    profile = profiles.load(machine or profiles.DEFAULT_PRESET)

    def one_of(run: Measurement) -> Predicted:
        settings = {**changes, **run.parameters}
        try:
            made = predict(
                signature,
                profile,
                run.processes,
                run.threads,
                settings,
                allocation=allocation,
            )
        except PopmodelError as error:
            if run.line is None:
                raise
            raise FileError(run.source, error.message, line=run.line, hint=error.hint) from error
        return from_document(made.to_dict())

    def predictions(runs: Sequence[Measurement]) -> list[Predicted]:
        different = {
            (run.processes, run.threads, *sorted(run.parameters.items())): run for run in runs
        }
        return [one_of(run) for run in different.values()]

    values = {name: one.value for name, one in with_settings(signature, changes).items()}
    return _Subject(
        signature.name,
        profile.name,
        (signature.path, profile.path),
        values,
        {name: value for name, value in values.items() if name not in changes},
        predictions,
    )


def _refuse_conflicts(runs: Sequence[Measurement], changes: Mapping[str, float]) -> None:
    """Refuse a table that contradicts ``--set``."""
    for run in runs:
        for name in run.parameters:
            if name in changes and run.parameters[name] != changes[name]:
                raise UsageError(
                    f"{run.place}: {name} is {run.parameters[name]:g}, "
                    f"--set says {changes[name]:g}",
                    f"leave --set {name} out: each run is predicted with its own {name}",
                )
