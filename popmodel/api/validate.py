"""Predictions beside measured runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.documents import parse_json, read_text
from popmodel.efficiency.measure import analyse
from popmodel.errors import UsageError
from popmodel.machine import profile as profiles
from popmodel.model.measured import Measurement, from_run, read_table
from popmodel.model.predict import predict
from popmodel.model.run.placement import WHOLE, Allocation
from popmodel.model.signature import files as signatures
from popmodel.model.validate import (
    PREDICTION,
    SCHEMA,
    Predicted,
    Row,
    compare,
    from_document,
    summary,
)
from popmodel.trace import read
from popmodel.trace.part import PROGRAM, Part, Window
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
    inputs : tuple of str
        The files that were read.
    """

    application: str
    machine: str
    measured: tuple[Measurement, ...]
    rows: tuple[Row, ...]
    inputs: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give the document, schema ``popmodel/validate/1``, without provenance."""
        return {
            "schema": SCHEMA,
            "application": self.application,
            "machine": self.machine,
            "measured": [run.to_dict() for run in self.measured if run.window is not None],
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
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    cache: bool = True,
) -> Validation:
    """Compare predictions with measured runs.

    Parameters
    ----------
    prediction : path or str
        A prediction that was saved (``.json``), or an application that is predicted now.
    measured : sequence of path
        Traces, or tables of run times (``.csv``).
    machine : str, optional
        A profile's file or the name of a preset.
    settings : mapping of str to float, optional
        Parameters of the application.
    allocation : Allocation
        Nodes and cores that the runs may use.
    window : str or pair, optional
        Analyse a window of time: ``"1.5s:3s"`` or ``(1.5, 3)`` in seconds from the start of the
        trace; an end that is left out, or None, is the trace's.
    region : str, optional
        Analyse the occurrences of a region, one after the other.
    from_start : bool
        Analyse the whole run. By default it is the part from the end of MPI_Init of the last rank
        to the begin of MPI_Finalize of the first.
    cache : bool
        Whether to keep parsed traces, and to use those that are kept.

    Raises
    ------
    FileError
        If something cannot be read.
    UsageError
        If a run was measured for whose size there is no prediction, or options contradict.
    """
    source = os.fspath(prediction)
    paths = [os.fspath(path) for path in measured]
    part = Part.of(window, region, from_start)
    if part != PROGRAM and all(_is_table(path) for path in paths):
        raise UsageError(
            "--window, --region and --from-start need a trace, not tables of run times",
            "leave them out, or name a trace",
        )
    runs = [run for path in paths for run in _measured(path, part, cache=cache)]
    names, inputs, predictions = _predictions(source, machine, settings or {}, allocation, runs)
    rows = compare(predictions, runs)
    return Validation(*names, tuple(runs), rows, (*inputs, *paths))


def _measured(path: str, part: Part, *, cache: bool) -> list[Measurement]:
    if _is_table(path):
        return read_table(path)
    return [from_run(analyse(read(path, cache=cache), part=part))]


def _is_table(path: str) -> bool:
    return path.lower().endswith(".csv")


def _predictions(
    source: str,
    machine: str | None,
    changes: Mapping[str, float],
    available: Allocation,
    runs: Sequence[Measurement],
) -> tuple[tuple[str, str], list[str], list[Predicted]]:
    """Names, input files and predictions, read from a file or made for the sizes of the runs."""
    if source.lower().endswith(".json"):
        if machine is not None or changes or available != WHOLE:
            raise UsageError(
                "--machine, --set, --nodes and --cores-per-node do not go with a prediction that "
                "was saved",
                "name the application instead, to predict anew",
            )
        document = PREDICTION.read(parse_json(read_text(source), source), source)
        names = document["application"]["name"], document["machine"]["name"]
        return names, [source], [from_document(document)]
    signature = signatures.load(source)
    profile = profiles.load(machine or profiles.DEFAULT_PRESET)
    sizes = dict.fromkeys((run.processes, run.threads) for run in runs)
    made = [
        predict(signature, profile, *size, changes, allocation=available).to_dict()
        for size in sizes
    ]
    return (
        (signature.name, profile.name),
        [signature.path, profile.path],
        [from_document(one) for one in made],
    )
